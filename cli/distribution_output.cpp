#include "cli/distribution_output.h"

#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/format.h"
#include "cli/predict_table.h"
#include "cli/table.h"
#include "sim/search/plan_choices.h"

namespace fuseline {

namespace {

// Columns that say the same on every line are left out.
bool batches_vary(const DistributionResult& r) {
  for (const ShapeResult& s : r.shapes)
    if (s.shape.batch != r.shapes.front().shape.batch) return true;
  return false;
}

std::string size_text(const ShapeWeight& s, Phase phase, bool with_batch) {
  if (s.mixed()) {
    std::string groups;
    for (const SequenceGroup& g : s.sequences)
      groups += (groups.empty() ? "" : " + ") + describe(g);
    return groups;
  }
  std::string text = phase == Phase::decode ? fmt::format("context {}", grouped(s.context))
                                            : fmt::format("{} tokens", grouped(s.tokens));
  if (phase == Phase::decode && s.tokens > 1) text = grouped(s.tokens) + " new, " + text;
  if (with_batch) text = fmt::format("{} x {}", s.batch, text);
  return text;
}

std::string share_text(double share) { return fmt::format("{:.1f} %", 100 * share); }

std::string shapes_table(const DistributionResult& r, Phase phase) {
  double all = 0;
  for (const ShapeResult& s : r.shapes) all += s.shape.weight;
  std::vector<std::vector<std::string>> rows;
  for (const ShapeResult& s : r.shapes)
    rows.push_back({std::to_string(rows.size() + 1), size_text(s.shape, phase, batches_vary(r)),
                    share_text(s.shape.weight / all),
                    in_microseconds(s.own) + (s.complete ? "" : " *"), in_microseconds(s.shared),
                    in_microseconds(s.bucketed), std::to_string(s.choices + 1),
                    in_microseconds(s.padded), in_microseconds(s.fallback)});
  return format_table({{"line"},
                       {"size"},
                       {"of calls"},
                       {"own plan µs", Align::left},
                       {"one for all"},
                       {"bucket's"},
                       {"of line"},
                       {"padded"},
                       {"no fusion"}},
                      rows) +
         wrap(
             "own plan: the best of the space, with * the best found; of line: whose choices serve "
             "it; padded: at the size of its bucket below; no fusion: " +
             std::string(kFallbackPolicy) + ", at its own size");
}

std::string lines_text(const ShapeRange& range) {
  if (range.first == range.last) return std::to_string(range.first + 1);
  return fmt::format("{} to {}", range.first + 1, range.last + 1);
}

std::string ranges_text(const std::vector<Bucket>& buckets) {
  std::string text;
  for (const Bucket& b : buckets)
    text += fmt::format("{}line{} {} by the plan of line {}", text.empty() ? "" : "; ",
                        b.shapes.first == b.shapes.last ? "" : "s", lines_text(b.shapes),
                        b.choices + 1);
  return text;
}

std::string padded_table(const DistributionResult& r, Phase phase) {
  std::vector<std::vector<std::string>> rows;
  for (const Bucket& b : r.padded)
    rows.push_back({size_text(b.size, phase, batches_vary(r)), lines_text(b.shapes),
                    share_text(b.size.weight), in_microseconds(b.time),
                    b.slower > 0 ? share_text(b.slower) : "none"});
  return format_table(
      {{"padded to"}, {"lines"}, {"of calls"}, {"time µs"}, {"of them faster unfused, not padded"}},
      rows);
}

std::string name_of_way(const Serving& s) {
  if (s.way == "fallback") return "no fusion";
  if (s.way == "one-plan") return "one plan for all";
  if (s.way == "buckets") return "buckets, not padded";
  if (s.way == "best-plan-each") return "best plan at each size";
  if (s.way == "padded-buckets") return "buckets, padded";
  if (s.way == "compiled-each") return "compiled for each size";
  return "the most frequent kept";
}

std::string ways_table(const DistributionResult& r) {
  std::vector<std::vector<std::string>> rows;
  const Serving& plain = r.servings.front();
  for (const Serving& s : r.servings)
    rows.push_back({name_of_way(s), grouped(s.plans), grouped(std::llround(s.kernels)),
                    in_microseconds(s.block), grouped(std::llround(s.compile.value())),
                    fmt::format("{:.3f}", s.call.value() * 1e3),
                    &s == &plain ? "" : signed_percent(s.call / plain.call - 1),
                    &s == &plain ? ""
                    : s.earned_after
                        ? grouped(static_cast<std::int64_t>(std::ceil(*s.earned_after)))
                        : "never"});
  return format_table({{"way to serve all sizes", Align::left},
                       {"plans"},
                       {"kernels"},
                       {"block µs"},
                       {"compile s"},
                       {"call ms"},
                       {"to no fusion"},
                       {"ahead from call"}},
                      rows);
}

std::string fallback_text(const DistributionResult& r) {
  std::string text;
  const auto gain = [&](Seconds other) { return 100 * (other / r.each - 1); };
  const auto say = [&](const char* than, Seconds other, const std::optional<double>& negated) {
    const double percent = gain(other);
    if (percent < 0.005) {
      text += fmt::format("The best plan at each size gains nothing over {}. ", than);
    } else if (!negated) {
      text += fmt::format(
          "The best plan at each size gains {:.2f} % over {}, which is slower than no fusion. ",
          percent, than);
    } else {
      text += fmt::format(
          "The best plan at each size gains {:.2f} % over {}: gone when {} of the "
          "calls run unfused. ",
          percent, than, share_text(*negated));
    }
  };
  say("one plan for all", r.one, r.fallback_negates_one);
  say("padding", r.padded_mean, r.fallback_negates_padded);
  return wrap(text.substr(0, text.size() - 1), "");
}

}  // namespace

std::string distribution_text(const Selection& s, const Distribution& of,
                              const DistributionResult& r) {
  const std::string& model = s.model.title.empty() ? s.model.name : s.model.title;
  const Phase phase = s.workload.phase;
  std::string text =
      wrap(fmt::format("{}, one block of {}: {}, {} sizes{}", model, s.model.layers, name_of(phase),
                       r.shapes.size(),
                       of.requests.empty() ? "" : fmt::format(", batch {}", s.workload.batch))) +
      describe(s.gpu) + "\n";
  if (!of.title.empty()) text += wrap(fmt::format("{}: {}, {}", of.title, of.source, of.date));
  for (const std::string& assumed : of.assumed) text += wrap("assumed: " + assumed);
  if (!of.title.empty()) text += "\n";
  text += shapes_table(r, phase) + "\n";
  text += wrap(fmt::format("{} without padding: {}", r.buckets.size() == 1 ? "bucket" : "buckets",
                           ranges_text(r.buckets)));
  text += "\n" + padded_table(r, phase) + "\n" + ways_table(r);
  text += wrap(fmt::format(
      "call: {} such blocks, and its share of the time of compiling: {} calls{} of {} different "
      "sizes share it, {:g} s a kernel (assumed)",
      s.model.layers, grouped(std::llround(r.calls)), r.calls_assumed ? " (assumed)" : "",
      grouped(r.sizes.counts.different), r.options.compile.value()));
  if (const Serving& kept = r.servings.back(); kept.fallback > 0)
    text += wrap(fmt::format("kept: {} of the {} sizes; the other {} of the calls run unfused",
                             grouped(kept.plans), grouped(r.sizes.counts.different),
                             share_text(kept.fallback)));
  return text + "\n" + fallback_text(r);
}

}  // namespace fuseline
