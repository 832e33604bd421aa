// Operands of batches that come whole to shared memory, many matrices to a block, as they lie in
// memory where they can: what `thin_batch` and `whole_batch` have in common.
#pragma once

#include <algorithm>
#include <iterator>

#include "cuda/gemm/tiny.cuh"
#include "cuda/gemm/whole_plan.hpp"

namespace mblas::cuda::whole {

using tiny::Image;

/// Starts to bring `count` matrices from `first` on, of elements E, unless they are not read; where
/// the first one begins.
template <int kThreads, class E>
__device__ char* bring(char* shared, const Image& x, const DeviceInput& operand, std::int64_t first,
                       int count, bool is_read) {
  if (!x.packed) {
    if (is_read) tiny::load<kThreads, E, E>(shared, x, operand, first, count);
    return shared + x.begin;
  }
  const tiny::Run run(x, operand, first, count);
  if (is_read) tiny::load_run<kThreads, E>(shared, x, run);
  return shared + x.packed_begin + run.skew;
}

/// Writes them back.
template <int kThreads, class E>
__device__ void send(const char* shared, const Image& x, const DeviceOutput& operand,
                     std::int64_t first, int count) {
  if (x.packed)
    tiny::store_run<kThreads, E>(shared, x, tiny::Run(x, operand, first, count));
  else
    tiny::store<kThreads, E>(shared, x, operand, first, count);
}

/// How the matrices of an operand come: as they lie, but where that would have lanes find their
/// elements in the same banks, rows of whole vectors an odd number of them apart.
template <class Void>
Image image_of(const Operand<Void>& x, std::int64_t batch, std::int64_t rows, std::int64_t length,
               int size, bool along_k) {
  constexpr int kLongRow = 128;  // bytes, in which neighbours of a warp fit
  Image image = tiny::image_of(x, batch, rows, length, size, rows, length, 1);
  const bool spread =
      image.unit < 16 || image.units % 2 == 1 || (!along_k && length * size >= kLongRow);
  if (image.run && spread) tiny::pack_as_it_lies(image, size);
  return image;
}

/// Of one matrix, in whole vectors.
inline std::int64_t bytes_of(const Image& x) {
  return divide_up(x.packed ? x.rows * x.pitch : x.matrix, 16) * 16;
}
/// Of `group` matrices.
inline int bytes_of(const Image& x, int group) {
  return x.packed ? tiny::Plan::packed_bytes(x, group) : group * x.matrix;
}

/// The most lanes of a warp that find what they read, of `size` bytes, in the same bank: `near` of
/// them read neighbours, `far` of those begin `pitch` bytes apart.
inline int lanes_of_a_bank(int size, int pitch, int near, int far) {
  const int banks = 128 / size;
  int lanes[32] = {};
  for (int i = 0; i < far; ++i)
    for (int j = 0; j < near; ++j) ++lanes[(i * (pitch / size) + j) % banks];
  return *std::max_element(std::begin(lanes), std::end(lanes));
}

/// Whether a product's operands or its results do not fit in a block's shared memory.
inline bool exceeds_shared(const GemmArgs& args, const DeviceInfo& device) {
  const std::int64_t most = std::int64_t(device.shared_memory) / size_of(args.in);
  return args.m > most || args.n > most || args.k > most ||
         args.m * args.k + args.k * args.n > most || args.m * args.n > most;
}

}  // namespace mblas::cuda::whole
