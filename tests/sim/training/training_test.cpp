// Training through plans: the text, the optimizer, the loop and its verdict.
#include "sim/training/train.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "base/error.h"
#include "model/policy.h"
#include "sim/training/fp64_model.h"
#include "sim/training/plan_model.h"
#include "sim/training/text.h"
#include "sim/training/verdict.h"
#include "tests/model/tiny_models.h"
#include "tests/sim/executor/executor_support.h"

namespace fuseline::training {
namespace {

using executor::executor_gpu;

TEST(Text, IsTheSameForTheSameSeedAndMadeOfTheVocabulary) {
  const std::string text = make_text(5, 4000);
  EXPECT_EQ(make_text(5, 4000), text);
  EXPECT_NE(make_text(6, 4000), text);
  EXPECT_GE(text.size(), 4000U);
  EXPECT_TRUE(text.ends_with(".\n"));
  const std::vector<std::int32_t> numbers = encode(text);
  const std::set<std::int32_t> used(numbers.begin(), numbers.end());
  EXPECT_GT(used.size(), 25U);  // of 30
  for (std::size_t i = 0; i < text.size(); ++i)
    ASSERT_EQ(vocabulary()[static_cast<std::size_t>(numbers[i])], text[i]);
}

TEST(Text, NamesACharacterThatIsNotInTheVocabulary) {
  try {
    encode("the Cat");
    FAIL();
  } catch (const InputError& e) {
    EXPECT_EQ(e.problem().value, "C");
    EXPECT_NE(std::string(e.what()).find("character 4"), std::string::npos);
  }
}

TEST(Batches, AreStretchesOfTheTextAndWhatFollowsThem) {
  const std::vector<std::int32_t> text = encode(make_text(2, 500));
  Batches batches(text, 3, 10, 9);
  Batches again(text, 3, 10, 9);
  const Batch first = batches.next();
  EXPECT_EQ(again.next().ids, first.ids);
  EXPECT_NE(batches.next().ids, first.ids);
  ASSERT_EQ(first.ids.size(), 30U);
  for (std::size_t b = 0; b < 3; ++b) {
    const auto begin = first.ids.begin() + static_cast<std::ptrdiff_t>(10 * b);
    const auto found = std::search(text.begin(), text.end(), begin, begin + 10);
    ASSERT_NE(found, text.end());
    const auto targets = first.targets.begin() + static_cast<std::ptrdiff_t>(10 * b);
    EXPECT_TRUE(std::equal(begin + 1, begin + 10, targets));
  }
}

// Two weights: one that decays and one that does not; gradients of norm 5, clipped to 1.
TEST(AdamW, TakesTheStepsOfTheFormula) {
  const std::vector<Parameter> parameters{{0, "w", 2, 1, true}, {0, "b", 1, 1, false}};
  AdamWOptions o;
  o.learning_rate = 0.1;
  o.beta1 = 0.5;
  o.beta2 = 0.75;
  o.epsilon = 0.01;
  o.weight_decay = 0.2;
  o.clip_norm = 1;
  o.warm_up_steps = 2;
  AdamW<double> optimizer(parameters, o);
  Values<double> w{{2, -1}, {4}};
  optimizer.step({{3, 0}, {4}}, w);
  // Rate 0.05. Clipped gradients 0.6, 0, 0.8; m = g / 2, v = g² / 4; both unbiased: g and g².
  EXPECT_NEAR(w[0][0], 2 - 0.05 * (0.6 / 0.61 + 0.2 * 2), 1e-15);
  EXPECT_NEAR(w[0][1], -1 - 0.05 * (0 - 0.2 * 1), 1e-15);
  EXPECT_NEAR(w[1][0], 4 - 0.05 * (0.8 / 0.81), 1e-15);
  // Second step, rate 0.1, gradients within the norm.
  const double before = w[1][0];
  optimizer.step({{0, 0}, {0.5}}, w);
  const double m = 0.5 * 0.4 + 0.5 * 0.5;
  const double v = 0.75 * 0.16 + 0.25 * 0.25;
  const double unbiased_m = m / (1 - 0.25);
  const double unbiased_v = v / (1 - 0.5625);
  EXPECT_NEAR(w[1][0], before - 0.1 * (unbiased_m / (std::sqrt(unbiased_v) + 0.01)), 1e-15);
}

ModelConfig tiny_model(const std::string& block = "llama") {
  ModelConfig c = block == "llama" ? test::tiny_llama() : test::tiny_gpt();
  c.layers = 2;
  c.D = 48;
  c.F = 52;
  c.H = 4;
  c.Hkv = block == "llama" ? 2 : 4;
  c.d = 12;
  c.V = 31;
  c.max_positions = 24;
  return c;
}

Batch batch_of(const Workload& w) {
  return Batches(encode(make_text(3, 2000)), w.batch, w.seq, 4).next();
}

class TrainedPolicy : public ::testing::TestWithParam<std::string> {};

// All blocks and the ends together, in fp32: every gradient is that of fp64.
TEST_P(TrainedPolicy, GivesTheLossAndGradientsOfFp64) {
  for (const std::string block : {"llama", "gpt"}) {
    ModelConfig config = tiny_model(block);
    config.tied_embeddings = block == "gpt";
    Workload work = test::train(2, 20);
    work.dtype = Dtype::fp32;
    const std::vector<Parameter> parameters = parameters_of(config, training_graphs(config, work));
    const Values<float> weights = initial_values(parameters, config.layers, 7);
    Values<double> wide;
    for (const auto& v : weights) wide.emplace_back(v.begin(), v.end());
    const Batch batch = batch_of(work);

    const StepResult<float> got =
        PlanModel(config, work, GetParam(), executor_gpu(), {.threads = 2}).step(batch, weights);
    const StepResult<double> want = Fp64Model(config, work, {}).step(batch, wide);
    EXPECT_NEAR(got.loss, want.loss, 1e-5);
    for (std::size_t p = 0; p < parameters.size(); ++p) {
      std::vector<double> ours(got.gradients[p].begin(), got.gradients[p].end());
      std::vector<double> theirs = want.gradients[p];
      // A key's bias moves all scores of a row alike: its gradient is nothing but rounding.
      if (parameters[p].tensor == "b_qkv") {
        const auto first = static_cast<std::ptrdiff_t>(config.H * config.d);
        const auto last = static_cast<std::ptrdiff_t>((config.H + config.Hkv) * config.d);
        ours.erase(ours.begin() + first, ours.begin() + last);
        theirs.erase(theirs.begin() + first, theirs.begin() + last);
      }
      EXPECT_EQ(disagreement(ours, theirs, 1e-4), "")
          << parameters[p].tensor << " of " << parameters[p].layer;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Training, TrainedPolicy, ::testing::ValuesIn([] {
                           std::vector<std::string> names;
                           for (const PolicyInfo& p : policies())
                             if (p.trains) names.push_back(p.name);
                           return names;
                         }()),
                         [](const auto& policy) {
                           std::string name = policy.param;
                           std::erase(name, '-');
                           return name;
                         });

TEST(Fp64Model, HasTheGradientOfCentralDifferences) {
  // Given the whole model's loss as a function of its weights, moved along one direction.
  const ModelConfig config = tiny_model();
  const Workload work = test::train(1, 12);
  const std::vector<Parameter> parameters = parameters_of(config, training_graphs(config, work));
  Values<double> weights;
  for (const auto& v : initial_values(parameters, config.layers, 7))
    weights.emplace_back(v.begin(), v.end());
  Fp64Model model(config, work, {});
  const Batch batch = batch_of(work);
  const StepResult<double> at = model.step(batch, weights);
  for (std::size_t p = 0; p < parameters.size(); ++p) {
    const auto loss = [&](double step) {
      Values<double> moved = weights;
      for (std::size_t i = 0; i < moved[p].size(); ++i)
        moved[p][i] += step * (i % 3 == 0 ? 1.0 : -0.5);
      return model.step(batch, moved).loss;
    };
    double along = 0;
    double size = 0;
    for (std::size_t i = 0; i < weights[p].size(); ++i) {
      along += at.gradients[p][i] * (i % 3 == 0 ? 1.0 : -0.5);
      size += std::abs(at.gradients[p][i]);
    }
    const double h = 1e-4;
    EXPECT_NEAR(along, (loss(h) - loss(-h)) / (2 * h), 1e-5 * size + 1e-9) << parameters[p].tensor;
  }
}

TrainOptions few_steps() {
  TrainOptions options;
  options.steps = 12;
  options.optimizer.warm_up_steps = 3;
  options.optimizer.learning_rate = 5e-3;
  return options;
}

TEST(Training, LearnsAndPassesTheVerdict) {
  const Training t =
      train(tiny_model(), test::train(4, 20), {"unfused", "coda"}, executor_gpu(), few_steps());
  ASSERT_EQ(t.curves.size(), 4U);
  EXPECT_EQ(t.curves[0].name, "unfused");
  EXPECT_EQ(t.curves[1].name, "coda");
  EXPECT_EQ(t.curves[2].name, kFp64Run);
  for (const Curve& c : t.curves) {
    ASSERT_EQ(c.losses.size(), 12U);
    EXPECT_NEAR(c.losses.front(), std::log(31.0), 0.1) << c.name;
    EXPECT_LT(c.losses.back(), 0.9 * c.losses.front()) << c.name;
  }
  // 16-bit runs are not the fp64 run, nor each other.
  EXPECT_NE(t.curves[0].losses, t.curves[2].losses);
  EXPECT_NE(t.curves[0].losses, t.curves[1].losses);
  const Verdict v = judge(t);
  EXPECT_TRUE(v.passed()) << v.line();
  EXPECT_TRUE(v.line().starts_with("trains: final loss unfused ")) << v.line();
}

TEST(Training, TheNumberOfThreadsChangesNoBit) {
  TrainOptions options = few_steps();
  options.steps = 3;
  options.workers.short_loops_too = true;
  const auto run = [&](int threads) {
    options.workers.threads = threads;
    return curves_csv(train(tiny_model(), test::train(4, 20), {"coda"}, executor_gpu(), options));
  };
  const std::string one = run(1);
  EXPECT_EQ(run(2), one);
  EXPECT_EQ(run(3), one);
  EXPECT_TRUE(one.starts_with("step,unfused,coda,fp64,fp64-nudged\n1,3."));
}

TEST(Training, SeedsChangeTextAndWeights) {
  TrainOptions options = few_steps();
  options.steps = 1;
  const auto first_loss = [&](std::uint64_t seed) {
    options.seed = seed;
    return train(tiny_model(), test::train(1, 20), {}, executor_gpu(), options).curves[0].losses[0];
  };
  EXPECT_EQ(first_loss(1), first_loss(1));
  EXPECT_NE(first_loss(1), first_loss(2));
}

// A sign, a factor, and one weight that never moves.
TEST(Verdict, FailsForAWrongGradientOfOneWeight) {
  using Change = void (*)(float&);
  const std::vector<Change> changes{[](float& g) { g = -g; }, [](float& g) { g *= 20; },
                                    [](float& g) { g = 0; }};
  for (std::size_t i = 0; i < changes.size(); ++i) {
    TrainOptions options = few_steps();
    options.tamper = [&](const std::string& policy, const Parameter& p, std::vector<float>& g) {
      if (policy == "coda" && p.tensor == "w_lm_head")
        for (float& e : g) changes[i](e);
    };
    const Verdict v =
        judge(train(tiny_model(), test::train(4, 20), {"coda"}, executor_gpu(), options));
    EXPECT_FALSE(v.passed()) << i;
    EXPECT_TRUE(v.line().starts_with("does not train: coda: ")) << v.line();
  }
}

Training made_up(const std::vector<double>& unfused, const std::vector<double>& coda,
                 const std::vector<double>& fp64, const std::vector<double>& nudged) {
  return {1,
          {{"unfused", unfused, Seconds()},
           {"coda", coda, Seconds()},
           {kFp64Run, fp64, Seconds()},
           {kNudgedRun, nudged, Seconds()}}};
}

TEST(Verdict, AllowsTwiceTheLargerOfTheUnfusedAndTheNudgedGap) {
  const std::vector<double> fp64{3, 2, 1};
  EXPECT_TRUE(judge(made_up({3, 2, 1.02}, {3, 2, 1.039}, fp64, {3, 2, 1})).passed());
  EXPECT_TRUE(judge(made_up({3, 2, 1}, {3, 1.961, 1}, fp64, {3, 2.02, 1})).passed());
  const Verdict worse = judge(made_up({3, 2, 1.02}, {3, 2, 1.041}, fp64, {3, 2, 0.99}));
  EXPECT_FALSE(worse.passed());
  EXPECT_NEAR(worse.curves[1].smoothed_gap, 0.041, 1e-12);
  EXPECT_NEAR(worse.curves[1].allowed, 0.04, 1e-12);
  EXPECT_EQ(worse.curves[1].at_step, 3);
}

TEST(Verdict, FailsWhereNothingIsLearnedOrALossIsNotFinite) {
  const std::vector<double> learns{3, 2, 1};
  EXPECT_NE(judge(made_up({3, 3, 3}, {3, 3, 3}, {3, 3, 3}, {3, 3, 3})).line().find("fell"),
            std::string::npos);
  // All plans equally far away: the unfused one is judged by what fp64 learned.
  EXPECT_EQ(judge(made_up({3, 2, 1.3}, {3, 2, 1.3}, learns, learns))
                .line()
                .rfind("does not train: unfused: the gap", 0),
            0U);
  const Verdict ended = judge(made_up(learns, {3, 2}, learns, learns));
  EXPECT_FALSE(ended.passed());
  EXPECT_NE(ended.line().find("coda: the loss of step 3 is not finite"), std::string::npos);
}

TEST(TrainingErrors, RefuseWhatCannotBeTrained) {
  const auto message = [](const ModelConfig& config, const std::vector<std::string>& policies) {
    try {
      train(config, test::train(1, 8), policies, executor_gpu(), few_steps());
    } catch (const InputError& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  ModelConfig few = tiny_model();
  few.V = 29;
  EXPECT_NE(message(few, {}).find("vocabulary"), std::string::npos);
  EXPECT_NE(message(tiny_model(), {"whole-block"}).find("no plan for the backward pass"),
            std::string::npos);
  ModelConfig large = test::llama2_7b();
  large.layers = 1000;
  EXPECT_NE(message(large, {}).find("of memory to train"), std::string::npos);
}

}  // namespace
}  // namespace fuseline::training
