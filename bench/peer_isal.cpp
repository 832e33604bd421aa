// ISA-L, Intel's library for erasure codes: ec_encode_data, with its tables made beforehand. It has
// no threads of its own; with several, each calls it for a share of the columns, as programs do.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <thread>
#include <vector>

#include "peer.hpp"
#include "shared_library.hpp"

namespace mblas::bench {
namespace {

using cases::Case;
using cases::Gf256Case;

// The interface, as its documentation describes it.
using InitTables = void(int k, int rows, unsigned char* coefficients, unsigned char* tables);
using Encode = void(int length, int k, int rows, unsigned char* tables, unsigned char** data,
                    unsigned char** coding);
using Update = void(int length, int k, int rows, int source, unsigned char* tables,
                    unsigned char* data, unsigned char** coding);
constexpr std::size_t kTableBytes = 32;  // of a coefficient

/// Threads that wait for work between calls.
class Team {
 public:
  explicit Team(int threads) {
    for (int t = 1; t < threads; ++t)
      members_.emplace_back([this, t](const std::stop_token& stop) {
        for (unsigned seen = 0;; ++seen) {
          turn_.wait(seen, std::memory_order_acquire);
          if (stop.stop_requested()) return;
          (*work_)(t);
          done_.fetch_add(1, std::memory_order_release);
        }
      });
  }
  ~Team() {
    for (std::jthread& member : members_) member.request_stop();
    next_turn();
  }

  int size() const { return int(members_.size()) + 1; }
  /// work(t) for each t < size().
  void run(const std::function<void(int)>& work) {
    if (members_.empty()) return work(0);
    work_ = &work;
    done_.store(0, std::memory_order_relaxed);
    next_turn();
    work(0);
    while (done_.load(std::memory_order_acquire) + 1 < size()) std::this_thread::yield();
  }

 private:
  void next_turn() {
    turn_.fetch_add(1, std::memory_order_release);
    turn_.notify_all();
  }

  std::atomic<unsigned> turn_ = 0;
  std::atomic<int> done_ = 0;
  const std::function<void(int)>* work_ = nullptr;
  std::vector<std::jthread> members_;
};

class Isal final : public Peer {
 public:
  Isal(const std::string& path, int threads)
      : library_(path),
        init_tables_(library_.get<InitTables>("ec_init_tables")),
        encode_(library_.get<Encode>("ec_encode_data")),
        update_(library_.get<Update>("ec_encode_data_update")),
        team_(std::make_shared<Team>(threads)) {
    name_ = "isal";
    const auto version = library_.find<const char*()>("isal_get_version_str");
    description_ =
        fmt::format("ISA-L {}{}", version ? fmt::format("{}, ", version()) : "", library_.path());
  }

  std::vector<Way> ways(const Case& resolved, std::span<cases::Run> runs) const override {
    const auto* c = std::get_if<Gf256Case>(&resolved);
    if (!c || c->poly != gf256::kDefaultPoly || c->n > std::numeric_limits<int>::max() ||
        c->m + c->k > 256 || c->m * c->n * c->k == 0)
      return {};
    Way way{c->accumulate ? "ec_encode_data_update" : "ec_encode_data", {}};
    for (cases::Run& run : runs) way.calls.push_back(call_of(*c, run.operands()));
    return {way};
  }

 private:
  Call call_of(const Gf256Case& c, std::span<cases::Placed> at) const {
    const int m = int(c.m), n = int(c.n), k = int(c.k);
    const auto* A = static_cast<const unsigned char*>(at[0].at());
    std::vector<unsigned char> matrix, tables(kTableBytes * std::size_t(c.m * c.k));
    for (std::int64_t i = 0; i < c.m; ++i)
      matrix.insert(matrix.end(), A + i * c.lda, A + i * c.lda + c.k);
    init_tables_(k, m, matrix.data(), tables.data());
    const auto pointers = [](void* data, std::int64_t rows, std::int64_t ld, std::int64_t from) {
      std::vector<unsigned char*> list;
      for (std::int64_t i = 0; i < rows; ++i)
        list.push_back(static_cast<unsigned char*>(data) + i * ld + from);
      return list;
    };
    struct Share {
      int columns;
      std::vector<unsigned char*> data, coding;
    };
    constexpr int kLine = 64;
    const int columns = (n / team_->size() + kLine) / kLine * kLine;
    std::vector<Share> shares;
    for (int t = 0; t < team_->size(); ++t) {
      const std::int64_t from = std::min<std::int64_t>(n, std::int64_t(t) * columns);
      const std::int64_t to = std::min<std::int64_t>(n, from + columns);
      shares.push_back({int(to - from), pointers(at[1].at(), c.k, c.ldb, from),
                        pointers(at[2].at(), c.m, c.ldc, from)});
    }
    const auto share = [=, encode = encode_, update = update_, accumulate = c.accumulate,
                        tables = std::move(tables), shares = std::move(shares)](int t) mutable {
      Share& mine = shares[std::size_t(t)];
      if (mine.columns == 0) return;
      if (!accumulate)
        return encode(mine.columns, k, m, tables.data(), mine.data.data(), mine.coding.data());
      for (int p = 0; p < k; ++p)
        update(mine.columns, k, m, p, tables.data(), mine.data[std::size_t(p)], mine.coding.data());
    };
    return [team = team_, work = std::make_shared<const std::function<void(int)>>(share)] {
      team->run(*work);
    };
  }

  SharedLibrary library_;
  InitTables* init_tables_;
  Encode* encode_;
  Update* update_;
  std::shared_ptr<Team> team_;
};

}  // namespace

std::unique_ptr<Peer> load_isal(const std::string& path, int threads) {
  return std::make_unique<Isal>(path, threads);
}

}  // namespace mblas::bench
