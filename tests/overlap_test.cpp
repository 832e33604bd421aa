// Overlap is exact: submatrices of one array that interleave are fine, one shared element is not.
// Random placements in a small array, against the sets of elements.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <set>
#include <vector>

#include "random.hpp"
#include "support.hpp"

namespace mblas::testing {
namespace {

/// Indices of `batch` rows × cols matrices.
struct Elements {
  std::int64_t at, rows, cols, ld, stride, batch;

  std::set<std::int64_t> matrix(std::int64_t b) const {
    std::set<std::int64_t> all;
    for (std::int64_t i = 0; i < rows; ++i)
      for (std::int64_t j = 0; j < cols; ++j) all.insert(at + b * stride + i * ld + j);
    return all;
  }
};

bool meet(const std::set<std::int64_t>& x, const std::set<std::int64_t>& y) {
  return std::ranges::any_of(x, [&](std::int64_t i) { return y.contains(i); });
}

/// Does an output share elements with itself or with an input?
bool clashes(const Elements& out, std::initializer_list<Elements> inputs) {
  for (std::int64_t b = 0; b < out.batch; ++b) {
    for (std::int64_t d = 0; d < b; ++d)
      if (meet(out.matrix(b), out.matrix(d))) return true;
    for (const Elements& in : inputs)
      for (std::int64_t d = 0; d < in.batch; ++d)
        if (meet(out.matrix(b), in.matrix(d))) return true;
  }
  return false;
}

class Overlap : public ::testing::Test {
 protected:
  Elements place(std::int64_t rows, std::int64_t cols, std::int64_t batch) {
    // Often one ld for all, as submatrices of one array have.
    const std::int64_t ld = random.below(3) ? 16 : cols + random.below(20);
    return {
        random.below(200), rows, cols, std::max(ld, cols), batch > 1 ? random.below(60) : 0, batch};
  }
  void expect(bool clash, Status status, const char* what) {
    (clash ? refused : allowed)++;
    EXPECT_EQ(name_of(status), name_of(clash ? Status::Overlap : Status::Ok)) << what;
  }
  void TearDown() override {
    EXPECT_GT(refused, 100);
    EXPECT_GT(allowed, 100);
  }
  std::int64_t size() { return 1 + random.below(5); }

