#include "model/config/routing_loads.h"

#include <fmt/format.h>

#include <cmath>
#include <numeric>

#include "base/csv.h"
#include "base/data_files.h"
#include "base/error.h"

namespace fuseline {

namespace {

constexpr const char* kExpected = "expected";
constexpr const char* kUniform = "uniform";
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

}  // namespace fuseline
