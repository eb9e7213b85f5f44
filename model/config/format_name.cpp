#include "model/config/format_name.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"

namespace fuseline {

void refuse_format(const std::string& text, const std::string& field, const std::string& plain,
                   std::vector<std::string> names, const std::string& what) {
  names.insert(names.begin(), plain);
  throw InputError({.field = field,
                    .value = text,
                    .message = "there is no such number format of " + what,
                    .allowed = fmt::format("{}", fmt::join(names, ", ")),
                    .nearest = nearest_name(text, names)});
}

}  // namespace fuseline
