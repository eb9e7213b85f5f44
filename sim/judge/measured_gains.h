// Gains of one policy over another that were measured on the same block, beside predicted ones.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/measured/measurement.h"

namespace fuseline {

struct MeasuredGain {
  std::string folder;            // the measurement's: "h200-fuseline"
  BlockCase block;               // under the policy that gains
  double measured = 1;           // time under the other policy over time under this one
  double predicted = 1;          // with the shipped constants of the measurement's GPU
  bool earlier_kernels = false;  // ours have changed since: is_of_earlier_kernels
};

// Predictions are of our kernels as they are. A table made before they became faster says so in its
// meta.toml, in a note that begins with these words.
constexpr std::string_view kEarlierKernels = "earlier kernels:";
bool is_of_earlier_kernels(const MeasurementMeta& meta);

// Of all blocks in the folder that were measured under both policies, in its order. InputError: as
// load_measurements; blocks of both in a folder without the name of a GPU.
std::vector<MeasuredGain> measured_gains(const std::string& folder, const std::string& policy,
                                         const std::string& over);

// Gains less than this apart are no order that a prediction has to get right.
constexpr double kLeastOrder = 0.02;

struct GainAgreement {
  std::size_t cases = 0;
  double mean_measured = 0, mean_predicted = 0;  // geometric means, less 1
  // Of the logarithms, measured on predicted: the line through their means, and the one through no
  // gain. 0 where predictions are all alike.
  double slope = 0, slope_through_none = 0;
  double spread = 0;  // standard deviation of log(measured / predicted)
  // Predicted gains of at least kLeastOrder, and how many of them were measured the other way.
  std::size_t orders = 0, wrong = 0;
};
GainAgreement agreement_of(std::span<const MeasuredGain> gains);

bool wrong_order(const MeasuredGain& gain);

}  // namespace fuseline
