#include "sim/memory/traffic.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <variant>

#include "base/error.h"
#include "model/lower.h"
#include "model/operators/all_operators.h"
#include "model/operators/operator_table.h"
#include "sim/memory/visible_keys.h"
#include "tests/sim/sim_support.h"

namespace fuseline {
namespace {

using Counts =
    std::map<std::string, std::pair<std::int64_t, std::int64_t>>;  // loaded, stored bytes

Counts counts(const Graph& graph, const std::vector<RequestedBytes>& requested) {
  Counts result;
  for (const RequestedBytes& r : requested) {
    auto& entry = result[graph.tensor(r.tensor).name];
    entry.first += r.loaded.value();
    entry.second += r.stored.value();
  }
  return result;
}

Workload training_traffic(std::int64_t batch, std::int64_t seq) {
  return {.phase = Phase::train, .batch = batch, .seq = seq, .context = 0, .dtype = Dtype::bf16};
}

// A GEMM y[M,N] = x[M,K] w[N,K]^T + b[1,N] as one program.
struct BiasedGemm {
  Graph graph;
  Program program;

  BiasedGemm(std::int64_t m, std::int64_t n, std::int64_t k) {
    const auto add = [&](const char* name, Role role, std::int64_t rows, std::int64_t cols) {
      return graph.add_tensor({.name = name,
                               .symbol = "",
                               .role = role,
                               .dtype = Dtype::bf16,
                               .rows = rows,
                               .cols = cols});
    };
    const TensorId x = add("x", Role::input, m, k);
    const TensorId w = add("w", Role::weight, n, k);
    const TensorId p = add("p", Role::activation, m, n);
    const TensorId b = add("b", Role::weight, 1, n);
    const TensorId y = add("y", Role::output, m, n);
    const OpId mm = graph.add_op({.name = "mm",
                                  .kind = operators::gemm,
                                  .reads = {graph.whole(x), graph.whole(w)},
                                  .writes = {graph.whole(p)},
                                  .attributes = {},
                                  .site = "mm"});
    const OpId bias = graph.add_op({.name = "bias",
                                    .kind = operators::bias_add,
                                    .reads = {graph.whole(p), graph.whole(b)},
                                    .writes = {graph.whole(y)},
                                    .attributes = {},
                                    .site = "mm"});
    program = lower(graph, "mm", {mm, bias});
  }
};

TEST(Traffic, AGemmLoadsEachOperandOncePerTileOfTheOtherSide) {
  // Given 200 × 300 outputs in tiles of 128 × 128: 2 tile rows, 3 tile columns,
  const BiasedGemm gemm(200, 300, 50);
  // when counted, then x is loaded 3 times, w twice, the bias by both tile rows, y stored once.
  const Counts c = counts(gemm.graph, requested_bytes(gemm.graph, gemm.program, {128, 128}));
  EXPECT_EQ(c.at("x"), std::pair(std::int64_t{200 * 50 * 2 * 3}, std::int64_t{0}));
  EXPECT_EQ(c.at("w"), std::pair(std::int64_t{300 * 50 * 2 * 2}, std::int64_t{0}));
  EXPECT_EQ(c.at("b"), std::pair(std::int64_t{300 * 2 * 2}, std::int64_t{0}));
  EXPECT_EQ(c.at("y"), std::pair(std::int64_t{0}, std::int64_t{200 * 300 * 2}));
  EXPECT_FALSE(c.contains("p"));
}

// Counts by visiting every tile and every element of its panels.
TEST(Traffic, AGemmsCountEqualsAVisitOfEveryTile) {
  for (const TileShape tile : {TileShape{16, 24}, TileShape{7, 64}, TileShape{128, 128}}) {
    const std::int64_t m = 45, n = 70, k = 11;
    const BiasedGemm gemm(m, n, k);
    std::int64_t x = 0, w = 0, b = 0, y = 0;
    for (std::int64_t i = 0; i < m; i += tile.m) {
      for (std::int64_t j = 0; j < n; j += tile.n) {
        for (std::int64_t r = i; r < std::min(m, i + tile.m); ++r) x += 2 * k;
        for (std::int64_t c = j; c < std::min(n, j + tile.n); ++c) {
          w += 2 * k;
          b += 2;
          y += 2 * (std::min(m, i + tile.m) - i);
        }
      }
    }
    const Counts c = counts(gemm.graph, requested_bytes(gemm.graph, gemm.program, tile));
    EXPECT_EQ(c.at("x").first, x);
    EXPECT_EQ(c.at("w").first, w);
    EXPECT_EQ(c.at("b").first, b);
    EXPECT_EQ(c.at("y").second, y);
  }
}

TEST(Traffic, CausalAttentionLoadsTheKeysThatAQueryTileCanSee) {
  // Given 300 tokens in query tiles of 128, 2 sequences, 4 heads that share 2 key heads,
  ModelConfig config = small_llama();
  const Plan plan = make_plan("eager", config, forward(2, 300));
  for (const Kernel& kernel : plan.kernels) {
    if (kernel.kind != KernelKind::attention) continue;
    const Program& program = kernel.phases.front();
    std::int64_t keys = 0;  // visited query tile by query tile, key by key
    for (std::int64_t q = 0; q < 300; q += 128) {
      for (std::int64_t key = 0; key < 300; ++key) {
        if (key < std::min<std::int64_t>(300, q + 128)) ++keys;
      }
    }
    const Counts c = counts(plan.graph, requested_bytes(plan.graph, program, {128, 128}));
    const std::int64_t kv = keys * 64 * 4 * 2 * 2;
    EXPECT_EQ(c.at("k_rot").first, kv);
    EXPECT_EQ(c.at("qkv").first, kv);  // the V slice
    EXPECT_EQ(c.at("q_rot").first, 2 * 300 * 4 * 64 * 2);
    EXPECT_EQ(c.at("attn").second, 2 * 300 * 4 * 64 * 2);
    return;
  }
  FAIL() << "no attention kernel";
}

TEST(Traffic, ASlidingWindowHidesOldKeys) {
  AttentionShape a;
  a.q_tokens = 100;
  a.kv_tokens = 500;
  a.causal = true;
  a.window = 50;
  // Query 10 stands at position 410 and sees 361 to 410; query 19 sees up to 419.
  const KeyRange range = visible_keys(a, 10, 10);
  EXPECT_EQ(range.begin, 361);
  EXPECT_EQ(range.end, 420);
  a.window = 0;
  EXPECT_EQ(visible_keys(a, 10, 10).begin, 0);
  a.causal = false;
  EXPECT_EQ(visible_keys(a, 10, 10).end, 500);
}

TEST(Traffic, QueryTilesOfAKeyTileAreThoseThatSeeOneOfItsKeys) {
  for (const std::int64_t window : {0, 1, 30, 200}) {
    AttentionShape a;
    a.q_tokens = 290;
    a.kv_tokens = 300;  // query 0 stands at position 10
    a.causal = true;
    a.window = window;
    for (std::int64_t key = 0; key < 300; key += 64) {
      std::vector<bool> seen(5);  // by query tiles of 64
      for (std::int64_t q = 0; q < 290; ++q) {
        for (std::int64_t k = key; k < std::min<std::int64_t>(300, key + 64); ++k)
          if (k <= q + 10 && (window == 0 || k > q + 10 - window))
            seen[static_cast<std::size_t>(q / 64)] = true;
      }
      const KeyRange range =
          query_tiles_that_see(a, key, std::min<std::int64_t>(64, 300 - key), 64);
      for (std::int64_t tile = 0; tile < 5; ++tile) {
        const bool inside = range.begin <= tile * 64 && tile * 64 < range.end;
        EXPECT_EQ(inside, seen[static_cast<std::size_t>(tile)])
            << "window " << window << " keys from " << key << " query tile " << tile;
      }
    }
  }
}

TEST(Traffic, AttentionsGradientLoadsWhatEveryKeyTileNeeds) {
  // Given 300 tokens in tiles of 128, 2 sequences, 4 heads that share 2 key heads, d = 64,
  for (const char* policy : {"flash-attention", "eager"}) {
    const bool each_head = std::string(policy) == "eager";  // dK and dV of every query head
    const Plan plan = make_plan(policy, small_llama(), training_traffic(2, 300));
    const auto kernel = std::ranges::find(plan.kernels, "d_attention", &Kernel::name);
    ASSERT_NE(kernel, plan.kernels.end());
    // when key tiles 0, 1 and 2 are seen by query tiles from 0, 128 and 256 on,
    const std::int64_t visits = 300 + 172 + 44;
    const Counts c =
        counts(plan.graph, requested_bytes(plan.graph, kernel->phases.front(), {128, 128}));
    // then every visit loads Q, dY, one log-sum-exp and one delta, for 8 heads,
    EXPECT_EQ(c.at("q_rot").first, visits * 64 * 8 * 2);
    EXPECT_EQ(c.at("dattn").first, visits * 64 * 8 * 2);
    EXPECT_EQ(c.at("softmax_lse").first, visits * 8 * 4);
    EXPECT_EQ(c.at("delta").first, visits * 8 * 4);
    // keys and values are loaded once per head that owns them,
    EXPECT_EQ(c.at("k_rot").first, 600 * 64 * (each_head ? 4 : 2) * 2);
    EXPECT_EQ(c.at("qkv").first, 600 * 64 * (each_head ? 4 : 2) * 2);
    // and the fp32 dQ is stored by the first key tile and added to by the others.
    EXPECT_EQ(c.at("dq_sum").first, (visits - 300) * 64 * 8 * 4);
    EXPECT_EQ(c.at("dq_sum").second, visits * 64 * 8 * 4);
    EXPECT_EQ(c.at(each_head ? "dk_heads" : "dk_rot").second, 600 * 64 * (each_head ? 4 : 2) * 2);
  }
}

TEST(Traffic, ATableThatTwoPartsOfATileShareIsLoadedOnce) {
  // Given coda in training, whose QKV kernel rotates Q (256 columns) and K (128 columns) apart,
  const Plan plan = make_plan("coda", small_llama(), training_traffic(1, 128));
  const auto kernel = std::ranges::find(plan.kernels, "qkv", &Kernel::name);
  ASSERT_NE(kernel, plan.kernels.end());
  for (const std::int64_t n : {128, 256, 512}) {
    const Counts c =
        counts(plan.graph, requested_bytes(plan.graph, kernel->phases.front(), {128, n}));
    // then every tile with rotated columns loads d = 64 columns of each table once.
    EXPECT_EQ(c.at("cos").first, ceil_div(384, n) * 128 * 64 * 2) << n;
    EXPECT_EQ(c.at("sin").first, ceil_div(384, n) * 128 * 64 * 2) << n;
  }
}

TEST(Traffic, RopeTablesAreCountedOnlyWhereTilesHoldRotatedColumns) {
  // Given coda, whose QKV kernel rotates the Q and K columns and leaves V alone,
  const ModelConfig config = small_llama();
  const Plan plan = make_plan("coda", config, forward(1, 128));
  for (const Kernel& kernel : plan.kernels) {
    if (kernel.name != "qkv") continue;
    const Counts c =
        counts(plan.graph, requested_bytes(plan.graph, kernel.phases.front(), {128, 128}));
    // then 3 of the 4 tile columns (Q 256, K 128, V 128) load d = 64 columns of each table.
    std::int64_t tables = 0;
    for (const auto& [name, bytes] : c) {
      const auto id = plan.graph.find_tensor(name);
      if (plan.graph.tensor(*id).role == Role::table) tables += bytes.first;
    }
    EXPECT_EQ(tables, 2 * 3 * 128 * 64 * 2);
    return;
  }
  FAIL() << "no qkv kernel";
}

TEST(Traffic, FusionNeverAsksForMore) {
  for (const ModelConfig& config : {small_llama(), small_gpt()}) {
    for (const std::int64_t tokens : {64, 200, 512}) {
      const auto asked = [&](const char* policy) {
        const Plan plan = make_plan(policy, config, forward(1, tokens));
        Bytes sum;
        for (const Kernel& k : plan.kernels) sum += total(requested_bytes(plan.graph, k));
        return sum;
      };
      EXPECT_LE(asked("coda"), asked("per-operator")) << config.name << ' ' << tokens;
      EXPECT_LE(asked("per-operator"), asked("unfused")) << config.name << ' ' << tokens;
      EXPECT_LE(asked("eager"), asked("composed")) << config.name << ' ' << tokens;
    }
  }
}

TEST(Traffic, AKernelAsksForAtLeastItsDistinctBytes) {
  for (const std::string& policy : kPolicies) {
    for (const Workload& w : {forward(2, 96), decode(3, 1, 200)}) {
      const Plan plan = make_plan(policy, small_llama(), w);
      for (const Kernel& k : plan.kernels) {
        const DistinctBytes distinct = distinct_bytes(plan.graph, k);
        EXPECT_GE(total(requested_bytes(plan.graph, k)), distinct.loaded + distinct.stored)
            << policy << ' ' << k.name;
      }
    }
  }
}

TEST(Traffic, AnOverflowOfTheByteCountIsTheUsersMistake) {
  ModelConfig config = llama_7b();
  EXPECT_THROW(
      {
        const Plan plan = make_plan("unfused", config, forward(1 << 23, 1 << 23));
        for (const Kernel& k : plan.kernels) total(requested_bytes(plan.graph, k));
      },
      InputError);
}

}  // namespace
}  // namespace fuseline
