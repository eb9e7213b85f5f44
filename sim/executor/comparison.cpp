#include "sim/executor/comparison.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <optional>

#include "model/error.h"
#include "model/operators.h"

namespace fuseline::executor {

namespace {

// Columns of a tensor that a plan stores, and the kernel that stores the first of them.
struct StoredTensor {
  TensorId id;
  std::string kernel;
  std::int64_t col_begin = 0;
  std::int64_t col_end = 0;
  bool reordered = false;  // columns of an interleaved weight's product
};

bool overlaps_interleaving(const Plan& plan, const Program& program, const Operand& to) {
  const auto* gemm = std::get_if<GemmMainloop>(&program.mainloop);
  if (gemm == nullptr || !gemm->interleaved || plan.graph.tensor(to.tensor).cols != gemm->N)
    return false;
  const std::string& weight = plan.graph.tensor(gemm->b.tensor).name;
  return std::any_of(plan.preparation.interleavings.begin(), plan.preparation.interleavings.end(),
                     [&](const Interleaving& i) {
                       return i.tensor == weight && !i.columns &&
                              i.begin < to.col_begin + to.cols && to.col_begin < i.begin + i.count;
                     });
}

std::vector<StoredTensor> stored_tensors(const Plan& plan) {
  std::vector<StoredTensor> found;
  for (const Kernel& kernel : plan.kernels) {
    for (const Program& program : kernel.phases) {
      for (const Operand& to : stores(program)) {
        const auto known = std::find_if(found.begin(), found.end(),
                                        [&](const StoredTensor& s) { return s.id == to.tensor; });
        const bool reordered = overlaps_interleaving(plan, program, to);
        if (known == found.end()) {
          found.push_back(
              {to.tensor, program.name, to.col_begin, to.col_begin + to.cols, reordered});
        } else {
          known->col_begin = std::min(known->col_begin, to.col_begin);
          known->col_end = std::max(known->col_end, to.col_begin + to.cols);
          known->reordered = known->reordered || reordered;
        }
      }
    }
  }
  return found;
}

// The reference with its columns where the plan has them (prepare.h).
std::vector<double> as_planned(const Plan& plan, const Tensor& t,
                               const std::vector<double>& values) {
  std::vector<double> result = values;
  for (const Interleaving& how : plan.preparation.interleavings) {
    if (how.tensor != t.name || !how.columns) continue;
    for (std::int64_t i = 0; i < how.count; ++i) {
      const std::int64_t j = i % how.group;
      const std::int64_t place = j < how.group / 2 ? 2 * j : 2 * (j - how.group / 2) + 1;
      const std::int64_t to = how.begin + i - j + place;
      for (std::int64_t r = 0; r < t.rows; ++r)
        result[static_cast<std::size_t>(r * t.cols + to)] =
            values[static_cast<std::size_t>(r * t.cols + how.begin + i)];
    }
  }
  return result;
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
  operator_info(op.kind).reference(plan.graph, op, values, values);
  return values.at(id);
}

bool same_shape(const Tensor& a, const Tensor& b) { return a.rows == b.rows && a.cols == b.cols; }

}  // namespace

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
    if (!id || !reference_.has(*id)) continue;
    result.errors[t.name] =
        compare(memory.at(s.id), reference_.at(*id), s.col_begin, s.col_end - s.col_begin);
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
  if (unfused_plan && t.error.relative_l2 > tolerance_of_block()) {
    t.problem = "relative L2 error " + text(t.error.relative_l2) + " exceeds " +
                text(tolerance_of_block()) + ", the sum of the operators' tolerances";
    return;
  }
  const auto exceeds = [&](double error, double unfused) {
    return error >= kWorstRatio * unfused + t.slack && error > unfused;
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
  for (const StoredTensor& s : stored_tensors(plan)) {
    const Tensor& t = plan.graph.tensor(s.id);
    ComparedTensor compared;
    compared.name = t.name;
    compared.kernel = s.kernel;
    compared.output = t.role == Role::output || t.role == Role::cache;
    const auto id = block_.find_tensor(t.name);
    const std::int64_t cols = s.col_end - s.col_begin;
    std::string judged_by = t.name;
    if (id && reference_.has(*id) && same_shape(block_.tensor(*id), t) && !s.reordered) {
      compared.error =
          compare(memory.at(s.id), as_planned(plan, t, reference_.at(*id)), s.col_begin, cols);
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
    decide(compared, plan.policy == "unfused");
    result.push_back(std::move(compared));
  }
  return result;
}

}  // namespace fuseline::executor
