// The text of a table of bands, as BandTable::load reads it.
#pragma once

#include <string>
#include <vector>

#include "sim/sure/band.h"

namespace fuseline {

// Where the residuals of a table come from.
struct BandSources {
  std::vector<std::string> measurements;  // folders of scenarios/measurements, files of published
  std::string date;
  std::vector<std::string> notes;  // comments at the head of the file, one line each
};

std::string bands_toml(const BandTable& table, const BandSources& sources);

}  // namespace fuseline
