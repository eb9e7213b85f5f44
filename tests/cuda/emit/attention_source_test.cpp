// Every attention program of every policy becomes kernels that compile without spills; what no
// kernel does is refused in words.
#include "cuda/emit/attention_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "cuda/emit/not_built.h"
#include "model/primitives/functions.h"
#include "tests/cuda/emit/compile_support.h"
#include "tests/model/plan_support.h"
#include "tests/model/primitive_support.h"
#include "tests/model/small_experts.h"

namespace fuseline::cuda {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class SlowAttentionSources : public test::CompileTest {
 protected:
  void compile_all(Phase phase, SmTarget target,
                   const std::vector<std::string>& models = model_names()) {
    if (IsSkipped()) return;
    if (!makes(target)) GTEST_SKIP() << "the toolkit makes no " << name_of(target) << " code";
    test::for_each_program(phase, models, [&](const Plan& plan, const Program& program) {
      const auto* attention = std::get_if<AttentionMainloop>(&program.mainloop);
      if (attention == nullptr || !not_built(program).empty()) return;
      for (const AttentionKernelSource& kernel :
           attention_sources(plan.graph, program, target, "test"))
        expect_compiles(kernel.source, kernel.function, target, instructions(kernel.part));
    });
    EXPECT_GT(seen_.size(), 1U);
  }

