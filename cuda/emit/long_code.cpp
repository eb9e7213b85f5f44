#include "cuda/emit/long_code.h"

#include <algorithm>

#include "model/primitives/primitives.h"

namespace fuseline::cuda {

namespace {

constexpr double kLongFunction = 8;  // instructions for each element of the product

}  // namespace

bool has_long_code(const Program& program, const EpilogueNeeds& needs) {
  return needs.loads_tables || std::ranges::any_of(program.body, [](const Primitive& p) {
           if (const auto* pairs = p.as<PairMap>()) return pairs->fn->instructions >= kLongFunction;
           const auto* map = p.as<Map>();
           return map != nullptr && (map->fn->device != nullptr || map->fn->exponential);
         });
}

}  // namespace fuseline::cuda
