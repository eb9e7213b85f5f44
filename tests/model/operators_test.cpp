#include "model/operators/operator_table.h"

#include <gtest/gtest.h>
#include <filesystem>

#include <algorithm>
#include <cmath>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "base/error.h"
#include "model/blocks/block.h"
#include "model/operators/all_operators.h"
#include "tests/model/tiny_models.h"
#include "tests/support/graph_names.h"

namespace fuseline {
namespace {

using test::op;

// Query-key pairs counted one by one.
std::int64_t pairs_by_hand(const AttentionShape& a) {
  std::int64_t count = 0;
  for (std::int64_t t = 0; t < a.q_tokens; ++t) {
    const std::int64_t last = a.causal ? a.kv_tokens - a.q_tokens + t : a.kv_tokens - 1;
    for (std::int64_t s = 0; s <= last; ++s)
      if (a.window == 0 || s > last - a.window) ++count;
  }
  return count;
}

// Distinct elements touched, collected one by one.
Bytes bytes_by_hand(const Graph& g, const std::vector<Operand>& operands) {
  std::set<std::tuple<std::int32_t, std::int64_t, std::int64_t>> touched;
  for (const Operand& o : operands)
    for (std::int64_t r = 0; r < o.rows; ++r)
      for (std::int64_t c = 0; c < o.cols; ++c)
        touched.insert({o.tensor.index, r, o.col_begin + c});
  Bytes total;
  for (const auto& [tensor, row, col] : touched)
    total += Bytes(1 * size_of(g.tensor(TensorId{tensor}).dtype));
  return total;
}

TEST(OperatorTable, HasEveryFactOfEveryOperator) {
  std::set<std::string> names;
  for (const Operator* info : all_operators()) {
    const std::string name = info->name.value;
    EXPECT_EQ(find_operator(name), info);
    EXPECT_TRUE(names.insert(name).second) << name;
    EXPECT_GT(info->reads.size(), 0U) << name;
    for (const OperandSpec& spec : info->reads) EXPECT_NE(spec.name, nullptr) << name;
    EXPECT_NE(info->write.value.name, nullptr) << name;
    EXPECT_NE(info->flops.value, nullptr) << name;
    EXPECT_NE(info->sum_length.value, nullptr) << name;
    EXPECT_NE(info->reference.value, nullptr) << name;
    EXPECT_NE(info->lower.value, nullptr) << name;
    EXPECT_NE(info->extent.value, nullptr) << name;
    EXPECT_NE(info->framework.value, nullptr) << name;
    EXPECT_NE(std::string(info->formula), "") << name;
    // Facts that go together.
    EXPECT_NE(info->gradient.rule != nullptr, info->gradient.why_none != nullptr) << name;
    EXPECT_EQ(info->locality == Locality::contraction, info->mainloop != nullptr) << name;
    EXPECT_EQ(info->index_read >= 0, info->index_range != nullptr) << name;
    EXPECT_LT(info->index_read, static_cast<int>(info->reads.size())) << name;
    EXPECT_LT(info->part_read, static_cast<int>(info->reads.size())) << name;
    if (info->statistics > 0) {
      EXPECT_NE(info->also_writes.name, nullptr) << name;
    }
  }
  EXPECT_GE(names.size(), 63U);
  EXPECT_EQ(find_operator("no such operator"), nullptr);
}

// The name of an operator's file is its own: that is how the build finds it.
TEST(OperatorTable, HasOneFileForEachOperator) {
  namespace fs = std::filesystem;
  std::set<std::string> files;
  for (const auto& entry :
       fs::directory_iterator(fs::path(FUSELINE_SOURCE_DIR) / "model/operators"))
    if (entry.path().extension() == ".cpp") files.insert(entry.path().stem());
  files.erase("operator_table");
  std::set<std::string> names;
  for (const Operator* info : all_operators()) names.insert(info->name.value);
  EXPECT_EQ(files, names);
}

TEST(OperatorTable, TellsWhatATileNeeds) {
  EXPECT_EQ(operators::rms_norm.locality.value, Locality::full_row);
  EXPECT_EQ(operators::row_stats_partial.locality.value, Locality::tile_local);
  EXPECT_EQ(operators::swiglu.locality.value, Locality::pair_local);
  EXPECT_EQ(operators::row_scale.locality.value, Locality::tile_local);
  EXPECT_EQ(operators::gemm.locality.value, Locality::contraction);
}

TEST(VisiblePairs, AreHalfOfASquareForACausalPrompt) {
  AttentionShape a;
  a.q_tokens = a.kv_tokens = 2048;
  a.causal = true;
  EXPECT_EQ(visible_pairs(a), 2048LL * 2049 / 2);
}

TEST(VisiblePairs, EqualACountOfEachPair) {
  std::mt19937 random(3);
  for (int round = 0; round < 500; ++round) {
    AttentionShape a;
    a.q_tokens = test::pick(random, 1, 9);
    a.kv_tokens = a.q_tokens + test::pick(random, 0, 9);
    a.window = random() % 2 == 0 ? test::pick(random, 1, 20) : 0;
    a.causal = random() % 2 == 0;
    ASSERT_EQ(visible_pairs(a), pairs_by_hand(a))
        << a.q_tokens << " of " << a.kv_tokens << ", window " << a.window;
  }
}

TEST(Flops, OfALlama2Block) {
  // Four GEMMs of 2·2048·(4·4096² + 3·4096·11008), two attention GEMMs over half the pairs.
  const Graph g = build_block(test::llama2_7b(), test::forward(1, 2048));
  std::int64_t gemms = 0;
  for (const Op& o : g.ops())
    if (o.kind == operators::gemm) gemms += flops(g, o).value();
  EXPECT_EQ(gemms, 2LL * 2048 * (4LL * 4096 * 4096 + 3LL * 4096 * 11008));
  EXPECT_EQ(gemms, 828'928'688'128);
  EXPECT_EQ(flops(g, op(g, "scores")), Flops(2LL * 4096 * 2048 * 2049 / 2));
  EXPECT_EQ(flops(g, op(g, "context")), Flops(17'188'257'792));
  // The rest is below one part in a hundred of the whole.
  EXPECT_GT(flops(g).value(), gemms + 2 * 17'188'257'792);
  EXPECT_LT(flops(g).as_double(), 1.01 * static_cast<double>(gemms + 2 * 17'188'257'792));
}

TEST(Flops, OfSmallOperators) {
  const Graph g = build_block(test::tiny_llama(), test::forward(1, 3));
  EXPECT_EQ(flops(g, op(g, "norm1")), Flops(3 * (4 * 20 + 3)));
  EXPECT_EQ(flops(g, op(g, "rope_q")), Flops(3 * 24 * 3));
  EXPECT_EQ(flops(g, op(g, "softmax")), Flops(4 * 6 * 5));
  EXPECT_EQ(flops(g, op(g, "swiglu")), Flops(3 * 14 * 5));
  EXPECT_EQ(flops(g, op(g, "residual1")), Flops(3 * 20));
}

TEST(Bytes, OfOperatorsOfALlama2Block) {
  const Graph g = build_block(test::llama2_7b(), test::forward(1, 2048));
  const std::int64_t row = 2 * 4096;  // bytes of one row of width D
  EXPECT_EQ(bytes_read(g, op(g, "qkv")), Bytes(2048 * row + 3 * 4096 * row));
  EXPECT_EQ(bytes_written(g, op(g, "qkv")), Bytes(2048 * 3 * row));
  // RoPE of q reads a third of qkv and two tables of T × d.
  EXPECT_EQ(bytes_read(g, op(g, "rope_q")), Bytes(2048 * row + 2 * 2048 * 128 * 2));
  EXPECT_EQ(bytes_read(g, op(g, "residual1")), Bytes(2 * 2048 * row));
  // Scores of 32 heads in 2 bytes: 268 MB.
  EXPECT_EQ(bytes_written(g, op(g, "scores")), Bytes(32LL * 2048 * 2048 * 2));
}

TEST(Bytes, OfDecodeCountTheNewRowsAndTheWholeCache) {
  const Graph g = build_block(test::llama2_7b(), test::decode(4, 1, 2048));
  EXPECT_EQ(bytes_written(g, op(g, "append_k")), Bytes(4 * 8192));
  EXPECT_EQ(bytes_read(g, op(g, "append_v")), Bytes(4 * 8192));
  EXPECT_EQ(bytes_read(g, op(g, "scores")), Bytes(4 * 8192 + 4LL * 2048 * 8192));
}

TEST(Bytes, CountOverlappingSlicesOnce) {
  Graph g;
  const TensorId t = g.add_tensor({.name = "t", .rows = 3, .cols = 10});
  const std::vector<Operand> overlapping{g.columns(t, 0, 6), g.columns(t, 4, 6)};
  const std::vector<Operand> apart{g.columns(t, 0, 2), g.columns(t, 7, 3)};
  const std::vector<Operand> same{g.whole(t), g.whole(t)};
  EXPECT_EQ(distinct_bytes(g, overlapping), Bytes(60));
  EXPECT_EQ(distinct_bytes(g, apart), Bytes(30));
  EXPECT_EQ(distinct_bytes(g, same), Bytes(60));
}

TEST(Bytes, EqualACountOfEachElement) {
  std::mt19937 random(5);
  for (int round = 0; round < 200; ++round) {
    const Graph g = build_block(test::random_model(random), test::random_work(random));
    for (const Op& o : g.ops()) {
      ASSERT_EQ(bytes_read(g, o), bytes_by_hand(g, o.reads)) << o.name;
      ASSERT_EQ(bytes_written(g, o), bytes_by_hand(g, o.writes)) << o.name;
    }
  }
}

TEST(Bytes, OfRandomSlicesEqualACountOfEachElement) {
  std::mt19937 random(9);
  for (int round = 0; round < 200; ++round) {
    Graph g;
    const TensorId a = g.add_tensor({.name = "a", .rows = 4, .cols = 12});
    const TensorId b = g.add_tensor({.name = "b", .dtype = Dtype::fp32, .rows = 4, .cols = 12});
    std::vector<Operand> slices;
    for (int i = 0; i < 4; ++i) {
      const std::int64_t begin = test::pick(random, 0, 11);
      Operand o = g.columns(random() % 2 == 0 ? a : b, begin, test::pick(random, 1, 12 - begin));
      o.rows = test::pick(random, 1, 4);
      slices.push_back(o);
    }
    ASSERT_EQ(distinct_bytes(g, slices), bytes_by_hand(g, slices));
  }
}

TEST(Bytes, OfHalvesOfHeadsCountTheHalfRead) {
  // q [2, 8] of heads of 4: the negated half is [2, 4], the concatenation reads it and q's other
  // half.
  Graph g;
  const TensorId q = g.add_tensor({.name = "q", .rows = 2, .cols = 8});
  const TensorId half = g.add_tensor({.name = "half", .rows = 2, .cols = 4});
  const TensorId turned = g.add_tensor({.name = "turned", .rows = 2, .cols = 8});
  const Halves heads{.head_width = 4};
  const OpId negate =
      g.add_op({"negate", operators::negate_half, {g.whole(q)}, {g.whole(half)}, heads, ""});
  const OpId concat = g.add_op({"concat",
                                operators::concat_halves,
                                {g.whole(half), g.whole(q)},
                                {g.whole(turned)},
                                heads,
                                ""});
  EXPECT_EQ(bytes_read(g, g.op(negate)), Bytes(2 * 4 * 2));
  EXPECT_EQ(bytes_read(g, g.op(concat)), Bytes(2 * 8 * 2));
  EXPECT_EQ(bytes_written(g, g.op(concat)), Bytes(2 * 8 * 2));
}

TEST(CompulsoryBytes, OfAForwardBlockAreInputsWeightsTablesAndOutput) {
  const Graph g = build_block(test::llama2_7b(), test::forward(1, 2048));
  const CompulsoryBytes c = compulsory_bytes(g);
  EXPECT_EQ(c.read, Bytes(404'766'720 + 2048 * 8192 + 2 * 2048 * 128 * 2));
  EXPECT_EQ(c.written, Bytes(2048 * 8192));
}

TEST(CompulsoryBytes, OfDecodeLeaveOutTheRowsJustAppended) {
  const Graph g = build_block(test::llama2_7b(), test::decode(1, 1, 2048));
  const CompulsoryBytes c = compulsory_bytes(g);
  EXPECT_EQ(c.read, Bytes(404'766'720 + 8192 + 2 * 128 * 2 + 2 * 2047 * 8192));
  EXPECT_EQ(c.written, Bytes(8192 + 2 * 8192));
}

TEST(CompulsoryBytes, NeverExceedTheSumOverOperators) {
  std::mt19937 random(13);
  for (int round = 0; round < 200; ++round) {
    const Graph g = build_block(test::random_model(random), test::random_work(random));
    Bytes read;
    Bytes written;
    for (const Op& o : g.ops()) {
      read += bytes_read(g, o);
      written += bytes_written(g, o);
    }
    const CompulsoryBytes c = compulsory_bytes(g);
    ASSERT_LT(c.read, read);
    ASSERT_LT(c.written, written);
    ASSERT_GT(c.read, Bytes(0));
  }
}

TEST(Tolerance, GrowsWithTheRootOfTheContractionAndShrinksWithTheType) {
  Workload full = test::forward(1, 4);
  full.dtype = Dtype::fp32;
  const Graph g16 = build_block(test::llama2_7b(), test::forward(1, 4));
  const Graph g32 = build_block(test::llama2_7b(), full);
  const double ulp = std::ldexp(1.0, -24);
  EXPECT_DOUBLE_EQ(tolerance(g32, op(g32, "qkv")), ulp * (1 + 2 * 64 + 8));
  EXPECT_DOUBLE_EQ(tolerance(g16, op(g16, "qkv")), std::ldexp(1.0, -8) + ulp * (2 * 64 + 8));
  EXPECT_LT(tolerance(g32, op(g32, "residual1")), tolerance(g32, op(g32, "qkv")));
  EXPECT_LT(tolerance(g32, op(g32, "qkv")), tolerance(g32, op(g32, "down")));
}

TEST(CheckOperands, NamesTheOperandOfTheWrongShape) {
  Graph g;
  const TensorId x = g.add_tensor({.name = "x", .rows = 4, .cols = 8});
  const TensorId w = g.add_tensor({.name = "w", .rows = 6, .cols = 7});
  const TensorId y = g.add_tensor({.name = "y", .rows = 4, .cols = 6});
  const OpId bad =
      g.add_op({"bad", operators::gemm, {g.whole(x), g.whole(w)}, {g.whole(y)}, {}, ""});
  const std::vector<std::string> problems = check_operands(g, g.op(bad));
  ASSERT_EQ(problems.size(), 1U);
  EXPECT_EQ(problems[0], "bad: operand w is [6, 7], not [N, K]");
}

TEST(CheckOperands, CountsOperands) {
  Graph g;
  const TensorId x = g.add_tensor({.name = "x", .rows = 4, .cols = 8});
  const TensorId y = g.add_tensor({.name = "y", .rows = 4, .cols = 8});
  const OpId few = g.add_op({"few", operators::residual_add, {g.whole(x)}, {g.whole(y)}, {}, ""});
  const OpId many =
      g.add_op({"many", operators::silu, {g.whole(x), g.whole(x)}, {g.whole(y)}, {}, ""});
  const OpId odd =
      g.add_op({"odd", operators::swiglu, {g.columns(x, 0, 7)}, {g.columns(y, 0, 3)}, {}, ""});
  EXPECT_EQ(check_operands(g, g.op(few)), std::vector<std::string>{"few: operand z is missing"});
  EXPECT_EQ(check_operands(g, g.op(many)).size(), 1U);
  EXPECT_EQ(check_operands(g, g.op(odd)).size(), 1U);
}

}  // namespace
}  // namespace fuseline
