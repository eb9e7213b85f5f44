// What a claim's numbers mean together: implied bandwidths, prices and sizes.
#pragma once

#include <string>
#include <vector>

#include "sim/judge/audit/verdict.h"

namespace fuseline::audit {

// Sentences without full stops, none when there is nothing to add.
//   speed_up, latency_reduction (of whole blocks): how long each launch of the baseline would have
//                   to keep the CPU busy for the figure, where that is least
//   latency         predicted latencies; bytes that the utilisations say were saved; the bandwidth
//   of a GPU that reads
//                   the compulsory bytes in the time after, and which of the tried GPUs has it
//   cost            the highest price an hour at which the cheapest setting costs what is claimed;
//                   how many GPUs' memory the model needs there
//   fits_in_memory  what the weights take at each number of bits, beside the memories
std::vector<std::string> findings(const Claim& claim, const std::vector<Tried>& tried,
                                  const Predictions& predictions);

}  // namespace fuseline::audit
