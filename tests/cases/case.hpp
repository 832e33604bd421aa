// One descriptor per operation: everything that describes a call. The tests enumerate them, `mblas
// bench` reads them from its flags, and both run and verify them through problem.hpp.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "buffer.hpp"
#include "mblas/backend.hpp"
#include "mblas/gf256.hpp"
#include "mblas/types.hpp"
#include "random.hpp"

namespace mblas::cases {

/// Whether the sum of geam goes to a matrix of its own or to that of an operand.
enum class Alias : char { None = 'N', A = 'A', B = 'B' };

// Each descriptor has a static fields(case, f) that calls f(flag, member, help) for every member:
// the one place where flags are named. Leading dimensions of 0 and strides of kPacked are the
// smallest legal ones; a stride of 0 repeats an input.

struct GemmCase {
  static constexpr std::string_view kOp = op_name<GemmArgs>;
  static constexpr std::string_view kFormula =
      "C = scale activation(alpha op(A) op(B) + beta C + bias)";
  DType in = DType::f32, out = DType::f32;
  Layout layout = Layout::RowMajor;
  Op transA = Op::NoTrans, transB = Op::NoTrans;
  std::int64_t m = 64, n = 64, k = 64;
  std::int64_t lda = 0, ldb = 0, ldc = 0;
  Scalar alpha{1, 0}, beta{0, 0};
  std::int64_t batch = 1;
  std::int64_t strideA = kPacked, strideB = kPacked, strideC = kPacked;
  bool pointers = false;  ///< through gemm_batched, with an array of pointers to each operand
  Compute compute = Compute::Default;
  double tolerance = 0;
  BiasPer bias = BiasPer::None;  ///< an operand of its own, before C
  Activation activation = Activation::None;
  double scale = 1;
  Data data = Data::Uniform;
  std::int64_t offset = 0;  ///< elements by which every operand misses a 256-byte boundary
  bool nan_unread = true;   ///< operands that the call must not read hold NaN
  std::uint64_t seed = 1;

  static void fields(auto& c, auto&& f) {
    f("--type", c.in, "type of A and B");
    f("--out", c.out, "type of C; the bench: that of A, i32 for i8");
    f("--layout", c.layout, "R (row-major) or C (column-major)");
    f("--transA", c.transA, "N, T, C (conjugate transpose) or J (conjugate)");
    f("--transB", c.transB, "likewise");
    f("-m", c.m, "rows of C");
    f("-n", c.n, "columns of C");
    f("-k", c.k, "columns of op(A)");
    f("--lda", c.lda, "leading dimension; 0: the smallest");
    f("--ldb", c.ldb, "likewise");
    f("--ldc", c.ldc, "likewise");
    f("--alpha", c.alpha, "re or re,im");
    f("--beta", c.beta, "re or re,im");
    f("--batch", c.batch, "number of matrices");
    f("--strideA", c.strideA, "elements between matrices; -1: packed, 0: the same matrix");
    f("--strideB", c.strideB, "likewise");
    f("--strideC", c.strideC, "elements between matrices; -1: packed");
    f("--pointers", c.pointers, "call with arrays of pointers");
    f("--compute", c.compute, "arithmetic of the call");
    f("--tolerance", c.tolerance, "of ozaki: see GemmOptions; 0: the mode's own");
    f("--bias", c.bias, "none, rows or columns: one for each");
    f("--activation", c.activation, "none, relu or gelu");
    f("--scale", c.scale, "of the result");
    f("--data", c.data, "distribution of the operands");
    f("--offset", c.offset, "elements off a 256-byte boundary");
    f("--nan-unread", c.nan_unread, "NaN in operands that must not be read");
    f("--seed", c.seed, "of the random operands");
  }
};

/// Without the address of the bias.
inline Epilogue epilogue_of(const GemmCase& c) {
  return {{c.bias, c.out, nullptr}, c.activation, c.scale};
}

struct GeamCase {
  static constexpr std::string_view kOp = op_name<GeamArgs>;
  static constexpr std::string_view kFormula = "C = alpha op(A) + beta op(B)";
  DType type = DType::f32;
  Layout layout = Layout::RowMajor;
  Op transA = Op::NoTrans, transB = Op::NoTrans;
  std::int64_t m = 64, n = 64;
  std::int64_t lda = 0, ldb = 0, ldc = 0;
  Scalar alpha{1, 0}, beta{0, 0};
  std::int64_t batch = 1;
  std::int64_t strideA = kPacked, strideB = kPacked, strideC = kPacked;
  Alias alias = Alias::None;
  Data data = Data::Uniform;
  std::int64_t offset = 0;
  bool nan_unread = true;
  std::uint64_t seed = 1;

