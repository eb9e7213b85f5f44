// What a pair map is: everything that is known of a function of two columns, said once in its own
// file of pairs/. Programs hold a handle on it; nothing else lists pair maps.
#pragma once

#include <cstdint>

#include "base/described.h"

namespace fuseline {

struct Matrix;  // model/primitives/tile_maths.h

// What a pair map reads and makes.
enum class PairForm : std::uint8_t {
  rotated,   // (pairs, cosines, sines) -> pairs
  joined,    // pairs (gate, up) -> one column for two
  gradient,  // (pairs, gradient of what they were joined to) -> (gradient of pairs, joined again)
};

// Pairs are columns c and c + distance of the first 2·distance of every group. A rotation keeps the
// others.
struct PairTiles {
  const Matrix& pairs;
  const Matrix* second = nullptr;  // cosines, or the gradient
  const Matrix* third = nullptr;   // sines
  std::int64_t distance = 1;
  std::int64_t group = 2;
  Matrix& out;
  Matrix* again = nullptr;
};

// What a pair map computes on tiles, in fp32. Made of the function of numbers by rotated_by,
// joined_by or gradient_by (model/primitives/pair_columns.h).
struct PairMaths {
  PairForm form = PairForm::joined;
  void (*apply)(const PairTiles&) = nullptr;
};

struct PairFunction {
  Fact<const char*> name;  // of its device function, and in a program's text
  Fact<PairMaths> maths;
  bool backward = false;  // of the backward pass
  // Of a rotation: the device function of pairs of which no thread has both columns, with {} for
  // their distance, and for ", " and the columns of a head that they do not fill; null: there is
  // none.
  const char* apart = nullptr;
  // The text of its device function, which kernels that call it bring along; it sees join_pairs,
  // pairs_gradient and all of cuda/kernels/epilogue/pair.cuh, and serves all kinds of kernels.
  // Null: the function is there.
  const char* device = nullptr;
  // Instructions for each column of its last result, counted as those of maps (map_function.h).
  double instructions = 3;
};
using PairFn = Handle<PairFunction>;

}  // namespace fuseline
