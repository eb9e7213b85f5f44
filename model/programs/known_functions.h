// The maps, pair maps and reductions that a program's text can name: those of model/primitives, and
// those that were added.
#pragma once

#include <span>
#include <string>

#include "model/primitives/map_function.h"
#include "model/primitives/pair_function.h"
#include "model/primitives/reduce_function.h"

namespace fuseline {

std::span<const MapFn> map_functions();
std::span<const PairFn> pair_functions();
std::span<const ReduceFn> reduce_functions();

// The word of a reduction in a line that stores partials: "sum", "sum_and_sum_squares".
std::string word_of(ReduceFn fn);

// Adds one from outside this project, for as long as the program runs.
struct AddedFunction {
  explicit AddedFunction(MapFn fn);
  explicit AddedFunction(PairFn fn);
  explicit AddedFunction(ReduceFn fn);
};

}  // namespace fuseline
