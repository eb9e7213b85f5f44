#include "cli/predict_sequences.h"

#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/format.h"
#include "base/json_text.h"
#include "cli/options.h"
#include "cli/predict_table.h"
#include "cli/table.h"
#include "sim/block/mixed_batch.h"

namespace fuseline {

namespace {

constexpr std::int64_t kLargestPage = 1 << 20;  // tokens

[[noreturn]] void refuse_beside(const std::string& option, const std::string& value,
                                const std::string& message) {
  throw InputError({.file = kCommandLine,
                    .field = option,
                    .value = value,
                    .message = message,
                    .allowed = "one of the two"});
}

std::string part_row_name(const MixedCall& call, const std::vector<SequenceGroup>& groups,
                          std::size_t place) {
  if (place == 0) return fmt::format("all but attention, {} rows", grouped(rows_of(groups)));
  if (place <= call.attention.size()) return "attention of " + describe(groups[place - 1]);
  return "";
}

std::vector<std::string> row_of(const std::string& policy, const std::string& what,
                                const CallPart& part) {
  return {policy, what, in_microseconds(part.time), megabytes(part.hbm),
          std::to_string(part.launches)};
}

std::string table_of(const std::vector<MixedCall>& calls, const std::vector<SequenceGroup>& groups,
                     const std::optional<std::int64_t>& page) {
  std::vector<std::vector<std::string>> rows;
  for (const MixedCall& call : calls) {
    rows.push_back(row_of(call.policy, part_row_name(call, groups, 0), call.rows));
    for (std::size_t i = 0; i < groups.size(); ++i)
      rows.push_back(row_of("", part_row_name(call, groups, i + 1), call.attention[i]));
    if (page)
      rows.push_back(row_of("", fmt::format("tables of pages of {}", grouped(*page)), call.tables));
    rows.push_back(row_of("", "the call", call.whole()));
    if (groups.size() > 1) rows.push_back(row_of("", "in a call for each", call.apart));
    if (page) rows.push_back(row_of("", "a copy of the caches would add", call.gathering));
  }
  return format_table(
      {{"policy", Align::left}, {"part", Align::left}, {"time µs"}, {"HBM MB"}, {"launches"}},
      rows);
}

nlohmann::ordered_json json_part(const CallPart& part) {
  return {
      {"time_us", to_us(part.time)}, {"hbm_bytes", part.hbm.value()}, {"launches", part.launches}};
}

std::string json_of(const std::vector<MixedCall>& calls, const std::vector<SequenceGroup>& groups,
                    const std::optional<std::int64_t>& page) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array(),
                         policies = nlohmann::ordered_json::array();
  for (const SequenceGroup& g : groups)
    list.push_back({{"sequences", g.sequences}, {"tokens", g.tokens}, {"context", g.context}});
  for (const MixedCall& call : calls) {
    nlohmann::ordered_json attention = nlohmann::ordered_json::array();
    for (const CallPart& part : call.attention) attention.push_back(json_part(part));
    nlohmann::ordered_json one = {{"policy", call.policy},
                                  {"call", json_part(call.whole())},
                                  {"rows", json_part(call.rows)},
                                  {"attention", std::move(attention)},
                                  {"apart", json_part(call.apart)}};
    if (page) {
      one["page_tables"] = json_part(call.tables);
      one["gathering"] = json_part(call.gathering);
    }
    policies.push_back(std::move(one));
  }
  nlohmann::ordered_json out = {{"schema", "fuseline.sequences/1"},
                                {"sequences", std::move(list)},
                                {"policies", std::move(policies)}};
  if (page) out["page_tokens"] = *page;
  return json_text(out);
}

}  // namespace

void leave_sizes_to_sequences(const SequenceWords& words, SelectionWords& selection) {
  if (!words.sequences) {
    if (words.page)
      throw InputError({.file = kCommandLine,
                        .field = "--page",
                        .value = *words.page,
                        .message = "is about the caches of sequences",
                        .allowed = "with --sequences"});
    return;
  }
  for (const auto& [option, value] : {std::pair{"--phase", &selection.phase},
                                      {"--batch", &selection.batch},
                                      {"--seq", &selection.seq},
                                      {"--context", &selection.context},
                                      {"--layers", &selection.layers},
                                      {"--plan", &selection.plan}})
    if (*value) refuse_beside(option, **value, "stands beside --sequences");
  selection.phase = "decode";
  selection.batch = selection.seq = "1";
  selection.context = "1";
}

std::string predict_sequences(const SequenceWords& words, const Selection& selection,
                              const std::string& format) {
  if (selection.fidelity != Fidelity::hierarchy)
    refuse_beside("--fidelity", "roofline", "stands beside --sequences");
  const std::vector<SequenceGroup> groups = parse_sequences("--sequences", *words.sequences);
  std::optional<std::int64_t> page;
  if (words.page) page = parse_whole_number("--page", *words.page, 1, kLargestPage);
  std::vector<MixedCall> calls;
  for (const std::string& policy : selection.policies)
    calls.push_back(predict_mixed(policy, selection.model, selection.gpu, selection.workload,
                                  groups, page, selection.launching));
  if (format == "json") return json_of(calls, groups, page);
  const std::string& model =
      selection.model.title.empty() ? selection.model.name : selection.model.title;
  std::int64_t sequences = 0;
  for (const SequenceGroup& g : groups) sequences += g.sequences;
  return fmt::format("{}, one block of {}: {} new tokens of {} sequences, {}\n{}\n", model,
                     selection.model.layers, grouped(rows_of(groups)), grouped(sequences),
                     name_of(selection.workload.dtype), describe(selection.gpu)) +
         table_of(calls, groups, page) +
         wrap(fmt::format("attention of {}: sequences, new tokens of each, and tokens in each "
                          "one's cache with them; each group in launches of its own; not compared "
                          "with measurements",
                          describe(groups.front())));
}

}  // namespace fuseline
