#include "sim/training/fp64_model.h"

#include <algorithm>

#include "base/error.h"
#include "model/operators/operator_table.h"
#include "model/operators/support/view.h"
#include "sim/executor/blas.h"

namespace fuseline::training {

namespace {

constexpr std::int64_t kColumns = 64;  // of a product that one task computes

std::vector<double>& tensor(const Graph& graph, TensorValues& values, const std::string& name) {
  const auto id = graph.find_tensor(name);
  FUSELINE_ASSERT(id.has_value(), name);
  return values.writable(*id);
}

void multiply(const Graph& graph, const Op& op, const executor::Workers& workers,
              TensorValues& values) {
  const GemmShape s = gemm_shape(op);
  values.writable(op.writes[0].tensor);
  const auto a = reference::read(graph, values, op.reads[0]);
  const auto b = reference::read(graph, values, op.reads[1]);
  const auto y = reference::write(graph, values, op.writes[0]);
  FUSELINE_ASSERT(a.is_matrix() && b.is_matrix() && y.is_matrix(), op.name);
  const double operations = checked_product<Flops>(2, s.M, s.N, s.K).as_double();
  executor::parallel_for(
      workers, {ceil_div(s.N, kColumns), operations}, [&](std::int64_t block, int) {
        const std::int64_t first = block * kColumns;
        const double* panel = s.b_is_kn ? b.data + first : b.data + first * b.stride;
        executor::multiply({a.data, a.stride, s.a_is_km}, {panel, b.stride, s.b_is_kn}, s.M,
                           std::min(kColumns, s.N - first), s.K, 0.0, y.data + first, y.stride);
      });
}

}  // namespace

Fp64Model::Fp64Model(const ModelConfig& config, const Workload& workload,
                     const executor::Workers& workers)
    : graphs_(training_graphs(config, workload)),
      parameters_(parameters_of(config, graphs_)),
      workers_(workers),
      entry_(graphs_.entry),
      exit_(graphs_.exit) {
  executor::use_blas_threads(1);
  const NamedTensors tables = random_inputs(graphs_.block, 0);
  for (std::int64_t layer = 0; layer < config.layers; ++layer) {
    TensorValues& values = blocks_.emplace_back(graphs_.block);
    for (const Tensor& t : graphs_.block.tensors())
      if (t.role == Role::table) tensor(graphs_.block, values, t.name) = tables.at(t.name);
  }
}

void Fp64Model::set_weights(const Graph& graph, std::int64_t layer, const Values<double>& weights,
                            TensorValues& values) const {
  for (const Tensor& t : graph.tensors())
    if (t.role == Role::weight)
      tensor(graph, values, t.name) = weights[parameter_of(parameters_, layer, t.name)];
}

void Fp64Model::run(const Graph& graph, Pass pass, TensorValues& values) const {
  for (const Op& op : graph.ops()) {
    if (op.pass != pass) continue;
    if (workers_.stop != nullptr && workers_.stop->load())
      throw executor::Cancelled("stopped in the fp64 run");
    if (is_gemm(op) && !is_ragged(op))
      multiply(graph, op, workers_, values);
    else
      op.kind->reference(graph, op, values, values);
  }
}

void Fp64Model::collect(const Graph& graph, std::int64_t layer, const TensorValues& values,
                        Values<double>& gradients) const {
  for (const Tensor& t : graph.tensors()) {
    if (t.role != Role::weight) continue;
    const std::vector<double>& g = values.at("d" + t.name);
    std::vector<double>& sum = gradients[parameter_of(parameters_, layer, t.name)];
    for (std::size_t i = 0; i < g.size(); ++i) sum[i] += g[i];
  }
}

StepResult<double> Fp64Model::step(const Batch& batch, const Values<double>& weights) {
  StepResult<double> result;
  for (const Parameter& p : parameters_) result.gradients.emplace_back(p.count());
  const std::int64_t layers = static_cast<std::int64_t>(blocks_.size());

  set_weights(graphs_.entry, kEntry, weights, entry_);
  tensor(graphs_.entry, entry_, "ids").assign(batch.ids.begin(), batch.ids.end());
  run(graphs_.entry, Pass::forward, entry_);
  const std::vector<double>* x = &entry_.at("x");
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    TensorValues& block = blocks_[static_cast<std::size_t>(layer)];
    set_weights(graphs_.block, layer, weights, block);
    tensor(graphs_.block, block, "x") = *x;
    run(graphs_.block, Pass::forward, block);
    x = &block.at("y");
  }
  set_weights(graphs_.exit, kExit, weights, exit_);
  tensor(graphs_.exit, exit_, "x") = *x;
  tensor(graphs_.exit, exit_, "targets").assign(batch.targets.begin(), batch.targets.end());
  run(graphs_.exit, Pass::forward, exit_);
  const std::vector<double>& losses = exit_.at("loss");
  const double tokens = static_cast<double>(losses.size());
  for (const double loss : losses) result.loss += loss / tokens;

  tensor(graphs_.exit, exit_, "dloss").assign(losses.size(), 1.0 / tokens);
  run(graphs_.exit, Pass::backward, exit_);
  collect(graphs_.exit, kExit, exit_, result.gradients);
  const std::vector<double>* dy = &exit_.at("dx");
  for (std::int64_t layer = layers; layer-- > 0;) {
    TensorValues& block = blocks_[static_cast<std::size_t>(layer)];
    tensor(graphs_.block, block, "dy") = *dy;
    run(graphs_.block, Pass::backward, block);
    collect(graphs_.block, layer, block, result.gradients);
    dy = &block.at("dx");
  }
  tensor(graphs_.entry, entry_, "dx") = *dy;
  run(graphs_.entry, Pass::backward, entry_);
  collect(graphs_.entry, kEntry, entry_, result.gradients);
  return result;
}

}  // namespace fuseline::training
