// Chains of two products among the kernels that a search chooses from: only where they were asked
// for, only where they win, and the bound holds for them too.
#include <gtest/gtest.h>

#include <algorithm>

#include "model/chain.h"
#include "sim/search/rewrite_space.h"
#include "sim/search/search.h"
#include "tests/model/plan_support.h"

namespace fuseline {
namespace {

ModelConfig small_gpt() {
  ModelConfig c = test::tiny_gpt();
  c.D = 512;
  c.F = 2048;
  c.H = c.Hkv = 8;
  c.d = 64;
  return c;
}

SearchResult searched(std::int64_t batch, Allowed allowed) {
  const Workload work = test::decode(batch, 1, 64);
  SearchOptions options;
  options.allowed = allowed;
  options.budget_seconds = 0;
  options.decisions = false;
  return search_block(build_block(small_gpt(), work), load_gpu("h200"), work, Launching::graph,
                      options);
}

bool has_chain(const Plan& plan) {
  return std::ranges::any_of(plan.kernels,
                             [](const Kernel& k) { return handed_over(k).has_value(); });
}

TEST(ChainSearch, FindsAChainWhereItWins) {
  const SearchResult own = searched(1, Allowed::own_kernels);
  const SearchResult chains = searched(1, Allowed::with_chains);
  EXPECT_FALSE(has_chain(own.plan));
  EXPECT_TRUE(has_chain(chains.plan));
  EXPECT_TRUE(chains.complete);
  EXPECT_LT(chains.value(), own.value());
  EXPECT_LE(chains.bound, chains.value() * (1 + 1e-9));
  EXPECT_EQ(check_plan(chains.plan), std::vector<std::string>{});
}

TEST(ChainSearch, IsNeverWorseWithMoreKernelsToChooseFrom) {
  for (const std::int64_t batch : {8, 9})
    EXPECT_LE(searched(batch, Allowed::with_chains).value(),
              searched(batch, Allowed::own_kernels).value() * (1 + 1e-9))
        << batch;
}

TEST(ChainSearch, TheUsualSpaceHasNoChains) {
  const Graph block = build_block(small_gpt(), test::decode(1, 1, 64));
  const auto marked = [](const RewrittenBlock& b) {
    return std::ranges::find(b.rewrites, "chain_products") != b.rewrites.end();
  };
  EXPECT_TRUE(std::ranges::none_of(rewritten_blocks(block), marked));
  EXPECT_TRUE(std::ranges::any_of(rewritten_blocks(block, true), marked));
}

}  // namespace
}  // namespace fuseline
