#include "core/tune.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <stdexcept>

#include "core/context_impl.hpp"
#include "core/json.hpp"
#include "mblas/version.hpp"

namespace mblas {
namespace {

constexpr double kFormat = 1;

/// "0.1" of "0.1.0": kernels and what their configurations mean may change with either number.
std::string_view series_of(std::string_view version) {
  return version.substr(0, version.find('.', version.find('.') + 1));
}

const Json& member(const Json& object, std::string_view name, Json::Kind kind) {
  const Json* found = object.find(name);
  if (!found || found->kind != kind)
    throw std::invalid_argument("'" + std::string(name) + "' is missing or of the wrong type");
  return *found;
}
const std::string& text_of(const Json& object, std::string_view name) {
  return member(object, name, Json::Kind::String).text;
}
std::int64_t size_of(const Json& object, std::string_view name) {
  const double value = member(object, name, Json::Kind::Number).number;
  if (!(value >= 0 && value <= 0x1p53) || value != std::floor(value))
    throw std::invalid_argument("'" + std::string(name) + "' is not a size");
  return std::int64_t(value);
}

/// The enumerator of that name, of those up to `last`.
template <class E>
E named(const Json& object, std::string_view name, E last) {
  const std::string& text = text_of(object, name);
  for (int i = 0; i <= int(last); ++i)
    if (name_of(E(i)) == text) return E(i);
  throw std::invalid_argument("'" + std::string(name) + "' is '" + text + "'");
}
Op op_named(const Json& object, std::string_view name) {
  const std::string& text = text_of(object, name);
  for (const Op op : {Op::NoTrans, Op::Trans, Op::ConjTrans, Op::ConjNoTrans})
    if (text.size() == 1 && text[0] == char(op)) return op;
  throw std::invalid_argument("'" + std::string(name) + "' is '" + text + "'");
}

std::uint8_t reads_of(std::string_view letters) {
  std::uint8_t reads = 0;
  for (const char c : letters) {
    if (c < 'A' || c > 'C') throw std::invalid_argument("'reads' is not of A, B and C");
    reads = std::uint8_t(reads | 1 << (c - 'A'));
  }
  return reads;
}
std::string letters_of(std::uint8_t reads) {
  std::string letters;
  for (const char c : {'A', 'B', 'C'})
    if (reads & 1 << (c - 'A')) letters += c;
  return letters;
}

std::int32_t operation_of(std::string_view name) {
  const auto found = std::ranges::find(kOperations, name);
  if (found == kOperations.end())
    throw std::invalid_argument("'op' is '" + std::string(name) + "'");
  return std::int32_t(found - kOperations.begin());
}

TuneEntry entry_of(const Json& json) {
  TuneEntry e;
  e.backend = text_of(json, "backend");
  e.device = text_of(json, "device");
  e.threads = int(std::min<std::int64_t>(size_of(json, "threads"), 1 << 20));
  e.operation = text_of(json, "op");
  operation_of(e.operation);
  e.in = named(json, "dtype", DType::b16);
  e.out = named(json, "out", DType::b16);
  e.compute = named(json, "compute", Compute::OzakiFP64);
  e.transA = op_named(json, "transA");
  e.transB = op_named(json, "transB");
  e.reads = letters_of(reads_of(text_of(json, "reads")));
  e.aligned = member(json, "aligned", Json::Kind::Bool).boolean;
  e.pointers = member(json, "pointers", Json::Kind::Bool).boolean;
  e.m = size_of(json, "m");
  e.n = size_of(json, "n");
  e.k = size_of(json, "k");
  e.batch = size_of(json, "batch");
  e.kernel = text_of(json, "kernel");
  e.config = text_of(json, "config");
  e.default_kernel = text_of(json, "default_kernel");
  e.ms = member(json, "ms", Json::Kind::Number).number;
  e.default_ms = member(json, "default_ms", Json::Kind::Number).number;
  return e;
}

std::vector<TuneEntry> entries_of(const Json& json) {
  if (json.kind != Json::Kind::Object || !json.find("mblas_tune"))
    throw std::invalid_argument("it is not a tune file");
  const std::string_view wrote = text_of(json, "version");
  if (member(json, "mblas_tune", Json::Kind::Number).number != kFormat ||
      series_of(wrote) != series_of(version()))
    throw std::invalid_argument("it is of mblas " + std::string(wrote) + ", this is " +
                                std::string(version()));
  std::vector<TuneEntry> entries;
  for (const Json& item : member(json, "entries", Json::Kind::Array).items) {
    try {
      entries.push_back(entry_of(item));
    } catch (const std::invalid_argument& e) {
      throw std::invalid_argument("entry " + std::to_string(entries.size() + 1) + ": " + e.what());
    }
  }
  return entries;
}

TuneKey stored_key(const TuneEntry& e) {
  return {e.m,       e.n,       e.k,       e.batch,  e.threads, operation_of(e.operation),
          e.in,      e.out,     e.compute, e.transA, e.transB,  reads_of(e.reads),
          e.aligned, e.pointers};
}

}  // namespace

TuneFile read_tune_file(const std::string& path) {
  TuneFile file{path, {}, {}};
  try {
    std::ifstream stream(path, std::ios::binary);
    std::string text(std::istreambuf_iterator<char>(stream), {});
    if (!stream.good() && !stream.eof()) throw std::invalid_argument("it cannot be read");
    file.entries = entries_of(parse_json(text));
  } catch (const std::exception& e) {
    file.problem = e.what();
    file.entries.clear();
  }
  return file;
}

std::string tune_file_path() {
  const auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value ? value : "");
  };
  if (const std::string cache = variable("XDG_CACHE_HOME"); cache.starts_with('/'))
    return cache + "/mblas/tune.json";
  if (const std::string home = variable("HOME"); home.starts_with('/'))
    return home + "/.cache/mblas/tune.json";
  return {};
}