  static std::vector<std::string> instructions(AttentionPart part) {
    switch (part) {
      case AttentionPart::forward_sm90:
      case AttentionPart::keys_sm90:
      case AttentionPart::queries_sm90:
        return {"wgmma.mma_async", "cp.async.bulk.tensor"};
      case AttentionPart::prologue:
        return {"ld.global.v4", "st.global.v4"};
      case AttentionPart::wide_join:
        return {"ld.global.v4", "st.global.v2"};
      default:
        return {"mma.sync", "cp.async"};
    }
  }
};

TEST_F(SlowAttentionSources, CompileForHopper) {
  for (const Phase phase : {Phase::forward, Phase::decode, Phase::train})
    compile_all(phase, SmTarget::sm_90a);
}
TEST_F(SlowAttentionSources, CompileForAmpere) {
  for (const Phase phase : {Phase::forward, Phase::decode, Phase::train})
    compile_all(phase, SmTarget::sm_80);
}

const Program& attention_of(const Plan& plan, bool gradient) {
  for (const Kernel& kernel : plan.kernels)
    for (const Program& program : kernel.phases)
      if (const auto* m = std::get_if<AttentionMainloop>(&program.mainloop);
          m != nullptr && m->gradient.has_value() == gradient)
        return program;
  throw InternalError("no attention");
}

Plan plan_of_heads(std::int64_t width, Phase phase) {
  ModelConfig config = fuseline::test::llama2_7b();
  config.d = width;
  return make_plan("coda", config, test::workload(phase));
}

// Their last panel is not full, so each width is other code.
TEST_F(SlowAttentionSources, HeadsBetween64And128CompileForHopper) {
  if (IsSkipped()) return;
  if (!makes(SmTarget::sm_90a)) GTEST_SKIP() << "the toolkit makes no sm_90a code";
  for (const std::int64_t width : {80, 96, 112}) {
    const Plan plan = plan_of_heads(width, Phase::train);
    for (const bool gradient : {false, true})
      for (const AttentionKernelSource& kernel :
           attention_sources(plan.graph, attention_of(plan, gradient), SmTarget::sm_90a, "test")) {
        std::vector<std::string> expected = instructions(kernel.part);
        // The result's columns end with the head.
        expected.push_back(fmt::format("m64n{}k16", width));
        expect_compiles(kernel.source, kernel.function, SmTarget::sm_90a, expected);
      }
  }
  EXPECT_EQ(seen_.size(), 9U);
}

// Nothing is left of the registers beside the sums of the widest.
TEST_F(SlowAttentionSources, WideHeadsCompileForHopper) {
  if (IsSkipped()) return;
  if (!makes(SmTarget::sm_90a)) GTEST_SKIP() << "the toolkit makes no sm_90a code";
  const std::vector<std::int64_t> widths = {144, 176, 208, 224, 240, 256};
  for (const std::int64_t width : widths) {
    const Plan plan = plan_of_heads(width, Phase::forward);
    for (const AttentionKernelSource& kernel :
         attention_sources(plan.graph, attention_of(plan, false), SmTarget::sm_90a, "test"))
      expect_compiles(kernel.source, kernel.function, SmTarget::sm_90a,
                      {fmt::format("m64n{}k16", width), "m64n80k16"});
  }
  EXPECT_EQ(seen_.size(), widths.size());
}

std::vector<AttentionPart> parts(const Plan& plan, bool gradient, SmTarget target) {
  std::vector<AttentionPart> found;
  for (const AttentionKernelSource& s :
       attention_sources(plan.graph, attention_of(plan, gradient), target, "test"))
    found.push_back(s.part);
  return found;
}

Plan plan_of(const std::string& policy, Phase phase) {
  return make_plan(policy, load_model("llama2-7b"), test::workload(phase));
}

TEST(AttentionSource, LaunchesOfEachKind) {
  using enum AttentionPart;
  const Plan train = plan_of("coda", Phase::train);
  EXPECT_THAT(parts(train, false, SmTarget::sm_90a), ElementsAre(forward_sm90));
  EXPECT_THAT(parts(train, true, SmTarget::sm_90a), ElementsAre(keys_sm90, queries_sm90));
  EXPECT_THAT(parts(train, false, SmTarget::sm_80), ElementsAre(forward_generic));
  EXPECT_THAT(parts(train, true, SmTarget::sm_80),
              ElementsAre(keys_generic, values_generic, queries_generic));
  EXPECT_THAT(parts(plan_of("coda", Phase::decode), false, SmTarget::sm_90a), ElementsAre(decode));
  EXPECT_THAT(parts(plan_of("tensorrt-llm", Phase::forward), false, SmTarget::sm_90a),
              ElementsAre(prologue, forward_sm90));
}

// Forward up to 256, backward up to 128.
TEST(AttentionSource, HopperTakesHeadsFrom64InStepsOf16) {
  using enum AttentionPart;
  for (const std::int64_t width : {64, 80, 96, 112, 128}) {
    const Plan plan = plan_of_heads(width, Phase::train);
    EXPECT_THAT(parts(plan, false, SmTarget::sm_90a), ElementsAre(forward_sm90)) << width;
    EXPECT_THAT(parts(plan, true, SmTarget::sm_90a), ElementsAre(keys_sm90, queries_sm90)) << width;
  }
  for (const std::int64_t width : {48, 144, 208, 256}) {
    const Plan plan = plan_of_heads(width, Phase::train);
    EXPECT_THAT(parts(plan, false, SmTarget::sm_90a),
                ElementsAre(width < 64 ? forward_generic : forward_sm90))
        << width;
    EXPECT_THAT(parts(plan, true, SmTarget::sm_90a),
                ElementsAre(keys_generic, values_generic, queries_generic))
        << width;
  }
}

// Of the forward kernel keys and values may differ, each with its own last panel.
TEST(AttentionSource, HopperTakesValuesNarrowerThanKeys) {
  ModelConfig config = fuseline::test::small_latent_experts();
  config.values["dn"] = 64;
  config.values["dr"] = 48;
  config.values["dv"] = 80;
  const Plan plan = make_plan("coda", config, test::workload(Phase::forward));
  const auto sources =
      attention_sources(plan.graph, attention_of(plan, false), SmTarget::sm_90a, "test");
  EXPECT_THAT(sources.back().source.text, HasSubstr("attention_forward_sm90<bf16, 112, 80>"));
}

// Values among the columns of one head of keys; few query heads and many take tiles of 16 and of 64
// rows, but on Ampere, some of whose family lack the shared memory.
TEST(AttentionSource, WideHeadsHaveTheirOwnKernel) {
  using enum AttentionPart;
  Workload work = test::workload(Phase::decode);
  const Plan few = make_plan("coda", load_model("deepseek-v2-lite"), work);
  EXPECT_THAT(parts(few, false, SmTarget::sm_90a), ElementsAre(wide, wide_join));
  const auto text = [&](const Plan& plan, SmTarget target) {
    return attention_sources(plan.graph, attention_of(plan, false), target, "test")[0].source.text;
  };
  EXPECT_THAT(text(few, SmTarget::sm_90a), HasSubstr("AttentionWide<bf16, 576, 512, 64, 16, 2>"));
  const Plan many = make_plan("coda", load_model("deepseek-v3"), work);
  EXPECT_THAT(text(many, SmTarget::sm_90a), HasSubstr("AttentionWide<bf16, 576, 512, 64, 64, 3>"));
  EXPECT_THAT(text(many, SmTarget::sm_80), HasSubstr("AttentionWide<bf16, 576, 512, 64, 16, 2>"));
}

TEST(AttentionSource, PrologueRotatesAndWritesTheCache) {
  const Plan plan = plan_of("tensorrt-llm", Phase::decode);
  const auto moves = prologue_moves(plan.graph, attention_of(plan, false));
  ASSERT_EQ(moves.size(), 3U);  // keys and values to the cache, queries to attention
  EXPECT_TRUE(moves[0].stored && moves[0].rotated);
  EXPECT_EQ(moves[0].distance, 64);
  EXPECT_EQ(plan.graph.tensor(moves[0].to.tensor).name, "cache_k");
  EXPECT_EQ(moves[0].from.col_begin, 4096);
  EXPECT_TRUE(moves[1].stored && !moves[1].rotated);
  EXPECT_TRUE(!moves[2].stored && moves[2].rotated);
  EXPECT_EQ(moves[2].value,
            std::get<AttentionMainloop>(attention_of(plan, false).mainloop).q_value);
}

// GPT-J turns the first 64 of 256 columns, neighbour by neighbour.
TEST(AttentionSource, PrologueRotatesAPartOfEachHead) {
  const Plan plan =
      make_plan("tensorrt-llm", load_model("gpt-j-6b"), test::workload(Phase::forward));
  Program program = attention_of(plan, false);
  const auto moves = prologue_moves(plan.graph, program);
  ASSERT_EQ(moves.size(), 2U);
  EXPECT_EQ(moves[0].distance, 1);
  EXPECT_EQ(moves[0].cos.cols, 64);
  for (Primitive& p : program.prologue)
    if (p.is<PairMap>())
      fuseline::test::change<PairMap>(p, [](PairMap& pair) { pair.distance = 32; });
  EXPECT_EQ(prologue_moves(plan.graph, program)[0].distance, 32);
  for (Primitive& p : program.prologue)
    if (p.is<PairMap>())
      fuseline::test::change<PairMap>(p, [](PairMap& pair) { pair.distance = 12; });
  EXPECT_THROW((void)prologue_moves(plan.graph, program), MissingError);
}

// What is done to scores makes another kernel; the Hopper kernels take a bias on the way forward,
// in rows of whole 16 bytes, and have no gradient of capped scores or of values narrower than keys.
TEST(AttentionSource, ScoresMayBeCappedAndBiased) {
  using enum AttentionPart;
  const auto text = [](const char* model, bool gradient, std::int64_t tokens = 2048) {
    Workload work = test::workload(Phase::train);
    work.seq = tokens;
    const Plan plan = make_plan("coda", load_model(model), work);
    const Program& program = attention_of(plan, gradient);
    const auto sources = attention_sources(plan.graph, program, SmTarget::sm_90a, "test");
    return sources.front().source.text;
  };
  EXPECT_THAT(text("t5-large", false),
              HasSubstr("attention_forward_sm90<bf16, 64, 64, false, true>"));
  EXPECT_THAT(text("t5-large", false, 1001),
              HasSubstr("attention_forward_generic<bf16, 64, 64, false, true>"));
  EXPECT_THAT(
      text("gemma2-9b", true),
      HasSubstr("attention_gradient_generic<bf16, 256, AttentionGradientOf::k, 256, true>"));
  EXPECT_THAT(text("deepseek-v2-lite", true),
              HasSubstr("attention_gradient_generic<bf16, 192, AttentionGradientOf::k, 128>"));
}

TEST(AttentionSource, DqIsStoredInTheTypeThatThePlanAsksFor) {
  const Plan plan = plan_of("coda", Phase::train);
  const auto sources =
      attention_sources(plan.graph, attention_of(plan, true), SmTarget::sm_90a, "test");
  EXPECT_THAT(sources.at(0).source.text,
              HasSubstr("attention_gradient_sm90<bf16, 128, true, bf16>"));
  EXPECT_THAT(sources.at(1).source.text,
              HasSubstr("attention_gradient_sm90<bf16, 128, false, float>"));
}

void expect_refused(const Plan& plan, const Program& program, const char* why) {
  try {
    (void)attention_sources(plan.graph, program, SmTarget::sm_80, "test");
    FAIL() << "not refused: " << why;
  } catch (const MissingError& error) {
    EXPECT_THAT(error.what(), HasSubstr(why));
  }
}

TEST(AttentionSource, RefusesHeadsThatNoKernelHas) {
  ModelConfig odd = fuseline::test::llama2_7b();
  odd.d = 40;
  const Plan narrow = make_plan("coda", odd, test::workload(Phase::forward));
  expect_refused(narrow, attention_of(narrow, false), "40 wide");
  odd.d = 272;
  const Plan broad = make_plan("coda", odd, test::workload(Phase::forward));
  expect_refused(broad, attention_of(broad, false), "272 wide");
  // Values that are not among the columns of their keys.
  Plan latent = make_plan("coda", load_model("deepseek-v2-lite"), test::workload(Phase::decode));
  Program program = attention_of(latent, false);
  std::get<AttentionMainloop>(program.mainloop).v.col_begin = 128;
  expect_refused(latent, program, "576 wide");
}

TEST(AttentionSource, RefusesFullPrecision) {
  Workload work = test::workload(Phase::forward);
  work.dtype = Dtype::fp32;
  const Plan plan = make_plan("coda", load_model("llama2-7b"), work);
  expect_refused(plan, attention_of(plan, false), "fp32");
}

TEST(AttentionSource, RefusesMapsBehindIt) {
  const Plan plan = plan_of("coda", Phase::forward);
  Program program = attention_of(plan, false);
  const Value result = program.body.back().as<StoreTile>()->in;
  program.body.insert(program.body.begin(), Map{1, maps::negate, {result}});
  fuseline::test::change<StoreTile>(program.body.back(), [](StoreTile& store) { store.in = 1; });
  expect_refused(plan, program, "more than stores");
}

}  // namespace
}  // namespace fuseline::cuda
