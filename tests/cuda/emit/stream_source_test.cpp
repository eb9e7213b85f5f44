// Streams and rows as CUDA source: the text of characteristic programs, and that the programs of
// all policies, phases and shipped models compile without spills. The first needs no toolkit, the
// second no GPU.
#include "cuda/emit/stream_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <mutex>
#include <thread>

#include "base/error.h"
#include "cuda/emit/comment.h"
#include "cuda/emit/not_built.h"
#include "cuda/emit/row_pitch.h"
#include "model/blocks/block.h"
#include "model/config/model_files.h"
#include "model/policy.h"
#include "model/primitives/functions.h"
#include "tests/cuda/compile/no_compiler.h"
#include "tests/cuda/emit/compile_support.h"
#include "tests/model/plan_support.h"

namespace fuseline::cuda {
namespace {

using testing::HasSubstr;
using testing::Not;

bool is_stream(const Program& program) {
  return std::holds_alternative<StreamMainloop>(program.mainloop) ||
         std::holds_alternative<RowMainloop>(program.mainloop);
}

StreamKernelSource source_of(const Plan& plan, const std::string& kernel) {
  const Kernel* found = fuseline::test::find_kernel(plan, kernel);
  if (found == nullptr) throw InternalError("no kernel " + kernel);
  return stream_kernel_source(plan.graph, found->phases.at(0), "A test.");
}

std::string code_of(const StreamKernelSource& source) {
  return std::string(without_comment(source.source.text));
}

Plan plan_of(const std::string& policy, const std::string& model, const Workload& work) {
  return make_plan(policy, load_model(model), work);
}

TEST(StreamSource, OnePrimitiveIsOneCall) {
  const Plan plan = plan_of("per-operator", "llama2-7b", fuseline::test::forward(1, 2048));
  const StreamKernelSource swiglu = source_of(plan, "swiglu");
  EXPECT_EQ(swiglu.function, "tiles_silu_mul");
  EXPECT_THAT(swiglu.source.text, HasSubstr("// A test.\n"));
  EXPECT_THAT(swiglu.source.text, HasSubstr("// in1 = gu[:, 11008:22016]\n"));
  EXPECT_THAT(code_of(swiglu), HasSubstr("    const auto in0 = load_tile(p.in0, place);\n"
                                         "    const auto t = silu(in0);\n"
                                         "    const auto in1 = load_tile(p.in1, place);\n"
                                         "    const auto o = mul(t, in1);\n"
                                         "    store_tile(p.out0, place, o);\n"));
  ASSERT_EQ(swiglu.fields.size(), 3U);
  EXPECT_EQ(swiglu.fields[1].operand.col_begin, 11008);
  EXPECT_EQ(swiglu.shape.loop, StreamLoop::tiles);
  EXPECT_EQ(swiglu.shape.units, 4);
}

// What the text holds of sizes is what changes the code.
TEST(StreamSource, EqualProgramsOfDifferentTensorsAndModelsAreOneKernel) {
  const Plan one = plan_of("per-operator", "llama2-7b", fuseline::test::forward(1, 2048));
  const Plan other = plan_of("unfused", "tinyllama", fuseline::test::forward(3, 1024));
  EXPECT_EQ(code_of(source_of(one, "norm1")), code_of(source_of(one, "norm2")));
  EXPECT_EQ(code_of(source_of(one, "residual1")), code_of(source_of(other, "residual2")));
  EXPECT_NE(source_of(one, "residual1").source.text, source_of(other, "residual2").source.text);
  EXPECT_NE(code_of(source_of(one, "norm1")), code_of(source_of(other, "norm1")));  // width
}

TEST(StreamSource, RowsAreResidentInAsManyThreadsAsTheyNeed) {
  const auto norm = [](const std::string& model, std::int64_t tokens) {
    return source_of(plan_of("per-operator", model, fuseline::test::forward(1, tokens)), "norm1")
        .shape;
  };
  EXPECT_EQ(norm("llama2-7b", 2048).row_threads, 128);
  EXPECT_EQ(norm("llama2-7b", 2048).units, 4);
  EXPECT_EQ(norm("llama2-70b", 2048).row_threads, 256);
  // Few rows: every column vector has a thread.
  EXPECT_EQ(norm("llama2-7b", 16).row_threads, 512);
  EXPECT_EQ(norm("llama2-7b", 16).units, 1);
  EXPECT_EQ(norm("char-llama", 1024).row_threads, 16);
  EXPECT_EQ(norm("char-llama", 1024).block_threads, 256);
}

TEST(StreamSource, TheSoftmaxOfScoresMasksAndReducesTwice) {
  const Plan plan = plan_of("unfused", "llama2-7b", fuseline::test::forward(1, 2048));
  const StreamKernelSource softmax = source_of(plan, "softmax");
  EXPECT_EQ(softmax.shape.loop, StreamLoop::rows);
  EXPECT_FALSE(softmax.shape.walked);
  EXPECT_THAT(code_of(softmax), HasSubstr("= mask(in0, p.visible0, place);"));
  EXPECT_THAT(code_of(softmax), HasSubstr("row_reduce<Max, threads, true>(x, place)"));
}

// Every reduction of a row that does not fit is a walk: the maximum and the target's value need
// nothing before them, the sum of exponentials needs the maximum.
TEST(StreamSource, RowsTooWideToBeResidentAreWalked) {
  const Plan plan =
      make_plan("per-operator", build_exit(load_model("llama3-8b"), fuseline::test::train(1, 256)));
  const StreamKernelSource loss = source_of(plan, "loss");
  EXPECT_TRUE(loss.shape.walked);
  const std::string code = code_of(loss);
  EXPECT_THAT(code, HasSubstr("RowTotal<Max> total;"));
  const auto count = [&](const std::string& part) {
    std::size_t found = 0;
    for (auto at = code.find(part); at != std::string::npos; at = code.find(part, at + 1)) ++found;
    return found;
  };
  EXPECT_EQ(count("walk(place, [&]"), 2U);
  EXPECT_EQ(count("gather_row<true>("), 3U);
  EXPECT_EQ(count("load_tile(p.in0, step"), 2U);
}

TEST(StreamSource, HalvesOfHeadsAreComputedAtTheirOwnPlaces) {
  const Plan plan = plan_of("composed", "llama2-7b", fuseline::test::forward(1, 2048));
  const std::string code = code_of(source_of(plan, "rope_q_concat"));
  EXPECT_THAT(code, HasSubstr("concat_halves<128>(place, [&](const auto& half) {"));
  EXPECT_THAT(code, HasSubstr("load_halves<128, false>(p.in1, half_1)"));
}

TEST(StreamSource, PairsApartLieInOneThread) {
  const Plan plan = plan_of("per-operator", "llama2-7b", fuseline::test::forward(1, 2048));
  const StreamKernelSource rope = source_of(plan, "rope_qk");
  EXPECT_EQ(rope.shape.distance, 64);
  EXPECT_EQ(rope.shape.block_threads, 128);
  EXPECT_THAT(code_of(rope), HasSubstr("rope<false>(in0, table0, table1)"));
  // Heads of 6 columns: partners are computed apart, column by column.
  ModelConfig tiny = fuseline::test::tiny_llama();
  const StreamKernelSource odd = source_of(
      make_plan("per-operator", build_block(tiny, fuseline::test::forward(1, 9))), "rope_qk");
  EXPECT_TRUE(odd.shape.odd);
  EXPECT_THAT(code_of(odd), HasSubstr("rope_apart<3, false>(place, [&]"));
  EXPECT_THAT(code_of(odd), HasSubstr("Tile<bf16, false> in0;"));
}

TEST(StreamSource, ColumnSumsAreGatheredDownTheColumns) {
  const Plan whole = plan_of("per-operator", "gpt2-xl", fuseline::test::train(1, 1024));
  const StreamKernelSource sum = source_of(whole, "db_qkv");
  EXPECT_EQ(sum.shape.loop, StreamLoop::columns_down);
  EXPECT_EQ(sum.shape.block_rows, 1024);
  EXPECT_THAT(code_of(sum), HasSubstr("ColumnState<Sum> total0;"));
  EXPECT_THAT(code_of(sum), HasSubstr("column_result<lanes, threads>(state.total0)"));
  // Beside partials of rows, 16 lanes hold a block of 128 columns.
  const Plan blocks = plan_of("coda", "gpt2-xl", fuseline::test::train(1, 1024));
  const StreamKernelSource both = source_of(blocks, "db_qkv_partial");
  EXPECT_EQ(both.shape.block_rows, 128);
  EXPECT_EQ(both.shape.lanes, 16);
  EXPECT_THAT(code_of(both), HasSubstr("reduce_row_blocks<Sum>(p.partials1, 1, 2, place, q);"));
  EXPECT_THAT(code_of(both), HasSubstr("store_column_block(p.partials0, 0, 1, block, place,"));
}

// Keys have fewer columns than queries, and so fewer partials.
TEST(StreamSource, PartialsOfNarrowerValuesEndWithThem) {
  const Plan plan = plan_of("coda", "llama2-70b", fuseline::test::train(1, 1024));
  const StreamKernelSource convert = source_of(plan, "convert_dq_d_rope_k_d_rope_q");
  EXPECT_THAT(code_of(convert), HasSubstr("const auto part = within(place, p.cols0);"));
  EXPECT_THAT(code_of(convert), HasSubstr("reduce_row_blocks<Sum>(p.partials1, 0, 1, part, "));
  EXPECT_THAT(convert.source.text, HasSubstr("// cols0 = 1024\n"));
  EXPECT_EQ(convert.shape.least_lanes, 16);
}

TEST(StreamSource, PaddedRowsMoveVectorsAndSlicesWithinThemDoNot) {
  Graph graph;
  const TensorId t = graph.add_tensor({.name = "t", .rows = 3, .cols = 77});
  EXPECT_TRUE(moves_vectors(graph, graph.whole(t)));
  EXPECT_TRUE(moves_vectors(graph, graph.columns(t, 64, 13)));
  EXPECT_FALSE(moves_vectors(graph, graph.columns(t, 0, 13)));
  EXPECT_FALSE(moves_vectors(graph, graph.columns(t, 4, 8)));
}

// The numbers of a vector of one column lie side by side: 16 bytes hold several rows.
TEST(StreamSource, VectorsOfOneColumnMoveNumberByNumber) {
  Graph graph;
  const TensorId v = graph.add_tensor({.name = "v", .dtype = Dtype::fp32, .rows = 75, .cols = 1});
  EXPECT_EQ(row_pitch(graph.tensor(v)), 4);
  EXPECT_FALSE(moves_vectors(graph, graph.whole(v)));
  const Plan plan = plan_of("composed", "llama2-7b", fuseline::test::forward(1, 75));
  EXPECT_THAT(source_of(plan, "norm1_eps").source.text, HasSubstr("Tile<float, false>"));
}

TEST(StreamSource, SumsDownColumnsGoBesidePartialsOf128Rows) {
  Graph graph;
  const TensorId x = graph.add_tensor({.name = "x", .rows = 256, .cols = 64});
  const TensorId y = graph.add_tensor({.name = "y", .dtype = Dtype::fp32, .rows = 1, .cols = 64});
  const TensorId z = graph.add_tensor({.name = "z", .dtype = Dtype::fp32, .rows = 64, .cols = 2});
  Program program{.name = "both", .mainloop = StreamMainloop{256, 64}};
  program.body = {LoadTile{1, graph.whole(x)}, ColumnReduce{2, reductions::sum, 1},
                  StoreVector{2, graph.whole(y), Axis::cols},
                  TileReduce{reductions::sum, Axis::cols, 1, graph.whole(z)}};
  const auto both = stream_kernel_source(graph, program, "A test.");
  EXPECT_THAT(both.source.text, HasSubstr("both"));
}

class SlowStreamSources : public testing::Test {
 protected:
  void SetUp() override {
    try {
      Compiler compiler;
    } catch (const MissingError& error) {
      end_without_compiler(error);
    }
  }

