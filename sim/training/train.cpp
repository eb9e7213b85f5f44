#include "sim/training/train.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <optional>

#include "base/error.h"
#include "model/policy.h"
#include "sim/executor/memory_need.h"
#include "sim/training/fp64_model.h"
#include "sim/training/plan_model.h"
#include "sim/training/random.h"

namespace fuseline::training {

namespace {

constexpr std::int64_t kTextLength = 60'000;

// Seeds of what must not depend on each other.
enum class Purpose : std::uint8_t { text = 1, batches, weights, nudges };
std::uint64_t seed_for(Purpose purpose, std::uint64_t seed) {
  Random random(seed * 4 + static_cast<std::uint64_t>(purpose));
  return random.next();
}

template <class Real>
using Tamper = std::function<void(const Parameter&, std::vector<Real>&)>;

class Trainer {
 public:
  Trainer(const ModelConfig& config, const Workload& workload,
          const std::vector<std::string>& policies, const Gpu& gpu, const TrainOptions& options)
      : config_(config),
        workload_(workload),
        gpu_(gpu),
        options_(options),
        parameters_(parameters_of(config, training_graphs(config, workload))),
        text_(encode(make_text(seed_for(Purpose::text, options.seed),
                               std::max(kTextLength, 2 * workload.seq)))) {
    policies_.emplace_back("unfused");
    for (const std::string& p : policies)
      if (p != policies_.front()) policies_.push_back(p);
  }

  Training run() {
    Training training;
    for (const Parameter& p : parameters_) training.parameters += p.rows * p.cols;
    const Values<float> start =
        initial_values(parameters_, config_.layers, seed_for(Purpose::weights, options_.seed));
    for (const std::string& policy : policies_) {
      PlanModel model(config_, workload_, policy, gpu_, options_.workers);
      Tamper<float> tamper;
      if (options_.tamper)
        tamper = [&](const Parameter& p, std::vector<float>& g) { options_.tamper(policy, p, g); };
      training.curves.push_back(loop<float>(
          policy, [&](const Batch& b, const Values<float>& w) { return model.step(b, w); }, start,
          tamper));
    }
    Fp64Model reference(config_, workload_, options_.workers);
    const Step<double> step = [&](const Batch& b, const Values<double>& w) {
      return reference.step(b, w);
    };
    training.curves.push_back(loop<double>(kFp64Run, step, widened(start), {}));
    training.curves.push_back(loop<double>(kNudgedRun, step, nudged(start), {}));
    return training;
  }

 private:
  template <class Real>
  Curve loop(const std::string& name, const Step<Real>& step, Values<Real> weights,
             const Tamper<Real>& tamper) {
    const auto began = std::chrono::steady_clock::now();
    Curve curve{name, {}, Seconds()};
    AdamW<Real> optimizer(parameters_, options_.optimizer);
    Batches batches(text_, workload_.batch, workload_.seq,
                    seed_for(Purpose::batches, options_.seed));
    for (std::int64_t i = 0; i < options_.steps; ++i) {
      report(name, i);
      StepResult<Real> result = step(batches.next(), weights);
      if (!std::isfinite(result.loss)) break;
      curve.losses.push_back(result.loss);
      if (tamper)
        for (std::size_t p = 0; p < parameters_.size(); ++p)
          tamper(parameters_[p], result.gradients[p]);
      optimizer.step(result.gradients, weights);
    }
    curve.time =
        Seconds(std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count());
    ++runs_done_;
    return curve;
  }

  static Values<double> widened(const Values<float>& values) {
    Values<double> wide;
    for (const std::vector<float>& v : values) wide.emplace_back(v.begin(), v.end());
    return wide;
  }

  Values<double> nudged(const Values<float>& values) const {
    Random random(seed_for(Purpose::nudges, options_.seed));
    Values<double> near = widened(values);
    const double most = unit_roundoff(workload_.dtype);
    for (std::vector<double>& v : near)
      for (double& e : v) e *= 1.0 + most * (2.0 * random.uniform() - 1.0);
    return near;
  }

  void report(const std::string& run, std::int64_t step) const {
    if (options_.workers.stop != nullptr && options_.workers.stop->load())
      throw executor::Cancelled("stopped");
    if (!options_.progress) return;
    const double part = static_cast<double>(step) / static_cast<double>(options_.steps);
    const double runs = static_cast<double>(policies_.size() + 2);
    options_.progress(run + ": step " + std::to_string(step + 1),
                      (static_cast<double>(runs_done_) + part) / runs);
  }

