#include "cuda/emit/not_built.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "base/error.h"
#include "cuda/emit/plan_source.h"
#include "model/config/model_files.h"
#include "model/operators/all_operators.h"
#include "model/policy.h"
#include "model/primitives/all_maps.h"
#include "model/primitives/all_reductions.h"
#include "model/primitives/primitives.h"
#include "sim/gpu/gpu.h"
#include "tests/model/plan_support.h"
#include "tests/model/small_experts.h"

namespace fuseline::cuda {
namespace {

Program attention(const AttentionShape& shape) {
  AttentionMainloop m;
  m.shape = shape;
  return {.name = "attention", .mainloop = m};
}

TEST(NotBuilt, NamesWhatNoKernelDoes) {
  AttentionShape a{.heads = 2, .kv_heads = 2, .head_width = 64, .causal = true};
  EXPECT_EQ(not_built(attention(a)), "");
  a.softcap = 30;
  EXPECT_EQ(not_built(attention(a)), "");
  Program gradient = attention(a);
  std::get<AttentionMainloop>(gradient.mainloop).gradient = AttentionGradient{};
  EXPECT_EQ(not_built(gradient), "");
  a.softcap = 0;
  a.prefix = 3;
  EXPECT_EQ(not_built(attention(a)), "attention with a prefix that all queries see");
  a.prefix = 0;
  a.value_width = 32;
  EXPECT_EQ(not_built(attention(a)), "");
  Program narrower = attention(a);
  std::get<AttentionMainloop>(narrower.mainloop).gradient = AttentionGradient{};
  EXPECT_EQ(not_built(narrower), "");
  a.value_width = 64;
  Program biased = attention(a);
  std::get<AttentionMainloop>(biased.mainloop).bias = Operand{};
  EXPECT_EQ(not_built(biased), "");
  a.cache = parse_stored_cache("int8", "", "");
  EXPECT_EQ(not_built(attention(a)), "");
  a.head_width = 576;
  EXPECT_EQ(not_built(attention(a)), "attention with a cache in int8 of heads of 576 columns");
}

TEST(NotBuilt, NamesWhatNoStreamOrEpilogueDoes) {
  const AttentionShape prefixed{
      .heads = 1, .q_tokens = 8, .kv_tokens = 8, .causal = true, .prefix = 3};
  AttentionShape causal = prefixed;
  causal.prefix = 0;
  const auto masked = [](const AttentionShape& shape) {
    return Program{.name = "softmax", .mainloop = RowMainloop{8, 8}, .body = {Mask{1, 0, shape}}};
  };
  EXPECT_EQ(not_built(masked(causal)), "");
  EXPECT_EQ(not_built(masked(prefixed)), "a mask with a prefix that all queries see");

  GemmMainloop products;
  products.batch = 2;
  Program scores{.name = "scores", .mainloop = products, .body = {LoadTable{1, Operand{}}}};
  EXPECT_EQ(not_built(scores), "");
  scores.body = {LoadTable{1, Operand{}, 64}};
  EXPECT_EQ(not_built(scores), "a batch of products that loads a table of a part of each head");
  products.batch = 1;
  scores.mainloop = products;
  EXPECT_EQ(not_built(scores), "");

  EXPECT_EQ(
      not_built({.name = "keys", .mainloop = products, .body = {StoreGroups{0, Operand{}, 32}}}),
      "");

  Operand apart{.tensor = {}, .cols = 8, .rows = 6};
  apart.at = {1, 3, 5};
  const StreamMainloop rows{6, 8};
  EXPECT_EQ(not_built({.name = "copy", .mainloop = rows, .body = {LoadTile{1, apart}}}), "");
  EXPECT_EQ(
      not_built({.name = "scale", .mainloop = rows, .body = {LoadVector{1, apart, Axis::rows}}}),
      "load_vector of rows that lie apart");
  EXPECT_EQ(not_built({.name = "gemm", .mainloop = products, .body = {StoreTile{0, apart}}}), "");
  EXPECT_EQ(not_built({.name = "gemm", .mainloop = products, .body = {StoreTile{0, apart, true}}}),
            "store_tile of rows that lie apart");
  EXPECT_EQ(not_built({.name = "gemm", .mainloop = products, .body = {LoadTile{1, apart}}}),
            "load_tile of rows that lie apart");
}

// The whole way: a plan's kernel is refused as what is missing here, not as an internal error.
TEST(NotBuilt, IsSaidOfAPlansKernel) {
  Workload work = fuseline::test::forward(1, 64);
  work.formats.weights = parse_stored_weight("int4:12", "", "");
  const Plan plan = make_plan("coda", load_model("mixtral-8x7b"), work);
  const Kernel* up = fuseline::test::find_kernel(plan, "expert_gate_up");
  ASSERT_NE(up, nullptr);
  try {
    static_cast<void>(kernel_sources(plan, *up, load_gpu("h200"), SmTarget::sm_90a));
    FAIL() << "it has no kernel";
  } catch (const MissingError& error) {
    EXPECT_STREQ(
        error.what(),
        "policy coda, kernel expert_gate_up: a product with weights in int4:12 whose groups "
        "are no multiple of 8 columns has no kernel for a real GPU yet");
  }
}

// In training each kernel of experts has its source; heads of odd widths are what lacks.
TEST(NotBuilt, NamesAllThatTrainingOfExpertsLacks) {
  const Gpu gpu = load_gpu("h200");
  for (const ModelConfig& model :
       {fuseline::test::small_experts(), fuseline::test::small_latent_experts()}) {
    for (const std::string policy : {"unfused", "eager", "torch-compile", "coda"}) {
      const Plan plan = make_plan(policy, model, fuseline::test::train(2, 37));
      std::map<std::string, std::string> missing;  // by kernel
      for (const Kernel& kernel : plan.kernels) {
        try {
          EXPECT_FALSE(kernel_sources(plan, kernel, gpu, SmTarget::sm_90a).empty()) << kernel.name;
        } catch (const MissingError& error) {
          missing[kernel.name] = error.what();
        }
      }
      const bool latent = model.name != fuseline::test::small_experts().name;
      if (!latent) {
        EXPECT_TRUE(missing.empty()) << policy << ": " << missing.begin()->second;
      }
      for (const auto& [kernel, what] : missing) {
        EXPECT_THAT(kernel, testing::HasSubstr("attention"));
        EXPECT_THAT(what, testing::HasSubstr("heads are 40 wide")) << kernel;
      }
    }
  }
}

// Rows of one number for 128 rows would count rows of several groups.
TEST(NotBuilt, NamesWhatGroupsOfRowsLack) {
  GemmMainloop product;
  product.M = 8;
  product.N = 64;
  product.groups = {3, 5};
  EXPECT_EQ(not_built({.name = "up", .mainloop = product}), "");
  const Operand partials{.tensor = {}, .cols = 1, .rows = 64};
  const TileReduce columns{reductions::sum, Axis::cols, 0, partials};
  EXPECT_EQ(not_built({.name = "up", .mainloop = product, .body = {columns}}),
            "a product of groups of rows that sums columns");
  product.b_is_kn = true;
  EXPECT_EQ(not_built({.name = "up", .mainloop = product}), "");
  product.a_is_km = true;
  EXPECT_EQ(not_built({.name = "up", .mainloop = product}),
            "a product of groups of rows whose first operand lies along K");
  GemmMainloop sums;
  sums.M = 8;
  sums.N = 64;
  sums.K = 8;
  sums.batch = 2;
  sums.depths = {3, 5};
  sums.a_is_km = sums.b_is_kn = true;
  EXPECT_EQ(not_built({.name = "dw_up", .mainloop = sums}), "");
}

// The gradient of a choice has a row of scores at once, as the choice has.
TEST(NotBuilt, NamesGradientsOfRouting) {
  const auto gradient = [](std::int64_t experts) {
    const Operand gates{.tensor = {}, .cols = 2, .rows = 4};
    return not_built(
        {.name = "d_choose",
         .mainloop = RowMainloop{4, experts},
         .body = {LoadTile{1, gates}, ChooseExpertsGradient{2, 1, 0, 1, {.count = 2}}}});
  };
  EXPECT_EQ(gradient(128), "");
  EXPECT_EQ(gradient(20000), "a choice among 20000 experts");
  const Operand places{.tensor = {}, .cols = 1, .rows = 8};
  EXPECT_EQ(not_built({.name = "d_gates",
                       .mainloop = StreamMainloop{4, 2},
                       .body = {PlaceNumbers{1, places, places, 2}}}),
            "");
}

// Sums over sequences end where a sequence does, those down all rows and of 128 rows elsewhere.
TEST(NotBuilt, NamesSumsOfSequencesBesideOthers) {
  const Operand x{.tensor = {}, .cols = 8, .rows = 6};
  const Operand sums{.tensor = {}, .cols = 8, .rows = 2};
  const Operand partials{.tensor = {}, .cols = 1, .rows = 8};
  Program program{.name = "sums",
                  .mainloop = StreamMainloop{6, 8},
                  .body = {LoadTile{0, x}, SumSequences{0, sums, 3}}};
  EXPECT_EQ(not_built(program), "");
  program.body.push_back(TileReduce{reductions::sum, Axis::cols, 0, partials});
  EXPECT_EQ(not_built(program), "sums over the rows of each sequence beside sums down all rows");
}

// Sums over heads take lanes side by side where columns are summed too.
TEST(NotBuilt, NamesHeadsThatNoLanesHold) {
  const auto heads = [](std::int64_t group) {
    const Operand x{.tensor = {}, .cols = 2 * group, .rows = 6};
    const Operand to{.tensor = {}, .cols = 2 * group, .rows = 1};
    return not_built(
        {.name = "dg",
         .mainloop = StreamMainloop{6, 2 * group},
         .body = {LoadTile{0, x}, GroupReduce{1, reductions::sum, 0, group},
                  ColumnReduce{2, reductions::sum, 1}, StoreVector{2, to, Axis::cols}}});
  };
  EXPECT_EQ(heads(128), "");
  EXPECT_EQ(heads(8), "");
  const char* missing = "sums over heads on the way down columns, where no lanes hold a head";
  EXPECT_EQ(heads(24), missing);
  EXPECT_EQ(heads(20), missing);
  EXPECT_EQ(heads(512), missing);
}

TEST(NotBuilt, NamesRoutingThatNoStreamDoes) {
  const auto choice = [](std::int64_t experts) {
    return not_built({.name = "choose",
                      .mainloop = RowMainloop{8, experts},
                      .body = {ChooseExperts{1, 2, 0, {.count = 2}}}});
  };
  EXPECT_EQ(choice(128), "");
  EXPECT_EQ(choice(20000), "a choice among 20000 experts");

  const Operand keys{.tensor = {}, .cols = 2, .rows = 4};
  const Operand places{.tensor = {}, .cols = 1, .rows = 8};
  const StreamMainloop rows{8, 1};
  EXPECT_EQ(not_built({.name = "sort",
                       .mainloop = rows,
                       .body = {SortPlaces{0, keys}, StoreVector{0, places, Axis::rows}}}),
            "");
  EXPECT_EQ(not_built({.name = "sort",
                       .mainloop = rows,
                       .body = {SortPlaces{0, keys}, Map{1, maps::negate, {0}},
                                StoreVector{1, places, Axis::rows}}}),
            "sorted places that are used where they are made");
  // Many keys of few values are counted by lanes that have rows of their own.
  const Operand many{.tensor = {}, .cols = 2, .rows = 400};
  const Operand order{.tensor = {}, .cols = 1, .rows = 800};
  const auto counted = [&](std::int64_t cols) {
    return not_built({.name = "sort",
                      .mainloop = StreamMainloop{800, cols},
                      .body = {SortPlaces{0, many, 8}, StoreVector{0, order, Axis::rows}}});
  };
  EXPECT_EQ(counted(1), "");
  EXPECT_EQ(counted(64), "a sort by counting beside wider rows");
}

TEST(NotBuilt, RowsOfPartsAreJoinedByAKernel) {
  Graph g;
  const auto add = [&](const char* name, Role role, std::int64_t rows) {
    return g.whole(g.add_tensor({.name = name, .role = role, .rows = rows, .cols = 64}));
  };
  g.add_op({.name = "join",
            .kind = operators::concat_rows,
            .reads = {add("a", Role::input, 3), add("b", Role::input, 5)},
            .writes = {add("y", Role::output, 8)}});
  const Plan plan = make_plan("coda", g);
  const std::vector<Source> sources =
      kernel_sources(plan, plan.kernels[0], load_gpu("h200"), SmTarget::sm_90a);
  ASSERT_EQ(sources.size(), 1U);
  EXPECT_THAT(sources[0].text, testing::HasSubstr("rows_of_part<8, 0, 3>(place)"));
  EXPECT_THAT(sources[0].text, testing::HasSubstr("rows_of_part<8, 3, 5>(place)"));
}

TEST(NotBuilt, NamesHeadsThatNoEpilogueSums) {
  GemmMainloop product;
  product.M = 8;
  product.N = 768;
  const auto heads = [&](std::int64_t group, std::int64_t begin) {
    return not_built({.name = "qkv",
                      .mainloop = product,
                      .body = {Columns{1, 0, begin, 768 - begin},
                               GroupReduce{2, reductions::sum_squares, 1, group}}});
  };
  EXPECT_EQ(heads(32, 0), "");
  EXPECT_EQ(heads(128, 0), "");
  EXPECT_EQ(heads(128, 384), "");
  EXPECT_EQ(heads(128, 192),
            "a product whose epilogue sums over heads of 128 columns, from column 192 on");
  EXPECT_EQ(heads(256, 0),
            "a product whose epilogue sums over heads of 256 columns, while a warp has 128");
  EXPECT_EQ(heads(12, 0), "a product whose epilogue sums over heads of 12 columns");
}

// Tiles have five blocks of 128 columns where the part has numbers for four; the last would be
// lost.
TEST(NotBuilt, NamesPartialSumsThatBeginWithinABlock) {
  GemmMainloop product;
  product.M = 8;
  product.N = 576;
  const auto sums = [&](std::int64_t begin, std::int64_t cols) {
    const Operand partials{.tensor = {}, .cols = cols / 128, .rows = 8};
    return not_built({.name = "kva",
                      .mainloop = product,
                      .body = {Columns{1, 0, begin, cols},
                               TileReduce{reductions::sum_squares, Axis::rows, 1, partials}}});
  };
  EXPECT_EQ(sums(64, 512), "partial sums of columns that begin within a block");
  EXPECT_EQ(sums(0, 512), "");
  EXPECT_EQ(sums(64, 448), "");
}

// The pass that gathers wide heads' sums ahead of the epilogue has no column vectors.
TEST(NotBuilt, NamesWideHeadsOfMoreThanRows) {
  GemmMainloop product;
  product.M = 8;
  product.N = 256;
  const Operand bias{.tensor = {}, .cols = 256, .rows = 1};
  const Operand scale{.tensor = {}, .cols = 1, .rows = 8};
  const auto summed = [&](const Operand& by, Axis axis) {
    return not_built({.name = "q",
                      .mainloop = product,
                      .body = {LoadVector{1, by, axis}, Map{2, maps::mul, {0, 1}},
                               GroupReduce{3, reductions::sum_squares, 2, 128}}});
  };
  EXPECT_EQ(summed(scale, Axis::rows), "");
  EXPECT_EQ(summed(bias, Axis::cols),
            "a product whose epilogue sums over heads of 128 columns of more than the product and "
            "its rows");
}

}  // namespace
}  // namespace fuseline::cuda
