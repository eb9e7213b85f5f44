// Maps that a program's text defines: "let quick_gelu(x) = x * sigmoid(1.702 * x)".
#pragma once

#include <string>

#include "model/primitives/map_function.h"
#include "model/programs/value_function.h"

namespace fuseline {

inline constexpr int kMostDefinedMaps = 128;  // different ones, as long as the program runs

// The map of that name and text, made once: equal definitions are one map. One or two parameters.
// InputError: more maps were defined than there is room for.
MapFn defined_map(const std::string& name, const ValueFunction& function);
// The name that the text gave it; its device function has another one, which no other has.
std::string defined_name(MapFn fn);
// What a defined map computes; null: it is no defined one.
const ValueFunction* definition_of(MapFn fn);

}  // namespace fuseline
