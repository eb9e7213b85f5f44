#include "sim/training/plan_model.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/error.h"
#include "model/operators/operator_table.h"
#include "model/policy.h"
#include "model/prepare.h"

namespace fuseline::training {

namespace {

using executor::Inputs;
using executor::PlanRunner;
using executor::Storage;

constexpr double kHalfLossScale = 1024;

std::shared_ptr<Storage> stored(const std::vector<float>& values, Dtype type, std::int64_t rows,
                                std::int64_t cols) {
  auto storage = std::make_shared<Storage>(type, rows, cols);
  for (std::int64_t r = 0; r < rows; ++r) storage->write(r, 0, cols, values.data() + r * cols);
  return storage;
}

Storage numbers(const std::vector<std::int32_t>& values) {
  Storage storage(Dtype::fp32, static_cast<std::int64_t>(values.size()), 1);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const float value = static_cast<float>(values[i]);
    storage.write(static_cast<std::int64_t>(i), 0, 1, &value);
  }
  return storage;
}

// The weight that the final norm has where a norm of the block has `weight`.
std::string in_final_norm(const Graph& block, const std::string& weight, const Graph& exit) {
  const auto is_forward_norm = [](const Op& op) { return is_norm(op) && op.pass == Pass::forward; };
  const auto final_norm = std::ranges::find_if(exit.ops(), is_forward_norm);
  FUSELINE_ASSERT(final_norm != exit.ops().end(), "the model has no final norm");
  for (const Op& op : block.ops()) {
    if (!is_forward_norm(op)) continue;
    for (std::size_t i = 0; i < op.reads.size(); ++i)
      if (block.tensor(op.reads[i].tensor).name == weight)
        return exit.tensor(final_norm->reads.at(i).tensor).name;
  }
  FUSELINE_ASSERT(false, weight + " is no weight of a norm");
}

// The inputs that a layer gets from the one before it.
std::set<std::string> carried_names(const Graph& graph) {
  std::set<std::string> names;
  for (const Related& r : graph.relations())
    if (r.relation == Relation::carried_to_next_layer) names.insert(graph.tensor(r.to).name);
  return names;
}

}  // namespace

PlanModel::PlanModel(const ModelConfig& config, const Workload& workload, const std::string& policy,
                     const Gpu& gpu, const executor::Workers& workers)
    : graphs_(training_graphs(config, workload)),
      parameters_(parameters_of(config, graphs_)),
      workload_(workload),
      workers_(workers),
      loss_scale_(workload.dtype == Dtype::fp16 ? kHalfLossScale : 1.0),
      entry_plan_(make_plan(policy, graphs_.entry)),
      block_plan_(make_plan(policy, graphs_.block)),
      exit_plan_(make_plan(policy, graphs_.exit)),
      entry_(std::make_unique<PlanRunner>(entry_plan_, gpu, workers)),
      exit_(std::make_unique<PlanRunner>(exit_plan_, gpu, workers)) {
  for (std::int64_t layer = 0; layer < config.layers; ++layer)
    blocks_.push_back(std::make_unique<PlanRunner>(block_plan_, gpu, workers));
  // Angles, not random numbers.
  for (const auto& [name, storage] : executor::random_storage(graphs_.block, 0, workers))
    if (graphs_.block.tensor(*graphs_.block.find_tensor(name)).role == Role::table)
      tables_[name] = storage;
}

