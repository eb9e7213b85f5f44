#include "model/config/hf_families.h"

namespace fuseline {

namespace in_mamba {
namespace {

ModelConfig read(const HfFields& fields) {
  require_activation(fields, "hidden_act", {"silu", "swish"});
  require_flag(fields, "use_bias", false);
  require_flag(fields, "use_conv_bias", true);
  ModelConfig c = read_width_and_vocabulary(fields);
  c.blocks = {{.block = "mamba"}};
  c.norm_eps = fields.real_or("layer_norm_epsilon", 1e-5);
  c.values["N"] = fields.whole_or("state_size", 16);
  const std::int64_t expand = fields.whole_or("expand", 2);
  c.values["inner"] = fields.whole_or("intermediate_size", expand * c.D);
  c.values["rank"] = step_rank(fields, "time_step_rank", c.D);
  c.values["taps"] = fields.whole_or("conv_kernel", 4);
  c.tied_embeddings = fields.flag_or("tie_word_embeddings", true);
  return c;
}

constexpr const char* kReads[] = {"use_bias"};

}  // namespace
}  // namespace in_mamba

constinit const HfFamily hf_families::mamba{.model_type = "mamba",
                                            .architecture = "Mamba",
                                            .read = in_mamba::read,
                                            .reads = in_mamba::kReads};

}  // namespace fuseline
