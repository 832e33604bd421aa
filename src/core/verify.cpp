#include "core/verify.hpp"

#include <cmath>
#include <complex>
#include <cstdio>
#include <cstring>
#include <vector>

#include "core/dispatch.hpp"
#include "core/finish.hpp"
#include "core/location.hpp"
#include "core/log.hpp"
#include "mblas/accuracy.hpp"

namespace mblas {
namespace {

using Bytes = std::vector<std::byte>;

/// The queue that can read `p`; null: the host itself.
Queue* queue_of(Context::Impl& context, const void* p) {
  const Place place = Locator().locate(p);
  if (place.memory == Memory::Host) return nullptr;
  for (Backend* backend : backends())
    if (backend->memory() == Memory::Device && backend->unavailable().empty() &&
        (!place.owner || place.owner == backend))
      return context.slot(*backend).queue.get();
  return nullptr;
}

/// A rows×cols matrix of each batch entry, packed one after another, on the host. `pointer_rows`:
/// gf256's operands, whose pointers hold one row each.
template <class Void>
Bytes gather(Context::Impl& context, const Operand<Void>& x, std::int64_t batch, std::int64_t rows,
             std::int64_t cols, int size, bool pointer_rows = false) {
  Bytes packed(std::size_t(batch * rows * cols) * std::size_t(size));
  const std::int64_t width = cols * size;
  const auto copy = [&](std::byte* to, const void* from, std::int64_t pitch, std::int64_t count) {
    const Copy2D piece{to, width, from, pitch, width, count};
    if (Queue* queue = queue_of(context, from)) {
      if (queue->capturing())
        throw Error(Status::NotSupported, "verification cannot run while a graph is captured");
      queue->copy(piece, CopyKind::DeviceToHost);
      queue->synchronize();
    } else {
      for (std::int64_t i = 0; i < count; ++i)
        std::memcpy(to + i * width, static_cast<const std::byte*>(from) + i * pitch,
                    std::size_t(width));
    }
  };
  for (std::int64_t b = 0; b < batch; ++b) {
    std::byte* to = packed.data() + b * rows * width;
    if (pointer_rows)
      for (std::int64_t i = 0; i < rows; ++i) copy(to + i * width, x.pointers[i], width, 1);
    else
      copy(to, x.at(b, size), x.ld * size, rows);
  }
  return packed;
}

std::complex<double> element(DType type, const Bytes& bytes, std::size_t i) {
  const auto load = [&]<class T>(T value) {
    std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));
    return value;
  };
  switch (type) {
    case DType::f32:
      return double(load(float{}));
    case DType::f64:
      return load(double{});
    case DType::cf32:
      return std::complex<double>(load(std::complex<float>{}));
    case DType::cf64:
      return load(std::complex<double>{});
    case DType::f16:
      return double(float(load(half{})));
    case DType::bf16:
      return double(float(load(bfloat16{})));
    case DType::i8:
      return double(load(std::int8_t{}));
    default:
      return double(load(std::int32_t{}));
  }
}

std::vector<double> magnitudes(DType type, const Bytes& bytes) {
  std::vector<double> result(bytes.size() / std::size_t(size_of(type)));
  for (std::size_t i = 0; i < result.size(); ++i) result[i] = std::abs(element(type, bytes, i));
  return result;
}

/// Both results carry the bound's error; an infinity agrees with what is next to overflow.
bool agree(DType type, std::complex<double> got, std::complex<double> want, double bound) {
  const auto part = [&](double a, double b) {
    if (std::isnan(a) || std::isnan(b)) return std::isnan(a) == std::isnan(b);
    if (a == b) return true;
    if (std::isinf(a) || std::isinf(b)) {
      const double finite = std::isinf(a) ? b : a, infinite = std::isinf(a) ? a : b;
      const double largest = type == DType::f16                          ? 65504.0
                             : type == DType::f64 || type == DType::cf64 ? 0x1.fffffffffffffp1023
                                                                         : 0x1.fffffep127;
      return !std::isinf(finite) && std::signbit(finite) == std::signbit(infinite) &&
             std::abs(finite) + 2 * bound >= largest;
    }
    return std::abs(a - b) <= 2 * bound;
  };
  return part(got.real(), want.real()) && part(got.imag(), want.imag());
}

