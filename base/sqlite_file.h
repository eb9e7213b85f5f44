// Tables of an SQLite file that a user names; nothing is ever written to it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace fuseline {

// Whether the bytes begin as SQLite's files do.
bool is_sqlite(std::string_view bytes);

// One row of the columns that were asked for. InputError (table.column, value, allowed) when a cell
// is not what is asked for.
class SqliteRow {
 public:
  virtual ~SqliteRow() = default;
  [[nodiscard]] virtual std::int64_t whole(std::size_t column) const = 0;
  // 0 and "" for NULL.
  [[nodiscard]] virtual std::int64_t whole_or_zero(std::size_t column) const = 0;
  [[nodiscard]] virtual std::string text_or_empty(std::size_t column) const = 0;
};

class SqliteFile {
 public:
  // InputError: no regular file, no database, damaged. MissingError: built without SQLite.
  explicit SqliteFile(const std::string& path);
  ~SqliteFile();
  SqliteFile(const SqliteFile&) = delete;
  SqliteFile& operator=(const SqliteFile&) = delete;

  // Names of real tables: a view is a program of the file's, and is not run.
  [[nodiscard]] const std::vector<std::string>& tables() const { return tables_; }
  [[nodiscard]] bool has_table(const std::string& table) const;
  [[nodiscard]] std::vector<std::string> columns(const std::string& table) const;

  // Every row's columns, in the order of the file. InputError: no such table or column, damaged
  // pages, and what `row` throws.
  void each(const std::string& table, const std::vector<std::string>& columns,
            const std::function<void(const SqliteRow&)>& row) const;

 private:
  struct Handle;
  std::string path_;
  std::unique_ptr<Handle> handle_;
  std::vector<std::string> tables_;
};

}  // namespace fuseline
