// The tune file: its entries by the calls that they are for.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/config.hpp"
#include "mblas/backend.hpp"
#include "mblas/tune.hpp"

namespace mblas {

/// What an entry is found by among those of a backend and device. No bytes of it are padding.
struct TuneKey {
  std::int64_t m = 0, n = 0, k = 0, batch = 1;
  std::int32_t threads = 0, operation = 0;
  DType in = DType::f32, out = DType::f32;
  Compute compute = Compute::Default;
  Op transA = Op::NoTrans, transB = Op::NoTrans;
  std::uint8_t reads = 0;  // kReadsA …
  bool aligned = true, pointers = false;

  bool operator==(const TuneKey&) const = default;
};
inline constexpr std::uint8_t kReadsA = 1, kReadsB = 2, kReadsC = 4;

template <class Args>
inline constexpr auto kOperation = std::int32_t(op_index<Args>());

/// Threads that matter to the choice: a host backend's.
inline std::int32_t tuned_threads(const DeviceInfo& device) {
  return device.memory == Memory::Host ? device.num_threads : 0;
}

namespace tuning {
constexpr std::int64_t kAlignment = 16;  // bytes: the widest access of a thread or vector

/// The bits by which the rows of the matrices miss the alignment.
template <class Void>
std::uint64_t bits_of(const Operand<Void>& x, std::int64_t batch, int size) {
  const std::uint64_t rows = std::uint64_t(x.ld) * std::uint64_t(size);
  if (x.pointers) return rows;
  return rows | reinterpret_cast<std::uintptr_t>(x.data) |
         (batch > 1 ? std::uint64_t(x.stride) * std::uint64_t(size) : 0);
}
inline bool is_aligned(std::uint64_t bits) { return bits % kAlignment == 0; }
}  // namespace tuning

inline TuneKey key_of(const GemmArgs& g) {
  TuneKey key{g.m,  g.n,   g.k,       g.batch,  0,       kOperation<GemmArgs>,
              g.in, g.out, g.compute, g.transA, g.transB};
  std::uint64_t bits = tuning::bits_of(g.C, g.batch, size_of(g.out));
  if (g.k > 0) {
    key.reads = kReadsA | kReadsB;
    bits |=
        tuning::bits_of(g.A, g.batch, size_of(g.in)) | tuning::bits_of(g.B, g.batch, size_of(g.in));
  }
  if (g.beta != Scalar{}) key.reads |= kReadsC;
  key.aligned = tuning::is_aligned(bits);
  key.pointers = g.C.pointers != nullptr;
  return key;
}
inline TuneKey key_of(const GeamArgs& g) {
  TuneKey key{
      g.m,      g.n,     0, g.batch, 0, kOperation<GeamArgs>, g.type, g.type, Compute::Default,
      g.transA, g.transB};
  const int size = size_of(g.type);
  std::uint64_t bits = tuning::bits_of(g.C, g.batch, size);
  if (g.alpha != Scalar{}) {
    key.reads |= kReadsA;
    bits |= tuning::bits_of(g.A, g.batch, size);
  }
  if (g.beta != Scalar{}) {
    key.reads |= kReadsB;
    bits |= tuning::bits_of(g.B, g.batch, size);
  }
  key.aligned = tuning::is_aligned(bits);
  key.pointers = g.C.pointers != nullptr;
  return key;
}
inline TuneKey key_of(const TransposeArgs& t) {
  TuneKey key{t.m, t.n, 0, t.batch, 0, kOperation<TransposeArgs>, t.type, t.type};
  const int size = size_of(t.type);
  key.reads = kReadsA;
  key.aligned =
      tuning::is_aligned(tuning::bits_of(t.A, t.batch, size) | tuning::bits_of(t.B, t.batch, size));
  key.pointers = t.A.pointers != nullptr;
  return key;
}
inline TuneKey key_of(const TransposeInplaceArgs& t) {
  TuneKey key{t.m, t.n, 0, t.batch, 0, kOperation<TransposeInplaceArgs>, t.type, t.type};
  const int size = size_of(t.type);
  key.reads = kReadsA;
  key.aligned = tuning::is_aligned(tuning::bits_of(t.A, t.batch, size) |
                                   std::uint64_t(t.ldb) * std::uint64_t(size));
  key.pointers = t.A.pointers != nullptr;
  return key;
}
inline TuneKey key_of(const Gf256Args& g) {
  TuneKey key{g.m, g.n, g.k, 1, 0, kOperation<Gf256Args>, DType::b1, DType::b1};
  std::uint64_t bits = g.C.pointers ? 0 : tuning::bits_of(g.C, 1, 1);
  if (g.k > 0) {  // A's coefficients are read byte by byte
    key.reads = kReadsA | kReadsB;
    bits |= g.B.pointers ? 0 : tuning::bits_of(g.B, 1, 1);
  }
  if (g.accumulate) key.reads |= kReadsC;
  key.aligned = tuning::is_aligned(bits);
  key.pointers = g.C.pointers != nullptr;
  return key;
}

/// The number of a kernel's configuration; -1: it has none of that name.
template <class Args>
int find_config(const Kernel<Args>& kernel, std::string_view name) {
  for (std::size_t i = 0; i < kernel.configs.size(); ++i)
    if (kernel.configs[i] == name) return int(i);
  return -1;
}

/// A row of a backend's table and one of its configurations.
struct TunedRow {
  int row = -1, config = -1;  // row < 0: none
};

class TuneTable {
 public:
  explicit TuneTable(const TuneFile& file);

