#include "base/json_text.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "base/error.h"

namespace fuseline {
namespace {

InputProblem json_problem(const std::string& text) {
  try {
    static_cast<void>(parse_json(text, "f.json"));
  } catch (const InputError& error) {
    EXPECT_EQ(error.problem().file, "f.json");
    return error.problem();
  }
  ADD_FAILURE() << "accepted";
  return {};
}

std::string nested(int depth, const std::string& inner) {
  std::string text;
  for (int i = 0; i < depth; ++i) text += i % 2 == 0 ? "[" : "{\"a\":";
  text += inner;
  for (int i = depth; i-- > 0;) text += i % 2 == 0 ? "]" : "}";
  return text;
}

TEST(ParseJson, TakesADepthThatCanBeCopied) {
  EXPECT_EQ(parse_json(nested(kDeepestJson, "1"), "f.json").dump(), nested(kDeepestJson, "1"));
}

TEST(ParseJson, RefusesADeeperOneWithItsPlace) {
  const InputProblem p = json_problem("{\n \"schema\": " + nested(200'000, "1") + "}");
  EXPECT_EQ(p.message, "JSON is nested too deeply");
  EXPECT_EQ(p.allowed, "at most 64 levels");
  EXPECT_EQ(p.line, 2);
  EXPECT_EQ(json_problem(std::string(1'000'000, '[')).message, "JSON is nested too deeply");
}

TEST(ParseJson, BracketsInTextsAreNoDepth) {
  const std::string text = "\"" + std::string(1000, '[') + "\\\"" + std::string(1000, '{') + "\"";
  EXPECT_TRUE(parse_json(text, "f.json").is_string());
  const std::string many = "[" + std::string(1000, ' ') + "[],[],[],[]]";
  EXPECT_EQ(parse_json(many, "f.json").size(), 4U);
}

TEST(ParseJson, RefusesNumbersThatNoDoubleHolds) {
  EXPECT_EQ(json_problem("[1e400]").message, "a number in the file is too large");
}

TEST(ParseJson, SaysWhereTheSyntaxIsWrong) {
  const InputProblem p = json_problem("{\n  \"a\": }");
  EXPECT_EQ(p.line, 2);
  EXPECT_EQ(p.column, 8);
  EXPECT_EQ(p.message.find("JSON syntax error"), 0U);
  EXPECT_EQ(json_problem("[\"\xff\"]").line, 1);
}

TEST(JsonText, IsUtf8WhateverItHolds) {
  EXPECT_EQ(json_text({{"path",
                        "a\xff"
                        "b"}}),
            "{\n  \"path\": \"a\xEF\xBF\xBD"
            "b\"\n}\n");
}

}  // namespace
}  // namespace fuseline
