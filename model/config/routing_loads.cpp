#include "model/config/routing_loads.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>
#include <sstream>
#include <system_error>

#include "base/csv.h"
#include "base/data_files.h"
#include "base/error.h"

namespace fuseline {

namespace {

constexpr const char* kExpected = "expected";
constexpr const char* kUniform = "uniform";
constexpr const char* kSharesWord = "shares";
constexpr const char* kTokensWord = "tokens";
constexpr std::int64_t kMostRows = std::int64_t{1} << 40;
constexpr double kSumTolerance = 1e-3;  // of shares that were written with a few digits

// The line of every expert, by its number.
std::vector<std::size_t> lines_of_experts(const CsvTable& table) {
  std::vector<std::size_t> lines(table.rows(), table.rows());
  const auto last = static_cast<std::int64_t>(table.rows()) - 1;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    const std::int64_t expert = table.whole(row, "expert");
    if (expert > last)
      table.fail(row, "expert",
                 fmt::format("there are {} lines, so an expert is missing", last + 1),
                 fmt::format("every expert from 0 to {} once", last));
    std::size_t& line = lines[static_cast<std::size_t>(expert)];
    if (line != table.rows())
      table.fail(row, "expert", fmt::format("stands in line {} too", table.line(line)),
                 "every expert once");
    line = row;
  }
  return lines;
}

double share_of(const CsvTable& table, std::size_t row) {
  const std::string& text = table.text(row, "share");
  if (text == "0") return 0;
  const double share = table.positive(row, "share");
  if (share > 1) table.fail(row, "share", "is more than all tokens", "a number from 0 to 1");
  return share;
}

RoutingLoads read_loads(const std::string& path) {
  const CsvTable table(path);
  const bool shares = table.has_column("share");
  if (shares && table.has_column("tokens"))
    table.fail(0, "tokens", "stands beside share: only one of them can be meant",
               "the columns expert and share, or expert and tokens");
  RoutingLoads out{.name = path};
  for (const std::size_t row : lines_of_experts(table)) {
    if (shares)
      out.shares.push_back(share_of(table, row));
    else
      out.rows.push_back(table.whole(row, "tokens"));
    if (!shares && out.rows.back() > kMostRows)
      table.fail(row, "tokens", "is out of range", fmt::format("at most {}", kMostRows));
  }
  if (shares) {
    const double sum = std::accumulate(out.shares.begin(), out.shares.end(), 0.0);
    if (std::abs(sum - 1) > kSumTolerance)
      throw InputError({.file = path,
                        .field = "share",
                        .value = fmt::format("{:.6g}", sum),
                        .message = "the shares of all experts do not add up to 1",
                        .allowed = "parts of all rows that go to experts"});
    for (double& share : out.shares) share /= sum;
  } else if (std::accumulate(out.rows.begin(), out.rows.end(), std::int64_t{0}) == 0) {
    throw InputError({.file = path, .field = "tokens", .message = "no expert has a token"});
  }
  return out;
}

}  // namespace

bool is_routing_word(const std::string& text) { return text == kExpected || text == kUniform; }

RoutingLoads parse_routing(const std::string& text, const std::string& field) {
  if (text == kExpected) return {};
  if (text == kUniform) return {.name = kUniform};
  if (!looks_like_path(text) && !text.ends_with(".csv"))
    throw InputError({.field = field,
                      .value = text,
                      .message = "is no way to route tokens",
                      .allowed = "expected, uniform, or a CSV file",
                      .nearest = nearest_name(text, {kExpected, kUniform})});
  return read_loads(text);
}

std::string routing_text(const RoutingLoads& routing) {
  return routing.given() ? routing.name : kExpected;
}

std::string routing_line(const RoutingLoads& routing) {
  if (!routing.shares.empty())
    return fmt::format("{}: {} {}", routing.name, kSharesWord, fmt::join(routing.shares, " "));
  if (!routing.rows.empty())
    return fmt::format("{}: {} {}", routing.name, kTokensWord, fmt::join(routing.rows, " "));
  return routing.name;
}

RoutingLoads parse_routing_line(const std::string& text, const std::string& field) {
  if (text.empty() || text == kUniform) return {.name = text};
  const auto refuse = [&](const std::string& message) {
    throw InputError({.field = field,
                      .value = text,
                      .message = message,
                      .allowed = "uniform, NAME: shares 0.25 ..., or NAME: tokens 3 ..."});
  };
  const std::size_t colon = text.rfind(": ");
  if (colon == std::string::npos || colon == 0) refuse("is no way to route tokens");
  RoutingLoads out{.name = text.substr(0, colon)};
  std::istringstream words(text.substr(colon + 2));
  std::string kind, word;
  words >> kind;
  if (kind != kSharesWord && kind != kTokensWord) refuse("does not say shares or tokens");
  while (words >> word) {
    const auto take = [&](auto& number, auto most) {
      const char* const end = word.data() + word.size();
      const auto [stopped, error] = std::from_chars(word.data(), end, number);
      // Written so that a NaN is refused too.
      if (error != std::errc() || stopped != end || !(number >= 0 && number <= most))
        refuse("has an expert's number that cannot be");
    };
    if (kind == kSharesWord)
      take(out.shares.emplace_back(), 1.0);
    else
      take(out.rows.emplace_back(), kMostRows);
  }
  if (out.shares.empty() && out.rows.empty()) refuse("has no experts");
  if (out.shares.empty() && std::ranges::all_of(out.rows, [](std::int64_t n) { return n == 0; }))
    refuse("has no expert with a token");
  const double sum = std::accumulate(out.shares.begin(), out.shares.end(), 0.0);
  if (!out.shares.empty() && std::abs(sum - 1) > kSumTolerance)
    refuse("has shares that do not add up to 1");
  return out;
}

}  // namespace fuseline
