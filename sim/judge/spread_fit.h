// How the size of errors depends on traits of the work: few numbers for a subject and phase.
#pragma once

#include <vector>

#include "sim/judge/band_classes.h"
#include "sim/sure/band.h"

namespace fuseline {

// Of rows of one subject and phase, `errors` as large as they are, each above 0 or 0. The mean
// error is exp(a + sum of slope trait), most likely where errors over it are exponential; slopes of
// traits over their own spread have a prior that counts like 20 rows. None where rows have no
// traits, or too few rows have.
std::vector<Spread> fit_spreads(const ResidualRows& rows, const std::vector<double>& errors);

}  // namespace fuseline
