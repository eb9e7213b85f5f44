// What repeats in a list of launches: the layers of a model, the iterations of a loop.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace fuseline {

// A list that follows itself at least once:
//   e a b c a b c a b c h  ->  begin 1, length 3, covered 9
struct Repeat {
  std::size_t begin = 0;    // of its longest run
  std::size_t run = 0;      // launches of that run
  std::size_t length = 0;   // of the list
  std::size_t covered = 0;  // launches in all runs of lists of this length
};

// The lists of at most `longest` launches that are no repetition of a shorter one, those that cover
// the most first, at most `most`. Two launches are equal when their numbers are.
std::vector<Repeat> find_repeats(std::span<const std::uint32_t> launches, std::size_t longest,
                                 std::size_t most);

// Where the list stands, from the front, without overlaps.
std::vector<std::size_t> occurrences(std::span<const std::uint32_t> launches,
                                     std::span<const std::uint32_t> list);

}  // namespace fuseline
