#include "cuda/emit/names.h"

#include <algorithm>
#include <array>
#include <cctype>

#include <fmt/format.h>

namespace fuseline::cuda {

namespace {

// Keywords that mathematicians like, and names of cuda/kernels that a value would hide.
constexpr std::array<std::string_view, 33> kReserved = {
    "and",   "or",      "not",    "xor",   "do",  "if",      "for",    "new",        "int",
    "float", "auto",    "const",  "copy",  "add", "sub",     "mul",    "square",     "rsqrt",
    "silu",  "sigmoid", "negate", "exp",   "log", "rope",    "swiglu", "reciprocal", "columns",
    "meets", "slab",    "params", "state", "acc", "register"};

}  // namespace

std::string Names::unique(std::string_view wanted) {
  std::string name;
  for (const char c : wanted) name += std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  if (name.empty() || std::isdigit(static_cast<unsigned char>(name.front())) != 0)
    name.insert(0, "v");
  std::string result = name;
  for (int number = 1;
       std::ranges::find(kReserved, result) != kReserved.end() || taken_.contains(result); ++number)
    result = fmt::format("{}_{}", name, number);
  taken_.insert(result);
  return result;
}

}  // namespace fuseline::cuda
