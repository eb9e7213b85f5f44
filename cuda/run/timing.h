// Times of work on the GPU: replays of captured graphs, so that the host's launches do not count.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cuda/driver/driver.h"
#include "sim/measured/measurement.h"

namespace fuseline::cuda {

// What `work` puts on the stream, as one graph.
LaunchGraph capture(Stream& stream, const std::function<void(Stream&)>& work);

// Replays one after another without a pause, `warm_ups` more of them before; a time for each.
// `doing` is for the message of a fault.
std::vector<Seconds> replay_times(const Device& device, Stream& stream, const LaunchGraph& graph,
                                  int warm_ups, int replays, const std::string& doing);

// Median times of parts that follow each other in one graph, each from the end of the part before
// it. `unmarked` runs before the first, which would hold the graph's start if nothing did. A mark
// between two parts takes time too: what the parts together take longer than `whole` is taken off
// all of them alike.
std::vector<Seconds> part_times(const Device& device, Stream& stream,
                                const std::function<void(Stream&)>& unmarked,
                                const std::vector<std::function<void(Stream&)>>& parts, int replays,
                                Seconds whole);

// Median time of `part` behind `before` in one graph, the marks around it included.
Seconds marked_time(const Device& device, Stream& stream,
                    const std::function<void(Stream&)>& before,
                    const std::function<void(Stream&)>& part, int replays);

// Median, least and most; the times must not be empty.
SpreadOfTimes spread_of(std::vector<Seconds> times);

}  // namespace fuseline::cuda
