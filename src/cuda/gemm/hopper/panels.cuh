// How the copy engine brings an operand, panel by panel.
#pragma once

#include <cuda.h>

namespace mblas::cuda::gemm::hopper {

/// An operand's side in C in panels of a tile's size. What of the last one lies beyond the operand
/// is not asked for, and what its place in shared memory holds then only goes to sums that are not
/// stored: the copy engine takes longer to fill a row with zeros than to bring one (bf16
/// 136×4096×4096 24.5 and 17.7 us).
struct Panels {
  CUtensorMap map, edge_map;   ///< of whole panels, and of the one that ends beyond the operand
  int size;                    ///< of the operand
  int edge;                    ///< where that panel begins; `size` where there is none
  unsigned bytes, edge_bytes;  ///< of a panel in a stage

  __device__ const CUtensorMap& map_at(int begin) const { return begin >= edge ? edge_map : map; }
  __device__ unsigned bytes_at(int begin) const {
    return begin >= size ? 0 : begin >= edge ? edge_bytes : bytes;
  }
};

/// `size` in panels of `whole` units that bring `unit_bytes` of a stage each; map_of(units) makes
/// the map of so many. Only panels of whole multiples of `step` units are brought.
template <class MapOf>
Panels panels_of(long long size, int whole, int step, unsigned unit_bytes, const MapOf& map_of) {
  const auto rounded = [&](long long units) { return int((units + step - 1) / step * step); };
  const int left = int(size % whole), first = size < whole ? rounded(size) : whole;
  Panels panels = {};
  panels.map = map_of(first);
  panels.size = panels.edge = int(size);
  panels.bytes = unsigned(first) * unit_bytes;
  if (left > 0 && size > whole) {
    panels.edge -= left;
    panels.edge_map = map_of(rounded(left));
    panels.edge_bytes = unsigned(rounded(left)) * unit_bytes;
  }
  return panels;
}

}  // namespace mblas::cuda::gemm::hopper
