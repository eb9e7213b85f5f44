#include "gui/model/waterfall.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "gui/model/geometry.h"
#include "gui/model/text.h"
#include "model/blocks/block.h"
#include "model/policies/support/backward_choices.h"

namespace fuseline::gui {

namespace {

struct Amount {
  Bytes bytes;
  Seconds time;
};

Amount amount_of(const PlanEstimate& e) { return {e.hbm_read + e.hbm_write, e.time}; }

Amount amount_of(const Plan& plan, const PredictionCase& c) {
  return amount_of(simulate(plan, c.gpu, c.fidelity));
}

// The chosen edges in the order of the target's kernels, one bundle for each kernel.
struct Bundle {
  std::vector<OnChipEdge> edges;
  std::vector<std::string> operators;
};

std::vector<Bundle> bundles_of(const Plan& target, const CustomFusion& custom) {
  std::vector<Bundle> bundles;
  for (const Kernel& kernel : target.kernels) {
    Bundle bundle;
    for (const OpId id : kernel.ops) bundle.operators.push_back(target.graph.op(id).name);
    for (const OnChipEdge& edge : custom.on_chip) {
      const auto in = [&](const std::string& op) {
        return std::ranges::find(bundle.operators, op) != bundle.operators.end();
      };
      if (in(edge.from) && in(edge.to)) bundle.edges.push_back(edge);
    }
    if (!bundle.edges.empty()) bundles.push_back(std::move(bundle));
  }
  return bundles;
}

class Steps {
 public:
  Steps(Waterfall& chart, Amount start) : chart_(chart), now_(start) {
    total("unfused", "textbook execution: every step of the block goes through HBM");
  }

  void total(const std::string& label, const std::string& what) {
    chart_.steps.push_back(
        {.kind = StepKind::total,
         .label = label,
         .tooltip = fmt::format("{}\n{}\n{}", what, exact_bytes(now_.bytes), short_time(now_.time)),
         .before = Bytes(0),
         .after = now_.bytes,
         .time_before = {},
         .time_after = now_.time,
         .colour = {ColourRole::baseline, 0},
         .operators = {}});
  }

  void to(Amount next, StepKind kind, const std::string& label, const std::string& what,
          std::vector<std::string> operators = {}) {
    const Bytes saved = now_.bytes - next.bytes;
    Colour colour{kind == StepKind::limit ? ColourRole::limit
                  : saved < Bytes(0)      ? ColourRole::worse
                                          : ColourRole::better,
                  2};
    chart_.steps.push_back(
        {.kind = kind,
         .label = label,
         .tooltip =
             fmt::format("{}\n{} ({} bytes)\n{}", what, signed_bytes(next.bytes - now_.bytes),
                         (next.bytes - now_.bytes).value(), signed_time(next.time - now_.time)),
         .before = now_.bytes,
         .after = next.bytes,
         .time_before = now_.time,
         .time_after = next.time,
         .colour = colour,
         .operators = std::move(operators)});
    now_ = next;
  }

  [[nodiscard]] Bytes now() const { return now_.bytes; }

 private:
  Waterfall& chart_;
  Amount now_;
};

std::string joined(const std::vector<std::string>& names) {
  std::string out;
  for (const std::string& name : names) out += (out.empty() ? "" : " + ") + name;
  return out;
}

// A long list of operators as its first and last.
std::string short_label(const std::vector<std::string>& names) {
  return names.size() <= 3 ? joined(names)
                           : fmt::format("{} … {} ({})", names.front(), names.back(), names.size());
}

}  // namespace

Waterfall waterfall(const RunView& target, const std::stop_token& stop, const Progress& progress) {
  FUSELINE_ASSERT(target.ok() && !target.run.is_measurement(), target.run.name);
  const RunResult& result = *target.result;
  const PredictionCase& c = *result.block;
  const Graph block = build_block(c.model, c.workload);
  Waterfall chart;
  chart.about = subject_of(target);
  chart.title = fmt::format("HBM traffic from unfused to {}", target.label());

  const CustomFusion custom =
      target.run.is_custom() ? target.run.custom : custom_like(*result.plan, block);
  const std::vector<Bundle> bundles = bundles_of(*result.plan, custom);
  const std::size_t total = bundles.size() + 2;
  std::size_t done = 0;
  const auto next = [&] {
    throw_if_stopped(stop);
    if (progress) progress(++done, total);
  };

  Steps steps(chart, amount_of(make_plan("unfused", block), c));
  next();
  CustomFusion so_far{custom.rewrites, {}};
  const bool apart =
      std::ranges::find(custom.rewrites, kSaveProbabilities) != custom.rewrites.end();
  std::string rewrites =
      apart ? "attention as in unfused" : "attention in one kernel (online softmax)";
  if (!custom.rewrites.empty()) {
    rewrites += fmt::format("; rewrites {}", fmt::join(custom.rewrites, ", "));
  }
  steps.to(amount_of(make_custom_plan(block, so_far.rewrites, {}), c), StepKind::rewrites,
           apart                     ? "rewrites"
           : custom.rewrites.empty() ? "attention"
                                     : "attention, rewrites",
           rewrites, {"scores", "softmax", "context"});
  next();
  for (const Bundle& bundle : bundles) {
    so_far.on_chip.insert(so_far.on_chip.end(), bundle.edges.begin(), bundle.edges.end());
    steps.to(amount_of(make_custom_plan(block, so_far.rewrites, so_far.on_chip), c),
             StepKind::fusion, short_label(bundle.operators),
             "one kernel: " + joined(bundle.operators), bundle.operators);
    next();
  }
  const Amount reached = amount_of(*result.predicted);
  if (reached.bytes != steps.now()) {
    steps.to(reached, StepKind::rest, "as " + target.run.policy + " launches it",
             "kernels joined side by side and the implementations that the policy uses");
  }
  steps.total(target.run.name, "as predicted");
  const Limits& limits = result.predicted->limits;
  steps.to({limits.least, limits.time}, StepKind::limit, "to the limit",
           "weights and caches once, and what L2 cannot hand from block to block: no fusion can "
           "move less");
  Bytes most;
  for (const WaterfallStep& s : chart.steps) most = std::max({most, s.before, s.after});
  chart.axis_high = nice_above(most.as_double() * 1.02);
  return chart;
}

Table to_table(const Waterfall& chart) {
  static constexpr const char* kKinds[] = {"total", "fusion", "rewrites", "rest", "limit"};
  Table table{"waterfall",
              {"step", "kind", "before_bytes", "after_bytes", "saved_bytes", "time_before_us",
               "time_after_us"},
              {}};
  for (const WaterfallStep& s : chart.steps) {
    add_row(table,
            {s.label, std::string(kKinds[static_cast<int>(s.kind)]), s.before.value(),
             s.after.value(), s.saved().value(), to_us(s.time_before), to_us(s.time_after)},
            chart.about);
  }
  return table;
}

}  // namespace fuseline::gui
