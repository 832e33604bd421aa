#include "fake_device.hpp"

#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

namespace mblas::testing {
namespace {

constexpr std::size_t kGuard = 256;
constexpr std::byte kFresh{0xff};  // NaN in every floating-point type
constexpr std::byte kGuardByte{0xa5};
constexpr std::align_val_t kAlignment{256};

/// Allocations by address; the pointers that are handed out lie between guards.
class Heap {
 public:
  void* add(std::size_t bytes) {
    auto* block = static_cast<std::byte*>(::operator new(bytes + 2 * kGuard, kAlignment));
    std::memset(block, int(kGuardByte), bytes + 2 * kGuard);
    std::memset(block + kGuard, int(kFresh), bytes);
    const std::lock_guard lock(mutex_);
    sizes_[block + kGuard] = bytes;
    used_ += bytes;
    return block + kGuard;
  }
  /// False where p is none, or the bytes around it were written.
  bool remove(void* p) {
    const std::lock_guard lock(mutex_);
    const auto found = sizes_.find(static_cast<std::byte*>(p));
    if (found == sizes_.end()) return false;
    const auto [at, bytes] = *found;
    sizes_.erase(found);
    used_ -= bytes;
    bool intact = true;
    for (std::size_t i = 0; i < kGuard; ++i)
      intact = intact && (at - kGuard)[i] == kGuardByte && (at + bytes)[i] == kGuardByte;
    ::operator delete(at - kGuard, kAlignment);
    return intact;
  }
  bool contains(const void* p, std::int64_t bytes) const {
    const auto* at = const_cast<std::byte*>(static_cast<const std::byte*>(p));
    const std::lock_guard lock(mutex_);
    auto next = sizes_.upper_bound(const_cast<std::byte*>(at));
    if (next == sizes_.begin()) return false;
    --next;
    return at + bytes <= next->first + next->second;
  }
  std::size_t used() const {
    const std::lock_guard lock(mutex_);
    return used_;
  }

 private:
  mutable std::mutex mutex_;
  std::map<std::byte*, std::size_t> sizes_;
  std::size_t used_ = 0;
};

Heap& heap() {
  static auto* all = new Heap;  // contexts of static duration may outlive main()
  return *all;
}

class FakeQueue final : public Queue {
 public:
  explicit FakeQueue(DeviceInfo device) : Queue(std::move(device)) {}
  ~FakeQueue() override { run_pending(); }

  void* allocate(std::size_t bytes) override {
    fake_device().at(Entry::Allocate);
    if (heap().used() + bytes > fake_device().capacity)
      throw Error(Status::OutOfMemory, "the fake device is full");
    ++fake_device().allocations;
    return heap().add(bytes);
  }
  void deallocate(void* p) noexcept override {
    run_pending();  // as cudaFree does
    if (!heap().remove(p)) fake_device().misuse("deallocate: a bad pointer or a broken guard");
  }
  std::size_t memory_free() const override {
    const std::size_t used = heap().used();
    return used < fake_device().capacity ? fake_device().capacity - used : 0;
  }
  void copy(const Copy2D& c, CopyKind kind) override {
    fake_device().at(Entry::Copy);
    const auto extent = [&](std::int64_t pitch) { return (c.rows - 1) * pitch + c.width; };
    const bool to_device = kind != CopyKind::DeviceToHost,
               from_device = kind != CopyKind::HostToDevice;
    check(c.dst, extent(c.dst_pitch), to_device, "destination of a copy");
    check(c.src, extent(c.src_pitch), from_device, "source of a copy");
    ++(to_device ? fake_device().copies_to_device : fake_device().copies_to_host);
    issue([this, c, kind] { Queue::copy(c, kind); });
  }
  bool capturing() const override { return fake_device().capturing; }
  void synchronize() override {
    run_pending();
    fake_device().at(Entry::Synchronize);
  }

  static void check(const void* p, std::int64_t bytes, bool on_device, const char* what) {
    if (on_device != heap().contains(p, on_device ? bytes : 0))
      fake_device().misuse(std::string(what) + " is not in " +
                           (on_device ? "device memory" : "host memory"));
  }
  void issue(std::function<void()> work) {
    pending_.push_back(std::move(work));
    if (!fake_device().lazy) run_pending();
  }

