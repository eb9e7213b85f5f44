// Hugging Face's config.json (--model config.json). What is accepted has blocks.
#include <stdexcept>

#include "model/blocks/block.h"
#include "model/config/hf_config.h"
#include "model/config/model_files.h"
#include "tests/fuzz/target.h"

namespace fuseline::fuzz {
namespace {

const Registered config_json(
    {.name = "config_json",
     .dictionary = "config_json",
     .seeds = {},
     .read = [](const std::string& bytes) {
       const ModelConfig model = parse_hf_config(bytes, "config.json");
       check_config(model, "config.json");
       for (const BlockUse& layer : model.blocks)
         if (build_block(model, layer, Workload{.batch = 1, .seq = 2}).ops().empty())
           throw std::logic_error("a block without operators");
     }});

}  // namespace
}  // namespace fuseline::fuzz
