// The kernels of the openmp backend: <operation>_<technique>, in <operation>/<technique>.cpp.
// Tables and reasons to decline are in openmp_backend.cpp.
#pragma once

#include <cstddef>

#include "mblas/backend.hpp"

namespace mblas::cpu {

std::size_t gemm_blocked_workspace(const GemmArgs& args, const DeviceInfo& device);
void gemm_blocked(const GemmArgs& args, Queue& queue);
void gemm_naive(const GemmArgs& args, Queue& queue);

void geam_blocked(const GeamArgs& args, Queue& queue);
void geam_naive(const GeamArgs& args, Queue& queue);

void transpose_blocked(const TransposeArgs& args, Queue& queue);
void transpose_naive(const TransposeArgs& args, Queue& queue);

void transpose_inplace_square(const TransposeInplaceArgs& args, Queue& queue);
std::size_t transpose_inplace_buffered_workspace(const TransposeInplaceArgs& args,
                                                 const DeviceInfo& device);
void transpose_inplace_buffered(const TransposeInplaceArgs& args, Queue& queue);
void transpose_inplace_cycle(const TransposeInplaceArgs& args, Queue& queue);

std::size_t gf256_table_workspace(const Gf256Args& args, const DeviceInfo& device);
void gf256_table(const Gf256Args& args, Queue& queue);
void gf256_naive(const Gf256Args& args, Queue& queue);

}  // namespace mblas::cpu
