// Streams stored where their joint rows are: what the rewrite makes, that the result stays the same
// to the last bit, that no kernel is left that only copies, and where the rewrite does not apply.
#include "model/rewrites/join_in_epilogues.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "model/config/model_files.h"
#include "model/operators/all_operators.h"
#include "model/plan.h"
#include "model/policy.h"
#include "model/reference.h"
#include "tests/model/plan_support.h"

namespace fuseline {
namespace {

constexpr std::int64_t kSequences = 2;

Operand tensor(Graph& g, const std::string& name, Role role, std::int64_t rows, std::int64_t cols) {
  return g.whole(g.add_tensor({.name = name, .role = role, .rows = rows, .cols = cols}));
}

Operand product(Graph& g, const std::string& name, std::int64_t rows) {
  const Operand made = tensor(g, name + "_qv", Role::activation, rows, 8);
  const Operand x = tensor(g, name + "_x", Role::input, rows, 6);
  g.add_op({name, operators::gemm, {x, tensor(g, name + "_w", Role::weight, 8, 6)}, {made}});
  return made;
}

// Streams of 3, 1 and 5 rows in each of 2 sequences. `y`: some columns of all, joined.
Graph three_streams() {
  Graph g;
  std::vector<Operand> parts;
  for (const auto& [name, tokens] :
       {std::pair{"a", std::int64_t{3}}, {"b", std::int64_t{1}}, {"c", std::int64_t{5}}})
    parts.push_back(g.columns(product(g, name, kSequences * tokens).tensor, 2, 4));
  g.add_op({"join",
            operators::concat_rows,
            parts,
            {tensor(g, "y", Role::output, 18, 4)},
            JointSequences{kSequences},
            "join"});
  return g;
}

bool joins(const Graph& graph) {
  return std::ranges::any_of(graph.ops(),
                             [](const Op& op) { return op.kind == operators::concat_rows; });
}

TEST(JoinInEpilogues, CopiesEachStreamToItsRows) {
  const Graph g = three_streams();
  ASSERT_TRUE(join_in_epilogues().applies(g));
  Block block{g, {}};
  join_in_epilogues().apply(block);
  EXPECT_FALSE(joins(block.graph));
  EXPECT_FALSE(join_in_epilogues().applies(block.graph));
  const auto rows = [&](const char* op) {
    return block.graph.op(*block.graph.find_op(op)).writes[0].at;
  };
  EXPECT_EQ(rows("join_1"), (RowRuns{0, 3, 9}));
  EXPECT_EQ(rows("join_2"), (RowRuns{3, 1, 9}));
  EXPECT_EQ(rows("join_3"), (RowRuns{4, 5, 9}));
  const NamedTensors inputs = random_inputs(g, 7);
  EXPECT_EQ(run_reference(block.graph, inputs).at("y"), run_reference(g, inputs).at("y"));
}

TEST(JoinInEpilogues, LeavesStreamsThatAreInputs) {
  Graph g;
  const Operand made = product(g, "a", 6);
  const Operand given = tensor(g, "b", Role::input, 10, 8);
  g.add_op({"join",
            operators::concat_rows,
            {made, given},
            {tensor(g, "y", Role::output, 16, 8)},
            JointSequences{kSequences},
            "join"});
  EXPECT_FALSE(join_in_epilogues().applies(g));
}

// With norms of Q and K or without them, products store all that attention reads.
TEST(JoinInEpilogues, LeavesNoKernelThatOnlyCopies) {
  for (const char* model : {"sd3-medium", "sd3-medium-qknorm"}) {
    const ModelConfig config = load_model(model);
    const Plan plan = make_plan("coda", config, test::forward(2, 64));
    EXPECT_EQ(check_plan(plan), std::vector<std::string>{}) << model;
    for (const Kernel& kernel : plan.kernels)
      EXPECT_EQ(kernel.name.find("join"), std::string::npos) << model << ' ' << kernel.name;
    EXPECT_TRUE(joins(make_plan("torch-compile", config, test::forward(2, 64)).graph)) << model;
  }
}

}  // namespace
}  // namespace fuseline
