// How the copy engine brings an operand, panel by panel.
#pragma once

#include <cuda.h>

#include <limits>

namespace mblas::cuda::gemm::hopper {

/// An operand's side in C in panels of a tile's size. What of the last one lies beyond the operand
/// is not asked for, and what its place in shared memory holds then only goes to sums that are not
/// stored: the copy engine takes longer to fill a row with zeros than to bring one (bf16
/// 136×4096×4096 24.5 and 17.7 us).
struct Panels {
  /// Of whole panels, and of the one that ends beyond the operand; not along k: of all steps, and
  /// of the one with the last row.
  CUtensorMap map, edge_map;
  int last;               ///< the k where that step begins, if the maps are not the same
  int size;               ///< of the operand
  int edge;               ///< where that panel begins; `size` where there is none
  int units, edge_units;  ///< of a panel that are brought
  int share, edge_share;  ///< that each block of a cluster brings for all of them
  int box_rows;           ///< not along k: of a step's, where blocks share boxes by rows
  int box_bytes;          ///< of a box's row

  __device__ const CUtensorMap& map_at(int begin) const { return begin >= edge ? edge_map : map; }
  __device__ const CUtensorMap& map_of_step(int k) const { return k >= last ? edge_map : map; }
  __device__ int units_at(int begin) const {
    return begin >= size ? 0 : begin >= edge ? edge_units : units;
  }
  __device__ int share_at(int begin) const { return begin >= edge ? edge_share : share; }
};

/// `size` in panels of `whole` units, which `cluster` blocks bring together; map_of(rows) makes the
/// map of boxes of so many. Along k those are units, which come eight at a time, as they are
/// swizzled. Shares are equal: where eights cannot be dealt out, some come twice. An operand that
/// is not along k comes by boxes of a step's `depth` rows and, in clusters, as many columns, all of
/// one size. Those of a panel are dealt out; of a single one each block brings some rows, as all
/// wait for it. (Rows of several boxes are slower: bf16 NN 256×3000×3000 by 64×128 in clusters of
/// four 15.6 us for 14.6.)
template <class MapOf>
Panels panels_of(long long size, int whole, int cluster, bool along_k, int depth,
                 const MapOf& map_of) {
  const auto rounded = [](long long units) { return int((units + 7) / 8 * 8); };
  const auto share_of = [&](int units) { return rounded((units + cluster - 1) / cluster); };
  const int left = int(size % whole);
  Panels panels = {};
  panels.size = panels.edge = int(size);
  panels.last = std::numeric_limits<int>::max();
  if (!along_k) {
    const bool single = (size < whole ? size : whole) <= depth;
    panels.box_rows = single ? depth / cluster : depth;
    panels.map = map_of(panels.box_rows);
    return panels;
  }
  panels.units = size < whole ? rounded(size) : whole;
  panels.share = share_of(panels.units);
  panels.map = map_of(panels.share);
  if (left > 0 && size > whole) {
    panels.edge -= left;
    panels.edge_units = rounded(left);
    panels.edge_share = share_of(panels.edge_units);
    panels.edge_map = map_of(panels.edge_share);
  }
  return panels;
}

}  // namespace mblas::cuda::gemm::hopper
