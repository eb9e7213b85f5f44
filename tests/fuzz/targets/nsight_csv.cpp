// Nsight Compute's CSV (import ncu).
#include "sim/measured/nsight_csv.h"
#include "tests/fuzz/target.h"

namespace fuseline::fuzz {
namespace {

const Registered nsight_csv({.name = "nsight_csv",
                             .dictionary = "csv",
                             .seeds = {"docs/nsight-compute.csv"},
                             .read = [](const std::string& bytes) {
                               static_cast<void>(read_nsight_csv(file_with(bytes, "fuzz.csv")));
                             }});

}  // namespace
}  // namespace fuseline::fuzz
