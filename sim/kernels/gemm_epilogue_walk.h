// What an epilogue loads and stores: of each of its tensors the rows and columns that belong to a
// part of the output.
#pragma once

#include <cstdint>

#include "base/units.h"
#include "sim/kernels/gemm_problem.h"
#include "sim/kernels/gemm_schedule.h"
#include "sim/memory/l2_cache.h"

namespace fuseline {

// Rows or columns, half-open.
struct OutputRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

// What output rows ask of a stream: some of its rows, or, of partials of columns, of its columns.
OutputRange asked_by_rows(const GemmProblem& problem, const EpilogueStream& stream,
                          OutputRange output);
// And what output columns ask of it.
OutputRange asked_by_cols(const GemmProblem& problem, const EpilogueStream& stream,
                          OutputRange output);

// Of a unit: all streams, and those that the producer fetches.
Bytes epilogue_bytes(const GemmProblem& problem, const GemmUnit& unit);
Bytes fetched_bytes(const GemmProblem& problem, const GemmUnit& unit);
void run_epilogue(const GemmProblem& problem, const GemmUnit& unit, L2Cache& cache);

// The epilogue of the whole output at once, row block by row block, as a split-K reduction runs it.
// Returns the bytes loaded and stored.
Bytes run_whole_epilogue(const GemmProblem& problem, L2Cache& cache);

}  // namespace fuseline
