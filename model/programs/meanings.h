// What maps, pair maps and reductions compute in fp64, in the language of functions of values:
// apart from the fp32 code that executes them, so that the two can be held against each other.
#pragma once

#include <cstdint>
#include <string>

#include "model/primitives/map_function.h"
#include "model/primitives/pair_function.h"
#include "model/primitives/reduce_function.h"
#include "model/programs/value_function.h"

namespace fuseline {

// Of x, z and the constant c. MissingError where nobody stated it.
const ValueFunction& meaning_of(MapFn fn);
// Of a gated activation (0: the result) by gate and up; of its gradient (0: the gate's, 1: the
// up's, 2: the result again) by gate, up and d; of a rotation (0, 1: the columns) by a, b, their
// own cosine c and sine s, and the other's sine t.
const ValueFunction& meaning_of(PairFn fn, int part);
using ExactReduction = double (*)(const double* values, std::int64_t count);
ExactReduction meaning_of(ReduceFn fn);

// States the meaning of a map from outside, for as long as the program runs.
struct AddedMeaning {
  AddedMeaning(MapFn fn, const std::string& text);
};

}  // namespace fuseline
