#include "sim/selection/plan_file.h"

#include <fmt/format.h>

#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "model/programs/legality.h"

namespace fuseline {

namespace {

std::string shape(const Tensor& t) {
  return fmt::format("[{}, {}] {}", t.rows, t.cols, name_of(t.dtype));
}

}  // namespace

std::shared_ptr<const Plan> plan_of_file(const ProgramFile& file) {
  std::vector<Diagnosis> wrong = check_programs(file);
  if (!wrong.empty()) throw InputError(wrong.front().problem);
  if (!file.has_operators)
    throw InputError({.file = file.source->file,
                      .message = "holds programs without the operators of a block",
                      .allowed = "a plan of explain --format program; programs alone go to "
                                 "fuseline program"});
  return std::make_shared<const Plan>(file.plan);
}

void check_same_block(const Plan& plan, const Graph& block, const std::string& name,
                      const std::string& file, const std::string& field) {
  for (const Tensor& t : block.tensors()) {
    const std::optional<TensorId> own = plan.block.find_tensor(t.name);
    if (own && plan.block.tensor(*own).rows == t.rows && plan.block.tensor(*own).cols == t.cols &&
        plan.block.tensor(*own).dtype == t.dtype)
      continue;
    const std::string in_plan = own ? shape(plan.block.tensor(*own)) : "missing";
    throw InputError(
        {.file = file,
         .field = field,
         .message = fmt::format("the plan is one of another block: {} is {} in the block of {} and "
                                "{} in the plan",
                                t.name, shape(t), name, in_plan),
         .allowed = "the model, phase and sizes that the plan was made for"});
  }
}

}  // namespace fuseline
