// Operators that programs of one's own compute in every plan of the block.
#include <algorithm>
#include <filesystem>
#include <memory>
#include <utility>

#include "base/data_files.h"
#include "model/blocks/build/builder.h"
#include "model/programs/block_programs.h"

namespace fuseline {

// Behind all other statements: operators are named by their own names or by their step's.
void BlockBuilder::own_programs() {
  std::map<std::string, std::int64_t> sizes;
  for (const auto* names : {&letters_, &scope().names})
    for (const auto& [name, value] : *names)
      if (const auto* size = value.get<ShapeSize>()) sizes[name] = size->value();
  for (const Statement* s : computed_) {
    auto program = std::make_shared<BlockProgram>();
    for (const std::string& target : s->targets) {
      std::vector<std::string> known, found;
      for (const Op& op : graph_.ops()) {
        known.push_back(op.name);
        known.push_back(op.site);
        if (op.name == target) found = {op.name};
      }
      if (found.empty())
        for (const Op& op : graph_.ops())
          if (op.site == target) found.push_back(op.name);
      if (found.empty())
        fail(s->at, {.value = target,
                     .message = "the block has no such operator and no such step",
                     .allowed = "what `fuseline explain` calls its operators",
                     .nearest = nearest_name(target, known)});
      for (const std::string& name : found) {
        if (std::ranges::find(program->operators, name) != program->operators.end())
          fail(s->at, {.value = name, .message = "is named twice"});
        program->operators.push_back(name);
      }
    }
    program->file =
        read_block_program(relative_to_file(s->message, text_.file().source->file).string(), sizes);
    graph_.computed_by(program);
    try {
      (void)with_programs(graph_);
    } catch (const InputError& e) {
      InputProblem problem = e.problem();
      problem.message = problem.value + " " + problem.message;
      problem.value = s->message;
      problem.field.clear();
      fail(s->at, std::move(problem));
    }
  }
}

}  // namespace fuseline
