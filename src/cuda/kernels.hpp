// The kernels of the cuda backend: namespace is folder, function is file.
#pragma once

#include "mblas/backend.hpp"

namespace mblas::cuda {

namespace gemm {
Kernel<GemmArgs> tiny_warp();
Kernel<GemmArgs> tiny();
Kernel<GemmArgs> gemv();
Kernel<GemmArgs> thin_batch();
Kernel<GemmArgs> few_vectors();
Kernel<GemmArgs> thin();
Kernel<GemmArgs> thin_f64();
Kernel<GemmArgs> tall();
Kernel<GemmArgs> tall_mma();
Kernel<GemmArgs> short_k();
Kernel<GemmArgs> whole_batch();
Kernel<GemmArgs> tensor_batch();
Kernel<GemmArgs> fitted();
Kernel<GemmArgs> tensor_f64_tma();
Kernel<GemmArgs> tensor_f64();
Kernel<GemmArgs> tensor_wgmma();
Kernel<GemmArgs> fused_bf16x6();
Kernel<GemmArgs> tensor_bf16x6();
Kernel<GemmArgs> tensor_fp16x3();
Kernel<GemmArgs> tensor_ozaki();
Kernel<GemmArgs> tensor_mma();
Kernel<GemmArgs> simt();
Kernel<GemmArgs> simt_tma();
Kernel<GemmArgs> shared();
Kernel<GemmArgs> naive();
Kernel<GemmArgs> column();
/// Of tiles of `edge` rows and columns: 32, 16, 8, 4, 2 or 1.
Kernel<GemmArgs> padded(int edge);
Kernel<GemmArgs> square(int edge);
void finish(const FinishArgs& args, Queue& queue);
}  // namespace gemm

namespace geam {
Kernel<GeamArgs> direct();
Kernel<GeamArgs> vector();
Kernel<GeamArgs> sheared();
Kernel<GeamArgs> shared();
Kernel<GeamArgs> naive();
}  // namespace geam

namespace transpose {
Kernel<TransposeArgs> tiny();
Kernel<TransposeArgs> thin();
Kernel<TransposeArgs> vector();
Kernel<TransposeArgs> sheared();
Kernel<TransposeArgs> tall();
Kernel<TransposeArgs> double_buffered();
Kernel<TransposeArgs> swizzled();
Kernel<TransposeArgs> padded();
Kernel<TransposeArgs> shared();
Kernel<TransposeArgs> naive();
}  // namespace transpose

namespace transpose_inplace {
Kernel<TransposeInplaceArgs> square();
Kernel<TransposeInplaceArgs> tiny();
Kernel<TransposeInplaceArgs> buffered();
Kernel<TransposeInplaceArgs> cycle();
}  // namespace transpose_inplace

namespace gf256 {
Kernel<Gf256Args> permute();
Kernel<Gf256Args> tensor_mma();
Kernel<Gf256Args> tensor_b1();
Kernel<Gf256Args> shared();
Kernel<Gf256Args> tile();
Kernel<Gf256Args> tile_dynamic();
/// Of words of 8, 4 or 2 bytes.
Kernel<Gf256Args> words(int bytes);
Kernel<Gf256Args> square();
Kernel<Gf256Args> naive();
}  // namespace gf256

}  // namespace mblas::cuda
