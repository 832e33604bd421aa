// The library inside a program that uses the CUDA runtime itself: its streams, graphs, memory,
// current device and pending errors stay the program's.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <complex>
#include <cstdint>
#include <cstring>
#include <thread>
#include <utility>
#include <vector>

#include "device_array.hpp"
#include "mblas/mblas.hpp"
#include "support.hpp"

namespace mblas::testing {
namespace {

using Floats = DeviceArray<float>;

std::vector<float> ramp(std::size_t size, int step) {
  std::vector<float> values(size);
  for (std::size_t i = 0; i < size; ++i) values[i] = float(int(i * std::size_t(step) % 17) - 8);
  return values;
}

class CudaRuntime : public ::testing::TestWithParam<std::string> {
 protected:
  static constexpr int n = 48;
  void SetUp() override {
    if (const std::string& reason = find_backend(GetParam()).unavailable(); !reason.empty())
      GTEST_SKIP() << reason;
  }
  static std::vector<float> product(const std::vector<float>& a, const std::vector<float>& b) {
    std::vector<float> c(n * n);  // exact: small integers
    for (int i = 0; i < n; ++i)
      for (int p = 0; p < n; ++p)
        for (int j = 0; j < n; ++j) c[i * n + j] += a[i * n + p] * b[p * n + j];
    return c;
  }
  const std::vector<float> a = ramp(n * n, 5), b = ramp(n * n, 3);
  const std::vector<float> zero = std::vector<float>(n * n), want = product(a, b);
};

TEST_P(CudaRuntime, WorksOnTheProgramsStream) {
  Floats A(a), B(b), C(zero);
  cudaStream_t streams[2];
  Context context(GetParam());
  for (cudaStream_t& stream : streams) {
    ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
    C.set(zero);
    context.set_stream(stream);
    gemm(context, R, N, N, n, n, n, 1.f, A.get(), n, B.get(), n, 0.f, C.get(), n);
    ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    EXPECT_EQ(C.fetch(), want);
  }
  context.set_stream(nullptr);
  for (cudaStream_t stream : streams) EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
  gemm(context, R, N, N, n, n, n, 2.f, A.get(), n, B.get(), n, -2.f, C.get(), n);
  EXPECT_EQ(C.fetch(), zero);
}

// Few pointers travel otherwise than many.
TEST_P(CudaRuntime, PointerArraysAreFreeAtOnceAndNobodyWaits) {
  cudaStream_t stream;
  ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  Context context(GetParam());
  context.set_stream(stream);
  Floats A(a), B(b);
  for (const int batch : {100, 600, 10000}) {
    Floats C(std::vector<float>(std::size_t(batch) * n * n));
    std::vector<const float*> as, bs;
    std::vector<float*> cs;
    std::atomic<bool> released = false;
    for (const bool held : {false, true}) {  // the workspace grows before
      as.assign(std::size_t(batch), A.get());
      bs.assign(std::size_t(batch), B.get());
      cs.clear();
      for (int i = 0; i < batch; ++i) cs.push_back(C.get() + std::size_t(i) * n * n);
      if (held) {
        const auto hold = [](void* flag) {
          std::this_thread::sleep_for(std::chrono::milliseconds(200));
          *static_cast<std::atomic<bool>*>(flag) = true;
        };
        ASSERT_EQ(cudaLaunchHostFunc(stream, hold, &released), cudaSuccess);
      }
      gemm_batched(context, R, N, N, n, n, n, 1.f, as, n, bs, n, 1.f, cs, n);
    }
    EXPECT_FALSE(released) << batch;
    std::ranges::fill(as, nullptr);
    std::ranges::fill(bs, nullptr);
    std::ranges::fill(cs, nullptr);
    ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    const std::vector<float> got = C.fetch();
    int wrong = 0;
    for (std::size_t i = 0; i < got.size(); ++i) wrong += got[i] != 2 * want[i % (n * n)];
    EXPECT_EQ(wrong, 0) << batch;
  }
  context.set_stream(nullptr);
  cudaStreamDestroy(stream);
}

// A batch of pointers needs workspace and an array of pointers on the device: both must survive in
// the graph.
TEST_P(CudaRuntime, CallsAreCapturedIntoAGraph) {
  constexpr int kBatch = 600;
  Floats A(a), B(b);
  std::vector<float> zeros(std::size_t(kBatch) * n * n);
  Floats C(zeros);
  cudaStream_t stream;
  ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  Context context(GetParam());
  context.set_stream(stream);
  const auto call = [&] {
    std::vector<const float*> as(kBatch, A.get()), bs(kBatch, B.get());
    std::vector<float*> cs;
    for (int i = 0; i < kBatch; ++i) cs.push_back(C.get() + std::size_t(i) * n * n);
    gemm_batched(context, R, N, N, n, n, n, 1.f, as, n, bs, n, 1.f, cs, n);
  };
  call();  // the workspace grows now
  ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  C.set(zeros);

  cudaGraph_t graph;
  cudaGraphExec_t executable;
  ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), cudaSuccess);
  call();
  ASSERT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
  ASSERT_EQ(cudaGraphInstantiate(&executable, graph, 0), cudaSuccess);
  EXPECT_EQ(C.fetch(), zeros) << "capturing ran the call";
  // What the context does afterwards may not take the graph's workspace away.
  Floats big(std::vector<float>(512 * 300));
  const Status grown = try_transpose_inplace(context, R, 512, 300, big.get(), 300, 512);
  EXPECT_EQ(grown, GetParam() == "cuda" ? Status::Ok : Status::NotSupported);
  ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  context.set_stream(nullptr);
  call();
  ASSERT_EQ(cudaStreamSynchronize(nullptr), cudaSuccess);
  C.set(zeros);
  for (int replay = 1; replay <= 2; ++replay) {
    ASSERT_EQ(cudaGraphLaunch(executable, stream), cudaSuccess);
    ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    const std::vector<float> got = C.fetch();
    int wrong = 0;
    for (std::size_t i = 0; i < got.size(); ++i)
      wrong += got[i] != float(replay) * want[i % (n * n)];
    EXPECT_EQ(wrong, 0) << "replay " << replay;
  }
  cudaGraphExecDestroy(executable);
  cudaGraphDestroy(graph);
  context.set_stream(nullptr);
  cudaStreamDestroy(stream);
}

