// What a profiler recorded on a GPU: kernels, copies and fills, in the order in which they began.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/units.h"

namespace fuseline {

enum class Activity : std::uint8_t { kernel, copy, fill };  // copy, fill: of memory, no kernel

struct LaunchCounters {
  Bytes hbm_read, hbm_write, l2;
};

// Names and shapes come again and again, so a launch has their indices.
struct Launch {
  Activity activity = Activity::kernel;
  std::uint32_t name = 0;   // of LaunchList::names
  std::uint32_t shape = 0;  // of LaunchList::shapes
  std::int32_t device = 0;
  std::int64_t stream = 0;
  Seconds begin, duration;
  std::int32_t counters = -1;  // of LaunchList::counters; -1: not counted
};

struct LaunchShape {
  std::string grid, block;  // "(132, 1, 1)"; empty where the file does not say
  auto operator<=>(const LaunchShape&) const = default;
};

struct LaunchList {
  std::string path;
  std::string tool;      // "PyTorch profiler"
  bool in_place = true;  // begin times are of one run; Nsight Compute runs each kernel alone
  bool rounded = false;  // bytes were printed in larger units
  std::vector<std::string> names;
  std::vector<LaunchShape> shapes;
  std::vector<LaunchCounters> counters;
  std::vector<Launch> launches;
  std::map<std::int32_t, std::string> devices;  // "NVIDIA H200", where the file names them
};

// More are no block's and no model's: a trace of hours.
inline constexpr std::size_t kMostLaunches = 2'000'000;

// What one launch says, before it is looked at.
struct LaunchTexts {
  Activity activity = Activity::kernel;
  std::string name{};
  LaunchShape shape{};
  std::int32_t device = 0;
  std::int64_t stream = 0;
  Seconds begin{}, duration{};
  std::optional<LaunchCounters> counters{};
};

// Fills a list, and refuses what no launch can be.
class LaunchListMaker {
 public:
  LaunchListMaker(std::string path, std::string tool);

  [[nodiscard]] LaunchList& list() { return list_; }
  // `where`: "event 12", "row 3", for messages. InputError: no name, a time that is none, more than
  // kMostLaunches.
  void add(const LaunchTexts& launch, const std::string& where);
  // Sorted by begin. InputError when nothing ran on a GPU; `hint` says how to record it.
  LaunchList finish(const std::string& hint);

 private:
  LaunchList list_;
  std::unordered_map<std::string, std::uint32_t> name_index_;
  std::map<LaunchShape, std::uint32_t> shape_index_;
};

// Names as in kernels.csv: "(anonymous namespace)" → "<unnamed>", no "native::", no "void ".
std::string short_kernel_name(std::string name);

// Of one of these, told by its contents: PyTorch's profiler (Chrome's JSON, packed by gzip or not),
// `nsys export --type sqlite`, `nsys stats --report cuda_gpu_trace --format csv`, `ncu --csv`.
// InputError: none of them, damaged, cut off, too large; in a text with line or place.
LaunchList read_launches(const std::string& path);

}  // namespace fuseline
