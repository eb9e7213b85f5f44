// How often a block runs at which size (search --shapes).
#include "sim/search/distribution_file.h"
#include "tests/fuzz/target.h"

namespace fuseline::fuzz {
namespace {

const Registered distribution({.name = "distribution",
                               .dictionary = "distribution",
                               .seeds = {"docs/shapes.csv"},
                               .read = [](const std::string& bytes) {
                                 static_cast<void>(read_distribution(file_with(bytes, "fuzz.csv")));
                               }});

}  // namespace
}  // namespace fuseline::fuzz
