#include "base/toml_file.h"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>
#include <variant>

#include "base/data_files.h"
#include "base/toml_nesting.h"

namespace fuseline {

struct TomlNode {
  struct Other {};  // dates and times
  using Table = std::map<std::string, TomlNode>;
  std::variant<Other, std::string, std::int64_t, double, bool, std::vector<TomlNode>, Table> value;
  int line = 0;
  int column = 0;
  int key_line = 0;  // where the key stands, for tables' members
  int key_column = 0;
};

namespace {

constexpr std::size_t kLongestLine = 2000;

[[noreturn]] void refuse(const std::string& file, int line, int column,
                         const std::string& message) {
  throw InputError({.file = file, .message = message, .line = line, .column = column});
}

void check_line_lengths(const std::string& text, const std::string& file) {
  int line = 1;
  std::size_t begin = 0;
  while (begin < text.size()) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    if (end - begin > kLongestLine) {
      refuse(file, line, 1, fmt::format("the line is longer than {} characters", kLongestLine));
    }
    begin = end + 1;
    ++line;
  }
}

TomlNode convert(const toml::node& node) {
  TomlNode result;
  result.line = static_cast<int>(node.source().begin.line);
  result.column = static_cast<int>(node.source().begin.column);
  if (const auto* table = node.as_table()) {
    TomlNode::Table members;
    for (const auto& [key, child] : *table) {
      TomlNode member = convert(child);
      member.key_line = static_cast<int>(key.source().begin.line);
      member.key_column = static_cast<int>(key.source().begin.column);
      members.emplace(std::string(key.str()), std::move(member));
    }
    result.value = std::move(members);
  } else if (const auto* array = node.as_array()) {
    std::vector<TomlNode> items;
    for (const toml::node& item : *array) items.push_back(convert(item));
    result.value = std::move(items);
  } else if (const auto* text = node.as_string()) {
    result.value = text->get();
  } else if (const auto* whole = node.as_integer()) {
    result.value = whole->get();
  } else if (const auto* real = node.as_floating_point()) {
    result.value = real->get();
  } else if (const auto* flag = node.as_boolean()) {
    result.value = flag->get();
  }
  return result;
}

// The value for a message; tables and arrays are shortened.
std::string written(const TomlNode& node) {
  struct Writer {
    std::string operator()(TomlNode::Other) const { return "a date or time"; }
    std::string operator()(const std::string& text) const { return text; }
    std::string operator()(std::int64_t whole) const { return std::to_string(whole); }
    std::string operator()(double real) const { return fmt::format("{}", real); }
    std::string operator()(bool flag) const { return flag ? "true" : "false"; }
    std::string operator()(const std::vector<TomlNode>&) const { return "[...]"; }
    std::string operator()(const TomlNode::Table&) const { return "{...}"; }
  };
  return std::visit(Writer{}, node.value);
}

std::string allowed_whole(IntegerRange range) {
  return fmt::format("a whole number from {} to {}", range.least, range.most);
}

std::string allowed_real(RealRange range) {
  return fmt::format("a number from {:g} to {:g}", range.least, range.most);
}

std::string joined(const std::vector<std::string>& words) {
  return fmt::format("{}", fmt::join(words, ", "));
}

}  // namespace

TomlTable::TomlTable(std::shared_ptr<const TomlNode> node, std::string file, std::string prefix)
    : node_(std::move(node)), file_(std::move(file)), prefix_(std::move(prefix)) {}

TomlTable TomlTable::parse(const std::string& text, const std::string& file) {
  check_line_lengths(text, file);
  check_toml_nesting(text, file);
  try {
    auto root =
        std::make_shared<const TomlNode>(convert(toml::parse(std::string_view(text), file)));
    TomlTable table(std::move(root), file, "");
    if (table.keys().empty()) refuse(file, 0, 0, "the file holds no fields");
    return table;
  } catch (const toml::parse_error& error) {
    const toml::source_position where = error.source().begin;
    refuse(file, static_cast<int>(where.line), static_cast<int>(where.column),
           "TOML syntax error: " + std::string(error.description()));
  }
}

TomlTable TomlTable::load(const std::filesystem::path& path) {
  return parse(read_input_file(path), path.string());
}

const TomlNode* TomlTable::find(const std::string& key) const {
  const auto& members = std::get<TomlNode::Table>(node_->value);
  const auto found = members.find(key);
  return found == members.end() ? nullptr : &found->second;
}

bool TomlTable::has(const std::string& key) const { return find(key) != nullptr; }

bool TomlTable::is_text(const std::string& key) const {
  const TomlNode* node = find(key);
  return node != nullptr && std::holds_alternative<std::string>(node->value);
}

