#include "sim/report/html_report.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/format.h"
#include "base/version.h"
#include "sim/gpu/standing.h"
#include "sim/report/html_page.h"
#include "sim/report/prediction_charts.h"
#include "sim/sure/estimate_bands.h"

namespace fuseline {

namespace {

std::string paragraph(const std::string& text, const char* style = nullptr) {
  return fmt::format("<p{}>{}</p>\n", style == nullptr ? "" : fmt::format(" class=\"{}\"", style),
                     escaped(text));
}

std::string figure(const Svg& svg, const std::string& caption) {
  return "<figure>\n" + svg.element() + "<figcaption>" + escaped(caption) +
         "</figcaption>\n</figure>\n";
}

std::string band_text(const std::optional<Band>& band, Seconds time) {
  if (!band) return "–";
  return in_microseconds(low_end(time, *band)) + " to " + in_microseconds(high_end(time, *band));
}

std::string anchor_of(const std::string& policy) { return "plan-" + policy; }

class Page {
 public:
  explicit Page(const ReportedCase& report)
      : r_(report), c_(report.what), sure_(c_.gpu, c_.workload) {}

  [[nodiscard]] std::string text() const {
    const std::string title = r_.title.empty() ? model_title() : r_.title;
    return html_page(title + ": fuseline", head(title) + overview() + traffic() + timelines() +
                                               plans() + gpu() + sources());
  }

 private:
  [[nodiscard]] std::string model_title() const {
    return c_.model.title.empty() ? c_.model.name : c_.model.title;
  }
  [[nodiscard]] const PlanEstimate& base() const { return baseline_of(r_.predictions); }

  [[nodiscard]] std::string head(const std::string& title) const {
    std::string text =
        "<header>\n<h1>" + escaped(title) + "</h1>\n" +
        paragraph(fmt::format("{}, one block of {}: {}. On {}.", model_title(), c_.model.layers,
                              describe(c_.workload), c_.gpu.title)) +
        paragraph(in_one_sentence());
    if (const std::string standing = standing_text(c_.gpu); !standing.empty())
      text += paragraph(standing + ".", "standing");
    text += "</header>\n<nav aria-label=\"Sections\"><ul>";
    for (const auto& [id, name] : {std::pair{"time", "Time"},
                                   {"traffic", "Traffic"},
                                   {"kernels", "Kernels"},
                                   {"plans", "Plans"},
                                   {"gpu", "GPU"},
                                   {"sources", "Commands and versions"}})
      text += fmt::format("<li><a href=\"#{}\">{}</a></li>", id, name);
    return text + "</ul></nav>\n<main>\n";
  }

  // The answer first.
  [[nodiscard]] std::string in_one_sentence() const {
    const auto best = std::ranges::min_element(
        r_.predictions, {}, [](const Prediction& p) { return p.block.time.value(); });
    const PlanEstimate& e = best->block;
    std::string text = fmt::format(
        "The fastest of {} {} is {} with {} µs a block", r_.predictions.size(),
        r_.predictions.size() == 1 ? "policy" : "policies", e.policy, in_microseconds(e.time));
    if (e.policy == base().policy) return text + ".";
    text += fmt::format(", {} as fast as {}", times(base().time / e.time), base().policy);
    if (const auto band = sure_.gain(base(), e)) {
      const double gain = base().time / e.time;
      text += fmt::format(" (90 % band {} to {}): {}", times(gain * band->low),
                          times(gain * band->high), verdict_of(gain, *band));
    }
    return text + ".";
  }

