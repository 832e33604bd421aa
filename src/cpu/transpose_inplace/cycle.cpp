// Any shape, without workspace: elements follow the paths of the transposition, which the element
// at position i lda + j leaves for position j ldb + i. Where the leading dimensions pad the rows
// this is no permutation but a partial one: some paths are chains, from a position that receives
// nothing to one that gives nothing; the others are cycles. A cycle is moved from its smallest
// position, which every position of it finds out by walking on: no marks, but on average a
// logarithmic number of steps an element, each to another cache line. Matrices of a batch are
// spread over the threads.
#include "cpu/kernels.hpp"
#include "cpu/tiles.hpp"
#include "cpu/visit.hpp"

namespace mblas::cpu {
namespace {

struct Paths {
  std::int64_t m, n, lda, ldb;

  bool gives(std::int64_t p) const { return p / lda < m && p % lda < n; }
  bool receives(std::int64_t p) const { return p / ldb < n && p % ldb < m; }
  std::int64_t next(std::int64_t p) const { return p % lda * ldb + p / lda; }

  /// Is `p`, which gives, the smallest position of a cycle?
  bool leads_cycle(std::int64_t p) const {
    std::int64_t q = next(p);
    while (q > p && gives(q)) q = next(q);
    return q == p;
  }
};

/// Moves the elements from `start` on, until the path ends or closes.
template <class T>
void move_path(const Paths& paths, T* A, std::int64_t start) {
  T carried = A[start];
  std::int64_t p = start;
  bool more = true;
  while (more) {
    p = paths.next(p);
    more = p != start && paths.gives(p);
    const T displaced = A[p];
    A[p] = carried;
    carried = displaced;
  }
}

}  // namespace

void transpose_inplace_cycle(const TransposeInplaceArgs& args, Queue& queue) {
  const Paths paths{args.m, args.n, args.A.ld, args.ldb};
  const int threads =
      copy_threads(args.batch, args.m, args.n, size_of(args.type), queue.device().num_threads);
  visit_untyped(args.type, [&]<class T>(Type<T>) {
    Tiling{1, 1, args.batch, 1, 1}.for_each(threads, [&](const Tile& tile, int /*thread*/) {
      auto* A = static_cast<T*>(args.A.at(tile.batch, sizeof(T)));
      for (std::int64_t i = 0; i < args.m; ++i) {
        for (std::int64_t p = i * args.A.ld; p < i * args.A.ld + args.n; ++p) {
          if (!paths.receives(p) || paths.leads_cycle(p)) move_path(paths, A, p);
        }
      }
    });
  });
}

}  // namespace mblas::cpu
