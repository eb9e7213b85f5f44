#include "model/graph.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "base/error.h"
#include "model/operators/all_operators.h"

namespace fuseline {
namespace {

TensorId vector_of(Graph& g, const std::string& name, std::int64_t cols = 4) {
  return g.add_tensor({.name = name, .symbol = "[1, N]", .rows = 1, .cols = cols});
}

OpId add_unary(Graph& g, const std::string& name, TensorId from, TensorId to) {
  return g.add_op(
      {.name = name, .kind = operators::silu, .reads = {g.whole(from)}, .writes = {g.whole(to)}});
}

// a -> f -> b -> g -> c, and b -> h -> e
struct Fork {
  Fork() {
    a = vector_of(graph, "a"), b = vector_of(graph, "b"), c = vector_of(graph, "c");
    e = vector_of(graph, "e");
    f = add_unary(graph, "f", a, b);
    g = add_unary(graph, "g", b, c);
    h = add_unary(graph, "h", b, e);
  }
  Graph graph;
  TensorId a, b, c, e;
  OpId f, g, h;
};

TEST(Graph, FindsTensorsAndOperatorsByName) {
  const Fork t;
  EXPECT_EQ(t.graph.find_tensor("c"), t.c);
  EXPECT_EQ(t.graph.find_op("h"), t.h);
  EXPECT_FALSE(t.graph.find_tensor("f").has_value());
  EXPECT_FALSE(t.graph.find_op("a").has_value());
}

TEST(Graph, ListsProducersAndConsumersInInsertionOrder) {
  const Fork t;
  EXPECT_EQ(t.graph.producers(t.b), std::vector<OpId>{t.f});
  EXPECT_EQ(t.graph.consumers(t.b), (std::vector<OpId>{t.g, t.h}));
  EXPECT_TRUE(t.graph.producers(t.a).empty());
}

TEST(Graph, RefusesOperandsOutsideTheirTensors) {
  Graph g;
  const TensorId a = vector_of(g, "a", 4);
  const TensorId b = vector_of(g, "b", 4);
  Operand beyond = g.whole(a);
  beyond.col_begin = 1;
  EXPECT_THROW(g.add_op({.name = "f", .reads = {beyond}, .writes = {g.whole(b)}}), InternalError);
  Operand tall = g.whole(a);
  tall.rows = 2;
  EXPECT_THROW(g.add_op({.name = "f", .reads = {tall}, .writes = {g.whole(b)}}), InternalError);
  Operand nowhere = g.whole(a);
  nowhere.tensor = TensorId{7};
  EXPECT_THROW(g.add_op({.name = "f", .reads = {nowhere}, .writes = {g.whole(b)}}), InternalError);
  EXPECT_THROW(static_cast<void>(g.columns(a, 3, 2)), InternalError);
  EXPECT_TRUE(g.ops().empty());
}

TEST(Graph, RefusesASecondTensorOrOperatorOfTheSameName) {
  Fork t;
  EXPECT_THROW(vector_of(t.graph, "a"), InternalError);
  EXPECT_THROW(add_unary(t.graph, "f", t.c, t.e), InternalError);
}

TEST(Graph, ReportsAnOverflowOfByteCountsAsTheUsersMistake) {
  Graph g;
  EXPECT_THROW(g.add_tensor({.name = "huge", .rows = std::int64_t{1} << 40, .cols = 1 << 30}),
               InputError);
}

TEST(Graph, CountsBytesOfSlices) {
  Graph g;
  const TensorId t = g.add_tensor({.name = "t", .rows = 3, .cols = 10});
  const TensorId wide = g.add_tensor({.name = "w", .dtype = Dtype::fp32, .rows = 3, .cols = 10});
  EXPECT_EQ(g.bytes(g.whole(t)), Bytes(60));
  EXPECT_EQ(g.bytes(g.columns(t, 4, 2)), Bytes(12));
  EXPECT_EQ(g.bytes(g.columns(wide, 4, 2)), Bytes(24));
}

TEST(Edges, JoinOnlyOverlappingSlices) {
  // Given two writers of the halves of t, and a reader of the second half.
  Graph g;
  const TensorId a = vector_of(g, "a");
  const TensorId t = vector_of(g, "t", 8);
  const TensorId out = vector_of(g, "out");
  g.add_op({.name = "low", .reads = {g.whole(a)}, .writes = {g.columns(t, 0, 4)}});
  const OpId high =
      g.add_op({.name = "high", .reads = {g.whole(a)}, .writes = {g.columns(t, 4, 4)}});
  const OpId reader =
      g.add_op({.name = "r", .reads = {g.columns(t, 4, 4)}, .writes = {g.whole(out)}});
  // Then only the writer of that half is its producer.
  const std::vector<Edge> found = edges(g);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].from, high);
  EXPECT_EQ(found[0].to, reader);
  EXPECT_EQ(found[0].tensor, t);
}

