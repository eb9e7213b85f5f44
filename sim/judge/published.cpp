#include "sim/judge/published.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "base/csv.h"
#include "base/error.h"
#include "model/config/model_files.h"
#include "model/policy.h"
#include "sim/block/single_gemm.h"
#include "sim/block/whole_model.h"
#include "sim/gpu/plan_target.h"
#include "sim/memory/memory_fit.h"
#include "sim/sure/estimate_bands.h"

namespace fuseline {

namespace {

// What a metric is of a step's time; the unit in which it is published.
enum class Kind : std::uint8_t { time, tokens, flops, weight_bytes, gain };
struct FigureMetric {
  const char* name;
  const char* unit;
  double scale;  // of the unit, in seconds, tokens/s, FLOP/s or bytes/s
  Kind kind;
};
constexpr FigureMetric kMetrics[] = {{"tokens_per_s", "tok/s", 1, Kind::tokens},
                                     {"first_token_latency", "ms", 1e-3, Kind::time},
                                     {"gemm_rate", "TFLOP/s", 1e12, Kind::flops},
                                     {"model_bandwidth", "GB/s", 1e9, Kind::weight_bytes},
                                     {"gain", "x", 1, Kind::gain}};

const FigureMetric* metric_of(const PublishedFigure& f) {
  for (const FigureMetric& m : kMetrics) {
    if (f.metric == m.name && f.unit == m.unit) return &m;
  }
  return nullptr;
}

void check_word(const CsvTable& table, std::size_t row, const char* column,
                const std::vector<std::string>& names) {
  const std::string& text = table.text(row, column);
  if (std::ranges::find(names, text) != names.end()) return;
  try {
    table.fail(row, column, "is none of them", fmt::format("{}", fmt::join(names, ", ")));
  } catch (const InputError& error) {
    InputProblem problem = error.problem();
    problem.nearest = nearest_name(text, names);
    throw InputError(std::move(problem));
  }
}

std::vector<std::string> policy_names() {
  std::vector<std::string> names;
  for (const PolicyInfo& p : policies()) names.push_back(p.name);
  return names;
}

Dtype read_dtype(const CsvTable& table, std::size_t row) {
  check_word(table, row, "dtype", {"bf16", "fp16", "fp32"});
  return parse_dtype(table.text(row, "dtype"), "dtype");
}

void read_model(const CsvTable& table, std::size_t row, PublishedFigure& f) {
  check_word(table, row, "policy", policy_names());
  check_word(table, row, "phase", {"forward", "decode", "train"});
  f.model = table.text(row, "model");
  f.policy = table.text(row, "policy");
  for (const Phase phase : {Phase::forward, Phase::decode, Phase::train}) {
    if (table.text(row, "phase") == name_of(phase)) f.workload.phase = phase;
  }
  f.workload.batch = table.whole(row, "batch", 1);
  f.workload.seq = table.whole(row, "seq", 1);
  if (f.workload.phase == Phase::decode) f.workload.context = table.whole(row, "context", 1);
}

// "a; b" → a, b.
std::vector<std::string> listed(const std::string& text) {
  std::vector<std::string> parts;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find("; ", at), text.size());
    parts.push_back(text.substr(at, end - at));
    at = end + 2;
  }
  return parts;
}

void read_fusion(const CsvTable& table, std::size_t row, PublishedFigure& f) {
  for (const std::string& name : listed(table.text(row, "rewrites"))) {
    if (rewrite_summary(name).empty()) {
      table.fail(row, "rewrites", "no such rewrite: " + name,
                 fmt::format("{}", fmt::join(rewrite_names(), ", ")));
    }
    f.fusion.rewrites.push_back(name);
  }
  for (const std::string& edge : listed(table.text(row, "edges"))) {
    try {
      f.fusion.on_chip.push_back(parse_edge(edge, "edges"));
    } catch (const InputError& error) {
      table.fail(row, "edges", error.problem().message, error.problem().allowed);
    }
  }
  if (f.fusion.on_chip.empty()) {
    table.fail(row, "edges", "names no edge of the fusion", "a -> b; b -> c");
  }
}

