// Primitives describe themselves: one from outside is known to every pass of this layer.
#include "model/primitives/primitive.h"
#include "model/primitives/functions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/primitives/values.h"
#include "tests/extension/clip.h"

namespace fuseline {
namespace {

using extension::Clip;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct Nameless {
  Value out;
};
struct NamedOnly {
  static constexpr const char* name = "named_only";
  Value out;
};
static_assert(DescribesItself<Clip>);
static_assert(!DescribesItself<Nameless>);
static_assert(!DescribesItself<NamedOnly>, "a primitive without its facts does not compile");

class OutsidePrimitive : public ::testing::Test {
 protected:
  Operand tensor(const std::string& name, std::int64_t rows, std::int64_t cols) {
    return graph.whole(graph.add_tensor({.name = name, .rows = rows, .cols = cols}));
  }
  Program clipped(const Operand& by) {
    return {.name = "k",
            .mainloop = StreamMainloop{6, 300},
            .body = {LoadTile{1, x}, Clip{2, 1, by}, StoreTile{2, y}}};
  }
  Graph graph;
  Operand x = tensor("x", 6, 300);
  Operand y = tensor("y", 6, 300);
  Operand limits = tensor("limits", 6, 1);
  Operand few = tensor("few", 5, 1);
};

TEST_F(OutsidePrimitive, IsCheckedByItsOwnRule) {
  EXPECT_THAT(check_program(graph, clipped(limits)), IsEmpty());
  EXPECT_THAT(check_program(graph, clipped(few)),
              ElementsAre("k: limits few is [5, 1], not [6, 1]"));
  Program vector = clipped(limits);
  vector.body[0] = LoadVector{1, limits, Axis::rows};
  EXPECT_THAT(check_program(graph, vector), Contains(HasSubstr("only tiles are clipped")));
}

TEST_F(OutsidePrimitive, IsPrintedAndItsOperandsAreLoads) {
  EXPECT_THAT(print_program(graph, clipped(limits)), HasSubstr("v2 = clip(v1)"));
  EXPECT_THAT(loads(clipped(limits)), ElementsAre(x, limits));
  EXPECT_THAT(stores(clipped(limits)), ElementsAre(y));
}

TEST_F(OutsidePrimitive, ItsValuesAreAnalysed) {
  const Program program = clipped(limits);
  const ValueAnalysis values = analyse(program);
  EXPECT_EQ(values.shape(2), (ValueShape{Form::tile, 300}));
  EXPECT_EQ(values.life(2).made, 1);
  EXPECT_EQ(values.life(2).last_use, 2);
  EXPECT_EQ(values.columns(2, {128, 256}).begin, 128);
}

TEST(Primitives, EqualWhereTheirFieldsAre) {
  const Operand o{.tensor = {}, .cols = 4, .rows = 2};
  const Primitive load = LoadTile{1, o};
  const Primitive copy = load;
  EXPECT_EQ(copy, load);
  EXPECT_EQ(load, Primitive(LoadTile{1, o}));
  EXPECT_NE(load, Primitive(LoadTile{2, o}));
  EXPECT_NE(load, Primitive(LoadTable{1, o})) << "the same fields in another struct";
}

TEST(Primitives, AreFoundByTheirStruct) {
  const Primitive sum = HeadSum{2, 1, 4, 64};
  ASSERT_NE(sum.as<HeadSum>(), nullptr);
  EXPECT_EQ(sum.as<HeadSum>()->count, 4);
  EXPECT_FALSE(sum.is<Columns>());
  EXPECT_EQ(sum.name(), "head_sum");
}

TEST(Access, HalvesMoveHalfOfTheColumnsAndDifferByHalf) {
  const Operand from{.tensor = {}, .col_begin = 8, .cols = 16, .rows = 3};
  const Access lower = LoadHalves{1, from, 4, false}.accesses().front();
  const Access upper = LoadHalves{1, from, 4, true}.accesses().front();
  EXPECT_EQ(lower.elements(), 24);
  EXPECT_EQ(lower.moved().col_begin, 8);
  EXPECT_EQ(upper.moved().col_begin, 16);
  EXPECT_EQ(upper.moved().cols, 8);
}

TEST(Access, GatheredRowsAreThoseThatAreNamed) {
  const Operand ids{.tensor = {}, .cols = 1, .rows = 5};
  const Operand table{.tensor = {}, .cols = 16, .rows = 1000};
  EXPECT_EQ((Gather{1, ids, table}.accesses().back().elements()), 5 * 16);
}

TEST(ValueAnalysisTest, PlacesColumnsThroughPairsAndSlices) {
  // y[., 512] -> columns 128 to 384 of it -> pairs of those become 128 columns.
  const std::vector<Primitive> body{Columns{1, 0, 128, 256}, PairMap{{2}, pairs::swiglu, {1}}};
  const ValueAnalysis values(body, 0, 512, false);
  EXPECT_EQ(values.width(2), 128);
  const ColumnRange slice = values.columns(1, {256, 512});
  EXPECT_EQ(slice.begin, 128);
  EXPECT_EQ(slice.end, 256);
  const ColumnRange made = values.columns(2, {256, 512});
  EXPECT_EQ(made.begin, 64);
  EXPECT_EQ(made.end, 128);
  EXPECT_TRUE(values.columns(2, {0, 128}).empty());
  EXPECT_EQ(values.span(2).begin, 128);
  EXPECT_EQ(values.span(2).end, 384);
  EXPECT_EQ(values.numbers(1, 2, 16), 32);
  EXPECT_EQ(values.numbers(2, 2, 16), 16) << "of each pair one number";
}

}  // namespace
}  // namespace fuseline
