#include "core/validate.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "core/finish.hpp"
#include "core/gf256_field.hpp"
#include "core/overlap.hpp"

namespace mblas {
namespace {

using std::to_string;

[[noreturn]] void fail(Status status, std::string_view operation, const std::string& what) {
  throw Error(status, std::string(operation) + ": " + what);
}

void check_size(std::string_view operation, std::string_view name, std::int64_t value) {
  if (value < 0)
    fail(Status::InvalidArgument, operation,
         std::string(name) + " is " + to_string(value) + ", less than 0");
}

void check_layout(std::string_view operation, Layout layout) {
  if (layout != Layout::ColMajor && layout != Layout::RowMajor)
    fail(Status::InvalidArgument, operation, "layout is not one of Layout's values");
}

void check_op(std::string_view operation, std::string_view name, Op op) {
  if (!is_op(op))
    fail(Status::InvalidArgument, operation, std::string(name) + " is not one of Op's values");
}

/// A matrix as stored, in the caller's layout, seen as rows of contiguous elements.
struct Stored {
  std::string_view name, ld_name;
  std::int64_t rows, cols;  // of contiguous runs: columns of a ColMajor matrix are the rows here
  std::int64_t ld;
};

Stored stored(std::string_view name, std::string_view ld_name, Layout layout, Op op,
              std::int64_t rows, std::int64_t cols, std::int64_t ld) {
  if (is_transposed(op)) std::swap(rows, cols);
  if (layout == Layout::ColMajor) std::swap(rows, cols);
  return {name, ld_name, rows, cols, ld};
}

void check_ld(std::string_view operation, Layout layout, const Stored& x) {
  const std::int64_t least = std::max<std::int64_t>(1, x.cols);
  if (x.ld < least)
    fail(Status::InvalidArgument, operation,
         std::string(x.ld_name) + " is " + to_string(x.ld) + ", but " + std::string(x.name) +
             (layout == Layout::ColMajor ? " has columns of " : " has rows of ") +
             to_string(least) + (least == 1 ? " element" : " elements"));
}

template <class Void>
void check_present(std::string_view operation, std::string_view name, const Operand<Void>& x,
                   std::int64_t count) {
  if (!x.pointers && !x.data) fail(Status::NullPointer, operation, std::string(name) + " is null");
  for (std::int64_t b = 0; x.pointers && b < count; ++b)
    if (!x.pointers[b])
      fail(Status::NullPointer, operation, std::string(name) + "[" + to_string(b) + "] is null");
}

/// Bytes from the first to past the last element of all `batch` matrices must fit in 63 bits.
template <class Void>
void check_extent(std::string_view operation, const Stored& shape, const Operand<Void>& x,
                  std::int64_t batch, int size) {
  if (x.stride < 0)
    fail(Status::InvalidArgument, operation,
         "stride" + std::string(shape.name) + " is " + to_string(x.stride) + ", less than 0");
  std::int64_t span, offset, bytes;
  if (__builtin_mul_overflow(shape.rows - 1, shape.ld, &span) ||
      __builtin_add_overflow(span, shape.cols, &span) ||
      __builtin_mul_overflow(batch - 1, x.stride, &offset) ||
      __builtin_add_overflow(span, offset, &span) ||
      __builtin_mul_overflow(span, std::int64_t{size}, &bytes))
    fail(Status::SizeOverflow, operation,
         "the extent of " + std::string(shape.name) + " does not fit in 64-bit addresses");
}

template <class Void>
Extent extent_of(const Stored& shape, const Operand<Void>& x, std::int64_t b, int size) {
  return {reinterpret_cast<std::uintptr_t>(x.at(b, size)), shape.ld * size, shape.cols * size,
          shape.rows};
}

/// The addresses from the first to past the last byte of a batch.
struct Bounds {
  std::uintptr_t begin = 0, end = 0;
};
template <class Void>
Bounds bounds_of(const Stored& shape, const Operand<Void>& x, std::int64_t batch, int size) {
  const Extent first = extent_of(shape, x, 0, size);
  if (!x.pointers)
    return {first.begin, first.end() + std::uintptr_t((batch - 1) * x.stride * size)};
  std::uintptr_t least = first.begin, most = first.begin;
  for (std::int64_t b = 1; b < batch; ++b) {
    const auto begin = reinterpret_cast<std::uintptr_t>(x.pointers[b]);
    least = std::min(least, begin);
    most = std::max(most, begin);
  }
  return {least, most + (first.end() - first.begin)};
}

/// Whether each of a batch behind pointers begins after the end of the one before it.
bool in_order(const Stored& shape, const Output& C, std::int64_t batch, int size) {
  const Extent first = extent_of(shape, C, 0, size);
  const std::uintptr_t bytes = first.end() - first.begin;
  std::uintptr_t end = first.end();
  for (std::int64_t b = 1; b < batch; ++b) {
    const auto begin = reinterpret_cast<std::uintptr_t>(C.pointers[b]);
    if (begin < end) return false;
    end = begin + bytes;
  }
  return true;
}

/// Extents of a batch behind pointers; scratch of the thread, so that such calls do not allocate
/// either.
std::vector<Extent>& scratch(int which) {
  static thread_local std::vector<Extent> lists[2];
  lists[which].clear();
  return lists[which];
}

[[noreturn]] void fail_overlap(std::string_view operation, std::string_view c, std::int64_t i,
                               std::string_view other, std::int64_t j, std::int64_t batch) {
  const auto entry = [&](std::string_view name, std::int64_t b) {
    return std::string(name) + (batch > 1 ? "[" + to_string(b) + "]" : "");
  };
  fail(Status::Overlap, operation, entry(c, i) + " shares elements with " + entry(other, j));
}

/// C's matrices must be disjoint from one another.
void check_output(std::string_view operation, const Stored& c_shape, const Output& C,
                  std::int64_t batch, int c_size) {
  if (batch == 1) return;
  if (C.pointers) {
    if (in_order(c_shape, C, batch, c_size)) return;
    std::vector<Extent>& all = scratch(0);
    for (std::int64_t b = 0; b < batch; ++b) all.push_back(extent_of(c_shape, C, b, c_size));
    if (const Clash clash = find_clash(all, scratch(1)); clash.kind != Clash::None)
      fail_overlap(operation, c_shape.name, std::int64_t(clash.write), c_shape.name,
                   std::int64_t(clash.other), batch);
    return;
  }
  const Extent first = extent_of(c_shape, C, 0, c_size);
  for (std::int64_t b = 1; b < batch; ++b) {
    const Extent other = extent_of(c_shape, C, b, c_size);
    if (other.begin >= first.end()) break;
    if (share(first, other)) fail_overlap(operation, c_shape.name, 0, c_shape.name, b, batch);
  }
}

/// C's matrices must be disjoint from the input's. `in_place`: matrix b of the input may be matrix
/// b of C, unless it is also another matrix of the input, which is read later.
void check_input(std::string_view operation, const Stored& c_shape, const Output& C, int c_size,
                 const Stored& x_shape, const Input& X, int x_size, std::int64_t batch,
                 bool in_place = false) {
  const Bounds c_bounds = bounds_of(c_shape, C, batch, c_size);
  const Bounds x_bounds = bounds_of(x_shape, X, batch, x_size);
  if (c_bounds.end <= x_bounds.begin || x_bounds.end <= c_bounds.begin) return;
  if (X.pointers || C.pointers) {
    std::vector<Extent>&writes = scratch(0), &reads = scratch(1);
    for (std::int64_t b = 0; b < batch; ++b) {
      writes.push_back(extent_of(c_shape, C, b, c_size));
      reads.push_back(extent_of(x_shape, X, b, x_size));
    }
    if (const Clash clash = find_clash(writes, reads); clash.kind != Clash::None)
      fail_overlap(operation, c_shape.name, std::int64_t(clash.write), x_shape.name,
                   std::int64_t(clash.other), batch);
    return;
  }
  const Extent c_first = extent_of(c_shape, C, 0, c_size);
  const Extent x_first = extent_of(x_shape, X, 0, x_size);
  const std::int64_t c_step = C.stride * c_size, x_step = X.stride * x_size;
  // In place and apart from one another: matrix i meets matrix i only.
  if (in_place && c_step == x_step && c_first.begin == x_first.begin &&
      c_first.begin + std::uintptr_t(c_step) >= std::max(c_first.end(), x_first.end()))
    return;
  for (std::int64_t i = 0; i < batch; ++i) {
    const Extent c = extent_of(c_shape, C, i, c_size);
    // Only the matrices of X whose addresses reach into those of C's matrix i.
    std::int64_t j = 0, last = x_step == 0 ? 0 : batch - 1;
    if (x_step > 0) {
      const auto below = std::int64_t(c.begin - x_first.end()),
                 above = std::int64_t(c.end() - x_first.begin);
      if (above <= 0) continue;
      j = below < 0 ? 0 : below / x_step;
      last = std::min(last, (above - 1) / x_step);
    }
    for (; j <= last; ++j) {
      if (in_place && i == j && (batch == 1 || x_step > 0) && X.at(j, x_size) == C.at(i, c_size))
        continue;
      if (share(c, extent_of(x_shape, X, j, x_size)))
        fail_overlap(operation, c_shape.name, i, x_shape.name, j, batch);
    }
  }
}

/// What of an epilogue is wrong whatever the sizes.
void check_tolerance(std::string_view operation, const GemmArgs& g) {
  if (!(g.tolerance >= 0) || std::isinf(g.tolerance))
    fail(Status::InvalidArgument, operation,
         "tolerance is " + std::to_string(g.tolerance) + "; it must be 0 or positive and finite");
  if (g.tolerance > 0 && g.compute != Compute::OzakiFP64)
    fail(Status::InvalidArgument, operation,
         "tolerance is for compute mode ozaki; this call's is " + std::string(name_of(g.compute)));
}

void check_epilogue(std::string_view operation, const GemmArgs& g) {
  const Epilogue& e = g.epilogue;
  const std::string out(name_of(g.out));
  if (e.activation > Activation::Gelu)
    fail(Status::InvalidArgument, operation, "activation is not one of Activation's values");
  if (e.bias.per > BiasPer::Column)
    fail(Status::InvalidArgument, operation, "bias is not per one of BiasPer's values");
  if (e.is_none()) return;
  if (g.out == DType::i32)
    fail(Status::InvalidArgument, operation, "a C of " + out + " takes no epilogue");
  if (is_complex(g.out) && e.activation != Activation::None)
    fail(Status::InvalidArgument, operation,
         "a C of " + out + " takes no activation: there is no order of complex numbers");
  if (e.bias.per != BiasPer::None && e.bias.type != g.out)
    fail(Status::InvalidArgument, operation,
         "bias is of type " + std::string(name_of(e.bias.type)) + ", but C of " + out);
}

/// The bias as an operand of one row, empty where there is none.
struct BiasRow {
  Stored shape{"bias", "", 1, 0, 0};
  Input data{nullptr, 1};