std::vector<std::string> TomlTable::keys() const {
  using Placed = std::tuple<int, int, std::string>;
  std::vector<Placed> placed;
  for (const auto& [key, member] : std::get<TomlNode::Table>(node_->value)) {
    placed.emplace_back(member.key_line, member.key_column, key);
  }
  std::sort(placed.begin(), placed.end());
  std::vector<std::string> names;
  names.reserve(placed.size());
  for (Placed& place : placed) names.push_back(std::move(std::get<2>(place)));
  return names;
}

void TomlTable::refuse_other_keys(const std::vector<std::string>& known) const {
  for (const std::string& key : keys()) {
    if (std::find(known.begin(), known.end(), key) != known.end()) continue;
    const TomlNode& node = *find(key);
    throw InputError({.file = file_,
                      .field = prefix_ + key,
                      .message = "unknown field",
                      .allowed = joined(known),
                      .nearest = nearest_name(key, known),
                      .line = node.key_line,
                      .column = node.key_column});
  }
}

const TomlNode& TomlTable::require(const std::string& key, const std::string& allowed) const {
  if (const TomlNode* node = find(key)) return *node;
  // The top level has no place of its own.
  const bool top = prefix_.empty();
  throw InputError({.file = file_,
                    .field = prefix_ + key,
                    .message = "the field is missing",
                    .allowed = allowed,
                    .line = top ? 0 : node_->line,
                    .column = top ? 0 : node_->column});
}

std::string TomlTable::text(const std::string& key) const {
  const char* allowed = "a text in quotes";
  const auto* value = std::get_if<std::string>(&require(key, allowed).value);
  if (value == nullptr) fail(key, "is not a text", allowed);
  if (value->empty()) fail(key, "is empty", allowed);
  return *value;
}

std::string TomlTable::word(const std::string& key, const std::vector<std::string>& words) const {
  const auto* value = std::get_if<std::string>(&require(key, joined(words)).value);
  if (value == nullptr) fail(key, "is not a text", joined(words));
  if (std::find(words.begin(), words.end(), *value) == words.end()) {
    fail(key, "unknown " + key, joined(words), nearest_name(*value, words));
  }
  return *value;
}

std::int64_t TomlTable::whole(const std::string& key, IntegerRange range) const {
  const std::string allowed = allowed_whole(range);
  const auto* value = std::get_if<std::int64_t>(&require(key, allowed).value);
  if (value == nullptr) fail(key, "is not a whole number", allowed);
  if (*value < range.least) fail(key, *value < 0 ? "is negative" : "is too small", allowed);
  if (*value > range.most) fail(key, "is too large", allowed);
  return *value;
}

double TomlTable::real(const std::string& key, RealRange range) const {
  const std::string allowed = allowed_real(range);
  const TomlNode& node = require(key, allowed);
  double value = 0;
  if (const auto* as_real = std::get_if<double>(&node.value)) {
    value = *as_real;
  } else if (const auto* as_whole = std::get_if<std::int64_t>(&node.value)) {
    value = static_cast<double>(*as_whole);
  } else {
    fail(key, "is not a number", allowed);
  }
  if (!std::isfinite(value)) fail(key, "is not a finite number", allowed);
  if (value < range.least) fail(key, value < 0 ? "is negative" : "is too small", allowed);
  if (value > range.most) fail(key, "is too large", allowed);
  return value;
}

bool TomlTable::flag(const std::string& key) const {
  const auto* value = std::get_if<bool>(&require(key, "true or false").value);
  if (value == nullptr) fail(key, "is not a truth value", "true or false");
  return *value;
}

std::variant<std::int64_t, double, bool> TomlTable::number_or_flag(const std::string& key,
                                                                   RealRange range) const {
  const TomlNode& node = require(key, allowed_real(range) + ", or true or false");
  if (const auto* value = std::get_if<bool>(&node.value)) return *value;
  const double number = real(key, range);
  if (const auto* whole = std::get_if<std::int64_t>(&node.value)) return *whole;
  return number;
}

std::vector<std::string> TomlTable::texts(const std::string& key) const {
  const char* allowed = "a list of texts in quotes";
  const auto* items = std::get_if<std::vector<TomlNode>>(&require(key, allowed).value);
  if (items == nullptr) fail(key, "is not a list", allowed);
  std::vector<std::string> result;
  for (const TomlNode& item : *items) {
    const auto* text = std::get_if<std::string>(&item.value);
    if (text == nullptr || text->empty()) {
      throw InputError({.file = file_,
                        .field = fmt::format("{}{}[{}]", prefix_, key, result.size()),
                        .value = written(item),
                        .message = text == nullptr ? "is not a text" : "is empty",
                        .allowed = allowed,
                        .line = item.line,
                        .column = item.column});
    }
    result.push_back(*text);
  }
  return result;
}

