#include "sim/search/distribution_file.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <tuple>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/csv.h"
#include "base/data_files.h"
#include "base/error.h"
#include "base/lists.h"
#include "base/toml_file.h"

namespace fuseline {

namespace {

constexpr std::size_t kMostShapes = 64;  // every plan is simulated at every size
constexpr std::int64_t kLargestSize = 16'777'216;
constexpr double kLargestWeight = 1e15;
constexpr double kShareRounding = 1e-6;  // of shares that a file gives in a few digits

const DataFileKind kDistributionFiles{.field = "distribution", .folder = "distributions"};

struct SizeField {
  const char* name;
  std::int64_t least;
};
constexpr SizeField kBatch{"batch", 1}, kTokens{"tokens", 1}, kContext{"context", 0},
    kPrompt{"prompt", 1}, kGenerated{"generated", 0};

// The counts of a list whose lines have `weight`s that may be 0.
class ListChecks {
 public:
  explicit ListChecks(std::string file) : file_(std::move(file)) {}

  // False where the same shape came before.
  bool is_new(const ShapeWeight& s) {
    std::string sequences;
    for (const SequenceGroup& g : s.sequences) sequences += describe(g) + ", ";
    return seen_.insert({s.batch, s.tokens, s.context, std::move(sequences)}).second;
  }
  void count(double weight) { sum_ += weight; }

  void finish(std::size_t shapes) const {
    if (sum_ <= 0)
      throw InputError({.file = file_,
                        .field = "weight",
                        .message = "is 0 on every line, so there is nothing to weigh",
                        .allowed = "a weight above 0 on some line"});
    if (shapes > kMostShapes)
      throw InputError({.file = file_,
                        .field = "batch, tokens, context",
                        .value = std::to_string(shapes) + " shapes",
                        .message = "are more than a search takes",
                        .allowed = fmt::format("up to {}; sum the weights of shapes that are alike",
                                               kMostShapes)});
  }

 private:
  std::string file_;
  std::set<std::tuple<std::int64_t, std::int64_t, std::int64_t, std::string>> seen_;
  double sum_ = 0;
};

constexpr const char* kShapeTwice = "is a shape that an earlier line has";

void refuse_other_columns(const CsvTable& table, const std::vector<std::string>& known) {
  for (const std::string& column : table.columns()) {
    if (!holds(known, column))
      throw InputError({.file = table.path(),
                        .field = "header",
                        .value = column,
                        .message = "is no column of a distribution",
                        .allowed = fmt::format("{}", fmt::join(known, ", ")),
                        .nearest = nearest_name(column, known),
                        .line = 1});
    if (std::ranges::count(table.columns(), column) > 1)
      throw InputError({.file = table.path(),
                        .field = "header",
                        .value = column,
                        .message = "is there twice",
                        .allowed = "every column once",
                        .line = 1});
  }
}

std::int64_t size_at(const CsvTable& table, std::size_t row, const SizeField& field) {
  const std::int64_t n = table.whole(row, field.name, field.least);
  if (n > kLargestSize)
    table.fail(row, field.name, "is too large", fmt::format("up to {}", kLargestSize));
  return n;
}

double weight_at(const CsvTable& table, std::size_t row) {
  return table.text(row, "weight") == "0" ? 0 : table.positive(row, "weight");
}

std::vector<ShapeWeight> shapes_of(const CsvTable& table) {
  refuse_other_columns(table, {"batch", "tokens", "context", "weight"});
  ListChecks checks(table.path());
  std::vector<ShapeWeight> shapes;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    const ShapeWeight s{.batch = size_at(table, row, kBatch),
                        .tokens = size_at(table, row, kTokens),
                        .context = size_at(table, row, kContext),
                        .weight = weight_at(table, row)};
    if (!checks.is_new(s)) table.fail(row, "tokens", kShapeTwice, "every shape once");
    checks.count(s.weight);
    if (s.weight > 0) shapes.push_back(s);
  }
  checks.finish(shapes.size());
  return shapes;
}

std::vector<ShapeWeight> mixed_shapes_of(const CsvTable& table) {
  refuse_other_columns(table, {"sequences", "weight"});
  ListChecks checks(table.path());
  std::vector<ShapeWeight> shapes;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    std::vector<SequenceGroup> groups;
    if (const std::string why = read_sequences(table.text(row, "sequences"), groups); !why.empty())
      table.fail(row, "sequences", why, sequences_allowed());
    const ShapeWeight s = mixed_shape(std::move(groups), weight_at(table, row));
    if (!checks.is_new(s)) table.fail(row, "sequences", kShapeTwice, "every call once");
    checks.count(s.weight);
    if (s.weight > 0) shapes.push_back(s);
  }
  checks.finish(shapes.size());
  return shapes;
}

