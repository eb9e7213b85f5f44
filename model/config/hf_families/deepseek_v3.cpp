#include "model/config/hf_deepseek.h"
#include "model/config/hf_families.h"

namespace fuseline {

namespace in_deepseek_v3 {
namespace {

ModelConfig read(const HfFields& fields) { return read_deepseek(fields, true); }

}  // namespace
}  // namespace in_deepseek_v3

constinit const HfFamily hf_families::deepseek_v3{.model_type = "deepseek_v3",
                                                  .architecture = "DeepseekV3",
                                                  .read = in_deepseek_v3::read,
                                                  .reads = kDeepseekReads};

}  // namespace fuseline
