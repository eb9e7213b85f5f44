// On which machine each run of a comparison is, and of which block.
#pragma once

#include <string>

#include "gui/model/results.h"

namespace fuseline::gui {

// Fills RunView::machine with the parts (model, GPU, phase and sizes, fidelity) in which the runs
// are not all alike: pinned runs keep their own, and a measurement is of the GPU without "what if".
void tell_machines_apart(Results& results);

// "h200", "h200+what-if"; the title where another GPU of the results has the same name.
std::string name_of_gpu(const Results& results, const Gpu& gpu);

// "LLaMA-2-7B · NVIDIA H200 SXM 141 GB · forward, batch 1, 2,048 tokens, bf16", and the fidelity of
// a prediction where it is not the default.
std::string machine_line(const Run& run, const PredictionCase& block);

}  // namespace fuseline::gui