  [[nodiscard]] std::string overview() const {
    std::vector<std::vector<std::string>> rows;
    const bool measured = std::ranges::any_of(
        r_.predictions, [](const Prediction& p) { return p.measured.has_value(); });
    std::vector<HtmlColumn> columns = {{"policy", false}, {"time µs"}, {"90 % band µs"}};
    if (measured) columns.insert(columns.end(), {{"measured µs"}, {"error"}});
    columns.insert(columns.end(),
                   {{"gain"}, {"90 % band"}, {"verdict", false}, {"HBM MB"}, {"launches"}});
    for (const Prediction& p : r_.predictions) {
      const PlanEstimate& e = p.block;
      std::vector<std::string> row = {e.policy, in_microseconds(e.time),
                                      band_text(sure_.time(e), e.time)};
      if (measured) {
        row.push_back(p.measured ? in_microseconds(p.measured->time.median) : "–");
        const Seconds compared = p.replayed ? p.replayed->time : e.time;
        row.push_back(p.measured ? signed_percent(compared / p.measured->time.median - 1) : "–");
      }
      const double gain = base().time / e.time;
      const auto band = sure_.gain(base(), e);
      const bool same = e.policy == base().policy;
      row.push_back(times(gain));
      row.push_back(band && !same ? times(gain * band->low) + " to " + times(gain * band->high)
                                  : "–");
      row.push_back(band && !same ? verdict_of(gain, *band) : "–");
      row.push_back(megabytes(e.hbm_read + e.hbm_write));
      row.push_back(std::to_string(e.launches));
      rows.push_back(std::move(row));
    }
    const Limits& limits = r_.predictions.front().block.limits;
    std::string text =
        "<section id=\"time\">\n<h2>Time</h2>\n" +
        figure(draw_times(c_, r_.predictions),
               "Whiskers: the interval that holds the truth in 90 of 100 cases. Limit: no "
               "implementation of this block is faster on this GPU" +
                   std::string(measured ? ". Diamonds: measured." : ".")) +
        html_table("One block under each policy; gains are over " + base().policy, columns, rows) +
        paragraph(fmt::format(
            "The block's limit is {} µs. Compulsory HBM traffic: {} MB; the least that a row of "
            "equal blocks can move: {} MB; the best for the capacity on chip: {} MB.",
            in_microseconds(limits.time), megabytes(limits.compulsory), megabytes(limits.least),
            megabytes(limits.capacity_bound)));
    if (measured)
      text += paragraph(
          "Measured blocks are replays on the same input. The error is that of the prediction of "
          "such replays, which may differ from the time of a block in a row of layers.");
    return text + whole_model() + "</section>\n";
  }

  [[nodiscard]] std::string whole_model() const {
    std::vector<std::vector<std::string>> rows;
    for (const Prediction& p : r_.predictions) {
      if (!p.layers) continue;
      rows.push_back({p.block.policy, std::to_string(p.layers->layers),
                      in_milliseconds(p.layers->time),
                      fmt::format("{:.0f}", p.layers->tokens_per_second(c_.workload)),
                      std::to_string(p.layers->launches)});
    }
    if (rows.empty()) return {};
    return html_table(c_.layers ? "Several blocks in a row" : "The whole model",
                      {{"policy", false}, {"layers"}, {"time ms"}, {"tokens/s"}, {"launches"}},
                      rows);
  }

  [[nodiscard]] std::string traffic() const {
    std::vector<std::vector<std::string>> rows;
    for (const Prediction& p : r_.predictions) {
      const PlanEstimate& e = p.block;
      const Bytes all = e.hbm_read + e.hbm_write;
      const auto band = sure_.hbm(e);
      rows.push_back(
          {e.policy, megabytes(e.hbm_read), megabytes(e.hbm_write),
           band ? megabytes(low_end(all, *band)) + " to " + megabytes(high_end(all, *band)) : "–",
           times(all.as_double() / e.limits.compulsory.as_double()), megabytes(e.l2)});
    }
    return "<section id=\"traffic\">\n<h2>Traffic</h2>\n" +
           figure(draw_traffic(c_, r_.predictions),
                  "Bytes that HBM moves. Compulsory: every input, weight and output once.") +
           html_table("Bytes of one block, in MB (10^6 bytes)",
                      {{"policy", false},
                       {"HBM read"},
                       {"HBM written"},
                       {"90 % band of both"},
                       {"of compulsory"},
                       {"through L2"}},
                      rows) +
           "</section>\n";
  }

  [[nodiscard]] std::string timelines() const {
    return "<section id=\"kernels\">\n<h2>Kernels</h2>\n" +
           figure(draw_timelines(r_.predictions),
                  "Each policy's kernels one after the other. The tables below have the numbers.") +
           "</section>\n";
  }

  [[nodiscard]] std::string plans() const {
    std::string text = "<section id=\"plans\">\n<h2>Plans</h2>\n";
    for (const ExplainedPlan& plan : r_.plans) text += one_plan(plan);
    return text + "</section>\n";
  }

