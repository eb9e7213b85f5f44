#include "sim/judge/validation.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <utility>

#include "model/policy.h"
#include "sim/sure/estimate_bands.h"

namespace fuseline {

namespace {

// The accuracy goals on the shipped measurements, as fractions.
constexpr double kBlockTimeTarget = 0.10;
constexpr double kBlockTimeWorstTarget = 0.25;
constexpr double kGemmTimeTarget = 0.10;
constexpr double kBlockHbmTarget = 0.12;
constexpr double kTrainBlockHbmTarget = 0.15;
constexpr double kGemmKernelHbmTarget = 0.20;
// Thinner GEMMs are decode's, whose time is judged within the blocks.
constexpr std::int64_t kGemmLeastRows = 128;
// Shorter kernels are little more than their launch.
constexpr double kLeastShareOfBlock = 0.01;

double magnitude(const Amount& amount) {
  return std::visit(
      [](auto value) {
        if constexpr (std::is_same_v<decltype(value), Bytes>) {
          return value.as_double();
        } else {
          return value.value();
        }
      },
      amount);
}

std::vector<KernelKind> kinds(const MeasuredTrace& trace) {
  std::vector<KernelKind> out;
  for (const MeasuredKernel& k : trace.kernels) out.push_back(k.kind());
  return out;
}

std::vector<KernelKind> kinds(const PlanEstimate& estimate) {
  std::vector<KernelKind> out;
  for (const KernelEstimate& k : estimate.kernels) out.push_back(k.kind);
  return out;
}

bool is_policy(const std::string& name) {
  const std::vector<PolicyInfo> all = policies();
  return std::any_of(all.begin(), all.end(), [&](const PolicyInfo& p) { return p.name == name; });
}

bool in_scope(const BlockCase& block, Scope scope) {
  return (block.workload.phase == Phase::train) == (scope == Scope::training);
}

// Every predictor's estimate of a case, each computed once however often it is asked for.
class Estimates {
 public:
  explicit Estimates(std::span<const Predictor> predictors) : predictors_(predictors) {}

  const std::vector<std::optional<PlanEstimate>>& of(const BlockCase& block) {
    const auto [entry, is_new] = cache_.try_emplace(block.label());
    if (is_new) {
      for (const Predictor& p : predictors_) entry->second.push_back(predict(p, block));
    }
    return entry->second;
  }

 private:
  static std::optional<PlanEstimate> predict(const Predictor& p, const BlockCase& block) {
    if (!p.block) return std::nullopt;
    try {
      return p.block(block);
    } catch (const Unpredicted&) {
      return std::nullopt;
    }
  }

  std::span<const Predictor> predictors_;
  std::map<std::string, std::vector<std::optional<PlanEstimate>>> cache_;
};

std::optional<KernelEstimate> predicted_gemm(const Predictor& p, const MeasuredGemm& gemm) {
  if (!p.gemm) return std::nullopt;
  try {
    return p.gemm(gemm);
  } catch (const Unpredicted&) {
    return std::nullopt;
  }
}

// Tells how far the judging is, case by case.
class Counter {
 public:
  Counter(const JudgeProgress& progress, std::size_t count) : progress_(progress), count_(count) {}
  void next() {
    if (progress_) progress_(done_, count_);
    ++done_;
  }

