#include "sim/traces/repeats.h"

#include <algorithm>
#include <map>

namespace fuseline {

namespace {

using Launches = std::span<const std::uint32_t>;

// Whether the list is a shorter one, repeated.
bool has_shorter_period(Launches list) {
  for (std::size_t period = 1; period <= list.size() / 2; ++period) {
    if (list.size() % period != 0) continue;
    if (std::equal(list.begin() + static_cast<std::ptrdiff_t>(period), list.end(), list.begin()))
      return true;
  }
  return false;
}

// The same list, wherever in it a run begins: its launches in order of their numbers.
std::vector<std::uint32_t> sorted(Launches list) {
  std::vector<std::uint32_t> out(list.begin(), list.end());
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace

std::vector<Repeat> find_repeats(Launches launches, std::size_t longest, std::size_t most) {
  std::vector<Repeat> found;
  for (std::size_t length = 1; length <= std::min(longest, launches.size() / 2); ++length) {
    std::map<std::vector<std::uint32_t>, Repeat> of_length;
    for (std::size_t begin = 0, i = 0; i + length <= launches.size(); ++i) {
      const bool again = i + length < launches.size() && launches[i] == launches[i + length];
      if (again) continue;
      // Launches begin to i - 1 come again `length` later.
      if (i - begin >= length) {
        const Launches list = launches.subspan(begin, length);
        if (!has_shorter_period(list)) {
          Repeat& repeat = of_length[sorted(list)];
          const std::size_t run = i - begin + length;
          repeat.covered += run;
          repeat.length = length;
          if (run > repeat.run) {
            repeat.begin = begin;
            repeat.run = run;
          }
        }
      }
      begin = i + 1;
    }
    for (const auto& [list, repeat] : of_length) found.push_back(repeat);
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const Repeat& a, const Repeat& b) { return a.covered > b.covered; });
  if (found.size() > most) found.resize(most);
  return found;
}

std::vector<std::size_t> occurrences(Launches launches, Launches list) {
  std::vector<std::size_t> out;
  for (std::size_t i = 0; i + list.size() <= launches.size();) {
    const Launches here = launches.subspan(i, list.size());
    if (std::equal(here.begin(), here.end(), list.begin())) {
      out.push_back(i);
      i += list.size();
    } else {
      ++i;
    }
  }
  return out;
}

}  // namespace fuseline
