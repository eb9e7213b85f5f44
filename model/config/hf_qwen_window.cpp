#include "model/config/hf_qwen_window.h"

#include <fmt/format.h>

namespace fuseline {

std::int64_t read_qwen_window(const HfFields& fields, std::int64_t layers) {
  const std::optional<bool> sliding = read_equal_layer_types(fields, layers);
  if (sliding == false || !fields.flag_or("use_sliding_window", false)) return 0;
  const nlohmann::json* first = fields.find("max_window_layers");
  if (first != nullptr && !sliding) {
    if (!first->is_number_unsigned()) {
      fields.fail("max_window_layers", *first, "is not a whole number", "a whole number from 0");
    }
    const auto full_layers = first->get<std::uint64_t>();
    if (full_layers >= static_cast<std::uint64_t>(layers)) return 0;
    if (full_layers > 0) {
      fields.fail("max_window_layers", *first,
                  "layers with and without a sliding window in one model are not supported",
                  fmt::format("0, or {} (all layers)", layers));
    }
  }
  return fields.whole_or("sliding_window", 4096);
}

}  // namespace fuseline
