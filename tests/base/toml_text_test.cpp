#include "base/toml_text.h"

#include <gtest/gtest.h>

#include "base/toml_file.h"

namespace fuseline {
namespace {

// What the parser makes of it is what was written.
TEST(TomlText, EveryCharacterComesBack) {
  std::string all = "µ → \"quoted\" \\ ";
  for (char c = 1; c < 0x20; ++c) all += c;
  all += "\x7F";
  const TomlTable table = TomlTable::parse("a = " + toml_text(all) + "\n", "f.toml");
  EXPECT_EQ(table.text("a"), all);
}

TEST(TomlText, AListIsOneLineWhileItFits) {
  EXPECT_EQ(toml_list({}), "[]");
  EXPECT_EQ(toml_list({"a", "b\"c"}), "[\"a\", \"b\\\"c\"]");
  const std::string item(50, 'x');
  EXPECT_EQ(toml_list({item, item}), "[\n  \"" + item + "\",\n  \"" + item + "\",\n]");
}

}  // namespace
}  // namespace fuseline
