#include "sim/selection/words.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include <fmt/format.h>

#include "base/error.h"
#include "base/printable.h"

namespace fuseline {

std::int64_t parse_whole_number(const std::string& option, const std::string& text,
                                std::int64_t least, std::int64_t most) {
  std::int64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  const InputProblem problem = {
      .file = kCommandLine,
      .field = option,
      .value = text.empty() ? "\"\"" : text,
      .message = {},
      .allowed = fmt::format("a whole number from {} to {}", least, most)};
  const auto fail = [&](const char* message) {
    InputProblem p = problem;
    p.message = message;
    throw InputError(std::move(p));
  };
  if (error == std::errc::result_out_of_range) fail("is too large");
  if (error != std::errc() || stop != end) fail("is not a whole number");
  if (value < least) fail("is too small");
  if (value > most) fail("is too large");
  return value;
}

double parse_number(const std::string& option, const std::string& text, double least, double most) {
  double value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  const auto fail = [&](const char* message) {
    throw InputError({.file = kCommandLine,
                      .field = option,
                      .value = text.empty() ? "\"\"" : text,
                      .message = message,
                      .allowed = fmt::format("a number from {:g} to {:g}", least, most)});
  };
  if (error == std::errc::invalid_argument || stop != end) fail("is not a number");
  if (std::isnan(value)) fail("is not a number");
  if (value < 0) fail("is negative");
  if (value < least) fail("is too small");
  if (error == std::errc::result_out_of_range || value > most) fail("is too large");
  return value;
}

const std::string& parse_word(const std::string& option, const std::string& text,
                              const std::vector<std::string>& allowed) {
  const auto found = std::find(allowed.begin(), allowed.end(), text);
  if (found != allowed.end()) return *found;
  throw InputError({.file = kCommandLine,
                    .field = option,
                    .value = text.empty() ? "\"\"" : text,
                    .message = "there is no such value",
                    .allowed = fmt::format("{}", fmt::join(allowed, ", ")),
                    .nearest = nearest_name(text, allowed)});
}

std::vector<std::string> split_list(const std::string& text, char at) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == at) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  for (std::string& part : parts) {
    part.erase(part.find_last_not_of(' ') + 1);
    part.erase(0, part.find_first_not_of(' '));
  }
  return parts;
}

std::vector<std::string> parse_list(const std::string& option, const std::string& text) {
  const std::vector<std::string> parts = split_list(text, ',');
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const bool twice = std::find(parts.begin(), parts.begin() + static_cast<std::ptrdiff_t>(i),
                                 parts[i]) != parts.begin() + static_cast<std::ptrdiff_t>(i);
    if (!parts[i].empty() && !twice) continue;
    throw InputError({.file = kCommandLine,
                      .field = option,
                      .value = text.empty() ? "\"\"" : text,
                      .message = parts[i].empty()
                                     ? "a name is missing"
                                     : "'" + printable(parts[i], 200) + "' stands there twice",
                      .allowed = "names separated by commas"});
  }
  return parts;
}

}  // namespace fuseline
