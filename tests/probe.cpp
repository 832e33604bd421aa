// Makes calls on a default context and says what became of them: the environment tests run it as a
// child. Arguments name the calls, in order.
#include <sys/resource.h>

#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "example_backend.hpp"
#include "fake_device.hpp"
#include "mblas/mblas.hpp"

namespace {

using namespace mblas;

constexpr auto R = Layout::RowMajor;
constexpr auto N = Op::NoTrans;
constexpr std::int64_t kSide = 48;

int threads_seen = 0;

/// Adds one to an element of what is right, and remembers the thread count that it was given.
class WrongBackend final : public Backend {
 public:
  std::string_view name() const override { return "wrong"; }
  std::span<const Kernel<GemmArgs>> gemm_kernels() const override {
    static constexpr Kernel<GemmArgs> table[] = {
        {"wrong", "", [](const GemmArgs&, const DeviceInfo&) -> const char* { return nullptr; },
         nullptr,
         [](const GemmArgs& g, Queue& queue) {
           threads_seen = queue.device().num_threads;
           Queue host{DeviceInfo{}};
           find_backend("openmp").gemm_kernels().back().run(g, host);
           static_cast<float*>(g.C.data)[g.C.ld + 3] += 1;
         }}};
    return table;
  }
};

template <class F>
void report(std::string_view what, F&& f) {
  try {
    f();
    const Dispatch& d = default_context().last_dispatch();
    std::string kernel(d.kernel);
    if (!d.config.empty()) kernel.append(":").append(d.config);
    std::printf("%s: ok %s/%s %s%s\n", std::string(what).c_str(), std::string(d.backend).c_str(),
                kernel.c_str(), std::string(name_of(d.compute)).c_str(), d.tuned ? " tuned" : "");
  } catch (const Error& e) {
    std::printf("%s: %s: %s\n", std::string(what).c_str(), std::string(name_of(e.status())).c_str(),
                e.what());
  }
}

void multiply(std::int64_t side = kSide) {
  const std::size_t size = std::size_t(side * side);
  std::vector<float> A(size, 0.5f), B(size, 0.25f), C(size, 1);
  gemm(R, N, Op::Trans, side, side, side, 2, A.data(), side, B.data(), side, 0.5f, C.data(), side);
}

void call(std::string_view what) {
  std::vector<float> a(32, 1), b(32, 2), c(32, 3);
  std::vector<std::uint8_t> bytes(64, 7), more(64);
  if (what == "gemm") return multiply();
  if (what == "gemm1") {  // a batch of complex products behind pointers
    using Complex = std::complex<double>;
    std::vector<Complex> x(8, {1, 2}), y(8);
    const std::vector<const Complex*> in{x.data(), x.data() + 4};
    const std::vector<Complex*> out{y.data(), y.data() + 4};
    return gemm_batched(Layout::ColMajor, Op::ConjTrans, N, 2, 2, 2, Complex(1, -1), in, 2, in, 2,
                        Complex(0.5, 0), out, 2);
  }
  if (what == "gemm2")
    return gemm_strided_batched(R, Op::Trans, N, 2, 3, 2, 1, a.data(), 3, 6, b.data(), 4, 0, 0,
                                c.data(), 3, 7, 3);
  if (what == "gemm3") {
    GemmOptions options;
    options.epilogue = {bias_per_column(b.data()), Activation::Gelu, 0.5};
    return gemm(Layout::ColMajor, N, N, 3, 4, 2, 1, a.data(), 3, a.data(), 2, 1, c.data(), 3,
                options);
  }
  if (what == "geam")
    return geam(R, N, Op::Trans, 3, 4, 1.5f, a.data(), 5, -1, b.data(), 3, c.data(), 4);
  if (what == "transpose") return transpose(R, 3, 4, a.data(), 4, c.data(), 3);
  if (what == "transpose_inplace") return transpose_inplace(R, 3, 5, a.data(), 5, 3);
  if (what == "gf256")
    return gf256::gemm(2, 9, 3, bytes.data(), 3, bytes.data() + 8, 9, more.data(), 10,
                       gf256::Options{.accumulate = true});
  if (what == "shards") {
    const std::vector<const std::uint8_t*> data{&bytes[0], &bytes[8], &bytes[16]};
    const std::vector<std::uint8_t*> parity{&more[0], &more[8]};
    return gf256::ReedSolomon(3, 2).encode(data, parity, 8);
  }
  if (what == "in_parallel") {
    bool ok = true;
#pragma omp parallel num_threads(2) reduction(&& : ok)
    {
      std::vector<float> mine(64, 1), to(64);
      ok = try_gemm(R, N, N, 8, 8, 8, 1, mine.data(), 8, mine.data(), 8, 0, to.data(), 8) ==
               Status::Ok &&
           to[63] == 8;
    }
    if (!ok) throw Error(Status::Internal, "a thread failed");
    return;
  }
  std::printf("no call '%s'\n", std::string(what).c_str());
}

/// Address space for little more than what is mapped now: the next large block is refused.
void starve() {
  std::size_t pages = 0;
  if (std::FILE* f = std::fopen("/proc/self/statm", "r")) {
    if (std::fscanf(f, "%zu", &pages) != 1) pages = 0;
    std::fclose(f);
  }
  const rlim_t bytes = rlim_t(pages) * 4096 + (1 << 20);
  const rlimit limit{bytes, bytes};
  setrlimit(RLIMIT_AS, &limit);
}

}  // namespace

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view what = argv[i];
    if (what == "register:reference") {
      register_backend(make_reference_backend());
    } else if (what == "register:wrong") {
      register_backend(std::make_unique<WrongBackend>());
    } else if (what == "register:fake") {
      testing::fake_backend();
    } else if (what == "describe") {
      report("describe", [] { default_context(); });
      std::printf("%s\n", find_backend("openmp").describe().c_str());
    } else if (what == "threads") {
      std::printf("threads %d\n", threads_seen);
    } else if (what == "set_backend:openmp") {
      report(what, [] { default_context().set_backend("openmp"); });
    } else if (what == "try") {
      const Status status =
          try_gemm(R, N, N, 0, 0, 0, 1, static_cast<float*>(nullptr), 1,
                   static_cast<float*>(nullptr), 1, 0, static_cast<float*>(nullptr), 1);
      std::printf("try: %s\n", std::string(name_of(status)).c_str());
    } else if (what == "starve") {
      // Operands first; then a kernel's workspace finds no memory, or the call does without.
      const std::int64_t side = 700;
      const std::size_t size = std::size_t(side * side);
      std::vector<float> A(size, 1), B(size, 1), C(size, 5);
      Context context("openmp");
      starve();
      Status status = Status::Ok;
      // In place, a rectangle: the forced kernel's buffer is as large as the matrix.
      for (const auto& kernel : find_backend("openmp").transpose_inplace_kernels()) {
        if (!kernel.workspace) continue;
        context.set_kernel("transpose_inplace=" + std::string(kernel.name));
        status = try_transpose_inplace(context, R, side, side - 1, C.data(), side - 1, side);
      }
      bool unchanged = true;
      for (const float x : C) unchanged = unchanged && x == 5;
      std::printf("starve: %s: %s%s\n", std::string(name_of(status)).c_str(),
                  std::string(context.last_error()).c_str(), unchanged ? "" : " CHANGED");
      context.set_kernel("");
      std::printf("afterwards: %s\n",
                  std::string(name_of(try_transpose_inplace(context, R, side, side - 1, C.data(),
                                                            side - 1, side)))
                      .c_str());
    } else {
      report(what, [&] { call(what); });
    }
  }
}
