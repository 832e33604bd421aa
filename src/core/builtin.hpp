// The library's own backends: what registry.cpp lists.
#pragma once

#include <memory>

#include "mblas/backend.hpp"

namespace mblas {
std::unique_ptr<Backend> make_openmp_backend();
std::unique_ptr<Backend> make_eigen_backend();
std::unique_ptr<Backend> make_cuda_backend();
std::unique_ptr<Backend> make_cublas_backend();
}  // namespace mblas
