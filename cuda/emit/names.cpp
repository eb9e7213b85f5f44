#include "cuda/emit/names.h"

#include <algorithm>
#include <array>
#include <cctype>

#include <fmt/format.h>

#include "model/primitives/functions.h"

namespace fuseline::cuda {

namespace {

// Keywords that mathematicians like, and names of cuda/kernels that a value would hide.
constexpr std::array<std::string_view, 19> kReserved = {
    "and",  "or",    "not",     "xor",   "do",   "if",     "for",   "new", "int",     "float",
    "auto", "const", "columns", "meets", "slab", "params", "state", "acc", "register"};

bool is_function(std::string_view name) {
  const auto named = [&](const auto* function) { return name == function->name.value; };
  return std::ranges::any_of(maps::kAll, named) || std::ranges::any_of(pairs::kAll, named);
}

}  // namespace

std::string Names::unique(std::string_view wanted) {
  std::string name;
  for (const char c : wanted) name += std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  if (name.empty() || std::isdigit(static_cast<unsigned char>(name.front())) != 0)
    name.insert(0, "v");
  std::string result = name;
  for (int number = 1; std::ranges::find(kReserved, result) != kReserved.end() ||
                       is_function(result) || taken_.contains(result);
       ++number)
    result = fmt::format("{}_{}", name, number);
  taken_.insert(result);
  return result;
}

}  // namespace fuseline::cuda
