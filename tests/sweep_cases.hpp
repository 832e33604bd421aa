// The cases that every row of every table runs.
#pragma once

#include <string_view>
#include <vector>

#include "case.hpp"

namespace mblas::testing {

/// The types of a row's cases; `out` matters to gemm only.
struct Types {
  DType in, out;
  Compute compute = Compute::Default;  ///< another mode: of every case
};
std::vector<Types> types_of(std::string_view op);

/// Every combination of sizes from 0 to 5, operations, layouts, scalars of 0, 1 and another value,
/// and leading dimensions with and without padding.
std::vector<cases::Case> tiny_cases(std::string_view op, Types types);
/// A random sample, the same in every run, of sizes around the edges of tiles, and of everything
/// else that a descriptor can say.
std::vector<cases::Case> sampled_cases(std::string_view op, Types types, int count);
/// A problem of odd sizes beyond a thousand, with a layout and operations of the types' own.
cases::Case large_case(std::string_view op, Types types);
/// Shapes that reach the limits of grids of blocks: batches of more than 65,535 matrices, and
/// matrices of more than 65,535 tiles on one side; and batches of hundreds of small products.
std::vector<cases::Case> thin_cases(std::string_view op, Types types);
/// Products of which C has few rows or columns, with all pairs of operations; of gemm only.
std::vector<cases::Case> few_vector_cases(std::string_view op, Types types);

}  // namespace mblas::testing
