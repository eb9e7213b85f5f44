// Which policy is the fastest for a model on a GPU?
//   embed llama2-7b h200
#include <iostream>
#include <string>

#include "base/error.h"
#include "sim/block/estimate.h"
#include "sim/selection/selection.h"

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: embed MODEL GPU\n";
    return 2;
  }
  try {
    // The same words as on the command line; what is not said has the same defaults.
    fuseline::SelectionWords words;
    words.model = argv[1];
    words.gpu = argv[2];
    const fuseline::Selection selection = fuseline::resolve_selection(std::nullopt, words);
    std::string fastest;
    fuseline::Seconds least;
    for (const std::string& policy : selection.policies) {
      const fuseline::PlanEstimate estimate = fuseline::simulate(
          fuseline::plan_of(selection, policy), selection.gpu, selection.fidelity);
      if (!fastest.empty() && estimate.time >= least) continue;
      fastest = policy;
      least = estimate.time;
    }
    std::cout << fastest << " " << fuseline::to_us(least) << " us\n";
  } catch (const fuseline::InputError& error) {
    std::cerr << "embed: " << error.what() << "\n";
    return 2;
  }
}
