// Partials of tile reductions whose blocks of partial_tile rows or columns several tiles share:
// each tile leaves its part, and the parts are joined in tile order when all tiles are done, so
// that the result does not depend on who came first.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

#include "model/program.h"
#include "sim/executor/memory.h"

namespace fuseline::executor {

class PartialSums {
 public:
  // `block`: which partial along the reduced axis; `across`: the first row (column) along the other
  // axis; `part`: the tile's place along the reduced axis.
  struct Key {
    std::size_t primitive = 0;
    std::int64_t block = 0;
    std::int64_t across = 0;
    std::int64_t part = 0;
    friend auto operator<=>(const Key&, const Key&) = default;
  };
  // `numbers` per row (column): 1 or 2. Thread-safe.
  void add(const Key& key, std::vector<float> numbers);
  // Joins and stores what add() collected. `primitives`: those that the keys' indices are of.
  void finish(const std::vector<Primitive>& primitives, Port& port);

 private:
  std::mutex mutex_;
  std::map<Key, std::vector<float>> parts_;
};

// The same of a log-sum-exp: maximum, sum and target of consecutive rows.
void store_partials(const OnlineLogSumExp& reduce, std::int64_t block, std::int64_t across,
                    const std::vector<float>& numbers, Port& port);

// Numbers that one partial of a row (column) has.
std::int64_t numbers_of(const TileReduce& reduce);

// Stores `numbers` of consecutive rows (columns) from `across` as partial `block`.
void store_partials(const TileReduce& reduce, std::int64_t block, std::int64_t across,
                    const std::vector<float>& numbers, Port& port);

}  // namespace fuseline::executor
