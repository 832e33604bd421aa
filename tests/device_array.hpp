// Elements in device memory, for tests that use the CUDA runtime themselves.
#pragma once

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <vector>

namespace mblas::testing {

/// Device or managed memory that holds `host`.
template <class T>
class DeviceArray {
 public:
  explicit DeviceArray(const std::vector<T>& host, bool managed = false) : size_(host.size()) {
    if (managed)
      EXPECT_EQ(cudaMallocManaged(&data_, bytes()), cudaSuccess);
    else
      EXPECT_EQ(cudaMalloc(&data_, bytes()), cudaSuccess);
    set(host);
  }
  ~DeviceArray() { cudaFree(data_); }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;

  T* get() const { return static_cast<T*>(data_); }
  void set(const std::vector<T>& host) {
    EXPECT_EQ(cudaMemcpy(data_, host.data(), bytes(), cudaMemcpyDefault), cudaSuccess);
  }
  std::vector<T> fetch() const {
    std::vector<T> host(size_);
    EXPECT_EQ(cudaMemcpy(host.data(), data_, bytes(), cudaMemcpyDefault), cudaSuccess);
    return host;
  }

 private:
  std::size_t bytes() const { return size_ * sizeof(T); }
  void* data_ = nullptr;
  std::size_t size_;
};

}  // namespace mblas::testing
