// Operators of a block that programs of one's own compute: "computed act by "act.fuse"" in the
// block's text. The block stays what is computed; plans run the programs in the operators' place.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "model/plan.h"
#include "model/programs/program_file.h"

namespace fuseline {

struct BlockProgram {
  std::vector<std::string> operators;       // of the block's graph
  std::shared_ptr<const ProgramFile> file;  // readable and legal, in the block's sizes
};

// The file's programs with the sizes of the block in place of the file's, for the letters that both
// have. InputError: what `fuseline program check` refuses, with the line.
std::shared_ptr<const ProgramFile> read_block_program(
    const std::string& path, const std::map<std::string, std::int64_t>& sizes);

// The block with one operator for each program in place of those that it computes. Their tensors
// meet by name. InputError (field and value, no file): a tensor of another shape or format, one
// that neither the block nor a program makes, one that the rest of the block reads and no program
// stores, operators that need results of the programs and are needed by them.
Graph with_programs(const Graph& block);
// Whether plans of the block run such programs. InputError: it has a backward pass.
bool computed_by_programs(const Graph& block);
bool is_own_program(const Op& op);
// The program of such an operator, which the graph may have moved to other tensors.
Program program_of(const Op& op, const std::string& name);

// Makes kernels of such operators what a file of programs alone gets: kind, way of being made,
// product and rest as operators. Weights whose rows are pairs get their order. `block`: as it was
// before with_programs(). InputError: the policy has turned what a program reads.
void complete_programs(Plan& plan, const Graph& block);

// A tensor that programs store for the block, in fp64, beside what the operators make of the same
// random inputs.
struct SameMeaning {
  std::string file, tensor;
  double difference = 0;  // relative L2
  [[nodiscard]] bool same() const;
};
// `value`: of the block's tensors, given and made by its operators. `threads`: of products.
std::vector<SameMeaning> compare_programs(const Graph& block,
                                          const std::function<std::vector<double>(TensorId)>& value,
                                          int threads = 1);

}  // namespace fuseline
