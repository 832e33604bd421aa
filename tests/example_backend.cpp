// A host backend with one kernel: products of float and double, one element of C after the other.
#include "example_backend.hpp"

#include <array>

namespace {

using mblas::Compute;
using mblas::DeviceInfo;
using mblas::DType;
using mblas::GemmArgs;
using mblas::Queue;
using mblas::Strides;

const char* declines(const GemmArgs& args, const DeviceInfo&) {
  if (args.in != DType::f32 && args.in != DType::f64) return "multiplies float and double only";
  if (args.compute != Compute::Default && args.compute != Compute::Pedantic)
    return "computes in native arithmetic only";
  return nullptr;
}

template <class T>
void multiply(const GemmArgs& args) {
  const Strides a = strides_of(args.transA, args.A.ld);
  const Strides b = strides_of(args.transB, args.B.ld);
  for (std::int64_t batch = 0; batch < args.batch; ++batch) {
    const T* A = static_cast<const T*>(args.A.at(batch, sizeof(T)));
    const T* B = static_cast<const T*>(args.B.at(batch, sizeof(T)));
    T* C = static_cast<T*>(args.C.at(batch, sizeof(T)));
    for (std::int64_t i = 0; i < args.m; ++i) {
      for (std::int64_t j = 0; j < args.n; ++j) {
        T sum = 0;
        for (std::int64_t p = 0; p < args.k; ++p)
          sum += A[i * a.row + p * a.col] * B[p * b.row + j * b.col];
        T& c = C[i * args.C.ld + j];
        c = T(args.alpha.re) * sum + (args.beta.re == 0 ? T(0) : T(args.beta.re) * c);
      }
    }
  }
}

void run(const GemmArgs& args, Queue&) {
  args.in == DType::f32 ? multiply<float>(args) : multiply<double>(args);
}

class ReferenceBackend : public mblas::Backend {
 public:
  std::string_view name() const override { return "reference"; }

  std::span<const mblas::Kernel<GemmArgs>> gemm_kernels() const override {
    static constexpr std::array<mblas::Kernel<GemmArgs>, 1> kernels = {
        {{"naive", "one element of C at a time", declines, nullptr, run}}};
    return kernels;
  }
};

}  // namespace

std::unique_ptr<mblas::Backend> make_reference_backend() {
  return std::make_unique<ReferenceBackend>();
}
