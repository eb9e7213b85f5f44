// The rows that bands are fitted to, from shipped measurements.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "sim/judge/band_fit.h"

namespace fuseline {

// The folders of scenarios/measurements, as paths.
std::vector<std::string> measurement_folders();

// Of blocks of all phases, their kernels, GEMMs and gains in these folders, each on its own GPU; a
// model with constants that were fitted without it is predicted by those. Gains are of any two
// plans of one block, also from two folders. InputError as load_measurements; a folder without the
// name of a GPU.
using FolderProgress = std::function<void(std::size_t done, std::size_t count)>;
std::vector<Residual> band_rows(const std::vector<std::string>& folders,
                                const FolderProgress& progress = {});

}  // namespace fuseline
