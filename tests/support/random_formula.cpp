#include "tests/support/random_formula.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <span>

#include "base/error.h"
#include "model/programs/defined_map.h"
#include "tests/support/dice.h"

namespace fuseline::test {

namespace {

constexpr int kFormulas = 60;  // fewer than the maps that a run of the program may define

}  // namespace

const std::vector<RandomLet>& random_lets() {
  static const std::vector<RandomLet> all = [] {
    std::mt19937_64 random(7);
    std::vector<RandomLet> made;
    while (made.size() < kFormulas) {
      std::vector<std::string> parameters = {"x"};
      if (random() % 3 == 0) parameters.emplace_back("z");
      const std::string text = random_formula(random, parameters, 3);
      const ValueFunction f = ValueFunction::of_text(text, parameters);
      bool tame = true;
      for (const double x : {-20.0, -3.0, -1.0, -0.1, 0.0, 0.1, 1.0, 3.0, 20.0})
        for (const double z : {-20.0, -1.0, 0.0, 1.0, 20.0}) {
          const double of[] = {x, z};
          tame = tame && std::fabs(f(std::span(of, parameters.size()))) < kLargest;
        }
      if (!tame) continue;
      const std::string name = fmt::format("f{}", made.size());
      made.push_back({fmt::format("let {}({}) = {}", name, fmt::join(parameters, ", "), text),
                      defined_map(name, f)});
    }
    return made;
  }();
  return all;
}

std::string random_formula(std::mt19937_64& random, const std::vector<std::string>& parameters,
                           int depth) {
  Dice dice(random);
  if (depth == 0 || dice.chance(0.15)) {
    if (dice.chance(0.3)) return dice.one_of<std::string>({"0.5", "2", "1", "0.1", "3"});
    return dice.one_of(parameters);
  }
  const auto inner = [&] { return random_formula(random, parameters, depth - 1); };
  const std::string a = inner();
  switch (dice.number(0, 6)) {
    case 0:
      return "(" + a + " + " + inner() + ")";
    case 1:
      return "(" + a + " - " + inner() + ")";
    case 2:
      return a + " * " + inner();
    case 3:
      return a + " / (1 + abs(" + inner() + "))";
    case 4:
      return "-(" + a + ")";
    default:
      break;
  }
  const std::string name = dice.one_of(value_function_names());
  // How many operands it takes is said by the parser alone.
  const std::string one = name + "(" + a + ")";
  try {
    (void)ValueFunction::of_text(one, parameters);
    return one;
  } catch (const InputError&) {
    return name + "(" + a + ", " + inner() + ")";
  }
}

}  // namespace fuseline::test
