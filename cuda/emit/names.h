// Names of a generated source: valid C++ identifiers, no two alike.
#pragma once

#include <set>
#include <string>
#include <string_view>

namespace fuseline::cuda {

class Names {
 public:
  // `wanted` with every other character replaced by _, and a number behind it when it is taken or
  // means something in C++.
  std::string unique(std::string_view wanted);

 private:
  std::set<std::string, std::less<>> taken_;
};

}  // namespace fuseline::cuda