  const ModelConfig& config_;
  const Workload& workload_;
  const Gpu& gpu_;
  const TrainOptions& options_;
  std::vector<std::string> policies_;
  std::vector<Parameter> parameters_;
  std::vector<std::int32_t> text_;
  int runs_done_ = 0;
};

Bytes in_hbm(const Plan& plan) {
  Bytes sum;
  for (std::size_t i = 0; i < plan.graph.tensors().size(); ++i)
    if (plan.homes[i] == Home::hbm) sum += plan.graph.tensors()[i].bytes();
  return sum;
}

Bytes in_fp64(const Graph& graph) {
  Bytes sum;
  for (const Tensor& t : graph.tensors()) sum += checked_product<Bytes>(t.rows, t.cols, 8);
  return sum;
}

std::string gigabytes(Bytes bytes) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f GB", bytes.as_double() * 1e-9);
  return text;
}

void check_training(const ModelConfig& config, const Workload& workload,
                    const std::vector<std::string>& policies) {
  if (config.blocks.size() != 1 || config.entry.empty() || config.exit.empty())
    throw InputError({.field = "model",
                      .value = config.name,
                      .message = config.blocks.size() != 1
                                     ? "has several kinds of layers, which are not trained yet"
                                     : "has no tokens to train on",
                      .allowed = "a model whose layers are all of one block, with entry and exit"});
  FUSELINE_ASSERT(workload.phase == Phase::train, config.name);
  const std::int64_t characters = static_cast<std::int64_t>(vocabulary().size());
  if (config.V < characters)
    throw InputError({.field = "V",
                      .value = std::to_string(config.V),
                      .message = "the model's vocabulary is smaller than the text's",
                      .allowed = "at least " + std::to_string(characters)});
  const Bytes need = training_need(config, workload, policies);
  const Bytes left = executor::available_memory();
  if (need > left)
    throw InputError({.file = "command line",
                      .field = "--model",
                      .value = config.name,
                      .message = "needs " + gigabytes(need) +
                                 " of memory to train, more than the " + gigabytes(left) +
                                 " that are left",
                      .allowed = "a smaller model, fewer tokens (--seq, --batch)"});
}

}  // namespace

Bytes training_need(const ModelConfig& config, const Workload& workload,
                    const std::vector<std::string>& policies) {
  const ModelGraphs graphs = training_graphs(config, workload);
  const auto model = [&](Bytes entry, Bytes block, Bytes exit) {
    return entry + block * config.layers + exit;
  };
  Bytes largest = model(in_fp64(graphs.entry), in_fp64(graphs.block), in_fp64(graphs.exit));
  std::vector<std::string> all = policies;
  all.emplace_back("unfused");
  for (const std::string& policy : all)
    largest = std::max(largest, model(in_hbm(make_plan(policy, graphs.entry)),
                                      in_hbm(make_plan(policy, graphs.block)),
                                      in_hbm(make_plan(policy, graphs.exit))));
  std::int64_t weights = 0;
  for (const Parameter& p : parameters_of(config, graphs)) weights += p.rows * p.cols;
  // Start in fp32 and fp64, the run's own weights, two moments and gradients in fp64.
  return largest + checked_product<Bytes>(weights, 4 + 5 * 8);
}

Training train(const ModelConfig& config, const Workload& workload,
               const std::vector<std::string>& policies, const Gpu& gpu,
               const TrainOptions& options) {
  FUSELINE_ASSERT(options.steps >= 1, "no steps");
  check_training(config, workload, policies);
  return Trainer(config, workload, policies, gpu, options).run();
}

std::string curves_csv(const Training& training) {
  std::string csv = "step";
  std::size_t steps = 0;
  for (const Curve& c : training.curves) {
    csv += "," + c.name;
    steps = std::max(steps, c.losses.size());
  }
  csv += "\n";
  for (std::size_t i = 0; i < steps; ++i) {
    csv += std::to_string(i + 1);
    for (const Curve& c : training.curves) {
      char number[32] = "";
      if (i < c.losses.size()) std::snprintf(number, sizeof number, "%.6f", c.losses[i]);
      csv += std::string(",") + number;
    }
    csv += "\n";
  }
  return csv;
}

}  // namespace fuseline::training
