// Copies and changes of type.
#include "model/import/all_patterns.h"
#include "model/import/copy_calls.h"

namespace fuseline {

namespace in_copies {
namespace {

std::optional<TensorView> match(Translator& t, std::size_t at, std::int64_t) {
  const std::size_t read = t.behind(at);
  return read == at ? std::nullopt : t.view(read);
}

}  // namespace
}  // namespace in_copies

constinit const ImportPattern patterns::copies{
    .calls = kCopyCalls, .size = 0, .match = in_copies::match};

}  // namespace fuseline
