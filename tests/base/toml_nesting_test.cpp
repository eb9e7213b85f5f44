#include "base/toml_nesting.h"

#include <gtest/gtest.h>

#include <string>

#include "base/error.h"
#include "base/toml_file.h"

namespace fuseline {
namespace {

int refused_line(const std::string& text) {
  try {
    check_toml_nesting(text, "f.toml");
  } catch (const InputError& error) {
    EXPECT_EQ(error.problem().message, "values are nested too deeply");
    return error.problem().line;
  }
  return 0;
}

std::string dotted(int dots) {
  std::string key = "a";
  for (int i = 0; i < dots; ++i) key += ".a";
  return key;
}

TEST(TomlNesting, LimitsBracketsAndDots) {
  EXPECT_EQ(refused_line("x = " + std::string(32, '[') + std::string(32, ']')), 0);
  EXPECT_EQ(refused_line("\nx = " + std::string(33, '[') + std::string(33, ']')), 2);
  EXPECT_EQ(refused_line(dotted(16) + " = 1"), 0);
  EXPECT_EQ(refused_line(dotted(17) + " = 1"), 1);
  EXPECT_EQ(refused_line("[" + dotted(17) + "]"), 1);
}

// Each line stays short, and the parser's own limit counts brackets only.
TEST(TomlNesting, CountsBothTogetherInOneValue) {
  std::string text = "x = ", end;
  for (int i = 0; i < 250; ++i) {
    text += "{ " + dotted(900) + " = [\n";
    end += "]}";
  }
  EXPECT_THROW(TomlTable::parse(text + "1" + end, "f.toml"), InputError);
}

TEST(TomlNesting, TextsCommentsAndListsOfNumbersAreNoDepth) {
  const std::string dots(100, '.'), brackets(100, '[');
  EXPECT_EQ(refused_line("# " + dots + brackets + "\nx = 1"), 0);
  EXPECT_EQ(refused_line("x = \"" + dots + "\\\"" + brackets + "\""), 0);
  EXPECT_EQ(refused_line("x = '" + dots + brackets + "\\'"), 0);
  EXPECT_EQ(refused_line("x = \"\"\"\n\"" + dots + "\n" + brackets + "\"\"\""), 0);
  EXPECT_EQ(refused_line("x = '''\n'" + dots + brackets + "'''"), 0);
  std::string list = "x = [";
  for (int i = 0; i < 200; ++i) list += "1.5, ";
  EXPECT_EQ(refused_line(list + "]"), 0);
  EXPECT_EQ(refused_line("x = \"\"\"\na\nb\\\nc\"\"\"\ny = " + brackets), 5) << "lines go on";
}

TEST(TomlNesting, WhatIsNotClosedIsLeftToTheParser) {
  for (const char* text :
       {"x = \"", "x = \"\"\"", "x = '", "x = \"\\", "\"", "'''", "x = \"a\nb"}) {
    EXPECT_EQ(refused_line(text), 0) << text;
    EXPECT_THROW(TomlTable::parse(text, "f.toml"), InputError) << text;
  }
}

}  // namespace
}  // namespace fuseline
