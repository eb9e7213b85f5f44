#include "base/sqlite_file.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"
#include "base/path_kind.h"

#ifdef FUSELINE_HAS_SQLITE
#include <sqlite3.h>
#endif

namespace fuseline {

bool is_sqlite(std::string_view bytes) {
  return bytes.starts_with(std::string_view("SQLite format 3\0", 16));
}

bool SqliteFile::has_table(const std::string& table) const {
  return std::find(tables_.begin(), tables_.end(), table) != tables_.end();
}

#ifdef FUSELINE_HAS_SQLITE

namespace {

// The longest text or page that is read: a kernel's name has some thousand letters.
constexpr int kLongestCell = 1 << 20;
constexpr std::size_t kShownLetters = 60;

struct Finalise {
  void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};
using Statement = std::unique_ptr<sqlite3_stmt, Finalise>;

[[noreturn]] void damaged_database(const std::string& path, sqlite3* database) {
  throw InputError({.file = path,
                    .message = std::string("the database cannot be read: ") +
                               (database == nullptr ? "no memory" : sqlite3_errmsg(database)),
                    .allowed = "a whole SQLite file"});
}

// Names come from us or from the file's own list; quotes in them are doubled.
std::string quoted_name(const std::string& name) {
  std::string out = "\"";
  for (const char c : name) out += c == '"' ? "\"\"" : std::string(1, c);
  return out + "\"";
}

Statement prepared(const std::string& path, sqlite3* database, const std::string& query) {
  sqlite3_stmt* statement = nullptr;
  if (sqlite3_prepare_v2(database, query.c_str(), -1, &statement, nullptr) != SQLITE_OK)
    damaged_database(path, database);
  return Statement(statement);
}

// Whether there is another row.
bool stepped(const std::string& path, sqlite3* database, sqlite3_stmt* statement) {
  const int status = sqlite3_step(statement);
  if (status != SQLITE_ROW && status != SQLITE_DONE) damaged_database(path, database);
  return status == SQLITE_ROW;
}

std::string text_cell(sqlite3_stmt* statement, int column) {
  const unsigned char* text = sqlite3_column_text(statement, column);
  return text == nullptr ? std::string() : reinterpret_cast<const char*>(text);
}

class StatementRow : public SqliteRow {
 public:
  StatementRow(const std::string& path, const std::string& table,
               const std::vector<std::string>& columns, sqlite3_stmt* statement)
      : path_(path), table_(table), columns_(columns), statement_(statement) {}

  [[nodiscard]] std::int64_t whole(std::size_t column) const override {
    if (type(column) != SQLITE_INTEGER) refuse(column, "a whole number");
    return sqlite3_column_int64(statement_, static_cast<int>(column));
  }
  [[nodiscard]] std::int64_t whole_or_zero(std::size_t column) const override {
    return type(column) == SQLITE_NULL ? 0 : whole(column);
  }
  [[nodiscard]] std::string text_or_empty(std::size_t column) const override {
    if (type(column) == SQLITE_NULL) return {};
    if (type(column) != SQLITE_TEXT) refuse(column, "text");
    return text_cell(statement_, static_cast<int>(column));
  }

 private:
  [[nodiscard]] int type(std::size_t column) const {
    return sqlite3_column_type(statement_, static_cast<int>(column));
  }
  [[noreturn]] void refuse(std::size_t column, const char* allowed) const {
    throw InputError(
        {.file = path_,
         .field = table_ + "." + columns_[column],
         .value = text_cell(statement_, static_cast<int>(column)).substr(0, kShownLetters),
         .message = "is of another type",
         .allowed = allowed});
  }

  const std::string& path_;
  const std::string& table_;
  const std::vector<std::string>& columns_;
  sqlite3_stmt* statement_;
};

}  // namespace

struct SqliteFile::Handle {
  sqlite3* database = nullptr;
  ~Handle() { sqlite3_close(database); }
};

SqliteFile::SqliteFile(const std::string& path) : path_(path), handle_(new Handle) {
  if (kind_of_path(path) != PathKind::regular) {
    throw InputError({.file = path,
                      .message = "an SQLite file is read in pieces, which this is not fit for",
                      .allowed = "a regular file"});
  }
  if (sqlite3_open_v2(path.c_str(), &handle_->database, SQLITE_OPEN_READONLY, nullptr) != SQLITE_OK)
    damaged_database(path, handle_->database);
  sqlite3* database = handle_->database;
  // The file is a stranger's: its schema may call nothing, and no cell is larger than any of ours.
  sqlite3_db_config(database, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  sqlite3_db_config(database, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_limit(database, SQLITE_LIMIT_LENGTH, kLongestCell);
  const Statement list =
      prepared(path, database,
               "SELECT name FROM sqlite_master WHERE type = 'table' AND rootpage > 0 ORDER BY 1");
  while (stepped(path, database, list.get())) tables_.push_back(text_cell(list.get(), 0));
}

SqliteFile::~SqliteFile() = default;

std::vector<std::string> SqliteFile::columns(const std::string& table) const {
  std::vector<std::string> out;
  if (!has_table(table)) return out;
  const Statement list =
      prepared(path_, handle_->database, "PRAGMA table_info(" + quoted_name(table) + ")");
  while (stepped(path_, handle_->database, list.get())) out.push_back(text_cell(list.get(), 1));
  return out;
}

void SqliteFile::each(const std::string& table, const std::vector<std::string>& columns,
                      const std::function<void(const SqliteRow&)>& row) const {
  if (!has_table(table)) {
    throw InputError({.file = path_,
                      .field = table,
                      .message = "there is no such table in the file",
                      .nearest = nearest_name(table, tables_)});
  }
  const std::vector<std::string> there = this->columns(table);
  std::string names;
  for (const std::string& column : columns) {
    if (std::find(there.begin(), there.end(), column) == there.end()) {
      throw InputError({.file = path_,
                        .field = table + "." + column,
                        .message = "the table lacks this column",
                        .nearest = nearest_name(column, there)});
    }
    names += (names.empty() ? "" : ", ") + quoted_name(column);
  }
  const Statement rows = prepared(path_, handle_->database,
                                  fmt::format("SELECT {} FROM {}", names, quoted_name(table)));
  const StatementRow current(path_, table, columns, rows.get());
  while (stepped(path_, handle_->database, rows.get())) row(current);
}

#else

struct SqliteFile::Handle {};
SqliteFile::SqliteFile(const std::string& path) : path_(path) {
  throw MissingError("SQLite files are read where fuseline was built with libsqlite3-dev: " + path);
}
SqliteFile::~SqliteFile() = default;
std::vector<std::string> SqliteFile::columns(const std::string& /*table*/) const { return {}; }
void SqliteFile::each(const std::string& /*table*/, const std::vector<std::string>& /*columns*/,
                      const std::function<void(const SqliteRow&)>& /*row*/) const {}

#endif

}  // namespace fuseline
