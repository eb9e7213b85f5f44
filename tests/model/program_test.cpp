#include "model/program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/primitives/functions.h"
#include "tests/model/plan_support.h"

namespace fuseline {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// y[6, 300] = x[6, 10] w[300, 10]^T with what an epilogue may want beside it.
class ProgramCheck : public ::testing::Test {
 protected:
  Operand tensor(const std::string& name, std::int64_t rows, std::int64_t cols,
                 Dtype dtype = Dtype::bf16) {
    return graph.whole(
        graph.add_tensor({.name = name, .dtype = dtype, .rows = rows, .cols = cols}));
  }

  Program gemm(bool interleaved = false) {
    return {.name = "k",
            .mainloop = GemmMainloop{
                .a = x, .b = w, .M = 6, .N = 300, .K = 10, .interleaved = interleaved}};
  }
  Program rows() { return {.name = "k", .mainloop = RowMainloop{6, 300}}; }
  Program tiles() { return {.name = "k", .mainloop = StreamMainloop{6, 300}}; }

  // The body before a store of value 0.
  std::vector<std::string> problems(Program p, std::vector<Primitive> body) {
    p.body = std::move(body);
    return check_program(graph, p);
  }
  std::vector<std::string> legal_store(Program p, std::vector<Primitive> body) {
    body.emplace_back(StoreTile{0, y});
    return problems(std::move(p), std::move(body));
  }

