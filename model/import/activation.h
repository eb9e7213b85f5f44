// An activation in a saved graph, whichever way it is written.
#pragma once

#include "model/import/pattern.h"

namespace fuseline {

struct FoundActivation {
  const char* operation = nullptr;  // our operator: "silu", "gelu", "gelu_erf", "relu"
  std::size_t of = 0;
};

std::optional<FoundActivation> activation_at(Translator& t, std::size_t at);

}  // namespace fuseline
