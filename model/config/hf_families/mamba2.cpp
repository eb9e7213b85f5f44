#include "model/config/hf_families.h"

namespace fuseline {

namespace in_mamba2 {
namespace {

ModelConfig read(const HfFields& fields) {
  require_activation(fields, "hidden_act", {"silu", "swish"});
  require_flag(fields, "use_bias", false);
  require_flag(fields, "use_conv_bias", true);
  require_flag(fields, "rms_norm", true);
  ModelConfig c = read_width_and_vocabulary(fields);
  c.blocks = {{.block = "mamba2"}};
  c.norm_eps = fields.real_or("layer_norm_epsilon", 1e-5);
  c.values["N"] = fields.whole_or("state_size", 128);
  const std::int64_t width = fields.whole_or("head_dim", 64);
  const std::int64_t inner = fields.whole_or("expand", 2) * c.D;
  if (fields.whole_or("num_heads", inner / width) * width != inner)
    fields.fail("num_heads", *fields.find("num_heads"),
                "heads of " + std::to_string(width) + " columns are not the " +
                    std::to_string(inner) + " columns of the scan",
                std::to_string(inner / width));
  c.values["P"] = width;
  c.values["inner"] = inner;
  c.values["groups"] = fields.whole_or("n_groups", 8);
  c.values["taps"] = fields.whole_or("conv_kernel", 4);
  c.values["chunk"] = fields.whole_or("chunk_size", 256);
  return c;
}

constexpr const char* kReads[] = {"use_bias", "head_dim"};

}  // namespace
}  // namespace in_mamba2

constinit const HfFamily hf_families::mamba2{.model_type = "mamba2",
                                             .architecture = "Mamba2",
                                             .read = in_mamba2::read,
                                             .reads = in_mamba2::kReads};

}  // namespace fuseline