template <class Args>
[[noreturn]] void fail(const Context::Impl& context, const Args& args, const Backend& reference,
                       std::int64_t b, std::int64_t i, std::int64_t j, std::complex<double> got,
                       std::complex<double> want, double bound) {
  const auto text = [](std::complex<double> z) {
    char buffer[64];
    std::snprintf(buffer, sizeof buffer, "%.17g%+.17gi", z.real(), z.imag());
    return std::string(buffer);
  };
  throw Error(Status::VerifyFailed,
              "verification on " + std::string(reference.name()) + " failed: " + replay(args) +
                  " on " + std::string(context.receipt.backend) + "/" +
                  std::string(context.receipt.kernel) + ": entry " + std::to_string(b) +
                  ", element (" + std::to_string(i) + ", " + std::to_string(j) + ") is " +
                  text(got) + ", there " + text(want) + ", twice the bound is " + text(2 * bound));
}

/// Runs `args`, whose operands are packed on the host, on one backend.
template <class Args>
void run_on(Backend& backend, const Args& args) {
  Context context{backend.name()};
  context.set_kernel("");
  context.set_verify("");
  context.set_verbose(0);
  context.impl().verifying = true;
  dispatch(context.impl(), args);
}

template <class Args>
struct Operands;  // of a call: how to pack it, run it again and compare

template <>
struct Operands<GemmArgs> {
  GemmArgs args;
  Bytes A, B, before, bias;

  Operands(Context::Impl& context, const GemmArgs& g) : args(g) {
    if (const std::int64_t count = bias_length(g); count > 0)
      bias = gather(context, Input{g.epilogue.bias.data, count}, 1, 1, count, size_of(g.out));
    if (g.k > 0) {
      A = gather(context, g.A, g.batch, a_rows(), a_cols(), size_of(g.in));
      B = gather(context, g.B, g.batch, b_rows(), b_cols(), size_of(g.in));
    }
    if (g.beta != Scalar{}) before = gather(context, g.C, g.batch, g.m, g.n, size_of(g.out));
  }
  std::int64_t a_rows() const { return is_transposed(args.transA) ? args.k : args.m; }
  std::int64_t a_cols() const { return is_transposed(args.transA) ? args.m : args.k; }
  std::int64_t b_rows() const { return is_transposed(args.transB) ? args.n : args.k; }
  std::int64_t b_cols() const { return is_transposed(args.transB) ? args.k : args.n; }

  GemmArgs packed(const void* a, const void* b, void* c) const {
    GemmArgs p = args;
    if (p.k > 0) {
      p.A = {a, a_cols(), a_rows() * a_cols()};
      p.B = {b, b_cols(), b_rows() * b_cols()};
    }
    p.C = {c, p.n, p.m * p.n};
    p.keeper = nullptr;
    return p;
  }

  /// The largest of each of `lines` lines along k in all matrices, which run `across` the rows.
  std::vector<double> largest(const std::vector<double>& x, std::int64_t lines, bool across) const {
    std::vector<double> most(static_cast<std::size_t>(lines));
    for (std::size_t i = 0; i < x.size(); ++i) {
      const std::int64_t at = std::int64_t(i), each = lines / args.batch;
      const std::int64_t line = across ? at / (args.k * each) * each + at % each : at / args.k;
      most[std::size_t(line)] = std::max(most[std::size_t(line)], x[i]);
    }
    return most;
  }