PublishedFigure read_figure(const CsvTable& table, std::size_t row) {
  PublishedFigure f{.id = table.text(row, "id"),
                    .quality = table.text(row, "quality"),
                    .source = table.text(row, "source"),
                    .citation = table.text(row, "citation"),
                    .config = table.text(row, "published_config"),
                    .framework = table.text(row, "framework"),
                    .caveat = table.text(row, "caveat"),
                    .published_gpu = table.text(row, "published_gpu"),
                    .gpu = table.text(row, "gpu"),
                    .what = table.text(row, "what"),
                    .slack = table.text(row, "slack") == "yes",
                    .metric = table.text(row, "metric"),
                    .unit = table.text(row, "unit"),
                    .value = table.positive(row, "value"),
                    .not_predicted = table.text(row, "not_predicted")};
  check_word(table, row, "quality", {"A", "B", "C", "N"});
  check_word(table, row, "slack", {"yes", "no"});
  if (f.what.empty()) {
    if (f.not_predicted.empty()) {
      table.fail(row, "not_predicted", "says nothing, and neither does `what`", "the reason");
    }
    return f;
  }
  check_word(table, row, "what", {"model", "gemm", "fusion"});
  check_word(table, row, "gpu", gpu_names());
  if (metric_of(f) == nullptr) {
    table.fail(row, "metric", "no such metric in " + f.unit,
               "tokens_per_s in tok/s, first_token_latency in ms, gemm_rate in TFLOP/s, "
               "model_bandwidth in GB/s, gain in x");
  }
  if ((f.what == "fusion") != (metric_of(f)->kind == Kind::gain)) {
    table.fail(row, "metric", "is not what a " + f.what + " has",
               "gain for a fusion, and only there");
  }
  f.workload.dtype = read_dtype(table, row);
  if (f.what == "model") {
    read_model(table, row, f);
  } else if (f.what == "fusion") {
    read_model(table, row, f);
    read_fusion(table, row, f);
  } else {
    f.m = table.whole(row, "m", 1);
    f.n = table.whole(row, "n", 1);
    f.k = table.whole(row, "k", 1);
  }
  return f;
}

struct Predicted {
  double value = 0;  // in the figure's unit
  WorkClass work;
  Seconds time;  // of what the class is of: the product, or one block
};

Predicted predict_gemm(const PublishedFigure& f, const Gpu& gpu, const FigureMetric& metric) {
  const KernelEstimate e = estimate_library_gemm(
      {.m = f.m, .n = f.n, .k = f.k, .dtype = f.workload.dtype, .operands = Operands::hot}, gpu,
      Fidelity::hierarchy);
  const double amount =
      metric.kind == Kind::flops ? e.flops.as_double() / e.time.value() : e.time.value();
  return {amount / metric.scale, time_class(e, Phase::forward, "library"), e.time};
}

Predicted predict_model(const PublishedFigure& f, const Gpu& gpu, const FigureMetric& metric) {
  const ModelConfig model = load_model(f.model);
  check_workload(f.workload, model);
  const Plan plan = make_plan(f.policy, model, f.workload, plan_target(gpu));
  const PlanEstimate block = simulate(plan, gpu, Fidelity::hierarchy);
  const LayersEstimate all = whole_model(block, model, f.workload, gpu);
  double amount = all.time.value();
  if (metric.kind == Kind::tokens) amount = all.tokens_per_second(f.workload);
  if (metric.kind == Kind::weight_bytes) {
    amount = weight_bytes(model, f.workload).as_double() / all.time.value();
  }
  return {amount / metric.scale, time_class(block, f.workload.phase), block.time};
}

// The time of the kernels that have one of the edges' operators.
Seconds time_of_operators(const PlanEstimate& e, const std::vector<OnChipEdge>& edges) {
  Seconds sum;
  for (const KernelEstimate& k : e.kernels) {
    const bool one = std::ranges::any_of(k.operators, [&](const std::string& op) {
      return std::ranges::any_of(
          edges, [&](const OnChipEdge& edge) { return op == edge.from || op == edge.to; });
    });
    if (one) sum += k.time;
  }
  return sum;
}

