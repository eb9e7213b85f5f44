// Random choices.
#pragma once

#include <cstdint>
#include <iterator>
#include <random>
#include <vector>

namespace fuseline::test {

class Dice {
 public:
  explicit Dice(std::mt19937_64& random) : random_(random) {}
  std::int64_t number(std::int64_t least, std::int64_t most) {
    return std::uniform_int_distribution<std::int64_t>(least, most)(random_);
  }
  bool chance(double p) { return std::uniform_real_distribution<double>(0, 1)(random_) < p; }
  template <class T>
  T one_of(const std::vector<T>& all) {
    return all[static_cast<std::size_t>(number(0, std::ssize(all) - 1))];
  }
  std::mt19937_64& source() { return random_; }

 private:
  std::mt19937_64& random_;
};

}  // namespace fuseline::test
