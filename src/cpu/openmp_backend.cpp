// The openmp backend: the hand-written CPU kernels, best first for each operation.
#include <memory>
#include <string>

#include "core/builtin.hpp"
#include "core/config.hpp"
#include "cpu/declines.hpp"
#include "cpu/isa.hpp"
#include "cpu/kernels.hpp"
#include "cpu/parallel.hpp"

namespace mblas {
namespace {

using cpu::gemm_fuses_in_place;
using cpu::never;
using cpu::unless_native;

bool fuses_all(const GemmArgs&) { return true; }

constexpr Kernel<GemmArgs> kGemm[] = {
    {"small",
     "operands in the first-level cache, read where they lie",
     cpu::gemm_small_declines,
     nullptr,
     cpu::gemm_small,
     cpu::gemm_small_immediate,
     {},
     gemm_fuses_in_place},
    {"thin",
     "few rows or columns: the large matrix is read where it lies, once",
     cpu::gemm_thin_declines,
     cpu::gemm_thin_workspace,
     cpu::gemm_thin,
     nullptr,
     {},
     fuses_all},
    {"split", "a small C and a long k: chunks of k in parallel, sums along rows where both lie so",
     cpu::gemm_split_declines, cpu::gemm_split_workspace, cpu::gemm_split},
    {"bf16x6",
     "float as three bfloat16 planes on AMX tiles, all threads",
     cpu::gemm_bf16x6_declines,
     cpu::gemm_amx_workspace,
     cpu::gemm_amx,
     nullptr,
     {},
     fuses_all},
    {"packed",
     "five loops around register-blocked microkernels, B packed by all threads",
     cpu::gemm_packed_declines,
     cpu::gemm_packed_workspace,
     cpu::gemm_packed,
     nullptr,
     {},
     gemm_fuses_in_place},
    {"amx",
     "16-bit floats and int8 on AMX tiles, all threads",
     cpu::gemm_amx_declines,
     cpu::gemm_amx_workspace,
     cpu::gemm_amx,
     nullptr,
     {},
     fuses_all},
    {"dot",
     "bfloat16 and int8 by dot products of AVX-512, all threads",
     cpu::gemm_dot_declines,
     cpu::gemm_dot_workspace,
     cpu::gemm_dot,
     nullptr,
     {},
     fuses_all},
    {"blocked",
     "tiles of packed and converted panels, one thread each",
     unless_native,
     cpu::gemm_blocked_workspace,
     cpu::gemm_blocked,
     nullptr,
     {},
     gemm_fuses_in_place},
    {"naive",
     "three loops on one thread",
     unless_native,
     nullptr,
     cpu::gemm_naive,
     nullptr,
     {},
     gemm_fuses_in_place},
};

constexpr Kernel<GeamArgs> kGeam[] = {
    {"streamed", "transposed operands pass through the second-level cache, all threads",
     cpu::geam_streamed_declines, cpu::geam_streamed_workspace, cpu::geam_streamed},
    {"blocked", "by rows; transposed operands through small squares, all threads", never, nullptr,
     cpu::geam_blocked},
    {"naive", "two loops on one thread", never, nullptr, cpu::geam_naive},
};

constexpr Kernel<TransposeArgs> kTranspose[] = {
    {"cached", "operands in the caches: straight through registers", cpu::transpose_cached_declines,
     nullptr, cpu::transpose_cached},
    {"streamed", "strips of rows, whole lines written past the caches, all threads", never,
     cpu::transpose_streamed_workspace, cpu::transpose_streamed},
    {"blocked", "cache-sized blocks, transposed in registers, all threads", never, nullptr,
     cpu::transpose_blocked},
    {"naive", "two loops on one thread", never, nullptr, cpu::transpose_naive},
};

constexpr Kernel<TransposeInplaceArgs> kTransposeInplace[] = {
    {"square", "leading dimension kept: swaps tiles across the diagonal, no workspace",
     cpu::transpose_inplace_square_declines, nullptr, cpu::transpose_inplace_square},
    {"streamed", "leading dimension kept: swaps blocks across the diagonal past the caches",
     cpu::transpose_inplace_streamed_declines, cpu::transpose_inplace_streamed_workspace,
     cpu::transpose_inplace_streamed},
    {"chunked", "transposes squares in place, then moves their rows along cycles",
     cpu::transpose_inplace_chunked_declines, cpu::transpose_inplace_chunked_workspace,
     cpu::transpose_inplace_chunked},
    {"buffered", "any shape, through a buffer of the matrix's size", never,
     cpu::transpose_inplace_buffered_workspace, cpu::transpose_inplace_buffered},
    {"trimmed", "sets the last rows and columns aside, and transposes the rest in chunks",
     cpu::transpose_inplace_trimmed_declines, cpu::transpose_inplace_trimmed_workspace,
     cpu::transpose_inplace_trimmed},
    {"cycle", "any shape, follows the paths of the elements, no workspace", never, nullptr,
     cpu::transpose_inplace_cycle},
};

constexpr Kernel<Gf256Args> kGf256[] = {
    {"affine", "a matrix of bits for each coefficient, by GFNI instructions, all threads",
     cpu::gf256_affine_declines, cpu::gf256_affine_workspace, cpu::gf256_affine,
     cpu::gf256_affine_immediate},
    {"table", "split-nibble tables looked up by byte shuffles, all threads", never,
     cpu::gf256_table_workspace, cpu::gf256_table},
    {"naive", "shift and xor on one thread", never, nullptr, cpu::gf256_naive},
};

class OpenmpBackend final : public Backend {
 public:
  std::string_view name() const override { return "openmp"; }
  std::string describe() override {
    const int asked = environment().num_threads;  // reads the instruction set too
    const int threads = asked > 0 ? asked : cpu::default_threads();
    return std::string(cpu::isa().title) + ", " + std::to_string(threads) +
           (threads == 1 ? " thread (" : " threads (") + cpu::team_kind() + ")";
  }

  std::span<const Kernel<GemmArgs>> gemm_kernels() const override { return kGemm; }
  std::span<const Kernel<GeamArgs>> geam_kernels() const override { return kGeam; }
  std::span<const Kernel<TransposeArgs>> transpose_kernels() const override { return kTranspose; }
  std::span<const Kernel<TransposeInplaceArgs>> transpose_inplace_kernels() const override {
    return kTransposeInplace;
  }
  std::span<const Kernel<Gf256Args>> gf256_kernels() const override { return kGf256; }
};

}  // namespace

std::unique_ptr<Backend> make_openmp_backend() { return std::make_unique<OpenmpBackend>(); }

}  // namespace mblas
