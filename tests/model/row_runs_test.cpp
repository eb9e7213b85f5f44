// Which rows of a tensor an operand has: compared with sets of rows written down one by one.
#include <gtest/gtest.h>

#include <random>
#include <set>

#include "base/error.h"
#include "model/graph.h"
#include "model/operators/all_operators.h"
#include "model/operators/operator_table.h"
#include "tests/model/tiny_models.h"

namespace fuseline {
namespace {

using test::pick;

struct RunCase {
  Graph graph;
  TensorId id;

  explicit RunCase(std::int64_t rows = 60, std::int64_t cols = 10)
      : id(graph.add_tensor({.name = "t", .rows = rows, .cols = cols})) {}

  // Rows behind each other, or of each of several parts; some of the columns.
  Operand random(std::mt19937& numbers) const {
    Operand o;
    if (numbers() % 2 == 0) {
      const std::int64_t begin = pick(numbers, 0, 50);
      o = graph.rows(id, begin, pick(numbers, 1, 60 - begin));
    } else {
      const std::int64_t parts = std::int64_t{1} << pick(numbers, 0, 2);
      const std::int64_t part = 60 / parts;
      const std::int64_t begin = pick(numbers, 0, part - 1);
      o = graph.rows_of_parts(id, parts, begin, pick(numbers, 1, part - begin));
    }
    o.col_begin = pick(numbers, 0, 8);
    o.cols = pick(numbers, 1, 10 - o.col_begin);
    return o;
  }
};

std::set<std::pair<std::int64_t, std::int64_t>> elements(const Operand& o) {
  std::set<std::pair<std::int64_t, std::int64_t>> all;
  for (std::int64_t r = 0; r < o.rows; ++r)
    for (std::int64_t c = 0; c < o.cols; ++c) all.emplace(o.tensor_row(r), o.col_begin + c);
  return all;
}

TEST(RowRuns, OverlapAndCoverAsTheirElementsDo) {
  const RunCase t;
  std::mt19937 random(7);
  int overlaps = 0;
  int covered = 0;
  for (int i = 0; i < 4000; ++i) {
    const Operand a = t.random(random);
    const Operand b = t.random(random);
    const auto in_a = elements(a);
    const auto in_b = elements(b);
    bool shared = false;
    bool all = true;
    for (const auto& e : in_b) {
      shared = shared || in_a.contains(e);
      all = all && in_a.contains(e);
    }
    ASSERT_EQ(overlap(a, b), shared) << i;
    ASSERT_EQ(overlap(b, a), shared) << i;
    // An operand of several runs is only said to cover what lies within single runs of it.
    if (covers(a, b)) {
      ASSERT_TRUE(all) << i;
    }
    overlaps += shared ? 1 : 0;
    covered += covers(a, b) ? 1 : 0;
    const std::vector<Operand> both{a, b};
    auto together = in_a;
    together.insert(in_b.begin(), in_b.end());
    ASSERT_EQ(distinct_bytes(t.graph, both), Bytes(2 * std::ssize(together))) << i;
  }
  EXPECT_GT(overlaps, 500);
  EXPECT_GT(covered, 50);
}

TEST(RowRuns, OfOnePartAreRowsBehindEachOther) {
  const RunCase t;
  EXPECT_EQ(t.graph.rows_of_parts(t.id, 1, 5, 7), t.graph.rows(t.id, 5, 7));
  EXPECT_EQ(t.graph.rows_of_parts(t.id, 3, 0, 20), t.graph.whole(t.id));
  const Operand apart = t.graph.rows_of_parts(t.id, 3, 18, 2);
  EXPECT_EQ(apart.rows, 6);
  EXPECT_EQ(apart.tensor_row(0), 18);
  EXPECT_EQ(apart.tensor_row(2), 38);
  EXPECT_EQ(apart.tensor_row(5), 59);
}

TEST(RowRuns, OutsideTheTensorAreRefused) {
  RunCase t;
  const TensorId y = t.graph.add_tensor({.name = "y", .rows = 6, .cols = 10});
  Operand apart = t.graph.rows_of_parts(t.id, 3, 18, 2);
  apart.at.begin = 19;  // its last run ends behind the tensor
  EXPECT_THROW(t.graph.add_op({.name = "copy",
                               .kind = operators::cast,
                               .reads = {apart},
                               .writes = {t.graph.whole(y)}}),
               InternalError);
  EXPECT_THROW(static_cast<void>(t.graph.rows(t.id, 55, 6)), InternalError);
  EXPECT_THROW(static_cast<void>(t.graph.rows_of_parts(t.id, 7, 0, 1)), InternalError);
}

TEST(Dimensions, AreTheRowsOfATensor) {
  Graph g;
  const TensorId w = g.add_tensor({.name = "w", .rows = 24, .cols = 5, .outer = {4, 6}});
  EXPECT_EQ(g.entry(w, 2), g.rows(w, 12, 6));
  EXPECT_THROW(g.add_tensor({.name = "v", .rows = 24, .cols = 5, .outer = {4, 5}}), InternalError);
}

}  // namespace
}  // namespace fuseline
