// Kernels for other programs: the launches of a plan over tensors with names, and the operators
// that they make up.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "cuda/export/recorded_plan.h"
#include "model/plan.h"
#include "model/programs/gradient.h"

namespace fuseline::cuda {

struct ExportedTensor {
  std::string name, symbol;
  Role role = Role::activation;
  Dtype dtype = Dtype::bf16;
  std::int64_t rows = 0, cols = 0;
  std::int64_t row_bytes = 0;  // from a row to the next
  std::int64_t bytes = 0;      // of the memory, with room behind the last row
};

// Some launches in order, as one function of tensors.
struct ExportedOperator {
  std::string name;
  std::vector<int> launches{};
  std::vector<int> inputs{}, outputs{};  // tensors that are given, and that are made
  std::vector<int> changed{};            // given and written to
  std::vector<int> temporaries{};        // made and read within, of no use outside
  std::string gradient{};                // the operator that computes it; empty: none is known
  std::vector<std::pair<int, int>>
      gradients{};  // of a gradient: (tensor, the one it is the gradient of)
};

struct Exported {
  std::string name, gpu, gpu_title, policy, hash, command, checked;
  std::vector<ExportedTensor> tensors;
  std::vector<RecordedWorkspace> workspaces;
  std::vector<RecordedCode> codes;
  std::vector<RecordedLaunch> launches;  // a target of at least 0 is an index of `tensors`
  std::vector<ExportedOperator> operators;
  std::vector<std::string> programs;  // as text, for the page
  Preparation preparation;            // how weights come from a block's own
  int layers = 0;                     // of a block; 0: programs of one's own
  std::string toolkit, architecture;
  std::string no_gradient;  // why programs of one's own have none; empty: they have
};

// An operator for each program of the plan, and one of them all called "all". With a gradient,
// "all_gradient" computes it, and "all" gives out what it needs beside its results.
Exported exported_programs(const Plan& plan, const ProgramGradient* gradient, const Gpu& gpu,
                           int threads);

// `layers` equal layers behind each other with weights of their own, from the block's input to its
// output: "forward", and "backward" where the plan has a backward pass. The first layer's
// statistics are computed ahead of it. InputError: the plan's inputs are such that nothing says how
// the first layer gets them.
Exported exported_block(const Plan& plan, const Gpu& gpu, int layers, int threads);

}  // namespace fuseline::cuda
