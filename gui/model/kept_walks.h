// What the window keeps of the simulator's walks after work over many sizes.
#pragma once

#include <cstddef>

namespace fuseline::gui {

constexpr std::size_t kMostKeptWalks = std::size_t{8} << 20;  // bytes

// Views in the background (a sweep, a map, judging all measurements) simulate what no later edit
// asks for. Where the walks that the process remembers take more than kMostKeptWalks, all are
// forgotten: an edit computes anew then, once.
void bound_walks();

}  // namespace fuseline::gui
