// How the width of bands follows what is known of the work before anything is measured.
#pragma once

#include <string>
#include <vector>

#include "sim/sure/work_class.h"

namespace fuseline {

// How the width of a phase's bands depends on one trait of the work: exp(slope (trait - centre))
// times the classes', with the trait as far as rows had it.
struct Spread {
  std::string what, phase, trait;
  double slope = 0, centre = 0;
  double least = 0, most = 0;
};

// Of all traits together; 1 where nothing is known of the work's traits or of their phase.
double spread_factor(const std::vector<Spread>& spreads, const WorkClass& work);

}  // namespace fuseline
