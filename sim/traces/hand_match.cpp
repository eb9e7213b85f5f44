#include "sim/traces/hand_match.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "base/error.h"

namespace fuseline {

SpreadOfTimes spread_of(std::vector<double> seconds) {
  std::sort(seconds.begin(), seconds.end());
  const std::size_t n = seconds.size();
  const double median = n % 2 == 1 ? seconds[n / 2] : (seconds[n / 2 - 1] + seconds[n / 2]) / 2;
  return {Seconds(median), Seconds(seconds.front()), Seconds(seconds.back())};
}

void sum_kernels(MatchedTrace& out, std::size_t kernels) {
  const std::size_t repetitions = out.launches.empty() ? 0 : out.launches.front().each.size();
  out.kernels.assign(kernels, {});
  for (std::size_t k = 0; k < kernels; ++k) {
    MatchedPlanKernel& kernel = out.kernels[k];
    std::vector<double> seconds(repetitions, 0);
    LaunchCounters sum;
    bool counted = true;
    for (std::size_t i = 0; i < out.launches.size(); ++i) {
      if (out.launches[i].kernel != k) continue;
      ++kernel.launches;
      for (std::size_t r = 0; r < repetitions; ++r) seconds[r] += out.launches[i].each[r];
      if (const auto& c = out.launches[i].counters) {
        sum.hbm_read += c->hbm_read;
        sum.hbm_write += c->hbm_write;
        sum.l2 += c->l2;
      } else {
        counted = false;
      }
    }
    if (kernel.launches == 0) continue;
    kernel.time = spread_of(std::move(seconds));
    if (counted) kernel.counters = sum;
  }
}

void list_unmatched(MatchedTrace& out) {
  std::map<std::string, UnmatchedActivity> unmatched;
  for (const MatchedLaunch& l : out.launches) {
    if (l.kernel) continue;
    UnmatchedActivity& u = unmatched[l.name];
    u.name = l.name;
    ++u.launches;
    u.time += l.time.median;
  }
  std::erase_if(out.unmatched, [](const UnmatchedActivity& u) { return !u.is_memory; });
  for (auto& [name, u] : unmatched) out.unmatched.push_back(std::move(u));
  std::stable_sort(
      out.unmatched.begin(), out.unmatched.end(),
      [](const UnmatchedActivity& a, const UnmatchedActivity& b) { return a.time > b.time; });
}

void attribute_counters(MatchedTrace& out, const CandidatePlan& plan) {
  out.tensors.clear();
  std::map<std::int32_t, TensorTraffic> tensors;
  bool any = false;
  for (std::size_t k = 0; k < out.kernels.size(); ++k) {
    const KernelEstimate& estimate = plan.estimate.kernels[k];
    const std::optional<LaunchCounters>& counters = out.kernels[k].counters;
    if (!counters || estimate.requested.empty()) continue;
    any = true;
    double loaded = 0, stored = 0, asked = 0;
    for (const RequestedBytes& r : estimate.requested) {
      loaded += r.hbm_read.as_double();
      asked += r.loaded.as_double();
      stored += r.stored.as_double();
    }
    for (const RequestedBytes& r : estimate.requested) {
      TensorTraffic& t = tensors[r.tensor.index];
      t.tensor = plan.plan.graph.tensor(r.tensor).name;
      const double of_reads = loaded > 0  ? r.hbm_read.as_double() / loaded
                              : asked > 0 ? r.loaded.as_double() / asked
                                          : 0;
      const double of_writes = stored > 0 ? r.stored.as_double() / stored : 0;
      const auto part = [](Bytes bytes, double share) {
        return Bytes(std::llround(bytes.as_double() * share));
      };
      t.read += part(counters->hbm_read, of_reads);
      t.write += part(counters->hbm_write, of_writes);
      t.predicted_read += part(estimate.hbm_read, of_reads);
      t.predicted_write += part(estimate.hbm_write, of_writes);
    }
  }
  if (!any) return;
  for (auto& [id, t] : tensors) out.tensors.push_back(std::move(t));
}

MatchedTrace matched_by_hand(MatchedTrace trace, const std::vector<std::size_t>& launches,
                             std::optional<std::size_t> kernel, const CandidatePlan& plan) {
  FUSELINE_ASSERT(!kernel || *kernel < trace.kernels.size(), "a kernel of the plan");
  for (const std::size_t i : launches) {
    trace.launches.at(i).kernel = kernel;
    trace.launches[i].by = kernel ? MatchedBy::hand : MatchedBy::nothing;
  }
  sum_kernels(trace, trace.kernels.size());
  list_unmatched(trace);
  attribute_counters(trace, plan);
  return trace;
}

}  // namespace fuseline
