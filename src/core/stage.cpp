// Host operands on a device backend: the problem is cut into blocks, and each block goes to the
// device, through a kernel and back, alternately on two lanes (streams with memory of their own),
// so that one lane's transfers overlap the other's. A block that stays the same from one step of a
// lane to the next (the panel of B under a column of C's blocks) is not sent again.
#include <algorithm>
#include <array>
#include <exception>
#include <optional>
#include <span>

#include "core/dispatch.hpp"
#include "core/finish.hpp"
#include "core/select.hpp"

namespace mblas {
namespace {

constexpr int kLanes = 2;
constexpr std::int64_t kLeastBytes = std::int64_t{8} << 20;  // shorter transfers are mostly latency
/// Where rows are so long that pieces of them are copied as fast, so many blocks: the first one's
/// way in and the last one's way out are not overlapped. The last one is cut up further, by halves.
constexpr std::int64_t kManyBlocks = 12, kLastHalvings = 3;
constexpr std::int64_t kGrain = 64;  // what sizes of blocks are multiples of, while they are large
constexpr std::size_t kOutput = 2, kBias = 3, kParts = 4;  // of a block; 0 and 1: A and B

/// A range of the problem: batch entries [b, b+bn), rows [i, i+mn) and columns [j, j+nn) of the
/// output, steps [p, p+kn) of the inner dimension.
struct Block {
  std::int64_t b, bn, i, mn, j, nn, p, kn;
};

/// Largest extents of a block.
struct BlockShape {
  std::int64_t bn, mn, nn, kn;
};

/// What a block needs of one operand: the submatrix at (row, col) of the matrix as stored.
struct Part {
  const void* data = nullptr;  // of the operand
  std::int64_t ld = 0, stride = 0;
  const void* const* pointers = nullptr;
  bool pointer_rows = false;  // gf256: pointers hold one row each
  int size = 1;               // bytes an element
  std::int64_t row = 0, col = 0, rows = 0, cols = 0;
  bool load = true, store = false;
  bool shared = false;  // one for the whole batch

  template <class Void>
  Part(const Operand<Void>& x, int element, std::int64_t row0, std::int64_t col0,
       std::int64_t nrows, std::int64_t ncols)
      : data(x.data),
        ld(x.ld),
        stride(x.stride),
        pointers(x.pointers),
        size(element),
        row(row0),
        col(col0),
        rows(nrows),
        cols(ncols) {}
  Part() = default;

