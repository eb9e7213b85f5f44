// What the sources of streams, rows and scans have in common as texts.
#pragma once

#include <string>
#include <vector>

#include "cuda/emit/stream_body.h"
#include "model/program.h"

namespace fuseline::cuda {

// "tiles_silu_mul": a mainloop and each step once.
std::string function_name(const std::string& loop, const std::vector<std::string>& steps);

// The source's first comment: `title`, the program, and which parameter is which tensor.
std::string stream_comment(const Graph& graph, const Program& program, const std::string& title,
                           const std::vector<StreamField>& fields);

// struct Kernel, whose parameters are the body's fields. `constants`: "units = 4, distance = 0";
// `finishes`: something follows the walk down columns.
std::string struct_text(const Graph& graph, const StreamBody& body, const std::string& constants,
                        bool finishes);

}  // namespace fuseline::cuda
