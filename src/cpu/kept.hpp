// Packed operands that a GemmPlan keeps in memory of the host.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>

#include "core/host_memory.hpp"
#include "mblas/backend.hpp"

namespace mblas::cpu {

/// Is B of the call, else A, one matrix that its plan is to keep?
inline bool is_kept(const GemmArgs& args, bool is_b) {
  const Input& x = is_b ? args.B : args.A;
  return args.keeper && args.keeps_b == is_b && !x.pointers && (args.batch == 1 || x.stride == 0);
}

/// Key: what an operand is known by, and how it is packed.
template <class Key>
struct KeptCopy : Prepared {
  const Key of;
  std::byte* const memory;

  KeptCopy(const Key& key, std::size_t size)
      : of(key), memory(static_cast<std::byte*>(allocate_host(size))) {
    bytes = size;
  }
  KeptCopy(const KeptCopy&) = delete;
  KeptCopy& operator=(const KeptCopy&) = delete;
  ~KeptCopy() override { deallocate_host(memory); }
};

/// The packed operand in the plan; where it is another one's, or empty, fill(memory) packs `bytes`
/// first. Null where there is no memory for it: then the call goes without.
template <class Key, class Fill>
const std::byte* kept(Keeper& keeper, const Key& of, std::size_t bytes, const Fill& fill) {
  using Copy = KeptCopy<Key>;
  if (const auto* copy = dynamic_cast<const Copy*>(keeper.prepared.get()); copy && copy->of == of)
    return copy->memory;
  keeper.prepared.reset();
  try {
    auto copy = std::make_unique<Copy>(of, bytes);
    fill(copy->memory);
    keeper.prepared = std::move(copy);
  } catch (const Error& error) {
    if (error.status() != Status::OutOfMemory) throw;
    return nullptr;
  }
  return static_cast<const Copy&>(*keeper.prepared).memory;
}

}  // namespace mblas::cpu
