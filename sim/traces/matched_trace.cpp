#include "sim/traces/matched_trace.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>
#include <set>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "sim/traces/hand_match.h"
#include "sim/traces/repeats.h"

namespace fuseline {

namespace {

// A block's launches, for each kernel of its plan; a framework may launch eight for one.
constexpr std::size_t kLaunchesAKernel = 8;
constexpr std::size_t kMoreLaunches = 64;
constexpr std::size_t kMostCuts = 12;         // lists that are tried
constexpr std::size_t kMostRotations = 96;    // places where such a list may begin
constexpr std::size_t kLongestSingle = 4096;  // launches of a trace that repeats nothing
constexpr double kLeastCover = 0.5;           // of the launches, by lists that repeat

Bytes median_bytes(std::vector<std::int64_t> bytes) {
  const auto middle = bytes.begin() + static_cast<std::ptrdiff_t>(bytes.size() / 2);
  std::nth_element(bytes.begin(), middle, bytes.end());
  return Bytes(*middle);
}

std::vector<PlannedKernel> planned_kernels(const CandidatePlan& candidate) {
  std::vector<PlannedKernel> out;
  for (const KernelEstimate& k : candidate.estimate.kernels) {
    PlannedKernel planned{.kind = k.kind, .operators = {k.name}, .time = k.time};
    for (const std::string& op : k.operators) {
      planned.operators.push_back(op);
      if (const auto id = candidate.plan.graph.find_op(op))
        planned.operators.emplace_back(fuseline::name_of(candidate.plan.graph.op(*id).kind));
    }
    for (const Kernel& kernel : candidate.plan.kernels)
      if (kernel.name == k.name)
        planned.generated = kernel.implementation == Implementation::generated_pointwise ||
                            kernel.implementation == Implementation::generated_reduction ||
                            kernel.implementation == Implementation::generated_sort;
    out.push_back(std::move(planned));
  }
  return out;
}

// The kernels of one GPU: the one that worked longest.
struct GpuKernels {
  std::int32_t device = 0;
  std::vector<const Launch*> kernels, memory;  // memory: copies and fills
};

GpuKernels busiest_gpu(const LaunchList& list, std::vector<std::string>& notes) {
  std::map<std::int32_t, double> time;
  for (const Launch& l : list.launches)
    if (l.activity == Activity::kernel) time[l.device] += l.duration.value();
  GpuKernels out;
  out.device = std::max_element(time.begin(), time.end(), [](const auto& a, const auto& b) {
                 return a.second < b.second;
               })->first;
  if (time.size() > 1)
    notes.push_back(
        fmt::format("the trace is of {} GPUs: device {}, which worked longest, is taken",
                    time.size(), out.device));
  for (const Launch& l : list.launches) {
    if (l.device != out.device) continue;
    (l.activity == Activity::kernel ? out.kernels : out.memory).push_back(&l);
  }
  return out;
}

// A list of launches that may be the block, with the time of each.
struct Cut {
  std::vector<std::uint32_t> list;
  std::vector<SeenLaunch> seen;
};

std::vector<std::uint32_t> numbers_of(const std::vector<const Launch*>& kernels, bool with_shape) {
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> known;
  std::vector<std::uint32_t> out;
  for (const Launch* l : kernels) {
    const auto key = std::pair(l->name, with_shape ? l->shape : 0U);
    out.push_back(known.try_emplace(key, static_cast<std::uint32_t>(known.size())).first->second);
  }
  return out;
}

// `count` launches from `begin`, the times over `times` repetitions behind each other.
Cut cut_at(const LaunchList& list, const std::vector<const Launch*>& kernels,
           std::span<const std::uint32_t> numbers, std::size_t begin, std::size_t count,
           std::size_t times) {
  Cut cut;
  for (std::size_t i = 0; i < count; ++i) {
    std::vector<double> seconds;
    for (std::size_t t = 0; t < times; ++t)
      seconds.push_back(kernels[begin + t * count + i]->duration.value());
    cut.list.push_back(numbers[begin + i]);
    cut.seen.push_back({.name = list.names[kernels[begin + i]->name],
                        .time = spread_of(std::move(seconds)).median});
  }
  return cut;
}

struct Choice {
  std::size_t plan = 0;
  Cut cut;
  KernelAlignment alignment;
  double score = -std::numeric_limits<double>::infinity();
};

// The alignment's points for a launch or a kernel: lists of different lengths compare.
double relative(const KernelAlignment& alignment, std::size_t launches, std::size_t kernels) {
  return alignment.score / static_cast<double>(launches + kernels);
}

// Plans that are the same, as of eager and composed where no norm and no RoPE is written out, get
// the same points; the first one stays.
constexpr double kEqualPoints = 1e-9;

void offer(Choice& best, const Cut& cut, std::size_t plan,
           const std::vector<PlannedKernel>& planned) {
  KernelAlignment alignment = align_launches(cut.seen, planned);
  const double score = relative(alignment, cut.seen.size(), planned.size());
  if (score > best.score + kEqualPoints) best = {plan, cut, std::move(alignment), score};
}

// Where a repeated list begins is not known: every place is tried, or, of long lists, those whose
// launch is of the kind of the plan's first kernel.
void offer_rotations(Choice& best, Cut cut, std::size_t plan,
                     const std::vector<PlannedKernel>& planned) {
  std::size_t tried = 0;
  const std::size_t length = cut.list.size();
  for (std::size_t r = 0; r < length && tried < kMostRotations; ++r) {
    const bool short_list = length <= kMostRotations;
    if (short_list || kind_of_launch(cut.seen.front().name) == planned.front().kind) {
      offer(best, cut, plan, planned);
      ++tried;
    }
    std::rotate(cut.list.begin(), cut.list.begin() + 1, cut.list.end());
    std::rotate(cut.seen.begin(), cut.seen.begin() + 1, cut.seen.end());
  }
}

// Seconds in which at least one of them ran, and from the first begin to the last end.
std::pair<double, double> busy_and_span(std::vector<const Launch*> launches) {
  std::sort(launches.begin(), launches.end(),
            [](const Launch* a, const Launch* b) { return a->begin < b->begin; });
  double busy = 0;
  double end = -std::numeric_limits<double>::infinity();
  for (const Launch* l : launches) {
    const double from = std::max(end, l->begin.value()), to = (l->begin + l->duration).value();
    if (to > from) busy += to - from;
    end = std::max(end, to);
  }
  return {busy, end - launches.front()->begin.value()};
}

std::optional<LaunchCounters> median_counters(const LaunchList& list,
                                              const std::vector<const Launch*>& launches) {
  std::vector<std::int64_t> read, write, l2;
  for (const Launch* l : launches) {
    if (l->counters < 0) return std::nullopt;
    const LaunchCounters& c = list.counters[static_cast<std::size_t>(l->counters)];
    read.push_back(c.hbm_read.value());
    write.push_back(c.hbm_write.value());
    l2.push_back(c.l2.value());
  }
  return LaunchCounters{median_bytes(read), median_bytes(write), median_bytes(l2)};
}

// Fills what one block took, from every place where its list stands.
void measure(MatchedTrace& out, const LaunchList& list, const GpuKernels& gpu,
             const std::vector<std::size_t>& places, const Choice& choice, std::size_t kernels) {
  const std::size_t length = choice.cut.list.size();
  for (std::size_t i = 0; i < length; ++i) {
    std::vector<const Launch*> same;
    std::vector<double> seconds;
    for (const std::size_t place : places) {
      same.push_back(gpu.kernels[place + i]);
      seconds.push_back(same.back()->duration.value());
    }
    const LaunchMatch& match = choice.alignment.launches[i];
    out.launches.push_back({.name = list.names[same.front()->name],
                            .shape = list.shapes[same.front()->shape],
                            .each = seconds,
                            .time = spread_of(seconds),
                            .counters = median_counters(list, same),
                            .kernel = match.planned,
                            .by = match.by});
  }
  sum_kernels(out, kernels);
}

// Copies and fills stand between kernels and are no kernels; what of them began while a repetition
// ran is its.
void measure_whole(MatchedTrace& out, const LaunchList& list, const GpuKernels& gpu,
                   const std::vector<std::size_t>& places, std::size_t length) {
  std::vector<double> busy, spans;
  std::map<std::string, std::pair<std::size_t, double>> memory;
  std::size_t next = 0;
  double inside = 0;
  for (const std::size_t place : places) {
    std::vector<const Launch*> block(
        gpu.kernels.begin() + static_cast<std::ptrdiff_t>(place),
        gpu.kernels.begin() + static_cast<std::ptrdiff_t>(place + length));
    for (const Launch* l : block) inside += l->duration.value();
    const Seconds from = block.front()->begin, to = block.back()->begin;
    while (next < gpu.memory.size() && gpu.memory[next]->begin < from) ++next;
    for (; next < gpu.memory.size() && gpu.memory[next]->begin < to; ++next) {
      auto& [count, seconds] = memory[list.names[gpu.memory[next]->name]];
      ++count;
      seconds += gpu.memory[next]->duration.value();
      inside += gpu.memory[next]->duration.value();
      block.push_back(gpu.memory[next]);
    }
    const auto [one_busy, one_span] = busy_and_span(std::move(block));
    busy.push_back(one_busy);
    spans.push_back(one_span);
  }
  out.busy = spread_of(std::move(busy));
  out.span = spread_of(std::move(spans));
  for (const auto& group : {gpu.kernels, gpu.memory})
    for (const Launch* l : group) out.whole += l->duration;
  out.elsewhere = Seconds(std::max(0.0, out.whole.value() - inside));

  const auto times = static_cast<double>(places.size());
  for (const auto& [name, sum] : memory) {
    const auto launches = static_cast<double>(sum.first) / times;
    out.unmatched.push_back(
        {name, static_cast<std::size_t>(std::ceil(launches)), Seconds(sum.second / times), true});
  }
  list_unmatched(out);
}

}  // namespace

Seconds MatchedTrace::matched() const {
  Seconds sum;
  for (const MatchedPlanKernel& k : kernels) sum += k.time.median;
  return sum;
}

MatchedTrace match_trace(const LaunchList& list, const std::vector<CandidatePlan>& candidates,
                         const std::function<void(const std::string&, double)>& progress) {
  FUSELINE_ASSERT(!candidates.empty(), "a trace is matched with at least one plan");
  MatchedTrace out;
  const GpuKernels gpu = busiest_gpu(list, out.notes);
  const std::size_t count = gpu.kernels.size();
  std::vector<std::uint32_t> numbers = numbers_of(gpu.kernels, true);

  std::vector<std::vector<PlannedKernel>> planned;
  std::size_t most_kernels = 0;
  for (const CandidatePlan& candidate : candidates) {
    planned.push_back(planned_kernels(candidate));
    most_kernels = std::max(most_kernels, planned.back().size());
  }
  const std::size_t longest = kLaunchesAKernel * most_kernels + kMoreLaunches;
  std::vector<Repeat> repeats = find_repeats(numbers, longest, kMostCuts);
  const auto covered = [&] {
    return repeats.empty()
               ? 0.0
               : static_cast<double>(repeats.front().covered) / static_cast<double>(count);
  };
  if (covered() < kLeastCover) {
    // The grid of attention grows with the cache, so that launches of equal names differ.
    std::vector<std::uint32_t> by_name = numbers_of(gpu.kernels, false);
    std::vector<Repeat> without_shapes = find_repeats(by_name, longest, kMostCuts);
    if (!without_shapes.empty() &&
        (repeats.empty() || without_shapes.front().covered > repeats.front().covered)) {
      repeats = std::move(without_shapes);
      numbers = std::move(by_name);
    }
  }

  Choice best;
  for (std::size_t c = 0; c < candidates.size(); ++c) {
    if (progress)
      progress(candidates[c].policy,
               static_cast<double>(c) / static_cast<double>(candidates.size()));
    if (planned[c].empty()) continue;
    for (const Repeat& r : repeats)
      offer_rotations(best, cut_at(list, gpu.kernels, numbers, r.begin, r.length, r.run / r.length),
                      c, planned[c]);
    if (count <= longest || repeats.empty()) {
      const std::size_t single = std::min(count, kLongestSingle);
      offer(best, cut_at(list, gpu.kernels, numbers, 0, single, 1), c, planned[c]);
    }
  }
  if (repeats.empty() && count > kLongestSingle)
    out.notes.push_back(
        fmt::format("nothing in the trace repeats: the first {} of its {} launches are looked at",
                    kLongestSingle, count));

  const CandidatePlan& plan = candidates[best.plan];
  out.policy = plan.policy;
  const std::vector<std::size_t> places = occurrences(numbers, best.cut.list);
  out.repetitions = places.size();
  if (const auto device = list.devices.find(gpu.device); device != list.devices.end())
    out.device = device->second;
  measure(out, list, gpu, places, best, planned[best.plan].size());
  measure_whole(out, list, gpu, places, best.cut.list.size());
  attribute_counters(out, plan);

  std::set<std::int64_t> streams;
  for (const std::size_t i : places)
    for (std::size_t k = 0; k < best.cut.list.size(); ++k)
      streams.insert(gpu.kernels[i + k]->stream);
  if (streams.size() > 1 && list.in_place)
    out.notes.push_back(fmt::format(
        "the block ran on {} streams: kernels may overlap, and their order is that of their begin",
        streams.size()));
  if (list.rounded)
    out.notes.emplace_back(
        "bytes are rounded: they were printed in larger units (ncu --print-units base prints all "
        "digits)");
  return out;
}

MeasuredTrace measured_trace(const MatchedTrace& trace, const LaunchList& list,
                             const CandidatePlan& plan, const BlockCase& block) {
  constexpr std::size_t longest_name = 90;  // as in the shipped tables
  MeasuredTrace out{.block = block, .kernels = {}};
  std::set<std::size_t> begun;  // kernels of which a launch was seen
  for (const MatchedLaunch& l : trace.launches) {
    const bool further = l.kernel && !begun.insert(*l.kernel).second && l.by == MatchedBy::hand;
    if (l.time.median <= Seconds(0)) continue;  // too short for the profiler's clock
    MeasuredKernel kernel{.site = {},
                          .kernel = l.name,
                          .time = l.time.median,
                          .hbm_read = {},
                          .hbm_write = {},
                          .l2 = {},
                          .grid = l.shape.grid,
                          .block = l.shape.block};
    std::size_t end = std::min(kernel.kernel.size(), longest_name);
    if (end < kernel.kernel.size())
      while (end > 0 && (static_cast<unsigned char>(kernel.kernel[end]) & 0xC0) == 0x80) --end;
    kernel.kernel.resize(end);
    if (l.counters) {
      kernel.hbm_read = l.counters->hbm_read;
      kernel.hbm_write = l.counters->hbm_write;
      kernel.l2 = l.counters->l2;
    }
    if (list.in_place) kernel.time_in_graph = l.time.median;
    kernel.recorded_kind = kind_of_launch(l.name);
    if (l.kernel) {
      const KernelEstimate& planned = plan.estimate.kernels[*l.kernel];
      // What compare pairs by; a further launch of a kernel is no second one of its kind.
      if (l.by != MatchedBy::part && !further) kernel.recorded_kind = planned.kind;
      // The second kernel of a library's call has no operators: it is of the step before it.
      std::size_t owner = *l.kernel;
      while (owner > 0 && plan.estimate.kernels[owner].operators.empty()) --owner;
      std::set<std::string> sites;
      for (const std::string& op : plan.estimate.kernels[owner].operators)
        if (const auto id = plan.plan.graph.find_op(op)) sites.insert(plan.plan.graph.op(*id).site);
      if (sites.size() == 1) kernel.site = *sites.begin();
    }
    out.kernels.push_back(std::move(kernel));
  }
  return out;
}

std::optional<MeasuredBlock> measured_block(const MatchedTrace& trace, const LaunchList& list,
                                            const BlockCase& block) {
  if (!list.in_place || trace.busy.median <= Seconds(0)) return std::nullopt;
  return MeasuredBlock{.block = block, .time = trace.busy, .timer = "trace"};
}

}  // namespace fuseline
