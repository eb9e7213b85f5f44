#if FUSELINE_HAS_CUDA

#include "cuda/run/timing.h"

#include <algorithm>

#include "base/error.h"

namespace fuseline::cuda {

LaunchGraph capture(Stream& stream, const std::function<void(Stream&)>& work) {
  stream.begin_capture();
  work(stream);
  return stream.end_capture();
}

std::vector<Seconds> replay_times(const Device& device, Stream& stream, const LaunchGraph& graph,
                                  int warm_ups, int replays, const std::string& doing) {
  for (int i = 0; i < warm_ups; ++i) stream.launch(graph);
  std::vector<Event> marks;
  for (int i = 0; i <= replays; ++i) marks.push_back(device.event());
  marks.front().record(stream);
  for (int i = 1; i <= replays; ++i) {
    stream.launch(graph);
    marks[static_cast<std::size_t>(i)].record(stream);
  }
  stream.synchronize(doing);
  std::vector<Seconds> times;
  for (std::size_t i = 1; i < marks.size(); ++i) times.push_back(marks[i].since(marks[i - 1]));
  return times;
}

namespace {

// Medians, each from one mark in the graph to the next.
std::vector<Seconds> between_marks(const Device& device, Stream& stream,
                                   const std::function<void(Stream&)>& unmarked,
                                   const std::vector<std::function<void(Stream&)>>& parts,
                                   int replays) {
  std::vector<Event> marks;
  for (std::size_t i = 0; i <= parts.size(); ++i) marks.push_back(device.event());
  const LaunchGraph graph = capture(stream, [&](Stream& s) {
    unmarked(s);
    marks.front().record_in_graph(s);
    for (std::size_t i = 0; i < parts.size(); ++i) {
      parts[i](s);
      marks[i + 1].record_in_graph(s);
    }
  });
  std::vector<std::vector<Seconds>> times(parts.size());
  for (int replay = -1; replay < replays; ++replay) {  // the first one warms up
    stream.launch(graph);
    stream.synchronize("timing the kernels of a graph");
    if (replay < 0) continue;
    for (std::size_t i = 0; i < parts.size(); ++i) times[i].push_back(marks[i + 1].since(marks[i]));
  }
  std::vector<Seconds> medians;
  for (std::vector<Seconds>& t : times) medians.push_back(spread_of(std::move(t)).median);
  return medians;
}

}  // namespace

std::vector<Seconds> part_times(const Device& device, Stream& stream,
                                const std::function<void(Stream&)>& unmarked,
                                const std::vector<std::function<void(Stream&)>>& parts, int replays,
                                Seconds whole) {
  std::vector<Seconds> medians = between_marks(device, stream, unmarked, parts, replays);
  Seconds sum;
  for (const Seconds m : medians) sum += m;
  // Clocks may have been lower while the whole was timed: a mark is no longer than the shortest
  // part's half.
  const Seconds excess = (sum - whole) * (1.0 / static_cast<double>(parts.size()));
  const Seconds most = *std::ranges::min_element(medians) * 0.5;
  const Seconds mark = std::clamp(excess, Seconds(), most);
  for (Seconds& m : medians) m -= mark;
  return medians;
}

Seconds marked_time(const Device& device, Stream& stream,
                    const std::function<void(Stream&)>& before,
                    const std::function<void(Stream&)>& part, int replays) {
  return between_marks(device, stream, before, {part}, replays).front();
}

SpreadOfTimes spread_of(std::vector<Seconds> times) {
  FUSELINE_ASSERT(!times.empty(), "at least one replay");
  std::ranges::sort(times);
  const std::size_t n = times.size();
  const Seconds median = n % 2 == 1 ? times[n / 2] : (times[n / 2 - 1] + times[n / 2]) * 0.5;
  return {median, times.front(), times.back()};
}

}  // namespace fuseline::cuda

#endif
