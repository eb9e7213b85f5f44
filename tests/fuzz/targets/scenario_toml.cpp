// Scenarios (predict SCENARIO.toml), sessions of the window too.
#include "model/config/scenario.h"
#include "tests/fuzz/target.h"

namespace fuseline::fuzz {
namespace {

const Registered scenario_toml({.name = "scenario_toml",
                                .dictionary = "scenario",
                                .seeds = {"scenarios/*.toml"},
                                .read = [](const std::string& bytes) {
                                  static_cast<void>(load_scenario(file_with(bytes, "fuzz.toml")));
                                }});

}  // namespace
}  // namespace fuseline::fuzz
