// GPU files (--gpu FILE.toml).
#include "sim/gpu/gpu.h"
#include "tests/fuzz/target.h"

namespace fuseline::fuzz {
namespace {

const Registered gpu_toml({.name = "gpu_toml",
                           .dictionary = "gpu",
                           .seeds = {"scenarios/gpus/*.toml"},
                           .read = [](const std::string& bytes) {
                             static_cast<void>(load_gpu(file_with(bytes, "fuzz.toml")));
                           }});

}  // namespace
}  // namespace fuseline::fuzz
