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

struct PlanOfRows {
  Plan plan;              // with the tensors of the whole plan by the same ids
  std::vector<bool> cut;  // by tensor: it has `count` rows here, one for each of the space's
};

// The plan with `count` rows in place of all. Nothing: its programs have different numbers of rows,
// or a row of one needs others (attention, scans, windows, tables, sums down columns).
std::optional<PlanOfRows> plan_of_rows(const Plan& plan, std::int64_t count);

// Rows of the plan's programs; 0 where they differ.
std::int64_t rows_of(const Plan& plan);

// Those rows of a tensor, behind each other.
executor::Storage take_rows(const executor::Storage& from, std::span<const std::int64_t> rows);

// `count` different rows of [0, all) in order, from the seed; the first and the last are among
// them.
std::vector<std::int64_t> sample_of_rows(std::int64_t all, std::int64_t count, std::uint64_t seed);

}  // namespace fuseline
