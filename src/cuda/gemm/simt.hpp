// simt as the one that does what another kernel finds, on the device, that it must not.
#pragma once

#include "cuda/gemm/gemm.cuh"

namespace mblas::cuda::gemm {

/// Its own estimate of its time.
double simt_microseconds(const GemmArgs& args, const DeviceInfo& device);

/// That estimate for one of many calls, whose launches overlap, as within graphs: for rows whose
/// own estimates are of those.
double simt_microseconds_of_many(DType in, double microseconds);

/// Computes `args`, whose operands are these, where the word at `where` on the device is not 0: by
/// one kernel, without workspace.
void run_simt_where(const unsigned* where, const DeviceInput& A, const DeviceInput& B,
                    const DeviceOutput& C, const GemmArgs& args, const CudaQueue& queue);

}  // namespace mblas::cuda::gemm