  explicit BiasRow(const GemmArgs& g) {
    if (g.epilogue.bias.per == BiasPer::None) return;
    shape.cols = shape.ld = data.ld = bias_length(g);
    data.data = g.epilogue.bias.data;
  }
};

struct GemmShapes {
  Stored A, B, C;
};
GemmShapes shapes_of(const GemmArgs& g, Layout layout) {
  return {stored("A", "lda", layout, g.transA, g.m, g.k, g.A.ld),
          stored("B", "ldb", layout, g.transB, g.k, g.n, g.B.ld),
          stored("C", "ldc", layout, Op::NoTrans, g.m, g.n, g.C.ld)};
}

}  // namespace

void swap_layout(GemmArgs& args) {
  std::swap(args.m, args.n);
  std::swap(args.A, args.B);
  std::swap(args.transA, args.transB);
  args.keeps_b = !args.keeps_b;
  BiasPer& per = args.epilogue.bias.per;
  if (per != BiasPer::None) per = per == BiasPer::Row ? BiasPer::Column : BiasPer::Row;
}

bool has_mode(DType type, Compute compute) {
  switch (compute) {
    case Compute::Default:
    case Compute::Pedantic:
      return true;
    case Compute::OzakiFP64:
      return type == DType::f64 || type == DType::cf64;
    default:
      return type == DType::f32 || type == DType::cf32;
  }
}

bool validate(GemmArgs& g, Layout layout) {
  constexpr std::string_view op = op_name<GemmArgs>;
  check_layout(op, layout);
  check_op(op, "transA", g.transA);
  check_op(op, "transB", g.transB);
  check_size(op, "m", g.m);
  check_size(op, "n", g.n);
  check_size(op, "k", g.k);
  check_size(op, "batch_count", g.batch);
  const GemmShapes shape = shapes_of(g, layout);
  check_ld(op, layout, shape.A);
  check_ld(op, layout, shape.B);
  check_ld(op, layout, shape.C);
  if (!has_mode(g.in, g.compute))
    fail(Status::InvalidArgument, op,
         "compute mode " + std::string(name_of(g.compute)) + " is not for operands of type " +
             std::string(name_of(g.in)));
  check_tolerance(op, g);
  check_epilogue(op, g);
  if (g.m == 0 || g.n == 0 || g.batch == 0) return false;

  if (g.alpha == Scalar{}) g.k = 0;  // A and B are not read
  const int in = size_of(g.in), out = size_of(g.out);
  check_present(op, "C", g.C, g.batch);
  check_extent(op, shape.C, g.C, g.batch, out);
  check_output(op, shape.C, g.C, g.batch, out);
  if (g.k == 0) {
    g.A = g.B = {nullptr, 1};
    if (g.beta == Scalar{1, 0} && g.epilogue.is_none()) return false;
  } else {
    check_present(op, "A", g.A, g.batch);
    check_present(op, "B", g.B, g.batch);
    check_extent(op, shape.A, g.A, g.batch, in);
    check_extent(op, shape.B, g.B, g.batch, in);
    check_input(op, shape.C, g.C, out, shape.A, g.A, in, g.batch);
    check_input(op, shape.C, g.C, out, shape.B, g.B, in, g.batch);
  }
  if (g.epilogue.bias.per != BiasPer::None) {
    const BiasRow bias(g);
    check_present(op, "bias", bias.data, 1);
    check_extent(op, bias.shape, bias.data, 1, out);
    check_input(op, shape.C, g.C, out, bias.shape, bias.data, out, g.batch);
  }
  if (layout == Layout::ColMajor) swap_layout(g);
  return true;
}

void check_group_overlap(std::span<const GemmArgs> problems) {
  std::vector<Extent> writes, reads;
  const auto named = [](std::size_t i, const char* operand) {
    return std::string(operand) + " of problem " + to_string(i);
  };
  for (const GemmArgs& g : problems) {
    const GemmShapes shape = shapes_of(g, Layout::RowMajor);
    writes.push_back(extent_of(shape.C, g.C, 0, size_of(g.out)));
    reads.push_back(extent_of(shape.A, g.A, 0, size_of(g.in)));
    reads.push_back(extent_of(shape.B, g.B, 0, size_of(g.in)));
    const BiasRow bias(g);
    reads.push_back(extent_of(bias.shape, bias.data, 0, size_of(g.out)));
  }
  const Clash clash = find_clash(writes, reads);
  if (clash.kind == Clash::None) return;
  constexpr const char* kInputs[] = {"A", "B", "bias"};
  fail(Status::Overlap, "gemm_grouped",
       named(clash.write, "C") + " shares elements with " +
           (clash.kind == Clash::Writes ? named(clash.other, "C")
                                        : named(clash.other / 3, kInputs[clash.other % 3])) +
           " (counting the problems that compute something)");
}

bool validate(GeamArgs& g, Layout layout) {
  constexpr std::string_view op = op_name<GeamArgs>;
  check_layout(op, layout);
  check_op(op, "transA", g.transA);
  check_op(op, "transB", g.transB);
  check_size(op, "m", g.m);
  check_size(op, "n", g.n);
  check_size(op, "batch_count", g.batch);
  const Stored A = stored("A", "lda", layout, g.transA, g.m, g.n, g.A.ld);
  const Stored B = stored("B", "ldb", layout, g.transB, g.m, g.n, g.B.ld);
  const Stored C = stored("C", "ldc", layout, Op::NoTrans, g.m, g.n, g.C.ld);
  check_ld(op, layout, A);
  check_ld(op, layout, B);
  check_ld(op, layout, C);
  if (g.m == 0 || g.n == 0 || g.batch == 0) return false;

  const int size = size_of(g.type);
  check_present(op, "C", g.C, g.batch);
  check_extent(op, C, g.C, g.batch, size);
  check_output(op, C, g.C, g.batch, size);
  const auto check = [&](const Stored& shape, Input& X, Op trans, Scalar scalar) {
    if (scalar == Scalar{}) {
      X = {nullptr, 1};
      return;
    }
    check_present(op, shape.name, X, g.batch);
    check_extent(op, shape, X, g.batch, size);
    const bool in_place = !is_transposed(trans) && X.ld == g.C.ld;
    check_input(op, C, g.C, size, shape, X, size, g.batch, in_place);
  };
  check(A, g.A, g.transA, g.alpha);
  check(B, g.B, g.transB, g.beta);
  if (layout == Layout::ColMajor) std::swap(g.m, g.n);
  return true;
}

bool validate(TransposeArgs& t, Layout layout) {
  constexpr std::string_view op = op_name<TransposeArgs>;
  check_layout(op, layout);
  check_size(op, "m", t.m);
  check_size(op, "n", t.n);
  check_size(op, "batch_count", t.batch);
  const Stored A = stored("A", "lda", layout, Op::NoTrans, t.m, t.n, t.A.ld);
  const Stored B = stored("B", "ldb", layout, Op::Trans, t.m, t.n, t.B.ld);
  check_ld(op, layout, A);
  check_ld(op, layout, B);
  if (t.m == 0 || t.n == 0 || t.batch == 0) return false;
  const int size = size_of(t.type);
  check_present(op, "A", t.A, t.batch);
  check_present(op, "B", t.B, t.batch);
  check_extent(op, A, t.A, t.batch, size);
  check_extent(op, B, t.B, t.batch, size);
  check_output(op, B, t.B, t.batch, size);
  check_input(op, B, t.B, size, A, t.A, size, t.batch);
  if (layout == Layout::ColMajor) std::swap(t.m, t.n);
  return true;
}

bool validate(TransposeInplaceArgs& t, Layout layout) {
  constexpr std::string_view op = op_name<TransposeInplaceArgs>;
  check_layout(op, layout);
  check_size(op, "m", t.m);
  check_size(op, "n", t.n);
  check_size(op, "batch_count", t.batch);
  const Stored before = stored("A", "lda", layout, Op::NoTrans, t.m, t.n, t.A.ld);
  const Stored after = stored("A", "ldb", layout, Op::Trans, t.m, t.n, t.ldb);
  check_ld(op, layout, before);
  check_ld(op, layout, after);
  if (t.m == 0 || t.n == 0 || t.batch == 0) return false;
  const int size = size_of(t.type);
  check_present(op, "A", t.A, t.batch);
  check_extent(op, before, t.A, t.batch, size);
  check_extent(op, after, t.A, t.batch, size);
  check_output(op, before, t.A, t.batch, size);
  check_output(op, after, t.A, t.batch, size);
  const Input self{t.A.data, t.A.ld, t.A.stride, t.A.pointers};
  check_input(op, after, t.A, size, before, self, size, t.batch, true);
  if (layout == Layout::ColMajor) std::swap(t.m, t.n);
  return true;
}

bool validate(Gf256Args& g) {
  constexpr std::string_view op = op_name<Gf256Args>;
  check_size(op, "m", g.m);
  check_size(op, "n", g.n);
  check_size(op, "k", g.k);
  const Stored A{"A", "lda", g.m, g.k, g.A.ld};
  const Stored B{"B", "ldb", g.k, g.n, g.B.ld};
  const Stored C{"C", "ldc", g.m, g.n, g.C.ld};
  check_ld(op, Layout::RowMajor, A);
  if (!g.B.pointers) check_ld(op, Layout::RowMajor, B);
  if (!g.C.pointers) check_ld(op, Layout::RowMajor, C);
  if (!gf256::detail::is_irreducible_degree8(g.poly))
    fail(Status::InvalidArgument, op, "poly is not an irreducible polynomial of degree 8");
  if (g.m == 0 || g.n == 0) return false;
  check_present(op, "C", g.C, g.m);
  if (!g.C.pointers) check_extent(op, C, g.C, 1, 1);
  if (g.k == 0) {
    g.A = g.B = {nullptr, 1};
    return !g.accumulate;
  }
  check_present(op, "A", g.A, 1);
  check_present(op, "B", g.B, g.k);
  check_extent(op, A, g.A, 1, 1);
  if (!g.B.pointers) check_extent(op, B, g.B, 1, 1);
  if (!g.B.pointers && !g.C.pointers) {
    check_input(op, C, g.C, 1, A, g.A, 1, 1);
    check_input(op, C, g.C, 1, B, g.B, 1, 1);
    return true;
  }
  const auto rows_of = [&](const auto& X, const Stored& shape, std::vector<Extent>& out) {
    for (std::int64_t i = 0; i < shape.rows; ++i)
      out.push_back({reinterpret_cast<std::uintptr_t>(X.pointers ? X.pointers[i] : X.at(0, 1)) +
                         std::uintptr_t(X.pointers ? 0 : i * X.ld),
                     g.n, g.n, 1});
  };
  std::vector<Extent>&writes = scratch(0), &reads = scratch(1);
  rows_of(g.C, C, writes);
  rows_of(g.B, B, reads);
  reads.push_back(extent_of(A, g.A, 0, 1));
  const Clash clash = find_clash(writes, reads);
  if (clash.kind == Clash::Writes)
    fail(Status::Overlap, op,
         "rows " + to_string(clash.write) + " and " + to_string(clash.other) + " of C share bytes");
  if (clash.kind == Clash::WriteAndRead)
    fail(Status::Overlap, op,
         "row " + to_string(clash.write) + " of C shares bytes with " +
             (clash.other == std::size_t(g.k) ? "A" : "row " + to_string(clash.other) + " of B"));
  return true;
}

}  // namespace mblas
