// Other libraries in the race: loaded at run time, called as a program would call them.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "case.hpp"
#include "problem.hpp"

namespace mblas::bench {

/// A call with its arguments.
using Call = std::function<void()>;

/// One of a library's ways to compute a case: the same call on each copy of the operands.
struct Way {
  std::string name;  ///< of the function
  std::vector<Call> calls;
};

class Peer {
 public:
  virtual ~Peer() = default;
  /// Short, for tables: "openblas-openmp".
  const std::string& name() const { return name_; }
  /// Version and file.
  const std::string& description() const { return description_; }
  /// Every way in which the library computes the case on operands in host memory; none where it
  /// cannot. What it would do once for many calls, such as packing weights, is done here.
  virtual std::vector<Way> ways(const cases::Case& resolved, std::span<cases::Run> runs) const = 0;

 protected:
  std::string name_, description_;
};

/// All that the libraries are asked for: neither epilogues nor products of integers as float.
inline bool is_product(const cases::GemmCase& c) {
  return cases::epilogue_of(c).is_none() && !(c.in == DType::i8 && c.out == DType::f32);
}

/// Is it `cblas:PATH`, `onednn:PATH` or `isal:PATH`, and not the name of a backend?
bool is_peer(std::string_view spec);

/// Loads the library and has it use `threads` threads. Status::BackendUnavailable where the file or
/// a function is missing.
std::unique_ptr<Peer> load_peer(std::string_view spec, int threads);

// One per kind of interface, in peer_cblas.cpp, peer_onednn.cpp and peer_isal.cpp.
std::unique_ptr<Peer> load_cblas(const std::string& path, int threads);
std::unique_ptr<Peer> load_onednn(const std::string& path, int threads);
std::unique_ptr<Peer> load_isal(const std::string& path, int threads);

}  // namespace mblas::bench
