// Random functions of values.
#pragma once

#include <random>
#include <string>
#include <vector>

#include "model/primitives/map_function.h"

namespace fuseline::test {

// "0.5 * x * (1 + tanh(y))": a formula of the parameters, of the functions that formulas may call.
std::string random_formula(std::mt19937_64& random, const std::vector<std::string>& parameters,
                           int depth);

constexpr double kLargest = 3e3;  // numbers of values: fp16 holds them, and so do their squares

struct RandomLet {
  std::string line;  // "let f0(x) = ..."
  MapFn map;
};
// The same ones in every run, since the program keeps each for as long as it runs. None makes
// numbers above kLargest of those up to 20.
const std::vector<RandomLet>& random_lets();

}  // namespace fuseline::test
