#include "sim/executor/comparison.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numbers>
#include <optional>
#include <set>
#include <vector>

#include "base/error.h"
#include "model/operators/all_operators.h"
#include "model/operators/operator_table.h"

namespace fuseline::executor {

namespace {

// Columns of a tensor that a plan stores, and the kernel that stores the first of them.
struct StoredTensor {
  TensorId id;
  std::string kernel;
  std::int64_t col_begin = 0;
  std::int64_t col_end = 0;
};

std::vector<StoredTensor> stored_tensors(const Plan& plan) {
  std::vector<StoredTensor> found;
  for (const Kernel& kernel : plan.kernels) {
    for (const Program& program : kernel.phases) {
      for (const Operand& to : stores(program)) {
        const auto known = std::find_if(found.begin(), found.end(),
                                        [&](const StoredTensor& s) { return s.id == to.tensor; });
        if (known == found.end()) {
          found.push_back({to.tensor, program.name, to.col_begin, to.col_begin + to.cols});
        } else {
          known->col_begin = std::min(known->col_begin, to.col_begin);
          known->col_end = std::max(known->col_end, to.col_begin + to.cols);
        }
      }
    }
  }
  return found;
}

std::string text(double value) {
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, "%.2e", value);
  return buffer;
}

std::string ratio_text(double value) {
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, "%.2f", value);
  return buffer;
}

double ratio(double error, double unfused) {
  if (unfused > 0) return error / unfused;
  return error > 0 ? HUGE_VAL : 1.0;
}

// What the plan's own output should be: its operator in fp64, on the block's values.
std::optional<std::vector<double>> computed(const Plan& plan, TensorId id,
                                            const TensorValues& reference, const Graph& block,
                                            const Inputs& inputs) {
  const std::vector<OpId> producers = plan.graph.producers(id);
  if (producers.size() != 1) return std::nullopt;
  const Op& op = plan.graph.op(producers[0]);
  TensorValues values(plan.graph);
  for (const Operand& o : op.reads) {
    const std::string& name = plan.graph.tensor(o.tensor).name;
    const auto known = block.find_tensor(name);
    const auto given = inputs.find(name);
    if (known && reference.has(*known)) {
      values.writable(o.tensor) = reference.at(*known);
    } else if (given != inputs.end()) {
      values.writable(o.tensor) = to_doubles(*given->second);
    } else {
      return std::nullopt;
    }
  }
  op.kind->reference(plan.graph, op, values, values);
  return values.at(id);
}

// Products of queries and keys before a mask: where no query sees the key, a kernel leaves what it
// likes and the reference zeros. What is made of them, behind the mask, is compared.
bool holds_hidden_pairs(const Graph& block, TensorId id) {
  return std::ranges::any_of(block.producers(id), [&](OpId producer) {
    const Op& op = block.op(producer);
    if (op.kind != operators::attention_scores && op.kind != operators::attention_d_probs)
      return false;
    const auto& a = op.attributes.as<AttentionShape>();
    return visible_pairs(a) < a.q_tokens * a.kv_tokens;
  });
}

// The block's tensor of this name and shape, if the plan's is the same quantity: a split norm's
// result keeps its name but not its row scale. Whoever else reads what the norm reads has not
// normalised it.
std::optional<TensorId> counterpart(const Plan& plan, TensorId id, const Graph& block) {
  const Tensor& t = plan.graph.tensor(id);
  const auto same = block.find_tensor(t.name);
  if (!same || block.tensor(*same).rows != t.rows || block.tensor(*same).cols != t.cols)
    return std::nullopt;
  const std::vector<OpId> theirs = block.producers(*same);
  if (theirs.empty() || !is_norm(block.op(theirs[0])) ||
      block.op(theirs[0]).writes[0].tensor != *same)
    return same;
  const std::string& normalised = block.tensor(block.op(theirs[0]).reads[0].tensor).name;
  for (const OpId producer : plan.graph.producers(id)) {
    const Op& op = plan.graph.op(producer);
    if (!is_norm(op) && plan.graph.tensor(op.reads[0].tensor).name == normalised)
      return std::nullopt;
  }
  return same;
}

}  // namespace

// The ratio of two errors that n numbers each decide has a relative spread of about 1/√n: chance
// alone reaches 2 when n is small.
double worst_ratio(double numbers) {
  constexpr double kFew = 64;
  return numbers >= kFew ? kWorstRatio : kWorstRatio * (1 + 2 / std::sqrt(numbers));
}

// What rounding to codes on the way may add to a tensor's error. A number that lies nearer to the
// middle between two codes than its own error e becomes the neighbouring code: of all numbers a
// share of about e/u_code, which are then off by a step of 2·u_code. Together a relative L2 error
// of 2·sqrt(e·u_code). Keys and values, which meet in one attention, are rounded to the workload's
// type before: e is its roundoff u. Codes of one product's operand make the next one's, whose e is
// what has come together so far.
double code_slack(const Graph& block) {
  double cache = 0;
  double chain = 0;
  for (const Op& op : block.ops()) {
    const Dtype stored = block.tensor(op.writes[0].tensor).dtype;
    if (size_of(stored).bits() > 8) continue;
    const double u = unit_roundoff(block.tensor(op.reads[0].tensor).dtype);
    if (op.kind->appends)
      cache = std::max(cache, 2 * std::sqrt(u * unit_roundoff(stored)));
    else
      chain = std::hypot(chain, 2 * std::sqrt(std::max(u, chain) * row_code_roundoff(stored)));
  }
  return std::hypot(cache, chain);
}

