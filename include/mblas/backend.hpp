// What a backend is: a memory space, a queue to run on, and one table of kernels per operation.
// Everything that is in the library's own backends can be written in a program and registered;
// docs/ADDING_A_BACKEND.md builds one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include "mblas/epilogue.hpp"
#include "mblas/error.hpp"
#include "mblas/export.hpp"
#include "mblas/types.hpp"

namespace mblas {

// ---------------------------------------------------------------------------------------------------
// Erased arguments. The core has validated them and made them row-major: element (i, j) of an
// operand lies at data[i * ld + j]. Sizes are positive, except k, which may be 0 (then A and B are
// null).

/// A matrix, or a batch of matrices `stride` elements apart or behind an array of pointers.
template <class Void>
struct Operand {
  using Byte = std::conditional_t<std::is_const_v<Void>, const std::byte, std::byte>;

  Void* data = nullptr;
  std::int64_t ld = 0;              ///< elements between rows
  std::int64_t stride = 0;          ///< elements between matrices of a strided batch
  Void* const* pointers = nullptr;  ///< in host memory; where set, matrix b is pointers[b]

  /// Matrix `b` of the batch, for elements of `size` bytes.
  Void* at(std::int64_t b, int size) const {
    return pointers ? pointers[b] : static_cast<Byte*>(data) + b * stride * size;
  }
};
using Input = Operand<const void>;
using Output = Operand<void>;

/// alpha and beta in the widest type: every scalar of the API is exact in it.
struct Scalar {
  double re = 0, im = 0;
  bool operator==(const Scalar&) const = default;
};

/// An operand as a row has prepared it, in memory of its own.
struct Prepared {
  virtual ~Prepared() = default;
  std::size_t bytes = 0;
};
/// Where a row keeps an operand from call to call: see GemmPlan.
struct Keeper {
  std::unique_ptr<Prepared> prepared;
};

/// What an Args::config is in place of a configuration's number: the kernel chooses; and the same
/// of a kernel that was forced by name, which need not decline what others do faster.
inline constexpr int kOwnChoice = -1, kForced = -2;

/// C = alpha op(A) op(B) + beta C, with op(A) m×k, op(B) k×n, C m×n; then `epilogue`. int8 products
/// become a C of float as `float(sum of products)` in place of the product. A row sees either only
/// where its Kernel::fuses says so.
struct GemmArgs {
  DType in = DType::f32, out = DType::f32;  ///< of A and B; of C
  Compute compute = Compute::Default;
  Op transA = Op::NoTrans, transB = Op::NoTrans;
  std::int64_t m = 0, n = 0, k = 0;
  Scalar alpha, beta;  ///< beta == 0: C is not read
  Input A, B;
  Output C;
  std::int64_t batch = 1;
  int config = kOwnChoice;  ///< which of Kernel::configs; negative: the kernel's own choice
  double tolerance = 0;     ///< of Compute::OzakiFP64: see GemmOptions; 0: the mode's own
  Epilogue epilogue;
  Keeper* keeper = nullptr;  ///< of a plan, or null
  bool keeps_b = false;      ///< which operand: B, else A
};

/// C = scale activation(alpha S + beta C + bias), all m×n: what remains after a row that does not
/// fuse a call's epilogue. S, whose type is f32 … cf64 or i32, holds what the row computed; it is C
/// itself where it has C's address.
struct FinishArgs {
  DType in = DType::f32, out = DType::f32;  ///< of S; of C
  std::int64_t m = 0, n = 0;
  Scalar alpha, beta;  ///< beta == 0: C is not read, but as S
  Epilogue epilogue;
  Input S;
  Output C;
  std::int64_t batch = 1;
};

/// C = alpha op(A) + beta op(B), all m×n after op. A scalar of zero: its operand is null and not
/// read. C may be A (or B) itself where that operand is not transposed and has C's ld.
struct GeamArgs {
  DType type = DType::f32;
  Op transA = Op::NoTrans, transB = Op::NoTrans;
  std::int64_t m = 0, n = 0;
  Scalar alpha, beta;
  Input A, B;
  Output C;
  std::int64_t batch = 1;
  int config = kOwnChoice;  ///< which of Kernel::configs; negative: the kernel's own choice
};

/// B (n×m) = Aᵀ, A m×n, elements of `type` (b1 … b16) moved as bytes.
struct TransposeArgs {
  DType type = DType::b4;
  std::int64_t m = 0, n = 0;
  Input A;
  Output B;
  std::int64_t batch = 1;
  int config = kOwnChoice;  ///< which of Kernel::configs; negative: the kernel's own choice
};

/// The m×n matrix of leading dimension `lda` at A becomes its n×m transpose of leading dimension
/// `ldb`. Elements outside the result keep their bytes if they were no part of the source; those
/// that were are left undefined.
struct TransposeInplaceArgs {
  DType type = DType::b4;
  std::int64_t m = 0, n = 0;
  Output A;  ///< A.ld is lda
  std::int64_t ldb = 0;
  std::int64_t batch = 1;
  int config = kOwnChoice;  ///< which of Kernel::configs; negative: the kernel's own choice
};

/// C = A B, or C = C + A B where `accumulate`, over GF(2^8) modulo `poly`. Bytes. `pointers`, where
/// set, hold one row each (shards), not matrices of a batch.
struct Gf256Args {
  std::int64_t m = 0, n = 0, k = 0;
  Input A, B;
  Output C;
  bool accumulate = false;
  unsigned poly = 0x11D;
  int config = kOwnChoice;  ///< which of Kernel::configs; negative: the kernel's own choice
};

/// Elements between rows and columns of op(X), X stored row-major with leading dimension ld.
struct Strides {
  std::int64_t row, col;
};
constexpr Strides strides_of(Op op, std::int64_t ld) {
  return is_transposed(op) ? Strides{1, ld} : Strides{ld, 1};
}

// ---------------------------------------------------------------------------------------------------

/// Where a pointer points. Managed memory may be used from both sides.
enum class Memory : std::uint8_t { Host, Device, Managed };

/// What a kernel may need to know of the machine to decline or to size its workspace.
struct DeviceInfo {
  std::string name;  ///< as the device calls itself
  Memory memory = Memory::Host;
  int ordinal = 0;                ///< among the backend's devices
  int num_threads = 1;            ///< host backends: threads a kernel may use in this call
  int compute_units = 0;          ///< devices: multiprocessors
  int capability = 0;             ///< CUDA: 10 * major + minor
  std::size_t shared_memory = 0;  ///< CUDA: bytes a block may ask for
  std::size_t memory_bytes = 0;
  double memory_rate = 0;  ///< CUDA: bytes a second, by clock and width of the bus; 0: not known
};

/// A 2-D copy between pitched arrays, in bytes. Direction follows from the memory of each side.
struct Copy2D {
  void* dst;
  std::int64_t dst_pitch;
  const void* src;
  std::int64_t src_pitch;
  std::int64_t width, rows;
};
enum class CopyKind : std::uint8_t { HostToDevice, DeviceToHost, DeviceToDevice };

/// An ordered sequence of work on one device: what a kernel runs on. Each context makes one for
/// every backend it uses. The base class is a complete host queue; a device backend overrides the
/// memory and timing functions. All of them throw mblas::Error.
class MBLAS_EXPORT Queue {
 public:
  explicit Queue(DeviceInfo device) : device_(std::move(device)) {}
  virtual ~Queue();
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;