  void add(const Plan& plan) {
    for (const Kernel& kernel : plan.kernels)
      for (const Program& program : kernel.phases)
        if (is_stream(program) && not_built(program).empty()) {
          const StreamKernelSource source =
              stream_kernel_source(plan.graph, program, plan.policy + " " + kernel.name);
          sources_.emplace(code_of(source), source);
        }
  }
  void add_all(const ModelConfig& config, const Workload& work) {
    for (const PolicyInfo& policy : policies()) {
      if (policy.name == "custom" || policy.name == "whole-block") continue;
      if (work.phase == Phase::train && !policy.trains) continue;
      add(make_plan(policy.name, build_block(config, work)));
      add(make_plan(policy.name, build_entry(config, work)));
      add(make_plan(policy.name, build_exit(config, work)));
    }
  }

  void compile_all(SmTarget target) {
    std::vector<const StreamKernelSource*> todo;
    for (const auto& [code, source] : sources_) todo.push_back(&source);
    std::atomic<std::size_t> next{0};
    std::mutex mutex;
    const auto work = [&] {
      const Compiler compiler;
      if (!compiler.makes(target)) return;
      for (std::size_t i = next++; i < todo.size(); i = next++) {
        std::string problem;
        try {
          // Where elements move one by one, what each is guarded by may be spilled.
          const test::Passed passed(compiler, target, todo[i]->source, "no spills unless odd");
          if (passed.known()) continue;
          const Compiled compiled = compiler.compile(todo[i]->source, target);
          if (compiled.use.spill_bytes != 0 && !todo[i]->shape.odd)
            problem = "spills";
          else
            passed.remember();
        } catch (const InternalError& error) {
          problem = error.what();
        }
        const std::scoped_lock lock(mutex);
        EXPECT_EQ(problem, "") << name_of(target) << '\n' << todo[i]->source.text;
      }
    };
    std::jthread other(work);
    work();
  }

