#include "sim/judge/audit/claim_file.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/data_dir.h"
#include "base/data_files.h"
#include "base/path_kind.h"
#include "sim/judge/audit/claim_choices.h"

namespace fuseline::audit {

namespace {

namespace fs = std::filesystem;

struct Unit {
  const char* name;
  double scale;
};
using Units = std::vector<Unit>;

const Units kFactor = {{"x", 1}};
const Units kShare = {{"%", 0.01}};
const Units kTime = {{"us", 1e-6}, {"ms", 1e-3}, {"s", 1}};
const Units kCurrency = {{"USD", 1}, {"EUR", 1}};
constexpr double kMostTime = 1e4;
constexpr double kMostFactor = 1e4;

struct Quantity {
  Range range;
  std::string unit;
};

TomlTable quantity_table(const TomlTable& parent, const std::string& key,
                         const std::vector<std::string>& units) {
  try {
    return parent.table(key);
  } catch (const InputError& error) {
    InputProblem problem = error.problem();
    problem.message = "is not a quantity: a number and its unit";
    problem.allowed = fmt::format(
        "{{ value = 1, unit = \"{}\" }} or {{ least = 1, most = 2, unit = ... }}; units {}",
        units.front(), fmt::join(units, ", "));
    throw InputError(std::move(problem));
  }
}

// { value = 1.7, unit = "x" } or { least = 20, most = 30, unit = "%" }, in the range after scaling.
Quantity read_quantity(const TomlTable& parent, const std::string& key, const Units& units,
                       RealRange allowed) {
  std::vector<std::string> names;
  for (const Unit& u : units) names.emplace_back(u.name);
  const TomlTable table = quantity_table(parent, key, names);
  const std::string unit = table.word("unit", names);
  const double scale = std::find_if(units.begin(), units.end(), [&](const Unit& u) {
                         return u.name == unit;
                       })->scale;
  const auto number = [&](const char* name) {
    return table.real(name, {allowed.least / scale, allowed.most / scale}) * scale;
  };
  Quantity q{{}, unit};
  if (table.has("least") || table.has("most")) {
    table.refuse_other_keys({"least", "most", "unit"});
    q.range = {number("least"), number("most")};
    if (q.range.most < q.range.least) table.fail("most", "is below least");
  } else {
    table.refuse_other_keys({"value", "unit"});
    q.range.least = q.range.most = number("value");
  }
  return q;
}

double read_single(const TomlTable& parent, const std::string& key, const Units& units,
                   RealRange allowed) {
  const Range range = read_quantity(parent, key, units, allowed).range;
  if (range.most > range.least) parent.fail(key, "is a range", "one value");
  return range.least;
}

std::optional<double> read_utilisation(const TomlTable& figure, const std::string& key) {
  if (!figure.has(key)) return std::nullopt;
  return read_single(figure, key, kShare, {0.001, 10});
}

Figure read_ratio(const TomlTable& table, const std::string& key, const Units& units,
                  RealRange allowed) {
  table.refuse_other_keys({key, "up_to", "at_least", "everywhere", "reading_error", "rows"});
  Figure f;
  f.ratio = read_quantity(table, key, units, allowed).range;
  f.up_to = table.flag_or("up_to", false);
  f.at_least = table.flag_or("at_least", false);
  f.everywhere = table.flag_or("everywhere", false);
  for (const char* flag : {"up_to", "at_least"}) {
    if (table.flag_or(flag, false) && f.ratio.most > f.ratio.least) {
      table.fail(flag, "is said of one value", "one value of " + key);
    }
  }
  if (f.up_to && (f.at_least || f.everywhere)) {
    table.fail("up_to", "a best case is not the case everywhere", "up_to alone");
  }
  if (table.has("rows")) {
    for (const TomlTable& row : table.tables("rows")) {
      row.refuse_other_keys({"what", key});
      f.rows.push_back({row.text("what"), read_single(row, key, units, allowed)});
    }
  }
  if (table.has("reading_error")) {
    f.reading_error = read_single(table, "reading_error", units, {0, 1});
  }
  return f;
}

Figure read_figure(const TomlTable& claim, Kind kind) {
  if (kind == Kind::other || kind == Kind::fits_in_memory || kind == Kind::compute_bound) {
    if (claim.has("figure")) {
      claim.fail("figure", fmt::format("kind {} has no figure", name_of(kind)));
    }
    return {};
  }
  const TomlTable table = claim.table("figure");
  switch (kind) {
    case Kind::speed_up:
      return read_ratio(table, "factor", kFactor, {0.01, kMostFactor});
    case Kind::latency_reduction:
      return read_ratio(table, "reduction", kShare, {0, 0.999});
    case Kind::gemm_time_share:
    case Kind::coverage:
      return read_ratio(table, "share", kShare, {0, 1});
    case Kind::bandwidth_ratio:
      return read_ratio(table, "factor", kFactor, {0.01, kMostFactor});
    case Kind::latency: {
      table.refuse_other_keys({"before", "after", "utilisation_before", "utilisation_after"});
      Figure f;
      f.before = Seconds(read_single(table, "before", kTime, {1e-9, kMostTime}));
      f.after = Seconds(read_single(table, "after", kTime, {1e-9, kMostTime}));
      f.utilisation_before = read_utilisation(table, "utilisation_before");
      f.utilisation_after = read_utilisation(table, "utilisation_after");
      f.ratio.least = f.ratio.most = f.before / f.after;
      return f;
    }
    case Kind::cost: {
      table.refuse_other_keys({"cost_per_million_tokens"});
      Figure f;
      const Quantity q =
          read_quantity(table, "cost_per_million_tokens", kCurrency, {1e-6, kMostPrice});
      f.cost = Money(q.range.most);
      f.currency = q.unit;
      return f;
    }
    case Kind::fits_in_memory:
    case Kind::compute_bound:
    case Kind::other:
      break;
  }
  return {};
}

// Names of the block's steps; those of the backward pass end in _bwd, and in _dw for the gradients
// of weights.
std::vector<std::string> site_words() {
  std::vector<std::string> words;
  for (const char* site : {"norm1", "qkv", "rope", "kvcache", "attention", "oproj", "residual1",
                           "norm2", "gateup", "act", "down", "residual2"}) {
    for (const char* end : {"", "_bwd", "_dw"}) words.push_back(std::string(site) + end);
  }
  return words;
}

Kind read_kind(const TomlTable& table) {
  const std::vector<std::string> words = kind_words();
  const std::string word = table.word("kind", words);
  return static_cast<Kind>(std::find(words.begin(), words.end(), word) - words.begin());
}

void check_needs(const TomlTable& table, const Claim& claim) {
  const auto need = [&](bool there, const char* key, const char* allowed) {
    if (there) return;
    table.fail_at({.field = fmt::format("setting.{}", key),
                   .message = fmt::format("the field is missing, and [try] has no values for it: "
                                          "a claim of kind {} needs it",
                                          name_of(claim.kind)),
                   .allowed = allowed});
  };
  if (claim.kind == Kind::other || claim.kind == Kind::bandwidth_ratio) return;
  need(!claim.choices.models.empty(), "model", "one or more models");
  need(!claim.choices.phases.empty(), "phase", "forward, train, decode");
  if (claim.kind == Kind::cost) {
    need(!claim.choices.prices.empty(), "price_per_hour", "one or more prices");
  }
}

}  // namespace

Claim read_claim(const TomlTable& table) {
  table.refuse_other_keys({"id", "statement", "kind", "source", "figure", "setting", "try", "sites",
                           "part", "not_testable", "assumptions"});
  Claim claim;
  claim.file = table.file();
  claim.id = table.text("id");
  claim.statement = table.text("statement");
  claim.kind = read_kind(table);
  const TomlTable source = table.table("source");
  source.refuse_other_keys({"title", "author", "date", "where"});
  claim.source = {source.text("title"), source.text_or("author", ""), source.text("date"),
                  source.text_or("where", "")};
  claim.figure = read_figure(table, claim.kind);
  read_choices(table, claim);
  fill_defaults(claim);
  if (table.has("sites")) claim.sites = table.words("sites", site_words());
  if (claim.kind == Kind::coverage) {
    claim.part = table.word("part", {"attention", "others"});
  } else if (table.has("part")) {
    table.fail("part", fmt::format("only a claim of kind {} has it", name_of(Kind::coverage)));
  }
  if (table.has("assumptions")) claim.assumptions = table.texts("assumptions");
  if (claim.kind == Kind::other) {
    claim.why_not_testable = table.text("not_testable");
  } else if (table.has("not_testable")) {
    table.fail("not_testable", "only a claim of kind other has it");
  }
  check_needs(table, claim);
  return claim;
}

std::vector<Claim> load_claims(const std::string& path) {
  if (kind_of_path(path) != PathKind::folder) return {read_claim(TomlTable::load(path))};
  std::vector<fs::path> files = folder_entries(path);
  std::erase_if(files, [](const fs::path& file) { return file.extension() != ".toml"; });
  std::vector<Claim> claims;
  std::set<std::string> ids;
  for (const fs::path& file : files) {
    const TomlTable table = TomlTable::load(file);
    claims.push_back(read_claim(table));
    if (!ids.insert(claims.back().id).second) {
      table.fail("id", "another claim of the folder has the same id", "an id of its own");
    }
  }
  if (claims.empty()) {
    throw InputError({.file = path, .message = "the folder holds no claims", .allowed = "*.toml"});
  }
  return claims;
}

std::string shipped_claims() { return (data_dir() / "claims").string(); }

const char* name_of(Kind kind) {
  switch (kind) {
    case Kind::speed_up:
      return "speed-up";
    case Kind::latency_reduction:
      return "latency-reduction";
    case Kind::latency:
      return "latency";
    case Kind::gemm_time_share:
      return "gemm-time-share";
    case Kind::fits_in_memory:
      return "fits-in-memory";
    case Kind::cost:
      return "cost-per-million-tokens";
    case Kind::compute_bound:
      return "memory-to-compute-bound";
    case Kind::coverage:
      return "share-in-gemm-kernels";
    case Kind::bandwidth_ratio:
      return "bandwidth-ratio";
    case Kind::other:
      return "other";
  }
  return "?";
}

std::vector<std::string> kind_words() {
  std::vector<std::string> words;
  for (int k = 0; k <= static_cast<int>(Kind::other); ++k) {
    words.emplace_back(name_of(static_cast<Kind>(k)));
  }
  return words;
}

}  // namespace fuseline::audit
