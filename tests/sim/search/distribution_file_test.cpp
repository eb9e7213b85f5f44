// Sizes that vary as data.
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/search/call_sizes.h"
#include "tests/sim/sim_support.h"
#include "tests/support/problem_of.h"

namespace fuseline {
namespace {

using test::problem_of;
using testing::HasSubstr;

std::string file_with(const std::string& name, const std::string& text) {
  const auto path = std::filesystem::path(testing::TempDir()) / name;
  std::ofstream(path) << text;
  return path.string();
}

Distribution csv(const std::string& text) {
  return read_distribution(file_with("sizes.csv", text));
}
Distribution toml(const std::string& text) {
  return read_distribution(
      file_with("sizes.toml", "title = 'T'\nsource = 'S'\ndate = '2026'\n" + text));
}

double weight_of(const CallSizes& sizes) {
  double sum = 0;
  for (const ShapeWeight& s : sizes.shapes) sum += s.weight;
  return sum;
}

TEST(DistributionFile, ReadsShapesThatHaveWeight) {
  for (const Distribution& d :
       {csv("batch,tokens,context,weight\n1,64,0,0.5\n2,32,0,0\n4,1,100,3\n"),
        toml("shape = [{ batch = 1, tokens = 64, weight = 0.5 }, { batch = 2, tokens = 32, weight "
             "= 0 },\n{ batch = 4, tokens = 1, context = 100, weight = 3 }]\n")}) {
    ASSERT_EQ(d.shapes.size(), 2U);
    EXPECT_EQ(d.shapes[1].batch, 4);
    EXPECT_EQ(d.shapes[1].context, 100);
    EXPECT_EQ(d.shapes[1].weight, 3);
  }
}

// What `predict --sequences` takes, a row for each call.
TEST(DistributionFile, ReadsCallsWhoseSequencesDiffer) {
  const Distribution d = csv("sequences,weight\n1x512@2560+31x1@4096,3\n8x4@100,1\n2x1@50,0\n");
  ASSERT_EQ(d.shapes.size(), 2U);
  const ShapeWeight& first = d.shapes[0];
  ASSERT_EQ(first.sequences.size(), 2U);
  EXPECT_EQ(first.sequences[0], (SequenceGroup{31, 1, 4096}));  // ascending: the fewest new tokens
  EXPECT_EQ(first.sequences[1], (SequenceGroup{1, 512, 2560}));
  EXPECT_EQ(first.batch, 31 + 512);
  EXPECT_EQ(first.context, 4096);
  EXPECT_EQ(first.weight, 3);
  // Fewer rows first.
  const CallSizes sizes = call_sizes(d, decode(1, 1, 1), 12);
  EXPECT_EQ(sizes.shapes.front().sequences.front(), (SequenceGroup{8, 4, 100}));
}

TEST(DistributionFile, RefusesCallsThatAreNone) {
  const auto why = [](const std::string& text) {
    return format_problem(problem_of([&] { static_cast<void>(csv(text)); }));
  };
  EXPECT_THAT(why("sequences,weight\n4x8@4,1\n"), HasSubstr("shorter than the new tokens"));
  EXPECT_THAT(why("sequences,weight\n4,1\n"), HasSubstr("lacks the number of new tokens"));
  EXPECT_THAT(why("sequences,weight\n4x1@9,0\n"), HasSubstr("0 on every line"));
  EXPECT_THAT(why("sequences,weight\n4x1@9+1x2@9,1\n1x2@9+4x1@9,1\n"),
              HasSubstr("an earlier line has"));
  EXPECT_THAT(why("sequences,batch,weight\n4x1@9,1,1\n"), HasSubstr("is no column"));
  const Distribution d = csv("sequences,weight\n4x1@9,1\n");
  EXPECT_THAT(
      format_problem(problem_of([&] { static_cast<void>(call_sizes(d, forward(1, 1), 12)); })),
      HasSubstr("each has a cache"));
}

TEST(DistributionFile, CountsTheSizesOfRequests) {
  // Contexts of new tokens: 11, 12; 11; 21 (twice).
  const Distribution d = csv("prompt,generated,weight\n10,2,1\n10,1,1\n20,1,2\n");
  EXPECT_EQ(d.counted, 4);
  EXPECT_EQ(d.prompts.different, 2);
  EXPECT_DOUBLE_EQ(d.prompts.share_of(1), 0.5);
  EXPECT_EQ(d.contexts.different, 3);
  EXPECT_DOUBLE_EQ(d.contexts.share_of(2), 4.0 / 5);
  EXPECT_DOUBLE_EQ(d.contexts.share_of(3), 1);
  EXPECT_EQ(d.sums.different, 3);
}

TEST(DistributionFile, ShippedOnesSayWhereTheyComeFrom) {
  ASSERT_GE(distribution_names().size(), 3U);
  for (const std::string& name : distribution_names()) {
    const Distribution d = read_distribution(name);
    EXPECT_FALSE(d.source.empty());
    EXPECT_FALSE(d.date.empty());
    EXPECT_FALSE(d.assumed.empty());
    double weights = 0;
    for (const RequestWeight& r : d.requests) weights += r.weight;
    EXPECT_EQ(weights, d.counted) << name;
  }
  // The median prompts of the paper that published the traces: 1,020 and about 1,500 tokens.
  const auto median = [](const std::string& name) {
    return call_sizes(read_distribution(name), forward(1, 1), 2).shapes.front().tokens;
  };
  EXPECT_LT(median("azure-conversation"), 1020);
  EXPECT_LT(median("azure-code"), 1500);
}

TEST(CallSizes, KeepTheSumOfTokens) {
  const Distribution d = read_distribution("azure-conversation");
  double tokens = 0;
  for (const RequestWeight& r : d.requests) tokens += static_cast<double>(r.prompt) * r.weight;
  for (const std::size_t sizes : {1U, 2U, 5U, 12U, 64U}) {
    const CallSizes calls = call_sizes(d, forward(1, 1), sizes);
    EXPECT_LE(calls.shapes.size(), sizes);
    EXPECT_NEAR(weight_of(calls), d.counted, 1e-6 * d.counted);
    EXPECT_EQ(calls.calls, d.counted);
    double gathered = 0;
    for (const ShapeWeight& s : calls.shapes) gathered += static_cast<double>(s.tokens) * s.weight;
    EXPECT_NEAR(gathered / tokens, 1, 1e-3);
  }
}

TEST(CallSizes, AreThoseOfThePhase) {
  const Distribution d = csv("prompt,generated\n100,1\n200,4\n");
  const CallSizes prefill = call_sizes(d, forward(2, 1), 12);
  ASSERT_EQ(prefill.shapes.size(), 2U);
  EXPECT_EQ(prefill.shapes[1].tokens, 200);
  EXPECT_EQ(prefill.shapes[1].batch, 2);
  EXPECT_EQ(prefill.calls, 1);  // two requests, two in a batch
  const CallSizes steps = call_sizes(d, decode(1, 1, 1), 12);
  ASSERT_EQ(steps.shapes.size(), 2U);
  EXPECT_EQ(steps.shapes[0].context, 101);
  EXPECT_EQ(steps.shapes[1].context, 203);  // 201 to 204, in the middle
  EXPECT_EQ(steps.shapes[1].weight, 4 * steps.shapes[0].weight);
  EXPECT_EQ(steps.calls, 5);
  Workload train = forward(1, 1);
  train.phase = Phase::train;
  EXPECT_EQ(call_sizes(d, train, 12).shapes[1].tokens, 204);
}

TEST(CallSizesRefuse, ToDecodeWhatGeneratesNothing) {
  const Distribution d = csv("prompt,generated\n100,0\n");
  EXPECT_EQ(problem_of([&] { call_sizes(d, decode(1, 1, 1), 12); }).field, "generated");
}

TEST(DistributionFileRefuses, WhatHasNoWeightOrNoSize) {
  const auto problem = [](const std::string& text) {
    return problem_of([&] { csv("batch,tokens,context,weight\n" + text); });
  };
  EXPECT_THAT(problem("1,64,0,0\n").message, HasSubstr("is 0 on every line"));
  EXPECT_EQ(problem("1,64,0,-1\n").line, 2);
  EXPECT_EQ(problem("0,64,0,1\n").value, "0");
  EXPECT_THAT(problem("1,64,0,1\n1,64,0,2\n").message, HasSubstr("an earlier line has"));
  EXPECT_EQ(problem("1,64,0,1\n1,64,0,2\n").line, 3);
  EXPECT_EQ(problem("1,99999999,0,1\n").value, "99999999");
  std::string many;
  for (int i = 1; i <= 65; ++i) many += std::to_string(i) + ",64,0,1\n";
  EXPECT_EQ(problem(many).value, "65 shapes");
}

TEST(DistributionFileRefuses, RequestsWithWrongColumns) {
  const auto problem = [](const std::string& text) { return problem_of([&] { csv(text); }); };
  EXPECT_THAT(problem("").message, HasSubstr("empty"));
  const InputProblem unknown = problem("prompt,generatd\n1,1\n");
  EXPECT_EQ(unknown.line, 1);
  EXPECT_EQ(unknown.value, "generatd");
  EXPECT_EQ(unknown.nearest, "generated");
  EXPECT_EQ(problem("prompt,generated,prompt\n1,1,1\n").message, "is there twice");
  EXPECT_EQ(problem("prompt,weight\n1,1\n").field, "generated");
  EXPECT_EQ(problem("prompt,generated\n1,1\n-4,1\n").line, 3);
  EXPECT_EQ(problem("prompt,generated\n1,1.5\n").value, "1.5");
  EXPECT_THAT(problem("prompt,generated,weight\n1,1,0\n").message, HasSubstr("is 0 on every line"));
}

TEST(DistributionFileRefuses, MistakesInToml) {
  const auto problem = [](const std::string& text) { return problem_of([&] { toml(text); }); };
  EXPECT_EQ(problem("").field, "request");
  EXPECT_THAT(problem("shape = [{ batch = 1, tokens = 0, weight = 1 }]").message,
              HasSubstr("too small"));
  EXPECT_EQ(problem("shape = [{ batch = 1, tokens = 1, weight = 1 }]\nrequest = [{ prompt = 1, "
                    "generated = 1, weight = 1 }]")
                .field,
            "shape");
  EXPECT_EQ(problem("request = [{ prompt = 1, genrated = 1, weight = 1 }]").nearest, "generated");
  const std::string request = "request = [{ prompt = 1, generated = 1, weight = 1 }]\n";
  EXPECT_THAT(problem(request + "[prompts]\ndifferent = 4\nfrequent = [{ sizes = 1, share = 0.5 }]")
                  .message,
              HasSubstr("does not end with all sizes"));
  EXPECT_THAT(problem(request + "[prompts]\ndifferent = 4\nfrequent = [{ sizes = 2, share = 0.5 }, "
                                "{ sizes = 1, share = 1 }]")
                  .message,
              HasSubstr("does not come behind"));
  EXPECT_EQ(problem_of([] { read_distribution("azure-conversaton"); }).nearest,
            "azure-conversation");
}

}  // namespace
}  // namespace fuseline
