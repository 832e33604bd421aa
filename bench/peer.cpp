#include "peer.hpp"

namespace mblas::bench {
namespace {

struct Kind {
  std::string_view prefix;
  std::unique_ptr<Peer> (*load)(const std::string& path, int threads);
};
constexpr Kind kKinds[] = {{"cblas:", load_cblas}, {"onednn:", load_onednn}, {"isal:", load_isal}};

const Kind* kind_of(std::string_view spec) {
  for (const Kind& kind : kKinds)
    if (spec.starts_with(kind.prefix)) return &kind;
  return nullptr;
}

}  // namespace

bool is_peer(std::string_view spec) { return kind_of(spec) != nullptr; }

std::unique_ptr<Peer> load_peer(std::string_view spec, int threads) {
  const Kind* kind = kind_of(spec);
  return kind->load(std::string(spec.substr(kind->prefix.size())), threads);
}

}  // namespace mblas::bench
