// `mblas info`.
#pragma once

namespace mblas::bench {

/// Prints what can run here and why the rest cannot.
void print_info(bool json);

}  // namespace mblas::bench
