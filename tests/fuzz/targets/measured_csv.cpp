// Measurements (compare FILE.csv).
#include "sim/measured/measurement.h"
#include "tests/fuzz/target.h"

namespace fuseline::fuzz {
namespace {

const Registered measured_csv({.name = "measured_csv",
                               .dictionary = "csv",
                               .seeds = {"scenarios/measurements/h200-fuseline/*.csv"},
                               .read = [](const std::string& bytes) {
                                 static_cast<void>(load_measurements(file_with(bytes, "fuzz.csv")));
                               }});

}  // namespace
}  // namespace fuseline::fuzz
