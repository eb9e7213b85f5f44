// In how many bits weights are stored, and by what their groups are scaled: a number format of
// weights, said once in its own file beside this one. Nothing else lists formats.
//   weight = (code - zero point) × scale × scale of the tensor
// where the last two factors and the zero point are 1 and 0 in formats that lack them.
#pragma once

#include <cstdint>

#include "base/described.h"
#include "model/config/dtype.h"

namespace fuseline {

struct WeightFormat {
  Fact<const char*> name;  // as --weights takes it
  Fact<Dtype> element;     // of the codes
  Fact<Dtype> scale;
  Fact<std::int64_t> group;     // columns of a row that share a scale; 0: all of them
  std::int64_t group_rows = 1;  // rows that share it, too
  bool any_group = false;       // whether another group may be asked for: "int4:64"
  bool zero_points = false;     // one int8 for every scale
  bool tensor_scale = false;    // one fp32 number for the whole tensor
  bool power_of_two = false;    // scales are powers of two, rounded down as the format says
  Fact<double> largest;         // what the largest weight of a group becomes
  Fact<const char*> about;      // one line for people
  Fact<const char*> source;     // where the format is described
};

}  // namespace fuseline
