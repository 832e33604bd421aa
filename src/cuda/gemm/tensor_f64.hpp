// tensor_f64 as the one to which other kernels leave what they take longer for, and as the one that
// does what another kernel finds, on the device, that it must not.
#pragma once

#include "cuda/gemm/gemm.cuh"

namespace mblas::cuda::gemm {

inline constexpr double kTensorF64CyclesPerMicrosecond = 1980;

/// Its own estimate of its time, in cycles; `args` has no configuration.
double tensor_f64_cycles(const GemmArgs& args, const DeviceInfo& device);

/// The same of tensor_f64_tma; infinite where it does not take the call.
double tensor_f64_tma_cycles(const GemmArgs& args, const DeviceInfo& device);

/// Bytes of workspace of run_tensor_f64_where(); `args` is one product of doubles.
std::size_t tensor_f64_where_bytes(const GemmArgs& args, const DeviceInfo& device);

/// Computes `args` where the word at `where`, on the device, is not 0.
void run_tensor_f64_where(const unsigned* where, const GemmArgs& args, std::byte* workspace,
                          const CudaQueue& queue);

}  // namespace mblas::cuda::gemm
