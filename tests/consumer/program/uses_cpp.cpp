// A program of someone else's, in C++.
#include <iostream>
#include <mblas/mblas.hpp>
#include <vector>

int main() {
  const std::vector<double> A = {1, 2, 3, 4, 5, 6};     // 2×3
  const std::vector<double> B = {7, 8, 9, 10, 11, 12};  // 3×2
  std::vector<double> C(4);
  mblas::Context context;
  mblas::gemm(context, mblas::Layout::RowMajor, mblas::Op::NoTrans, mblas::Op::NoTrans, 2, 2, 3,
              1.0, A.data(), 3, B.data(), 2, 0.0, C.data(), 2);
  const bool right = C == std::vector<double>{58, 64, 139, 154};
  std::cout << "mblas " << mblas::version() << ", backend " << context.last_dispatch().backend
            << ", kernel " << context.last_dispatch().kernel << (right ? ": right\n" : ": WRONG\n");
  return right ? 0 : 1;
}
