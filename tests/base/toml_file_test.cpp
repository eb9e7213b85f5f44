#include "base/toml_file.h"
#include "tests/support/problem_of.h"

#include <gtest/gtest.h>

#include <functional>

namespace fuseline {
namespace {

TomlTable parse(const std::string& text) { return TomlTable::parse(text, "f.toml"); }

using test::problem_of;

void expect_place(const InputProblem& p, const std::string& field, int line, int column) {
  EXPECT_EQ(p.file, "f.toml");
  EXPECT_EQ(p.field, field);
  EXPECT_EQ(p.line, line);
  EXPECT_EQ(p.column, column);
}

TEST(TomlTable, ReadsEveryType) {
  const TomlTable t = parse(
      "name = \"a\"\nn = 3\nx = 2.5\non = true\nlist = [\"p\", \"q\"]\nin = { k = 1 }\n"
      "[section]\nk = 2\n");
  EXPECT_EQ(t.text("name"), "a");
  EXPECT_EQ(t.whole("n", {1, 5}), 3);
  EXPECT_EQ(t.real("x", {0, 5}), 2.5);
  EXPECT_EQ(t.real("n", {0, 5}), 3.0);
  EXPECT_TRUE(t.flag("on"));
  EXPECT_EQ(t.texts("list"), (std::vector<std::string>{"p", "q"}));
  EXPECT_EQ(t.table("in").whole("k", {0, 9}), 1);
  EXPECT_EQ(t.table("section").whole("k", {0, 9}), 2);
  EXPECT_EQ(t.keys(), (std::vector<std::string>{"name", "n", "x", "on", "list", "in", "section"}));
}

TEST(TomlTable, OptionalFieldsFallBackOnlyWhereAbsent) {
  const TomlTable t = parse("a = \"x\"\nn = 3\nr = 1.5\nf = false\n");
  EXPECT_EQ(t.text_or("a", "y"), "x");
  EXPECT_EQ(t.text_or("b", "y"), "y");
  EXPECT_EQ(t.whole_or("n", {0, 9}, 7), 3);
  EXPECT_EQ(t.whole_or("m", {0, 9}, 7), 7);
  EXPECT_EQ(t.real_or("r", {0, 9}, 7), 1.5);
  EXPECT_EQ(t.real_or("s", {0, 9}, 7), 7);
  EXPECT_FALSE(t.flag_or("f", true));
  EXPECT_TRUE(t.flag_or("g", true));
  // A present field of the wrong type is not absent.
  EXPECT_EQ(problem_of([&] { static_cast<void>(t.whole_or("a", {0, 9}, 7)); }).field, "a");
}

TEST(TomlTable, OneValueAndAListReadAlike) {
  const TomlTable t =
      parse("one = 3\nmany = [3, 1]\nname = \"a\"\nnames = [\"b\", \"a\"]\nreal = [0.5, 2]\n");
  EXPECT_EQ(t.wholes("one", {1, 5}), (std::vector<std::int64_t>{3}));
  EXPECT_EQ(t.wholes("many", {1, 5}), (std::vector<std::int64_t>{3, 1}));
  EXPECT_EQ(t.words("name", {"a", "b"}), (std::vector<std::string>{"a"}));
  EXPECT_EQ(t.words("names", {"a", "b"}), (std::vector<std::string>{"b", "a"}));
  EXPECT_EQ(t.reals("real", {0, 5}), (std::vector<double>{0.5, 2}));
}

TEST(TomlTable, ErrorsInAListNameTheItem) {
  const TomlTable t = parse("n = [1, 9]\ntwice = [2, 2]\nnone = []\nw = [\"a\", \"c\"]\n");
  expect_place(problem_of([&] { static_cast<void>(t.wholes("n", {1, 5})); }), "n[1]", 1, 9);
  expect_place(problem_of([&] {
                 static_cast<void>(t.wholes("twice", {1, 5}));
               }),
               "twice[1]", 2, 13);
  expect_place(problem_of([&] { static_cast<void>(t.wholes("none", {1, 5})); }), "none", 3, 8);
  expect_place(problem_of([&] { static_cast<void>(t.words("w", {"a", "b"})); }), "w[1]", 4, 11);
}

TEST(TomlTable, SyntaxErrorsHaveLineAndColumn) {
  const InputProblem p = problem_of([] { parse("a = 1\nb = = 2\n"); });
  expect_place(p, "", 2, 5);
  EXPECT_EQ(p.message.find("TOML syntax error: "), 0U) << p.message;
}

TEST(TomlTable, NumbersThatDoNotFitAreSyntaxErrors) {
  const InputProblem p = problem_of([] { parse("a = 99999999999999999999\n"); });
  EXPECT_EQ(p.line, 1);
}

TEST(TomlTable, NothingButCommentsIsRefused) {
  EXPECT_EQ(problem_of([] { parse("# later\n\n"); }).message, "the file holds no fields");
  EXPECT_EQ(problem_of([] { parse(""); }).message, "the file holds no fields");
}

TEST(TomlTable, MissingFieldsSayWhatIsAllowed) {
  const TomlTable t = parse("a = 1\nin = { k = 1 }\n");
  InputProblem p = problem_of([&] { static_cast<void>(t.whole("b", {1, 9})); });
  expect_place(p, "b", 0, 0);
  EXPECT_EQ(p.message, "the field is missing");
  EXPECT_EQ(p.allowed, "a whole number from 1 to 9");
  // Inside a table the place is the table's.
  p = problem_of([&] { static_cast<void>(t.table("in").flag("on")); });
  expect_place(p, "in.on", 2, 6);
}

TEST(TomlTable, WholeNumbersAreCheckedForTypeAndRange) {
  const TomlTable t =
      parse("zero = 0\nminus = -4\nbig = 10\nhalf = 2.5\nfloat = 3.0\nword = \"3\"");
  const auto problem = [&t](const char* key) {
    return problem_of([&] { static_cast<void>(t.whole(key, {1, 9})); });
  };
  EXPECT_EQ(problem("zero").message, "is too small");
  EXPECT_EQ(problem("minus").message, "is negative");
  EXPECT_EQ(problem("big").message, "is too large");
  EXPECT_EQ(problem("half").message, "is not a whole number");
  EXPECT_EQ(problem("float").message, "is not a whole number");
  EXPECT_EQ(problem("word").message, "is not a whole number");
  expect_place(problem("minus"), "minus", 2, 9);
  EXPECT_EQ(problem("minus").value, "-4");
  EXPECT_EQ(problem("half").value, "2.5");
  EXPECT_EQ(t.whole("big", {1, 10}), 10);
  EXPECT_EQ(t.whole("zero", {0, 10}), 0);
}

TEST(TomlTable, RealNumbersMustBeFiniteAndInRange) {
  const TomlTable t = parse("a = nan\nb = inf\nc = -inf\nd = -1.5\ne = 12.0\nf = true\n");
  const auto message = [&t](const char* key) {
    return problem_of([&] { static_cast<void>(t.real(key, {0.5, 9})); }).message;
  };
  EXPECT_EQ(message("a"), "is not a finite number");
  EXPECT_EQ(message("b"), "is not a finite number");
  EXPECT_EQ(message("c"), "is not a finite number");
  EXPECT_EQ(message("d"), "is negative");
  EXPECT_EQ(message("e"), "is too large");
  EXPECT_EQ(message("f"), "is not a number");
}

TEST(TomlTable, TextsAndFlagsAndTablesAreCheckedForType) {
  const TomlTable t = parse("a = 1\nempty = \"\"\nlist = [\"p\", 2]\nday = 2024-01-01\n");
  EXPECT_EQ(problem_of([&] { static_cast<void>(t.text("a")); }).message, "is not a text");
  EXPECT_EQ(problem_of([&] { static_cast<void>(t.text("empty")); }).message, "is empty");
  EXPECT_EQ(problem_of([&] { static_cast<void>(t.flag("a")); }).allowed, "true or false");
  EXPECT_EQ(problem_of([&] { static_cast<void>(t.table("a")); }).message, "is not a table");
  EXPECT_EQ(problem_of([&] { static_cast<void>(t.texts("a")); }).message, "is not a list");
  EXPECT_EQ(problem_of([&] { static_cast<void>(t.text("day")); }).value, "a date or time");
  const InputProblem p = problem_of([&] { static_cast<void>(t.texts("list")); });
  expect_place(p, "list[1]", 3, 14);
  EXPECT_EQ(p.value, "2");
}

TEST(TomlTable, WordsGiveTheNearest) {
  const TomlTable t = parse("norm = \"rmsnrm\"\n");
  const InputProblem p = problem_of([&] {
    static_cast<void>(t.word("norm", {"rmsnorm", "layernorm"}));
  });
  expect_place(p, "norm", 1, 8);
  EXPECT_EQ(p.allowed, "rmsnorm, layernorm");
  EXPECT_EQ(p.nearest, "rmsnorm");
}

TEST(TomlTable, UnknownFieldsGiveTheirPlaceAndTheNearest) {
  const TomlTable t = parse("layers = 1\nsliding_windw = 3\nin = { valu = 1 }\n");
  EXPECT_NO_THROW(t.refuse_other_keys({"in", "layers", "sliding_windw", "spare"}));
  InputProblem p = problem_of([&] { t.refuse_other_keys({"layers", "sliding_window", "in"}); });
  expect_place(p, "sliding_windw", 2, 1);
  EXPECT_EQ(p.message, "unknown field");
  EXPECT_EQ(p.nearest, "sliding_window");
  p = problem_of([&] { t.table("in").refuse_other_keys({"value"}); });
  EXPECT_EQ(p.field, "in.valu");
  EXPECT_EQ(p.line, 3);
  EXPECT_EQ(p.nearest, "value");
}

TEST(TomlTable, FailAtAddsThePlaceToAProblemFoundElsewhere) {
  const TomlTable t = parse("a = 1\nD = 7\n");
  expect_place(problem_of([&] { t.fail_at({.field = "D", .message = "m"}); }), "D", 2, 5);
  expect_place(problem_of([&] { t.fail_at({.field = "E", .message = "m"}); }), "E", 0, 0);
}

TEST(TomlTable, TablesOutliveTheirParent) {
  const auto inner = [] { return parse("in = { k = 4 }\n").table("in"); }();
  EXPECT_EQ(inner.whole("k", {0, 9}), 4);
}

TEST(TomlTable, OverlongLinesAreRefusedBeforeParsing) {
  std::string dotted = "a";
  for (int i = 0; i < 100'000; ++i) dotted += ".a";
  const InputProblem p = problem_of([&] { parse("b = 1\n" + dotted + " = 1\n"); });
  EXPECT_EQ(p.line, 2);
  EXPECT_NE(p.message.find("longer than"), std::string::npos) << p.message;
}

TEST(TomlTable, LoadNamesTheFileThatIsNotThere) {
  const InputProblem p = problem_of([] { TomlTable::load("no/such.toml"); });
  EXPECT_EQ(p.file, "no/such.toml");
  EXPECT_EQ(p.message, "no such file");
}

}  // namespace
}  // namespace fuseline
