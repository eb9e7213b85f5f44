// Figures that others published (judge FILE.csv).
#include "sim/judge/published.h"
#include "tests/fuzz/target.h"

namespace fuseline::fuzz {
namespace {

const Registered published_csv({.name = "published_csv",
                                .dictionary = "csv",
                                .seeds = {"scenarios/published/figures.csv"},
                                .read = [](const std::string& bytes) {
                                  static_cast<void>(
                                      load_published_figures(file_with(bytes, "fuzz.csv")));
                                }});

}  // namespace
}  // namespace fuseline::fuzz