 private:
  void run_pending() {
    for (auto& work : std::exchange(pending_, {})) work();
  }

  std::vector<std::function<void()>> pending_;
};

/// f(operand, matrices, rows of each, columns, bytes of an element): what a kernel may touch.
template <class F>
void for_each_matrix(const GemmArgs& g, F&& f) {
  if (g.k > 0) {
    f(g.A, g.batch, is_transposed(g.transA) ? g.k : g.m, is_transposed(g.transA) ? g.m : g.k,
      size_of(g.in));
    f(g.B, g.batch, is_transposed(g.transB) ? g.n : g.k, is_transposed(g.transB) ? g.k : g.n,
      size_of(g.in));
  }
  f(g.C, g.batch, g.m, g.n, size_of(g.out));
}
template <class F>
void for_each_matrix(const GeamArgs& g, F&& f) {
  const auto input = [&](const Input& x, Op op) {
    f(x, g.batch, is_transposed(op) ? g.n : g.m, is_transposed(op) ? g.m : g.n, size_of(g.type));
  };
  if (g.alpha != Scalar{}) input(g.A, g.transA);
  if (g.beta != Scalar{}) input(g.B, g.transB);
  f(g.C, g.batch, g.m, g.n, size_of(g.type));
}
template <class F>
void for_each_matrix(const TransposeArgs& t, F&& f) {
  f(t.A, t.batch, t.m, t.n, size_of(t.type));
  f(t.B, t.batch, t.n, t.m, size_of(t.type));
}
template <class F>
void for_each_matrix(const TransposeInplaceArgs& t, F&& f) {
  f(t.A, t.batch, t.m, t.n, size_of(t.type));
  f(Output{t.A.data, t.ldb, t.A.stride, t.A.pointers}, t.batch, t.n, t.m, size_of(t.type));
}
template <class F>
void for_each_matrix(const Gf256Args& g, F&& f) {
  const auto shards = [&](const auto& x, std::int64_t rows) {
    f(x, x.pointers ? rows : 1, x.pointers ? 1 : rows, g.n, 1);
  };
  if (g.k > 0) {
    f(g.A, 1, g.m, g.k, 1);
    shards(g.B, g.k);
  }
  shards(g.C, g.m);
}

/// The call with arrays of pointers of its own, which the caller's need not outlive.
template <class Args>
class Kept {
 public:
  explicit Kept(const Args& args) : args_(args) {
    if constexpr (requires { args_.A; }) keep(args_.A, 0);
    if constexpr (requires { args_.S; }) keep(args_.S, 0);
    if constexpr (requires { args_.B; }) keep(args_.B, 1);
    if constexpr (requires { args_.C; }) keep(args_.C, 2);
  }
  Kept(const Kept&) = delete;
  const Args& args() const { return args_; }