TEST_P(CudaRuntime, WhatCannotBeCapturedIsAnErrorAndTheContextLivesOn) {
  Floats A(a), B(b), C(zero);
  cudaStream_t stream;
  ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  Context context(GetParam());
  context.set_stream(stream);
  gemm(context, R, N, N, n, n, n, 1.f, A.get(), n, B.get(), n, 0.f, C.get(), n);
  ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  std::vector<float> host = zero;
  cudaGraph_t graph;
  ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed), cudaSuccess);
  expect_throws(Status::NotSupported, {"host memory", "captured"}, [&] {
    gemm(context, R, N, N, n, n, n, 1.f, a.data(), n, b.data(), n, 0.f, host.data(), n);
  });
  ASSERT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
  EXPECT_EQ(host, zero);
  gemm(context, R, N, N, n, n, n, 1.f, a.data(), n, b.data(), n, 0.f, host.data(), n);
  EXPECT_EQ(host, want);
  cudaGraphDestroy(graph);
  context.set_stream(nullptr);
  cudaStreamDestroy(stream);
}

TEST_P(CudaRuntime, ManagedMemoryGoesWithEitherSide) {
  int concurrent = 0;
  ASSERT_EQ(cudaDeviceGetAttribute(&concurrent, cudaDevAttrConcurrentManagedAccess, 0),
            cudaSuccess);
  if (!concurrent) GTEST_SKIP() << "no concurrent access to managed memory";
  Floats A(a, true), B(b), C(zero, true);
  Context context(GetParam());
  gemm(context, R, N, N, n, n, n, 1.f, A.get(), n, B.get(), n, 0.f, C.get(), n);
  context.synchronize();
  EXPECT_EQ(C.fetch(), want);
  C.set(zero);
  Context cpu("openmp");
  gemm(cpu, R, N, N, n, n, n, 1.f, A.get(), n, b.data(), n, 0.f, C.get(), n);
  EXPECT_EQ(C.fetch(), want);
}