  void compile_models(const std::vector<std::string>& models) {
    if (IsSkipped()) return;
    for (const std::string& model : models) {
      const ModelConfig config = load_model(model);
      add_all(config, fuseline::test::forward(1, 1024));
      add_all(config, fuseline::test::decode(16, 1, 2048));
      add_all(config, fuseline::test::train(1, 1024));
    }
    add_all(load_model("llama2-7b"), fuseline::test::train(4, 4096));
    EXPECT_GT(sources_.size(), 100U);
    compile_all(SmTarget::sm_90a);
    compile_all(SmTarget::sm_80);
  }

  std::map<std::string, StreamKernelSource> sources_;  // by code
};

TEST_F(SlowStreamSources, OfAllPoliciesAndPhasesCompile) {
  compile_models(test::models_of_all_kinds());
}

class LongStreamSources : public SlowStreamSources {};

TEST_F(LongStreamSources, OfAllModelsCompile) { compile_models(model_names()); }

// A vocabulary, heads and rows of no particular width; scores of 8,192 keys, and of more than a
// thread block holds.
TEST_F(SlowStreamSources, OfOddAndWideRowsCompile) {
  ModelConfig odd = fuseline::test::tiny_llama();
  odd.D = 150;
  odd.F = 131;
  add_all(odd, fuseline::test::train(3, 17));
  add_all(fuseline::test::tiny_gpt(), fuseline::test::train(1, 15));
  for (const std::int64_t keys : {8192, 16384, 20000, 131072})
    add(make_plan("unfused", load_model("llama3-8b"), fuseline::test::decode(64, 1, keys)));
  for (const std::int64_t tokens : {4000, 8192, 16384})
    add(make_plan("unfused", load_model("llama3-8b"), fuseline::test::train(1, tokens)));
  compile_all(SmTarget::sm_90a);
  compile_all(SmTarget::sm_80);
}

}  // namespace
}  // namespace fuseline::cuda
