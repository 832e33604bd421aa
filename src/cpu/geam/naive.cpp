// One thread, one element after the other: a transposed operand opens another cache line each time.
#include "cpu/kernels.hpp"
#include "cpu/visit.hpp"

namespace mblas::cpu {

void geam_naive(const GeamArgs& args, Queue& /*queue*/) {
  visit_geam_type(args.type, [&]<class T>(Type<T>) {
    using Sum = wide_t<T>;
    const Strides a = strides_of(args.transA, args.A.ld), b = strides_of(args.transB, args.B.ld);
    const bool conj_a = is_conjugated(args.transA), conj_b = is_conjugated(args.transB);
    const Sum alpha = scalar<Sum>(args.alpha), beta = scalar<Sum>(args.beta);
    const bool has_a = args.alpha != Scalar{}, has_b = args.beta != Scalar{};
    for (std::int64_t batch = 0; batch < args.batch; ++batch) {
      const T* A = has_a ? static_cast<const T*>(args.A.at(batch, sizeof(T))) : nullptr;
      const T* B = has_b ? static_cast<const T*>(args.B.at(batch, sizeof(T))) : nullptr;
      auto* C = static_cast<T*>(args.C.at(batch, sizeof(T)));
      for (std::int64_t i = 0; i < args.m; ++i) {
        for (std::int64_t j = 0; j < args.n; ++j) {
          Sum sum{};
          if (has_a) sum += alpha * conjugate_if(conj_a, widen(A[i * a.row + j * a.col]));
          if (has_b) sum += beta * conjugate_if(conj_b, widen(B[i * b.row + j * b.col]));
          C[i * args.C.ld + j] = static_cast<T>(sum);
        }
      }
    }
  });
}

}  // namespace mblas::cpu
