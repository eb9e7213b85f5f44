#include "sim/gpu/standing.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"
#include "base/toml_file.h"
#include "model/policy.h"
#include "sim/gpu/provenance.h"

namespace fuseline {

namespace {

constexpr double kPercent = 0.01;
constexpr std::int64_t kMostBlocks = 1'000'000;

// { value = 3.1, unit = "%" }
double read_error(const TomlTable& check, const char* key) {
  const TomlTable quantity = check.table(key);
  quantity.refuse_other_keys({"value", "unit"});
  static_cast<void>(quantity.word("unit", {"%"}));
  return quantity.real("value", {0, 1e4}) * kPercent;
}

std::string listed(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i > 0) text += i + 1 == names.size() ? " and " : ", ";
    text += names[i];
  }
  return text;
}

}  // namespace

Standing standing_of(const Gpu& gpu) {
  if (gpu.calibrated) return Standing::fitted;
  return gpu.checks.empty() ? Standing::uncalibrated : Standing::checked;
}

const char* name_of(Standing standing) {
  switch (standing) {
    case Standing::fitted:
      return "fitted";
    case Standing::checked:
      return "checked";
    case Standing::uncalibrated:
      return "uncalibrated";
  }
  return "?";
}

std::string describe(const GpuCheck& c) {
  return fmt::format("{} block{} of {}: mean error {:.1f} %, worst {:.1f} %", c.blocks,
                     c.blocks == 1 ? "" : "s", listed(c.policies), c.mean_error / kPercent,
                     c.worst_error / kPercent);
}

std::string standing_text(const Gpu& gpu) {
  switch (standing_of(gpu)) {
    case Standing::fitted:
      return {};
    case Standing::checked: {
      std::string text =
          "CHECKED: no constant was fitted on this GPU, those of a related GPU stand in; predicted "
          "and then measured on it: ";
      for (std::size_t i = 0; i < gpu.checks.size(); ++i) {
        text += (i > 0 ? "; " : "") + describe(gpu.checks[i]);
      }
      return text +
             fmt::format(" ({}, {})", gpu.checks.front().measurements, gpu.checks.front().date);
    }
    case Standing::uncalibrated:
      break;
  }
  return "UNCALIBRATED: no constant of this GPU was fitted on the hardware; datasheet numbers and "
         "constants of a related GPU stand in";
}

std::vector<GpuCheck> read_checks(const TomlTable& table) {
  std::vector<GpuCheck> checks;
  std::vector<std::string> names;
  for (const PolicyInfo& p : policies()) names.push_back(p.name);
  for (const TomlTable& entry : table.tables("checked")) {
    entry.refuse_other_keys({"measurements", "policies", "looked_at", "blocks", "mean_error",
                             "worst_error", "source", "date"});
    GpuCheck check;
    check.measurements = entry.text("measurements");
    check.policies = entry.words("policies", names);
    if (entry.has("looked_at")) check.looked_at = entry.words("looked_at", names);
    for (const std::string& policy : check.looked_at) {
      if (std::count(check.policies.begin(), check.policies.end(), policy) == 0) continue;
      entry.fail("looked_at", "names " + policy + ", whose blocks are a check",
                 "policies that `policies` does not name");
    }
    check.blocks = entry.whole("blocks", {1, kMostBlocks});
    check.mean_error = read_error(entry, "mean_error");
    check.worst_error = read_error(entry, "worst_error");
    if (check.mean_error > check.worst_error) {
      entry.table("mean_error").fail("value", "is above worst_error", "at most worst_error");
    }
    check.source = entry.text("source");
    check.date = entry.text("date");
    if (!is_date(check.date)) {
      entry.fail("date", "is not a date", "\"2024\", \"2024-03\" or \"2024-03-18\"");
    }
    checks.push_back(std::move(check));
  }
  return checks;
}

}  // namespace fuseline
