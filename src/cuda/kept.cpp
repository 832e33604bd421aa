#include "cuda/kept.hpp"

namespace mblas::cuda {
namespace {

struct KeptCopy : Prepared {
  KeptOperand of;
  bool filled = false;
  void* memory = nullptr;

  KeptCopy(const KeptOperand& operand, void* at, std::size_t size) : of(operand), memory(at) {
    bytes = size;
  }
  ~KeptCopy() override {
    const RelaxedCapture relaxed;
    const DeviceGuard guard(of.device);
    static_cast<void>(cudaFree(memory));  // waits for what still reads it
  }
};

}  // namespace

KeptPlace kept_place(const GemmArgs& args, bool is_b, const KeptOperand& operand, std::size_t bytes,
                     const CudaQueue& queue) {
  if (!args.keeper || args.keeps_b != is_b || !operand.data) return {};
  std::unique_ptr<Prepared>& prepared = args.keeper->prepared;
  if (const auto* copy = dynamic_cast<const KeptCopy*>(prepared.get());
      copy && copy->filled && copy->of == operand)
    return {static_cast<std::byte*>(copy->memory), true};
  if (queue.capturing()) return {};  // what fills it would run when the graph does
  prepared.reset();
  const DeviceGuard guard(operand.device);
  void* memory = nullptr;
  if (cudaMalloc(&memory, bytes) != cudaSuccess) {
    static_cast<void>(cudaGetLastError());
    return {};  // then it is prepared in the workspace
  }
  prepared = std::make_unique<KeptCopy>(operand, memory, bytes);
  return {static_cast<std::byte*>(memory), false};
}

void set_filled(const GemmArgs& args) {
  static_cast<KeptCopy&>(*args.keeper->prepared).filled = true;
}

}  // namespace mblas::cuda