  /// Leading dimension on the device: rows start 16-byte aligned.
  std::int64_t device_ld() const {
    const std::int64_t step = std::max(1, 16 / size);
    return (cols + step - 1) / step * step;
  }
  std::int64_t device_stride() const { return rows * device_ld(); }
  std::int64_t bytes(std::int64_t batch) const {
    return ((shared ? 1 : batch) * device_stride() * size + 255) / 256 * 256;
  }
  bool same_block(const Part& o) const {
    return row == o.row && col == o.col && rows == o.rows && cols == o.cols;
  }
};

/// The submatrix of a product's operand that op turns into rows [r, r+rn) × columns [c, c+cn).
template <class Void>
Part product_part(const Operand<Void>& x, int size, Op op, std::int64_t r, std::int64_t rn,
                  std::int64_t c, std::int64_t cn) {
  if (is_transposed(op)) return {x, size, c, r, cn, rn};
  return {x, size, r, c, rn, cn};
}

// How an operation is cut: the extents of the whole, the parts of a block, and the call on the
// device.
template <class Args>
struct Stager;

template <>
struct Stager<GemmArgs> {
  static BlockShape whole(const GemmArgs& g) {
    return {g.batch, g.m, g.n, std::max<std::int64_t>(1, g.k)};
  }
  static bool has_long_rows(const GemmArgs&) { return false; }
  /// A 16-bit C would be rounded after every block of k, and so would one of float from int8.
  static bool splits_k(const GemmArgs& g) {
    return size_of(g.out) >= 4 && !(g.in == DType::i8 && g.out == DType::f32);
  }
  static std::array<Part, kParts> parts(const GemmArgs& g, const Block& k) {
    std::array<Part, kParts> p;
    if (g.k > 0) {
      p[0] = product_part(g.A, size_of(g.in), g.transA, k.i, k.mn, k.p, k.kn);
      p[1] = product_part(g.B, size_of(g.in), g.transB, k.p, k.kn, k.j, k.nn);
    }
    p[2] = product_part(g.C, size_of(g.out), Op::NoTrans, k.i, k.mn, k.j, k.nn);
    p[2].load = k.p == 0 && g.beta != Scalar{};
    p[2].store = g.k == 0 || k.p + k.kn == g.k;
    if (const Bias& bias = g.epilogue.bias; bias.per != BiasPer::None) {
      const bool rows = bias.per == BiasPer::Row;
      const Input numbers{bias.data, bias_length(g)};
      p[kBias] = {numbers, size_of(g.out), 0, rows ? k.i : k.j, 1, rows ? k.mn : k.nn};
      p[kBias].shared = true;
    }
    return p;
  }
  static GemmArgs on_device(const GemmArgs& g, const Block& k) {
    GemmArgs d = g;
    d.m = k.mn;
    d.n = k.nn;
    d.k = g.k > 0 ? k.kn : 0;
    if (k.p > 0) d.beta = {1, 0};
    if (k.p + k.kn < g.k) d.epilogue = {};
    d.keeper = nullptr;  // the same addresses hold one block after another
    return d;
  }
};

template <>
struct Stager<GeamArgs> {
  static BlockShape whole(const GeamArgs& g) { return {g.batch, g.m, g.n, 1}; }
  static bool has_long_rows(const GeamArgs&) { return false; }
  static bool splits_k(const GeamArgs&) { return false; }
  static std::array<Part, kParts> parts(const GeamArgs& g, const Block& k) {
    std::array<Part, kParts> p;
    const int size = size_of(g.type);
    if (g.alpha != Scalar{}) p[0] = product_part(g.A, size, g.transA, k.i, k.mn, k.j, k.nn);
    if (g.beta != Scalar{}) p[1] = product_part(g.B, size, g.transB, k.i, k.mn, k.j, k.nn);
    p[2] = product_part(g.C, size, Op::NoTrans, k.i, k.mn, k.j, k.nn);
    p[2].load = false;
    p[2].store = true;
    return p;
  }
  static GeamArgs on_device(const GeamArgs& g, const Block& k) {
    GeamArgs d = g;
    d.m = k.mn;
    d.n = k.nn;
    return d;
  }
};

template <>
struct Stager<TransposeArgs> {
  static BlockShape whole(const TransposeArgs& t) { return {t.batch, t.m, t.n, 1}; }
  static bool has_long_rows(const TransposeArgs&) { return false; }
  static bool splits_k(const TransposeArgs&) { return false; }
  static std::array<Part, kParts> parts(const TransposeArgs& t, const Block& k) {
    std::array<Part, kParts> p;
    p[0] = product_part(t.A, size_of(t.type), Op::NoTrans, k.i, k.mn, k.j, k.nn);
    p[2] = product_part(t.B, size_of(t.type), Op::Trans, k.i, k.mn, k.j, k.nn);
    p[2].load = false;
    p[2].store = true;
    return p;
  }
  static TransposeArgs on_device(const TransposeArgs& t, const Block& k) {
    TransposeArgs d = t;
    d.m = k.mn;
    d.n = k.nn;
    return d;
  }
};

template <>
struct Stager<Gf256Args> {
  static BlockShape whole(const Gf256Args& g) {
    return {1, g.m, g.n, std::max<std::int64_t>(1, g.k)};
  }
  static bool has_long_rows(const Gf256Args& g) { return g.n >= std::int64_t{8} << 20; }
  static bool splits_k(const Gf256Args&) { return true; }
  static std::array<Part, kParts> parts(const Gf256Args& g, const Block& k) {
    std::array<Part, kParts> p;
    if (g.k > 0) {
      p[0] = {g.A, 1, k.i, k.p, k.mn, k.kn};
      p[1] = {g.B, 1, k.p, k.j, k.kn, k.nn};
      p[1].pointer_rows = g.B.pointers != nullptr;
    }
    p[2] = {g.C, 1, k.i, k.j, k.mn, k.nn};
    p[2].pointer_rows = g.C.pointers != nullptr;
    p[2].load = k.p == 0 && g.accumulate;
    p[2].store = g.k == 0 || k.p + k.kn == g.k;
    return p;
  }
  static Gf256Args on_device(const Gf256Args& g, const Block& k) {
    Gf256Args d = g;
    d.m = k.mn;
    d.n = k.nn;
    d.k = g.k > 0 ? k.kn : 0;
    d.accumulate = g.accumulate || k.p > 0;
    return d;
  }
};

void set_operand(Input& x, void* p, const Part& part) {
  x = {p, part.device_ld(), part.device_stride(), nullptr};
}
void set_operand(Output& x, void* p, const Part& part) {
  x = {p, part.device_ld(), part.device_stride(), nullptr};
}

/// Points the device call's operands at the parts, in the order of Stager::parts.
template <class Args>
void place(Args& d, const std::array<Part, kParts>& parts,
           const std::array<std::byte*, kParts>& at) {
  if (parts[0].rows > 0) set_operand(d.A, at[0], parts[0]);
  if constexpr (std::is_same_v<Args, TransposeArgs>) {
    set_operand(d.B, at[2], parts[2]);
  } else {
    if (parts[1].rows > 0) set_operand(d.B, at[1], parts[1]);
    set_operand(d.C, at[2], parts[2]);
  }
  if constexpr (std::is_same_v<Args, GemmArgs>)
    if (d.epilogue.bias.per != BiasPer::None) d.epilogue.bias.data = at[kBias];
}

/// Moves `batch` submatrices between the host operand and packed device memory. Touches no byte of
/// the host outside the submatrices.
void transfer(Queue& queue, const Part& part, std::int64_t b0, std::int64_t batch,
              std::byte* device, CopyKind kind) {
  const std::int64_t width = part.cols * part.size, pitch = part.device_ld() * part.size;
  const auto between = [&](const std::byte* host, std::int64_t host_pitch, std::byte* at,
                           std::int64_t rows) -> Copy2D {
    if (kind == CopyKind::HostToDevice) return {at, pitch, host, host_pitch, width, rows};
    return {const_cast<std::byte*>(host), host_pitch, at, pitch, width, rows};
  };
  if (part.pointer_rows) {
    std::array<Copy2D, 32> rows;
    for (std::int64_t r = 0; r < part.rows;) {
      std::size_t count = 0;
      for (; count < rows.size() && r < part.rows; ++r)
        rows[count++] = between(
            static_cast<const std::byte*>(part.pointers[part.row + r]) + part.col * part.size,
            width, device + r * pitch, 1);
      queue.copy_all(std::span(rows).first(count), kind);
    }
    return;
  }
  const std::int64_t host_pitch = part.ld * part.size;
  const std::int64_t corner = part.row * host_pitch + part.col * part.size;
  // Matrices that follow one another at their own pitch are one tall matrix.
  const bool tall = !part.pointers && part.stride == part.rows * part.ld;
  for (std::int64_t b = 0; b < (tall || part.shared ? 1 : batch); ++b) {
    const void* matrix = part.pointers ? part.pointers[b0 + b]
                                       : static_cast<const std::byte*>(part.data) +
                                             (b0 + b) * part.stride * part.size;
    queue.copy(between(static_cast<const std::byte*>(matrix) + corner, host_pitch,
                       device + b * part.rows * pitch, tall ? batch * part.rows : part.rows),
               kind);
  }
}

template <class Args>
std::int64_t block_bytes(const Args& args, const BlockShape& s) {
  std::int64_t bytes = 0;
  for (const Part& part : Stager<Args>::parts(args, {0, s.bn, 0, s.mn, 0, s.nn, 0, s.kn}))
    bytes += part.bytes(s.bn);
  return bytes;
}

std::int64_t halve(std::int64_t extent, std::int64_t multiple) {
  return extent <= multiple ? (extent + 1) / 2
                            : ((extent + 1) / 2 + multiple - 1) / multiple * multiple;
}

/// The largest blocks, by halving the longest extent, of which one for each lane fits in `budget`,
/// and small enough that the lanes have something to overlap. bn == 0: not even one element fits.
template <class Args>
BlockShape plan(const Args& args, std::int64_t budget) {
  BlockShape s = Stager<Args>::whole(args);
  const std::int64_t all = block_bytes(args, s);
  const std::int64_t few = all > 4 * kLeastBytes ? all / 4 : all;
  const std::int64_t fair =
      Stager<Args>::has_long_rows(args) ? std::max(all / kManyBlocks, kLeastBytes) : few;
  const std::int64_t most = std::min(budget / kLanes, fair);
  const bool splits_k = Stager<Args>::splits_k(args);
  while (block_bytes(args, s) > most) {
    if (s.bn > 1)
      s.bn = halve(s.bn, 1);
    else if (splits_k && s.kn > 1024 && s.kn >= 4 * std::max(s.mn, s.nn))
      s.kn = halve(s.kn, kGrain);
    else if (s.mn >= s.nn && s.mn > 1)
      s.mn = halve(s.mn, kGrain);
    else if (s.nn > 1)
      s.nn = halve(s.nn, kGrain);
    else if (splits_k && s.kn > 1)
      s.kn = halve(s.kn, kGrain);
    else
      return {0, 0, 0, 0};
  }
  return s;
}

struct Range {
  std::int64_t begin, count;
};

/// Cuts `extent` into pieces of `step`, and the last of those by half so many times.
std::vector<Range> cut(std::int64_t extent, std::int64_t step, std::int64_t halvings = 0) {
  std::vector<Range> pieces;
  for (std::int64_t at = 0; at < extent;) {
    const std::int64_t left = extent - at;
    const bool last = left <= step;
    const std::int64_t count = !last ? step : halvings-- > 0 ? halve(left, kGrain) : left;
    pieces.push_back({at, count});
    at += count;
  }
  return pieces;
}

/// How the extents of a problem are cut.
struct Cuts {
  std::vector<Range> b, i, j, p;