  void compare(Context::Impl& context, Backend& reference) {
    const GemmArgs& g = args;
    const Bytes got = gather(context, g.C, g.batch, g.m, g.n, size_of(g.out));
    Bytes want = before.empty() ? Bytes(got.size()) : before;
    GemmArgs again = packed(A.data(), B.data(), want.data());
    again.compute = Compute::Default;
    again.epilogue.bias.data = bias.data();
    run_on(reference, again);

    // |alpha| |A| |B| + |beta| |C| + |bias|, in double.
    const std::vector<double> a = magnitudes(g.in, A), b = magnitudes(g.in, B);
    std::vector<double> size = magnitudes(g.out, before);
    size.resize(std::size_t(g.batch * g.m * g.n));
    GemmArgs bounding = packed(a.data(), b.data(), size.data());
    bounding.in = bounding.out = DType::f64;
    bounding.compute = Compute::Default;
    bounding.alpha = {std::hypot(g.alpha.re, g.alpha.im), 0};
    bounding.beta = {std::hypot(g.beta.re, g.beta.im), 0};
    bounding.epilogue = {};
    const std::vector<double> biases = magnitudes(g.out, bias);
    if (g.epilogue.bias.per != BiasPer::None)
      bounding.epilogue.bias = {g.epilogue.bias.per, DType::f64, biases.data()};
    run_on(find_backend("openmp"), bounding);

    const auto rows = is_normwise(g.compute) ? largest(a, g.batch * g.m, is_transposed(g.transA))
                                             : std::vector<double>();
    const auto cols = is_normwise(g.compute) ? largest(b, g.batch * g.n, !is_transposed(g.transB))
                                             : std::vector<double>();
    for (std::int64_t e = 0; e < g.batch * g.m * g.n; ++e) {
      const std::size_t at = std::size_t(e);
      const double of_both = rows.empty()
                                 ? 0
                                 : bounding.alpha.re * double(g.k) * rows[std::size_t(e / g.n)] *
                                       cols[std::size_t(e / (g.m * g.n) * g.n + e % g.n)];
      const auto x = element(g.out, got, at), y = element(g.out, want, at);
      const double bound = g.out == DType::i32
                               ? 0
                               : gemm_bound(g.in, g.out, g.k, size[at], std::abs(y), g.compute,
                                            g.epilogue, size[at], of_both, g.tolerance);
      if (!agree(g.out, x, y, bound))
        fail(context, g, reference, e / (g.m * g.n), e / g.n % g.m, e % g.n, x, y, bound);
    }
  }
};

template <>
struct Operands<GeamArgs> {
  GeamArgs args;
  Bytes A, B;

  Operands(Context::Impl& context, const GeamArgs& g) : args(g) {
    if (g.alpha != Scalar{})
      A = gather(context, g.A, g.batch, rows(g.transA), cols(g.transA), size_of(g.type));
    if (g.beta != Scalar{})
      B = gather(context, g.B, g.batch, rows(g.transB), cols(g.transB), size_of(g.type));
  }
  std::int64_t rows(Op op) const { return is_transposed(op) ? args.n : args.m; }
  std::int64_t cols(Op op) const { return is_transposed(op) ? args.m : args.n; }

  void compare(Context::Impl& context, Backend& reference) {
    const GeamArgs& g = args;
    const Bytes got = gather(context, g.C, g.batch, g.m, g.n, size_of(g.type));
    Bytes want(got.size());
    const auto run = [&](Backend& backend, GeamArgs p, const void* a, const void* b, void* c) {
      if (p.alpha != Scalar{}) p.A = {a, cols(g.transA), g.m * g.n};
      if (p.beta != Scalar{}) p.B = {b, cols(g.transB), g.m * g.n};
      p.C = {c, g.n, g.m * g.n};
      run_on(backend, p);
    };
    run(reference, g, A.data(), B.data(), want.data());
    const std::vector<double> a = magnitudes(g.type, A), b = magnitudes(g.type, B);
    std::vector<double> size(std::size_t(g.batch * g.m * g.n));
    GeamArgs bounding = g;
    bounding.type = DType::f64;
    bounding.alpha = {std::hypot(g.alpha.re, g.alpha.im), 0};
    bounding.beta = {std::hypot(g.beta.re, g.beta.im), 0};
    run(find_backend("openmp"), bounding, a.data(), b.data(), size.data());
    for (std::int64_t e = 0; e < g.batch * g.m * g.n; ++e) {
      const std::size_t at = std::size_t(e);
      const auto x = element(g.type, got, at), y = element(g.type, want, at);
      const double bound = geam_bound(g.type, size[at], std::abs(y));
      if (!agree(g.type, x, y, bound))
        fail(context, g, reference, e / (g.m * g.n), e / g.n % g.m, e % g.n, x, y, bound);
    }
  }
};

/// Results that must agree to the byte: `rows`×`cols` elements of `size` bytes an entry.
template <class Args>
void compare_bytes(Context::Impl& context, const Args& args, Backend& reference, const Bytes& got,
                   const Bytes& want, std::int64_t rows, std::int64_t cols, int size) {
  for (std::size_t at = 0; at < got.size(); ++at)
    if (got[at] != want[at]) {
      const std::int64_t e = std::int64_t(at) / size;
      fail(context, args, reference, e / (rows * cols), e / cols % rows, e % cols, double(got[at]),
           double(want[at]), 0);
    }
}