// The operators that a tensor of the block is made by, in no order.
std::set<OpId> made_by(const Graph& block, TensorId id) {
  std::set<OpId> found;
  std::vector<TensorId> open{id};
  while (!open.empty()) {
    const TensorId next = open.back();
    open.pop_back();
    for (const OpId producer : block.producers(next))
      if (found.insert(producer).second)
        for (const Operand& o : block.op(producer).reads) open.push_back(o.tensor);
  }
  return found;
}

// What a jump on the way may add to a tensor's error. A number whose relative error is e has the
// wrong sign with a probability of e/π, and what the jump makes of it is then off by all of it;
// half of the results are zero, so that their relative L2 error is sqrt(2e/π). Roundings before
// the jump are independent of each other: e is the root of the sum of their squares.
double jump_slack(const Graph& block, TensorId id) {
  double slack = 0;
  for (const OpId at : made_by(block, id)) {
    const Op& op = block.op(at);
    if (op.kind->jump_read < 0) continue;
    double e = 0;
    for (const OpId before :
         made_by(block, op.reads[static_cast<std::size_t>(op.kind->jump_read)].tensor))
      e = std::hypot(e, tolerance(block, block.op(before)));
    slack = std::hypot(slack, std::sqrt(2 * e / std::numbers::pi));
  }
  return slack;
}

double Comparison::tolerance_of_block() const {
  double sum = 0;
  for (const Op& op : block_.ops()) sum += tolerance(block_, op);
  return sum;
}

Baseline Comparison::baseline(const Plan& unfused, const Memory& memory) const {
  Baseline result;
  for (const StoredTensor& s : stored_tensors(unfused)) {
    const Tensor& t = unfused.graph.tensor(s.id);
    const auto id = block_.find_tensor(t.name);
    if (!id || !reference_.has(*id) || holds_hidden_pairs(block_, *id)) continue;
    const TensorError error =
        compare(memory.at(s.id), reference_.at(*id), s.col_begin, s.col_end - s.col_begin);
    if (!error.nothing_wanted) result.errors[t.name] = error;
  }
  return result;
}

void Comparison::decide(ComparedTensor& t, bool unfused_plan) const {
  if (t.error.not_finite) {
    t.problem = "not finite at [" + std::to_string(t.error.not_finite->first) + ", " +
                std::to_string(t.error.not_finite->second) + "]";
    return;
  }
  if (t.error.all_equal) {
    t.problem = "all elements are equal";
    return;
  }
  // A plan is judged by the unfused one, which therefore has to be right itself.
  const double judge = unfused_plan ? t.error.relative_l2 : t.unfused.relative_l2;
  const double allowed = tolerance_of_block() + code_slack(block_) + t.jump_slack;
  if (judge > allowed) {
    t.problem = std::string(unfused_plan ? "" : "of the unfused plan: ") + "relative L2 error " +
                text(judge) + " exceeds " + text(allowed) +
                ", the sum of the operators' tolerances";
    return;
  }
  const double limit = worst_ratio(t.error.numbers);
  const auto exceeds = [&](double error, double unfused) {
    return error >= limit * unfused + t.slack + t.jump_slack && error > unfused;
  };
  const bool whole = exceeds(t.error.relative_l2, t.unfused.relative_l2);
  if (!whole && !exceeds(t.error.worst_tile, t.unfused.worst_tile)) return;
  t.problem =
      "error is " + ratio_text(t.ratio) + " times the unfused one" + (whole ? "" : " in one tile");
}

std::vector<ComparedTensor> Comparison::judge(const Plan& plan, const Memory& memory,
                                              const Inputs& inputs,
                                              const Baseline& baseline) const {
  std::vector<ComparedTensor> result;
  const std::map<TensorId, TensorOrder> orders = tensor_orders(plan);
  for (const StoredTensor& s : stored_tensors(plan)) {
    const Tensor& t = plan.graph.tensor(s.id);
    ComparedTensor compared;
    compared.name = t.name;
    compared.kernel = s.kernel;
    compared.output = t.role == Role::output || t.role == Role::cache;
    const auto id = counterpart(plan, s.id, block_);
    const std::int64_t cols = s.col_end - s.col_begin;
    std::string judged_by = t.name;
    if (!memory.has(s.id) || (id && holds_hidden_pairs(block_, *id))) continue;
    if (id && reference_.has(*id)) {
      const auto order = orders.find(s.id);
      compared.error = compare(memory.at(s.id), reference_.at(*id), s.col_begin, cols,
                               order == orders.end() ? TensorOrder{} : order->second);
    } else if (compared.output) {
      const auto want = computed(plan, s.id, reference_, block_, inputs);
      if (!want) continue;
      compared.error = compare(memory.at(s.id), *want, s.col_begin, cols);
      judged_by =
          plan.graph.tensor(plan.graph.op(plan.graph.producers(s.id)[0]).reads[0].tensor).name;
      compared.unfused_of = judged_by;
    } else {
      continue;
    }
    // Not there: the unfused plan does not store it, or it is zero (a single token's dQ and dK).
    const auto unfused = baseline.errors.find(judged_by);
    if (unfused == baseline.errors.end()) continue;
    compared.unfused = unfused->second;
    compared.ratio = std::max(ratio(compared.error.relative_l2, compared.unfused.relative_l2),
                              ratio(compared.error.worst_tile, compared.unfused.worst_tile));
    if (!compared.output || !compared.unfused_of.empty()) {
      const std::vector<OpId> producers = plan.graph.producers(s.id);
      for (const OpId op : producers)
        compared.slack = std::max(compared.slack, tolerance(plan.graph, plan.graph.op(op)));
    }
    compared.slack = std::max(compared.slack, code_slack(block_));
    if (id) compared.jump_slack = jump_slack(block_, *id);
    decide(compared, plan.policy == "unfused");
    result.push_back(std::move(compared));
  }
  return result;
}

}  // namespace fuseline::executor