  const DeviceInfo& device() const { return device_; }
  void set_num_threads(int n) { device_.num_threads = n; }

  /// Memory of the device, aligned to 256 bytes or more; Status::OutOfMemory where there is none
  /// left.
  virtual void* allocate(std::size_t bytes);
  virtual void deallocate(void* p) noexcept;
  /// Bytes that allocate() could still give, approximately.
  virtual std::size_t memory_free() const;

  /// In order with the kernels of this queue; may return before it is done.
  virtual void copy(const Copy2D& copy, CopyKind kind);
  /// Several copies of one kind, in any order.
  virtual void copy_all(std::span<const Copy2D> copies, CopyKind kind) {
    for (const Copy2D& one : copies) copy(one, kind);
  }
  /// Returns when everything issued so far is done; throws what went wrong in it.
  virtual void synchronize() {}
  /// True while the work goes into a graph instead of being run.
  virtual bool capturing() const { return false; }

  /// Time stamps in order with the work: mark(i) sets stamp i (0 … 63), elapsed_ms waits for both.
  virtual void mark(int i);
  virtual double elapsed_ms(int from, int to);

  /// The workspace that the kernel's row asked for; the core sets it before run().
  std::span<std::byte> workspace;

 private:
  DeviceInfo device_;
  std::int64_t stamps_[64] = {};
};

/// One kernel: one file and one row of a backend's table.
template <class Args>
struct Kernel {
  std::string_view name;  ///< stable; what MBLAS_KERNEL, the receipt and the results files call it
  std::string_view note;  ///< one line on what it does differently
  /// nullptr: can run it; else the reason, a string that outlives the call.
  const char* (*declines)(const Args&, const DeviceInfo&);
  /// Bytes of queue memory that run() needs; nullptr means none.
  std::size_t (*workspace)(const Args&, const DeviceInfo&);
  /// Computes, or on a device enqueues. Must not allocate, nor fail after it began to write.
  void (*run)(const Args&, Queue&);
  /// Of a host backend's first row, or null: computes a call that is so small that a queue and
  /// threads would cost more than it does, or returns false with nothing written.
  bool (*immediate)(const Args&) = nullptr;
  /// Names of the configurations that Args::config numbers, for kernels that can be tuned: letters,
  /// digits and underscores. declines() says where one cannot do a call; workspace() and run() obey
  /// it.
  std::span<const std::string_view> configs = {};
  /// Of gemm: does run() itself do what such a call asks for beyond the product, its epilogue and a
  /// C of float from int8? Where not, or null, the core gives the row a product without, and has
  /// Backend::finish() do the rest in a pass over C.
  bool (*fuses)(const Args&) = nullptr;
};

/// Computes a FinishArgs, or on a device enqueues it. Without workspace.
using FinishPass = void (*)(const FinishArgs&, Queue&);

/// How to make a queue.
struct QueueOptions {
  int device = 0;
  void* stream = nullptr;   ///< the program's own stream; null is the device's default stream
  bool own_stream = false;  ///< make a stream of its own instead
};

/// A memory space with kernels. Tables are walked from the first row: best first.
class MBLAS_EXPORT Backend {
 public:
  virtual ~Backend();
  virtual std::string_view name() const = 0;
  virtual Memory memory() const { return Memory::Host; }
  /// Empty where the backend can run here; else why not. Probes once.
  virtual const std::string& unavailable();
  /// One line for `mblas info`: versions, instruction set, devices.
  virtual std::string describe();
  virtual int device_count() { return 1; }
  /// Queues outlive neither their backend nor the process's device.
  virtual std::unique_ptr<Queue> make_queue(const QueueOptions& options);
  /// For device backends whose memory the CUDA driver does not know: is `p` in it?
  virtual bool owns(const void* /*p*/) const { return false; }

