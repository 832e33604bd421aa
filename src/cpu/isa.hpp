// The instruction sets that the CPU kernels are compiled for, and the choice among them at run
// time.
//
// Files named *_isa.cpp are compiled once for each set, with MBLAS_ISA naming it, and define what
// this header declares in mblas::cpu::<set>. Those objects may define no weak symbol: the linker
// would keep one copy for all, perhaps the one that this CPU cannot run. So they see plain pointers
// and sizes only, keep their templates in unnamed namespaces, and call no inline function of
// another header.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "cpu/gemm/dot.hpp"
#include "mblas/backend.hpp"
#include "mblas/types.hpp"

namespace mblas::cpu {

/// Of a small product of rows and columns along k: the columns of C, beside four rows, whose sums
/// are in registers.
inline constexpr int kDotRows = 4;
constexpr int dot_columns(int vector_bytes) { return vector_bytes == 64 ? 4 : 2; }

/// Elements between rows that are transposed for dots: whole vectors, no two of them beginning in
/// the same set of the first-level cache. `lanes` of a vector, a power of two.
[[gnu::always_inline]] inline std::int64_t dots_pitch(std::int64_t k, std::int64_t lanes) {
  return ((k + lanes - 1) & -lanes) + lanes;
}

/// Stack that GemmPanels::small packs an operand into.
inline constexpr std::int64_t kSmallBytes = 32 << 10;
/// Multiply-adds up to which packing does not pay.
inline constexpr std::int64_t kSmallWork = 72 * 72 * 72;

/// How GemmPanels::small computes a product of real numbers: with vectors along the rows of C, for
/// which op(B) must have contiguous rows or is transposed onto the stack; along k, with the lanes
/// of the sums added up in the end, for which rows of op(A) and columns of op(B) must be contiguous
/// or are transposed likewise; along the columns of C, those of op(A) being contiguous, with C
/// transposed on its way out (the bits are those of rows).
enum class SmallWay : unsigned char { Rows, Dots, Columns };

/// The fastest of these. `lanes` of a vector, a power of two.
[[gnu::always_inline]] inline SmallWay small_way(bool trans_a, bool trans_b, std::int64_t m,
                                                 std::int64_t n, std::int64_t k, std::int64_t lanes,
                                                 int size) {
  // Half cycles as measured on a Zen 5, by vectors of 64 bytes and of 32.
  constexpr std::int64_t kLeastSums = 4;   // rows or columns whose sums cover the latency
  constexpr std::int64_t kTransposed = 8;  // a vector of columns of B, for each step of k
  constexpr std::int64_t kAddUp = 40;      // the sums of a block of dots
  constexpr std::int64_t kToStack = 160;
  const std::int64_t dot_cols = dot_columns(int(lanes) * size);
  const auto divide_up = [](std::int64_t a, std::int64_t power_of_two) {
    return (a + power_of_two - 1) >> __builtin_ctzll(std::uint64_t(power_of_two));
  };
  SmallWay way = SmallWay::Rows;
  std::int64_t least =
      k * divide_up(n, lanes) * ((m > kLeastSums ? m : kLeastSums) + (trans_b ? kTransposed : 0));
  const std::int64_t across = (trans_a ? m : 0) + (trans_b ? 0 : n);
  if (across * dots_pitch(k, lanes) * size <= kSmallBytes) {
    const std::int64_t blocks = divide_up(m, kDotRows) * divide_up(n, dot_cols);
    const std::int64_t cost =
        blocks * (divide_up(k, lanes) * kDotRows * dot_cols + kAddUp) + across * k / 2;
    if (cost < least) {
      least = cost;
      way = SmallWay::Dots;
    }
  }
  const std::int64_t columns =
      k * divide_up(m, lanes) * (n > kLeastSums ? n : kLeastSums) + m * n + kToStack;
  return trans_a && columns < least ? SmallWay::Columns : way;
}

/// One tile of a product: C = alpha op(A) op(B) + beta C, all sizes those of the tile. Element (i,
/// p) of op(A) lies at A[i * a_row + p * a_col], one of the two being 1; likewise B.
struct GemmTile {
  const void* A;
  std::int64_t a_row, a_col;
  const void* B;
  std::int64_t b_row, b_col;
  void* C;
  std::int64_t ldc;
  bool conj_a, conj_b;
  std::int64_t m, n, k;
  Scalar alpha, beta;
  std::int64_t a_bytes = 0;       ///< of all of A, of which this is a part; for what is fetched
  SmallWay way = SmallWay::Rows;  ///< the same for all parts of a product, as bits differ
};

/// The blocked product of one pair of types.
struct GemmTileKernel {
  DType in, out;
  int mr, nr;       ///< rows and columns that the microkernel keeps in registers
  int mc, nc, kc;   ///< largest tile of C, and the depth that is packed at a time
  int packed_size;  ///< bytes of a packed element and of one of the accumulation tile
  /// `workspace`, 64-byte aligned, has the bytes that gemm_tile_workspace() says.
  void (*run)(const GemmTile& tile, std::byte* workspace);
};

/// Between the rows of a copied slice, so that they do not all fall into the same cache sets.
inline constexpr std::int64_t kSlicePad = 64;
/// Bytes of a column of A that are copied at a time where those are contiguous.
inline constexpr std::int64_t kCopiedColumn = 512;

/// What becomes of copies of slices of A: the next ones take their place; all of them stay; all of
/// them are there.
enum class SliceCopies { InTurn, Kept, There };

/// Products of one of the types f32 … cf64 as one thread computes them. Strides in elements.
struct GemmPanels {
  DType type;
  int mr, nr;           ///< rows and columns of C that the largest microkernel keeps in registers
  int wide;             ///< columns that block_rows takes as one panel, if more than nr
  int size;             ///< bytes of an element
  bool constant_steps;  ///< steps of k through packed panels take fewer instructions than others
  bool copied_slices;   ///< so do steps through slices of A that were copied
  int most_shallow;     ///< k up to which there is `shallow`
  /// A tile whose B has contiguous rows in panels of nr columns, or a packed one of `wide`, panel
  /// j * b_panel elements after the first for columns from j. All panels pass by a slice of A.
  /// Unless `copies` is null, it is copied there first, column by column, in room for mr rows of k
  /// elements and kSlicePad bytes; where its columns are contiguous, with others up to
  /// kCopiedColumn bytes of each column; where copies are kept, for all rows.
  void (*block_rows)(const GemmTile& tile, std::int64_t b_panel, std::byte* copies,
                     SliceCopies how);
  /// The same with all slices of A passing by a panel of B. `sliced`: A is as pack_a left it where
  /// its rows are not contiguous.
  void (*block_panels)(const GemmTile& tile, std::int64_t b_panel, bool sliced);
  /// A tile with no more steps of k than most_shallow, B's rows contiguous; C is written row by
  /// row.
  void (*shallow)(const GemmTile& tile);
  /// m rows, `depth` deep: to rows of packed_row elements where a_col is 1, else to slices.
  void (*pack_a)(void* to, const void* from, std::int64_t a_row, std::int64_t a_col, std::int64_t m,
                 std::int64_t depth, std::int64_t packed_row);
  /// Panels [depth][width] of `cols` columns, filled up with zeros, width being nr or, for no more
  /// columns than that, `wide`; the last one, where steps are constant and half of nr holds it,
  /// [depth][nr / 2].
  void (*pack_b)(void* to, const void* from, std::int64_t b_row, std::int64_t b_col,
                 std::int64_t depth, std::int64_t cols, std::int64_t width);
  /// `count` tiles one after the other, without workspace; B must have contiguous rows or fit
  /// kSmallBytes when packed.
  void (*small)(const GemmTile& first, std::int64_t count, std::int64_t stride_a,
                std::int64_t stride_b, std::int64_t stride_c);
  /// One product of a few vectors, k not 0, straight from its arguments; false, with nothing
  /// written: it is none. Real types only.
  bool (*one)(const GemmArgs& args);
};

/// Rows of C = scale activation(alpha S + beta C + bias), S being C itself or apart from it; the
/// bias begins at their first row or column. Complex: S is C, alpha 1 and beta 0.
struct FinishRows {
  const void* S;
  std::int64_t lds;
  void* C;
  std::int64_t ldc;
  std::int64_t m, n;
  Scalar alpha, beta;
  Epilogue epilogue;
};
struct FinishKernel {
  DType in, out;  ///< of S; of C
  void (*run)(const FinishRows&);
};

/// A part of k of a product both of whose operands have their rows along k: `first` and `last`, of
/// what is added up together.
struct SplitPart {
  const void* A;
  std::int64_t lda;
  const void* B;  ///< transposed
  std::int64_t ldb;
  std::int64_t m, n, k;
  std::int64_t ahead;  ///< elements of a row, that what is fetched lies ahead
  bool first, last;
  void* lanes;  ///< between parts; m×n vectors of kSplitVector bytes at most
  void* sums;   ///< m×n, written with the last part
};
inline constexpr std::int64_t kSplitVector = 64;
using SplitKernel = void (*)(const SplitPart& part);

/// A few vectors, k elements each: element p of vector r lies at from[r * vector + p * depth].
struct ThinVectors {
  const void* from;
  std::int64_t vector, depth;
  std::int64_t k;
  int vectors;
  bool for_dot;  ///< what is to read them; else it is `add`
  void* to;      ///< vectors times k, rounded up to ThinKernels::step, elements of x_size bytes
};

/// A part of a matrix, rows×cols as stored, times a few vectors.
struct ThinPart {
  const void* M;
  std::int64_t ld, rows, cols;
  /// The vectors, from a multiple of `step` of k on: packed, or as they lie. Between two of them
  /// are x_ld elements, for `add` that many groups of what is multiplied together, and there
  /// x_depth from element to element.
  const void* x;
  std::int64_t x_ld, x_depth;
  /// Sums, of the type that accumulates: those of vector r from r * y_ld on, with room for as many
  /// as are whole parts of kThinPart.
  void* y;
  std::int64_t y_ld;
  bool adds;  ///< to what y holds; else it is written
  int vectors;
  /// Few vectors, of a matrix that a cache holds: rows are not counted by how many streams memory
  /// gives, up to kFewVectors of them are in registers (few_rows.hpp), and `add` takes the vectors
  /// as they lie.
  bool few;
  bool far;  ///< M is fetched into the second-level cache, further ahead; else into the first
  /// M, of which no cache nearby holds much, is fetched into the first level as far ahead as memory
  /// needs, and dot products are of as many columns as let that level keep the vectors.
  bool streams;
  DotLimits limits;  ///< of elements of M, where magnitudes count
  /// By kThinPart of the elements of a vector of y: set where an element of M is beyond the limits,
  /// and y is of no use.
  bool* beyond;
};
inline constexpr std::int64_t kThinPart = 64;
inline constexpr int kFewVectors = 3;

/// Products of a few vectors with a matrix of one type, which is read once.
struct ThinKernels {
  DType in;
  int step, x_size;
  DotRange (*pack)(const ThinVectors&);  ///< the range of magnitudes, where these count
  void (*dot)(const ThinPart&);          ///< y = M x by dot products along the rows
  void (*add)(const ThinPart&);          ///< y = Mᵀ x by adding rows up; null: left to others
  bool limited = false;  ///< magnitudes count; else limits and what is beyond are not read
  /// Vectors, and most of them, that are packed together, with zeros for missing ones; 0: as many
  /// as there are.
  int group = 0;
  int least = 1;  ///< vectors from which on it is faster than what comes after it
  /// Most for `dot`, few rows of C and few columns, where registers and not caches say so: else 0.
  int most_along[2] = {0, 0};
  /// Bytes of a matrix up to which, times one vector, it is fetched into the first level.
  std::int64_t near = 0;
  /// Likewise of ThinPart::few, for up to kFewVectors and for more; 0 where vectors are converted.
  std::int64_t few[2] = {0, 0};
};

/// A block of C = alpha op(A) + beta op(B): m×n of C. A or B null: its term is absent. Transposed
/// operands pass through `buffer`, 64-byte aligned and kGeamBuffer bytes each, m and n then being
/// at most kGeamSide bytes; without it, through small squares. `stream`: C is written past the
/// caches.
struct GeamBlock {
  const void* A;
  std::int64_t lda;
  bool trans_a, conj_a;
  const void* B;
  std::int64_t ldb;
  bool trans_b, conj_b;
  void* C;
  std::int64_t ldc;
  std::int64_t m, n;
  Scalar alpha, beta;
  std::byte* buffer = nullptr;
  bool stream = false;
};
inline constexpr std::int64_t kGeamSide = 1024;
inline constexpr std::int64_t kGeamBuffer = (kGeamSide + 64) * (kGeamSide / 2);

using GeamBlockKernel = void (*)(const GeamBlock& block);

/// dst (cols×rows) = transpose of src (rows×cols); pitches in bytes.
using TransposeBlock = void (*)(const std::byte* src, std::int64_t src_pitch, std::byte* dst,
                                std::int64_t dst_pitch, std::int64_t rows, std::int64_t cols);

/// The same of matrices that no cache holds: dst is written past them. `count` matrices lie the
/// strides, in bytes, apart. `buffer`, 64-byte aligned, has kStreamBuffer bytes.
struct TransposePanel {
  const std::byte* src;
  std::int64_t src_pitch;
  std::byte* dst;
  std::int64_t dst_pitch;
  std::int64_t rows, cols;
  std::byte* buffer;
  std::int64_t count = 1, src_stride = 0, dst_stride = 0;
};
using TransposePanelKernel = void (*)(const TransposePanel& panel);
inline constexpr std::int64_t kStreamBuffer = 385 << 10;

/// Rows of bytes: `ld` apart, or behind an array of pointers.
struct Rows {
  std::byte* data;
  std::int64_t ld;
  void* const* pointers;
};

/// c times 0 … 15, and c times 0, 16 … 240.
struct Gf256Table {
  std::uint8_t low[16], high[16];
};

/// Columns [begin, end) of m rows of C = A B, or of C = C + A B, over GF(2^8); those of A and C are
/// counted from first_row on. `stream`: C may be written past the caches, all its rows begin at the
/// same distance from a line's begin.
struct Gf256Columns {
  std::int64_t m, k;
  Rows A, B, C;
  std::int64_t begin, end;
  bool accumulate, stream;
  const void* coefficients;  ///< of each byte, by the way to multiply: Gf256Table, or its matrix
  std::int64_t first_row = 0;
  // Memory of the thread.
  void* block = nullptr;          ///< room for kGf256Block bytes, or for m min(k, kGf256Depth)
                                  ///< coefficients if those are less
  std::uint8_t* panel = nullptr;  ///< kGf256Panel bytes, aligned to lines
};
inline constexpr std::int64_t kGf256Depth = 256, kGf256Panel = 32 << 10, kGf256Block = 256 << 10;

/// What one instruction set provides.
struct CpuIsa {
  const char* name;   ///< as in MBLAS_ARCH
  const char* title;  ///< for people
  bool (*supported)();
  std::span<const GemmTileKernel> gemm;
  const GemmPanels* panels;  ///< by DType f32 … cf64
  std::span<const ThinKernels> thin;
  const SplitKernel* split;  ///< of f32 and f64
  std::span<const FinishKernel> finish;
  const GeamBlockKernel* geam;      ///< by DType f32 … bf16
  const TransposeBlock* transpose;  ///< by DType, from b1
  const TransposePanelKernel* transpose_panel;
  void (*gf256_table)(const Gf256Columns&);
  void (*gf256_affine)(const Gf256Columns&);  ///< null: there is none; else where has_gfni()
  std::span<const DotKernel> dot = {};        ///< products by dot products of vectors; empty: none
  std::span<const DotKernel> amx = {};        ///< products on AMX tiles; empty: none
  bool (*best)() = nullptr;  ///< null, or whether those after it are no faster on this CPU
  /// By instructions for products of short types, to be taken before `thin`.
  std::array<std::span<const ThinKernels>, 2> thin_dot = {};
};

#define MBLAS_DECLARE_ISA(isa)                           \
  namespace isa {                                        \
  extern const GemmTileKernel gemm_kernels[9];           \
  extern const GemmPanels gemm_panels[4];                \
  extern const ThinKernels thin_kernels[5];              \
  extern const SplitKernel split_along[2];               \
  extern const FinishKernel gemm_finish[7];              \
  extern const GeamBlockKernel geam_blocks[6];           \
  extern const TransposeBlock transpose_blocks[5];       \
  extern const TransposePanelKernel transpose_panels[5]; \
  void gf256_table_columns(const Gf256Columns&);         \
  void gf256_affine_columns(const Gf256Columns&);        \
  }
MBLAS_DECLARE_ISA(generic)
MBLAS_DECLARE_ISA(avx2)
MBLAS_DECLARE_ISA(avx512)
#undef MBLAS_DECLARE_ISA
namespace amx {
extern const ThinKernels thin_kernels[2];
}
namespace avx512_vnni {
extern const ThinKernels thin_kernels[1];
}
namespace avx512_bf16 {
extern const ThinKernels thin_kernels[1];
}

/// The set named `forced`, or with an empty name the best that this CPU runs. Status::UnknownName,
/// listing the sets there are and those that this CPU lacks, where it is none of them or cannot
/// run.
const CpuIsa& select_isa(std::string_view forced);

/// Makes isa() return select_isa(name) from now on.
void force_isa(std::string_view name);

namespace detail {
extern std::atomic<const CpuIsa*> current_isa;  // null: none was chosen yet
const CpuIsa& choose_isa();
}  // namespace detail

/// The set in use: the best one, unless another was forced.
inline const CpuIsa& isa() {
  const CpuIsa* const current = detail::current_isa.load(std::memory_order_relaxed);
  return current ? *current : detail::choose_isa();
}

/// Do the CPU's own prefetchers follow few of the rows that are read side by side, so that their
/// next lines had better be asked for? So it is on Zen, and not on Emerald Rapids.
bool follows_few_rows();

/// Do the CPU's own prefetchers run so far along rows that come from memory that lines had better
/// be asked for close ahead? So it is on Zen 3, and not on Zen 4.
bool follows_rows_far();

/// Do threads on different cores start and end together within some thousand cycles? So it is on
/// Zen.
bool meets_soon();

/// Has the CPU loads to spare beside multiply-adds of 512 bits, rather than instructions? So it is
/// on Emerald Rapids, and not on Zen 5.
bool spares_loads();

/// Does the CPU multiply by matrices of bits? A set's vectors tell how many bytes at a time.
bool has_gfni();

}  // namespace mblas::cpu
