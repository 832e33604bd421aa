#include "sweep_cases.hpp"

#include <algorithm>

#include "random.hpp"
#include "support.hpp"

namespace mblas::testing {
namespace {

using namespace cases;

constexpr std::int64_t kTiny[] = {0, 1, 2, 5};
constexpr Layout kLayouts[] = {Layout::RowMajor, Layout::ColMajor};
// Typical tile edges and their neighbours, and primes.
constexpr std::int64_t kEdges[] = {1,  2,  5,  7,  8,  13, 15,  16,  17,  23,  31,  32,
                                   33, 47, 63, 64, 65, 97, 127, 128, 129, 255, 256, 257};
constexpr std::int64_t kLong[] = {509, 511, 512, 513, 1021, 2053};
#ifdef MBLAS_TEST_SANITIZED  // where plain loops are many times slower
constexpr std::int64_t kLarge = 256;
#else
constexpr std::int64_t kLarge = 1024;
#endif

/// Conjugation means nothing to real types: sampled_cases tries it on them now and then.
std::vector<Op> ops_of(DType type) {
  if (is_complex(type)) return {Op::NoTrans, Op::Trans, Op::ConjTrans, Op::ConjNoTrans};
  return {Op::NoTrans, Op::Trans};
}

/// 0, 1, and a value with an imaginary part where there is one.
std::vector<Scalar> scalars_of(DType type) {
  const Scalar other = type == DType::i32 ? Scalar{-3, 0}
                       : is_complex(type) ? Scalar{0.75, -1.25}
                                          : Scalar{-0.75, 0};
  return {{0, 0}, {1, 0}, other};
}

std::vector<Scalar> scalars_of(const GemmCase& c) { return scalars_of(scalar_type(c.in, c.out)); }
std::vector<Scalar> scalars_of(const GeamCase& c) { return scalars_of(c.type); }

/// One of all combinations that C's type takes.
void add_epilogue(GemmCase& c, std::uint64_t which) {
  if (c.out == DType::i32) return;
  c.bias = BiasPer(which % 3);
  if (!is_complex(c.out)) c.activation = Activation(which / 3 % 3);
  c.scale = which / 9 % 2 ? -1.5 : 1;
}

class Sampler {
 public:
  explicit Sampler(std::uint64_t seed) : random_(seed) {}

  bool chance(int percent) { return random_.below(100) < percent; }
  std::int64_t below(std::int64_t n) { return random_.below(n); }
  template <class List>
  auto pick(const List& list) {
    return list[std::size_t(random_.below(std::int64_t(std::size(list))))];
  }
  std::int64_t edge() { return pick(kEdges); }
  /// Mostly 0 (the smallest), else what makes rows start anywhere.
  std::int64_t ld(std::int64_t least) {
    return chance(50) ? 0 : std::max<std::int64_t>(1, least) + pick(kPads);
  }
  Data data() { return chance(60) ? Data::Uniform : Data(random_.below(5)); }
  Op op(DType type) {
    constexpr Op kAll[] = {Op::NoTrans, Op::Trans, Op::ConjTrans, Op::ConjNoTrans};
    return chance(20) ? pick(kAll) : pick(ops_of(type));
  }
  std::int64_t offset() { return chance(60) ? 0 : 1 + random_.below(7); }
  std::uint64_t seed() { return random_.bits() >> 40; }

