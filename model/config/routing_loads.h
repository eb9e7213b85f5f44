// How many tokens every expert gets, where a user knows it: measured loads in the place of what
// even routing is expected to give.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace fuseline {

struct RoutingLoads {
  std::string name{};            // "uniform" or the file; empty: what even routing gives
  std::vector<double> shares{};  // of every expert, from the first; they add up to 1
  // Rows of every expert where the file counts them: they fit one number of tokens only.
  std::vector<std::int64_t> rows{};

  [[nodiscard]] bool given() const { return !name.empty(); }
  friend bool operator==(const RoutingLoads&, const RoutingLoads&) = default;
};

// "expected", "uniform", or a CSV file with the columns expert and share, or expert and tokens.
// InputError with `field`, or with the file's line: no such file, experts that are missing, named
// twice or out of range, shares that do not add up to 1 or are not between 0 and 1.
RoutingLoads parse_routing(const std::string& text, const std::string& field);

// Whether the text is "expected" or "uniform", and no file.
bool is_routing_word(const std::string& text);

// "expected", "uniform", or the file as it was named.
std::string routing_text(const RoutingLoads& routing);

// All of it in one line, as a measurement records it: "", "uniform", or the file's name with what
// it said, "loads.csv: shares 0.25 0.75" or "loads.csv: tokens 3 9". It is read without the file.
std::string routing_line(const RoutingLoads& routing);
// InputError with `field`: not such a line.
RoutingLoads parse_routing_line(const std::string& text, const std::string& field);

}  // namespace fuseline