  Cuts(const BlockShape& all, const BlockShape& s, bool long_rows)
      : b(cut(all.bn, s.bn)),
        i(cut(all.mn, s.mn)),
        j(cut(all.nn, s.nn, long_rows && s.nn < all.nn ? kLastHalvings : 0)),
        p(cut(all.kn, s.kn)) {}
};

template <class F>
void for_each_block(const Cuts& cuts, F&& f) {
  std::int64_t index = 0;
  for (const Range& b : cuts.b)
    for (const Range& j : cuts.j)
      for (const Range& i : cuts.i) {
        for (const Range& p : cuts.p)
          f(index, Block{b.begin, b.count, i.begin, i.count, j.begin, j.count, p.begin, p.count});
        ++index;
      }
}

/// One block of every shape that occurs.
template <class F>
void for_each_shape(Cuts cuts, F&& f) {
  for (std::vector<Range>* pieces : {&cuts.b, &cuts.i, &cuts.j, &cuts.p}) {
    // The last one differs from others of its size: there epilogues are due.
    const auto last = pieces->end() - 1;
    pieces->erase(std::unique(pieces->begin(), last,
                              [](const Range& x, const Range& y) { return x.count == y.count; }),
                  last);
  }
  for_each_block(cuts, [&](std::int64_t, const Block& block) { f(block); });
}

template <class Args>
Args device_call(const Args& args, const Block& block, const std::array<Part, kParts>& parts,
                 const std::array<std::byte*, kParts>& at) {
  Args d = Stager<Args>::on_device(args, block);
  if constexpr (!std::is_same_v<Args, Gf256Args>) d.batch = block.bn;
  place(d, parts, at);
  return d;
}

std::vector<StageLane>& lanes_of(Slot& slot) {
  while (slot.lanes.size() < kLanes) {
    QueueOptions options;
    options.device = slot.queue->device().ordinal;
    options.own_stream = true;
    slot.lanes.emplace_back(slot.backend->make_queue(options));
  }
  return slot.lanes;
}

void refuse_capture(const Slot& slot, std::string_view operation) {
  if (slot.queue->capturing())
    throw Error(Status::NotSupported, std::string(operation) +
                                          ": operands in host memory cannot be staged while a "
                                          "graph is captured");
}

std::int64_t budget_of(const Context::Impl& context, const Slot& slot) {
  std::size_t held = 0;  // what the lanes already have can be used again
  for (const StageLane& lane : slot.lanes) held += lane.buffer.size();
  const std::size_t room = (slot.queue->memory_free() + held) / 10 * 9;
  return std::int64_t(std::min(context.limit_of(*slot.queue), room));
}

template <class Args>
bool stage_blocks(Context::Impl& context, Slot& slot, const Args& args) {
  refuse_capture(slot, op_name<Args>);
  const BlockShape all = Stager<Args>::whole(args);
  const std::size_t budget = std::size_t(budget_of(context, slot));
  auto& lanes = lanes_of(slot);

  // Everything that can fail for want of memory or of a kernel comes before the first byte of C.
  BlockShape shape;
  std::optional<Cuts> cuts;
  std::size_t operands = 0, workspace = 0;
  // Large blocks shrink to make room for a kernel's workspace; beside small ones it fits or not.
  const auto fits = [&](std::size_t bytes) -> std::string_view {
    if (operands > budget / 8 || kLanes * (operands + bytes) <= budget) return {};
    return kOverLimit;
  };
  const std::size_t reported = context.receipt.declined.size();
  for (std::int64_t planned = std::int64_t(budget);; planned /= 2) {
    shape = plan(args, planned);
    if (shape.bn == 0) {
      context.receipt.declined.push_back({slot.backend->name(), "", kNoMemory});
      return false;
    }
    operands = std::size_t(block_bytes(args, shape));
    cuts.emplace(all, shape, Stager<Args>::has_long_rows(args));
    workspace = 0;
    bool taken = true;
    for_each_shape(*cuts, [&](const Block& block) {
      if (!taken) return;
      const auto parts = Stager<Args>::parts(args, block);
      context.receipt.declined.resize(reported);
      const auto selected = select(context, *slot.backend, slot.queue->device(),
                                   device_call(args, block, parts, {}), fits);
      taken = selected.kernel != nullptr;
      workspace = std::max(workspace, selected.workspace);
    });
    if (!taken) return false;
    if (kLanes * (operands + workspace) > budget) continue;
    try {
      for (StageLane& lane : lanes) lane.buffer.get(operands + workspace);
      break;
    } catch (const Error& e) {
      if (e.status() != Status::OutOfMemory) throw;
    }
  }

  // The work may read what the context's own stream still writes (managed memory) and the host
  // gave.
  slot.queue->synchronize();
  std::array<std::array<Part, kParts>, kLanes> sent;  // what each lane's regions hold
  std::array<std::int64_t, kLanes> sent_batch{};
  sent_batch.fill(-1);
  std::int64_t blocks = 0;
  const auto whole_parts =
      Stager<Args>::parts(args, {0, shape.bn, 0, shape.mn, 0, shape.nn, 0, shape.kn});
  const auto finish = [&] {  // every lane, also where one fails: none may go on writing to C
    std::exception_ptr failure;
    for (StageLane& lane : lanes) {
      try {
        lane.queue->synchronize();
      } catch (...) {
        if (!failure) failure = std::current_exception();
      }
    }
    if (failure) std::rethrow_exception(failure);
  };
  try {
    for_each_block(*cuts, [&](std::int64_t index, const Block& block) {
      const std::size_t which = std::size_t(index % kLanes);
      StageLane& lane = lanes[which];
      const auto parts = Stager<Args>::parts(args, block);
      std::array<std::byte*, kParts> at{};
      std::byte* next = lane.buffer.get(0);
      for (std::size_t x = 0; x < kParts; ++x) {
        at[x] = next;
        next += whole_parts[x].bytes(shape.bn);
      }
      for (std::size_t x = 0; x < kParts; ++x) {
        const Part& part = parts[x];
        if (part.rows == 0 || !part.load) continue;
        const bool there =
            x != kOutput && sent_batch[which] == block.b && part.same_block(sent[which][x]);
        if (!there) transfer(*lane.queue, part, block.b, block.bn, at[x], CopyKind::HostToDevice);
        sent[which][x] = part;
      }
      sent_batch[which] = block.b;
      const Args call = device_call(args, block, parts, at);
      context.receipt.declined.resize(reported);
      const auto selected = select(context, *slot.backend, lane.queue->device(), call, fits);
      if (!selected.kernel)
        throw Error(Status::Internal, "a kernel took a block's shape and then declined it");
      lane.queue->workspace = {next, workspace};
      selected.run(call, *lane.queue);
      selected.report(context.receipt);
      if (parts[2].store)
        transfer(*lane.queue, parts[2], block.b, block.bn, at[2], CopyKind::DeviceToHost);
      ++blocks;
    });
  } catch (...) {
    try {
      finish();
    } catch (...) {
    }
    throw;
  }
  finish();
  context.receipt.backend = slot.backend->name();
  context.receipt.workspace_bytes = kLanes * (operands + workspace);
  context.receipt.staged_blocks = blocks;
  return true;
}

/// In place there is no block that can be stored before others are loaded, except the pairs that a
/// square matrix swaps. Whole matrices go out of place on the device and back.
bool stage_inplace(Context::Impl& context, Slot& slot, const TransposeInplaceArgs& t) {
  refuse_capture(slot, op_name<TransposeInplaceArgs>);
  const int size = size_of(t.type);
  auto& lanes = lanes_of(slot);
  Queue& queue = *lanes[0].queue;
  const std::int64_t budget = budget_of(context, slot);
  const bool square = t.m == t.n && t.A.ld == t.ldb;

  // A matrix before and after; of a square cut into tiles, two blocks before and after.
  std::int64_t rows = t.m, cols = t.n, bytes = 0;
  std::size_t workspace = 0;
  TransposeArgs call;
  call.type = t.type;
  const auto fits = [&](std::size_t more) -> std::string_view {
    if (bytes + std::int64_t(more) <= budget) return {};
    return kOverLimit;
  };
  const auto choose = [&](std::int64_t m, std::int64_t n) {
    call.m = m;
    call.n = n;
    return select(context, *slot.backend, queue.device(), call, fits);
  };
  const std::size_t reported = context.receipt.declined.size();
  const auto reserve = [&] {
    context.receipt.declined.resize(reported);
    bytes = (rows < t.m ? 2 : 1) * (Part(t.A, size, 0, 0, rows, cols).bytes(1) +
                                    Part(t.A, size, 0, 0, cols, rows).bytes(1));
    workspace = 0;
    for (const std::int64_t m : {rows, t.m - (t.m - 1) / rows * rows})
      for (const std::int64_t n : {cols, t.n - (t.n - 1) / cols * cols}) {
        context.receipt.declined.resize(reported);
        const auto selected = choose(m, n);
        if (!selected.kernel) return false;
        workspace = std::max(workspace, selected.workspace);
      }
    try {
      lanes[0].buffer.get(std::size_t(bytes) + workspace);
      return true;
    } catch (const Error& e) {
      if (e.status() != Status::OutOfMemory) throw;
      context.receipt.declined.push_back({slot.backend->name(), "", kNoMemory});
      return false;
    }
  };
  while (!reserve()) {
    if (!square || rows == 1) return false;
    rows = cols = halve(rows, kGrain);
  }
  std::byte* const memory = lanes[0].buffer.get(0);

  slot.queue->synchronize();
  std::int64_t blocks = 0;
  // Loads the block at (i, j) of matrix b; returns where its transpose lies, to be stored at (j,
  // i).
  const auto turn = [&](std::int64_t b, std::int64_t i, std::int64_t mn, std::int64_t j,
                        std::int64_t nn, std::byte* at) {
    const Part from(t.A, size, i, j, mn, nn), to(t.A, size, 0, 0, nn, mn);
    std::byte* turned = at + from.bytes(1);
    transfer(queue, from, b, 1, at, CopyKind::HostToDevice);
    context.receipt.declined.resize(reported);
    const auto selected = choose(mn, nn);
    set_operand(call.A, at, from);
    set_operand(call.B, turned, to);
    queue.workspace = {memory + bytes, workspace};
    selected.run(call, queue);
    selected.report(context.receipt);
    ++blocks;
    return turned;
  };
  const auto store = [&](std::int64_t b, std::int64_t i, std::int64_t mn, std::int64_t j,
                         std::int64_t nn, std::byte* from) {
    Part part(t.A, size, i, j, mn, nn);
    part.ld = t.ldb;
    transfer(queue, part, b, 1, from, CopyKind::DeviceToHost);
  };
  try {
    for (std::int64_t b = 0; b < t.batch; ++b)
      for (std::int64_t i = 0; i < t.m; i += rows)
        for (std::int64_t j = rows < t.m ? i : 0; j < t.n; j += cols) {
          const std::int64_t mn = std::min(rows, t.m - i), nn = std::min(cols, t.n - j);
          std::byte* one = turn(b, i, mn, j, nn, memory);
          std::byte* other = i == j ? nullptr : turn(b, j, nn, i, mn, memory + bytes / 2);
          store(b, j, nn, i, mn, one);
          if (other) store(b, i, mn, j, nn, other);
        }
  } catch (...) {
    try {
      queue.synchronize();
    } catch (...) {
    }
    throw;
  }
  queue.synchronize();
  context.receipt.backend = slot.backend->name();
  context.receipt.workspace_bytes = std::size_t(bytes) + workspace;
  context.receipt.staged_blocks = blocks;
  return true;
}

}  // namespace

template <class Args>
bool stage(Context::Impl& context, Slot& slot, const Args& args) {
  if constexpr (std::is_same_v<Args, TransposeInplaceArgs>)
    return stage_inplace(context, slot, args);
  else
    return stage_blocks(context, slot, args);
}

template bool stage(Context::Impl&, Slot&, const GemmArgs&);
template bool stage(Context::Impl&, Slot&, const GeamArgs&);
template bool stage(Context::Impl&, Slot&, const TransposeArgs&);
template bool stage(Context::Impl&, Slot&, const TransposeInplaceArgs&);
template bool stage(Context::Impl&, Slot&, const Gf256Args&);

}  // namespace mblas
