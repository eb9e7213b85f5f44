// predict --sequences: one call for sequences that differ.
#pragma once

#include <optional>
#include <string>

#include "sim/selection/selection.h"

namespace fuseline {

// What --sequences and --page say; absent = not said.
struct SequenceWords {
  std::optional<std::string> sequences, page;
};

// The sizes stand in --sequences alone: the phase is decode, a sequence a batch. InputError: sizes
// or a phase beside it, --page without it, layers.
void leave_sizes_to_sequences(const SequenceWords& words, SelectionWords& selection);

// The table or the JSON (fuseline.sequences/1) of all selected policies.
std::string predict_sequences(const SequenceWords& words, const Selection& selection,
                              const std::string& format);

}  // namespace fuseline
