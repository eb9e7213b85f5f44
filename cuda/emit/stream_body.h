// The body of a stream or row program as statements, and the parameters that they use.
#pragma once

#include <string>
#include <vector>

#include "cuda/emit/stream_fields.h"
#include "cuda/emit/stream_shape.h"

namespace fuseline::cuda {

struct StreamBody {
  std::string functions;    // device functions of primitives, in front of the struct
  std::string state;        // members: what a thread carries down its columns
  std::string run;          // statements, indented by 4
  std::string after_block;  // of a column mainloop, behind each block of rows within the walk
  std::string finish;       // of a column mainloop, after the walk
  std::vector<StreamField> fields;
  std::vector<std::string> steps;  // what is done, in order: "add", "sum_squares"
};

StreamBody stream_body(const Graph& graph, const Program& program, const StreamValues& values,
                       const StreamShape& shape);

}  // namespace fuseline::cuda
