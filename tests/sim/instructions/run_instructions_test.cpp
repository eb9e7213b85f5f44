// Instructions of a decode block in random legal orders: the results are those of the fp64
// reference, nobody reads what no counter protects, and what is broken on purpose is found.
#include "sim/instructions/run_instructions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <utility>

#include "sim/executor/comparison.h"
#include "sim/executor/inputs.h"
#include "sim/executor/reference_fast.h"
#include "tests/sim/executor/executor_support.h"
#include "tests/sim/instructions/instruction_case.h"

namespace fuseline::executor {
namespace {

using test::LlamaSizes;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

struct InstructionCase {
  explicit InstructionCase(const LlamaSizes& s, const InstructionSizes& sizes)
      : config(test::llama_of(s)),
        work(test::decode_of(s)),
        block(build_block(config, work)),
        plan(make_plan("whole-block", config, work)),
        given(random_storage(block, kInputsSeed, {})),
        inputs(prepare_inputs(plan, given, kInputsSeed, {})),
        all(block_instructions(test::block_of(plan), sizes)) {}

  ModelConfig config;
  Workload work;
  Graph block;
  Plan plan;
  Inputs given, inputs;
  BlockInstructions all;

  [[nodiscard]] InstructionRun run(std::uint64_t seed) const {
    return run_instructions(plan, all, inputs, seed);
  }
  // Of the last SM that has one: the first one does the norms, and follows its own order there.
  Instruction& find(Step step) {
    for (auto sm = all.sms.rbegin(); sm != all.sms.rend(); ++sm)
      for (Instruction& i : *sm)
        // A join of partial softmaxes of one SM follows that SM's order.
        if (i.step == step && (step != Step::join || i.slots > 1)) return i;
    throw InternalError("no such instruction");
  }
};

InstructionSizes small_sizes(int sms) {
  return {.sms = sms, .tile_rows = 6, .slice_columns = 8, .slice_elements = 18};
}

// As `fuseline verify` judges: against fp64, by the errors of the unfused plan.
void expect_right(const InstructionCase& c, const Memory& memory) {
  const Plan unfused = make_plan("unfused", c.config, c.work);
  const TensorValues reference = fast_reference(c.block, c.given, {});
  const Comparison comparison(c.block, reference);
  const Execution baseline =
      execute(unfused, prepare_inputs(unfused, c.given, kInputsSeed, {}), executor_gpu(), {});
  int outputs = 0;
  for (const ComparedTensor& t :
       comparison.judge(c.plan, memory, c.inputs, comparison.baseline(unfused, *baseline.memory))) {
    EXPECT_EQ(t.problem, "") << t.name << " " << t.error.relative_l2;
    outputs += t.output ? 1 : 0;
  }
  EXPECT_GE(outputs, 4) << "y, its statistics, keys and values";
}

TEST(RunInstructions, RandomOrdersOfRandomSizesAgreeWithTheReference) {
  std::mt19937 random(7);
  const auto pick = [&](std::int64_t least, std::int64_t most) {
    return std::uniform_int_distribution<std::int64_t>(least, most)(random);
  };
  for (int round = 0; round < 40; ++round) {
    LlamaSizes s;
    s.Hkv = pick(1, 3);
    s.H = s.Hkv * pick(1, 3);
    s.d = 2 * pick(1, 9);
    s.D = pick(3, 150);
    s.F = pick(1, 90);
    s.batch = pick(1, 4);
    s.context = pick(1, 40);
    InstructionSizes sizes = small_sizes(static_cast<int>(pick(1, 9)));
    sizes.slice_columns = pick(1, 40);
    sizes.tile_rows = 2 * pick(1, 16);
    SCOPED_TRACE(testing::Message()
                 << "D " << s.D << " F " << s.F << " H " << s.H << " Hkv " << s.Hkv << " d " << s.d
                 << " batch " << s.batch << " context " << s.context << " SMs " << sizes.sms);
    const InstructionCase c(s, sizes);
    const InstructionRun run = c.run(random());
    ASSERT_EQ(run.deadlock, "");
    EXPECT_THAT(run.races, IsEmpty());
    expect_right(c, *run.memory);
  }
}

TEST(RunInstructions, EveryOrderHasTheSameBits) {
  const InstructionCase c(LlamaSizes{}, small_sizes(5));
  const InstructionRun first = c.run(1);
  ASSERT_TRUE(first.good()) << first.deadlock;
  const TensorId y = c.plan.graph.find_tensor("y").value();
  for (std::uint64_t seed = 2; seed < 12; ++seed)
    EXPECT_EQ(to_doubles(c.run(seed).memory->at(y)), to_doubles(first.memory->at(y)));
}

// Sizes of a real model, the SMs of a real GPU; not computed.
TEST(RunInstructions, ShippedModelsAreShared) {
  for (const auto& [D, F, Hkv, d] : {std::tuple<int, int, int, int>{4096, 11008, 32, 128},
                                     {4096, 14336, 8, 128},
                                     {2048, 5632, 4, 64}}) {
    LlamaSizes s{.D = D, .F = F, .H = 32, .Hkv = Hkv, .d = d, .batch = 4, .context = 2048};
    const Plan plan = make_plan("whole-block", test::llama_of(s), test::decode_of(s));
    const BlockInstructions all = block_instructions(test::block_of(plan));
    ASSERT_EQ(all.sms.size(), 132U);
    std::vector<std::int64_t> bytes;
    for (const auto& sm : all.sms) {
      std::int64_t sum = 0;
      for (const Instruction& i : sm) {
        if (is_product(i.step)) sum += i.count * operand_of(all.block, i.step).cols;
        if (i.step == Step::attend) sum += 2 * i.count * d;
        EXPECT_LE(i.operand.count, all.sizes.most_waits);
        EXPECT_LE(i.count, is_product(i.step) ? all.sizes.tile_rows : s.context);
      }
      EXPECT_LE(sm.size(), 40U);
      bytes.push_back(sum);
    }
    const auto [least, most] = std::ranges::minmax(bytes);
    EXPECT_LT(static_cast<double>(most), 1.02 * static_cast<double>(least)) << D << " " << F;
  }
}

// Each wait that an instruction has of its own is needed: without it somebody reads too early.
TEST(RunInstructions, ARemovedWaitIsARace) {
  for (const Step step : {Step::attend, Step::join}) {
    SCOPED_TRACE(name_of(step));
    InstructionCase c(LlamaSizes{}, small_sizes(5));
    c.find(step).waits[0] = no_counter;
    const InstructionRun run = c.run(3);
    EXPECT_EQ(run.deadlock, "");
    EXPECT_THAT(run.races, Not(IsEmpty()));
  }
  // The SM that stores the second norm's factors knows from its own slices of h that they are
  // there.
  for (const Step step : {Step::out, Step::gate_up, Step::down, Step::finish_stats}) {
    SCOPED_TRACE(name_of(step));
    InstructionCase c(LlamaSizes{}, small_sizes(5));
    c.find(step).operand = {};
    EXPECT_THAT(c.run(3).races, Not(IsEmpty()));
  }
}

// The number is there in this order, as one SM does everything in order; the proof is not.
TEST(RunInstructions, ARaceIsFoundInOrdersInWhichItIsLucky) {
  InstructionCase c(LlamaSizes{.batch = 1}, small_sizes(1));
  c.find(Step::gate_up).operand = {};
  int found = 0;
  for (std::uint64_t seed = 0; seed < 6; ++seed) found += c.run(seed).races.empty() ? 0 : 1;
  EXPECT_EQ(found, 6);
}

TEST(RunInstructions, TooFewAdditionsAreADeadlock) {
  InstructionCase c(LlamaSizes{}, small_sizes(5));
  c.find(Step::down).adds = {no_counter, no_counter};
  const InstructionRun run = c.run(3);
  EXPECT_THAT(run.deadlock, HasSubstr("finish_stats"));
  EXPECT_THAT(run.deadlock, HasSubstr("waits for y"));
}

TEST(RunInstructions, AWrongOrderIsADeadlock) {
  InstructionCase c(LlamaSizes{}, small_sizes(5));
  for (auto& sm : c.all.sms) {
    const auto attend = std::ranges::find(sm, Step::attend, &Instruction::step);
    const auto out = std::ranges::find(sm, Step::out, &Instruction::step);
    if (attend != sm.end() && out != sm.end()) std::iter_swap(attend, out);
  }
  const InstructionRun run = c.run(3);
  EXPECT_THAT(run.deadlock, HasSubstr("attention of key head"));
}

}  // namespace
}  // namespace fuseline::executor