// The sizes of the requests' calls, each with how heavy it is.
class CountedCalls {
 public:
  void add(const RequestWeight& r) {
    prompts_[r.prompt] += r.weight;
    sums_[r.prompt + r.generated] += r.weight;
    // A token is generated with a cache that the prompt and all tokens before it fill.
    if (r.generated > 0) {
      begins_[r.prompt + 1] += r.weight;
      begins_[r.prompt + r.generated + 1] -= r.weight;
    }
  }

  void give(Distribution& d) const {
    d.prompts = counts(prompts_);
    d.sums = counts(sums_);
    std::vector<double> contexts;
    double now = 0;
    for (auto at = begins_.begin(); at != begins_.end(); ++at) {
      now += at->second;
      const auto next = std::next(at);
      if (next == begins_.end() || now <= 1e-9) continue;
      contexts.insert(contexts.end(), static_cast<std::size_t>(next->first - at->first), now);
    }
    d.contexts = counts_of(std::move(contexts));
  }

 private:
  static SizeCounts counts(const std::map<std::int64_t, double>& of) {
    std::vector<double> weights;
    for (const auto& [size, weight] : of) weights.push_back(weight);
    return counts_of(std::move(weights));
  }

  std::map<std::int64_t, double> prompts_, sums_;
  std::map<std::int64_t, double> begins_;  // how the weight of contexts changes from there on
};

void read_requests(const CsvTable& table, Distribution& d) {
  refuse_other_columns(table, {"prompt", "generated", "weight"});
  const bool weighted = table.has_column("weight");
  CountedCalls calls;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    const RequestWeight r{.prompt = size_at(table, row, kPrompt),
                          .generated = size_at(table, row, kGenerated),
                          .weight = weighted ? weight_at(table, row) : 1};
    d.counted += r.weight;
    if (r.weight <= 0) continue;
    d.requests.push_back(r);
    calls.add(r);
  }
  if (d.requests.empty()) ListChecks(table.path()).finish(0);
  calls.give(d);
}

std::int64_t size_in(const TomlTable& table, const SizeField& field) {
  return table.whole(field.name, {field.least, kLargestSize});
}

double weight_in(const TomlTable& table) { return table.real("weight", {0, kLargestWeight}); }

SizeCounts read_counts(const TomlTable& table) {
  table.refuse_other_keys({"different", "frequent"});
  SizeCounts counts{.different = table.whole("different", {1, kLargestSize}), .frequent = {}};
  for (const TomlTable& one : table.tables("frequent")) {
    one.refuse_other_keys({"sizes", "share"});
    const std::int64_t sizes = one.whole("sizes", {1, counts.different});
    const double share = one.real("share", {0, 1});
    if (!counts.frequent.empty() && sizes <= counts.frequent.back().first)
      one.fail("sizes", "does not come behind the entry before it", "ascending numbers of sizes");
    if (!counts.frequent.empty() && share < counts.frequent.back().second)
      one.fail("share", "is less than that of fewer sizes", "shares that grow with the sizes");
    counts.frequent.emplace_back(sizes, share);
  }
  if (counts.frequent.empty() || counts.frequent.back().first != counts.different ||
      counts.frequent.back().second < 1 - kShareRounding)
    table.fail("frequent", "does not end with all sizes",
               fmt::format("a last entry of {} sizes with the share 1", counts.different));
  return counts;
}

