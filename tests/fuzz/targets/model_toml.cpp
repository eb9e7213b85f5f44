// Model files (--model FILE.toml).
#include "base/toml_file.h"
#include "model/config/model_files.h"
#include "tests/fuzz/target.h"

namespace fuseline::fuzz {
namespace {

const Registered model_toml({.name = "model_toml",
                             .dictionary = "toml",
                             .seeds = {"scenarios/models/*.toml"},
                             .read = [](const std::string& bytes) {
                               check_config(read_model(TomlTable::parse(bytes, "fuzz.toml")),
                                            "fuzz.toml");
                             }});

}  // namespace
}  // namespace fuseline::fuzz
