// One thread, one element after the other, in the order of A: every store opens another cache line.
#include "cpu/kernels.hpp"
#include "cpu/visit.hpp"

namespace mblas::cpu {

void transpose_naive(const TransposeArgs& args, Queue& /*queue*/) {
  visit_untyped(args.type, [&]<class T>(Type<T>) {
    for (std::int64_t b = 0; b < args.batch; ++b) {
      const auto* A = static_cast<const T*>(args.A.at(b, sizeof(T)));
      auto* B = static_cast<T*>(args.B.at(b, sizeof(T)));
      for (std::int64_t i = 0; i < args.m; ++i)
        for (std::int64_t j = 0; j < args.n; ++j) B[j * args.B.ld + i] = A[i * args.A.ld + j];
    }
  });
}

}  // namespace mblas::cpu
