#include "sim/traces/launch_list.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include <fmt/format.h>

#include "base/error.h"

namespace fuseline {

namespace {

constexpr std::size_t kLongestName = 2048;
constexpr double kLongestRun = 1e6;    // s: eleven days
constexpr double kLatestBegin = 1e12;  // s: clocks count from 1970 or from the start of the machine

void without_part(std::string& text, std::string_view part, std::string_view instead = {}) {
  for (std::size_t at = 0; (at = text.find(part, at)) != std::string::npos; at += instead.size())
    text.replace(at, part.size(), instead);
}

}  // namespace

std::string short_kernel_name(std::string name) {
  for (char& c : name)
    if (static_cast<unsigned char>(c) < ' ' || c == '\x7F') c = ' ';
  without_part(name, "(anonymous namespace)", "<unnamed>");
  without_part(name, "native::");
  if (name.starts_with("void ")) name.erase(0, 5);
  if (name.size() <= kLongestName) return name;
  std::size_t end = kLongestName;
  while (end > 0 && (static_cast<unsigned char>(name[end]) & 0xC0) == 0x80) --end;  // whole letters
  name.resize(end);
  return name;
}

LaunchListMaker::LaunchListMaker(std::string path, std::string tool) {
  list_.path = std::move(path);
  list_.tool = std::move(tool);
}

void LaunchListMaker::add(const LaunchTexts& launch, const std::string& where) {
  const auto refuse = [&](const char* field, const std::string& value, const std::string& message,
                          const std::string& allowed) {
    throw InputError({.file = list_.path,
                      .field = where + ", " + field,
                      .value = value,
                      .message = message,
                      .allowed = allowed});
  };
  if (launch.name.empty()) refuse("name", "", "is empty", "the name of a kernel");
  const double begin = launch.begin.value(), duration = launch.duration.value();
  if (!std::isfinite(duration) || duration < 0 || duration > kLongestRun)
    refuse("duration", fmt::format("{:g} s", duration), "is no duration of a launch",
           "0 to 1e6 seconds");
  if (!std::isfinite(begin) || std::abs(begin) > kLatestBegin)
    refuse("begin", fmt::format("{:g} s", begin), "is no time", "a time within 1e12 seconds");
  if (list_.launches.size() == kMostLaunches) {
    throw InputError({.file = list_.path,
                      .message = fmt::format("holds more than {} launches", kMostLaunches),
                      .allowed = "a shorter range: some iterations are enough"});
  }
  Launch out{.activity = launch.activity,
             .device = launch.device,
             .stream = launch.stream,
             .begin = launch.begin,
             .duration = launch.duration};
  const auto [name, new_name] = name_index_.try_emplace(
      short_kernel_name(launch.name), static_cast<std::uint32_t>(list_.names.size()));
  if (new_name) list_.names.push_back(name->first);
  out.name = name->second;
  const auto [shape, new_shape] =
      shape_index_.try_emplace(launch.shape, static_cast<std::uint32_t>(list_.shapes.size()));
  if (new_shape) list_.shapes.push_back(launch.shape);
  out.shape = shape->second;
  if (launch.counters) {
    out.counters = static_cast<std::int32_t>(list_.counters.size());
    list_.counters.push_back(*launch.counters);
  }
  list_.launches.push_back(out);
}

LaunchList LaunchListMaker::finish(const std::string& hint) {
  const bool any = std::any_of(list_.launches.begin(), list_.launches.end(),
                               [](const Launch& l) { return l.activity == Activity::kernel; });
  if (!any)
    throw InputError(
        {.file = list_.path, .message = "no kernel of a GPU is in the file", .allowed = hint});
  std::stable_sort(list_.launches.begin(), list_.launches.end(),
                   [](const Launch& a, const Launch& b) { return a.begin < b.begin; });
  return std::move(list_);
}

}  // namespace fuseline
