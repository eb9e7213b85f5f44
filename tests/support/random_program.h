// Random texts of programs: each line is made by the walk of a primitive's own syntax, with random
// values, tensors and arguments in its places. So there is no list of primitives here.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace fuseline::test {

struct RandomProgramOptions {
  bool with_meaning = true;   // only lines that say what they compute in fp64
  double mistakes = 0.25;     // share of files with a line that the checker of programs refuses
  std::int64_t largest = 40;  // rows, and terms of a product's sums; columns are up to 8 times that
};

class RandomPrograms {
 public:
  explicit RandomPrograms(std::uint64_t seed, RandomProgramOptions options = {})
      : random_(seed), options_(options) {}

  // One file: a few programs, the later ones of which read what earlier ones stored.
  std::string next();

 private:
  std::mt19937_64 random_;
  RandomProgramOptions options_;
};

}  // namespace fuseline::test
