#include "model/config/hf_deepseek.h"
#include "model/config/hf_families.h"

namespace fuseline {

namespace {

ModelConfig read(const HfFields& fields) { return read_deepseek(fields, true); }

}  // namespace

constinit const HfFamily hf_families::deepseek_v3{.model_type = "deepseek_v3",
                                                  .architecture = "DeepseekV3",
                                                  .read = read,
                                                  .reads = kDeepseekReads};

}  // namespace fuseline
