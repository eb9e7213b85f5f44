// Writes down what a framework launches for an operator, one line a launch.
#pragma once

#include <initializer_list>
#include <string>
#include <utility>
#include <variant>

#include "model/framework_launch.h"
#include "model/plan.h"

namespace fuseline {

class LaunchList {
 public:
  using Matrix = std::variant<Operand, Scratch>;

  // `loads` first, then what is stored.
  FrameworkLaunch& add(std::string name, Implementation implementation,
                       std::initializer_list<Matrix> loads, std::initializer_list<Matrix> stores) {
    all_.launches.push_back({std::move(name), implementation});
    FrameworkLaunch& launch = all_.launches.back();
    for (const Matrix& m : loads) launch.moved.push_back({m, false});
    for (const Matrix& m : stores) launch.moved.push_back({m, true});
    return launch;
  }

  // Launches that move next to nothing.
  void add_short(std::initializer_list<const char*> names) {
    for (const char* name : names) all_.launches.push_back({name, Implementation::vectorized});
  }

  // They stand beside the operator's own kernel, or take its place.
  FrameworkLaunches beside() && { return std::move(all_); }
  FrameworkLaunches instead() && {
    all_.instead = true;
    return std::move(all_);
  }

 private:
  FrameworkLaunches all_;
};

}  // namespace fuseline
