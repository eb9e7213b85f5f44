// Tables of SQLite that we write, read by our own reader.
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "base/sqlite_file.h"
#include "base/sqlite_table.h"

namespace fuseline {
namespace {

TEST(SqliteTable, HoldsTheCellsOfTheLines) {
  const std::string csv = "name,rows,time\n\"a,\"\"b\"\"\",12,1.5\nc,,-0.25\n";
  const std::string bytes = sqlite_of_csv("predictions", csv);
  EXPECT_TRUE(is_sqlite(bytes));
  EXPECT_EQ(bytes, sqlite_of_csv("predictions", csv));
  const std::filesystem::path path = std::filesystem::path(testing::TempDir()) / "table.sqlite";
  std::ofstream(path, std::ios::binary) << bytes;
  const SqliteFile file(path.string());
  EXPECT_EQ(file.tables(), std::vector<std::string>{"predictions"});
  EXPECT_EQ(file.columns("predictions"), (std::vector<std::string>{"name", "rows", "time"}));
  std::vector<std::string> names;
  std::vector<std::int64_t> rows;
  file.each("predictions", {"name", "rows"}, [&](const SqliteRow& row) {
    names.push_back(row.text_or_empty(0));
    rows.push_back(row.whole_or_zero(1));
  });
  EXPECT_EQ(names, (std::vector<std::string>{"a,\"b\"", "c"}));
  EXPECT_EQ(rows, (std::vector<std::int64_t>{12, 0}));
}

TEST(SqliteTable, KnowsItsFilesByTheirNames) {
  for (const char* name : {"a.sqlite", "a.sqlite3", "a.db"}) EXPECT_TRUE(named_as_sqlite(name));
  for (const char* name : {"a.csv", "sqlite", "a.sqlite.csv"}) EXPECT_FALSE(named_as_sqlite(name));
}

}  // namespace
}  // namespace fuseline
