// Copies of operands that a GemmPlan keeps in device memory.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cuda/device.hpp"

namespace mblas::cuda {

/// What a copy is of, and for what.
struct KeptOperand {
  const char* row;  ///< of the table, by the address of its name
  const void* data;
  std::int64_t rows, cols, ld, stride, count;  ///< as stored
  int size;                                    ///< bytes of an element
  bool along_k;                                ///< rows run along k
  int device;
  bool conjugated = false;
  bool transposed = false;  ///< by the copy, where a row's may be either
  bool operator==(const KeptOperand&) const = default;
};

/// A place for a copy in the plan of a call: where nothing is kept, nullptr.
struct KeptPlace {
  std::byte* at = nullptr;
  bool filled = false;  ///< with the copy; else the row fills it, and then says so
};

/// For B of the call if `is_b`, else for A: `bytes` for what is in the plan, or may be put there.
KeptPlace kept_place(const GemmArgs& args, bool is_b, const KeptOperand& operand, std::size_t bytes,
                     const CudaQueue& queue);
/// What fills the place has been launched.
void set_filled(const GemmArgs& args);

}  // namespace mblas::cuda