TEST(Edges, CountATensorReadTwiceByOneOperatorOnce) {
  Graph g;
  const TensorId a = vector_of(g, "a");
  const TensorId b = vector_of(g, "b");
  const TensorId c = vector_of(g, "c");
  add_unary(g, "f", a, b);
  g.add_op({.name = "square", .reads = {g.whole(b), g.whole(b)}, .writes = {g.whole(c)}});
  EXPECT_EQ(edges(g).size(), 1U);
}

TEST(TopologicalOrder, KeepsInsertionOrderAmongFreeOperators) {
  const Fork t;
  EXPECT_EQ(topological_order(t.graph), (std::vector<OpId>{t.f, t.g, t.h}));
}

TEST(TopologicalOrder, SortsOperatorsAddedBackwards) {
  Graph g;
  const TensorId a = vector_of(g, "a");
  const TensorId b = vector_of(g, "b");
  const TensorId c = vector_of(g, "c");
  const OpId last = add_unary(g, "last", b, c);
  const OpId first = add_unary(g, "first", a, b);
  EXPECT_EQ(topological_order(g), (std::vector<OpId>{first, last}));
}

TEST(TopologicalOrder, ReportsACycleAsABug) {
  Graph g;
  const TensorId a = vector_of(g, "a");
  const TensorId b = vector_of(g, "b");
  add_unary(g, "f", a, b);
  add_unary(g, "g", b, a);
  EXPECT_THROW(topological_order(g), InternalError);
}

TEST(OrderGroups, OrdersByDependencyNotByGivenOrder) {
  const Fork t;
  const std::vector<std::vector<OpId>> groups{{t.h}, {t.f, t.g}};
  EXPECT_EQ(order_groups(t.graph, groups), (std::vector<std::size_t>{1, 0}));
}

TEST(OrderGroups, RefusesAContractionThatMakesACycle) {
  // Given a chain f -> g -> k, grouping the two ends around the middle makes a cycle.
  Graph g;
  std::vector<TensorId> t;
  for (int i = 0; i < 4; ++i) t.push_back(vector_of(g, "t" + std::to_string(i)));
  const OpId f = add_unary(g, "f", t[0], t[1]);
  const OpId middle = add_unary(g, "g", t[1], t[2]);
  const OpId k = add_unary(g, "k", t[2], t[3]);
  EXPECT_FALSE(order_groups(g, std::vector<std::vector<OpId>>{{f, k}, {middle}}).has_value());
  // The operator that is in no group counts as a group of its own.
  EXPECT_FALSE(order_groups(g, std::vector<std::vector<OpId>>{{f, k}}).has_value());
  EXPECT_TRUE(order_groups(g, std::vector<std::vector<OpId>>{{f, middle, k}}).has_value());
}

TEST(OrderGroups, ReportsAnOperatorInTwoGroupsAsABug) {
  const Fork t;
  const std::vector<std::vector<OpId>> groups{{t.f, t.g}, {t.g}};
  EXPECT_THROW(static_cast<void>(order_groups(t.graph, groups)), InternalError);
}

TEST(TopologicalOrder, RespectsEveryEdgeOfRandomGraphs) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    // Given operators that read from earlier tensors of a hidden order and are added shuffled.
    const int count = 2 + static_cast<int>(random() % 12);
    Graph g;
    std::vector<TensorId> t;
    for (int i = 0; i <= count; ++i) t.push_back(vector_of(g, "t" + std::to_string(i)));
    std::vector<int> hidden;
    for (int i = 1; i <= count; ++i) hidden.push_back(i);
    std::shuffle(hidden.begin(), hidden.end(), random);
    for (const int i : hidden) {
      Op op{.name = "op" + std::to_string(i)};
      const auto target = static_cast<std::size_t>(i);
      op.reads.push_back(g.whole(t[random() % target]));
      op.reads.push_back(g.whole(t[random() % target]));
      op.writes.push_back(g.whole(t[target]));
      g.add_op(op);
    }
    // Then each operator appears once, after all that it reads from.
    const std::vector<OpId> order = topological_order(g);
    ASSERT_EQ(order.size(), g.ops().size());
    std::vector<int> place(order.size(), -1);
    for (std::size_t i = 0; i < order.size(); ++i)
      place[static_cast<std::size_t>(order[i].index)] = static_cast<int>(i);
    for (const int p : place) ASSERT_GE(p, 0);
    for (const Edge& e : edges(g))
      ASSERT_LT(place[static_cast<std::size_t>(e.from.index)],
                place[static_cast<std::size_t>(e.to.index)]);
  }
}

}  // namespace
}  // namespace fuseline
