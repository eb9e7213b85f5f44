#include "base/sqlite_table.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "base/error.h"

#ifdef FUSELINE_HAS_SQLITE
#include <sqlite3.h>
#endif

namespace fuseline {

bool named_as_sqlite(const std::string& path) {
  constexpr std::array<std::string_view, 3> kEndings = {".sqlite", ".sqlite3", ".db"};
  return std::ranges::any_of(kEndings, [&](std::string_view end) { return path.ends_with(end); });
}

#ifdef FUSELINE_HAS_SQLITE

namespace {

struct CloseWritten {
  void operator()(sqlite3* database) const { sqlite3_close(database); }
};
struct FinaliseWritten {
  void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};
struct FreeWritten {
  void operator()(unsigned char* bytes) const { sqlite3_free(bytes); }
};

// The next line's cells, and `text` without it. A cell in quotes may hold commas, line ends and
// doubled quotes.
std::vector<std::string> next_cells(std::string_view& text) {
  std::vector<std::string> cells(1);
  bool quoted = false;
  std::size_t at = 0;
  for (; at < text.size(); ++at) {
    const char c = text[at];
    if (quoted) {
      if (c != '"')
        cells.back() += c;
      else if (at + 1 < text.size() && text[at + 1] == '"')
        cells.back() += text[++at];
      else
        quoted = false;
    } else if (c == '"') {
      quoted = true;
    } else if (c == ',') {
      cells.emplace_back();
    } else if (c == '\n') {
      ++at;
      break;
    } else {
      cells.back() += c;
    }
  }
  text.remove_prefix(at);
  return cells;
}

template <class Number>
std::optional<Number> number_in(const std::string& cell) {
  Number value{};
  const char* end = cell.data() + cell.size();
  const auto [last, error] = std::from_chars(cell.data(), end, value);
  if (error != std::errc() || last != end) return std::nullopt;
  return value;
}

void bind_cell(sqlite3_stmt* statement, int place, const std::string& cell) {
  const bool digits =
      !cell.empty() && cell.find_first_not_of("+-.0123456789eE") == std::string::npos;
  if (cell.empty())
    sqlite3_bind_null(statement, place);
  else if (const auto whole = number_in<std::int64_t>(cell))
    sqlite3_bind_int64(statement, place, *whole);
  else if (const auto real = digits ? number_in<double>(cell) : std::nullopt)
    sqlite3_bind_double(statement, place, *real);
  else
    sqlite3_bind_text(statement, place, cell.data(), static_cast<int>(cell.size()),
                      SQLITE_TRANSIENT);
}

std::string in_quotes(const std::string& name) {
  std::string out = "\"";
  for (const char c : name) out += c == '"' ? "\"\"" : std::string(1, c);
  return out + "\"";
}

}  // namespace

std::string sqlite_of_csv(const std::string& table, const std::string& csv) {
  sqlite3* opened = nullptr;
  const int status = sqlite3_open(":memory:", &opened);
  const std::unique_ptr<sqlite3, CloseWritten> database(opened);
  const auto sure = [&](bool done) {
    if (!done)
      throw MissingError(std::string("SQLite cannot make the table: ") + sqlite3_errmsg(opened));
  };
  sure(status == SQLITE_OK);
  const auto run = [&](const std::string& command) {
    sure(sqlite3_exec(opened, command.c_str(), nullptr, nullptr, nullptr) == SQLITE_OK);
  };
  std::string_view rest = csv;
  const std::vector<std::string> columns = next_cells(rest);
  std::string names, places;
  for (const std::string& column : columns) {
    names += (names.empty() ? "" : ", ") + in_quotes(column);
    places += places.empty() ? "?" : ", ?";
  }
  run("CREATE TABLE " + in_quotes(table) + " (" + names + ")");
  run("BEGIN");
  const std::string insert = "INSERT INTO " + in_quotes(table) + " VALUES (" + places + ")";
  sqlite3_stmt* prepared = nullptr;
  sure(sqlite3_prepare_v2(opened, insert.c_str(), -1, &prepared, nullptr) == SQLITE_OK);
  std::unique_ptr<sqlite3_stmt, FinaliseWritten> statement(prepared);
  while (!rest.empty()) {
    const std::vector<std::string> cells = next_cells(rest);
    FUSELINE_ASSERT(cells.size() == columns.size(), "a line has other cells than its header");
    for (std::size_t i = 0; i < cells.size(); ++i)
      bind_cell(prepared, static_cast<int>(i) + 1, cells[i]);
    sure(sqlite3_step(prepared) == SQLITE_DONE && sqlite3_reset(prepared) == SQLITE_OK);
  }
  statement.reset();
  run("COMMIT");
  sqlite3_int64 size = 0;
  const std::unique_ptr<unsigned char, FreeWritten> bytes(
      sqlite3_serialize(opened, "main", &size, 0));
  sure(bytes != nullptr);
  return {reinterpret_cast<const char*>(bytes.get()), static_cast<std::size_t>(size)};
}

#else

std::string sqlite_of_csv(const std::string& /*table*/, const std::string& /*csv*/) {
  throw MissingError("SQLite files are written where fuseline was built with libsqlite3-dev");
}

#endif

}  // namespace fuseline
