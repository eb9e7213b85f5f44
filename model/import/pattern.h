// One form in which PyTorch writes a step of a block. A pattern is one file of patterns/, and its
// name is the file's.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "model/import/translator.h"

namespace fuseline {

struct ImportPattern {
  // The call that ends it: "aten.mul". Without the words behind the point, and without the
  // underscore of calls that work in place.
  std::span<const char* const> calls;
  // Calls that only stand within it, for the list of what is known.
  std::span<const char* const> within{};
  // How many calls it explains at once: those that explain more are tried first.
  int size = 1;
  // What the node means: of a call that gives several tensors its part. Nothing: another form.
  std::optional<TensorView> (*match)(Translator& t, std::size_t at, std::int64_t part) = nullptr;
};

}  // namespace fuseline