TEST_P(CudaRuntime, OutOfDeviceMemoryIsNamedAndPasses) {
  Context context(GetParam());
  std::size_t available = 0, total = 0;
  ASSERT_EQ(cudaMemGetInfo(&available, &total), cudaSuccess);
  if (available < (std::size_t{4} << 30)) GTEST_SKIP() << "the device is in use";
  Floats A(a), B(b), C(zero);
  gemm(context, R, N, N, n, n, n, 1.f, A.get(), n, B.get(), n, 0.f, C.get(), n);  // libraries load
  const std::size_t side = 9001;
  Floats matrix(std::vector<float>(side * (side + 1)));
  std::vector<void*> hoard;
  for (std::size_t piece = std::size_t{8} << 30; piece >= (std::size_t{1} << 20);) {
    void* p = nullptr;
    if (cudaMalloc(&p, piece) == cudaSuccess)
      hoard.push_back(p);
    else
      piece /= 2;
  }
  cudaGetLastError();
  // A row that wants a workspace of the matrix's size cannot have it; one without may take over.
  context.set_kernel("transpose_inplace=buffered");
  if (GetParam() == "cuda")
    expect_throws(Status::OutOfMemory, {"transpose_inplace", "buffered", "memory"}, [&] {
      transpose_inplace(context, R, std::int64_t(side), std::int64_t(side) + 1, matrix.get(),
                        std::int64_t(side) + 1, std::int64_t(side));
    });
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  for (void* p : hoard) cudaFree(p);
  context.set_kernel("");
  C.set(zero);
  gemm(context, R, N, N, n, n, n, 1.f, A.get(), n, B.get(), n, 0.f, C.get(), n);
  EXPECT_EQ(C.fetch(), want);
}

TEST_P(CudaRuntime, LeavesDeviceAndErrorsAlone) {
  Context context(GetParam());
  Floats A(a), B(b), C(zero);
  int before = -1, after = -1;
  ASSERT_EQ(cudaGetDevice(&before), cudaSuccess);
  gemm(context, R, N, N, n, n, n, 1.f, A.get(), n, B.get(), n, 0.f, C.get(), n);
  EXPECT_EQ(try_gemm(context, R, N, N, n, n, n, 1.f, A.get(), 1, B.get(), n, 0.f, C.get(), n),
            Status::InvalidArgument);
  ASSERT_EQ(cudaGetDevice(&after), cudaSuccess);
  EXPECT_EQ(before, after);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  EXPECT_EQ(C.fetch(), want);
}

TEST_P(CudaRuntime, UsesWorkspaceOfTheCallers) {
  constexpr int kBatch = 3;
  Floats A(a), B(b), C(std::vector<float>(kBatch * n * n));
  Floats room(std::vector<float>(std::size_t{48} << 18));
  const std::vector<const float*> as(kBatch, A.get()), bs(kBatch, B.get());
  const std::vector<float*> cs = {C.get(), C.get() + n * n, C.get() + 2 * n * n};
  Context context(GetParam());
  const std::size_t before = find_backend(GetParam()).make_queue({})->memory_free();
  context.set_workspace(room.get(), std::size_t{48} << 20);
  gemm_batched(context, R, N, N, n, n, n, 1.f, as, n, bs, n, 0.f, cs, n);
  EXPECT_GT(context.last_dispatch().workspace_bytes, 0u);
  EXPECT_EQ(C.fetch()[2 * n * n + 5], want[5]);
  EXPECT_GE(find_backend(GetParam()).make_queue({})->memory_free() + (std::size_t{64} << 20),
            before);
}

// std::complex asks for the alignment of its parts: operands may lie between multiples of their
// elements' size.
template <class Real>
void multiply_between_multiples(Context& context, Op op, int m, int n, int k, bool all) {
  using T = std::complex<Real>;
  const int ldc = n + 1, shift = all ? 1 : 0;
  const auto parts = [](int count, int step) {  // small integers: products are exact
    std::vector<Real> values(std::size_t(2 * count + 2));
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = Real(int(i * std::size_t(step) % 17) - 8);
    return values;
  };
  const std::vector<Real> a = parts(m * k, 5), b = parts(k * n, 3), c = parts(m * ldc, 7);
  const auto at = [](const std::vector<Real>& x, int part, int element) {
    return T(x[std::size_t(part + 2 * element)], x[std::size_t(part + 2 * element + 1)]);
  };
  std::vector<Real> want = c;
  for (int i = 0; i < m; ++i)
    for (int j = 0; j < n; ++j) {
      T sum = {};
      for (int p = 0; p < k; ++p)
        sum += (op == Op::NoTrans ? at(a, shift, i * k + p) : std::conj(at(a, shift, p * m + i))) *
               at(b, shift, p * n + j);
      const T x = T(0, 2) * sum - at(c, 1, i * ldc + j);
      want[std::size_t(1 + 2 * (i * ldc + j))] = x.real();
      want[std::size_t(2 + 2 * (i * ldc + j))] = x.imag();
    }
  DeviceArray<Real> A(a), B(b), C(c);
  const auto elements = [](const DeviceArray<Real>& x, int part) {
    return reinterpret_cast<T*>(x.get() + part);
  };
  gemm(context, R, op, N, m, n, k, T(0, 2), elements(A, shift), op == Op::NoTrans ? k : m,
       elements(B, shift), n, T(-1), elements(C, 1), ldc);
  EXPECT_EQ(C.fetch(), want) << sizeof(T) << " bytes, " << m << "x" << n << "x" << k << " "
                             << context.last_dispatch().kernel;
}