 private:
  static constexpr std::int64_t kPads[] = {0, 1, 3, 4, 8, 16, 61};
  Random random_;
};

/// Three sizes of which at most one is long.
std::array<std::int64_t, 3> sizes(Sampler& s) {
  std::array<std::int64_t, 3> size{s.edge(), s.edge(), s.edge()};
  if (s.chance(20)) {
    for (std::int64_t& x : size) x = std::min<std::int64_t>(x, 65);
    size[std::size_t(s.below(3))] = s.pick(kLong);
  }
  if (s.chance(3)) size[std::size_t(s.below(3))] = 0;
  return size;
}

/// The stored length of a line of a matrix that op makes rows × cols.
std::int64_t line_length(Layout layout, Op op, std::int64_t rows, std::int64_t cols) {
  return (layout == Layout::RowMajor) != is_transposed(op) ? cols : rows;
}

/// Strides and a count for about one case in four; small matrices only. Inputs may repeat.
template <class C>
void batch(Sampler& s, C& c) {
  if (!s.chance(25)) return;
  c.batch = s.chance(10) ? 0 : 2 + s.below(6);
  if (s.chance(20)) c.strideA = 0;
}

GemmCase sampled(Sampler& s, GemmCase c) {
  const auto [m, n, k] = sizes(s);
  c.m = m, c.n = n, c.k = k;
  c.layout = s.pick(kLayouts);
  c.transA = s.op(c.in);
  c.transB = s.op(c.in);
  c.lda = s.ld(line_length(c.layout, c.transA, m, k));
  c.ldb = s.ld(line_length(c.layout, c.transB, k, n));
  c.ldc = s.ld(line_length(c.layout, Op::NoTrans, m, n));
  c.alpha = s.pick(scalars_of(c));
  c.beta = s.pick(scalars_of(c));
  if (m * n * k < 1 << 20) batch(s, c);
  if (c.batch != 1) {
    if (s.chance(20)) c.strideB = 0;
    c.pointers = s.chance(50);
    if (c.strideC == kPacked && s.chance(30)) {
      const Shape C = shapes(c).back();
      c.strideC = C.lines * C.ld + 1 + s.below(9);
    }
  }
  const bool pedantic = s.chance(10);
  if (c.compute == Compute::Default && pedantic) c.compute = Compute::Pedantic;
  constexpr double kTolerances[] = {1e-4, 1e-7, 1e-9, 1e-12, 1e-14};
  if (c.compute == Compute::OzakiFP64 && s.chance(50)) c.tolerance = s.pick(kTolerances);
  if (s.chance(30)) add_epilogue(c, std::uint64_t(s.below(18)));
  c.data = s.data();
  c.offset = s.offset();
  c.seed = s.seed();
  return c;
}

GeamCase sampled(Sampler& s, GeamCase c) {
  const auto size = sizes(s);
  c.m = size[0], c.n = size[1];
  c.layout = s.pick(kLayouts);
  c.transA = s.op(c.type);
  c.transB = s.op(c.type);
  c.lda = s.ld(line_length(c.layout, c.transA, c.m, c.n));
  c.ldb = s.ld(line_length(c.layout, c.transB, c.m, c.n));
  c.ldc = s.ld(line_length(c.layout, Op::NoTrans, c.m, c.n));
  c.alpha = s.pick(scalars_of(c));
  c.beta = s.pick(scalars_of(c));
  batch(s, c);
  if (s.chance(25)) {
    c.alias = s.chance(50) ? Alias::A : Alias::B;
    const bool a = c.alias == Alias::A;
    (a ? c.transA : c.transB) =
        is_conjugated(a ? c.transA : c.transB) ? Op::ConjNoTrans : Op::NoTrans;
    (a ? c.lda : c.ldb) = c.ldc;
    (a ? c.strideA : c.strideB) = c.strideC;
  }
  c.data = s.data();
  c.offset = s.offset();
  c.seed = s.seed();
  return c;
}

TransposeCase sampled(Sampler& s, TransposeCase c) {
  const auto size = sizes(s);
  c.m = size[0], c.n = size[1];
  c.layout = s.pick(kLayouts);
  c.lda = s.ld(line_length(c.layout, Op::NoTrans, c.m, c.n));
  c.ldb = s.ld(line_length(c.layout, Op::NoTrans, c.n, c.m));
  batch(s, c);
  c.offset = s.offset();
  c.seed = s.seed();
  return c;
}

TransposeInplaceCase sampled(Sampler& s, TransposeInplaceCase c) {
  const auto size = sizes(s);
  c.m = size[0];
  c.n = s.chance(40) ? c.m : size[1];
  c.layout = s.pick(kLayouts);
  c.lda = s.ld(line_length(c.layout, Op::NoTrans, c.m, c.n));
  c.ldb = s.chance(40) && c.m == c.n ? c.lda : s.ld(line_length(c.layout, Op::NoTrans, c.n, c.m));
  if (s.chance(25)) c.batch = 2 + s.below(4);
  c.offset = s.offset();
  c.seed = s.seed();
  return c;
}

Gf256Case sampled(Sampler& s, Gf256Case c) {
  const auto [m, n, k] = sizes(s);
  c.m = m, c.n = n, c.k = k;
  if (s.chance(50)) {  // as codes have it: few rows, many columns
    constexpr std::int64_t kWide[] = {128, 144, 159, 160, 511, 512, 527, 528, 544, 1040, 4099};
    c.m = 1 + s.below(s.chance(50) ? 4 : 36);
    c.n = s.pick(kWide);
    c.k = 1 + s.below(s.chance(50) ? 12 : 120);
  }
  c.accumulate = s.chance(40);
  if (s.chance(15)) c.poly = s.chance(50) ? 0x11B : 0x12B;
  if (s.chance(25) && c.k > 0 && c.k + c.m <= 256) {
    c.pointers = true;
    c.accumulate = false;
  }
  if (!c.pointers) c.lda = s.ld(c.k);
  c.ldb = s.ld(c.n);
  c.ldc = s.ld(c.n);
  c.offset = s.offset();
  c.seed = s.seed();
  return c;
}

/// Calls f for every choice of an element of each list.
template <class F>
void product(F&& f) {
  f();
}
template <class F, class List, class... Lists>
void product(F&& f, const List& list, const Lists&... lists) {
  for (const auto& x : list) product([&](auto&&... rest) { f(x, rest...); }, lists...);
}

constexpr std::int64_t kPadding[] = {0, 3};
constexpr bool kBools[] = {false, true};

void tiny(GemmCase c, std::vector<Case>& out) {
  product(
      [&](auto m, auto n, auto k, Layout layout, Op a, Op b, Scalar alpha, Scalar beta, auto pad) {
        c.m = m, c.n = n, c.k = k;
        c.layout = layout, c.transA = a, c.transB = b;
        c.alpha = alpha, c.beta = beta;
        c.lda = pad ? std::max<std::int64_t>(1, line_length(layout, a, m, k)) + pad : 0;
        c.ldb = pad ? std::max<std::int64_t>(1, line_length(layout, b, k, n)) + pad + 1 : 0;
        c.ldc = pad ? std::max<std::int64_t>(1, line_length(layout, Op::NoTrans, m, n)) + pad : 0;
        GemmCase& one = std::get<GemmCase>(out.emplace_back(c));
        if (out.size() % 5 == 0) add_epilogue(one, out.size() / 5);  // 5: of no list's length
      },
      kTiny, kTiny, kTiny, kLayouts, ops_of(c.in), ops_of(c.in), scalars_of(c), scalars_of(c),
      kPadding);
}

void tiny(GeamCase c, std::vector<Case>& out) {
  product(
      [&](auto m, auto n, Layout layout, Op a, Op b, Scalar alpha, Scalar beta, auto pad) {
        c.m = m, c.n = n;
        c.layout = layout, c.transA = a, c.transB = b;
        c.alpha = alpha, c.beta = beta;
        c.lda = pad ? std::max<std::int64_t>(1, line_length(layout, a, m, n)) + pad : 0;
        c.ldb = pad ? std::max<std::int64_t>(1, line_length(layout, b, m, n)) + pad + 1 : 0;
        c.ldc = pad ? std::max<std::int64_t>(1, line_length(layout, Op::NoTrans, m, n)) + pad : 0;
        out.push_back(c);
      },
      kTiny, kTiny, kLayouts, ops_of(c.type), ops_of(c.type), scalars_of(c), scalars_of(c),
      kPadding);
}

template <class C>
requires std::same_as<C, TransposeCase> || std::same_as<C, TransposeInplaceCase>
void tiny(C c, std::vector<Case>& out) {
  product(
      [&](auto m, auto n, Layout layout, auto pad_a, auto pad_b, std::int64_t count) {
        c.m = m, c.n = n, c.batch = count;
        c.layout = layout;
        c.lda =
            pad_a ? std::max<std::int64_t>(1, line_length(layout, Op::NoTrans, m, n)) + pad_a : 0;
        c.ldb =
            pad_b ? std::max<std::int64_t>(1, line_length(layout, Op::NoTrans, n, m)) + pad_b : 0;
        out.push_back(c);
      },
      kTiny, kTiny, kLayouts, kPadding, kPadding, std::array<std::int64_t, 3>{0, 1, 3});
}

void tiny(Gf256Case c, std::vector<Case>& out) {
  product(
      [&](auto m, auto n, auto k, bool accumulate, auto pad) {
        c.m = m, c.n = n, c.k = k;
        c.accumulate = accumulate;
        c.lda = pad ? std::max<std::int64_t>(1, k) + pad : 0;
        c.ldb = c.ldc = pad ? std::max<std::int64_t>(1, n) + pad : 0;
        out.push_back(c);
      },
      kTiny, kTiny, kTiny, kBools, kPadding);
}

constexpr std::int64_t kLargePad = 61;  // rows that start in different sets of the caches

Case large(GemmCase c) {
  c.m = kLarge + 1, c.n = kLarge + 3, c.k = kLarge + 5;
  c.lda = line_length(c.layout, c.transA, c.m, c.k) + kLargePad;
  c.ldb = line_length(c.layout, c.transB, c.k, c.n) + kLargePad;
  c.ldc = line_length(c.layout, Op::NoTrans, c.m, c.n) + kLargePad;
  c.alpha = scalars_of(c)[2];
  c.beta = scalars_of(c)[1];
  return c;
}
Case large(GeamCase c) {
  c.m = kLarge + 1, c.n = kLarge + 3;
  c.alpha = scalars_of(c)[2];
  c.beta = scalars_of(c)[1];
  return c;
}
template <class C>
Case large(C c) {
  c.m = kLarge + 1, c.n = kLarge + 3;
  if constexpr (std::same_as<C, Gf256Case>) c.k = kLarge + 5;
  return c;
}

/// f(descriptor with the types set).
template <class F>
void with_descriptor(std::string_view op, Types types, F&& f) {
  std::visit(
      [&](auto c) {
        if constexpr (std::same_as<decltype(c), GemmCase>) {
          c.in = types.in;
          c.out = types.out;
          c.compute = types.compute;
        } else if constexpr (!std::same_as<decltype(c), Gf256Case>) {
          c.type = types.in;
        }
        f(c);
      },
      make_case(op));
}

}  // namespace

std::vector<Types> types_of(std::string_view op) {
  std::vector<Types> list;
  if (op == GemmCase::kOp)
    for (const auto& [in, out] : gemm_pairs()) list.push_back({in, out});
  else if (op == GeamCase::kOp)
    for (const DType t : geam_types()) list.push_back({t, t});
  else if (op == Gf256Case::kOp)
    list.push_back({DType::b1, DType::b1});
  else
    for (const DType t : transpose_types()) list.push_back({t, t});
  return list;
}

std::vector<Case> tiny_cases(std::string_view op, Types types) {
  std::vector<Case> list;
  with_descriptor(op, types, [&](const auto& c) { tiny(c, list); });
  return list;
}

std::vector<Case> sampled_cases(std::string_view op, Types types, int count) {
  std::vector<Case> list;
  Sampler sampler(std::uint64_t(types.in) * 16 + std::uint64_t(types.out) + 1);
  with_descriptor(op, types, [&](const auto& c) {
    for (int i = 0; i < count; ++i) list.push_back(sampled(sampler, c));
  });
  return list;
}

Case large_case(std::string_view op, Types types) {
  Case result;
  Sampler sampler(std::uint64_t(types.in) + 1);
  with_descriptor(op, types, [&](auto c) {
    if constexpr (requires { c.layout; }) c.layout = sampler.pick(kLayouts);
    if constexpr (requires { c.transA; }) {
      c.transA = sampler.pick(ops_of(types.in));
      c.transB = sampler.pick(ops_of(types.in));
    }
    result = large(c);
  });
  return result;
}

std::vector<Case> thin_cases(std::string_view op, Types types) {
  constexpr std::int64_t kMany = 66001, kLong = (std::int64_t{1} << 21) + 65537;
  std::vector<Case> list;
  with_descriptor(op, types, [&](auto c) {
    const auto add = [&](std::int64_t m, std::int64_t n, std::int64_t batch) {
      auto one = c;
      one.m = m, one.n = n;
      if constexpr (requires { one.k; }) one.k = 3;
      if constexpr (requires { one.batch; })
        one.batch = batch;
      else if (batch > 1)
        return;
      list.push_back(one);
      if constexpr (requires {
                      one.pointers;
                      one.batch;
                    }) {
        one.pointers = true;
        if (batch > 1) list.push_back(one);
      }
    };
    add(2, 3, kMany);
    add(kLong, 1, 1);
    add(2, kLong, 1);
    // Products of which many fit a block, and some whose rows pass through many blocks: whole
    // vectors, odd sizes, and rows and matrices apart.
    if constexpr (std::same_as<decltype(c), GemmCase>) {
      constexpr std::int64_t kShapes[][3] = {
          {4, 4, 4},       {8, 8, 8},    {16, 16, 16},   {32, 32, 32},   {3, 5, 7},
          {24, 20, 12},    {31, 17, 9},  {6, 10, 18},    {48, 40, 33},   {70001, 16, 64},
          {70003, 13, 61}, {9001, 3, 6}, {9001, 64, 64}, {9003, 61, 59}, {9001, 30, 20},
          {8, 15, 33},     {17, 24, 64}, {25, 7, 200}};
      Sampler sampler(std::uint64_t(types.in) + 17);
      for (const auto& [m, n, k] : kShapes)
        for (const bool apart : kBools) {
          auto one = c;
          one.m = m, one.n = n, one.k = k, one.batch = m > 48 ? 1 : m * n * k < 1000 ? 3001 : 601;
          one.layout = sampler.pick(kLayouts);
          one.transA = sampler.op(c.in);
          one.transB = sampler.op(c.in);
          one.alpha = scalars_of(c)[2];
          one.beta = sampler.pick(scalars_of(c));
          if (apart) {
            one.lda = line_length(one.layout, one.transA, m, k) + 1 + sampler.below(8);
            one.ldb = line_length(one.layout, one.transB, k, n) + 1 + sampler.below(8);
            one.ldc = line_length(one.layout, Op::NoTrans, m, n) + 1 + sampler.below(8);
            one.offset = sampler.offset();
            one.pointers = sampler.chance(50);
            if (sampler.chance(30)) one.strideB = 0;
          }
          list.push_back(one);
        }
      // A matrix and a vector, more of them or larger ones than a device has at once: rows for a
      // few lanes, for a warp and for several, columns that matrices share a warp's lanes for.
      constexpr std::int64_t kVectors[][4] = {
          {1, 7, 5, 20001},  {33, 1, 181, 901}, {1, 5, 81, 3001}, {196, 1, 38, 601},
          {300, 1, 1000, 9}, {1, 24, 1, 30001}, {1, 48, 64, 901}, {1, 9001, 40, 1},
          {5003, 1, 305, 1}, {1, 20, 7003, 2},  {64, 1, 4096, 1}, {1, 1, 203, 1003}};
      for (const auto& [m, n, k, batch] : kVectors)
        for (const Op ta : {Op::NoTrans, Op::Trans})
          for (const Op tb : {Op::NoTrans, Op::Trans}) {
            auto one = c;
            one.m = m, one.n = n, one.k = k, one.batch = batch;
            one.layout = Layout::RowMajor;
            one.transA = ta, one.transB = tb;
            one.alpha = scalars_of(c)[2];
            one.beta = sampler.pick(scalars_of(c));
            if (sampler.chance(50)) {
              one.lda = line_length(one.layout, ta, m, k) + sampler.below(5);
              one.ldb = line_length(one.layout, tb, k, n) + sampler.below(5);
              one.ldc = n + sampler.below(3);
              one.offset = sampler.offset();
              one.pointers = sampler.chance(30);
            }
            list.push_back(one);
          }
      // Rows of A that pass by a B which registers may hold.
      for (const std::int64_t k : {1, 7, 16, 17, 24, 25})
        for (const std::int64_t n : {1, 5, 8, 16, 30}) {
          auto one = c;
          one.m = k == 24 && n == 5 ? 90001 : 1003, one.n = n, one.k = k;
          one.transB = sampler.op(c.in);
          one.alpha = sampler.pick(scalars_of(c));
          one.beta = sampler.pick(scalars_of(c));
          one.lda = k + sampler.below(4);
          one.ldc = n + sampler.below(4);
          one.offset = sampler.offset();
          list.push_back(one);
        }
    }
  });
  return list;
}

std::vector<Case> few_vector_cases(std::string_view op, Types types) {
  std::vector<Case> list;
  with_descriptor(op, types, [&](auto c) {
    if constexpr (std::same_as<decltype(c), GemmCase>) {
      constexpr std::int64_t kFew[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 13, 17, 24, 33, 48};
      constexpr std::int64_t kLengths[] = {64, 79, 128, 203, 1031}, kDepths[] = {64, 67, 130, 515};
      Sampler sampler(std::uint64_t(types.in) + 29);
      for (const std::int64_t few : kFew)
        for (const bool rows : kBools)
          for (const Op ta : {Op::NoTrans, Op::Trans})
            for (const Op tb : {Op::NoTrans, Op::Trans}) {
              GemmCase one = sampled(sampler, c);
              const std::int64_t length = sampler.pick(kLengths);
              one.m = rows ? few : length;
              one.n = rows ? length : few;
              one.k = sampler.pick(kDepths);
              one.layout = Layout::RowMajor;
              one.transA = ta, one.transB = tb;
              one.lda = line_length(one.layout, ta, one.m, one.k) + sampler.below(3);
              one.ldb = line_length(one.layout, tb, one.k, one.n) + sampler.below(3);
              one.ldc = one.n + sampler.below(3);
              one.strideC = kPacked;
              list.push_back(one);
            }
      // The rows of a matrix of 10 MB, along k: more than a second-level cache holds.
      for (const std::int64_t few : {2, 5, 8, 12})
        for (const bool rows : kBools) {
          constexpr std::int64_t kLong[] = {5003, 5056, 9001};
          GemmCase one = sampled(sampler, c);
          one.batch = 1, one.k = sampler.pick(kLong);
          const std::int64_t length = (10 << 20) / (one.k * size_of(types.in)) + 1;
          one.m = rows ? few : length;
          one.n = rows ? length : few;
          one.layout = Layout::RowMajor;
          one.transA = Op::NoTrans, one.transB = rows ? Op::Trans : Op::NoTrans;
          one.lda = one.k + sampler.below(3);
          one.ldb = line_length(one.layout, one.transB, one.k, one.n) + sampler.below(3);
          one.ldc = one.n + sampler.below(3);
          one.strideC = kPacked;
          list.push_back(one);
        }
      // A vector whose elements lie apart times a few long columns.
      for (const bool row : kBools) {
        GemmCase one = sampled(sampler, c);
        one.batch = 1, one.k = 17003;
        one.alpha = scalars_of(c)[2];
        one.m = row ? 1 : 4;
        one.n = row ? 4 : 1;
        one.layout = Layout::RowMajor;
        one.transA = Op::Trans, one.transB = Op::NoTrans;
        one.lda = one.m + sampler.below(3);
        one.ldb = one.n + sampler.below(3);
        (row ? one.lda : one.ldb) = 3;
        one.ldc = one.n + sampler.below(3);
        one.strideC = kPacked;
        list.push_back(one);
      }
      // Up to a few rows times a matrix, or a few steps of k: what is in registers is as many rows,
      // steps and ends of either as these sizes give.
      for (int i = 0; i < 96; ++i) {
        constexpr std::int64_t kLong[] = {31, 32, 33, 40, 64, 65, 100, 127, 300, 1030, 2090};
        const bool shallow = i % 2 == 0;
        GemmCase one = sampled(sampler, c);
        one.m = shallow ? 1 + sampler.below(40) : 1 + sampler.below(6);
        one.n = sampler.pick(kLong);
        one.k = shallow ? 1 + sampler.below(8) : sampler.chance(50) ? 16 + sampler.below(24) : 300;
        one.batch = sampler.chance(20) ? 2 : 1;
        one.layout = Layout::RowMajor;
        one.transA = sampler.chance(50) ? Op::Trans : Op::NoTrans;
        one.transB = Op::NoTrans;
        one.lda = line_length(one.layout, one.transA, one.m, one.k) + sampler.below(3);
        one.ldb = one.n + sampler.below(3);
        one.ldc = one.n + sampler.below(3);
        one.strideC = kPacked;
        list.push_back(one);
      }
      // A small C with rows of both operands along k, or columns.
      for (const std::int64_t m : {2, 3, 5, 8, 13, 24})
        for (const std::int64_t n : {2, 4, 7, 16, 23, 31})
          for (const Op ta : {Op::NoTrans, Op::Trans}) {
            constexpr std::int64_t kLong[] = {256, 259, 515, 600, 1031, 2049, 4097, 4611};
            GemmCase one = sampled(sampler, c);
            one.m = m, one.n = n, one.k = sampler.pick(kLong);
            one.batch = sampler.chance(20) ? 2 : 1;
            one.layout = Layout::RowMajor;
            one.transA = ta, one.transB = Op::Trans;
            one.lda = line_length(one.layout, ta, m, one.k) + sampler.below(3);
            one.ldb = one.k + sampler.below(3);
            one.ldc = n + sampler.below(3);
            one.strideC = kPacked;
            list.push_back(one);
          }
      // Few rows or columns, one operand or both across k, and a C wider than what is transposed of
      // it at a time.
      for (int i = 0; i < 96; ++i) {
        constexpr std::int64_t kLong[] = {9, 17, 33, 40, 100, 127, 260, 515, 1001};
        GemmCase one = sampled(sampler, c);
        one.m = 2 + sampler.below(15);
        one.n = sampler.pick(kLong);
        if (i % 2 == 0) std::swap(one.m, one.n);
        one.k = 9 + sampler.below(sampler.chance(30) ? 90 : 20);
        one.batch = sampler.chance(20) ? 2 : 1;
        one.layout = Layout::RowMajor;
        one.transA = i % 4 < 3 ? Op::Trans : Op::NoTrans;
        one.transB = i % 3 == 0 ? Op::NoTrans : Op::Trans;
        one.lda = line_length(one.layout, one.transA, one.m, one.k) + sampler.below(3);
        one.ldb = line_length(one.layout, one.transB, one.k, one.n) + sampler.below(3);
        one.ldc = one.n + sampler.below(3);
        one.strideC = kPacked;
        list.push_back(one);
      }
    }
  });
  return list;
}

}  // namespace mblas::testing
