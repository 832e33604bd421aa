// The cuda backend: its tables, best kernel first.
#include <algorithm>
#include <memory>
#include <span>
#include <string>

#include "core/builtin.hpp"
#include "cuda/device.hpp"
#include "cuda/kernels.hpp"
#include "cuda/pointers.hpp"

namespace mblas {
namespace {

class CudaBackend final : public cuda::DeviceBackend {
 public:
  std::string_view name() const override { return "cuda"; }

  const std::string& unavailable() override {
    static const std::string reason = probe();
    return reason;
  }

  std::string describe() override {
    std::string text = cuda::describe_devices() + "; built for";
    for (const int capability : cuda::compiled_capabilities())
      text += " " + cuda::version_text(100 * capability);
    return text;
  }

  std::unique_ptr<Queue> make_queue(const QueueOptions& options) override {
    auto queue = std::make_unique<cuda::CudaQueue>(options);
    const cuda::DeviceGuard guard(options.device);
    const cuda::RelaxedCapture relaxed;
    cuda::check_kernel_image();
    return queue;
  }

  std::span<const Kernel<GemmArgs>> gemm_kernels() const override {
    namespace g = cuda::gemm;
    static const Kernel<GemmArgs> table[] = {
        g::gemv(),           g::whole_batch(),  g::tensor_batch(), g::thin_batch(),
        g::tiny_warp(),      g::tiny(),         g::few_vectors(),  g::thin(),
        g::thin_f64(),       g::tall(),         g::tall_mma(),     g::short_k(),
#ifdef MBLAS_HAVE_HOPPER
        g::tensor_f64_tma(), g::tensor_wgmma(), g::fused_bf16x6(), g::tensor_bf16x6(),
        g::tensor_fp16x3(),  g::tensor_ozaki(),
#endif
        g::fitted(),         g::tensor_f64(),   g::tensor_mma(),
#ifdef MBLAS_HAVE_HOPPER
        g::simt_tma(),
#endif
        g::simt(),           g::shared(),       g::column(),       g::padded(32),
        g::padded(16),       g::padded(8),      g::padded(4),      g::square(32),
        g::square(16),       g::square(8),      g::square(4),      g::naive(),
        g::padded(2),        g::square(2),      g::padded(1),      g::square(1)};
    return table;
  }
  FinishPass finish() const override { return cuda::gemm::finish; }
  std::span<const Kernel<GeamArgs>> geam_kernels() const override {
    static const Kernel<GeamArgs> table[] = {cuda::geam::direct(), cuda::geam::vector(),
                                             cuda::geam::sheared(), cuda::geam::shared(),
                                             cuda::geam::naive()};
    return table;
  }
  std::span<const Kernel<TransposeArgs>> transpose_kernels() const override {
    namespace t = cuda::transpose;
    static const Kernel<TransposeArgs> table[] = {
        t::tiny(),     t::thin(),   t::vector(), t::sheared(), t::tall(), t::double_buffered(),
        t::swizzled(), t::shared(), t::padded(), t::naive()};
    return table;
  }
  std::span<const Kernel<TransposeInplaceArgs>> transpose_inplace_kernels() const override {
    namespace t = cuda::transpose_inplace;
    static const Kernel<TransposeInplaceArgs> table[] = {t::tiny(), t::square(), t::buffered(),
                                                         t::cycle()};
    return table;
  }
  std::span<const Kernel<Gf256Args>> gf256_kernels() const override {
    namespace f = cuda::gf256;
    static const Kernel<Gf256Args> table[] = {f::permute(),   f::tensor_mma(),
#ifdef MBLAS_HAVE_HOPPER
                                              f::tensor_b1(),
#endif
                                              f::shared(),    f::words(8),     f::words(4),
                                              f::words(2),    f::tile(),       f::tile_dynamic(),
                                              f::square(),    f::naive()};
    return table;
  }

 private:
  /// Whether a device can be expected to run the kernels: without making a context on it, which
  /// make_queue() does.
  static std::string probe() {
    const cuda::Devices& all = cuda::devices();
    if (!all.unavailable.empty()) return all.unavailable;
    const int oldest = std::ranges::min(cuda::compiled_capabilities());
    if (std::ranges::any_of(all.infos, [&](const DeviceInfo& d) { return d.capability >= oldest; }))
      return "";
    const DeviceInfo& first = all.infos.front();
    return first.name + " has compute capability " + cuda::version_text(100 * first.capability) +
           ", this build's kernels need " + cuda::version_text(100 * oldest) + " or later";
  }
};

}  // namespace

std::unique_ptr<Backend> make_cuda_backend() { return std::make_unique<CudaBackend>(); }

}  // namespace mblas
