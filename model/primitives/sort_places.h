// For every row p of the tile, which of the numbers of `keys` [M, k] stands at place p when all are
// sorted: key i = m·k + j is in row m and column j. Equal keys keep their order. `places`, where it
// is made, is the inverse: at which place key i = p stands.
#pragma once

#include <cstdint>

#include "model/primitives/primitive.h"

namespace fuseline {

struct SortPlaces {
  static constexpr const char* name = "sort_places";
  Value order;
  Operand keys;
  // Above 0 whoever makes the primitive promises that all keys are whole numbers from 0 to
  // values - 1. The promise changes neither the result nor the bytes that move, and `meaning`
  // ignores it. Only the kernel relies on it: it counts many such keys where it would compare
  // others, which takes another time (cuda/kernels/stream/sort.cuh). Nobody checks the keys. Where
  // the promise is broken, the kernel that counts and the executor take each key as the whole
  // number of that range which it becomes when it is limited to it and cut off.
  std::int64_t values = 0;
  Value places = -1;

  // Places are stored as fp32, which has every whole number up to this one. The operator refuses a
  // block with more keys (model/operators/sort_places.cpp), and check() a program.
  static constexpr std::int64_t kMostKeys = std::int64_t{1} << 24;
  // So many keys, or fewer, are compared with each other, which takes one step of a warp for 128 of
  // them and no barrier. More are counted.
  static constexpr std::int64_t kFewKeys = 256;
  // A thread block counts in shared memory: ten numbers of 4 bytes for each value, 40 KB of the 48
  // that a kernel has without asking.
  static constexpr std::int64_t kMostValues = 1024;
  // Threads of a thread block that counts (cuda/kernels/stream/key_counts.cuh).
  static constexpr std::int64_t kCountingThreads = 256;
  [[nodiscard]] bool counts() const;
  // Of keys that are counted: rows of each thread.
  [[nodiscard]] std::int64_t rows_of_thread() const;

  [[nodiscard]] std::vector<Value> uses() const;
  [[nodiscard]] std::vector<Value> defines() const;
  [[nodiscard]] std::vector<Access> accesses() const;
  [[nodiscard]] std::vector<ValueShape> results(const ValueShapes& made, std::int64_t heads) const;
  [[nodiscard]] std::vector<ColumnRelation> relations() const;
  [[nodiscard]] TileDemands demands() const;
  bool check(ShapeCheck& check) const;
  [[nodiscard]] CodeLine text(const ProgramNames& names) const;
  void evaluate(TileContext& tile) const;
  void epilogue(EpilogueCode& code) const;
  void stream(StreamCode& code) const;
  friend bool operator==(const SortPlaces&, const SortPlaces&) = default;
};

}  // namespace fuseline
