#include "model/primitives/functions.h"

#include "base/error.h"

namespace fuseline {

const char* name_of(ReduceFn fn) {
  switch (fn) {
    case ReduceFn::sum:
      return "sum";
    case ReduceFn::sum_squares:
      return "sum_squares";
    case ReduceFn::max:
      return "max";
    case ReduceFn::mean:
      return "mean";
    case ReduceFn::sum_and_squares:
      return "sum, sum_squares";
  }
  FUSELINE_ASSERT(false, "unknown reduction");
}

const char* reducer_of(ReduceFn fn) {
  switch (fn) {
    case ReduceFn::sum:
    case ReduceFn::sum_and_squares:
      return "Sum";
    case ReduceFn::sum_squares:
      return "SumSquares";
    case ReduceFn::max:
      return "Max";
    case ReduceFn::mean:
      break;
  }
  FUSELINE_ASSERT(false, "a tile has no such reduction");
}

}  // namespace fuseline
