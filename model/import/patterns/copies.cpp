// Copies and changes of type: a block has one type for all that it keeps.
#include "model/import/all_patterns.h"

namespace fuseline {

namespace {

std::optional<TensorView> match(Translator& t, std::size_t at, std::int64_t) {
  const std::size_t read = t.behind(at);
  return read == at ? std::nullopt : t.view(read);
}

constexpr const char* kCalls[] = {
    "aten.to",    "aten._to_copy", "aten.contiguous", "aten.clone",
    "aten.alias", "aten.detach",   "aten.type_as",    "aten.lift_fresh_copy",
    "aten.float", "aten.bfloat16", "aten.half",       "aten.dropout"};

}  // namespace

constinit const ImportPattern patterns::copies{.calls = kCalls, .size = 0, .match = match};

}  // namespace fuseline
