// few_vectors.cu for elements of 16 bits, eight of which are a word of 16 bytes. Read one by one
// they would be too many loads, and lines of the matrix start anywhere. But those eight lines apart
// start at the same place of a word, so a warp has such lines only and reads aligned words: how far
// its lines are shifted decides which elements of the vectors, or which results, a word meets.
//
// Vectors are floats in shared memory, as one element of them meets several of the matrix.
#pragma once

#include "cuda/gemm/few.cuh"
#include "cuda/gemm/words.cuh"

namespace mblas::cuda::gemm::few_words {

using few::kBlocks, few::kLoads, few::kThreads, few::kWarps;

constexpr int kWord = 8;  // elements
static_assert(kWarps == kWord);
constexpr int kVectorBytes = 64 << 10;  // of the vectors in shared memory

struct Problem : few::Problem<float> {
  int width = 0;        ///< results of a block, where memory runs along them
  bool floats = false;  ///< C is of float
};

/// Results of a block where memory runs along them: its words begin up to one before them.
constexpr int width_of(bool aligned) { return 32 * kWord - (aligned ? 0 : kWord); }
/// Elements of k that a step of either kernel takes.
constexpr int step_of(bool along_k) { return along_k ? 32 * kWord : kWarps * kLoads; }
/// Words that a thread has under way where memory runs along the results: as registers allow.
constexpr int loads_of(int count) { return count < 8 ? kLoads : kLoads / 2; }

/// The vectors in shared memory: the elements of one k are neighbours. After each word's there is a
/// gap, by which lanes that read those of their words meet in no bank.
constexpr int gap_of(int count) { return count < 4 ? count : 4; }
constexpr int pitch_of(int count) { return kWord * count + gap_of(count); }  // of words
constexpr std::int64_t vector_bytes(int count, std::int64_t depth) {
  return (depth + kWord - 1) / kWord * pitch_of(count) * int(sizeof(float));
}
constexpr int most_depth(int count) {
  return kVectorBytes / int(sizeof(float)) / pitch_of(count) * kWord;
}
template <int kCount>
__device__ int place_of(int k) {
  return k * kCount + int(unsigned(k) / kWord) * gap_of(kCount);
}

template <int kCount>
struct Factors {
  static constexpr int kAtOnce = kCount < 4 ? kCount : 4;
  Vector<float, kAtOnce> part[kCount / kAtOnce];

