// Operators of the backward pass alone, each a kernel of its own: against the fp64 reference within
// the operator's tolerance, in fp32 so that wrong elements cannot hide behind rounding.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "model/operators/all_operators.h"
#include "model/operators/operator_table.h"
#include "sim/executor/execute.h"
#include "sim/executor/inputs.h"
#include "tests/model/tiny_models.h"
#include "tests/sim/executor/executor_support.h"

namespace fuseline::executor {
namespace {

using test::pick;

// One operator and what it reads and writes.
class OneOperator {
 public:
  explicit OneOperator(OpKind kind) { op_ = {.name = "op", .kind = kind, .site = "test"}; }

  OneOperator& read(const std::string& name, std::int64_t rows, std::int64_t cols) {
    op_.reads.push_back(add(name, Role::input, rows, cols));
    return *this;
  }
  OneOperator& write(const std::string& name, std::int64_t rows, std::int64_t cols) {
    op_.writes.push_back(add(name, Role::output, rows, cols));
    return *this;
  }
  OneOperator& with(const Attributes& attributes) {
    op_.attributes = attributes;
    return *this;
  }

  // Executes it with 1 and 3 threads and compares.
  void check(const std::string& what) {
    graph_.add_op(op_);
    const Plan plan = make_plan("unfused", graph_);
    ASSERT_EQ(plan.kernels.size(), 1U);
    const Inputs inputs = random_storage(graph_, 7, {}, {.outliers = 3});
    NamedTensors values;
    for (const auto& [name, storage] : inputs) values[name] = to_doubles(*storage);
    const TensorValues want = run_reference(graph_, values);
    const Execution one = execute(plan, inputs, executor_gpu(), {});
    ExecuteOptions three;
    three.workers.threads = 3;
    three.workers.short_loops_too = true;
    expect_same_bits(plan, one, execute(plan, inputs, executor_gpu(), three), what);
    expect_predicted_bytes(plan, one, what);
    for (const Operand& o : op_.writes) {
      const std::string& name = graph_.tensor(o.tensor).name;
      const auto got = to_doubles(one.memory->at(plan.graph.find_tensor(name).value()));
      // Products of several factors cancel more than a plain sum does: ten times its tolerance.
      EXPECT_EQ(disagreement(got, want.at(name), 10 * tolerance(graph_, graph_.ops()[0])), "")
          << name << ' ' << what;
    }
  }

