#include "model/activation_formats/stored_activation.h"

#include <algorithm>
#include <iterator>

#include "base/error.h"
#include "model/activation_formats/all_activation_formats.h"
#include "model/config/format_name.h"

namespace fuseline {

const std::vector<const ActivationFormat*>& all_activation_formats() {
  static const std::vector<const ActivationFormat*> all(std::begin(activation_formats::kAll),
                                                        std::end(activation_formats::kAll));
  return all;
}

std::vector<std::string> activation_format_names() {
  std::vector<std::string> names;
  for (const ActivationFormat* f : all_activation_formats()) names.emplace_back(f->rows.name.value);
  std::sort(names.begin(), names.end());
  return names;
}

std::string weights_for(const StoredWeight& activation) {
  for (const ActivationFormat* f : all_activation_formats())
    if (activation.format == &f->rows) return f->weights.value;
  FUSELINE_ASSERT(false, "no format of activations");
}

StoredWeight parse_stored_activation(const std::string& text, const std::string& field,
                                     const std::string& plain) {
  if (text == plain) return {};
  for (const ActivationFormat* f : all_activation_formats())
    if (text == f->rows.name.value) return {&f->rows, f->rows.group};
  refuse_format(text, field, plain, activation_format_names(), "activations");
}

}  // namespace fuseline