  [[nodiscard]] std::string one_plan(const ExplainedPlan& plan) const {
    const Explanation& e = plan.what;
    std::vector<std::vector<std::string>> kernels, edges;
    for (const KernelEstimate& k : plan.estimate.kernels) {
      const Band band = sure_.time(k, e.policy);
      kernels.push_back({k.name, name_of(k.kind), in_microseconds(k.time), band_text(band, k.time),
                         megabytes(k.hbm_read), megabytes(k.hbm_write), megabytes(k.l2),
                         name_of(k.bound),
                         k.tile.empty() ? "–" : fmt::format("{}", fmt::join(k.tile, "×")),
                         fmt::format("{}", fmt::join(k.operators, ", "))});
    }
    for (const EdgeExplanation& edge : e.edges)
      edges.push_back({edge.from + " → " + edge.to, edge.tensor,
                       edge.fused ? "one kernel" : "apart", edge.reason});
    std::string text =
        fmt::format("<h3 id=\"{}\">{}</h3>\n", escaped(anchor_of(e.policy)), escaped(e.policy));
    if (!e.rewrites.empty())
      text += paragraph(fmt::format("Rewrites: {}.", fmt::join(e.rewrites, ", ")));
    text += figure(draw_plan(plan),
                   "Kernels in the order of their launches. Curves: tensors that one kernel stores "
                   "and a later one loads.");
    text += html_table("Kernels of " + e.policy,
                       {{"kernel", false},
                        {"kind", false},
                        {"time µs"},
                        {"90 % band µs"},
                        {"HBM read MB"},
                        {"HBM written MB"},
                        {"L2 MB"},
                        {"bound", false},
                        {"tile"},
                        {"operators", false}},
                       kernels);
    text += fmt::format(
        "<details>\n<summary>Why neighbours under {} share a kernel or do not"
        "</summary>\n",
        escaped(e.policy));
    return text +
           html_table("Neighbouring operators of " + e.policy,
                      {{"from → to", false}, {"tensor", false}, {"in", false}, {"why", false}},
                      edges) +
           "</details>\n";
  }

  [[nodiscard]] std::string gpu() const {
    const Gpu& g = c_.gpu;
    std::vector<std::vector<std::string>> rows;
    for (const auto& [field, source] : g.sources) rows.push_back({field, source});
    std::string text =
        "<section id=\"gpu\">\n<h2>GPU</h2>\n" +
        paragraph(fmt::format("{}. Standing: {}.", g.title, name_of(standing_of(g))));
    for (const GpuCheck& check : g.checks)
      text += paragraph(
          fmt::format("Checked on {} ({}): {}.", check.measurements, check.date, describe(check)));
    return text + "<details>\n<summary>Every number of the GPU with its source</summary>\n" +
           html_table("Numbers of " + g.name, {{"field", false}, {"value and source", false}},
                      rows) +
           "</details>\n</section>\n";
  }

  [[nodiscard]] std::string sources() const {
    std::string text = "<section id=\"sources\">\n<h2>Commands and versions</h2>\n" +
                       paragraph("These commands give the numbers of this page again.") + "<pre>";
    for (const std::string& command : r_.commands) text += escaped(command) + "\n";
    text += "</pre>\n" +
            paragraph(fmt::format("fuseline {}, fidelity {}.", kVersion, name_of(c_.fidelity)));
    if (r_.measured) {
      const MeasurementMeta& m = *r_.measured;
      std::string from = "Measured";
      for (const auto& [what, value] : {std::pair{" on ", m.device},
                                        {", driver ", m.driver},
                                        {", ", m.toolkit},
                                        {", ", m.framework},
                                        {", ", m.date},
                                        {", clocks: ", m.clocks}})
        if (!value.empty()) from += what + value;
      text += paragraph(from + ".");
    }
    return text +
           paragraph(
               "Times and bytes are predictions of a simulator unless they are called "
               "measured.",
               "soft") +
           "</section>\n</main>\n";
  }

  const ReportedCase& r_;
  const PredictionCase& c_;
  Sureness sure_;
};

}  // namespace

std::string html_report(const ReportedCase& report) { return Page(report).text(); }

}  // namespace fuseline
