// What a framework launches to compute an operator, besides the operator's kernel in a plan or in
// its place. The executor always runs the operator's own program, as the maths is the same. These
// launches say what the framework's way costs.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "base/units.h"
#include "model/graph.h"

namespace fuseline {

enum class Implementation : std::uint8_t;

// Memory that one launch leaves for the next ones of the same kernel; no tensor of the plan.
struct Scratch {
  std::string name;  // unique in the kernel
  std::int64_t rows = 0, cols = 0;
  Dtype dtype = Dtype::bf16;
};

struct LaunchAccess {
  std::variant<Operand, Scratch> of;
  bool store = false;
};

struct FrameworkLaunch {
  std::string name;
  Implementation implementation;
  std::vector<LaunchAccess> moved{};  // empty: the launch takes the time of an empty kernel
  std::int64_t each = 1;              // terms that make one element: the taps of a convolution
  Flops flops{};                      // of a product on tensor cores
};

// `instead`: they do all that the operator does, and its own kernel is not launched.
struct FrameworkLaunches {
  std::vector<FrameworkLaunch> launches;
  bool instead = false;
};

}  // namespace fuseline
