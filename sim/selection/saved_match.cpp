#include "sim/selection/saved_match.h"

#include <algorithm>
#include <functional>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "sim/selection/selection.h"

namespace fuseline {

namespace {

using Cases = std::vector<BlockCase>;

// One thing that a prediction and a measurement of the same block have in common.
struct MatchedPart {
  const char* field;
  std::function<std::string(const BlockCase&)> text;
};

const std::vector<MatchedPart>& parts() {
  static const std::vector<MatchedPart> all = {
      {"model", [](const BlockCase& c) { return c.model; }},
      {"phase", [](const BlockCase& c) { return std::string(name_of(c.workload.phase)); }},
      {"batch", [](const BlockCase& c) { return std::to_string(c.workload.batch); }},
      {"seq", [](const BlockCase& c) { return std::to_string(c.workload.seq); }},
      {"context", [](const BlockCase& c) { return std::to_string(c.workload.kv_tokens()); }},
      {"dtype", [](const BlockCase& c) { return std::string(name_of(c.workload.dtype)); }},
      {"weights", [](const BlockCase& c) { return weights_text(c.workload); }},
      {"activations", [](const BlockCase& c) { return activations_text(c.workload); }},
      {"kv", [](const BlockCase& c) { return cache_text(c.workload); }}};
  return all;
}

std::string distinct(const Cases& cases, const MatchedPart& part) {
  std::vector<std::string> values;
  for (const BlockCase& c : cases) {
    if (std::find(values.begin(), values.end(), part.text(c)) == values.end()) {
      values.push_back(part.text(c));
    }
  }
  return fmt::format("{}", fmt::join(values, ", "));
}

Cases measured_cases(const Measurements& measurements) {
  Cases cases;
  for (const MeasuredBlock& b : measurements.blocks) cases.push_back(b.block);
  for (const MeasuredTrace& t : measurements.traces) cases.push_back(t.block);
  return cases;
}

void check_gpu(const SavedPredictions& saved, const Measurements& measurements,
               const std::optional<std::string>& option, const std::string& path) {
  if (option) {
    const std::string name = load_gpu_option(option).name;
    if (name != saved.gpu) {
      throw InputError({.file = kCommandLine,
                        .field = "--gpu",
                        .value = *option,
                        .message = fmt::format("{} holds a prediction of another GPU", path),
                        .allowed = saved.gpu});
    }
  }
  if (measurements.meta.gpu.empty()) return;
  const std::string measured = load_gpu(measurements.meta.gpu).name;
  if (saved.gpu == measured) return;
  throw InputError(
      {.file = path,
       .field = "gpu",
       .value = saved.gpu,
       .message = fmt::format("the prediction is of another GPU than {}", measurements.path),
       .allowed = measured});
}

}  // namespace

void check_match(const SavedPredictions& saved, const Measurements& measurements,
                 const std::optional<std::string>& gpu_option, const std::string& path) {
  check_gpu(saved, measurements, gpu_option, path);
  if (saved.list.empty()) return;
  const BlockCase& block = saved.list.front().block;
  Cases left = measured_cases(measurements);
  const auto refuse = [&](const char* field, const std::string& value, const std::string& allowed) {
    throw InputError({.file = path,
                      .field = field,
                      .value = value,
                      .message = fmt::format("no such block was measured in {}", measurements.path),
                      .allowed = allowed});
  };
  for (const MatchedPart& part : parts()) {
    const Cases before = left;
    std::erase_if(left, [&](const BlockCase& c) { return part.text(c) != part.text(block); });
    if (left.empty()) refuse(part.field, part.text(block), distinct(before, part));
  }
  const MatchedPart execution = {"policy", [](const BlockCase& c) { return c.execution; }};
  std::vector<std::string> predicted;
  for (const SavedPrediction& p : saved.list) {
    predicted.push_back(p.block.execution);
    const auto same = [&](const BlockCase& c) { return c.execution == p.block.execution; };
    if (std::any_of(left.begin(), left.end(), same)) return;
  }
  refuse("policy", fmt::format("{}", fmt::join(predicted, ", ")), distinct(left, execution));
}

}  // namespace fuseline
