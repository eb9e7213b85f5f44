// The sizes at which a phase of a model is called, for requests that vary.
#pragma once

#include "model/config/config.h"
#include "sim/search/distribution_file.h"

namespace fuseline {

struct CallSizes {
  std::vector<ShapeWeight> shapes;  // in ascending order: fewer rows, then a shorter cache
  SizeCounts counts;                // of the calls before they were gathered
  double calls = 0;                 // that were counted; 0: the distribution does not say
};

// Of a list of shapes these. Of requests, with the workload's phase and batch: a call for each
// prompt (forward), for each token that is generated (decode, `seq` new tokens at once), or for
// each prompt with its answer (train); all sequences of a batch are equally long. Requests are
// gathered into at most `sizes` sizes: groups of equal shares of the calls, of which the last one
// leaves the longest 1 % to a group of its own; a group stands at its mean. InputError: no tokens
// are generated and the phase is decode.
CallSizes call_sizes(const Distribution& distribution, const Workload& workload, std::size_t sizes);

}  // namespace fuseline
