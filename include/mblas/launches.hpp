// What calls launch on a GPU: for benchmarks, and to learn from.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <vector>

#include "mblas/backend.hpp"
#include "mblas/export.hpp"

namespace mblas {

/// A kernel as it is launched, and what it takes of a multiprocessor.
struct Launch {
  std::array<int, 3> grid{}, block{};
  int registers = 0;             ///< of a thread
  std::size_t shared_bytes = 0;  ///< of a block
  double occupancy = 0;          ///< threads that a multiprocessor holds, of the most that it could
};

/// The stream of a queue of the backends `cuda` and `cublas`, as Context::set_stream takes it;
/// null: the default stream, or another backend's queue.
MBLAS_EXPORT void* stream_of(const Queue& queue);

/// What `work` launches, in that order, where it issues to the stream of the queue, which must have
/// one of its own. Nothing is run. `work` must have been done before, as it cannot allocate now.
/// Empty for queues of other backends; kernels that cannot be asked, as cuBLAS's, are left out.
MBLAS_EXPORT std::vector<Launch> launches_of(Queue& queue, const std::function<void()>& work);

}  // namespace mblas