 private:
  Operand add(const std::string& name, Role role, std::int64_t rows, std::int64_t cols) {
    return graph_.whole(graph_.add_tensor(
        {.name = name, .role = role, .dtype = Dtype::fp32, .rows = rows, .cols = cols}));
  }
  Graph graph_;
  Op op_;
};

std::string text(std::initializer_list<std::int64_t> sizes) {
  std::string s;
  for (const std::int64_t n : sizes) s += std::to_string(n) + ' ';
  return s;
}

TEST(ExecutedGemm, TakesOperandsInEveryLayout) {
  std::mt19937 random(1);
  for (int i = 0; i < 24; ++i) {
    const std::int64_t M = pick(random, 2, 300), N = pick(random, 2, 300);
    const std::int64_t K = pick(random, 1, 200);
    GemmLayout a;
    a.a_is_km = i % 2 == 1;
    a.b_is_kn = i / 2 % 2 == 1;
    OneOperator(operators::gemm)
        .read("a", a.a_is_km ? K : M, a.a_is_km ? M : K)
        .read("b", a.b_is_kn ? K : N, a.b_is_kn ? N : K)
        .write("y", M, N)
        .with(a)
        .check(text({M, N, K, a.a_is_km, a.b_is_kn}));
  }
}

struct Heads {
  AttentionShape a;
  std::int64_t M = 0, Q = 0, C = 0, rows = 0;  // B·T, H·d, Hkv·d, B·H·T
};

Heads random_heads(std::mt19937& random) {
  Heads h;
  h.a.batch = pick(random, 1, 2);
  h.a.kv_heads = pick(random, 1, 3);
  h.a.heads = h.a.kv_heads * pick(random, 1, 4);
  h.a.head_width = pick(random, 2, 40);
  h.a.q_tokens = h.a.kv_tokens = pick(random, 3, 150);
  h.a.causal = true;
  h.a.scale = 0.3;
  h.M = h.a.batch * h.a.q_tokens;
  h.Q = h.a.heads * h.a.head_width;
  h.C = h.a.kv_heads * h.a.head_width;
  h.rows = h.M * h.a.heads;
  return h;
}

std::string text(const Heads& h) {
  return text({h.a.batch, h.a.heads, h.a.kv_heads, h.a.head_width, h.a.q_tokens});
}

// Products of the heads that share a key add up (GemmMainloop::summed). Without a mask: the
// gradients of hidden scores that the kernel reads are zero in a block, not here.
TEST(ExecutedGemm, AddsTheProductsOfHeadsThatShareAKey) {
  std::mt19937 random(2);
  for (int i = 0; i < 12; ++i) {
    Heads h = random_heads(random);
    h.a.causal = false;
    for (const OpKind kind : {operators::attention_d_k, operators::attention_d_v})
      OneOperator(kind)
          .read("ds", h.rows, h.a.kv_tokens)
          .read("q", h.M, h.Q)
          .write("dk", h.M, h.C)
          .with(h.a)
          .check(text(h));
    OneOperator(operators::attention_d_q)
        .read("ds", h.rows, h.a.kv_tokens)
        .read("k", h.M, h.C)
        .write("dq", h.M, h.Q)
        .with(h.a)
        .check(text(h));
  }
}

TEST(ExecutedRows, AreThoseOfHeadsSideBySide) {
  std::mt19937 random(3);
  for (int i = 0; i < 12; ++i) {
    const Heads h = random_heads(random);
    OneOperator(operators::attention_backward_dot)
        .read("dy", h.M, h.Q)
        .read("y", h.M, h.Q)
        .write("delta", h.rows, 1)
        .with(h.a)
        .check(text(h));
  }
}

TEST(ExecutedHeadSum, AddsHeadsThatShareAKey) {
  std::mt19937 random(4);
  for (int i = 0; i < 12; ++i) {
    const Heads h = random_heads(random);
    OneOperator(operators::head_sum)
        .read("x", h.M, h.Q)
        .write("y", h.M, h.C)
        .with(h.a)
        .check(text(h));
  }
}

TEST(ExecutedColumnReduce, SumsWholeColumns) {
  std::mt19937 random(5);
  for (int i = 0; i < 12; ++i) {
    const std::int64_t M = pick(random, 2, 400), N = pick(random, 2, 700);
    OneOperator(operators::column_sum).read("x", M, N).write("y", 1, N).check(text({M, N}));
    OneOperator(operators::norm_weight_grad)
        .read("dy", M, N)
        .read("x", M, N)
        .read("stats", M, 1 + i % 2)
        .write("dw", 1, N)
        .check(text({M, N}));
  }
}

// Along columns, along rows, with one and with two numbers a tile.
TEST(ExecutedTileReduce, LeavesPartialsOfEveryTile) {
  std::mt19937 random(6);
  for (int i = 0; i < 12; ++i) {
    const std::int64_t M = pick(random, 2, 400), N = pick(random, 2, 400);
    OneOperator columns(operators::col_stats_partial);
    columns.read("x", M, N);
    if (i % 3 > 0) columns.read("z", M, N);
    if (i % 3 > 1) columns.read("stats", M, 2);
    columns.write("partials", N, ceil_div(M, partial_tile)).check(text({M, N, i}));
    OneOperator rows(operators::row_dot_partial);
    rows.read("dy", M, N).read("y", M, N);
    if (i % 3 > 0) rows.read("b", 1, N);
    if (i % 3 > 1) rows.read("g", 1, N);
    rows.write("partials", M, ceil_div(N, partial_tile) * (i % 3 > 1 ? 2 : 1))
        .check(text({M, N, i}));
  }
}

TEST(ExecutedFinishers, SumPartialsOfColumnsIntoARow) {
  std::mt19937 random(7);
  for (int i = 0; i < 12; ++i) {
    const std::int64_t N = pick(random, 2, 300), tiles = pick(random, 1, 9);
    OneOperator(operators::col_stats_finish)
        .read("partials", N, tiles)
        .write("dw", 1, N)
        .check(text({N, tiles}));
    const RowStatistics a{.norm_width = 77};
    OneOperator(operators::row_dot_finish)
        .read("partials", N, 2 * tiles)
        .write("c", N, 2)
        .with(a)
        .check(text({N, tiles}));
  }
}

TEST(ExecutedStream, TilesOfNarrowPartsAreThoseThatExist) {
  std::mt19937 random(8);
  for (int i = 0; i < 12; ++i) {
    const std::int64_t M = pick(random, 2, 40);
    const std::int64_t a = pick(random, 1, 700), b = pick(random, 1, 700), c = pick(random, 1, 9);
    OneOperator(operators::concat)
        .read("a", M, a)
        .read("b", M, b)
        .read("c", M, c)
        .write("y", M, a + b + c)
        .check(text({M, a, b, c}));
    const Scalar expand{0.25};
    OneOperator(operators::expand_rows)
        .read("r", M, 1)
        .write("y", M, a)
        .with(expand)
        .check(text({M, a}));
  }
}

}  // namespace
}  // namespace fuseline::executor
