#include "sim/search/call_sizes.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "base/error.h"

namespace fuseline {

namespace {

constexpr double kLongest = 0.01;  // of the calls: the group of the longest ones

struct WeightedSize {
  double size = 0, weight = 0;
};

// Where a group ends, as a share of all calls.
std::vector<double> group_ends(std::size_t groups) {
  if (groups < 3) return groups == 2 ? std::vector<double>{0.5, 1} : std::vector<double>{1};
  std::vector<double> ends;
  for (std::size_t g = 1; g + 1 < groups; ++g)
    ends.push_back(static_cast<double>(g) / static_cast<double>(groups - 1));
  ends.push_back(1 - kLongest);
  ends.push_back(1);
  return ends;
}

// Size and weight of each group; groups with equal sizes become one.
std::map<std::int64_t, double> gathered(std::vector<WeightedSize> calls, std::size_t groups) {
  std::map<std::int64_t, double> own;
  double all = 0;
  for (const WeightedSize& c : calls) {
    own[std::llround(c.size)] += c.weight;
    all += c.weight;
  }
  if (own.size() <= groups) return own;
  std::ranges::sort(calls, {}, &WeightedSize::size);
  std::map<std::int64_t, double> out;
  double done = 0;
  std::size_t at = 0;
  for (const double end : group_ends(groups)) {
    double sum = 0, weight = 0;
    // A call that lies across the end is parted between both groups.
    while (at < calls.size() && weight < end * all - done) {
      const double take = std::min(calls[at].weight, end * all - done - weight);
      sum += take * calls[at].size;
      weight += take;
      calls[at].weight -= take;
      if (calls[at].weight > 1e-12 * all) break;
      ++at;
    }
    done += weight;
    if (weight > 1e-9 * all) out[std::max<std::int64_t>(1, std::llround(sum / weight))] += weight;
  }
  return out;
}

}  // namespace

CallSizes call_sizes(const Distribution& d, const Workload& work, std::size_t sizes) {
  CallSizes out;
  if (!d.shapes.empty()) {
    if (d.shapes.front().mixed() && work.phase != Phase::decode)
      throw InputError(
          {.file = "command line",
           .field = "--phase",
           .value = name_of(work.phase),
           .message = "does not go with calls whose sequences differ: each has a cache",
           .allowed = "decode"});
    out.shapes = d.shapes;
    std::vector<double> weights;
    for (const ShapeWeight& s : d.shapes) weights.push_back(s.weight);
    out.counts = counts_of(std::move(weights));
  } else {
    const bool decodes = work.phase == Phase::decode, trains = work.phase == Phase::train;
    std::vector<WeightedSize> calls;
    double requests = 0, all = 0;
    for (const RequestWeight& r : d.requests) {
      const auto prompt = static_cast<double>(r.prompt),
                 generated = static_cast<double>(r.generated);
      const auto at_once = static_cast<double>(work.seq);
      requests += r.weight;
      WeightedSize one{.size = trains ? prompt + generated : prompt, .weight = r.weight};
      // From the first new token to the last one the cache grows from prompt + 1 to prompt +
      // generated: its mean is in the middle, and never shorter than the new tokens.
      if (decodes)
        one = {.size = std::max(at_once, prompt + (generated + 1) / 2),
               .weight = r.weight * generated / at_once};
      if (one.weight > 0) calls.push_back(one);
      all += std::max(0.0, one.weight);
    }
    if (calls.empty())
      throw InputError({.file = d.name,
                        .field = "generated",
                        .value = "0",
                        .message = "on every line, so that nothing is ever decoded",
                        .allowed = "a number above 0 on some line, or another phase"});
    for (const auto& [size, weight] : gathered(std::move(calls), sizes))
      out.shapes.push_back({.batch = work.batch,
                            .tokens = decodes ? work.seq : size,
                            .context = decodes ? size : 0,
                            .weight = weight});
    out.counts = decodes ? d.contexts : trains ? d.sums : d.prompts;
    out.calls = d.counted * all / requests / static_cast<double>(work.batch);
  }
  std::ranges::stable_sort(out.shapes, {}, [](const ShapeWeight& s) {
    std::int64_t cached = s.mixed() ? 0 : s.batch * s.context;
    for (const SequenceGroup& g : s.sequences) cached += g.sequences * g.context;
    return std::tuple(s.batch * s.tokens, cached, s.batch);
  });
  return out;
}

}  // namespace fuseline