TEST_P(CudaRuntime, ComplexNumbersBetweenMultiplesOfTheirSize) {
  if (GetParam() != "cuda") GTEST_SKIP() << "cuBLAS wants whole elements";
  for (const bool all : {false, true})
    for (const Op op : {Op::NoTrans, Op::ConjTrans})
      for (const auto& [m, n, k] : {std::array{5, 3, 4}, std::array{33, 47, 20},
                                    std::array{70, 40, 48}, std::array{150, 130, 200}}) {
        Context context(GetParam());
        multiply_between_multiples<float>(context, op, m, n, k, all);
        multiply_between_multiples<double>(context, op, m, n, k, all);
      }
}

TEST(CudaModes, TF32IsOptInAndWithinItsBound) {
  if (const std::string& reason = find_backend("cublas").unavailable(); !reason.empty())
    GTEST_SKIP() << reason;
  constexpr int size = 512;
  Context context("cublas");
  std::vector<float> x(size * size), y(size * size), c(size * size), d(size * size);
  for (std::size_t i = 0; i < x.size(); ++i) {
    x[i] = std::sin(float(i));
    y[i] = std::cos(float(i) * 1.7f);
  }
  const auto call = [&](Compute compute, std::vector<float>& out) {
    gemm(context, R, N, N, size, size, size, 1.f, x.data(), size, y.data(), size, 0.f, out.data(),
         size, {.compute = compute});
    EXPECT_EQ(context.last_dispatch().compute, compute);
  };
  call(Compute::Default, c);
  call(Compute::TF32, d);
  double difference = 0;
  for (int i = 0; i < size; ++i)
    for (int j = 0; j < size; ++j) {
      double value = 0, magnitude = 0;
      for (int p = 0; p < size; ++p) {
        const double term = double(x[std::size_t(i * size + p)]) * y[std::size_t(p * size + j)];
        value += term;
        magnitude += std::abs(term);
      }
      const auto at = std::size_t(i * size + j);
      const auto bound = [&](Compute compute) {
        return gemm_bound(DType::f32, DType::f32, size, magnitude, std::abs(value), compute);
      };
      ASSERT_TRUE(std::abs(c[at] - value) <= bound(Compute::Default));
      ASSERT_TRUE(std::abs(d[at] - value) <= bound(Compute::TF32));
      difference = std::max(difference, std::abs(double(c[at]) - double(d[at])));
    }
  EXPECT_GT(difference, 1e-5) << "the default used TF32 too, or TF32 did not";
}

// Kernels may start before the ones whose results they read are done. Each round changes the sign,
// so that what is left of an earlier one is wrong.
TEST(CudaLaunches, EachCallSeesTheResultsOfTheOneBefore) {
  if (const std::string& reason = find_backend("cuda").unavailable(); !reason.empty())
    GTEST_SKIP() << reason;
  // Tiles of vectors, tiles of elements, few rows, few columns, squares, what fits shared memory.
  constexpr std::pair<int, int> kShapes[] = {{1504, 1008}, {1501, 1003}, {5, 40000},
                                             {40000, 5},   {1200, 1200}, {40, 60}};
  constexpr int kRounds = 15;
  for (const auto& [rows, cols] : kShapes) {
    const std::vector<float> start = ramp(std::size_t(rows) * std::size_t(cols), 7);
    Floats X(start), Y(start), Z(start);
    Context context("cuda");
    for (int round = 0; round < kRounds; ++round) {
      geam(context, R, N, N, rows, cols, -1.f, X.get(), cols, 0.f, X.get(), cols, Z.get(), cols);
      transpose(context, R, rows, cols, Z.get(), cols, Y.get(), rows);
      if (round % 2 == 0) {
        geam(context, R, Op::Trans, N, rows, cols, 1.f, Y.get(), rows, 0.f, Y.get(), cols, X.get(),
             cols);
      } else {
        transpose_inplace(context, R, cols, rows, Y.get(), rows, cols);
        geam(context, R, N, N, rows, cols, 1.f, Y.get(), cols, 0.f, Y.get(), cols, X.get(), cols);
      }
    }
    context.synchronize();
    const std::vector<float> got = X.fetch();
    std::int64_t wrong = 0;
    for (std::size_t i = 0; i < got.size(); ++i) wrong += got[i] != -start[i];
    EXPECT_EQ(wrong, 0) << rows << "x" << cols;
  }
}

