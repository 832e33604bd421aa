// What gemm prepares of an operand, kept from call to call.
#pragma once

#include <cstddef>
#include <cstdint>

#include "mblas/backend.hpp"
#include "mblas/export.hpp"

namespace mblas {

/// Keeps an operand that stays the same, as weights do, as the kernels want it: the first call with
/// the plan in its GemmOptions prepares the operand once more than without, later ones not at all.
/// A kernel's results are the same, bit for bit, with a plan and without; which one is chosen may
/// depend on it.
///
/// Calls know the operand by its address, shape, stride and op; other ones, another kernel or
/// another device take the plan over. Who changes its elements says so by clear(): else calls
/// compute with the old ones. Calls with one plan come after each other, as calls of one context
/// do, also on the device if their streams differ. The plan outlives graphs that were captured with
/// it.
///
/// Rows of `cuda` that use it: tensor_bf16x6, tensor_fp16x3, and tensor_wgmma for what it would
/// copy; of `openmp`: amx, bf16x6 and dot. Others, device backends' calls with operands in host
/// memory, operands behind arrays of pointers or beyond the workspace's limit of a device, and
/// calls that are captured before the plan is filled go without.
class MBLAS_EXPORT GemmPlan {
 public:
  enum class Operand : std::uint8_t { A, B };

  explicit GemmPlan(Operand operand) : operand_(operand) {}
  GemmPlan(GemmPlan&&) = default;
  GemmPlan& operator=(GemmPlan&&) = default;

  Operand operand() const { return operand_; }
  /// Forgets the operand and gives its memory back.
  void clear() { keeper_.prepared.reset(); }
  /// Of memory that it holds: 0 until a call has filled it.
  std::size_t bytes() const { return keeper_.prepared ? keeper_.prepared->bytes : 0; }

  /// For the library.
  Keeper* keeper() { return &keeper_; }

 private:
  Operand operand_;
  Keeper keeper_;
};

}  // namespace mblas
