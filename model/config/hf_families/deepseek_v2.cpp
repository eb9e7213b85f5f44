#include "model/config/hf_deepseek.h"
#include "model/config/hf_families.h"

namespace fuseline {

namespace {

ModelConfig read(const HfFields& fields) { return read_deepseek(fields, false); }

}  // namespace

constinit const HfFamily hf_families::deepseek_v2{.model_type = "deepseek_v2",
                                                  .architecture = "DeepseekV2",
                                                  .read = read,
                                                  .reads = kDeepseekReads};

}  // namespace fuseline
