// Sums over the rows of each sequence: what they give, which programs are refused, and what shares
// a loop with them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/lower.h"
#include "model/operators/all_operators.h"
#include "model/primitives/primitives.h"
#include "model/reference.h"
#include "model/why_not.h"
#include "tests/model/primitive_support.h"

namespace fuseline {
namespace {

using testing::Contains;
using testing::HasSubstr;

// dy [B·T, N] (times z), summed by sequence.
struct Sums {
  Graph graph;
  Operand x, z, y;
  OpId square{}, sum{};

  explicit Sums(std::int64_t batch, std::int64_t tokens, std::int64_t cols) {
    const auto add = [&](const char* name, Role role, std::int64_t rows) {
      return graph.whole(
          graph.add_tensor({.name = name, .role = role, .rows = rows, .cols = cols}));
    };
    x = add("x", Role::input, batch * tokens);
    z = add("z", Role::activation, batch * tokens);
    y = add("y", Role::output, batch);
    square = graph.add_op({"square", operators::square, {x}, {z}, {}, "s"});
    sum =
        graph.add_op({"sum", operators::sequence_sum, {x, z}, {y}, Sequences{batch, tokens}, "s"});
  }
};

TEST(SequenceSums, AddTheRowsOfEachSequence) {
  const Sums s(2, 3, 2);
  const TensorValues out = run_reference(
      s.graph, {{"x", {1, 2, 3, 4, 5, 6, -1, 0, 2, 1, 0, 0}}});  // x·x² of rows 0..2 and 3..5
  EXPECT_EQ(out.at("y"), (std::vector<double>{1 + 27 + 125, 8 + 64 + 216, -1 + 8, 1}));
}

TEST(SequenceSums, TakeTheMapsOfTheirRowsIntoTheirLoop) {
  const Sums s(2, 3, 2);
  EXPECT_EQ(why_no_program(s.graph, {s.square, s.sum}, {}), "");
  const Program program = lower(s.graph, "sum", {s.square, s.sum});
  EXPECT_EQ(check_program(s.graph, program), std::vector<std::string>{});
  EXPECT_THAT(print_program(s.graph, program), HasSubstr("sum_sequences"));
}

TEST(SequenceSums, ShareNoLoopWithSumsOverOtherRowsNorWithTheirReaders) {
  Sums s(2, 3, 2);
  const Operand all = s.graph.whole(s.graph.add_tensor({.name = "all", .rows = 1, .cols = 2}));
  const OpId whole = s.graph.add_op({"whole", operators::column_sum, {s.x}, {all}, {}, "s"});
  EXPECT_THAT(why_no_program(s.graph, {s.sum, whole}, {}), HasSubstr("over different rows"));
  Sums one(2, 1, 2);  // one token each: the sums have as many rows as what they sum
  const Operand again =
      one.graph.whole(one.graph.add_tensor({.name = "again", .rows = 2, .cols = 2}));
  const OpId reader = one.graph.add_op({"reader", operators::silu, {one.y}, {again}, {}, "s"});
  EXPECT_THAT(why_no_program(one.graph, {one.sum, reader}, {}),
              HasSubstr("reader reads sums that sum has when its last row is done"));
}

TEST(SequenceSums, AreRefusedWhereTheyDoNotFit) {
  const Sums s(2, 3, 2);
  const Program right = lower(s.graph, "sum", {s.square, s.sum});
  const auto problems = [&](auto change) {
    Program bad = right;
    test::change<SumSequences>(bad.body.back(), change);
    return check_program(s.graph, bad);
  };
  EXPECT_THAT(problems([](SumSequences& p) { p.tokens = 2; }),
              Contains("sum: y has 2 rows, not one for every 2 of 6"));
  EXPECT_THAT(problems([](SumSequences& p) { p.tokens = 0; }),
              Contains("sum: y has 2 rows, not one for every 0 of 6"));
  EXPECT_THAT(problems([](SumSequences& p) { p.to.cols = 1; }),
              Contains(HasSubstr("sums = y is [2, 1], not [2, 2]")));
  EXPECT_THAT(problems([](SumSequences& p) { p.in = 99; }),
              Contains("sum: value 99 is used before it is defined"));
  Program in_rows = right;
  in_rows.mainloop = RowMainloop{6, 2};
  EXPECT_THAT(check_program(s.graph, in_rows), Contains(HasSubstr("need whole columns")));
}

}  // namespace
}  // namespace fuseline