// The block with the fusion's edges on chip beside it without them.
void judge_fusion(const PublishedFigure& f, const Gpu& gpu, JudgedFigure& out) {
  const ModelConfig model = load_model(f.model);
  check_workload(f.workload, model);
  const Target target = plan_target(gpu);
  const Plan base = make_plan(f.policy, model, f.workload, target);
  CustomFusion custom = custom_like(base, base.block);
  for (const std::string& name : f.fusion.rewrites) custom.rewrites.push_back(name);
  for (const OnChipEdge& edge : f.fusion.on_chip) custom.on_chip.push_back(edge);
  const PlanEstimate without = simulate(base, gpu, Fidelity::hierarchy);
  const PlanEstimate with = simulate(make_plan(kCustomPolicy, model, f.workload, custom, target),
                                     gpu, Fidelity::hierarchy);
  const Seconds before = time_of_operators(without, f.fusion.on_chip);
  const Seconds after = time_of_operators(with, f.fusion.on_chip);
  const double gain = without.time / with.time;
  out.predicted = gain;
  out.share = before / without.time;
  const Sureness sure(gpu, f.workload);
  out.verdict = verdict_of(gain, sure.gain_of_part(without, with, before, after));
  // Even kernels that took no time, or twice as long, would not explain it.
  const double published_change = std::abs(1 / f.value - 1);
  out.cause = published_change > *out.share                ? Cause::framework
              : standing_of(gpu) == Standing::uncalibrated ? Cause::gpu
                                                           : Cause::model;
}

Cause cause_of(const PublishedFigure& f, const Gpu& gpu) {
  if (f.slack) return Cause::framework;
  return standing_of(gpu) == Standing::uncalibrated ? Cause::gpu : Cause::model;
}

}  // namespace

std::vector<PublishedFigure> load_published_figures(const std::string& path) {
  const CsvTable table(path);
  std::vector<PublishedFigure> figures;
  for (std::size_t row = 0; row < table.rows(); ++row) figures.push_back(read_figure(table, row));
  return figures;
}

std::optional<double> JudgedFigure::error() const {
  if (!predicted) return std::nullopt;
  const FigureMetric* metric = metric_of(figure);
  return metric->kind == Kind::time ? *predicted / figure.value - 1 : figure.value / *predicted - 1;
}

JudgedFigure judge(const PublishedFigure& f) {
  JudgedFigure out{.figure = f, .not_predicted = f.not_predicted};
  if (f.what.empty()) return out;
  const FigureMetric& metric = *metric_of(f);
  const Gpu gpu = load_gpu(f.gpu);
  if (f.what == "fusion") {
    judge_fusion(f, gpu, out);
    return out;
  }
  const Predicted p =
      f.what == "gemm" ? predict_gemm(f, gpu, metric) : predict_model(f, gpu, metric);
  out.predicted = p.value;
  out.cause = cause_of(f, gpu);
  out.residual = Residual{.work = p.work,
                          .model = "published, " + f.source,
                          .where = f.citation + " " + f.id,
                          .standing = standing_of(gpu),
                          .predicted = p.time.value(),
                          .measured = p.time.value() / (1 + *out.error()),
                          .gpu = f.gpu};
  return out;
}

std::vector<Residual> published_rows(const std::vector<JudgedFigure>& figures) {
  std::vector<Residual> rows;
  for (const JudgedFigure& j : figures) {
    if (!j.residual || j.residual->standing != Standing::uncalibrated) continue;
    if (j.cause == Cause::framework && *j.error() <= 0) continue;
    rows.push_back(*j.residual);
  }
  return rows;
}

std::vector<FigureGroup> groups_of(const std::vector<JudgedFigure>& figures) {
  std::vector<FigureGroup> groups;
  for (const JudgedFigure& j : figures) {
    const auto error = j.error();
    if (!error) continue;
    const std::string phase = j.figure.what == "gemm" ? "gemm" : name_of(j.figure.workload.phase);
    auto at = std::ranges::find_if(groups, [&](const FigureGroup& g) {
      return g.cause == j.cause && g.gpu == j.figure.gpu && g.phase == phase &&
             g.metric == j.figure.metric;
    });
    if (at == groups.end()) {
      at = groups.insert(
          groups.end(),
          FigureGroup{
              .cause = j.cause, .gpu = j.figure.gpu, .phase = phase, .metric = j.figure.metric});
    }
    ++at->figures;
    at->mean_error += std::abs(*error);
    at->bias += *error;
  }
  for (FigureGroup& g : groups) {
    g.mean_error /= static_cast<double>(g.figures);
    g.bias /= static_cast<double>(g.figures);
  }
  std::ranges::stable_sort(groups, {}, &FigureGroup::cause);
  return groups;
}

const char* name_of(Cause cause) {
  switch (cause) {
    case Cause::model:
      return "model";
    case Cause::gpu:
      return "GPU never calibrated";
    case Cause::framework:
      return "framework's own slack";
  }
  FUSELINE_ASSERT(false, "cause");
}

}  // namespace fuseline
