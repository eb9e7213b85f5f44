// Blocks as text (--block FILE.block). A block with sizes for all its letters becomes a graph.
#include "model/blocks/block_text.h"
#include "tests/fuzz/target.h"

namespace fuseline::fuzz {
namespace {

// Sizes that many blocks ask for. A block may ask for others, and is refused then.
const ParameterValues kSizes = {{"D", 64}, {"F", 128}, {"H", 4}, {"Hkv", 2}, {"d", 16}, {"V", 96}};

const Registered block_text({.name = "block_text",
                             .dictionary = "block",
                             .seeds = {"scenarios/blocks/*.block", "docs/handbook/*.block"},
                             .read = [](const std::string& bytes) {
                               const auto text = BlockText::parse(bytes, "fuzz.block");
                               static_cast<void>(
                                   build_graph(*text, kSizes, Workload{.batch = 1, .seq = 2}));
                             }});

}  // namespace
}  // namespace fuseline::fuzz
