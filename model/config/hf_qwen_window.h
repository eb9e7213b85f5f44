// The sliding window of Qwen's files.
#pragma once

#include "model/config/hf_fields.h"

namespace fuseline {

// Only with use_sliding_window, and then in the layers from max_window_layers on, unless
// layer_types says which. InputError where layers differ. 0: none.
std::int64_t read_qwen_window(const HfFields& fields, std::int64_t layers);

}  // namespace fuseline
