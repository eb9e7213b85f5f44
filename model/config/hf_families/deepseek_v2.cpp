#include "model/config/hf_deepseek.h"
#include "model/config/hf_families.h"

namespace fuseline {

namespace in_deepseek_v2 {
namespace {

ModelConfig read(const HfFields& fields) { return read_deepseek(fields, false); }

}  // namespace
}  // namespace in_deepseek_v2

constinit const HfFamily hf_families::deepseek_v2{.model_type = "deepseek_v2",
                                                  .architecture = "DeepseekV2",
                                                  .read = in_deepseek_v2::read,
                                                  .reads = kDeepseekReads};

}  // namespace fuseline