 private:
  const JudgeProgress& progress_;
  std::size_t count_;
  std::size_t done_ = 0;
};

void judge_blocks(const Measurements& measurements, Estimates& estimates, Scope scope,
                  Counter& counter, ErrorTable& table) {
  std::map<std::string, int> left_out;
  for (const MeasuredBlock& m : measurements.blocks) {
    counter.next();
    if (!in_scope(m.block, scope)) {
      ++left_out[scope == Scope::inference ? "phase train (--phase train judges them)"
                                           : "phases forward and decode"];
      continue;
    }
    if (!is_policy(m.block.execution)) {
      ++left_out["execution " + m.block.execution + " (no policy of that name)"];
      continue;
    }
    JudgedCase judged{.quantity = Quantity::block_time,
                      .label = m.block.label(),
                      .block = m.block,
                      .measured = m.time.median,
                      .predicted = {}};
    const Phase phase = m.block.workload.phase;
    for (const auto& estimate : estimates.of(m.block)) {
      judged.predicted.push_back(estimate ? std::optional<Amount>(estimate->time) : std::nullopt);
      judged.works.push_back(estimate ? std::optional(time_class(*estimate, phase)) : std::nullopt);
      judged.kernels.push_back(estimate ? outlines_of(*estimate) : std::vector<KernelOutline>());
    }
    table.cases.push_back(std::move(judged));
  }
  for (const auto& [why, count] : left_out) {
    table.not_judged.push_back(std::to_string(count) + (count == 1 ? " block: " : " blocks: ") +
                               why);
  }
}

// What is judged of a kernel of a trace, if anything.
struct JudgedKernel {
  std::optional<JudgedCase> time, hbm;
};

std::map<std::size_t, JudgedKernel> judged_kernels(const MeasuredTrace& trace,
                                                   std::size_t predictors) {
  Seconds whole;
  for (const MeasuredKernel& k : trace.kernels) whole += k.duration();
  std::map<std::size_t, JudgedKernel> kernels;  // by their index
  for (std::size_t i = 0; i < trace.kernels.size(); ++i) {
    const MeasuredKernel& k = trace.kernels[i];
    JudgedCase judged{.label = trace.block.label() + " kernel " + std::to_string(i),
                      .block = trace.block,
                      .measured = {},
                      .predicted = std::vector<std::optional<Amount>>(predictors),
                      .works = std::vector<std::optional<WorkClass>>(predictors)};
    if (k.time_in_graph && *k.time_in_graph >= whole * kLeastShareOfBlock) {
      judged.quantity = Quantity::kernel_time;
      judged.measured = *k.time_in_graph;
      kernels[i].time = judged;
    }
    if (k.kind() == KernelKind::gemm && k.hbm_read + k.hbm_write > Bytes(0)) {
      judged.quantity = Quantity::gemm_kernel_hbm;
      judged.measured = k.hbm_read + k.hbm_write;
      kernels[i].hbm = judged;
    }
  }
  return kernels;
}

// HBM bytes of the block, time of its kernels, and HBM bytes of each GEMM kernel in it.
void judge_traces(const Measurements& measurements, Estimates& estimates, Scope scope,
                  Counter& counter, ErrorTable& table) {
  for (const MeasuredTrace& trace : measurements.traces) {
    counter.next();
    if (!in_scope(trace.block, scope) || !is_policy(trace.block.execution)) continue;
    const auto& predictions = estimates.of(trace.block);
    const Phase phase = trace.block.workload.phase;
    const std::string maker = maker_of(trace.block.execution);
    JudgedCase whole{.quantity = Quantity::block_hbm,
                     .label = trace.block.label(),
                     .block = trace.block,
                     .measured = trace.hbm_read() + trace.hbm_write(),
                     .predicted = {}};
    std::map<std::size_t, JudgedKernel> kernels = judged_kernels(trace, predictions.size());
    const std::vector<KernelKind> measured_kinds = kinds(trace);
    for (std::size_t p = 0; p < predictions.size(); ++p) {
      if (!predictions[p]) {
        whole.predicted.emplace_back();
        whole.works.emplace_back();
        continue;
      }
      const PlanEstimate& estimate = *predictions[p];
      whole.predicted.emplace_back(estimate.hbm_read + estimate.hbm_write);
      whole.works.emplace_back(hbm_class(estimate, phase));
      for (const KernelPair& pair : align_kernels(measured_kinds, kinds(estimate))) {
        const auto judged = kernels.find(pair.measured);
        if (judged == kernels.end()) continue;
        const KernelEstimate& kernel = estimate.kernels[pair.predicted];
        const std::string label = trace.block.label() + " " + kernel.name;
        if (auto& time = judged->second.time) {
          time->predicted[p] = kernel.time;
          time->works[p] = time_class(kernel, phase, maker);
          time->label = label;
        }
        if (auto& hbm = judged->second.hbm) {
          hbm->predicted[p] = kernel.hbm_read + kernel.hbm_write;
          hbm->works[p] = hbm_class(kernel, phase, maker);
          hbm->label = label;
        }
      }
    }
    // A trace without counters says nothing of bytes.
    if (std::get<Bytes>(whole.measured) > Bytes(0)) table.cases.push_back(std::move(whole));
    for (auto& [index, judged] : kernels) {
      if (judged.time) table.cases.push_back(std::move(*judged.time));
      if (judged.hbm) table.cases.push_back(std::move(*judged.hbm));
    }
  }
}

void judge_gemms(const Measurements& measurements, std::span<const Predictor> predictors,
                 Counter& counter, ErrorTable& table) {
  std::size_t thin = 0;
  for (const MeasuredGemm& gemm : measurements.gemms) {
    counter.next();
    if (gemm.m < kGemmLeastRows) {
      ++thin;
      continue;
    }
    JudgedCase judged{.quantity = Quantity::gemm_time,
                      .label = "gemm " + std::to_string(gemm.m) + " x " + std::to_string(gemm.n) +
                               " x " + std::to_string(gemm.k),
                      .block = {},
                      .measured = gemm.time.median,
                      .predicted = {}};
    for (const Predictor& p : predictors) {
      const auto estimate = predicted_gemm(p, gemm);
      judged.predicted.push_back(estimate ? std::optional<Amount>(estimate->time) : std::nullopt);
      judged.works.push_back(estimate
                                 ? std::optional(time_class(*estimate, Phase::forward, "library"))
                                 : std::nullopt);
    }
    table.cases.push_back(std::move(judged));
  }
  if (thin > 0) {
    table.not_judged.push_back(std::to_string(thin) + " GEMMs: fewer than " +
                               std::to_string(kGemmLeastRows) + " rows");
  }
}

void leave_out_unpredicted(ErrorTable& table) {
  const std::size_t left_out = std::erase_if(table.cases, [](const JudgedCase& c) {
    return std::none_of(c.predicted.begin(), c.predicted.end(),
                        [](const std::optional<Amount>& p) { return p.has_value(); });
  });
  if (left_out > 0)
    table.not_judged.push_back(std::to_string(left_out) +
                               (left_out == 1 ? " case: not predicted" : " cases: not predicted"));
}

using CaseFilter = std::function<bool(const JudgedCase&)>;

// Adds the row unless nobody predicted a case of its kind.
void add_row(ErrorTable& table, ErrorRow row, const CaseFilter& keep) {
  bool any = false;
  for (std::size_t p = 0; p < table.predictors.size(); ++p) {
    std::vector<double> errors;
    for (const JudgedCase& c : table.cases) {
      if (c.quantity != row.quantity || !keep(c)) continue;
      if (const auto error = c.error(p)) errors.push_back(*error);
    }
    any = any || !errors.empty();
    row.by_predictor.push_back(error_stats(errors));
  }
  if (any) table.rows.push_back(std::move(row));
}

ErrorRow make_row(std::string what, Quantity quantity, std::optional<double> target = {}) {
  return {.what = std::move(what),
          .quantity = quantity,
          .is_worst_case = false,
          .by_predictor = {},
          .target = target};
}

void add_rows(ErrorTable& table, Scope scope) {
  const CaseFilter all = [](const JudgedCase&) { return true; };
  add_row(table, make_row("block time", Quantity::block_time, kBlockTimeTarget), all);
  ErrorRow worst = make_row("block time, worst case", Quantity::block_time, kBlockTimeWorstTarget);
  worst.is_worst_case = true;
  add_row(table, std::move(worst), all);

  std::vector<std::string> executions, models;
  for (const JudgedCase& c : table.cases) {
    if (c.quantity != Quantity::block_time) continue;
    const auto note = [](std::vector<std::string>& seen, const std::string& name) {
      if (std::find(seen.begin(), seen.end(), name) == seen.end()) seen.push_back(name);
    };
    note(executions, c.block.execution);
    note(models, c.block.model);
  }
  for (const std::string& name : executions) {
    add_row(table, make_row("  " + name, Quantity::block_time),
            [&](const JudgedCase& c) { return c.block.execution == name; });
  }
  for (const Phase phase : {Phase::forward, Phase::decode}) {
    if (scope == Scope::training) break;
    add_row(table, make_row(std::string("  ") + name_of(phase), Quantity::block_time),
            [&](const JudgedCase& c) { return c.block.workload.phase == phase; });
  }
  for (const std::string& name : models) {
    add_row(table, make_row("  " + name, Quantity::block_time),
            [&](const JudgedCase& c) { return c.block.model == name; });
  }
  add_row(table, make_row("kernel time, >= 1 % of block", Quantity::kernel_time), all);
  for (const std::string& name : executions) {
    add_row(table, make_row("  " + name, Quantity::kernel_time),
            [&](const JudgedCase& c) { return c.block.execution == name; });
  }
  add_row(table, make_row("GEMM time, m >= 128", Quantity::gemm_time, kGemmTimeTarget), all);
  add_row(table,
          make_row("HBM bytes per block", Quantity::block_hbm,
                   scope == Scope::training ? kTrainBlockHbmTarget : kBlockHbmTarget),
          all);
  add_row(table,
          make_row("HBM bytes per GEMM kernel", Quantity::gemm_kernel_hbm, kGemmKernelHbmTarget),
          all);
}

}  // namespace

std::optional<double> JudgedCase::error(std::size_t predictor) const {
  if (predictor >= predicted.size() || !predicted[predictor]) return std::nullopt;
  const double truth = magnitude(measured);
  return (magnitude(*predicted[predictor]) - truth) / truth;
}

bool ErrorRow::meets_target(std::size_t predictor) const {
  if (!target || by_predictor[predictor].cases == 0) return true;
  const ErrorStats& s = by_predictor[predictor];
  return (is_worst_case ? std::abs(s.worst) : s.mape) <= *target;
}

ErrorStats error_stats(std::span<const double> errors) {
  ErrorStats stats;
  stats.cases = errors.size();
  if (errors.empty()) return stats;
  for (const double e : errors) {
    stats.mape += std::abs(e);
    stats.bias += e;
    if (std::abs(e) > std::abs(stats.worst)) stats.worst = e;
  }
  stats.mape /= static_cast<double>(errors.size());
  stats.bias /= static_cast<double>(errors.size());
  return stats;
}

ErrorTable validate(const Measurements& measurements, std::span<const Predictor> predictors,
                    Scope scope, const JudgeProgress& progress) {
  Counter counter(progress, measurements.blocks.size() + measurements.gemms.size() +
                                measurements.traces.size());
  ErrorTable table;
  for (const Predictor& p : predictors) table.predictors.push_back(p.name);
  Estimates estimates(predictors);
  judge_blocks(measurements, estimates, scope, counter, table);
  judge_gemms(measurements, predictors, counter, table);
  judge_traces(measurements, estimates, scope, counter, table);
  leave_out_unpredicted(table);
  add_rows(table, scope);
  return table;
}

std::vector<JudgedCase> worst_cases(const ErrorTable& table, Quantity quantity,
                                    std::size_t predictor, std::size_t count) {
  std::vector<JudgedCase> out;
  for (const JudgedCase& c : table.cases) {
    if (c.quantity == quantity && c.error(predictor)) out.push_back(c);
  }
  std::stable_sort(out.begin(), out.end(), [&](const JudgedCase& a, const JudgedCase& b) {
    return std::abs(*a.error(predictor)) > std::abs(*b.error(predictor));
  });
  if (out.size() > count) out.resize(count);
  return out;
}

// Longest common subsequence of the kinds: length[i][j] is that of the tails from i and j.
std::vector<KernelPair> align_kernels(std::span<const KernelKind> measured,
                                      std::span<const KernelKind> predicted) {
  const std::size_t rows = measured.size(), cols = predicted.size();
  std::vector<std::vector<std::size_t>> length(rows + 1, std::vector<std::size_t>(cols + 1, 0));
  for (std::size_t i = rows; i-- > 0;) {
    for (std::size_t j = cols; j-- > 0;) {
      length[i][j] = measured[i] == predicted[j] ? length[i + 1][j + 1] + 1
                                                 : std::max(length[i + 1][j], length[i][j + 1]);
    }
  }
  std::vector<KernelPair> pairs;
  for (std::size_t i = 0, j = 0; i < rows && j < cols;) {
    if (measured[i] == predicted[j]) {
      pairs.push_back({i++, j++});
    } else if (length[i + 1][j] >= length[i][j + 1]) {
      ++i;
    } else {
      ++j;
    }
  }
  return pairs;
}

const char* name_of(Quantity quantity) {
  switch (quantity) {
    case Quantity::block_time:
      return "block_time";
    case Quantity::kernel_time:
      return "kernel_time";
    case Quantity::gemm_time:
      return "gemm_time";
    case Quantity::block_hbm:
      return "block_hbm_bytes";
    case Quantity::gemm_kernel_hbm:
      return "gemm_kernel_hbm_bytes";
  }
  return "?";
}

}  // namespace fuseline