  static void fields(auto& c, auto&& f) {
    f("--type", c.type, "type of the matrices");
    f("--layout", c.layout, "R (row-major) or C (column-major)");
    f("--transA", c.transA, "N, T, C (conjugate transpose) or J (conjugate)");
    f("--transB", c.transB, "likewise");
    f("-m", c.m, "rows of C");
    f("-n", c.n, "columns of C");
    f("--lda", c.lda, "leading dimension; 0: the smallest");
    f("--ldb", c.ldb, "likewise");
    f("--ldc", c.ldc, "likewise");
    f("--alpha", c.alpha, "re or re,im");
    f("--beta", c.beta, "re or re,im");
    f("--batch", c.batch, "number of matrices");
    f("--strideA", c.strideA, "elements between matrices; -1: packed, 0: the same matrix");
    f("--strideB", c.strideB, "likewise");
    f("--strideC", c.strideC, "elements between matrices; -1: packed");
    f("--alias", c.alias, "the matrix that C is: N (neither), A or B");
    f("--data", c.data, "distribution of the operands");
    f("--offset", c.offset, "elements off a 256-byte boundary");
    f("--nan-unread", c.nan_unread, "NaN in operands that must not be read");
    f("--seed", c.seed, "of the random operands");
  }
};

/// The type is one of b1 … b16; resolve() turns any other into the untyped one of its size.
struct TransposeCase {
  static constexpr std::string_view kOp = op_name<TransposeArgs>;
  static constexpr std::string_view kFormula = "B = A transposed, A m x n";
  DType type = DType::b4;
  Layout layout = Layout::RowMajor;
  std::int64_t m = 64, n = 64;
  std::int64_t lda = 0, ldb = 0;
  std::int64_t batch = 1;
  std::int64_t strideA = kPacked, strideB = kPacked;
  Data data = Data::Uniform;
  std::int64_t offset = 0;
  std::uint64_t seed = 1;

  static void fields(auto& c, auto&& f) {
    f("--type", c.type, "type of the elements");
    f("--layout", c.layout, "R (row-major) or C (column-major)");
    f("-m", c.m, "rows of A");
    f("-n", c.n, "columns of A");
    f("--lda", c.lda, "leading dimension; 0: the smallest");
    f("--ldb", c.ldb, "likewise");
    f("--batch", c.batch, "number of matrices");
    f("--strideA", c.strideA, "elements between matrices; -1: packed, 0: the same matrix");
    f("--strideB", c.strideB, "elements between matrices; -1: packed");
    f("--data", c.data, "uniform: any bytes; positive: those of positive numbers");
    f("--offset", c.offset, "elements off a 256-byte boundary");
    f("--seed", c.seed, "of the random operands");
  }
};

struct TransposeInplaceCase {
  static constexpr std::string_view kOp = op_name<TransposeInplaceArgs>;
  static constexpr std::string_view kFormula = "A = A transposed, A m x n before";
  DType type = DType::b4;
  Layout layout = Layout::RowMajor;
  std::int64_t m = 64, n = 64;
  std::int64_t lda = 0, ldb = 0;
  std::int64_t batch = 1;
  std::int64_t strideA = kPacked;
  Data data = Data::Uniform;
  std::int64_t offset = 0;
  std::uint64_t seed = 1;

