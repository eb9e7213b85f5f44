#include "sim/traces/kineto_trace.h"

#include <array>
#include <cmath>
#include <limits>
#include <optional>

#include <fmt/format.h>

#include "base/error.h"
#include "base/json_walk.h"

namespace fuseline {

namespace {

constexpr double kMicrosecond = 1e-6;
constexpr const char* kHowToRecord =
    "a trace with activities of CUDA: torch.profiler.profile(activities=[ProfilerActivity.CPU, "
    "ProfilerActivity.CUDA]) and export_chrome_trace()";
constexpr const char* kReadMetric = "dram__bytes_read.sum";
constexpr const char* kWriteMetric = "dram__bytes_write.sum";
constexpr const char* kL2Metric = "lts__t_bytes.sum";

std::optional<Activity> activity_of(const std::string& category) {
  if (category == "kernel" || category == "Kernel") return Activity::kernel;
  if (category == "gpu_memcpy" || category == "Memcpy") return Activity::copy;
  if (category == "gpu_memset" || category == "Memset") return Activity::fill;
  return std::nullopt;
}

// What one event says; numbers stay NaN until they are said.
struct TraceEvent {
  static constexpr double kUnsaid = std::numeric_limits<double>::quiet_NaN();
  std::string name, category, phase;
  double begin = kUnsaid, duration = kUnsaid;
  double device = 0, stream = 0;
  double read = kUnsaid, write = kUnsaid, l2 = kUnsaid;
  std::vector<double> grid, block;
};

std::string triple(const std::vector<double>& edges) {
  if (edges.size() != 3) return {};
  return fmt::format("({:.0f}, {:.0f}, {:.0f})", edges[0], edges[1], edges[2]);
}

// Counts of bytes up to 8 EB; anything else is no count.
bool is_count(double value) { return value >= 0 && value < 9e18; }

class KinetoReader : public JsonVisitor {
 public:
  explicit KinetoReader(const std::string& path) : maker_(path, "PyTorch profiler") {}

  void begin(const Path& path, bool object) override {
    if (object && is_event(path)) event_ = TraceEvent{};
    if (path.size() == 1 && path[0] == "traceEvents") has_events_ = true;
    if (path.empty() && !object) bare_ = has_events_ = true;
    if (object && is_device(path)) device_ = {-1, {}};
  }
  void end(const Path& path, bool object) override {
    if (object && is_event(path)) take_event();
    if (object && is_device(path) && device_.first >= 0 && device_.first < 1024)
      maker_.list().devices[static_cast<std::int32_t>(device_.first)] =
          short_kernel_name(device_.second);
  }
  void text(const Path& path, const std::string& value) override {
    if (const std::string* key = event_key(path)) {
      if (*key == "name") event_.name = value;
      if (*key == "cat") event_.category = value;
      if (*key == "ph") event_.phase = value;
    } else if (const std::string* field = device_key(path); field != nullptr && *field == "name") {
      device_.second = value;
    }
  }
  void number(const Path& path, double value) override {
    if (const std::string* key = event_key(path)) {
      if (*key == "ts") event_.begin = value;
      if (*key == "dur") event_.duration = value;
    } else if (const std::string* argument = argument_key(path)) {
      take_argument(*argument, value, path.size() > arguments_depth());
    } else if (const std::string* field = device_key(path); field != nullptr && *field == "id") {
      device_.first = value;
    }
  }
  void other(const Path& /*path*/) override {}

  LaunchList finish(const std::string& path) {
    if (!has_events_) {
      throw InputError({.file = path,
                        .message = "the JSON holds no trace events",
                        .allowed = "an object with the list traceEvents, or such a list"});
    }
    return maker_.finish(kHowToRecord);
  }

 private:
  // {"traceEvents": [EVENT]} or [EVENT]
  [[nodiscard]] std::size_t event_depth() const { return bare_ ? 1 : 2; }
  [[nodiscard]] std::size_t arguments_depth() const { return event_depth() + 2; }
  [[nodiscard]] bool in_events(const Path& path) const {
    return bare_ || (!path.empty() && path[0] == "traceEvents");
  }
  [[nodiscard]] bool is_event(const Path& path) const {
    return path.size() == event_depth() && in_events(path);
  }
  [[nodiscard]] const std::string* event_key(const Path& path) const {
    const bool key = path.size() == event_depth() + 1 && in_events(path);
    return key ? &path.back() : nullptr;
  }
  // EVENT.args.KEY, or an element of the list that stands there.
  [[nodiscard]] const std::string* argument_key(const Path& path) const {
    const std::size_t depth = arguments_depth();
    if (path.size() < depth || path.size() > depth + 1 || !in_events(path)) return nullptr;
    return path[depth - 2] == "args" ? &path[depth - 1] : nullptr;
  }
  static bool is_device(const Path& path) {
    return path.size() == 2 && path[0] == "deviceProperties";
  }
  static const std::string* device_key(const Path& path) {
    return path.size() == 3 && path[0] == "deviceProperties" ? &path[2] : nullptr;
  }

  void take_argument(const std::string& name, double value, bool element) {
    if (element) {
      std::vector<double>* edges = name == "grid"    ? &event_.grid
                                   : name == "block" ? &event_.block
                                                     : nullptr;
      if (edges != nullptr && edges->size() < 4) edges->push_back(value);
      return;
    }
    if (name == "device") event_.device = value;
    if (name == "stream") event_.stream = value;
    if (name == kReadMetric) event_.read = value;
    if (name == kWriteMetric) event_.write = value;
    if (name == kL2Metric) event_.l2 = value;
  }

  void take_event() {
    ++events_;
    const std::optional<Activity> activity = activity_of(event_.category);
    if (!activity || event_.phase != "X") return;
    LaunchTexts launch{.activity = *activity,
                       .name = event_.name,
                       .shape = {triple(event_.grid), triple(event_.block)},
                       .begin = Seconds(event_.begin * kMicrosecond),
                       .duration = Seconds(event_.duration * kMicrosecond)};
    if (event_.device >= 0 && event_.device < 1024)
      launch.device = static_cast<std::int32_t>(event_.device);
    if (std::abs(event_.stream) < 1e15) launch.stream = static_cast<std::int64_t>(event_.stream);
    if (is_count(event_.read) && is_count(event_.write)) {
      launch.counters = {Bytes(std::llround(event_.read)), Bytes(std::llround(event_.write)),
                         Bytes(is_count(event_.l2) ? std::llround(event_.l2) : 0)};
    }
    maker_.add(launch, fmt::format("event {}", events_));
  }

  LaunchListMaker maker_;
  TraceEvent event_;
  std::pair<double, std::string> device_;
  std::size_t events_ = 0;
  bool bare_ = false, has_events_ = false;
};

}  // namespace

LaunchList read_kineto_trace(const std::string& path, const std::string& text) {
  KinetoReader reader(path);
  walk_json(text, path, reader);
  return reader.finish(path);
}

}  // namespace fuseline
