// What a context holds: settings, and for each backend in use a queue with its workspace.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "core/config.hpp"
#include "mblas/backend.hpp"
#include "mblas/context.hpp"

namespace mblas {

/// Memory of a queue that grows and is given back when the queue goes.
class Buffer {
 public:
  explicit Buffer(Queue& queue) : queue_(&queue) {}
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&& other) = delete;
  ~Buffer();

  /// At least `bytes`, 256-byte aligned; the content is lost when it grows. Status::OutOfMemory
  /// leaves it empty, or as it was where a graph holds it; Status::NotSupported where the queue is
  /// being captured and cannot allocate.
  std::byte* get(std::size_t bytes);
  std::size_t size() const { return bytes_; }
  /// A graph may use memory of it.
  bool is_captured() const { return captured_ || !retired_.empty(); }

 private:
  Queue* queue_;
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
  bool captured_ = false;            // a graph holds data_: it must live as long as this
  std::vector<std::byte*> retired_;  // outgrown while a graph holds them
};

/// A queue of a device and the memory that its blocks are staged in.
struct StageLane {
  std::unique_ptr<Queue> queue;
  Buffer buffer;

  explicit StageLane(std::unique_ptr<Queue> q) : queue(std::move(q)), buffer(*queue) {}
};

struct Slot {
  Backend* backend;
  std::unique_ptr<Queue> queue;
  Buffer workspace;
  std::vector<StageLane> lanes;  // of device backends, made when host pointers first come

  Slot(Backend* b, std::unique_ptr<Queue> q) : backend(b), queue(std::move(q)), workspace(*queue) {}
};

class TuneTable;
struct TuneEntry;

/// A backend's first row, where that computes small calls at once.
template <class Args>
struct ImmediateRow {
  Backend* backend = nullptr;
  const Kernel<Args>* row = nullptr;
  std::string_view name, kernel;       // of the backend and of its row
  bool (*run)(const Args&) = nullptr;  // null: there is none
  bool tuned = false;                  // the tune file has entries of the backend
  bool known = false;
};
using ImmediateRows = std::tuple<ImmediateRow<GemmArgs>, ImmediateRow<Gf256Args>>;

struct Context::Impl {
  BackendChoice backends;
  ImmediateRows immediate;  // of the first of the backends; forgotten when a setting changes
  std::uintptr_t host_addresses[3] = {};  // of A, B and C of a call, when they were the host's
  const void* reported = nullptr;  // the immediate row that the receipt is of; null: another's
  KernelChoice kernels;
  VerifyChoice verify;
  Compute compute = Compute::Default;
  int device = 0, num_threads = 0, verbose = 0;
  void* stream = nullptr;
  std::size_t workspace_limit = 0;
  void* user_workspace = nullptr;
  std::size_t user_workspace_bytes = 0;

  std::vector<std::unique_ptr<Slot>> slots;
  /// Of device backends, for another stream or device than the present one.
  struct Parked {
    void* stream;
    int device;
    std::unique_ptr<Slot> slot;
  };
  std::vector<Parked> parked;  // whose workspace a graph may use
  Dispatch receipt;
  std::string last_error;
  std::uint64_t verify_calls = 0;
  const TuneTable* tuned = nullptr;  // null: no tune file
  TuneEntry* tune_record = nullptr;  // where calls leave their description; null: nowhere
  bool verifying = false;  // inside a verification: its own calls are neither verified nor logged

  Impl();
  /// The queue of a backend that can run here, with the thread count of this call.
  Slot& slot(Backend& backend);
  /// Drops the queues of device backends and, but where a graph may use them, their workspaces.
  void leave_stream();
  /// Bytes of workspace that a call may have on this queue's device.
  std::size_t limit_of(const Queue& queue) const;
};

}  // namespace mblas
