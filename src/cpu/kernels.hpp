// The kernels of the openmp backend: <operation>_<technique>, in <operation>/<technique>.cpp.
// Tables and reasons to decline are in openmp_backend.cpp.
#pragma once

#include <cstddef>

#include "mblas/backend.hpp"

namespace mblas::cpu {

const char* gemm_small_declines(const GemmArgs& args, const DeviceInfo& device);
void gemm_small(const GemmArgs& args, Queue& queue);
bool gemm_small_immediate(const GemmArgs& args);
const char* gemm_thin_declines(const GemmArgs& args, const DeviceInfo& device);
std::size_t gemm_thin_workspace(const GemmArgs& args, const DeviceInfo& device);
void gemm_thin(const GemmArgs& args, Queue& queue);
const char* gemm_split_declines(const GemmArgs& args, const DeviceInfo& device);
std::size_t gemm_split_workspace(const GemmArgs& args, const DeviceInfo& device);
void gemm_split(const GemmArgs& args, Queue& queue);
const char* gemm_packed_declines(const GemmArgs& args, const DeviceInfo& device);
std::size_t gemm_packed_workspace(const GemmArgs& args, const DeviceInfo& device);
void gemm_packed(const GemmArgs& args, Queue& queue);
const char* gemm_amx_declines(const GemmArgs& args, const DeviceInfo& device);
const char* gemm_bf16x6_declines(const GemmArgs& args, const DeviceInfo& device);
std::size_t gemm_amx_workspace(const GemmArgs& args, const DeviceInfo& device);
void gemm_amx(const GemmArgs& args, Queue& queue);
const char* gemm_dot_declines(const GemmArgs& args, const DeviceInfo& device);
std::size_t gemm_dot_workspace(const GemmArgs& args, const DeviceInfo& device);
void gemm_dot(const GemmArgs& args, Queue& queue);
std::size_t gemm_blocked_workspace(const GemmArgs& args, const DeviceInfo& device);
void gemm_blocked(const GemmArgs& args, Queue& queue);
void gemm_naive(const GemmArgs& args, Queue& queue);
/// The pass over C after rows that do not fuse an epilogue.
void gemm_finish(const FinishArgs& args, Queue& queue);
/// For rows that do: of rows×cols elements of a matrix of C, from (i, j) on, while they are in a
/// cache. S: of type `in`, the products without beta C, of int8 without alpha; null: C has what the
/// epilogue is for.
void gemm_finish_block(const GemmArgs& args, DType in, const void* S, std::int64_t lds,
                       std::int64_t batch, std::int64_t i, std::int64_t j, std::int64_t rows,
                       std::int64_t cols);
inline void gemm_finish_block(const GemmArgs& args, std::int64_t batch, std::int64_t i,
                              std::int64_t j, std::int64_t rows, std::int64_t cols) {
  gemm_finish_block(args, args.out, nullptr, 0, batch, i, j, rows, cols);
}
/// The same with S having sums of the type that accumulates, without alpha.
void gemm_finish_sums(const GemmArgs& args, const void* S, std::int64_t lds, std::int64_t batch,
                      std::int64_t i, std::int64_t j, std::int64_t rows, std::int64_t cols);
/// Is nothing lost where the epilogue begins with elements of C?
inline bool gemm_fuses_in_place(const GemmArgs& args) {
  return size_of(args.out) >= 4 && args.in != DType::i8;
}

const char* geam_streamed_declines(const GeamArgs& args, const DeviceInfo& device);
std::size_t geam_streamed_workspace(const GeamArgs& args, const DeviceInfo& device);
void geam_streamed(const GeamArgs& args, Queue& queue);
void geam_blocked(const GeamArgs& args, Queue& queue);
void geam_naive(const GeamArgs& args, Queue& queue);

const char* transpose_cached_declines(const TransposeArgs& args, const DeviceInfo& device);
void transpose_cached(const TransposeArgs& args, Queue& queue);
std::size_t transpose_streamed_workspace(const TransposeArgs& args, const DeviceInfo& device);
void transpose_streamed(const TransposeArgs& args, Queue& queue);
void transpose_blocked(const TransposeArgs& args, Queue& queue);
void transpose_naive(const TransposeArgs& args, Queue& queue);

const char* transpose_inplace_streamed_declines(const TransposeInplaceArgs& args,
                                                const DeviceInfo& device);
std::size_t transpose_inplace_streamed_workspace(const TransposeInplaceArgs& args,
                                                 const DeviceInfo& device);
void transpose_inplace_streamed(const TransposeInplaceArgs& args, Queue& queue);
const char* transpose_inplace_square_declines(const TransposeInplaceArgs& args,
                                              const DeviceInfo& device);
void transpose_inplace_square(const TransposeInplaceArgs& args, Queue& queue);
std::size_t transpose_inplace_buffered_workspace(const TransposeInplaceArgs& args,
                                                 const DeviceInfo& device);
void transpose_inplace_buffered(const TransposeInplaceArgs& args, Queue& queue);
const char* transpose_inplace_chunked_declines(const TransposeInplaceArgs& args,
                                               const DeviceInfo& device);
std::size_t transpose_inplace_chunked_workspace(const TransposeInplaceArgs& args,
                                                const DeviceInfo& device);
void transpose_inplace_chunked(const TransposeInplaceArgs& args, Queue& queue);
const char* transpose_inplace_trimmed_declines(const TransposeInplaceArgs& args,
                                               const DeviceInfo& device);
std::size_t transpose_inplace_trimmed_workspace(const TransposeInplaceArgs& args,
                                                const DeviceInfo& device);
void transpose_inplace_trimmed(const TransposeInplaceArgs& args, Queue& queue);
void transpose_inplace_cycle(const TransposeInplaceArgs& args, Queue& queue);

const char* gf256_affine_declines(const Gf256Args& args, const DeviceInfo& device);
std::size_t gf256_affine_workspace(const Gf256Args& args, const DeviceInfo& device);
void gf256_affine(const Gf256Args& args, Queue& queue);
bool gf256_affine_immediate(const Gf256Args& args);
std::size_t gf256_table_workspace(const Gf256Args& args, const DeviceInfo& device);
void gf256_table(const Gf256Args& args, Queue& queue);
void gf256_naive(const Gf256Args& args, Queue& queue);

}  // namespace mblas::cpu