 private:
  template <class Void>
  void keep(Operand<Void>& x, int which) {
    if (!x.pointers) return;
    std::int64_t count = 0;
    if constexpr (std::is_same_v<Args, Gf256Args>)
      count = which == 1 ? args_.k : args_.m;
    else
      count = args_.batch;
    auto& list = lists_[which];
    for (std::int64_t i = 0; i < count; ++i) list.push_back(const_cast<void*>(x.pointers[i]));
    x.pointers = reinterpret_cast<Void* const*>(list.data());
  }
  Args args_;
  std::vector<void*> lists_[3];
};

/// The last row of the host's table: plain loops that need no workspace.
template <class Args>
const Kernel<Args>& host_kernel() {
  return find_backend("openmp").kernels<Args>().back();
}

template <class Args>
const char* declines(const Args& args, const DeviceInfo& device) {
  return host_kernel<Args>().declines(args, device);
}

constexpr std::size_t kWorkspace = 512;  // asked for so that its place is tested too
constexpr std::string_view kConfigs[] = {"narrow", "wide"};  // "wide" asks for more
template <class Args>
std::size_t workspace(const Args& args, const DeviceInfo&) {
  return args.config == 1 ? 4 * kWorkspace : kWorkspace;
}

template <class Args>
void run(const Args& args, Queue& queue) {
  fake_device().at(Entry::Run);
  ++fake_device().runs;
  for_each_matrix(args, [&](const auto& x, auto matrices, auto rows, auto cols, int size) {
    for (std::int64_t b = 0; b < matrices; ++b)
      FakeQueue::check(x.at(b, size), ((rows - 1) * x.ld + cols) * size, true,
                       "a kernel's operand");
  });
  FakeQueue::check(queue.workspace.data(), std::int64_t(queue.workspace.size()), true, "workspace");
  if (queue.workspace.size() < workspace(args, queue.device()))
    fake_device().misuse("the workspace is too small");
  const auto kept = std::make_shared<Kept<Args>>(args);
  const auto memory = queue.workspace;
  static_cast<FakeQueue&>(queue).issue([kept, memory] {
    std::memset(memory.data(), 0x5a, memory.size());
    Queue host{DeviceInfo{}};
    host_kernel<Args>().run(kept->args(), host);
  });
}

void finish(const FinishArgs& args, Queue& queue) {
  const auto check = [&](const auto& x, std::int64_t ld, DType type) {
    for (std::int64_t b = 0; b < args.batch; ++b)
      FakeQueue::check(x.at(b, size_of(type)), ((args.m - 1) * ld + args.n) * size_of(type), true,
                       "an operand of the pass after a kernel");
  };
  check(args.S, args.S.ld, args.in);
  check(args.C, args.C.ld, args.out);
  if (const Bias& bias = args.epilogue.bias; bias.per != BiasPer::None)
    FakeQueue::check(bias.data, (bias.per == BiasPer::Row ? args.m : args.n) * size_of(args.out),
                     true, "a bias");
  const auto kept = std::make_shared<Kept<FinishArgs>>(args);
  static_cast<FakeQueue&>(queue).issue([kept] {
    Queue host{DeviceInfo{}};
    find_backend("openmp").finish()(kept->args(), host);
  });
}

template <class Args>
constexpr Kernel<Args> kTable[] = {{"fake", "the host's plain loops", declines<Args>,
                                    workspace<Args>, run<Args>, nullptr, kConfigs}};

class FakeBackend final : public Backend {
 public:
  std::string_view name() const override { return "fake"; }
  Memory memory() const override { return Memory::Device; }
  std::unique_ptr<Queue> make_queue(const QueueOptions& options) override {
    DeviceInfo info;
    info.name = "fake";
    info.memory = Memory::Device;
    info.ordinal = options.device;
    info.memory_bytes = fake_device().capacity;
    return std::make_unique<FakeQueue>(info);
  }
  bool owns(const void* p) const override { return heap().contains(p, 0); }
  FinishPass finish() const override { return testing::finish; }

  std::span<const Kernel<GemmArgs>> gemm_kernels() const override { return kTable<GemmArgs>; }
  std::span<const Kernel<GeamArgs>> geam_kernels() const override { return kTable<GeamArgs>; }
  std::span<const Kernel<TransposeArgs>> transpose_kernels() const override {
    return kTable<TransposeArgs>;
  }
  std::span<const Kernel<TransposeInplaceArgs>> transpose_inplace_kernels() const override {
    return kTable<TransposeInplaceArgs>;
  }
  std::span<const Kernel<Gf256Args>> gf256_kernels() const override { return kTable<Gf256Args>; }
};

}  // namespace

void FakeDevice::fail(Entry entry, int call, Status status) {
  entry_ = entry;
  countdown_ = call;
  status_ = status;
  happened_ = false;
}

void FakeDevice::no_more_faults() { countdown_ = -1; }

void FakeDevice::at(Entry entry) {
  if (entry != entry_ || countdown_ < 0 || countdown_-- > 0) return;
  happened_ = true;
  throw Error(status_, "a fault that the test asked for");
}

std::size_t FakeDevice::used() const { return heap().used(); }

void FakeDevice::misuse(const std::string& what) {
  if (misuse_.empty()) misuse_ = what;
}
std::string FakeDevice::take_misuse() { return std::exchange(misuse_, {}); }

FakeDevice& fake_device() {
  static FakeDevice device;
  return device;
}

Backend& fake_backend() {
  static Backend& backend = [&]() -> Backend& {
    register_backend(std::make_unique<FakeBackend>());
    return find_backend("fake");
  }();
  return backend;
}

}  // namespace mblas::testing
