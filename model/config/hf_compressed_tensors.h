// quantization_config as compressed-tensors writes it, for vLLM and its relatives.
#pragma once

#include "model/config/config.h"
#include "model/config/hf_quantisation_object.h"

namespace fuseline {

// Formats of weights and activations of the one group of all linear layers. What they say of the
// cache is not read here. InputError naming the field for what is not predicted.
Formats read_compressed_tensors(const QuantisationObject& object);

}  // namespace fuseline