  static void fields(auto& c, auto&& f) {
    f("--type", c.type, "type of the elements");
    f("--layout", c.layout, "R (row-major) or C (column-major)");
    f("-m", c.m, "rows before");
    f("-n", c.n, "columns before");
    f("--lda", c.lda, "leading dimension before; 0: the smallest");
    f("--ldb", c.ldb, "leading dimension after; 0: the smallest");
    f("--batch", c.batch, "number of matrices");
    f("--strideA", c.strideA, "elements between matrices; -1: packed");
    f("--data", c.data, "uniform: any bytes; positive: those of positive numbers");
    f("--offset", c.offset, "elements off a 256-byte boundary");
    f("--seed", c.seed, "of the random operands");
  }
};

struct Gf256Case {
  static constexpr std::string_view kOp = op_name<Gf256Args>;
  static constexpr std::string_view kFormula = "C = A B over GF(2^8)";
  std::int64_t m = 4, n = 4096, k = 10;
  std::int64_t lda = 0, ldb = 0, ldc = 0;
  bool accumulate = false;
  bool pointers = false;  ///< ReedSolomon{k, m}.encode over n-byte shards in place of gf256::gemm
  unsigned poly = gf256::kDefaultPoly;
  std::int64_t offset = 0;
  std::uint64_t seed = 1;

  static void fields(auto& c, auto&& f) {
    f("-m", c.m, "rows of C (parity shards)");
    f("-n", c.n, "columns of C (bytes of a shard)");
    f("-k", c.k, "columns of A (data shards)");
    f("--lda", c.lda, "leading dimension; 0: the smallest");
    f("--ldb", c.ldb, "likewise");
    f("--ldc", c.ldc, "likewise");
    f("--accumulate", c.accumulate, "C = C + A B");
    f("--pointers", c.pointers, "encode shards behind arrays of pointers");
    f("--poly", c.poly, "field polynomial, e.g. 0x11D");
    f("--offset", c.offset, "bytes off a 256-byte boundary");
    f("--seed", c.seed, "of the random operands");
  }
};

using Case = std::variant<GemmCase, GeamCase, TransposeCase, TransposeInplaceCase, Gf256Case>;

/// A descriptor of the operation with its defaults; std::invalid_argument lists the operations.
Case make_case(std::string_view op);
/// With leading dimensions and strides in place of their placeholders, and alpha and beta as the
/// call rounds them.
GemmCase resolve(GemmCase c);
GeamCase resolve(GeamCase c);
TransposeCase resolve(TransposeCase c);
TransposeInplaceCase resolve(TransposeInplaceCase c);
Gf256Case resolve(Gf256Case c);
Case resolve(const Case& c);

/// The shapes of the operands in memory, those that are only read first, the written one last.
std::vector<Shape> shapes(const Case& c);
/// Elements that the written operand must have room for.
std::int64_t room(const TransposeInplaceCase& c);
std::string_view op_of(const Case& c);
/// Floating-point operations (complex ones count 4 or 2 of them; in GF(2^8), 2 a multiply-add).
double flops(const Case& c);
/// Bytes that must move: every input read once, the output written once, and read where it is an
/// input.
double bytes(const Case& c);
/// Of those, the output's.
double bytes_written(const Case& c);
/// Bytes of the operands in memory.
double footprint(const Case& c);
/// The arguments of `mblas bench` that run the case: "gemm --type f32 -m 64 …".
std::string command(const Case& c);

// What the flags take and print. parse() throws std::invalid_argument that lists what there is.
std::string to_text(DType v);
std::string to_text(Layout v);
std::string to_text(Op v);
std::string to_text(Compute v);
std::string to_text(Data v);
std::string to_text(Alias v);
std::string to_text(bool v);
std::string to_text(std::int64_t v);
std::string to_text(std::uint64_t v);
std::string to_text(unsigned v);
std::string to_text(const Scalar& v);
std::string to_text(double v);
std::string to_text(BiasPer v);
std::string to_text(Activation v);
void parse(std::string_view text, DType& v);
void parse(std::string_view text, Layout& v);
void parse(std::string_view text, Op& v);
void parse(std::string_view text, Compute& v);
void parse(std::string_view text, Data& v);
void parse(std::string_view text, Alias& v);
void parse(std::string_view text, bool& v);
void parse(std::string_view text, std::int64_t& v);
void parse(std::string_view text, std::uint64_t& v);
void parse(std::string_view text, unsigned& v);
void parse(std::string_view text, Scalar& v);
void parse(std::string_view text, double& v);
void parse(std::string_view text, BiasPer& v);
void parse(std::string_view text, Activation& v);

}  // namespace mblas::cases
