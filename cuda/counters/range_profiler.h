// Hardware counters, read in this process: bytes that HBM and L2 really moved (CUPTI's range
// profiler, CUDA 12.6 or newer). A profiler runs around the process as little as a second one in
// it.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/units.h"
#include "cuda/driver/driver.h"

namespace fuseline::cuda {

// What one range moved. Lines that L2 still holds dirty when a range ends are written to HBM in a
// later one: over a chain longer than L2 they cancel.
struct CountedRange {
  std::string name;
  Bytes hbm_read, hbm_write;  // dram__bytes_read.sum, dram__bytes_write.sum
  // lts__t_bytes.sum: all that L2's slices look up, also what they fetch from HBM, so that a copy
  // of n bytes counts 3 n (seen on an H200).
  Bytes l2;
  // gpu__time_duration.sum. Counting slows the GPU down: times come from a run without.
  Seconds time;
};

class RangeProfiler {
 public:
  // MissingError, with what would help: fuseline was built without CUPTI's headers, no CUPTI here
  // or one older than 12.6, another profiler is at work, or counters are for administrators only.
  // The device's context is current in this thread.
  explicit RangeProfiler(const Device& device);
  ~RangeProfiler();
  RangeProfiler(RangeProfiler&&) noexcept;
  RangeProfiler& operator=(RangeProfiler&&) noexcept;
  RangeProfiler(const RangeProfiler&) = delete;
  RangeProfiler& operator=(const RangeProfiler&) = delete;

  [[nodiscard]] const std::string& chip() const;  // "GH100"
  // Calls run(i) for every name in order, in one pass; run(i) waits until the GPU is done. What it
  // throws comes through. The profiler holds the GPU's counters only meanwhile. Launches of graphs
  // count like those of kernels. `before` runs ahead of the first name, in a range that nobody
  // sees: what the profiler itself wrote when it began is still dirty in L2 then, and would count
  // as writes of the first name. It should move more than L2 holds.
  [[nodiscard]] std::vector<CountedRange> measure(const std::vector<std::string>& names,
                                                  const std::function<void(std::size_t)>& run,
                                                  const std::function<void()>& before = {}) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Chips that the CUPTI here knows: "GA100", "GH100". Needs no GPU. MissingError as above.
std::vector<std::string> counter_chips();
// How many passes over the work the counters take on a chip; measure() needs 1. Needs no GPU.
// InputError: an unknown chip.
std::size_t counter_passes(const std::string& chip);

}  // namespace fuseline::cuda
