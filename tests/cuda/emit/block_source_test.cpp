// The kernel of a whole block becomes machine code for all numbers of sequences and kinds of heads,
// and other blocks are refused by what is missing.
#include "cuda/emit/block_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cuda/kernels/block/instruction.cuh"
#include "tests/cuda/emit/compile_support.h"

namespace fuseline::cuda {
namespace {

using testing::HasSubstr;

Plan plan_of(const std::string& model, std::int64_t batch, Phase phase = Phase::decode) {
  Workload work = test::workload(phase);
  work.batch = batch;
  work.context = 2048;
  return make_plan("whole-block", load_model(model), work);
}

std::string why_not(const Plan& plan, SmTarget target = SmTarget::sm_90a) {
  return block_not_built(plan.graph, plan.kernels.front(), target);
}

class WholeBlockSource : public test::CompileTest {};

TEST_F(WholeBlockSource, CompilesWithoutSpills) {
  if (!makes(SmTarget::sm_90a)) GTEST_SKIP() << "the toolkit makes no code for Hopper";
  for (const char* model : {"llama2-7b", "llama3-8b", "tinyllama"})
    for (const std::int64_t batch : {1, 2, 3, 5, 7, 8}) {
      SCOPED_TRACE(std::string(model) + " " + std::to_string(batch));
      const Plan plan = plan_of(model, batch);
      const BlockKernelSource made =
          block_kernel_source(plan, plan.kernels.front(), SmTarget::sm_90a);
      expect_compiles(made.source, made.function, SmTarget::sm_90a,
                      {"cp.async.bulk.tensor.2d", "cp.async.bulk.tensor.4d", "mbarrier.try_wait",
                       "ld.acquire.gpu", "fence.acq_rel.gpu", "red.relaxed.gpu",
                       "fence.proxy.async", "ldmatrix", "mma.sync.aligned.m16n8k16"});
    }
}

// One code for all blocks of the same sequences and heads.
TEST_F(WholeBlockSource, SizesAreParameters) {
  const auto text = [](const Plan& plan) {
    return std::string(without_comment(
        block_kernel_source(plan, plan.kernels.front(), SmTarget::sm_90a).source.text));
  };
  EXPECT_EQ(text(plan_of("llama2-7b", 2)), text(plan_of("llama2-13b", 2)));
  EXPECT_NE(text(plan_of("llama2-7b", 2)), text(plan_of("llama2-7b", 3)));
}

TEST_F(WholeBlockSource, OthersAreRefusedByWhatIsMissing) {
  EXPECT_EQ(why_not(plan_of("llama2-7b", 8)), "");
  EXPECT_THAT(why_not(plan_of("llama2-7b", 9)), HasSubstr("9 sequences are more than 8"));
  EXPECT_THAT(why_not(plan_of("llama2-7b", 1), SmTarget::sm_80), HasSubstr("Hopper"));
  EXPECT_THAT(why_not(plan_of("gpt2-xl", 1)), HasSubstr("phase"));
  EXPECT_THAT(why_not(plan_of("llama2-7b", 1, Phase::forward)), HasSubstr("new token"));
  Workload fp16 = test::workload(Phase::decode);
  fp16.batch = 1;
  fp16.dtype = Dtype::fp16;
  EXPECT_THAT(why_not(make_plan("whole-block", load_model("llama2-7b"), fp16)),
              HasSubstr("fp16, not bf16"));
  const Plan plan = plan_of("gpt2-xl", 1);
  EXPECT_THROW((void)block_kernel_source(plan, plan.kernels.front(), SmTarget::sm_90a),
               MissingError);
}

// What lies in a thread block's shared memory fits, with a ring of some slices.
TEST(WholeBlockShape, StagesFit) {
  using One = gpu::BlockShape<1, 128, 1>;
  using Eight = gpu::BlockShape<8, 128, 4>;
  using Narrow = gpu::BlockShape<8, 64, 8>;
  EXPECT_GE(One::stages, 6);
  EXPECT_GE(Eight::stages, 5);
  EXPECT_GE(Narrow::stages, 4);
  for (const int bytes : {One::shared_bytes, Eight::shared_bytes, Narrow::shared_bytes})
    EXPECT_LE(bytes, 232448);
  for (const int bytes : {One::stage_bytes, Eight::stage_bytes, Narrow::stage_bytes,
                          One::operand_bytes, Eight::operand_bytes})
    EXPECT_EQ(bytes % 1024, 0) << "the copy engine swizzles by addresses";
}

}  // namespace
}  // namespace fuseline::cuda
