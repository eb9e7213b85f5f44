#include "sim/selection/size_list.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"
#include "sim/selection/words.h"

namespace fuseline {

namespace {

constexpr std::size_t kMostSizes = 1000;

[[noreturn]] void refuse_sizes(const std::string& option, const std::string& item,
                               const std::string& message) {
  throw InputError({.file = kCommandLine,
                    .field = option,
                    .value = item.empty() ? "\"\"" : item,
                    .message = message,
                    .allowed = "sizes and ranges separated by commas: 1,2,4 or 2048:16384:x2 or "
                               "16:64:+16"});
}

// One size, or the sizes of one range.
std::vector<std::int64_t> sizes_of(const std::string& option, const std::string& item,
                                   std::int64_t least, std::int64_t most) {
  const std::vector<std::string> parts = split_list(item, ':');
  if (parts.size() == 1) return {parse_whole_number(option, item, least, most)};
  if (parts.size() != 3)
    refuse_sizes(option, item, "is neither a size nor a range first:last:step");
  const std::int64_t first = parse_whole_number(option, parts[0], least, most);
  const std::int64_t last = parse_whole_number(option, parts[1], least, most);
  const std::string& step = parts[2];
  if (step.size() < 2 || (step[0] != 'x' && step[0] != '+')) {
    refuse_sizes(option, item, "its step is neither xF nor +D");
  }
  const bool times = step[0] == 'x';
  const std::int64_t by = parse_whole_number(option, step.substr(1), times ? 2 : 1, most);
  if (last < first) refuse_sizes(option, item, "the range goes down");
  std::vector<std::int64_t> out;
  for (std::int64_t size = first; size <= last; size = times ? size * by : size + by) {
    out.push_back(size);
    if (out.size() > kMostSizes) {
      refuse_sizes(option, item, fmt::format("the range has more than {} sizes", kMostSizes));
    }
  }
  return out;
}

}  // namespace

std::vector<std::int64_t> parse_sizes(const std::string& option, const std::string& text,
                                      std::int64_t least, std::int64_t most) {
  std::vector<std::int64_t> out;
  for (const std::string& item : split_list(text, ',')) {
    if (item.empty()) refuse_sizes(option, text, "a size is missing");
    for (const std::int64_t size : sizes_of(option, item, least, most)) {
      if (std::find(out.begin(), out.end(), size) != out.end()) {
        refuse_sizes(option, item, fmt::format("{} stands there twice", size));
      }
      out.push_back(size);
    }
  }
  if (out.size() > kMostSizes) {
    refuse_sizes(option, text, fmt::format("the list has more than {} sizes", kMostSizes));
  }
  return out;
}

}  // namespace fuseline
