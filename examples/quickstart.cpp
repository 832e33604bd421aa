// A product, the receipt of what computed it, and an error.
#include <iostream>
#include <mblas/mblas.hpp>
#include <vector>

int main() {
  using mblas::Layout;
  using mblas::Op;
  const std::vector<float> A = {1, 2, 3,  //
                                4, 5, 6};
  const std::vector<float> B = {1, 0, 2,  //
                                0, 1, 2};
  std::vector<float> C(4);

  // C (2×2) = 1 · A (2×3) · Bᵀ (3×2) + 0 · C, on the backend that MBLAS_BACKEND names, else the
  // best one.
  mblas::gemm(Layout::RowMajor, Op::NoTrans, Op::Trans, 2, 2, 3, 1, A.data(), 3, B.data(), 3, 0,
              C.data(), 2);
  std::cout << C[0] << ' ' << C[1] << '\n' << C[2] << ' ' << C[3] << '\n';

  // What ran. A Context of one's own has settings of its own: backend, device, stream, threads …
  const mblas::Dispatch& receipt = mblas::default_context().last_dispatch();
  std::cout << "computed by " << receipt.backend << ", kernel " << receipt.kernel << '\n';

  // Errors are exceptions of one type that carry a Status; try_… functions return the Status
  // instead.
  try {
    mblas::transpose(Layout::RowMajor, 2, 3, A.data(), 2, C.data(), 2);
  } catch (const mblas::Error& error) {
    std::cout << name_of(error.status()) << ": " << error.what() << '\n';
  }
}
