// A mixture of experts between routing and its inverse, built by hand.
#pragma once

#include <numeric>

#include "model/operators/all_operators.h"
#include "tests/sim/plan_proof.h"

namespace fuseline::test {

// y = r ∘ (swiglu(x W_g) V_g), r one number a row. Of `experts` those with rows come first.
inline Graph experts(const RaggedRows& rows, std::int64_t experts, std::int64_t D, std::int64_t F) {
  GraphByHand b;
  const std::int64_t M = std::accumulate(rows.groups.begin(), rows.groups.end(), std::int64_t{0});
  const std::int64_t active = std::ssize(rows.groups);
  const Operand x = b.tensor("x", Role::input, M, D);
  const Operand w = b.tensor("w_up", Role::weight, experts * 2 * F, D, {experts, 2 * F});
  const Operand gu = b.tensor("gu", Role::activation, M, 2 * F);
  const Operand act = b.tensor("act", Role::activation, M, F);
  const Operand v = b.tensor("w_down", Role::weight, experts * D, F, {experts, D});
  const Operand down = b.tensor("down", Role::activation, M, D);
  const Operand r = b.tensor("r", Role::input, M, 1);
  const Operand y = b.tensor("y", Role::output, M, D);
  b.op("up", operators::grouped_gemm, {x, b.graph.rows(w.tensor, 0, active * 2 * F)}, {gu}, rows);
  b.op("swiglu", operators::swiglu, {gu}, {act}, Pairs{});
  b.op("down", operators::grouped_gemm, {act, b.graph.rows(v.tensor, 0, active * D)}, {down}, rows);
  b.op("weigh", operators::mul_rows, {down, r}, {y});
  return b.graph;
}

}  // namespace fuseline::test