/// f() on `stream`, at once or as a graph; true: without an error.
bool run_on(cudaStream_t stream, bool captured, const auto& f) {
  if (!captured) {
    f();
    return cudaStreamSynchronize(stream) == cudaSuccess;
  }
  cudaGraph_t graph;
  cudaGraphExec_t executable;
  if (cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal) != cudaSuccess) return false;
  f();
  if (cudaStreamEndCapture(stream, &graph) != cudaSuccess) return false;
  const bool well = cudaGraphInstantiate(&executable, graph, 0) == cudaSuccess &&
                    cudaGraphLaunch(executable, stream) == cudaSuccess &&
                    cudaStreamSynchronize(stream) == cudaSuccess &&
                    cudaGraphExecDestroy(executable) == cudaSuccess;
  return cudaGraphDestroy(graph) == cudaSuccess && well;
}

/// Products with a matrix that moves columns, each of the result of the one before.
template <class T>
void chain_of_products(int m, int n, bool captured) {
  constexpr int kProducts = 24;
  const auto at = [n](int row, int col) {
    return std::size_t(row) * std::size_t(n) + std::size_t(col);
  };
  std::vector<T> start(std::size_t(m) * std::size_t(n)), moves(std::size_t(n) * std::size_t(n));
  for (int i = 0; i < m; ++i)
    for (int j = 0; j < n; ++j) start[at(i, j)] = T(float((i * 31 + j * 7) % 101));
  for (int j = 0; j < n; ++j) moves[at(j, (j + 1) % n)] = T(1.f);
  DeviceArray<T> a(start), b(start), c(start), B(moves);
  const std::size_t bytes = start.size() * sizeof(T);
  cudaStream_t stream;
  ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  Context context("cuda");
  context.set_stream(stream);
  const auto call = [&](const T* from, T* to) {
    gemm(context, R, N, N, m, n, n, scalar_t<T, T>(1), from, n, B.get(), n, scalar_t<T, T>(0), to,
         n);
  };
  call(a.get(), c.get());  // the workspace grows now
  ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  T *from = a.get(), *to = b.get();
  const bool well = run_on(stream, captured, [&] {
    for (int i = 0; i < kProducts; ++i, std::swap(from, to)) {
      call(from, to);
      // What is not a kernel may come between.
      if (i == kProducts / 3) {
        EXPECT_EQ(cudaMemcpyAsync(c.get(), to, bytes, cudaMemcpyDeviceToDevice, stream),
                  cudaSuccess);
        EXPECT_EQ(cudaMemsetAsync(to, 0x7f, bytes, stream), cudaSuccess);
        to = c.get();
      }
    }
  });
  EXPECT_TRUE(well);
  std::vector<T> got(start.size());
  ASSERT_EQ(cudaMemcpy(got.data(), from, bytes, cudaMemcpyDefault), cudaSuccess);
  std::int64_t wrong = 0;
  for (int i = 0; i < m; ++i)
    for (int j = 0; j < n; ++j) {
      const T want = start[at(i, j)];
      wrong += std::memcmp(&got[at(i, (j + kProducts) % n)], &want, sizeof(T)) != 0;
    }
  EXPECT_EQ(wrong, 0) << m << "x" << n << (captured ? " in a graph, " : ", ") << name_of(dtype_v<T>)
                      << ", " << context.last_dispatch().kernel;
}

TEST(CudaLaunches, ProductsSeeTheResultsOfTheOneBefore) {
  if (const std::string& reason = find_backend("cuda").unavailable(); !reason.empty())
    GTEST_SKIP() << reason;
  constexpr std::pair<int, int> kShapes[] = {{8, 8},     {33, 37},    {64, 64},   {512, 512},
                                             {1, 1000},  {24, 1504},  {1504, 24}, {300, 1000},
                                             {700, 700}, {2000, 2000}};
  for (const auto& [m, n] : kShapes)
    for (const bool captured : {false, true}) {
      chain_of_products<float>(m, n, captured);
      chain_of_products<double>(m, n, captured);
      chain_of_products<bfloat16>(m, n, captured);
      chain_of_products<std::complex<float>>(m, n, captured);
      chain_of_products<std::complex<double>>(m, n, captured);
    }
}

std::vector<std::string> device_backends() {
  std::vector<std::string> names;
  for (const char* name : {"cuda", "cublas"})
    for (Backend* backend : backends())
      if (backend->name() == name) names.emplace_back(name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(Backends, CudaRuntime, ::testing::ValuesIn(device_backends()),
                         [](const auto& tested) { return tested.param; });

}  // namespace
}  // namespace mblas::testing
