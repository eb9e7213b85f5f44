#include "cli/verdict_output.h"

#include <fmt/format.h>

#include "base/csv_text.h"
#include "base/format.h"
#include "cli/predict_table.h"
#include "cli/table.h"

namespace fuseline {

namespace {

constexpr const char* kCannot = "cannot";

// Where it gains: "from 640", "below 640", "all" of the sizes looked at, or "none".
std::string sizes_text(const SizeTurning& t, bool gains) {
  const Turning& turning = t.turning;
  if (!turning.at) return gains ? "all" : "none";
  return fmt::format("{} {}{}", turning.gains_above ? "from" : "below", grouped(*turning.at),
                     turning.turns > 1 ? " *" : "");
}

std::vector<Column> columns_of(const char* first, const std::vector<SizeTurning>& turnings) {
  std::vector<Column> columns = {
      {first, Align::left}, {"with it", Align::left}, {"gain"}, {"90 % band"}};
  for (const SizeTurning& t : turnings) columns.push_back({t.letter});
  return columns;
}

std::vector<std::string> row_of(const std::string& name, const FusionGain& g,
                                const std::vector<SizeTurning>& turnings) {
  const double gain = g.gain();
  std::vector<std::string> row = {
      name, g.verdict, fmt::format("{:.3f}", gain),
      fmt::format("{:.3f} to {:.3f}", gain * g.band.low, gain * g.band.high)};
  for (const SizeTurning& t : turnings) row.push_back(sizes_text(t, gain > 1));
  return row;
}

// What the columns of sizes mean, with the sizes that were looked at.
std::string sizes_lines(const std::vector<SizeTurning>& turnings, bool several) {
  if (turnings.empty()) return {};
  std::string text = "gain: time without over time with it; sizes at which it is above 1,";
  for (const SizeTurning& t : turnings) {
    const SizeRange& r = t.turning.searched;
    text += fmt::format("{} of {} {} to {}", &t == turnings.data() ? "" : " and", t.letter,
                        grouped(r.least), grouped(r.most));
  }
  if (several) text += "; *: it turns more than once, this turn is the nearest";
  return wrap(text);
}

bool several(const std::vector<SizeTurning>& turnings) {
  for (const SizeTurning& t : turnings) {
    if (t.turning.turns > 1) return true;
  }
  return false;
}

std::string edge_line(const EdgeVerdict& e) {
  std::string text = edge_text(e.edge) + ": ";
  if (!e.gain) return wrap(text + e.limit.word + ": " + e.limit.why);
  if (!e.rewrite.empty()) text += "after " + e.rewrite + ", ";
  return wrap(text + fmt::format("{} µs apart, {} together; limited by {}: {}",
                                 in_microseconds(e.saved), in_microseconds(e.added), e.limit.word,
                                 e.limit.why));
}

std::string edges_text(const BlockVerdict& v) {
  std::vector<std::vector<std::string>> rows;
  std::string limits, cannot;
  const std::vector<SizeTurning>* turnings = nullptr;
  bool more = false;
  for (const EdgeVerdict& e : v.edges) {
    if (!e.gain) {
      cannot += edge_line(e);
      continue;
    }
    rows.push_back(row_of(edge_text(e.edge), *e.gain, e.turnings));
    limits += edge_line(e);
    turnings = &e.turnings;
    more = more || several(e.turnings);
  }
  std::string text;
  if (turnings != nullptr) {
    text = format_table(columns_of("edge on chip", *turnings), rows) +
           sizes_lines(*turnings, more) + "\n" + limits;
  }
  if (!cannot.empty()) text += "\ncannot be on chip alone\n" + cannot;
  return text;
}

std::string policies_text(const BlockVerdict& v) {
  if (v.policies.empty()) return {};
  std::vector<std::vector<std::string>> rows;
  std::string limits;
  bool more = false;
  for (const PolicyVerdict& p : v.policies) {
    rows.push_back(row_of(p.policy, p.gain, p.turnings));
    limits += wrap(fmt::format("{}: {}: {}", p.policy, p.limit.word, p.limit.why));
    more = more || several(p.turnings);
  }
  return "\n" +
         format_table(columns_of(("in the place of " + v.on).c_str(), v.policies[0].turnings),
                      rows) +
         sizes_lines(v.policies[0].turnings, more) +
         "\nthe largest tensor that still goes through memory, and why\n" + limits;
}

std::string csv_gain(const FusionGain& g) {
  const double gain = g.gain();
  return fmt::format("{},{:.3f},{:.3f},{:.4f},{:.4f},{:.4f}", g.verdict, to_us(g.without),
                     to_us(g.with), gain, gain * g.band.low, gain * g.band.high);
}

// Two sizes at most: M, or batch and context.
std::string csv_sizes(const std::vector<SizeTurning>& turnings, bool gains) {
  std::string text;
  for (const char* letter : {"M", "batch", "context"}) {
    text += ',';
    for (const SizeTurning& t : turnings) {
      if (t.letter != letter) continue;
      const auto& at = t.turning.at;
      text += at ? fmt::format("{} {}", t.turning.gains_above ? "from" : "below", *at)
                 : std::string(gains ? "all" : "none");
    }
  }
  return text;
}

}  // namespace

std::string verdict_text(const Selection& s, const BlockVerdict& v) {
  const std::string& model = s.model.title.empty() ? s.model.name : s.model.title;
  std::string text =
      wrap(fmt::format("{}, one block of {}: {}", model, s.model.layers, describe(s.workload))) +
      describe(s.gpu) + "\n" + fmt::format("on top of {}: {} µs", v.on, in_microseconds(v.time));
  if (v.base_time != v.time) {
    text += fmt::format(", {} µs as its edges alone", in_microseconds(v.base_time));
  }
  return text + "\n\n" + edges_text(v) + policies_text(v);
}

std::string verdict_csv(const Selection& s, const BlockVerdict& v) {
  std::string text =
      "model,gpu,phase,batch,seq,context,on,what,verdict,time_us_without,time_us_with,gain,"
      "gain_low,gain_high,gains_at_m,gains_at_batch,gains_at_context,limited_by,why\n";
  const Workload& w = s.workload;
  const std::string head =
      fmt::format("{},{},{},{},{},{},{},", csv_cell(s.model.name), csv_cell(s.gpu.name),
                  name_of(w.phase), w.batch, w.seq, w.context, v.on);
  for (const EdgeVerdict& e : v.edges) {
    text += head + csv_cell(edge_text(e.edge)) + ",";
    text += e.gain ? csv_gain(*e.gain) + csv_sizes(e.turnings, e.gain->gain() > 1)
                   : fmt::format("{},,,,,,,,", kCannot);
    text += fmt::format(",{},{}\n", e.limit.word, csv_cell(e.limit.why));
  }
  for (const PolicyVerdict& p : v.policies) {
    text += head + p.policy + "," + csv_gain(p.gain) + csv_sizes(p.turnings, p.gain.gain() > 1) +
            fmt::format(",{},{}\n", p.limit.word, csv_cell(p.limit.why));
  }
  return text;
}

}  // namespace fuseline
