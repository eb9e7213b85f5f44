// Operators of experts and of latent attention, each alone, over random small shapes: those whose
// operands depend on each other, as places are those of a permutation.
#pragma once

#include <numeric>
#include <optional>
#include <random>
#include <vector>

#include "model/operators/all_operators.h"
#include "model/ragged_rows.h"
#include "tests/model/tiny_models.h"

namespace fuseline::test {

class ExpertOperator {
 public:
  explicit ExpertOperator(std::mt19937& random) : random_(random) {}

  // The operator named "op" from inputs "x0", .. to the output "y"; nothing for other kinds.
  std::optional<Graph> of(OpKind kind) {
    if (kind == operators::grouped_gemm) return grouped_product();
    if (kind == operators::choose_experts) return choice();
    if (kind == operators::take_rows) return places(kind, false);
    if (kind == operators::sum_rows) return places(kind, true);
    if (kind == operators::take_numbers) return numbers();
    if (kind == operators::sum_places || kind == operators::numbers_at) return at_places(kind);
    if (kind == operators::join_heads) return heads();
    return std::nullopt;
  }

 private:
  Operand tensor(const char* name, Role role, std::int64_t rows, std::int64_t cols) {
    return graph_.whole(
        graph_.add_tensor({.name = name, .role = role, .rows = rows, .cols = cols}));
  }
  void op(const char* name, OpKind kind, std::vector<Operand> reads, std::vector<Operand> writes,
          const Attributes& attributes = {}) {
    graph_.add_op({.name = name,
                   .kind = kind,
                   .reads = std::move(reads),
                   .writes = std::move(writes),
                   .attributes = attributes,
                   .site = name});
  }

  // Of the experts the last ones may have no rows.
  Graph grouped_product() {
    RaggedRows rows;
    for (std::int64_t g = pick(random_, 1, 4); g > 0; --g)
      rows.groups.push_back(pick(random_, 1, 5));
    const auto active = static_cast<std::int64_t>(rows.groups.size());
    const std::int64_t M = std::accumulate(rows.groups.begin(), rows.groups.end(), std::int64_t{0});
    const std::int64_t N = pick(random_, 1, 6), K = pick(random_, 1, 6);
    const Operand x = tensor("x0", Role::input, M, K);
    const Operand w = tensor("x1", Role::input, (active + pick(random_, 0, 2)) * N, K);
    const Operand y = tensor("y", Role::output, M, N);
    op("op", operators::grouped_gemm, {x, graph_.rows(w.tensor, 0, active * N)}, {y}, rows);
    return graph_;
  }

  Graph choice() {
    const std::int64_t M = pick(random_, 1, 6), E = pick(random_, 2, 9);
    ExpertChoice a{.count = pick(random_, 1, E)};
    const GateWeights all[] = {GateWeights::softmax, GateWeights::softmax_of_all,
                               GateWeights::sigmoid};
    // A softmax of one score is 1 whatever the score.
    a.weights = a.count == 1 ? GateWeights::softmax_of_all : all[random_() % 3];
    a.factor = random_() % 2 == 0 ? 1 : 2.5;
    a.loads = assumed_rows(M, E, a.count);
    const Operand scores = tensor("x0", Role::input, M, E);
    const Operand gates = tensor("y", Role::output, M, a.count);
    const Operand chosen = tensor("chosen", Role::activation, M, a.count);
    op("op", operators::choose_experts, {scores}, {gates, chosen}, a);
    return graph_;
  }

  Graph places(OpKind kind, bool summed) {
    const std::int64_t rows = pick(random_, 1, 5), each = pick(random_, 1, 4);
    const std::int64_t N = pick(random_, 1, 6);
    const Operand x = tensor("x0", Role::input, summed ? rows * each : rows, N);
    const Operand order = tensor("x1", Role::input, rows * each, 1);
    const Operand y = tensor("y", Role::output, summed ? rows : rows * each, N);
    op("op", kind, {x, order}, {y}, Places{each});
    return graph_;
  }

  // The places are a permutation's, as sorting makes them.
  Graph numbers() {
    const std::int64_t R = pick(random_, 1, 5), C = pick(random_, 2, 4);
    const Operand x = tensor("x0", Role::input, R, C);
    const Operand keys = tensor("sin", Role::table, R, C);
    const Operand order = tensor("order", Role::activation, R * C, 1);
    const Operand y = tensor("y", Role::output, R * C, 1);
    op("sort", operators::sort_places, {keys}, {order});
    op("op", operators::take_numbers, {x, order}, {y});
    return graph_;
  }

  // Rows, or numbers, at the places of a sort's second result.
  Graph at_places(OpKind kind) {
    const bool rows = kind == operators::sum_places;
    const std::int64_t R = pick(random_, 1, 5), C = pick(random_, 2, 4);
    const std::int64_t N = rows ? pick(random_, 1, 6) : 1;
    const Operand x = tensor("x0", Role::input, R * C, N);
    const Operand keys = tensor("sin", Role::table, R, C);
    const Operand order = tensor("order", Role::activation, R * C, 1);
    const Operand places = tensor("places", Role::activation, R * C, 1);
    const Operand y = tensor("y", Role::output, R, rows ? N : C);
    op("sort", operators::sort_places, {keys}, {order, places});
    op("op", kind, {x, places}, {y}, rows ? Attributes(Places{C}) : Attributes());
    return graph_;
  }

  // Queries have a first part for each head, keys one that all heads share.
  Graph heads() {
    const std::int64_t M = pick(random_, 1, 5), H = pick(random_, 1, 4);
    const std::int64_t a = pick(random_, 1, 4), b = pick(random_, 1, 4);
    const bool shared = random_() % 2 == 0;
    const Operand first = tensor("x0", Role::input, M, shared ? a : a * H);
    const Operand second = tensor("x1", Role::input, M, b * H);
    const Operand y = tensor("y", Role::output, M, (a + b) * H);
    op("op", operators::join_heads, {first, second}, {y}, HeadCount{H});
    return graph_;
  }

  std::mt19937& random_;
  Graph graph_;
};

}  // namespace fuseline::test
