// The rows that bands are fitted to, from shipped measurements.
#pragma once

#include <string>
#include <vector>

#include "base/sharing.h"
#include "sim/judge/band_fit.h"

namespace fuseline {

// The folders of scenarios/measurements, as paths.
std::vector<std::string> measurement_folders();
// Those with plans that were measured as files (sim/judge/measured_plans.h).
std::vector<std::string> plan_folders();

// Of blocks of all phases, their kernels, GEMMs and gains in these folders, each on its own GPU; a
// model with constants that were fitted without it is predicted by those. Gains are of any two
// plans of one block, also from two folders. InputError as load_measurements; a folder without the
// name of a GPU. Of folders with such
// plans, the rows of these. Who shares the work judges a folder at a time; where nobody is named,
// this thread does all.
std::vector<Residual> band_rows(const std::vector<std::string>& folders);
std::vector<Residual> band_rows(const std::vector<std::string>& folders, Sharing& sharing,
                                const Sharing::Progress& progress = {});

}  // namespace fuseline
