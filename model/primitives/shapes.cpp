#include "model/primitives/shapes.h"

#include <string>

#include "base/error.h"

namespace fuseline {

const ValueShape& shape_of(const ValueShapes& shapes, Value v) {
  const auto found = shapes.find(v);
  FUSELINE_ASSERT(found != shapes.end(),
                  "value " + std::to_string(v) + " is used before it is defined");
  return found->second;
}

}  // namespace fuseline
