// Loads of experts that a user gives: read, refused where they do not fit, and made into rows.
#include "model/config/routing_loads.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "model/blocks/block.h"
#include "model/operators/operator_table.h"
#include "model/ragged_rows.h"
#include "tests/model/small_experts.h"
#include "tests/model/tiny_models.h"

namespace fuseline {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string written(const std::string& text) {
  const std::string name = testing::UnitTest::GetInstance()->current_test_info()->name();
  const std::string path = testing::TempDir() + "/" + name + ".csv";
  std::ofstream(path) << text;
  return path;
}

RoutingLoads read_loads(const std::string& text) {
  return parse_routing(written(text), "--routing");
}

template <class F>
std::string refusal(F f) {
  try {
    f();
  } catch (const InputError& error) {
    return error.what();
  }
  return "nothing was refused";
}

TEST(RoutingLoads, AreReadInAnyOrderOfExperts) {
  const RoutingLoads counted = read_loads("expert,tokens\n2,7\n0,4\n1,0\n");
  EXPECT_THAT(counted.rows, ElementsAre(4, 0, 7));
  EXPECT_THAT(read_loads("expert,share\n1,0.75\n0,0.25\n").shares, ElementsAre(0.25, 0.75));
  EXPECT_FALSE(parse_routing("expected", "f").given());
  EXPECT_EQ(routing_text(parse_routing("uniform", "f")), "uniform");
  EXPECT_EQ(routing_text({}), "expected");
}

TEST(RoutingLoads, ThatSayNothingWholeAreRefusedWithTheirLine) {
  const std::pair<const char*, const char*> wrong[] = {
      {"expert,tokens\n0,4\n2,1\n", ":3"},
      {"expert,tokens\n0,4\n0,1\n", "stands in line 2 too"},
      {"expert,tokens\n0,4\n1,-1\n", "tokens"},
      {"expert,tokens\n0,0\n1,0\n", "no expert has a token"},
      {"expert,share\n0,0.5\n1,0.4\n", "do not add up to 1"},
      {"expert,share\n0,1.5\n1,-0.5\n", "more than all tokens"},
      {"expert,share,tokens\n0,1,4\n", "only one of them"},
      {"experts,tokens\n0,4\n", "did you mean 'experts'"},
      {"expert,load\n0,4\n", "tokens"}};
  for (const auto& [text, message] : wrong)
    EXPECT_THAT(refusal([&, t = text] { read_loads(t); }), HasSubstr(message)) << text;
  EXPECT_THAT(refusal([] { parse_routing("unifrom", "--routing"); }),
              HasSubstr("did you mean 'uniform'"));
  EXPECT_THAT(refusal([] { parse_routing("nowhere.csv", "--routing"); }), HasSubstr("nowhere.csv"));
}

TEST(RoutingLoads, BecomeRowsTheLongestFirst) {
  const RoutingLoads counted{.name = "f", .rows = {3, 0, 10, 7}};
  EXPECT_THAT(routed_rows(counted, 10, 4, 2).groups, ElementsAre(10, 7, 3));
  EXPECT_TRUE(routed_rows(counted, 10, 4, 2).assumed);
  // 2.1, 7 and 4.9 of 14: the largest rest is rounded up.
  const RoutingLoads shares{.name = "f", .shares = {0.15, 0.5, 0.35}};
  EXPECT_THAT(routed_rows(shares, 7, 3, 2).groups, ElementsAre(7, 5, 2));
  EXPECT_THAT(routed_rows({.name = "uniform"}, 3, 8, 2).groups, ElementsAre(1, 1, 1, 1, 1, 1));
  EXPECT_THAT(routed_rows({.name = "uniform"}, 7, 4, 2).groups, ElementsAre(4, 4, 3, 3));
  EXPECT_EQ(routed_rows({}, 70, 5, 3), assumed_rows(70, 5, 3));
}

TEST(RoutingLoads, OfAnotherBlockOrWorkloadAreRefused) {
  const RoutingLoads counted{.name = "f.csv", .rows = {3, 0, 10, 7}};
  EXPECT_THAT(refusal([&] { routed_rows(counted, 10, 8, 2); }), HasSubstr("has 4 experts"));
  EXPECT_THAT(refusal([&] { routed_rows(counted, 11, 4, 2); }), HasSubstr("counts 20 rows"));
  EXPECT_THAT(refusal([&] { routed_rows(counted, 5, 4, 4); }), HasSubstr("more than the 5 tokens"));
  const RoutingLoads one{.name = "f.csv", .shares = {0.9, 0.1}};
  EXPECT_THAT(refusal([&] { routed_rows(one, 100, 2, 2); }), HasSubstr("a share of 1/2"));
  Workload work = test::forward(1, 8);
  work.routing = {.name = "uniform"};
  EXPECT_THAT(refusal([&] { check_workload(work, test::llama2_7b()); }),
              HasSubstr("llama2-7b has none"));
}

// Routing and every product of a block have the same rows.
TEST(RoutingLoads, ReachEveryOperatorOfABlock) {
  const ModelConfig config = test::small_experts();  // 5 experts, 3 for each token
  for (Workload work : {test::forward(2, 10), test::train(2, 10), test::decode(20, 1, 30)}) {
    work.routing = {.name = "f", .rows = {20, 1, 0, 19, 20}};
    const Graph graph = build_block(config, work);
    int seen = 0;
    for (const Op& op : graph.ops()) {
      if (const auto* choice = op.attributes.get<ExpertChoice>()) {
        EXPECT_THAT(choice->loads.groups, ElementsAre(20, 20, 19, 1)) << op.name;
        ++seen;
      }
      if (const auto* rows = op.attributes.get<RaggedRows>()) {
        EXPECT_THAT(rows->groups, ElementsAre(20, 20, 19, 1)) << op.name;
        ++seen;
      }
    }
    EXPECT_GE(seen, 3) << name_of(work.phase);
  }
}

}  // namespace
}  // namespace fuseline
