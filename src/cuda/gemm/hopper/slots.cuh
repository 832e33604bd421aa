// The stages of the ring that a step along k takes, its slots, and the products made of them.
#pragma once

namespace mblas::cuda::gemm::hopper {

/// The planes of A and B that are in slot `number` of `kPlanes`: the last of A with the first of B,
/// then each with its partner, so that the first slots have the smallest products.
template <int kPlanes>
__device__ int plane_of_a(int number) {
  return number == 0 ? kPlanes - 1 : number - 1;
}
template <int kPlanes>
__device__ int plane_of_b(int number) {
  return number == 0 ? 0 : kPlanes - number;
}

/// Of A's panel in slot `a` and B's in slot `b`.
struct SlotProduct {
  int a, b;
};

/// The products in their order, the smallest first: what is truncated where they are added up is
/// then small. Product i is the first that needs slot i, and of both operands.
template <int kPlanes>
inline constexpr SlotProduct kProductsOf[] = {{0, 0}};
template <>
inline constexpr SlotProduct kProductsOf<2>[] = {{0, 0}, {1, 1}, {1, 0}};
template <>
inline constexpr SlotProduct kProductsOf<3>[] = {{0, 0}, {1, 1}, {2, 2}, {2, 0}, {1, 2}, {1, 0}};

/// Steps along k, of 64, between roundings of sums: fewer products a step leave less to truncate.
template <int kPlanes>
inline constexpr int kStepsOfSlots = 1;
template <>
inline constexpr int kStepsOfSlots<2> = 2;

}  // namespace mblas::cuda::gemm::hopper
