// A typed reader of TOML files. Every error names the file, the line and column, the field, what
// was written and what is allowed.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "base/error.h"

namespace fuseline {

// Both ends belong to the range.
struct IntegerRange {
  std::int64_t least = 0;
  std::int64_t most = 0;
};
struct RealRange {
  double least = 0;
  double most = 0;
};

struct TomlNode;  // one value with its place in the file

// One table of a file: the top level, a [section], or an inline table. Copies share the parsed
// file.
class TomlTable {
 public:
  // InputError: a syntax error (line, column), or nothing but comments.
  static TomlTable parse(const std::string& text, const std::string& file);
  static TomlTable load(const std::filesystem::path& path);

  [[nodiscard]] const std::string& file() const { return file_; }
  [[nodiscard]] bool has(const std::string& key) const;
  [[nodiscard]] bool is_text(const std::string& key) const;
  [[nodiscard]] std::vector<std::string> keys() const;  // in the order of the file

  // InputError with the nearest known key when the table holds a key that is not in `known`.
  void refuse_other_keys(const std::vector<std::string>& known) const;

  // Required fields. InputError: missing, another type, out of range, not finite, an empty string.
  [[nodiscard]] std::string text(const std::string& key) const;
  [[nodiscard]] std::string word(const std::string& key,
                                 const std::vector<std::string>& words) const;
  [[nodiscard]] std::int64_t whole(const std::string& key, IntegerRange range) const;
  [[nodiscard]] double real(const std::string& key, RealRange range) const;  // 3 counts as 3.0
  [[nodiscard]] bool flag(const std::string& key) const;
  // A number in the range, whole where it is written so, or true or false.
  [[nodiscard]] std::variant<std::int64_t, double, bool> number_or_flag(const std::string& key,
                                                                        RealRange range) const;
  [[nodiscard]] std::vector<std::string> texts(const std::string& key) const;
  [[nodiscard]] TomlTable table(const std::string& key) const;
  [[nodiscard]] std::vector<TomlTable> tables(const std::string& key) const;  // [[key]]

  // One value, or a list of at least one, none of them twice. InputError as for the single ones, at
  // the item.
  [[nodiscard]] std::vector<std::string> words(const std::string& key,
                                               const std::vector<std::string>& words) const;
  [[nodiscard]] std::vector<std::int64_t> wholes(const std::string& key, IntegerRange range) const;
  [[nodiscard]] std::vector<double> reals(const std::string& key, RealRange range) const;

  // Optional fields: `absent` where the key is not there.
  [[nodiscard]] std::string text_or(const std::string& key, const std::string& absent) const;
  [[nodiscard]] std::int64_t whole_or(const std::string& key, IntegerRange range,
                                      std::int64_t absent) const;
  [[nodiscard]] double real_or(const std::string& key, RealRange range, double absent) const;
  [[nodiscard]] bool flag_or(const std::string& key, bool absent) const;

  // Throws InputError for a field with its place and the value as written.
  [[noreturn]] void fail(const std::string& key, const std::string& message,
                         const std::string& allowed = {}, const std::string& nearest = {}) const;
  // Throws the problem again with this file and, where `problem.field` is a key here, its place.
  [[noreturn]] void fail_at(InputProblem problem) const;

 private:
  TomlTable(std::shared_ptr<const TomlNode> node, std::string file, std::string prefix);
  [[nodiscard]] const TomlNode* find(const std::string& key) const;
  [[nodiscard]] const TomlNode& require(const std::string& key, const std::string& allowed) const;
  // The list's items, each as a table of its own under its key; a single value is one item.
  [[nodiscard]] std::vector<TomlTable> items(const std::string& key,
                                             const std::string& allowed) const;

  std::shared_ptr<const TomlNode> node_;
  std::string file_;
  std::string prefix_;  // "sm_count." inside the table sm_count
};

}  // namespace fuseline
