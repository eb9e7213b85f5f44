// The value itself: rounded when it is stored in another type.
#include "model/primitives/all_maps.h"
#include "model/primitives/map_elements.h"

namespace fuseline {

constinit const MapFunction maps::copy{.name = "copy", .maths = of_one([](float x) { return x; })};

}  // namespace fuseline
