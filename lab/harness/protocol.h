// What a function's process and the checker say to each other. The matrices and the counters are
// the checker's: the function's process holds no element that it has not loaded.
//
// The checker sends a Greeting; then the process sends Requests, and gets for `load` a float, for
// `tile` the floats of the tile, row by row, and for `done` one float that says goodbye.
#pragma once

#include <cstdint>

namespace fuseline_lab {

inline constexpr int kChannel = 3;  // the file descriptor
inline constexpr std::size_t kMostNamed = 8;
inline constexpr std::size_t kNameBytes = 24;

struct Greeting {
  // Comes back with `done`: code that does not know it cannot say what was held on chip.
  std::uint64_t nonce = 0;
  std::uint32_t matrix_count = 0, number_count = 0;
  struct Shape {
    char name[kNameBytes] = {};
    std::int64_t rows = 0, cols = 0;
  } matrices[kMostNamed];
  struct Number {
    char name[kNameBytes] = {};
    double value = 0;
  } numbers[kMostNamed];
};

enum class Ask : std::uint32_t { ready = 1, load = 2, store = 3, tile = 4, done = 5 };

struct Request {
  Ask what = Ask::ready;
  std::uint32_t matrix = 0;
  // Of an element or a tile's first element; of `done`: bytes held at most, and the nonce.
  std::int64_t row = 0, col = 0;
  float value = 0;  // of `store`
  std::uint32_t unused = 0;
};
static_assert(sizeof(Request) == 32);

}  // namespace fuseline_lab
