// The openmp backend: the hand-written CPU kernels, best first for each operation.
#include <memory>
#include <string>

#include "core/builtin.hpp"
#include "cpu/declines.hpp"
#include "cpu/isa.hpp"
#include "cpu/kernels.hpp"
#include "cpu/parallel.hpp"

namespace mblas {
namespace {

using cpu::never;
using cpu::unless_native;
using cpu::unless_square;

constexpr Kernel<GemmArgs> kGemm[] = {
    {"blocked", "packed panels in the caches, a vectorised microkernel, all threads", unless_native,
     cpu::gemm_blocked_workspace, cpu::gemm_blocked},
    {"naive", "three loops on one thread", unless_native, nullptr, cpu::gemm_naive},
};

constexpr Kernel<GeamArgs> kGeam[] = {
    {"blocked", "transposed operands pass through cache-sized squares, all threads", never, nullptr,
     cpu::geam_blocked},
    {"naive", "two loops on one thread", never, nullptr, cpu::geam_naive},
};

constexpr Kernel<TransposeArgs> kTranspose[] = {
    {"blocked", "cache-sized blocks, transposed in registers, all threads", never, nullptr,
     cpu::transpose_blocked},
    {"naive", "two loops on one thread", never, nullptr, cpu::transpose_naive},
};

constexpr Kernel<TransposeInplaceArgs> kTransposeInplace[] = {
    {"square", "swaps tiles across the diagonal", unless_square, nullptr,
     cpu::transpose_inplace_square},
    {"buffered", "any shape, through a buffer of the matrix's size", never,
     cpu::transpose_inplace_buffered_workspace, cpu::transpose_inplace_buffered},
    {"cycle", "any shape, follows the paths of the elements, no workspace", never, nullptr,
     cpu::transpose_inplace_cycle},
};

constexpr Kernel<Gf256Args> kGf256[] = {
    {"table", "split-nibble tables looked up by byte shuffles, all threads", never,
     cpu::gf256_table_workspace, cpu::gf256_table},
    {"naive", "shift and xor on one thread", never, nullptr, cpu::gf256_naive},
};

class OpenmpBackend final : public Backend {
 public:
  std::string_view name() const override { return "openmp"; }
  std::string describe() override {
    const int threads = cpu::default_threads();
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
