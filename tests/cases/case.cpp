#include "case.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <stdexcept>
#include <system_error>
#include <type_traits>

#include "mblas/accuracy.hpp"

namespace mblas::cases {
namespace {

struct Extents {
  std::int64_t rows, cols;
};
Extents stored(Op op, std::int64_t rows, std::int64_t cols) {
  return is_transposed(op) ? Extents{cols, rows} : Extents{rows, cols};
}

/// Not inlined: GCC 12 then loses the rounding of one part at -O3.
[[gnu::noinline]] Scalar rounded(DType scalar, Scalar s) {
  if (!is_complex(scalar)) s.im = 0;
  if (unit_roundoff(scalar) == unit_roundoff(DType::f32))
    return {double(float(s.re)), double(float(s.im))};
  if (scalar == DType::i32) return {std::trunc(s.re), 0};
  return s;
}

void fill_in(const Shape& shape, std::int64_t& ld, std::int64_t& stride) {
  ld = shape.ld;
  stride = shape.stride;
}

double payload(const Shape& s) {
  return double(s.stored()) * double(s.lines) * double(s.length) * size_of(s.type);
}

}  // namespace

Case make_case(std::string_view op) {
  std::string known;
  Case result;
  const auto consider = [&]<class C>(std::type_identity<C>) {
    known += (known.empty() ? "" : ", ") + std::string(C::kOp);
    if (op == C::kOp) result = C{};
    return op == C::kOp;
  };
  const bool found = [&]<class... C>(std::type_identity<std::variant<C...>>) {
    return (consider(std::type_identity<C>{}) || ...);
  }(std::type_identity<Case>{});
  if (!found) throw std::invalid_argument("no operation '" + std::string(op) + "': " + known);
  return result;
}

std::vector<Shape> shapes(const Case& any) {
  return std::visit(
      [](const auto& c) -> std::vector<Shape> {
        using C = std::remove_cvref_t<decltype(c)>;
        if constexpr (std::is_same_v<C, GemmCase>) {
          const auto [a_rows, a_cols] = stored(c.transA, c.m, c.k);
          const auto [b_rows, b_cols] = stored(c.transB, c.k, c.n);
          std::vector<Shape> list = {
              shape_of(c.in, c.layout, a_rows, a_cols, c.lda, c.strideA, c.batch),
              shape_of(c.in, c.layout, b_rows, b_cols, c.ldb, c.strideB, c.batch)};
          if (c.bias != BiasPer::None)
            list.push_back(shape_of(c.out, Layout::RowMajor, 1, c.bias == BiasPer::Row ? c.m : c.n,
                                    0, kPacked, 1));
          list.push_back(shape_of(c.out, c.layout, c.m, c.n, c.ldc, c.strideC, c.batch));
          return list;
        } else if constexpr (std::is_same_v<C, GeamCase>) {
          const auto [a_rows, a_cols] = stored(c.transA, c.m, c.n);
          const auto [b_rows, b_cols] = stored(c.transB, c.m, c.n);
          return {shape_of(c.type, c.layout, a_rows, a_cols, c.lda, c.strideA, c.batch),
                  shape_of(c.type, c.layout, b_rows, b_cols, c.ldb, c.strideB, c.batch),
                  shape_of(c.type, c.layout, c.m, c.n, c.ldc, c.strideC, c.batch)};
        } else if constexpr (std::is_same_v<C, TransposeCase>) {
          return {shape_of(c.type, c.layout, c.m, c.n, c.lda, c.strideA, c.batch),
                  shape_of(c.type, c.layout, c.n, c.m, c.ldb, c.strideB, c.batch)};
        } else if constexpr (std::is_same_v<C, TransposeInplaceCase>) {
          return {shape_of(c.type, c.layout, c.m, c.n, c.lda, c.strideA, c.batch)};
        } else {
          return {shape_of(DType::b1, Layout::RowMajor, c.m, c.k, c.lda, kPacked, 1),
                  shape_of(DType::b1, Layout::RowMajor, c.k, c.n, c.ldb, kPacked, 1),
                  shape_of(DType::b1, Layout::RowMajor, c.m, c.n, c.ldc, kPacked, 1)};
        }
      },
      any);
}

GemmCase resolve(GemmCase c) {
  const std::vector<Shape> s = shapes(c);
  fill_in(s[0], c.lda, c.strideA);
  fill_in(s[1], c.ldb, c.strideB);
  fill_in(s.back(), c.ldc, c.strideC);
  const DType scalar = scalar_type(c.in, c.out);
  c.alpha = rounded(scalar, c.alpha);
  c.beta = rounded(scalar, c.beta);
  c.scale = rounded(scalar, {c.scale, 0}).re;
  return c;
}

GeamCase resolve(GeamCase c) {
  const std::vector<Shape> s = shapes(c);
  fill_in(s[0], c.lda, c.strideA);
  fill_in(s[1], c.ldb, c.strideB);
  fill_in(s[2], c.ldc, c.strideC);
  c.alpha = rounded(scalar_type(c.type, c.type), c.alpha);
  c.beta = rounded(scalar_type(c.type, c.type), c.beta);
  return c;
}

TransposeCase resolve(TransposeCase c) {
  c.type = untyped(size_of(c.type));
  const std::vector<Shape> s = shapes(c);
  fill_in(s[0], c.lda, c.strideA);
  fill_in(s[1], c.ldb, c.strideB);
  return c;
}

TransposeInplaceCase resolve(TransposeInplaceCase c) {
  c.type = untyped(size_of(c.type));
  const Shape before = shape_of(c.type, c.layout, c.m, c.n, c.lda, 0, 1);
  const Shape after = shape_of(c.type, c.layout, c.n, c.m, c.ldb, 0, 1);
  c.lda = before.ld;
  c.ldb = after.ld;
  if (c.strideA == kPacked) c.strideA = std::max(before.lines * before.ld, after.lines * after.ld);
  return c;
}

Gf256Case resolve(Gf256Case c) {
  const std::vector<Shape> s = shapes(c);
  c.lda = s[0].ld;
  c.ldb = s[1].ld;
  c.ldc = s[2].ld;
  return c;
}

Case resolve(const Case& any) {
  return std::visit([](const auto& c) -> Case { return resolve(c); }, any);
}

std::int64_t room(const TransposeInplaceCase& c) {
  return std::max(shape_of(c.type, c.layout, c.m, c.n, c.lda, c.strideA, c.batch).span(),
                  shape_of(c.type, c.layout, c.n, c.m, c.ldb, c.strideA, c.batch).span());
}

std::string_view op_of(const Case& any) {
  return std::visit([](const auto& c) { return c.kOp; }, any);
}

double flops(const Case& any) {
  return std::visit(
      [](const auto& c) -> double {
        using C = std::remove_cvref_t<decltype(c)>;
        if constexpr (std::is_same_v<C, GemmCase>)
          return (is_complex(c.in) ? 8.0 : 2.0) * double(c.m) * double(c.n) * double(c.k) *
                 double(c.batch);
        else if constexpr (std::is_same_v<C, Gf256Case>)
          return 2.0 * double(c.m) * double(c.n) * double(c.k);
        else if constexpr (std::is_same_v<C, GeamCase>)
          return (is_complex(c.type) ? 4.0 : 1.0) * (c.beta == Scalar{} ? 1 : 3) * double(c.m) *
                 double(c.n) * double(c.batch);
        else
          return 0;
      },
      any);
}

double bytes(const Case& any) {
  const std::vector<Shape> s = shapes(resolve(any));
  return std::visit(
      [&](const auto& c) -> double {
        using C = std::remove_cvref_t<decltype(c)>;
        const double written = payload(s.back());
        if constexpr (std::is_same_v<C, GemmCase>)
          return (c.alpha == Scalar{} ? 0 : payload(s[0]) + payload(s[1])) +
                 (c.bias == BiasPer::None ? 0 : payload(s[2])) +
                 (c.beta == Scalar{} ? 1 : 2) * written;
        else if constexpr (std::is_same_v<C, GeamCase>)
          return (c.alpha == Scalar{} ? 0 : payload(s[0])) +
                 (c.beta == Scalar{} ? 0 : payload(s[1])) + written;
        else if constexpr (std::is_same_v<C, Gf256Case>)
          return payload(s[0]) + payload(s[1]) + (c.accumulate ? 2 : 1) * written;
        else
          return 2 * written;
      },
      any);
}

double bytes_written(const Case& any) { return payload(shapes(resolve(any)).back()); }

double footprint(const Case& any) {
  const Case c = resolve(any);
  double total = 0;
  for (const Shape& s : shapes(c)) total += double(s.span()) * size_of(s.type);
  if (const auto* inplace = std::get_if<TransposeInplaceCase>(&c))
    total = double(room(*inplace)) * size_of(inplace->type);
  return total;
}

std::string command(const Case& any) {
  return std::visit(
      [](const auto& given) {
        using C = std::remove_cvref_t<decltype(given)>;
        const C c = resolve(given), defaults;
        bool batched = false;
        if constexpr (requires { c.batch; }) batched = c.batch != 1;
        std::vector<std::string> default_texts;
        C::fields(defaults, [&](std::string_view, const auto& value, std::string_view) {
          default_texts.push_back(to_text(value));
        });
        std::string line(C::kOp);
        auto default_text = default_texts.begin();
        C::fields(c, [&]<class T>(std::string_view flag, const T& value, std::string_view) {
          const std::string text = to_text(value);
          const bool is_default = text == *default_text++;
          const bool always = flag.size() == 2 || flag == "--type";  // -m, -n, -k
          if (is_default ? !always : flag.starts_with("--stride") && !batched) return;
          line += " " + std::string(flag);
          if constexpr (!std::is_same_v<T, bool>)
            line += " " + text;
          else if (!value)
            line += "=false";
        });
        return line;
      },
      any);
}

// ---------------------------------------------------------------------------------------------------
// Text of values.
namespace {

template <class T>
struct Name {
  T value;
  std::string_view text;
};
constexpr Name<Layout> kLayouts[] = {{Layout::RowMajor, "R"}, {Layout::ColMajor, "C"}};
constexpr Name<Op> kOps[] = {
    {Op::NoTrans, "N"}, {Op::Trans, "T"}, {Op::ConjTrans, "C"}, {Op::ConjNoTrans, "J"}};
constexpr Name<Data> kData[] = {{Data::Uniform, "uniform"},   {Data::Positive, "positive"},
                                {Data::Wide, "wide"},         {Data::Integers, "integers"},
                                {Data::Special, "special"},   {Data::Tiny, "tiny"},
                                {Data::Formulas, "formulas"}, {Data::Normal, "normal"},
                                {Data::Scaled, "scaled"},     {Data::Cancelling, "cancelling"}};
constexpr Name<Alias> kAliases[] = {{Alias::None, "N"}, {Alias::A, "A"}, {Alias::B, "B"}};
constexpr Name<bool> kBools[] = {{true, "true"}, {false, "false"}};

template <class T, std::size_t n>
std::string name_in(const Name<T> (&names)[n], T v) {
  return std::string(
      std::find_if(names, names + n, [&](const auto& e) { return e.value == v; })->text);
}

template <class Names, class T>
void look_up(std::string_view what, const Names& names, std::string_view text, T& v) {
  std::string known;
  for (const auto& [value, name] : names) {
    if (name == text) {
      v = value;
      return;
    }
    known += (known.empty() ? "" : ", ") + std::string(name);
  }
  throw std::invalid_argument("no " + std::string(what) + " '" + std::string(text) + "': " + known);
}

template <class E>
std::vector<Name<E>> all_names(E last) {
  std::vector<Name<E>> names;
  for (int i = 0; i <= int(last); ++i) names.push_back({E(i), name_of(E(i))});
  return names;
}

template <class T>
T number(std::string_view text) {
  T v{};
  int base = 10;
  std::string_view digits = text;
  if (std::is_integral_v<T> && (text.starts_with("0x") || text.starts_with("0X"))) {
    base = 16;
    digits.remove_prefix(2);
  }
  std::from_chars_result r;
  if constexpr (std::is_integral_v<T>)
    r = std::from_chars(digits.begin(), digits.end(), v, base);
  else
    r = std::from_chars(digits.begin(), digits.end(), v);
  if (r.ec != std::errc() || r.ptr != digits.end())
    throw std::invalid_argument("'" + std::string(text) + "' is not a number in range");
  return v;
}

template <class T>
std::string shortest(T v, int base = 10) {
  char text[64];
  std::to_chars_result r;
  if constexpr (std::is_integral_v<T>)
    r = std::to_chars(text, text + sizeof text, v, base);
  else
    r = std::to_chars(text, text + sizeof text, v);
  return {text, r.ptr};
}

}  // namespace

std::string to_text(DType v) { return std::string(name_of(v)); }
std::string to_text(Layout v) { return name_in(kLayouts, v); }
std::string to_text(Op v) { return name_in(kOps, v); }
std::string to_text(Compute v) { return std::string(name_of(v)); }
std::string to_text(Data v) { return name_in(kData, v); }
std::string to_text(Alias v) { return name_in(kAliases, v); }
std::string to_text(bool v) { return name_in(kBools, v); }
std::string to_text(std::int64_t v) { return shortest(v); }
std::string to_text(std::uint64_t v) { return shortest(v); }
std::string to_text(unsigned v) { return "0x" + shortest(v, 16); }
std::string to_text(const Scalar& v) {
  return shortest(v.re) + (v.im != 0 ? "," + shortest(v.im) : "");
}

std::string to_text(double v) { return shortest(v); }
std::string to_text(BiasPer v) { return std::string(name_of(v)); }
std::string to_text(Activation v) { return std::string(name_of(v)); }

void parse(std::string_view text, DType& v) { look_up("type", all_names(DType::b16), text, v); }
void parse(std::string_view text, Layout& v) { look_up("layout", kLayouts, text, v); }
void parse(std::string_view text, Op& v) { look_up("operation on a matrix", kOps, text, v); }
void parse(std::string_view text, Compute& v) {
  look_up("compute mode", all_names(Compute::OzakiFP64), text, v);
}
void parse(std::string_view text, Data& v) { look_up("distribution", kData, text, v); }
void parse(std::string_view text, Alias& v) { look_up("alias", kAliases, text, v); }
void parse(std::string_view text, bool& v) { look_up("truth value", kBools, text, v); }
void parse(std::string_view text, std::int64_t& v) { v = number<std::int64_t>(text); }
void parse(std::string_view text, std::uint64_t& v) { v = number<std::uint64_t>(text); }
void parse(std::string_view text, unsigned& v) { v = number<unsigned>(text); }
void parse(std::string_view text, Scalar& v) {
  const std::size_t comma = text.find(',');
  const double re = number<double>(text.substr(0, comma));
  v = {re, comma == text.npos ? 0.0 : number<double>(text.substr(comma + 1))};
}
void parse(std::string_view text, double& v) { v = number<double>(text); }
void parse(std::string_view text, BiasPer& v) {
  look_up("kind of bias", all_names(BiasPer::Column), text, v);
}
void parse(std::string_view text, Activation& v) {
  look_up("activation", all_names(Activation::Gelu), text, v);
}

}  // namespace mblas::cases