template <>
struct Operands<TransposeArgs> {
  TransposeArgs args;
  Bytes A;

  Operands(Context::Impl& context, const TransposeArgs& t)
      : args(t), A(gather(context, t.A, t.batch, t.m, t.n, size_of(t.type))) {}

  void compare(Context::Impl& context, Backend& reference) {
    const TransposeArgs& t = args;
    const Bytes got = gather(context, t.B, t.batch, t.n, t.m, size_of(t.type));
    Bytes want(got.size());
    TransposeArgs p = t;
    p.A = {A.data(), t.n, t.m * t.n};
    p.B = {want.data(), t.m, t.m * t.n};
    run_on(reference, p);
    compare_bytes(context, t, reference, got, want, t.n, t.m, size_of(t.type));
  }
};

template <>
struct Operands<TransposeInplaceArgs> {
  TransposeInplaceArgs args;
  Bytes A;

  Operands(Context::Impl& context, const TransposeInplaceArgs& t)
      : args(t), A(gather(context, t.A, t.batch, t.m, t.n, size_of(t.type))) {}

  void compare(Context::Impl& context, Backend& reference) {
    const TransposeInplaceArgs& t = args;
    const Output after{t.A.data, t.ldb, t.A.stride, t.A.pointers};
    const Bytes got = gather(context, after, t.batch, t.n, t.m, size_of(t.type));
    Bytes want(got.size());
    TransposeArgs p;
    p.type = t.type;
    p.m = t.m;
    p.n = t.n;
    p.batch = t.batch;
    p.A = {A.data(), t.n, t.m * t.n};
    p.B = {want.data(), t.m, t.m * t.n};
    run_on(reference, p);
    compare_bytes(context, t, reference, got, want, t.n, t.m, size_of(t.type));
  }
};

template <>
struct Operands<Gf256Args> {
  Gf256Args args;
  Bytes A, B, before;

  Operands(Context::Impl& context, const Gf256Args& g) : args(g) {
    if (g.k > 0) {
      A = gather(context, g.A, 1, g.m, g.k, 1);
      B = gather(context, g.B, 1, g.k, g.n, 1, g.B.pointers != nullptr);
    }
    if (g.accumulate) before = gather(context, g.C, 1, g.m, g.n, 1, g.C.pointers != nullptr);
  }

  void compare(Context::Impl& context, Backend& reference) {
    const Gf256Args& g = args;
    const Bytes got = gather(context, g.C, 1, g.m, g.n, 1, g.C.pointers != nullptr);
    Bytes want = before.empty() ? Bytes(got.size()) : before;
    Gf256Args p = g;
    if (g.k > 0) {
      p.A = {A.data(), g.k};
      p.B = {B.data(), g.n};
    }
    p.C = {want.data(), g.n};
    run_on(reference, p);
    compare_bytes(context, g, reference, got, want, g.m, g.n, 1);
  }
};

template <class Args>
class SampledCall : public Verification {
 public:
  SampledCall(Context::Impl& context, const Args& args) : operands_(context, args) {}
  void finish(Context::Impl& context) override {
    operands_.compare(context, *context.verify.backend);
  }

 private:
  Operands<Args> operands_;
};

}  // namespace

template <class Args>
std::unique_ptr<Verification> begin_verification(Context::Impl& context, const Args& args) {
  // Evenly spread, the first call included: the same program samples the same calls every time.
  const double f = context.verify.fraction, n = double(context.verify_calls++);
  if (std::ceil((n + 1) * f) == std::ceil(n * f)) return nullptr;
  return std::make_unique<SampledCall<Args>>(context, args);
}

template std::unique_ptr<Verification> begin_verification(Context::Impl&, const GemmArgs&);
template std::unique_ptr<Verification> begin_verification(Context::Impl&, const GeamArgs&);
template std::unique_ptr<Verification> begin_verification(Context::Impl&, const TransposeArgs&);
template std::unique_ptr<Verification> begin_verification(Context::Impl&,
                                                          const TransposeInplaceArgs&);
template std::unique_ptr<Verification> begin_verification(Context::Impl&, const Gf256Args&);

}  // namespace mblas