// Sets the tensors that the plan makes of weights, tables and, for the first block, x.
void PlanModel::prepare(PlanRunner& runner, std::int64_t layer, const Graph& original,
                        const Values<float>& weights, const Storage* x) {
  Inputs given = tables_;
  const auto add = [&](const std::string& name, std::int64_t where, const std::string& tensor) {
    const std::size_t p = parameter_of(parameters_, where, tensor);
    given[name] = stored(weights[p], workload_.dtype, parameters_[p].rows, parameters_[p].cols);
  };
  std::map<std::string, const Tensor*> needed;
  for (const Graph* g : {&runner.plan().graph, &runner.plan().preparation.graph})
    for (const Tensor& t : g->tensors()) needed[t.name] = &t;
  for (const Tensor& t : original.tensors()) {
    if (t.role == Role::weight) add(t.name, layer, t.name);
    if (t.role != Role::input) continue;
    const bool is_x = x != nullptr && t.name == "x";
    given[t.name] = std::make_shared<Storage>(t.dtype, t.rows, t.cols);
    if (is_x) {
      auto copy = std::make_shared<Storage>(t.dtype, t.rows, t.cols);
      std::copy_n(x->at(0, 0), x->bytes().value(), copy->at(0, 0));
      given[t.name] = std::move(copy);
    }
  }
  // The next block's entry norm, or the final one: what this block's last kernel does for it.
  const bool last = layer + 1 == static_cast<std::int64_t>(blocks_.size());
  for (const auto& [name, tensor] : needed) {
    const std::string& theirs = tensor->of_next_layer;
    if (theirs.empty()) continue;
    if (last)
      add(name, kExit, in_final_norm(graphs_.block, theirs, graphs_.exit));
    else
      add(name, layer + 1, theirs);
  }
  const std::set<std::string> carried = carried_names(runner.plan().graph);
  const Inputs inputs = executor::prepare_inputs(runner.plan(), given, 0, workers_);
  for (const auto& [name, storage] : inputs) {
    const bool handed = original.find_tensor(name).has_value() &&
                        original.tensor(*original.find_tensor(name)).role == Role::input;
    if (carried.contains(name) ? x != nullptr : !handed) runner.set(name, *storage);
  }
}

// y becomes the next x, and what was made of it (y_stats) what the next needs of it (x_stats).
void PlanModel::hand_over(const PlanRunner& from, PlanRunner& to) const {
  const Graph& graph = from.plan().graph;
  for (const Related& r : graph.relations()) {
    if (r.relation != Relation::carried_to_next_layer) continue;
    const std::string& name = graph.tensor(r.to).name;
    if (to.takes(name)) to.set(name, from.at(graph.tensor(r.tensor).name));
  }
}

void PlanModel::collect(const PlanRunner& runner, std::int64_t layer, const Graph& original,
                        Values<float>& gradients) const {
  NamedTensors results;
  for (const Tensor& t : original.tensors()) {
    const std::string name = "d" + t.name;
    if (t.role == Role::weight) results[name] = executor::to_doubles(runner.at(name));
  }
  results = restore(runner.plan().preparation, runner.plan().graph, std::move(results));
  for (const auto& [name, values] : results) {
    std::vector<float>& sum = gradients[parameter_of(parameters_, layer, name.substr(1))];
    for (std::size_t i = 0; i < values.size(); ++i)
      sum[i] += static_cast<float>(values[i] / loss_scale_);
  }
}

StepResult<float> PlanModel::step(const Batch& batch, const Values<float>& weights) {
  StepResult<float> result;
  for (const Parameter& p : parameters_) result.gradients.emplace_back(p.count());

  prepare(*entry_, kEntry, graphs_.entry, weights, nullptr);
  entry_->set("ids", numbers(batch.ids));
  entry_->run(Pass::forward);
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    const Storage* x = i == 0 ? &entry_->at("x") : nullptr;
    prepare(*blocks_[i], static_cast<std::int64_t>(i), graphs_.block, weights, x);
    if (i > 0) hand_over(*blocks_[i - 1], *blocks_[i]);
    blocks_[i]->run(Pass::forward);
  }
  prepare(*exit_, kExit, graphs_.exit, weights, nullptr);
  exit_->set("x", blocks_.back()->at("y"));
  exit_->set("targets", numbers(batch.targets));
  exit_->run(Pass::forward);
  const std::vector<double> losses = executor::to_doubles(exit_->at("loss"));
  const double tokens = static_cast<double>(losses.size());
  for (const double loss : losses) result.loss += loss / tokens;

  const std::vector<float> seed(losses.size(), static_cast<float>(loss_scale_ / tokens));
  exit_->set("dloss", *stored(seed, Dtype::fp32, static_cast<std::int64_t>(seed.size()), 1));
  exit_->run(Pass::backward);
  collect(*exit_, kExit, graphs_.exit, result.gradients);
  const PlanRunner* above = exit_.get();
  for (std::size_t i = blocks_.size(); i-- > 0;) {
    blocks_[i]->set("dy", above->at("dx"));
    blocks_[i]->run(Pass::backward);
    collect(*blocks_[i], static_cast<std::int64_t>(i), graphs_.block, result.gradients);
    above = blocks_[i].get();
  }
  entry_->set("dx", above->at("dx"));
  entry_->run(Pass::backward);
  collect(*entry_, kEntry, graphs_.entry, result.gradients);
  return result;
}

}  // namespace fuseline::training
