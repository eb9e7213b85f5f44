// Tables of GEMMs that others published.
#include "sim/judge/published_gemm.h"
#include "tests/fuzz/target.h"

namespace fuseline::fuzz {
namespace {

const Registered published_gemm_csv({.name = "published_gemm_csv",
                                     .dictionary = "csv",
                                     .seeds = {"scenarios/published/gemm.csv"},
                                     .read = [](const std::string& bytes) {
                                       static_cast<void>(
                                           load_published_gemms(file_with(bytes, "fuzz.csv")));
                                     }});

}  // namespace
}  // namespace fuseline::fuzz