Distribution read_toml(const std::filesystem::path& path) {
  const TomlTable table = TomlTable::load(path);
  table.refuse_other_keys({"title", "source", "date", "assumed", "counted", "prompts", "contexts",
                           "sums", "request", "shape"});
  Distribution d{.name = {},
                 .title = table.text("title"),
                 .source = table.text("source"),
                 .date = table.text("date")};
  if (table.has("assumed")) d.assumed = table.texts("assumed");
  if (table.has("shape") == table.has("request"))
    table.fail(table.has("shape") ? "shape" : "request",
               table.has("shape") ? "stands beside a list of requests" : "is missing",
               "a list of shapes ([[shape]]) or of requests ([[request]])");
  ListChecks checks(table.file());
  if (table.has("shape")) {
    for (const TomlTable& one : table.tables("shape")) {
      one.refuse_other_keys({"batch", "tokens", "context", "weight"});
      const ShapeWeight s{.batch = size_in(one, kBatch),
                          .tokens = size_in(one, kTokens),
                          .context = one.has("context") ? size_in(one, kContext) : 0,
                          .weight = weight_in(one)};
      if (!checks.is_new(s)) one.fail("tokens", kShapeTwice, "every shape once");
      checks.count(s.weight);
      if (s.weight > 0) d.shapes.push_back(s);
    }
    checks.finish(d.shapes.size());
    return d;
  }
  CountedCalls calls;
  for (const TomlTable& one : table.tables("request")) {
    one.refuse_other_keys({"prompt", "generated", "weight"});
    const RequestWeight r{.prompt = size_in(one, kPrompt),
                          .generated = size_in(one, kGenerated),
                          .weight = weight_in(one)};
    checks.count(r.weight);
    if (r.weight <= 0) continue;
    d.requests.push_back(r);
    calls.add(r);
  }
  checks.finish(0);
  calls.give(d);
  if (table.has("counted")) d.counted = table.real("counted", {1, kLargestWeight});
  // Where groups of requests stand for them, their own counts would be too low.
  for (const auto& [key, counts] : {std::pair{"prompts", &d.prompts},
                                    std::pair{"contexts", &d.contexts}, std::pair{"sums", &d.sums}})
    if (table.has(key)) *counts = read_counts(table.table(key));
  return d;
}

}  // namespace

ShapeWeight mixed_shape(std::vector<SequenceGroup> sequences, double weight) {
  std::ranges::sort(sequences, {}, [](const SequenceGroup& g) {
    return std::tuple(g.tokens, g.context, g.sequences);
  });
  ShapeWeight shape{.batch = rows_of(sequences), .tokens = 1, .context = 1, .weight = weight};
  for (const SequenceGroup& g : sequences) shape.context = std::max(shape.context, g.context);
  shape.sequences = std::move(sequences);
  return shape;
}

double SizeCounts::share_of(std::int64_t kept) const {
  std::pair<std::int64_t, double> before{0, 0};
  for (const auto& entry : frequent) {
    if (entry.first >= kept) {
      const double between = static_cast<double>(kept - before.first) /
                             static_cast<double>(entry.first - before.first);
      return before.second + between * (entry.second - before.second);
    }
    before = entry;
  }
  return 1;
}

SizeCounts counts_of(std::vector<double> weights) {
  std::ranges::sort(weights, std::greater<>());
  double all = 0;
  for (const double w : weights) all += w;
  SizeCounts counts{.different = static_cast<std::int64_t>(weights.size()), .frequent = {}};
  double sum = 0;
  std::size_t next = 1;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    sum += weights[i];
    if (i + 1 != next && i + 1 != weights.size()) continue;
    next *= 2;
    counts.frequent.emplace_back(static_cast<std::int64_t>(i + 1),
                                 i + 1 == weights.size() ? 1 : sum / all);
  }
  return counts;
}

Distribution read_distribution(const std::string& name_or_path) {
  if (!name_or_path.ends_with(".csv")) {
    Distribution d;
    const std::filesystem::path path = find_data_file(name_or_path, kDistributionFiles);
    d = read_toml(path);
    d.name = name_or_path;
    return d;
  }
  const CsvTable table(name_or_path);
  Distribution d{.name = name_or_path};
  if (table.has_column("prompt") || table.has_column("generated"))
    read_requests(table, d);
  else if (table.has_column("sequences"))
    d.shapes = mixed_shapes_of(table);
  else
    d.shapes = shapes_of(table);
  return d;
}

std::vector<std::string> distribution_names() { return data_file_names(kDistributionFiles.folder); }

}  // namespace fuseline
