// Tables of bands (scenarios/bands/bands.toml).
#include "sim/sure/band.h"
#include "tests/fuzz/target.h"

namespace fuseline::fuzz {
namespace {

const Registered bands_toml({.name = "bands_toml",
                             .dictionary = "toml",
                             .seeds = {"scenarios/bands/bands.toml"},
                             .read = [](const std::string& bytes) {
                               static_cast<void>(BandTable::load(file_with(bytes, "fuzz.toml")));
                             }});

}  // namespace
}  // namespace fuseline::fuzz
