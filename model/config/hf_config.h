// The config.json that Hugging Face puts beside a model's weights.
#pragma once

#include <string>
#include <vector>

#include "model/config/config.h"

namespace fuseline {

// Values of model_type that parse_hf_config() reads: those of hf_families/.
std::vector<std::string> hf_model_types();

// Reads the fields that shape a block, and refuses those that make it another computation
// (hf_refused.h); others are ignored, null counts as absent. `file` names the text in messages and,
// through its folder, the model when the text does not. The result has passed check_config().
// InputError: JSON syntax (line, column), unsupported architecture (with those supported), missing,
// impossible or refused fields under their Hugging Face names. Defaults and meanings of the fields:
// documentation of transformers (LlamaConfig and so on) and of diffusers (SD3Transformer2DModel).
ModelConfig parse_hf_config(const std::string& text, const std::string& file);

}  // namespace fuseline
