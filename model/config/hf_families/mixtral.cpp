#include "model/config/hf_families.h"

namespace fuseline {

namespace in_mixtral {
namespace {

ModelConfig read(const HfFields& fields) {
  require_activation(fields, "hidden_act", {"silu", "swish"});
  ModelConfig c = read_width_and_vocabulary(fields);
  add_heads(c, fields);
  c.F = fields.whole("intermediate_size");
  c.norm_eps = fields.real_or("rms_norm_eps", 1e-5);
  c.sliding_window = fields.whole_or("sliding_window", 0);
  c.blocks = {{.block = "moe"}};
  c.values["E"] = fields.whole_or("num_local_experts", 8);
  c.values["k"] = fields.whole_or("num_experts_per_tok", 2);
  return c;
}

constexpr const char* kReads[] = {"num_local_experts", "num_experts_per_tok"};

}  // namespace
}  // namespace in_mixtral

constinit const HfFamily hf_families::mixtral{.model_type = "mixtral",
                                              .architecture = "Mixtral",
                                              .read = in_mixtral::read,
                                              .reads = in_mixtral::kReads};

}  // namespace fuseline
