// What the window keeps of the simulator's walks after work over many sizes.
#pragma once

#include <cstddef>

namespace fuseline::gui {

constexpr std::size_t kMostKeptWalks = std::size_t{8} << 20;    // bytes
constexpr std::size_t kMostWalksAtRest = std::size_t{4} << 20;  // one comparison takes about 3 MiB

// Views in the background (a sweep, a map, judging all measurements) simulate what no later edit
// asks for. Where the walks that the process remembers take more than `most` bytes, all are
// forgotten: an edit computes anew then, once.
void bound_walks(std::size_t most = kMostKeptWalks);

}  // namespace fuseline::gui