  /// What the file says to run for the call on the backend.
  template <class Args>
  TunedRow find(const Backend& backend, const DeviceInfo& device, const Args& args) const {
    const Section* section = section_of(backend, device);
    return section ? find(*section, backend.kernels<Args>(), key_of(args), device) : TunedRow{};
  }

  /// Are there entries of the backend, whatever the device?
  bool mentions(const Backend& backend) const {
    return std::ranges::any_of(sections_,
                               [&](const Section& s) { return s.backend == backend.name(); });
  }
  /// Was a call made on a backend of which the file has other devices only?
  bool foreign() const { return foreign_.load(std::memory_order_relaxed); }

 private:
  struct Hash {
    std::size_t operator()(const TuneKey& key) const noexcept;
  };
  /// What an entry names. Its place in the tables is looked up when it is first needed: a backend
  /// may be registered late, and another version's kernels need not be here.
  struct Choice {
    std::string kernel, config;
    mutable std::atomic<std::int64_t> place{kUnknown};

    Choice(std::string k, std::string c) : kernel(std::move(k)), config(std::move(c)) {}
  };
  static constexpr std::int64_t kUnknown = -1, kNowhere = -2;
  struct Section {
    std::string backend, device;
    std::unordered_map<TuneKey, Choice, Hash> entries;
  };

  const Section* section_of(const Backend& backend, const DeviceInfo& device) const {
    bool others = false;
    for (const Section& section : sections_) {
      if (section.backend != backend.name()) continue;
      if (section.device == device.name) return &section;
      others = true;
    }
    if (others) foreign_.store(true, std::memory_order_relaxed);
    return nullptr;
  }

  template <class Args>
  static TunedRow find(const Section& section, std::span<const Kernel<Args>> table, TuneKey key,
                       const DeviceInfo& device) {
    key.threads = tuned_threads(device);
    const auto found = section.entries.find(key);
    if (found == section.entries.end()) return {};
    const Choice& choice = found->second;
    std::int64_t place = choice.place.load(std::memory_order_relaxed);
    if (place == kUnknown) {
      place = place_of(choice, table);
      choice.place.store(place, std::memory_order_relaxed);
    }
    if (place == kNowhere) return {};
    return {int(place >> 32), int(place & 0xffffffff) - 1};
  }
  /// Row and configuration + 1 in one number.
  template <class Args>
  static std::int64_t place_of(const Choice& choice, std::span<const Kernel<Args>> table) {
    for (std::size_t row = 0; row < table.size(); ++row) {
      if (table[row].name != choice.kernel) continue;
      const int config = find_config(table[row], choice.config);
      if (config >= 0 || choice.config.empty())
        return std::int64_t(row) << 32 | std::int64_t(config + 1);
    }
    return kNowhere;
  }

  std::vector<Section> sections_;
  mutable std::atomic<bool> foreign_ = false;
};

/// That of tune_file(); null where there is none or it is ignored.
const TuneTable* tune_table();

/// The entry that `args` would be found by; kernel and config are left empty.
template <class Args>
TuneEntry tune_entry(const Backend& backend, const DeviceInfo& device, const Args& args);

}  // namespace mblas