const TuneFile& tune_file() {
  static const TuneFile file = [] {
    const std::string& named = environment().tune_file;
    if (named == kNoTuneFile) return TuneFile{};
    const std::string path = named.empty() ? tune_file_path() : named;
    if (path.empty() || (named.empty() && !std::ifstream(path))) return TuneFile{};
    return read_tune_file(path);
  }();
  return file;
}

const TuneTable* tune_table() {
  // Never destroyed: contexts of static objects may outlive it.
  static const TuneTable* const table =
      tune_file().entries.empty() ? nullptr : new TuneTable(tune_file());
  return table;
}

TuneTable::TuneTable(const TuneFile& file) {
  for (const TuneEntry& e : file.entries) {
    auto section = std::ranges::find_if(sections_, [&](const Section& s) {
      return s.backend == e.backend && s.device == e.device;
    });
    if (section == sections_.end()) {
      sections_.push_back({e.backend, e.device, {}});
      section = sections_.end() - 1;
    }
    const TuneKey key = stored_key(e);
    section->entries.erase(key);  // of several entries for a call the last one holds
    section->entries.try_emplace(key, e.kernel, e.config);
  }
}

std::size_t TuneTable::Hash::operator()(const TuneKey& key) const noexcept {
  static_assert(std::has_unique_object_representations_v<TuneKey>);
  const auto words = std::bit_cast<std::array<std::uint64_t, sizeof(TuneKey) / 8>>(key);
  std::uint64_t hash = 0;
  for (const std::uint64_t word : words) {
    hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
    hash ^= hash >> 32;
  }
  return std::size_t(hash);
}

template <class Args>
TuneEntry tune_entry(const Backend& backend, const DeviceInfo& device, const Args& args) {
  const TuneKey key = key_of(args);
  TuneEntry e;
  e.backend = backend.name();
  e.device = device.name;
  e.threads = tuned_threads(device);
  e.operation = op_name<Args>;
  e.in = key.in;
  e.out = key.out;
  e.compute = key.compute;
  e.transA = key.transA;
  e.transB = key.transB;
  e.reads = letters_of(key.reads);
  e.aligned = key.aligned;
  e.pointers = key.pointers;
  e.m = key.m;
  e.n = key.n;
  e.k = key.k;
  e.batch = key.batch;
  return e;
}

template TuneEntry tune_entry(const Backend&, const DeviceInfo&, const GemmArgs&);
template TuneEntry tune_entry(const Backend&, const DeviceInfo&, const GeamArgs&);
template TuneEntry tune_entry(const Backend&, const DeviceInfo&, const TransposeArgs&);
template TuneEntry tune_entry(const Backend&, const DeviceInfo&, const TransposeInplaceArgs&);
template TuneEntry tune_entry(const Backend&, const DeviceInfo&, const Gf256Args&);

void detail::record_tune_entry(Context& context, TuneEntry* to) { context.impl().tune_record = to; }
void detail::ignore_tune_file(Context& context) {
  context.impl().tuned = nullptr;
  context.impl().immediate = {};
}

}  // namespace mblas
