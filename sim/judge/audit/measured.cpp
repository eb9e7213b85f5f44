#include "sim/judge/audit/measured.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <tuple>

#include <fmt/format.h>

#include "base/data_dir.h"
#include "base/lists.h"
#include "base/path_kind.h"
#include "sim/judge/audit/setting.h"

namespace fuseline::audit {

namespace {

bool same_work(const BlockCase& a, const BlockCase& b) {
  BlockCase renamed = b;
  renamed.execution = a.execution;
  return same_case(a, renamed);
}

using Pairs = std::map<std::tuple<std::string, std::string, std::string>, MeasuredRatio>;

void add(const Measurements& from, const MeasuredBlock& before, const MeasuredBlock& after,
         bool as_claimed, Pairs& pairs) {
  const std::string &gpu = from.meta.gpu, &a = before.block.execution, &b = after.block.execution;
  const double speed_up = before.time.median / after.time.median;
  const auto [entry, is_new] =
      pairs.try_emplace({gpu, a, b}, MeasuredRatio{gpu, a, b, as_claimed, {speed_up, speed_up}, 0});
  MeasuredRatio& ratio = entry->second;
  ++ratio.cases;
  ratio.speed_up.least = std::min(ratio.speed_up.least, speed_up);
  ratio.speed_up.most = std::max(ratio.speed_up.most, speed_up);
}

}  // namespace

std::vector<MeasuredRatio> measured_ratios(const Claim& claim,
                                           const std::vector<Measurements>& measurements) {
  if (!compares(claim.kind) || !claim.sites.empty()) return {};
  const Choices& c = claim.choices;
  Pairs claimed, other;
  for (const Measurements& all : measurements) {
    for (const MeasuredBlock& before : all.blocks) {
      const BlockCase& what = before.block;
      if (!holds(c.models, what.model) || !holds(c.phases, what.workload.phase) ||
          !holds(c.baselines, what.execution)) {
        continue;
      }
      for (const MeasuredBlock& after : all.blocks) {
        if (after.block.execution == what.execution || !same_work(what, after.block)) continue;
        if (holds(c.policies, after.block.execution)) {
          add(all, before, after, true, claimed);
        } else if (before.time.median >= after.time.median) {
          add(all, before, after, false, other);
        }
      }
    }
  }
  std::vector<MeasuredRatio> out;
  for (auto& [names, ratio] : claimed) out.push_back(ratio);
  if (!claimed.empty()) return out;
  for (auto& [names, ratio] : other) {
    if (out.empty() || out.back().gpu != ratio.gpu) {
      out.push_back(ratio);
    } else if (ratio.speed_up.most > out.back().speed_up.most) {
      out.back() = ratio;
    }
  }
  return out;
}

std::string describe(const MeasuredRatio& r) {
  const std::string least = fmt::format("{:.2f}", r.speed_up.least);
  const std::string most = fmt::format("{:.2f}x", r.speed_up.most);
  return fmt::format("{} to {} {} in {} block{} on {}", r.from, r.to,
                     least + "x" == most ? most : least + " to " + most, r.cases,
                     r.cases == 1 ? "" : "s", r.gpu);
}

std::vector<Measurements> shipped_measurements() {
  const std::filesystem::path all = data_dir() / "measurements";
  std::vector<Measurements> out;
  if (kind_of_path(all) == PathKind::missing) return out;
  for (const std::filesystem::path& folder : folder_entries(all)) {
    if (kind_of_path(folder / "block.csv") == PathKind::missing) continue;
    out.push_back(load_measurements(folder.string()));
  }
  return out;
}

}  // namespace fuseline::audit
