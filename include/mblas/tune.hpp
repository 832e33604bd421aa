// Tune files: for calls that have been measured, the kernel and configuration that were fastest.
// `mblas tune` writes them, every context consults the one of its process; docs/TUNING.md.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "mblas/context.hpp"
#include "mblas/export.hpp"
#include "mblas/types.hpp"

namespace mblas {

/// A call, described by everything that an entry is found by, and what to run for it. The call is
/// as kernels see it: row-major.
struct TuneEntry {
  std::string backend, device;  ///< the device as it calls itself; of a host backend the CPU
  int threads = 0;              ///< of a host backend
  std::string operation;
  DType in = DType::f32, out = DType::f32;
  Compute compute = Compute::Default;
  Op transA = Op::NoTrans, transB = Op::NoTrans;
  std::string reads;      ///< which of A, B and C: "AB"
  bool aligned = true;    ///< every row of every operand begins at a multiple of 16 bytes
  bool pointers = false;  ///< a batch behind an array of pointers, whose own alignment is not seen
  std::int64_t m = 0, n = 0, k = 0, batch = 1;

  std::string kernel, config;  ///< an empty config: the kernel's own choice

  // As measured; of no effect.
  std::string default_kernel;
  double ms = 0, default_ms = 0;
};

struct TuneFile {
  std::string path;     ///< empty: there is none
  std::string problem;  ///< why it is ignored; empty: it is not
  std::vector<TuneEntry> entries;
};

/// The file at `path`. Does not throw for what is wrong with it: `problem` says so.
MBLAS_EXPORT TuneFile read_tune_file(const std::string& path);
/// The file of this process, as it was when first needed: MBLAS_TUNE_FILE, else tune_file_path()
/// where that exists.
MBLAS_EXPORT const TuneFile& tune_file();
/// Where the file is that is used where MBLAS_TUNE_FILE does not name one: mblas/tune.json under
/// XDG_CACHE_HOME, else under ~/.cache. Empty where neither is known.
MBLAS_EXPORT std::string tune_file_path();

namespace detail {
/// From now on every call that reaches a kernel leaves its description in `to`; null: no more.
MBLAS_EXPORT void record_tune_entry(Context& context, TuneEntry* to);
/// From now on the context makes the choices that it would make without a file.
MBLAS_EXPORT void ignore_tune_file(Context& context);
}  // namespace detail

}  // namespace mblas
