// Three loops on one thread: every element of C is one sum in the order of k.
#include "cpu/kernels.hpp"
#include "cpu/visit.hpp"

namespace mblas::cpu {

void gemm_naive(const GemmArgs& args, Queue& /*queue*/) {
  visit_gemm_types(args.in, args.out, [&]<class In, class Out>(Type<In>, Type<Out>) {
    using Sum = wide_t<In>;
    const Strides a = strides_of(args.transA, args.A.ld), b = strides_of(args.transB, args.B.ld);
    const bool conj_a = is_conjugated(args.transA), conj_b = is_conjugated(args.transB);
    const Sum alpha = scalar<Sum>(args.alpha), beta = scalar<Sum>(args.beta);
    for (std::int64_t batch = 0; batch < args.batch; ++batch) {
      const auto* A = static_cast<const In*>(args.A.at(batch, sizeof(In)));
      const auto* B = static_cast<const In*>(args.B.at(batch, sizeof(In)));
      auto* C = static_cast<Out*>(args.C.at(batch, sizeof(Out)));
      for (std::int64_t i = 0; i < args.m; ++i) {
        for (std::int64_t j = 0; j < args.n; ++j) {
          Sum sum{};
          for (std::int64_t p = 0; p < args.k; ++p)
            sum += conjugate_if(conj_a, widen(A[i * a.row + p * a.col])) *
                   conjugate_if(conj_b, widen(B[p * b.row + j * b.col]));
          Out& c = C[i * args.C.ld + j];
          Sum result = alpha * sum;
          if (beta != Sum{}) result += beta * widen(c);
          c = static_cast<Out>(result);
        }
        if (!args.epilogue.is_none()) gemm_finish_block(args, batch, i, 0, 1, args.n);
      }
    }
  });
}

}  // namespace mblas::cpu
