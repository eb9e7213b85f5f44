// Texts that are no files at all: noise, runs of one character, brackets within brackets. Parsers
// may only throw InputError. tests/fuzz changes good files.
#include <gtest/gtest.h>

#include <array>
#include <random>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/toml_file.h"
#include "model/config/hf_config.h"
#include "model/config/model_files.h"
#include "model/import/import_graph.h"

namespace fuseline {
namespace {

void fuzz_with_noise(int rounds) {
  std::mt19937 random(7);
  for (int round = 0; round < rounds; ++round) {
    std::string text(random() % 200, '\0');
    for (char& c : text) c = static_cast<char>(random());
    EXPECT_THROW(parse_hf_config(text, "n"), InputError);
    EXPECT_THROW(read_model(TomlTable::parse(text, "n")), InputError);
    EXPECT_THROW(import_graph(text, "n"), InputError);
  }
}

TEST(FuzzParsers, Noise) { fuzz_with_noise(200); }
TEST(LongFuzzParsers, Noise) { fuzz_with_noise(2000); }

TEST(FuzzParsers, RunsOfOneCharacter) {
  for (int c = 0; c < 256; ++c) {
    for (const std::size_t length : std::array<std::size_t, 4>{1, 100, 1999, 200'000}) {
      const std::string text(length, static_cast<char>(c));
      EXPECT_THROW(parse_hf_config(text, "n"), InputError) << c << " x " << length;
      EXPECT_THROW(read_model(TomlTable::parse(text, "n")), InputError) << c << " x " << length;
    }
  }
}

// Whatever opens a level, opened again and again, over lines too: parsers recurse, and stacks end.
TEST(FuzzParsers, Depth) {
  const std::array<std::string_view, 12> openings = {
      "[",        "[\n",          "{",          "{\"a\":",  "{\"a\":\n[", "a.",
      "a = {a.a", "{a.a.a = [\n", "[[a.a]]\na", "a = [\"[", "'[' = [",    "{ \"a.b\" = [\n{"};
  std::mt19937 random(11);
  for (const std::string_view first : openings) {
    for (const std::string_view second : openings) {
      for (const int times : {3, 40, 300, 20'000}) {
        std::string text;
        for (int i = 0; i < times; ++i) text += random() % 8 == 0 ? second : first;
        EXPECT_THROW(parse_hf_config(text, "n"), InputError) << first << " x " << times;
        EXPECT_THROW(read_model(TomlTable::parse(text, "n")), InputError)
            << first << " x " << times;
      }
    }
  }
}

}  // namespace
}  // namespace fuseline