  Graph graph;
  Operand x = tensor("x", 6, 10);
  Operand w = tensor("w", 300, 10);
  Operand y = tensor("y", 6, 300);
  Operand half = tensor("half", 6, 150);
  Operand r = tensor("r", 6, 1);
  Operand b = tensor("b", 1, 300);
  Operand cos = tensor("cos", 3, 60);
  Operand sin = tensor("sin", 3, 60);
  Operand partial = tensor("partial", 6, 3, Dtype::fp32);
};

TEST_F(ProgramCheck, AcceptsAGemmThatStoresItsTile) {
  EXPECT_THAT(legal_store(gemm(), {}), IsEmpty());
}

TEST_F(ProgramCheck, AcceptsEveryPrimitiveOfAFusedEpilogue) {
  const std::vector<Primitive> body{LoadVector{1, r, Axis::rows},
                                    Map{2, maps::mul, {0, 1}},
                                    LoadVector{3, b, Axis::cols},
                                    Map{4, maps::add, {2, 3}},
                                    LoadTable{5, cos},
                                    LoadTable{6, sin},
                                    PairMap{{7}, pairs::rope, {4, 5, 6}},
                                    TileReduce{reductions::sum_squares, Axis::rows, 7, partial},
                                    PairMap{{8}, pairs::swiglu, {7}},
                                    StoreTile{8, half}};
  EXPECT_THAT(problems(gemm(true), body), IsEmpty());
}

TEST_F(ProgramCheck, RefusesMainloopOperandsOfOtherShapes) {
  Program p = gemm();
  std::get<GemmMainloop>(p.mainloop).K = 11;
  EXPECT_THAT(legal_store(p, {}), Contains(HasSubstr("operand a = x is [6, 10], not [6, 11]")));
}

TEST_F(ProgramCheck, KnowsTransposedOperandsOfTheBackwardPass) {
  Program p = gemm();
  // dW[300, 10] = y^T x: both operands lie [K, .] with K = 6.
  p.mainloop =
      GemmMainloop{.a = y, .b = x, .M = 300, .N = 10, .K = 6, .a_is_km = true, .b_is_kn = true};
  EXPECT_THAT(problems(p, {StoreTile{0, w}}), IsEmpty());
  std::get<GemmMainloop>(p.mainloop).b_is_kn = false;
  EXPECT_THAT(problems(p, {StoreTile{0, w}}), Contains(HasSubstr("operand b = x")));
}

TEST_F(ProgramCheck, RefusesATileOfAnotherShape) {
  EXPECT_THAT(legal_store(gemm(), {LoadTile{1, x}, Map{2, maps::add, {0, 1}}}),
              Contains(HasSubstr("tile x is 10 columns wide, the index space 300")));
}

TEST_F(ProgramCheck, RefusesVectorsOfAnotherLength) {
  EXPECT_THAT(legal_store(gemm(), {LoadVector{1, b, Axis::rows}}),
              Contains(HasSubstr("vector along rows b is [1, 300], not [6, 1]")));
  const Operand narrow = graph.columns(b.tensor, 0, 299);
  EXPECT_THAT(legal_store(gemm(), {LoadVector{1, narrow, Axis::cols}, Map{2, maps::add, {0, 1}}}),
              Contains(HasSubstr("widths 300 and 299 do not match")));
}

TEST_F(ProgramCheck, RefusesATableThatDoesNotRepeatOverTheRows) {
  const Operand table = tensor("table", 4, 60);
  EXPECT_THAT(legal_store(gemm(), {LoadTable{1, table}}),
              Contains(HasSubstr("4 rows does not divide 6 rows")));
}

TEST_F(ProgramCheck, RefusesARowReductionWhereTilesHoldPartOfARow) {
  const std::vector<Primitive> body{LoadTile{1, y}, RowReduce{2, reductions::sum, 1},
                                    StoreVector{2, r, Axis::rows}};
  EXPECT_THAT(problems(tiles(), body), Contains(HasSubstr("needs a full row")));
  EXPECT_THAT(problems(rows(), body), IsEmpty());
}

TEST_F(ProgramCheck, RefusesPairsThatAreNotAdjacentInAGemmTile) {
  std::vector<Primitive> body{LoadTable{1, cos}, LoadTable{2, sin},
                              PairMap{{3}, pairs::rope, {0, 1, 2}, 30}, StoreTile{3, y}};
  EXPECT_THAT(problems(gemm(true), body), Contains(HasSubstr("30 columns apart, not adjacent")));
  body[2] = PairMap{{3}, pairs::rope, {0, 1, 2}, 1};
  EXPECT_THAT(problems(gemm(false), body), Contains(HasSubstr("not interleaved")));
  EXPECT_THAT(problems(gemm(true), body), IsEmpty());
}

TEST_F(ProgramCheck, AllowsDistantPairsWhereTheKernelLoadsBothItself) {
  EXPECT_THAT(problems(tiles(), {LoadTile{1, y}, LoadTable{2, cos}, LoadTable{3, sin},
                                 PairMap{{4}, pairs::rope, {1, 2, 3}, 30}, StoreTile{4, half}}),
              Contains(HasSubstr("half")));  // the rotation keeps the width: half is too narrow
  const Operand other = tensor("other", 6, 300);
  EXPECT_THAT(problems(tiles(), {LoadTile{1, y}, LoadTable{2, cos}, LoadTable{3, sin},
                                 PairMap{{4}, pairs::rope, {1, 2, 3}, 30}, StoreTile{4, other}}),
              IsEmpty());
}

TEST_F(ProgramCheck, RefusesPairsOfOddWidth) {
  const Operand odd_w = tensor("odd_w", 7, 10);
  const Operand odd = tensor("odd", 6, 3);
  Program p = gemm(true);
  p.mainloop = GemmMainloop{.a = x, .b = odd_w, .M = 6, .N = 7, .K = 10, .interleaved = true};
  EXPECT_THAT(problems(p, {PairMap{{1}, pairs::swiglu, {0}}, StoreTile{1, odd}}),
              Contains(HasSubstr("width is odd")));
}

TEST_F(ProgramCheck, ChecksTheTwoWidthsOfSwigluBackward) {
  const Operand pairs = tensor("pairs", 6, 600);
  const Operand dpairs = tensor("dpairs", 6, 600);
  Program p = tiles();
  p.mainloop = StreamMainloop{6, 600};
  EXPECT_THAT(problems(p, {LoadTile{1, pairs}, LoadTile{2, y},
                           PairMap{{3, 4}, pairs::swiglu_backward, {1, 2}}, StoreTile{3, dpairs}}),
              IsEmpty());
  EXPECT_THAT(problems(p, {LoadTile{1, pairs}, PairMap{{3, 4}, pairs::swiglu_backward, {1, 1}},
                           StoreTile{3, dpairs}}),
              Contains(HasSubstr("half as wide")));
}

TEST_F(ProgramCheck, RefusesPartialsOfAnotherShapeOrType) {
  const Operand wide = tensor("wide", 6, 4, Dtype::fp32);
  EXPECT_THAT(legal_store(gemm(), {TileReduce{reductions::sum, Axis::rows, 0, wide}}),
              Contains(HasSubstr("partials wide is [6, 4], not [6, 3]")));
  const Operand rounded = tensor("rounded", 6, 3);
  EXPECT_THAT(legal_store(gemm(), {TileReduce{reductions::sum, Axis::rows, 0, rounded}}),
              Contains(HasSubstr("not fp32")));
}

TEST_F(ProgramCheck, AcceptsColumnPartialsOfTheBackwardPass) {
  const Operand dgamma = tensor("dgamma", 300, 1, Dtype::fp32);
  EXPECT_THAT(legal_store(gemm(), {TileReduce{reductions::sum, Axis::cols, 0, dgamma}}), IsEmpty());
}

TEST_F(ProgramCheck, TwoMomentsNeedTwoColumnsATile) {
  const Operand moments = tensor("moments", 6, 6, Dtype::fp32);
  EXPECT_THAT(
      legal_store(gemm(), {TileReduce{reductions::sum_and_squares, Axis::rows, 0, moments}}),
      IsEmpty());
  EXPECT_THAT(
      legal_store(gemm(), {TileReduce{reductions::sum_and_squares, Axis::rows, 0, partial}}),
      Contains(HasSubstr("not [6, 6]")));
}

TEST_F(ProgramCheck, RefusesUseBeforeDefinitionAndSecondDefinition) {
  EXPECT_THAT(legal_store(gemm(), {Map{2, maps::square, {1}}}),
              Contains(HasSubstr("value 1 is used before it is defined")));
  EXPECT_THAT(legal_store(gemm(), {Map{0, maps::square, {0}}}),
              Contains(HasSubstr("value 0 is defined twice")));
  EXPECT_THAT(problems(tiles(), {StoreTile{0, y}}),
              Contains(HasSubstr("value 0 is used before it is defined")));
}

TEST_F(ProgramCheck, RefusesMapsOfTheWrongArity) {
  EXPECT_THAT(legal_store(gemm(), {Map{1, maps::add, {0}}}),
              Contains(HasSubstr("a map of 1 values, not 2")));
}

TEST_F(ProgramCheck, RefusesStoringTwiceOrNothing) {
  EXPECT_THAT(problems(gemm(), {StoreTile{0, y}, StoreTile{0, y}}),
              Contains(HasSubstr("y is stored twice")));
  EXPECT_THAT(problems(gemm(), {}), Contains(HasSubstr("stores nothing")));
}

TEST_F(ProgramCheck, RefusesColumnsBeyondTheTile) {
  EXPECT_THAT(problems(gemm(), {Columns{1, 0, 200, 150}, StoreTile{1, half}}),
              Contains(HasSubstr("columns 200 to 350")));
  EXPECT_THAT(problems(gemm(), {Columns{1, 0, 150, 150}, StoreTile{1, half}}), IsEmpty());
}

TEST_F(ProgramCheck, AllowsAPrologueOnlyBeforeAttention) {
  Program p = gemm();
  p.prologue = {LoadTile{1, y}};
  EXPECT_THAT(legal_store(p, {}), Contains(HasSubstr("only an attention mainloop")));
}

TEST_F(ProgramCheck, CountsLoadsAndStoresInOrder) {
  Program p = gemm();
  p.body = {LoadVector{1, r, Axis::rows}, LoadHalves{2, y, 60, true}, StoreTile{0, half}};
  const std::vector<Operand> in = loads(p);
  ASSERT_EQ(in.size(), 4u);
  EXPECT_EQ(in[0].tensor, x.tensor);
  EXPECT_EQ(in[1].tensor, w.tensor);
  EXPECT_EQ(in[2].tensor, r.tensor);
  EXPECT_EQ(in[3].cols, 150);  // half of y's columns move
  EXPECT_EQ(stores(p).size(), 1u);
}

TEST(ProgramText, ReadsAsCode) {
  const Plan plan = make_plan("coda", test::llama2_7b(), test::forward(1, 2048));
  EXPECT_EQ(
      print_program(plan.graph, test::find_kernel(plan, "gate_up")->phases[0]),
      "gate_up:  y = h[M,D] · w_gate_up_folded[2F,D]ᵀ          // mainloop, fp32 accumulate, "
      "pairs\n"
      "  r = load_rows r_norm2[M,1]                            // one per row\n"
      "  y1 = y * r\n"
      "  o = swiglu(y1 pairs)                                  // adjacent columns (gate, up)\n"
      "  store act[M,F] = o\n");
}

TEST(ProgramText, ShowsTheOrderOfSubtractionAndAccumulation) {
  Graph graph;
  const Operand a = graph.whole(graph.add_tensor({.name = "a", .rows = 2, .cols = 3}));
  const Operand b = graph.whole(graph.add_tensor({.name = "b", .rows = 2, .cols = 3}));
  const Program p{
      .name = "k",
      .mainloop = StreamMainloop{2, 3},
      .body = {LoadTile{1, a}, LoadTile{2, b}, Map{3, maps::sub, {1, 2}}, StoreTile{3, a, true}}};
  EXPECT_EQ(print_program(graph, p),
            "k:  for each tile of [2, 3]\n  v1 = load a[2,3]\n  v2 = load b[2,3]\n  v3 = v1 - v2\n"
            "  store a[2,3] += v3\n");
}

TEST_F(ProgramCheck, SumsColumnsOnlyWhereTilesHoldThemWhole) {
  const Operand sums = tensor("sums", 1, 300);
  const std::vector<Primitive> body{LoadTile{1, y}, ColumnReduce{2, reductions::sum, 1},
                                    StoreVector{2, sums, Axis::cols}};
  EXPECT_THAT(problems(tiles(), body), IsEmpty());
  EXPECT_THAT(problems(rows(), body), Contains(HasSubstr("needs whole columns")));
  EXPECT_THAT(problems(gemm(), body), Contains(HasSubstr("needs whole columns")));
}

TEST_F(ProgramCheck, PartialsOfTwoValuesAreTwoColumnsATile) {
  const Operand two = tensor("two", 6, 6, Dtype::fp32);
  const TileReduce both{reductions::sum, Axis::rows, 1, two, 2};
  const std::vector<Primitive> loaded{LoadTile{1, y}, Map{2, maps::square, {1}}};
  const auto with = [&](const TileReduce& reduce) {
    std::vector<Primitive> body = loaded;
    body.emplace_back(reduce);
    return problems(tiles(), body);
  };
  EXPECT_THAT(with(both), IsEmpty());
  TileReduce narrow = both;
  narrow.partial = partial;
  EXPECT_THAT(with(narrow), Contains(HasSubstr("partials partial is [6, 3], not [6, 6]")));
  TileReduce squares = both;
  squares.fn = reductions::sum_squares;
  EXPECT_THAT(with(squares), Contains(HasSubstr("are sums")));
}

TEST_F(ProgramCheck, RowsOfHeadsLieSideBySide) {
  // 6 tokens of 3 heads of 100 columns: 18 rows of the index space.
  const Operand delta = tensor("delta", 18, 1, Dtype::fp32);
  const std::vector<Primitive> body{LoadTile{1, y}, RowReduce{2, reductions::sum, 1},
                                    StoreVector{2, delta, Axis::rows}};
  const Program heads{.name = "k", .mainloop = RowMainloop{18, 100, 3, 6}};
  EXPECT_THAT(problems(heads, body), IsEmpty());
  const Program wrong{.name = "k", .mainloop = RowMainloop{18, 100, 3, 5}};
  EXPECT_THAT(problems(wrong, body), Contains(HasSubstr("are no 3 heads of 5 tokens")));
}

TEST_F(ProgramCheck, SumsHeadsInWholeRowsOnly) {
  const Operand summed = tensor("summed", 6, 150);
  const std::vector<Primitive> body{LoadTile{1, y}, HeadSum{2, 1, 2, 50}, StoreTile{2, summed}};
  EXPECT_THAT(problems(rows(), body), IsEmpty());
  EXPECT_THAT(problems(tiles(), body), Contains(HasSubstr("different tiles")));
  const std::vector<Primitive> odd{LoadTile{1, y}, HeadSum{2, 1, 2, 70}, StoreTile{2, summed}};
  EXPECT_THAT(problems(rows(), odd), Contains(HasSubstr("2 heads of 70 columns in 300")));
}

TEST_F(ProgramCheck, AVectorIsRepeatedIntoATile) {
  const std::vector<Primitive> body{LoadVector{1, r, Axis::rows}, StoreTile{1, y}};
  EXPECT_THAT(problems(tiles(), body), IsEmpty());
  const std::vector<Primitive> wrong{LoadVector{1, r, Axis::rows}, StoreTile{1, half}};
  EXPECT_THAT(problems(tiles(), wrong), Contains(HasSubstr("tile half is [6, 150]")));
}

TEST_F(ProgramCheck, OnlineLogSumExpLeavesThreeNumbersATile) {
  const Operand targets = tensor("targets", 6, 1, Dtype::fp32);
  const Operand nine = tensor("nine", 6, 9, Dtype::fp32);
  EXPECT_THAT(legal_store(gemm(), {OnlineLogSumExp{0, targets, nine}}), IsEmpty());
  EXPECT_THAT(problems(gemm(), {OnlineLogSumExp{0, targets, partial}}),
              Contains(HasSubstr("partials partial is [6, 3], not [6, 9]")));
  const Operand half_precision = tensor("rounded", 6, 9);
  EXPECT_THAT(problems(gemm(), {OnlineLogSumExp{0, targets, half_precision}}),
              Contains(HasSubstr("partials rounded are not fp32")));
  EXPECT_THAT(problems(gemm(), {OnlineLogSumExp{0, b, nine}}), Contains(HasSubstr("targets b")));
}

TEST_F(ProgramCheck, OneHotHasAColumnForEveryRow) {
  const Operand targets = tensor("targets", 6, 1, Dtype::fp32);
  EXPECT_THAT(problems(tiles(), {OneHot{1, targets, 300}, StoreTile{1, y}}), IsEmpty());
  EXPECT_THAT(problems(tiles(), {OneHot{1, b, 300}, StoreTile{1, y}}),
              Contains(HasSubstr("column ids b is [1, 300], not [6, 1]")));
  EXPECT_THAT(problems(tiles(), {LoadTile{1, y}, OneHot{2, targets, 200}, Map{3, maps::sub, {1, 2}},
                                 StoreTile{3, y}}),
              Contains(HasSubstr("widths 300 and 200")));
}

TEST_F(ProgramCheck, RowsAreSummedByNumberInAStreamOverTheTable) {
  const Operand rows_of_tokens = tensor("dy", 8, 300);
  const Operand ids = tensor("ids", 8, 1, Dtype::fp32);
  const std::vector<Primitive> by_token{GatherSum{1, ids, rows_of_tokens}, StoreTile{1, y}};
  EXPECT_THAT(problems(tiles(), by_token), IsEmpty());
  EXPECT_THAT(problems(gemm(), by_token), Contains(HasSubstr("needs a stream")));
  EXPECT_THAT(problems(tiles(), {GatherSum{1, r, rows_of_tokens}, StoreTile{1, y}}),
              Contains(HasSubstr("row ids r is [6, 1], not [8, 1]")));
  EXPECT_THAT(problems(tiles(), {GatherSum{1, std::nullopt, rows_of_tokens, 4}, StoreTile{1, y}}),
              IsEmpty());
  EXPECT_THAT(problems(tiles(), {GatherSum{1, std::nullopt, rows_of_tokens, 3}, StoreTile{1, y}}),
              Contains(HasSubstr("in periods of 3")));
  const Program p{.name = "k", .mainloop = StreamMainloop{6, 300}, .body = by_token};
  EXPECT_EQ(print_program(graph, p),
            "k:  for each tile of [6, 300]\n"
            "  v1 = gather_sum dy[8,300]                             // rows where ids[8,1] is the "
            "row\n"
            "  store y[6,300] = v1\n");
}

TEST_F(ProgramCheck, AttentionsGradientWantsItsRowVectors) {
  AttentionShape shape;
  shape.batch = 1;
  shape.heads = 2;
  shape.kv_heads = 1;
  shape.head_width = 150;
  shape.q_tokens = shape.kv_tokens = 6;
  const Operand k = tensor("k", 6, 150);
  const Operand v = tensor("v", 6, 150);
  const Operand dy = tensor("dy", 6, 300);
  const Operand per_row = tensor("per_row", 12, 1, Dtype::fp32);
  AttentionMainloop m{y, k, v, shape};
  m.gradient = AttentionGradient{dy, per_row, per_row, 1, 2};
  const Program p{.name = "k", .mainloop = m};
  const Operand dq = tensor("dq", 6, 300);
  const Operand dk = tensor("dk", 6, 150);
  const Operand dv = tensor("dv", 6, 150);
  const std::vector<Primitive> body{StoreTile{0, dq}, StoreTile{1, dk}, StoreTile{2, dv}};
  EXPECT_THAT(problems(p, body), IsEmpty());
  m.gradient->delta = r;
  EXPECT_THAT(problems({.name = "k", .mainloop = m}, body),
              Contains(HasSubstr("delta r is [6, 1], not [12, 1]")));
  m.gradient->per_query_head = true;
  EXPECT_THAT(problems({.name = "k", .mainloop = m}, body), Contains(HasSubstr("dk is [6, 150]")));
}

TEST_F(ProgramCheck, RefusesMoreKeysThanFp32HasPlacesFor) {
  const auto sorted = [&](std::int64_t rows) {
    const std::string size = std::to_string(rows);
    const Operand keys = tensor(("keys" + size).c_str(), rows, 2, Dtype::fp32);
    const Operand order = tensor(("order" + size).c_str(), 2 * rows, 1, Dtype::fp32);
    return problems({.name = "k", .mainloop = StreamMainloop{2 * rows, 1}},
                    {SortPlaces{.order = 0, .keys = keys}, StoreVector{0, order, Axis::rows}});
  };
  EXPECT_THAT(sorted(SortPlaces::kMostKeys / 2), IsEmpty());
  EXPECT_THAT(sorted(SortPlaces::kMostKeys / 2 + 1),
              Contains(HasSubstr("16777218 keys of keys8388609: places are stored as fp32")));
}

}  // namespace
}  // namespace fuseline
