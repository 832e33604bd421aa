// libcublas and libcublasLt, opened at run time: the program neither links nor needs them.
#pragma once

#include <cublasLt.h>
#include <cublas_v2.h>

#include <string>

namespace mblas::cuda {

/// The entry points that the backend calls.
#define MBLAS_CUBLAS_FUNCTIONS(f)                                                           \
  f(cublasCreate_v2) f(cublasDestroy_v2) f(cublasSetStream_v2) f(cublasSetWorkspace_v2)     \
      f(cublasSetMathMode) f(cublasGetProperty) f(cublasGetStatusString) f(cublasGemmEx_64) \
          f(cublasGemmStridedBatchedEx_64) f(cublasGemmBatchedEx_64) f(cublasSgeam_64)      \
              f(cublasDgeam_64) f(cublasCgeam_64) f(cublasZgeam_64)
#define MBLAS_CUBLASLT_FUNCTIONS(f)                                                              \
  f(cublasLtCreate) f(cublasLtMatmul) f(cublasLtMatmulAlgoConfigGetAttribute)                    \
      f(cublasLtMatmulAlgoGetHeuristic) f(cublasLtMatmulDescCreate) f(cublasLtMatmulDescDestroy) \
          f(cublasLtMatmulDescSetAttribute) f(cublasLtMatmulPreferenceCreate)                    \
              f(cublasLtMatmulPreferenceDestroy) f(cublasLtMatmulPreferenceSetAttribute)         \
                  f(cublasLtMatrixLayoutCreate) f(cublasLtMatrixLayoutDestroy)                   \
                      f(cublasLtMatrixLayoutSetAttribute) f(cublasLtMatrixTransform)             \
                          f(cublasLtMatrixTransformDescCreate)                                   \
                              f(cublasLtMatrixTransformDescDestroy)                              \
                                  f(cublasLtMatrixTransformDescSetAttribute)

struct CublasLibrary {
  std::string unavailable;    ///< empty, or why the functions below are null
  std::string path, version;  ///< of libcublas
#define MBLAS_DECLARE(name) decltype(&::name) name = nullptr;
  MBLAS_CUBLAS_FUNCTIONS(MBLAS_DECLARE)
  MBLAS_CUBLASLT_FUNCTIONS(MBLAS_DECLARE)
#undef MBLAS_DECLARE
};

/// The library, opened by the first call and kept until the process ends.
const CublasLibrary& cublas();

/// Throws what `status` means as an mblas::Error.
void cublas_check(cublasStatus_t status, const char* what);

}  // namespace mblas::cuda
