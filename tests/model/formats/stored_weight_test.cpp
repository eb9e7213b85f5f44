// Number formats of weights: their words, the tensors beside them, and what parts of a matrix bring
// along.
#include "model/formats/stored_weight.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "base/error.h"
#include "model/formats/weight_format.h"
#include "tests/model/tiny_models.h"

namespace fuseline {
namespace {

StoredWeight format(const std::string& name) { return parse_stored_weight(name, "--weights", ""); }

InputProblem weight_problem(const std::string& text) {
  try {
    static_cast<void>(parse_stored_weight(text, "--weights", "bf16"));
  } catch (const InputError& error) {
    return error.problem();
  }
  return {};
}

TEST(StoredWeight, IsReadAndNamedInTheSameWords) {
  for (const std::string& name : weight_format_names()) EXPECT_EQ(format(name).name(), name);
  EXPECT_EQ(format("int4:64").name(), "int4:64");
  EXPECT_EQ(format("int4:128").name(), "int4");
  EXPECT_EQ(format("int8:128").name(), "int8:128");
  EXPECT_EQ(format("int8:0").name(), "int8");
  EXPECT_EQ(format("int4:0").name(), "int4:0");
  EXPECT_FALSE(parse_stored_weight("bf16", "", "bf16").quantised());
}

TEST(StoredWeight, ScalesSumsWhereWholeStepsShareAScale) {
  for (const char* name : {"int4", "int4:256", "int4:0", "int8", "int8:64", "fp8"})
    EXPECT_TRUE(format(name).scales_sums()) << name;
  for (const char* name : {"int4:64", "int8:32", "nvfp4", "mxfp4"})
    EXPECT_FALSE(format(name).scales_sums()) << name;
  for (const std::string& name : weight_format_names()) {
    if (const StoredWeight w = format(name); w.format->zero_points && w.scaled_within_rows())
      EXPECT_FALSE(w.scales_sums()) << name;
  }
}

TEST(StoredWeight, RefusesOtherWordsAndGroups) {
  EXPECT_EQ(weight_problem("int5").nearest, "int4");
  EXPECT_EQ(weight_problem("int5").field, "--weights");
  EXPECT_NE(weight_problem("fp16").allowed.find("nvfp4"), std::string::npos);
  EXPECT_NE(weight_problem("nvfp4:32").message.find("groups of its own"), std::string::npos);
  for (const char* wrong :
       {"int4:", "int4:x", "int4:-8", "int4:7", "int4:2", "int4:64x", "int4:99999999999999999999"})
    EXPECT_NE(weight_problem(wrong).message.find("group"), std::string::npos) << wrong;
}

// By hand, for 300 rows of 400 columns.
TEST(StoredWeight, SaysWhichTensorsStandBesideIt) {
  const auto shapes = [](const std::string& name) {
    std::vector<std::string> all;
    for (const ScaleTensor& t : format(name).beside(300, 400))
      all.push_back(std::string(t.suffix) + " " + name_of(t.type) + " " + std::to_string(t.rows) +
                    "x" + std::to_string(t.cols));
    return all;
  };
  using Texts = std::vector<std::string>;
  EXPECT_EQ(shapes("fp8"), Texts{"_scale fp32 300x1"});
  EXPECT_EQ(shapes("fp8-block"), Texts{"_scale fp32 3x4"});
  EXPECT_EQ(shapes("int8"), Texts{"_scale bf16 300x1"});
  EXPECT_EQ(shapes("int4"), Texts{"_scale fp16 300x4"});
  EXPECT_EQ(shapes("int4:64"), Texts{"_scale fp16 300x7"});
  EXPECT_EQ(shapes("int4-zero"), (Texts{"_scale fp16 300x4", "_zero int8 300x4"}));
  EXPECT_EQ(shapes("mxfp4"), Texts{"_scale e8m0 300x13"});
  EXPECT_EQ(shapes("nvfp4"), (Texts{"_scale e4m3 300x25", "_tensor_scale fp32 1x1"}));
  EXPECT_EQ(StoredWeight{}.beside(300, 400).size(), 0U);
}

// However K is cut, the parts bring every number along once for each part of the rows; and what a
// part brings covers what its columns need but for numbers that an earlier part has brought.
TEST(StoredWeight, BringsEveryScaleAlongOnce) {
  std::mt19937 random(17);
  for (int round = 0; round < 300; ++round) {
    const std::vector<std::string> names = weight_format_names();
    StoredWeight weight = format(names[random() % names.size()]);
    if (weight.format->any_group && random() % 2 == 0) weight.group = 2 * test::pick(random, 2, 80);
    const std::int64_t N = test::pick(random, 1, 400), K = 2 * test::pick(random, 1, 200);
    for (const ScaleTensor& t : weight.beside(N, K)) {
      std::map<std::pair<std::int64_t, std::int64_t>, int> met;
      for (std::int64_t k = 0; k < K;) {
        const std::int64_t end = std::min(K, k + 2 * test::pick(random, 1, 60));
        const ScaleRange r = weight.beside(t.kind, 0, N, k, end);
        for (std::int64_t row = r.row_begin; row < r.row_end; ++row)
          for (std::int64_t col = r.col_begin; col < r.col_end; ++col) ++met[{row, col}];
        k = end;
      }
      EXPECT_EQ(std::ssize(met), t.rows * t.cols) << weight.name();
      for (const auto& [place, times] : met) EXPECT_EQ(times, 1) << weight.name();
      const std::int64_t n = test::pick(random, 0, N - 1);
      if (t.kind != ScaleKind::tensor_scale) {
        const ScaleRange one = weight.beside(t.kind, n, n + 1, 0, K);
        EXPECT_EQ(one.row_begin, weight.scale_row(n));
        EXPECT_EQ(one.elements(), t.cols);
      }
    }
  }
}

}  // namespace
}  // namespace fuseline
