// Programs on some of their rows: where no row needs another, a few of them tell whether all are
// right, and fp64 can compute them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "model/plan.h"
#include "sim/executor/storage.h"

namespace fuseline {

// How a tensor follows a sample of rows of the index space.
enum class Cut : std::uint8_t {
  whole,    // all of it is needed
  rows,     // a row of it for each row
  columns,  // a column of it for each row: an operand that is stored transposed
  blocks,   // some columns of it for every `partial_tile` rows: partial sums down columns
};

struct PlanOfRows {
  Plan plan;             // with the tensors of the whole plan by the same ids
  std::vector<Cut> cut;  // by tensor
};

// The plan with `count` rows in place of all. Nothing: its programs have different numbers of rows,
// or a row of one needs others (attention, scans, windows, tables, sums down columns).
std::optional<PlanOfRows> plan_of_rows(const Plan& plan, std::int64_t count);

// One program of the plan on its own, which finds its operands in memory. So its first operand may
// be transposed, and it may store partial sums down columns: then `count` is that of whole blocks
// of rows.
std::optional<PlanOfRows> program_of_rows(const Plan& plan, const Program& program,
                                          std::int64_t count);
bool sums_down_columns(const Program& program);

std::int64_t rows_of(const Program& program);  // 0: attention, a scan
// Rows of the plan's programs; 0 where they differ.
std::int64_t rows_of(const Plan& plan);

// What a tensor has of those rows of the index space, behind each other. Of 4-bit types rows alone.
executor::Storage take_part(const executor::Storage& from, Cut cut,
                            std::span<const std::int64_t> rows, std::int64_t all_rows);

// The rows of at most `count` of the blocks of `partial_tile` rows, in order; the last block is one
// of them.
std::vector<std::int64_t> sample_of_blocks(std::int64_t all, std::int64_t count,
                                           std::uint64_t seed);
// `count` different rows of [0, all) in order, from the seed; the first and the last are among
// them.
std::vector<std::int64_t> sample_of_rows(std::int64_t all, std::int64_t count, std::uint64_t seed);

}  // namespace fuseline