  virtual std::span<const Kernel<GemmArgs>> gemm_kernels() const { return {}; }
  virtual std::span<const Kernel<GeamArgs>> geam_kernels() const { return {}; }
  virtual std::span<const Kernel<TransposeArgs>> transpose_kernels() const { return {}; }
  virtual std::span<const Kernel<TransposeInplaceArgs>> transpose_inplace_kernels() const {
    return {};
  }
  virtual std::span<const Kernel<Gf256Args>> gf256_kernels() const { return {}; }

  /// The library's own for backends of the host. Null: rows that do not fuse an epilogue decline
  /// it.
  virtual FinishPass finish() const;

  /// The table of an operation by its argument type.
  template <class Args>
  std::span<const Kernel<Args>> kernels() const {
    if constexpr (std::is_same_v<Args, GemmArgs>)
      return gemm_kernels();
    else if constexpr (std::is_same_v<Args, GeamArgs>)
      return geam_kernels();
    else if constexpr (std::is_same_v<Args, TransposeArgs>)
      return transpose_kernels();
    else if constexpr (std::is_same_v<Args, TransposeInplaceArgs>)
      return transpose_inplace_kernels();
    else
      return gf256_kernels();
  }
};

/// The operation's name in MBLAS_KERNEL, receipts and results files.
template <class Args>
inline constexpr std::string_view op_name = "";
template <>
inline constexpr std::string_view op_name<GemmArgs> = "gemm";
template <>
inline constexpr std::string_view op_name<GeamArgs> = "geam";
template <>
inline constexpr std::string_view op_name<TransposeArgs> = "transpose";
template <>
inline constexpr std::string_view op_name<TransposeInplaceArgs> = "transpose_inplace";
template <>
inline constexpr std::string_view op_name<Gf256Args> = "gf256";

/// Every registered backend, the library's own first. Backends live until the process ends.
MBLAS_EXPORT std::span<Backend* const> backends();
/// The backend of that name; Status::UnknownName lists the names there are,
/// Status::BackendUnavailable says why one that the library knows was not built.
MBLAS_EXPORT Backend& find_backend(std::string_view name);
/// Adds a backend; its name becomes usable in every context made afterwards.
/// Status::InvalidArgument for a name that is taken, empty or holds one of ",:= ".
MBLAS_EXPORT void register_backend(std::unique_ptr<Backend> backend);

}  // namespace mblas