  __device__ explicit Factors(const float* from) {
#pragma unroll
    for (int i = 0; i < kCount / kAtOnce; ++i)
      part[i] = reinterpret_cast<const Vector<float, kAtOnce>*>(from)[i];
  }
  __device__ float operator[](int s) const { return part[s / kAtOnce].e[s % kAtOnce]; }
};

/// Elements 2i and 2i + 1 of a word.
template <class T>
__device__ float2 pair_of(const uint4& word, int i) {
  const unsigned x = i == 0 ? word.x : i == 1 ? word.y : i == 2 ? word.z : word.w;
  if constexpr (std::is_same_v<T, __half>)
    return __half22float2(reinterpret_cast<const __half2&>(x));
  else
    return __bfloat1622float2(reinterpret_cast<const __nv_bfloat162&>(x));
}

/// Elements of a line from `x` on that lie before its first whole word.
template <class T>
__device__ int before_words(const T* x) {
  return int(-reinterpret_cast<std::uintptr_t>(x) % 16 / sizeof(T));
}

/// Copies the vectors' part of k. Of those there are not: zeros.
template <class T, int kCount>
__device__ void copy_vectors(const Problem& p, const parts::Work& w, float* shared) {
  constexpr int kSize = int(sizeof(T)), kAhead = 4;
  const bool along_k = p.few.col == 1;
  const auto* const begin = static_cast<const std::byte*>(p.Few.at(w.batch));
  const std::int64_t elements =
      along_k ? (p.count - 1) * p.few.row + p.k : (p.k - 1) * p.few.col + p.count;
  const std::byte* const end = begin + elements * kSize;
  const std::byte* const from = begin + w.k0 * p.few.col * kSize;
  const int depth = int(w.k1 - w.k0);
  // A thread has words of a vector in turn, or all vectors' elements of some k.
  const int all = along_k ? (depth + kWord - 1) / kWord * kCount : depth;
#pragma unroll 1
  for (int first = int(threadIdx.x); first < all; first += kAhead * kThreads) {
    Words words[kAhead];
    int left[kAhead];  // bytes
#pragma unroll
    for (int i = 0; i < kAhead; ++i) {
      const int at = first + i * kThreads, s = at % kCount, k = at / kCount * kWord;
      if (at >= all) continue;
      left[i] = !along_k ? p.count * kSize : s < p.count ? (depth - k) * kSize : 0;
      words[i] = Words::at<T>(from + (along_k ? s * p.few.row + k : at * p.few.col) * kSize, begin,
                              end, left[i]);
    }
#pragma unroll
    for (int i = 0; i < kAhead; ++i) {
      const int at = first + i * kThreads;
      if (at >= all) continue;
      const uint4 x = words[i].bytes(left[i]);
      if (along_k) {
        float* const to = shared + at / kCount * pitch_of(kCount) + at % kCount;
#pragma unroll
        for (int e = 0; e < kWord; ++e)
          to[e * kCount] = e % 2 ? pair_of<T>(x, e / 2).y : pair_of<T>(x, e / 2).x;
      } else {
        auto* const to = reinterpret_cast<float2*>(shared + place_of<kCount>(at));
#pragma unroll
        for (int e = 0; e < kCount / 2; ++e) to[e] = pair_of<T>(x, e);
      }
    }
  }
}

/// parts::leave() for either type of C.
template <class T>
__device__ void leave(const Problem& p, const parts::Work& w, std::int64_t l, int s, float sum) {
  if (p.floats || p.parts > 1)
    parts::leave<float>(p, w, l, s, sum);
  else
    parts::put<T>(p, w.batch, l, s, sum);
}

/// Memory runs along k.
template <class T, int kCount>
__global__ void __launch_bounds__(kThreads, kBlocks)
    rows_kernel(const __grid_constant__ Problem p) {
  constexpr int kRows = few::rows_of(sizeof(T), kCount), kEach = kLoads / kRows;
  constexpr int kPitch = pitch_of(kCount), kGap = gap_of(kCount);
  extern __shared__ __align__(64) unsigned char memory[];
  auto* const shared = reinterpret_cast<float*>(memory);
  begin_early();

  const parts::Work w = parts::work_of(p);
  const int thread = int(threadIdx.x), lane = thread % 32, warp = thread / 32;
  const int depth = int(w.k1 - w.k0);

  const std::int64_t first = w.block * (kWarps * kRows) + warp, hop = kWarps * p.line;
  const int rows = int(min((p.length - first + kWarps - 1) / kWarps, std::int64_t(kRows)));
  const T* from = static_cast<const T*>(p.Matrix.at(w.batch)) + first * p.line + w.k0;

  // Elements before and after whole words, of which no lane has more than one.
  const int head = min(before_words(from), depth), words = (depth - head) / kWord;
  const int end = lane < head ? lane : lane + words * kWord;
  T ends[kRows] = {};
#pragma unroll
  for (int r = 0; r < kRows; ++r)
    if (end < depth && r < rows) ends[r] = from[r * hop + end];
  from += head + lane * kWord;
  uint4 x[kEach][kRows] = {};
  const auto read = [&](int u, int word) {
    if (word + u * 32 + lane < words)
#pragma unroll
      for (int r = 0; r < kRows; ++r)
        if (r < rows)
          x[u][r] = *reinterpret_cast<const uint4*>(from + r * hop + (word + u * 32) * kWord);
  };
#pragma unroll
  for (int u = 0; u < kEach; ++u) read(u, 0);
  copy_vectors<T, kCount>(p, w, shared);
  __syncthreads();

  float sums[kRows * kCount] = {};
  const float* y = shared + lane * kPitch + head * kCount;
#pragma unroll 1
  for (int word = 0; word < words; word += 32 * kEach, y += 32 * kEach * kPitch)
#pragma unroll
    for (int u = 0; u < kEach; ++u) {
      if (word + u * 32 + lane >= words) continue;
#pragma unroll
      for (int i = 0; i < kWord / 2; ++i) {
        float2 pair[kRows];
#pragma unroll
        for (int r = 0; r < kRows; ++r) pair[r] = pair_of<T>(x[u][r], i);
#pragma unroll
        for (int e = 2 * i; e < 2 * i + 2; ++e) {
          const Factors<kCount> factors(y + u * 32 * kPitch + e * kCount +
                                        (head + e < kWord ? 0 : kGap));
#pragma unroll
          for (int r = 0; r < kRows; ++r)
#pragma unroll
            for (int s = 0; s < kCount; ++s)
              sums[r * kCount + s] += (e % 2 ? pair[r].y : pair[r].x) * factors[s];
        }
      }
      read(u, word + 32 * kEach);
    }
  if (end < depth) {
    const Factors<kCount> factors(shared + place_of<kCount>(end));
#pragma unroll
    for (int r = 0; r < kRows; ++r)
#pragma unroll
      for (int s = 0; s < kCount; ++s) sums[r * kCount + s] += widen(ends[r]) * factors[s];
  }
  parts::add_team(sums, 32, lane);
  constexpr int kLanes = 32 / (kRows * kCount);  // that have the same sum
  const int r = lane / kLanes / kCount, s = lane / kLanes % kCount;
  const std::int64_t row = first + r * kWarps;
  if (lane % kLanes == 0 && row < p.length && s < p.count) leave<T>(p, w, row, s, sums[0]);
}

/// Sums that warps leave in shared memory: of kGroup vectors at a time, with gaps like those above.
template <int kCount>
struct WarpSums {
  static constexpr int kGroup = kCount < 4 ? kCount : 4;
  static constexpr int kPitch = 33 * (kWord + 1);  // from one word before a block's results on
  static constexpr int kBytes = kWarps * kGroup * kPitch * int(sizeof(float));
  __device__ static int place(int i) { return i + int(unsigned(i) / kWord); }
};

/// Memory runs along the results.
template <class T, int kCount>
__global__ void __launch_bounds__(kThreads, kBlocks)
    columns_kernel(const __grid_constant__ Problem p) {
  constexpr int kLines = loads_of(kCount);
  constexpr int kPitch = pitch_of(kCount);  // from a line of a warp to its next one
  extern __shared__ __align__(64) unsigned char memory[];
  auto* const shared = reinterpret_cast<float*>(memory);
  begin_early();

  const parts::Work w = parts::work_of(p);
  const int thread = int(threadIdx.x), lane = thread % 32, warp = thread / 32;
  const int depth = int(w.k1 - w.k0);

  // A lane has the columns from `first` + `column` on. Those that are not of the block are read,
  // where they lie within the matrix; their sums go nowhere.
  const std::int64_t first = w.block * p.width;
  const int width = int(min(p.length - first, std::int64_t(p.width)));
  const auto* const begin = static_cast<const T*>(p.Matrix.at(w.batch));
  const T* const end = begin + (p.k - 1) * p.line + p.length;
  const T* from = begin + (w.k0 + warp) * p.line + first;
  const int shift = (kWord - before_words(from)) % kWord, column = lane * kWord - shift;
  from += column;
  const std::int64_t hop = kWarps * p.line;

  // Lines of the part that a lane takes, from `start` to before `stop`. The word of the matrix's
  // first or of its last line may lie partly outside of it: of that one elements are read.
  int start = warp, stop = column < width ? depth : 0, odd = -1;
  uint4 odd_word = {};
  if (start < stop) {
    const int last = start + (depth - 1 - start) / kWarps * kWarps;
    const T* at = from;
    if (from < begin) {
      odd = start;
      start += kWarps;
      from += hop;
    } else if (at = from + (last - start) * p.line; at + kWord > end) {
      odd = stop = last;
    }
    if (odd >= 0) {
      union {
        uint4 v;
        T e[kWord];
      } read = {};
#pragma unroll
      for (int e = 0; e < kWord; ++e)
        if (at + e >= begin && at + e < end) read.e[e] = at[e];
      odd_word = read.v;
    }
  }
  uint4 x[kLines];
  const auto read = [&](int u, int k) {
    if (k + u * kWarps < stop) x[u] = *reinterpret_cast<const uint4*>(from);
    from += hop;
  };
#pragma unroll
  for (int u = 0; u < kLines; ++u) read(u, start);
  copy_vectors<T, kCount>(p, w, shared);
  __syncthreads();

  float sums[kCount][kWord] = {};
  const auto multiply = [&](const uint4& word, const float* y) {
    const Factors<kCount> factors(y);
#pragma unroll
    for (int i = 0; i < kWord / 2; ++i) {
      const float2 pair = pair_of<T>(word, i);
#pragma unroll
      for (int s = 0; s < kCount; ++s) {
        sums[s][2 * i] += pair.x * factors[s];
        sums[s][2 * i + 1] += pair.y * factors[s];
      }
    }
  };
  const float* y = shared + place_of<kCount>(start);
#pragma unroll 1
  for (int k = start; k < stop; k += kWarps * kLines, y += kLines * kPitch)
#pragma unroll
    for (int u = 0; u < kLines; ++u) {
      if (k + u * kWarps >= stop) continue;
      multiply(x[u], y + u * kPitch);
      read(u, k + kWarps * kLines);
    }
  if (odd >= 0) multiply(odd_word, shared + place_of<kCount>(odd));

  // The sums of warps, which have the same columns.
  using Sums = WarpSums<kCount>;
#pragma unroll
  for (int s0 = 0; s0 < kCount; s0 += Sums::kGroup) {
    __syncthreads();
#pragma unroll
    for (int s = 0; s < Sums::kGroup; ++s)
#pragma unroll
      for (int e = 0; e < kWord; ++e)
        shared[(warp * Sums::kGroup + s) * Sums::kPitch + Sums::place(kWord + column + e)] =
            sums[s0 + s][e];
    __syncthreads();
    const int count = min(p.count - s0, Sums::kGroup);
    for (int i = thread; i < width * count; i += kThreads) {
      const int l = p.c.row == 1 ? i % width : i / count;
      const int s = p.c.row == 1 ? i / width : i % count;
      const float* const found = shared + s * Sums::kPitch + Sums::place(kWord + l);
      float sum = *found;
#pragma unroll
      for (int other = 1; other < kWarps; ++other)
        sum += found[other * Sums::kGroup * Sums::kPitch];
      leave<T>(p, w, first + l, s0 + s, sum);
    }
  }
}

}  // namespace mblas::cuda::gemm::few_words