TomlTable TomlTable::table(const std::string& key) const {
  const TomlNode& node = require(key, "a table");
  if (!std::holds_alternative<TomlNode::Table>(node.value)) fail(key, "is not a table", "a table");
  return {std::shared_ptr<const TomlNode>(node_, &node), file_, prefix_ + key + "."};
}

std::vector<TomlTable> TomlTable::tables(const std::string& key) const {
  const std::string allowed = fmt::format("a list of tables, each under [[{}]]", key);
  const auto* items = std::get_if<std::vector<TomlNode>>(&require(key, allowed).value);
  if (items == nullptr) fail(key, "is not a list of tables", allowed);
  std::vector<TomlTable> result;
  for (const TomlNode& item : *items) {
    if (!std::holds_alternative<TomlNode::Table>(item.value)) {
      fail(key, "holds something else than tables", allowed);
    }
    result.push_back(
        TomlTable({node_, &item}, file_, fmt::format("{}{}[{}].", prefix_, key, result.size())));
  }
  return result;
}

std::vector<TomlTable> TomlTable::items(const std::string& key, const std::string& allowed) const {
  const TomlNode& node = require(key, allowed);
  const auto* list = std::get_if<std::vector<TomlNode>>(&node.value);
  if (list != nullptr && list->empty()) fail(key, "is an empty list", allowed);
  std::vector<TomlTable> out;
  for (std::size_t i = 0; i < (list == nullptr ? 1 : list->size()); ++i) {
    auto single = std::make_shared<TomlNode>();
    const std::string name = list == nullptr ? key : fmt::format("{}[{}]", key, i);
    single->value = TomlNode::Table{{name, list == nullptr ? node : (*list)[i]}};
    out.push_back(TomlTable(std::move(single), file_, prefix_));
    const auto same = [&](const TomlNode& other) { return written(other) == written((*list)[i]); };
    if (list != nullptr &&
        std::any_of(list->begin(), list->begin() + static_cast<std::ptrdiff_t>(i), same)) {
      out.back().fail(name, "stands there twice", allowed);
    }
  }
  return out;
}

std::vector<std::string> TomlTable::words(const std::string& key,
                                          const std::vector<std::string>& allowed) const {
  std::vector<std::string> out;
  for (const TomlTable& item : items(key, joined(allowed))) {
    out.push_back(item.word(item.keys().front(), allowed));
  }
  return out;
}

std::vector<std::int64_t> TomlTable::wholes(const std::string& key, IntegerRange range) const {
  std::vector<std::int64_t> out;
  for (const TomlTable& item : items(key, allowed_whole(range))) {
    out.push_back(item.whole(item.keys().front(), range));
  }
  return out;
}

std::vector<double> TomlTable::reals(const std::string& key, RealRange range) const {
  std::vector<double> out;
  for (const TomlTable& item : items(key, allowed_real(range))) {
    out.push_back(item.real(item.keys().front(), range));
  }
  return out;
}

std::string TomlTable::text_or(const std::string& key, const std::string& absent) const {
  return has(key) ? text(key) : absent;
}

std::int64_t TomlTable::whole_or(const std::string& key, IntegerRange range,
                                 std::int64_t absent) const {
  return has(key) ? whole(key, range) : absent;
}

double TomlTable::real_or(const std::string& key, RealRange range, double absent) const {
  return has(key) ? real(key, range) : absent;
}

bool TomlTable::flag_or(const std::string& key, bool absent) const {
  return has(key) ? flag(key) : absent;
}

void TomlTable::fail(const std::string& key, const std::string& message, const std::string& allowed,
                     const std::string& nearest) const {
  const TomlNode* node = find(key);
  throw InputError({.file = file_,
                    .field = prefix_ + key,
                    .value = node == nullptr ? "" : written(*node),
                    .message = message,
                    .allowed = allowed,
                    .nearest = nearest,
                    .line = node == nullptr ? 0 : node->line,
                    .column = node == nullptr ? 0 : node->column});
}

void TomlTable::fail_at(InputProblem problem) const {
  problem.file = file_;
  if (const TomlNode* node = find(problem.field)) {
    problem.line = node->line;
    problem.column = node->column;
  }
  problem.field = prefix_ + problem.field;
  throw InputError(std::move(problem));
}

}  // namespace fuseline
