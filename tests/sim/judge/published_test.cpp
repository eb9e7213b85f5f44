#include "sim/judge/published.h"

#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/data_dir.h"
#include "base/error.h"

namespace fuseline {
namespace {

using testing::HasSubstr;

constexpr const char* kFiguresHeader =
    "id,quality,source,citation,published_gpu,gpu,what,model,policy,slack,phase,batch,seq,context,"
    "m,"
    "n,k,dtype,metric,value,unit,published_config,framework,caveat,not_predicted,rewrites,edges\n";

std::vector<PublishedFigure> load_figures(const std::string& row) {
  const auto path = std::filesystem::path(testing::TempDir()) / "figures.csv";
  // Only a fusion fills the last two columns.
  const bool fusion = row.find(",fusion,") != std::string::npos;
  std::ofstream(path) << kFiguresHeader << row << (fusion ? "" : ",,") << "\n";
  return load_published_figures(path.string());
}

void refuses(const std::string& row, const std::string& column) {
  try {
    load_figures(row);
    FAIL() << row;
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr(column));
    EXPECT_THAT(error.what(), HasSubstr("figures.csv"));
  }
}

TEST(Published, EveryShippedFigureIsPredictedOrSaysWhyNot) {
  const auto figures = load_published_figures((data_dir() / "published" / "figures.csv").string());
  std::size_t predicted = 0;
  for (const PublishedFigure& f : figures) {
    if (f.what.empty()) {
      EXPECT_FALSE(f.not_predicted.empty()) << f.id;
      continue;
    }
    const JudgedFigure j = judge(f);
    ASSERT_TRUE(j.predicted) << f.id;
    EXPECT_GT(*j.predicted, 0) << f.id;
    EXPECT_LT(std::abs(*j.error()), 1.5) << f.id;
    EXPECT_TRUE(f.quality == "A" || f.quality == "B") << f.id;
    ++predicted;
  }
  EXPECT_EQ(figures.size(), 203U);
  EXPECT_GE(predicted, 60U);
}

// A rate that is above the prediction and a time that is below it are the same error.
TEST(Published, ErrorsAreOfTheTimeWhateverTheMetric) {
  JudgedFigure rate;
  rate.figure.metric = "gemm_rate";
  rate.figure.unit = "TFLOP/s";
  rate.figure.value = 600;
  rate.predicted = 400;
  EXPECT_NEAR(*rate.error(), 0.5, 1e-12);
  JudgedFigure time;
  time.figure.metric = "first_token_latency";
  time.figure.unit = "ms";
  time.figure.value = 20;
  time.predicted = 30;
  EXPECT_NEAR(*time.error(), 0.5, 1e-12);
}

TEST(Published, AFrameworksSlackIsNoErrorOfTheModel) {
  const std::string figure =
      ",s,c,A100,a100-sxm-80gb,model,tinyllama,per-operator,yes,decode,1,1,64,,,,bf16,tokens_per_s,"
      "100,tok/s,x,y,,";
  const JudgedFigure j = judge(load_figures("1,A" + figure).front());
  EXPECT_EQ(j.cause, Cause::framework);
  // Far fewer tokens than predicted: the framework's own time, which no band should hold.
  ASSERT_LT(*j.error(), 0);
  EXPECT_TRUE(published_rows({j}).empty());
}

// Errors of one cause, GPU and phase stand together, and of no two.
TEST(Published, GroupsKeepCausesGpusAndPhasesApart) {
  std::vector<JudgedFigure> figures;
  for (const Cause cause : {Cause::framework, Cause::model, Cause::gpu}) {
    for (const char* gpu : {"h200", "b200"}) {
      for (const Phase phase : {Phase::forward, Phase::decode}) {
        for (const double predicted : {90.0, 120.0}) {
          JudgedFigure j;
          j.figure.gpu = gpu;
          j.figure.what = "model";
          j.figure.workload.phase = phase;
          j.figure.metric = "first_token_latency";
          j.figure.unit = "ms";
          j.figure.value = 100;
          j.predicted = predicted;
          j.cause = cause;
          figures.push_back(j);
        }
      }
    }
  }
  const auto groups = groups_of(figures);
  ASSERT_EQ(groups.size(), 12U);
  for (const FigureGroup& g : groups) {
    EXPECT_EQ(g.figures, 2U);
    EXPECT_NEAR(g.mean_error, 0.15, 1e-12);
    EXPECT_NEAR(g.bias, 0.05, 1e-12);
  }
  EXPECT_EQ(groups.front().cause, Cause::model);  // our own errors come first
  EXPECT_EQ(groups.back().cause, Cause::framework);
}

// A fusion of two element-wise kernels in an MLP whose products take 19 of 20 parts of the time.
const std::string kFusion =
    "1,A,s,c,A100,a100-sxm-80gb,fusion,llama2-7b-mlp,per-operator,no,forward,4,1024,,,,,bf16,gain,"
    "0.9,x,y,z,,,,silu -> mul";

TEST(Published, AFusionIsThePlanWithItsEdgesOnChip) {
  const JudgedFigure j = judge(load_figures(kFusion).front());
  ASSERT_TRUE(j.predicted && j.share);
  EXPECT_GT(*j.predicted, 1.005);
  EXPECT_LT(*j.predicted, 1.06);
  EXPECT_GT(*j.share, *j.predicted - 1);  // it gains less than its kernels take
  EXPECT_LT(*j.share, 0.1);
  EXPECT_EQ(j.verdict, "faster");
  EXPECT_FALSE(j.residual);
}

// A loss of a tenth, of kernels that take a twentieth: not the fusion's. Of a hundredth: it may be.
TEST(Published, WhatExceedsTheFusionsKernelsIsNotTheFusion) {
  EXPECT_EQ(judge(load_figures(kFusion).front()).cause, Cause::framework);
  std::string small = kFusion;
  small.replace(small.find("0.9,"), 4, "0.99,");
  EXPECT_EQ(judge(load_figures(small).front()).cause, Cause::gpu);  // an A100 was never measured
}

TEST(Published, RefusesFusionsThatAreNone) {
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = kFusion;
    text.replace(text.find(from), from.size(), to);
    return text;
  };
  refuses(with("silu -> mul", "silu mul"), "edges");
  refuses(with("silu -> mul", ""), "edges");
  refuses(with(",gain,", ",gemm_rate,"), "metric");
  refuses(with(",,,silu", ",,interleave,silu"), "rewrites");
  EXPECT_THROW(judge(load_figures(with("silu -> mul", "silu -> down")).front()), InputError);
}

TEST(Published, RefusesWhatIsWrong) {
  const std::string gemm =
      "1,A,s,c,H200,h200,gemm,,,no,,,,,64,64,64,bf16,gemm_rate,10,TFLOP/s,x,y,,";
  EXPECT_EQ(load_figures(gemm).front().m, 64);
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = gemm;
    text.replace(text.find(from), from.size(), to);
    return text;
  };
  refuses(with("h200", "h2000"), "gpu");
  refuses(with("TFLOP/s", "tok/s"), "metric");
  refuses(with("1,A", "1,D"), "quality");
  refuses(with(",gemm,", ",gem,"), "what");
  refuses(with(",no,", ",maybe,"), "slack");
  refuses(with("bf16", "bf17"), "dtype");
  refuses(with("64,64,64", "0,64,64"), "m");
  refuses(with("gemm_rate,10,TFLOP/s", "gain,10,x"), "metric");
  refuses(with(",10,", ",-10,"), "value");
  refuses("1,A,s,c,H200,h200,,,,no,,,,,,,,bf16,gemm_rate,10,TFLOP/s,x,y,,", "not_predicted");
}

}  // namespace
}  // namespace fuseline
