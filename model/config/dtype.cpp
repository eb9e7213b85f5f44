#include "model/config/dtype.h"

#include <array>

#include "base/error.h"

namespace fuseline {
namespace {

struct Facts {
  Dtype type;
  const char* name;
  int bits;
  double roundoff;
};

// In the order of the enumeration.
constexpr std::array kFacts = {
    Facts{Dtype::bf16, "bf16", 16, 0x1p-8},  Facts{Dtype::fp16, "fp16", 16, 0x1p-11},
    Facts{Dtype::fp32, "fp32", 32, 0x1p-24}, Facts{Dtype::e4m3, "e4m3", 8, 0x1p-4},
    Facts{Dtype::int8, "int8", 8, 0x1p-8},   Facts{Dtype::int4, "int4", 4, 0x1p-4},
    Facts{Dtype::e2m1, "e2m1", 4, 0x1p-2},   Facts{Dtype::e8m0, "e8m0", 8, 0.5}};

const Facts& facts(Dtype type) {
  const auto index = static_cast<std::size_t>(type);
  FUSELINE_ASSERT(index < kFacts.size() && kFacts[index].type == type, "type of elements");
  return kFacts[index];
}

}  // namespace

ElementSize size_of(Dtype type) { return ElementSize::of_bits(facts(type).bits); }
const char* name_of(Dtype type) { return facts(type).name; }
double unit_roundoff(Dtype type) { return facts(type).roundoff; }

}  // namespace fuseline
