// Readers of large files that strangers wrote: gzip, JSON without holding it, SQLite.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <zlib.h>

#include "base/error.h"
#include "base/gzip_text.h"
#include "base/json_walk.h"
#include "base/sqlite_file.h"

namespace fuseline {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Of an InputError; empty when there is none.
template <class Call>
std::string refusal(Call&& call) {
  try {
    call();
  } catch (const InputError& error) {
    return error.what();
  }
  return {};
}

std::string packed(const std::string& text) {
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, 6, Z_DEFLATED, MAX_WBITS + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string out(compressBound(text.size()) + 64, '\0');
  std::string in = text;
  stream.next_in = reinterpret_cast<Bytef*>(in.data());
  stream.avail_in = static_cast<uInt>(in.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

TEST(GzipText, ComesBackWhole) {
  std::string text;
  for (std::int64_t i = 0; i < 300'000; ++i) text += std::to_string(i * 7919 % 10'007) + ",";
  ASSERT_GT(text.size(), std::size_t{1} << 20);  // more than one step of the unpacking
  EXPECT_TRUE(is_gzip(packed(text)));
  EXPECT_FALSE(is_gzip(text));
  EXPECT_EQ(gunzip(packed(text), "t.gz", Bytes(1 << 24)), text);
  // Files behind each other are one text, as gzip itself reads them.
  EXPECT_EQ(gunzip(packed("one ") + packed("two"), "t.gz", Bytes(100)), "one two");
  EXPECT_EQ(gunzip(packed(""), "t.gz", Bytes(100)), "");
}

TEST(GzipText, RefusesWhatIsDamagedOrTooLarge) {
  const std::string good = packed("some text that is long enough to be cut somewhere");
  for (std::size_t length = 2; length < good.size(); ++length)
    EXPECT_THAT(refusal([&] { gunzip(good.substr(0, length), "t.gz", Bytes(1000)); }),
                HasSubstr("t.gz: the packed text is cut off"))
        << length;
  std::string damaged = good;
  damaged[good.size() / 2] = static_cast<char>(damaged[good.size() / 2] ^ 0x55);
  EXPECT_NE(refusal([&] { gunzip(damaged, "t.gz", Bytes(1000)); }), "");
  EXPECT_THAT(refusal([&] { gunzip(good + "tail", "t.gz", Bytes(1000)); }), HasSubstr("damaged"));
  // A bomb: 64 MiB of zeros in 64 KB.
  const std::string bomb = packed(std::string(std::size_t{64} << 20, '\0'));
  EXPECT_LT(bomb.size(), 100'000U);
  EXPECT_THAT(refusal([&] { gunzip(bomb, "t.gz", Bytes(1 << 20)); }),
              HasSubstr("is too large once unpacked; allowed: at most 1048576 bytes"));
}

// Writes down what it is told.
class Recorder : public JsonVisitor {
 public:
  std::vector<std::string> seen;

  void text(const Path& path, const std::string& value) override { put(path, "'" + value + "'"); }
  void number(const Path& path, double value) override { put(path, std::to_string(value)); }
  void other(const Path& path) override { put(path, "-"); }
  void begin(const Path& path, bool object) override { put(path, object ? "{" : "["); }
  void end(const Path& path, bool object) override { put(path, object ? "}" : "]"); }

 private:
  void put(const Path& path, const std::string& what) {
    std::string line;
    for (const std::string& part : path) line += part + "/";
    seen.push_back(line + what);
  }
};

TEST(JsonWalk, TellsTheNamesThatLeadToAValue) {
  Recorder recorder;
  walk_json(R"({"a": [{"b": "x"}, 2], "c": null})", "t.json", recorder);
  EXPECT_THAT(recorder.seen, ElementsAre("{", "a/[", "a//{", "a//b/'x'", "a//}", "a//2.000000",
                                         "a/]", "c/-", "}"));
}

TEST(JsonWalk, RefusesWhatIsNoJson) {
  const auto walk = [](const std::string& text) {
    return refusal([&] {
      Recorder recorder;
      walk_json(text, "t.json", recorder);
    });
  };
  EXPECT_THAT(walk("{\"a\": [1,\n 2"), HasSubstr("t.json:2:3: JSON syntax error"));
  EXPECT_THAT(walk("[1] 2"), HasSubstr("JSON syntax error"));
  EXPECT_THAT(walk(""), HasSubstr("JSON syntax error"));
  EXPECT_THAT(walk("[1e999]"), HasSubstr("a number in the file is too large"));
  EXPECT_THAT(walk("\"\xFF\""), HasSubstr("JSON syntax error"));
  EXPECT_THAT(walk(std::string(100'000, '[')), HasSubstr("t.json:1:65: JSON is nested too deeply"));
}

// Makes a database with Python's own module; empty where there is no Python.
std::string database(const std::string& name, const std::string& statements) {
  const std::string path = (std::filesystem::path(testing::TempDir()) / name).string();
  std::filesystem::remove(path);
  std::ofstream(path + ".sql") << statements;
  const std::string command =
      "python3 -c 'import sqlite3, sys; d = sqlite3.connect(sys.argv[1]); "
      "d.executescript(open(sys.argv[1] + \".sql\").read()); d.close()' " +
      path;
  return std::system(command.c_str()) == 0 ? path : std::string();
}

TEST(SqliteFile, ReadsTablesAndRefusesTheRest) {
  const std::string path = database("t.sqlite", R"(
    CREATE TABLE t (id INTEGER, name TEXT, "odd ""name" INTEGER);
    INSERT INTO t VALUES (1, 'one', 10), (2, NULL, 20), (3, 'three', NULL);
    CREATE VIEW endless AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)
      SELECT i AS id FROM n;)");
  if (path.empty()) GTEST_SKIP() << "python3 has no sqlite3 module";
  const SqliteFile file(path);
  EXPECT_THAT(file.tables(), ElementsAre("t"));  // a view is a program of the file's
  EXPECT_THAT(file.columns("t"), ElementsAre("id", "name", "odd \"name"));
  std::vector<std::string> rows;
  file.each("t", {"name", "odd \"name", "id"}, [&](const SqliteRow& row) {
    rows.push_back(row.text_or_empty(0) + " " + std::to_string(row.whole_or_zero(1)) + " " +
                   std::to_string(row.whole(2)));
  });
  EXPECT_THAT(rows, ElementsAre("one 10 1", " 20 2", "three 0 3"));
  EXPECT_THAT(refusal([&] { file.each("endless", {"id"}, [](const SqliteRow&) {}); }),
              HasSubstr("there is no such table"));
  EXPECT_THAT(refusal([&] { file.each("t", {"nam"}, [](const SqliteRow&) {}); }),
              HasSubstr("t.nam: the table lacks this column; did you mean 'name'?"));
  EXPECT_THAT(
      refusal([&] { file.each("t", {"name"}, [](const SqliteRow& r) { (void)r.whole(0); }); }),
      HasSubstr("t.name = 'one': is of another type; allowed: a whole number"));
}

TEST(SqliteFile, RefusesDamagedFiles) {
  std::string insert = "CREATE TABLE t (id INTEGER, name TEXT);";
  for (int i = 0; i < 2000; ++i)
    insert += "INSERT INTO t VALUES (" + std::to_string(i) + ", 'a name that takes some place');";
  const std::string path = database("damaged.sqlite", "BEGIN;" + insert + "COMMIT;");
  if (path.empty()) GTEST_SKIP() << "python3 has no sqlite3 module";
  const auto read = [&] {
    return refusal([&] {
      const SqliteFile file(path);
      file.each("t", {"id", "name"}, [](const SqliteRow& row) { (void)row.text_or_empty(1); });
    });
  };
  EXPECT_EQ(read(), "");
  std::filesystem::resize_file(path, std::filesystem::file_size(path) / 2);
  EXPECT_THAT(read(), HasSubstr("the database cannot be read"));
  std::ofstream(path, std::ios::binary) << std::string("SQLite format 3\0", 16) << "and no more";
  EXPECT_THAT(read(), HasSubstr("the database cannot be read"));
  EXPECT_THAT(refusal([] { SqliteFile("/dev/null"); }), HasSubstr("a regular file"));
}

}  // namespace
}  // namespace fuseline