  cases::Random random{7};
  Context context{"openmp"};
  std::vector<float> array = std::vector<float>(2000);
  int refused = 0, allowed = 0;
};

TEST_F(Overlap, Gemm) {
  for (int trial = 0; trial < 4000; ++trial) {
    const std::int64_t m = size(), n = size(), k = size(), batch = 1 + random.below(3);
    const Elements A = place(m, k, batch), B = place(k, n, batch), C = place(m, n, batch);
    const Status status = try_gemm_strided_batched(
        context, R, Op::NoTrans, Op::NoTrans, m, n, k, 1.0f, array.data() + A.at, A.ld, A.stride,
        array.data() + B.at, B.ld, B.stride, 0.0f, array.data() + C.at, C.ld, C.stride, batch);
    expect(clashes(C, {A, B}), status, "strided");
  }
}

TEST_F(Overlap, GemmBehindPointers) {
  for (int trial = 0; trial < 4000; ++trial) {
    const std::int64_t m = size(), n = size(), k = size(), batch = 1 + random.below(3);
    std::vector<const float*> As, Bs;
    std::vector<float*> Cs;
    std::vector<Elements> in, out;
    const Elements A = place(m, k, 1), B = place(k, n, 1), C = place(m, n, 1);
    for (std::int64_t b = 0; b < batch; ++b) {
      const auto moved = [&](Elements e, std::int64_t from = 0) {
        e.at = from + random.below(300);
        return e;
      };
      // Of every other trial C's matrices meet one another only.
      const std::int64_t inputs = trial % 2 * 1000;
      in.push_back(moved(A, inputs));
      As.push_back(array.data() + in.back().at);
      in.push_back(moved(B, inputs));
      Bs.push_back(array.data() + in.back().at);
      out.push_back(moved(C));
      Cs.push_back(array.data() + out.back().at);
    }
    bool clash = false;
    for (std::size_t i = 0; i < out.size(); ++i) {
      for (std::size_t j = 0; j < i; ++j) clash |= meet(out[i].matrix(0), out[j].matrix(0));
      for (const Elements& e : in) clash |= meet(out[i].matrix(0), e.matrix(0));
    }
    expect(clash,
           try_gemm_batched(context, R, Op::NoTrans, Op::NoTrans, m, n, k, 1.0f, As, A.ld, Bs, B.ld,
                            0.0f, Cs, C.ld),
           "pointers");
  }
}

TEST_F(Overlap, GemmGrouped) {
  for (int trial = 0; trial < 3000; ++trial) {
    std::vector<GemmGroup<float>> groups(std::size_t(1 + random.below(3)));
    std::vector<Elements> in, out;
    for (GemmGroup<float>& g : groups) {
      g.m = size(), g.n = size(), g.k = size();
      in.push_back(place(g.m, g.k, 1));
      g.A = array.data() + in.back().at, g.lda = in.back().ld;
      in.push_back(place(g.k, g.n, 1));
      g.B = array.data() + in.back().at, g.ldb = in.back().ld;
      out.push_back(place(g.m, g.n, 1));
      g.C = array.data() + out.back().at, g.ldc = out.back().ld;
    }
    bool clash = false;
    for (std::size_t i = 0; i < out.size(); ++i) {
      for (std::size_t j = 0; j < i; ++j) clash |= meet(out[i].matrix(0), out[j].matrix(0));
      for (const Elements& e : in) clash |= meet(out[i].matrix(0), e.matrix(0));
    }
    expect(clash, try_gemm_grouped(context, groups), "grouped");
  }
}

TEST_F(Overlap, GeamWithItsInPlaceForms) {
  for (int trial = 0; trial < 6000; ++trial) {
    const std::int64_t m = size(), n = size(), batch = 1 + random.below(3);
    const Op ops[] = {Op::NoTrans, Op::Trans};
    const Op a = ops[random.below(2)], b = ops[random.below(2)];
    const auto as_stored = [&](Op op) {
      return is_transposed(op) ? place(n, m, batch) : place(m, n, batch);
    };
    Elements A = as_stored(a), B = as_stored(b);
    const Elements C = place(m, n, batch);
    if (!is_transposed(a) && random.below(3) == 0) A = C;
    if (!is_transposed(b) && random.below(3) == 0) B = C;
    if (random.below(8) == 0) A.stride = 0;
    // Matrix b of an operand may be matrix b of C.
    const auto hits = [&](const Elements& x, Op op) {
      for (std::int64_t i = 0; i < batch; ++i)
        for (std::int64_t j = 0; j < batch; ++j) {
          const bool itself = i == j && !is_transposed(op) && x.ld == C.ld &&
                              C.at + i * C.stride == x.at + j * x.stride;
          if (!itself && meet(C.matrix(i), x.matrix(j))) return true;
        }
      return false;
    };
    const Status status = try_geam_strided_batched(
        context, R, a, b, m, n, 1.0f, array.data() + A.at, A.ld, A.stride, 1.0f,
        array.data() + B.at, B.ld, B.stride, array.data() + C.at, C.ld, C.stride, batch);
    expect(clashes(C, {}) || hits(A, a) || hits(B, b), status, "geam");
  }
}

TEST_F(Overlap, Transposes) {
  for (int trial = 0; trial < 4000; ++trial) {
    const std::int64_t m = size(), n = size(), batch = 1 + random.below(3);
    const Elements A = place(m, n, batch), B = place(n, m, batch);
    expect(clashes(B, {A}),
           try_transpose_strided_batched(context, R, m, n, array.data() + A.at, A.ld, A.stride,
                                         array.data() + B.at, B.ld, B.stride, batch),
           "transpose");
    Elements after = B;
    after.at = A.at;
    after.stride = A.stride;
    bool clash = clashes(A, {}) || clashes(after, {});
    for (std::int64_t i = 0; i < batch; ++i)
      for (std::int64_t j = 0; j < batch; ++j)
        clash |= i != j && meet(after.matrix(i), A.matrix(j));
    expect(clash,
           try_transpose_inplace_strided_batched(context, R, m, n, array.data() + A.at, A.ld, B.ld,
                                                 A.stride, batch),
           "transpose_inplace");
  }
}

TEST_F(Overlap, Gf256) {
  std::vector<std::uint8_t> bytes(2000);
  for (int trial = 0; trial < 4000; ++trial) {
    const std::int64_t m = size(), n = size(), k = size();
    const Elements A = place(m, k, 1), B = place(k, n, 1), C = place(m, n, 1);
    const Status status = gf256::try_gemm(context, m, n, k, bytes.data() + A.at, A.ld,
                                          bytes.data() + B.at, B.ld, bytes.data() + C.at, C.ld);
    expect(clashes(C, {A, B}), status, "gf256");
  }
}

}  // namespace
}  // namespace mblas::testing
