// The experts of every row and their gates, and the gradient of that choice.
#pragma once

#include "../routing.cuh"
#include "reduce.cuh"

namespace fuseline::gpu::stream {

// ---- choose_experts, in a row mainloop ----

// What the first columns of a row hold: column j has the gate and the number of its j-th expert.
template <int units>
struct RoutedRow {
  Strip<units> gates, chosen;
};

// The score of column `col`, for all threads of the row. A row of one warp asks the lane that has
// it (whole_row).
template <int threads, int units>
FUSELINE_DEVICE float score_at(const Strip<units>& scores, const WholeRow<units>& place, int col) {
  RowTotal<Max> total;
  for_each<Strip<units>>([&](int u, int e) {
    if (place.col(u) + e == col) total.v = scores.at(u, e);
  });
  if constexpr (threads <= 32)
    return __shfl_sync(0xffffffffU, total.v, col / vector_cols % threads, threads);
  else
    return row_result<threads>(total).v[0];
}

// Rows of one expert have one number.
template <int threads, int units>
FUSELINE_DEVICE float score_at(const PerRow<1>& number, const WholeRow<units>&, int) {
  return number.v[0];
}
template <int threads, int units>
FUSELINE_DEVICE PerRow<1> only_column(const Strip<units>& row, const WholeRow<units>& place) {
  return {{score_at<threads>(row, place, 0)}};
}

// One expert after the other: the largest score of those that were not chosen before.
template <int threads, int units>
struct LargestScores {
  const Strip<units>& scores;
  const WholeRow<units>& place;
  float last_score = -negative_infinity;
  int last = -1;

  FUSELINE_DEVICE int next(int) {
    const auto left = [&](int u, int e) {
      const int col = place.col(u) + e;
      return col < place.cols && chosen_before(last_score, last, scores.at(u, e), col);
    };
    RowTotal<Max> best;
    for_each<Strip<units>>([&](int u, int e) {
      if (left(u, e)) best.v = fmaxf(best.v, scores.at(u, e));
    });
    const float score = row_result<threads>(best).v[0];
    RowTotal<Max> first;  // the lowest column that has it, negated
    for_each<Strip<units>>([&](int u, int e) {
      if (left(u, e) && scores.at(u, e) == score)
        first.v = fmaxf(first.v, -static_cast<float>(place.col(u) + e));
    });
    last_score = score;
    last = max_of(static_cast<int>(-row_result<threads>(first).v[0]), 0);
    return last;
  }
};
// The groups' lengths are given, whatever the scores are. Every lane of a row looks for experts of
// its own: a search is a chain of loads that wait for each other. With eight searches behind each
// other the kernel took 7.5 us of 16 rows and 128 experts on an H200.
template <int threads, int count>
struct ExpertsOfPattern {
  static constexpr int lanes = min_of(threads, 32);
  int mine[ceil_div(count, lanes)];  // experts lane, lane + lanes, ... of the row

  template <int units>
  FUSELINE_DEVICE ExpertsOfPattern(const RowGroups& groups, const WholeRow<units>& place) {
    bring_near(groups);
    const int lane = static_cast<int>(threadIdx.x) % lanes;
#pragma unroll
    for (int i = 0; i * lanes < count; ++i)
      mine[i] = expert_of_pattern(groups, place.rows, place.the_row,
                                  min_of(i * lanes + lane, count - 1));
  }
  FUSELINE_DEVICE int next(int index) const {
    int own = mine[0];
#pragma unroll
    for (int i = 1; i * lanes < count; ++i)
      if (index / lanes == i) own = mine[i];
    return __shfl_sync(0xffffffffU, own, index % lanes, lanes);
  }

 private:
  // A warp loads all lengths at once, so that the searches find them in L1.
  static FUSELINE_DEVICE void bring_near(const RowGroups& groups) {
    int all = 0;
#pragma unroll 4
    for (int g = static_cast<int>(threadIdx.x % 32); g < groups.count; g += 32)
      all ^= groups.ends[g];
    asm volatile("" ::"r"(all));
  }
};

// What gates are shares of. `top`: the row's largest score.
template <GateWeights weights>
FUSELINE_DEVICE float weight_of(float score, float top) {
  return weights == GateWeights::sigmoid ? sigmoid_of(score) : fast_exp(score - top);
}
template <GateWeights weights, int threads, int units>
FUSELINE_DEVICE float sum_of_weights(const Strip<units>& scores, const WholeRow<units>& place,
                                     float top) {
  RowTotal<Sum> all;
  for_each<Strip<units>>([&](int u, int e) {
    if (place.col(u) + e < place.cols) all.v += weight_of<weights>(scores.at(u, e), top);
  });
  return row_result<threads>(all).v[0];
}

template <int threads, int count, GateWeights weights, int units, class Experts>
FUSELINE_DEVICE RoutedRow<units> gates_of(const Strip<units>& scores, const WholeRow<units>& place,
                                          float factor, Experts experts) {
  const float top = row_reduce<Max, threads>(scores, place).v[0];
  RoutedRow<units> row{};
  float sum = 0.0F;
#pragma unroll 1
  for (int j = 0; j < count; ++j) {
    const int expert = experts.next(j);
    const float gate = weight_of<weights>(score_at<threads>(scores, place, expert), top);
    sum += gate;
    for_each<Strip<units>>([&](int u, int e) {
      if (place.col(u) + e != j) return;
      row.gates.at(u, e) = gate;
      row.chosen.at(u, e) = static_cast<float>(expert);
    });
  }
  if constexpr (weights == GateWeights::softmax_of_all)
    sum = sum_of_weights<weights, threads>(scores, place, top);
  const float scale = factor / sum;
  for_each<Strip<units>>([&](int u, int e) { row.gates.at(u, e) *= scale; });
  return row;
}

template <int threads, int count, GateWeights weights, int units>
FUSELINE_DEVICE RoutedRow<units> choose_largest(const Strip<units>& scores,
                                                const WholeRow<units>& place, float factor) {
  return gates_of<threads, count, weights>(scores, place, factor,
                                           LargestScores<threads, units>{scores, place});
}
template <int threads, int count, GateWeights weights, int units>
FUSELINE_DEVICE RoutedRow<units> choose_by_pattern(const Strip<units>& scores,
                                                   const WholeRow<units>& place, float factor,
                                                   const RowGroups& groups) {
  return gates_of<threads, count, weights>(scores, place, factor,
                                           ExpertsOfPattern<threads, count>(groups, place));
}

// ---- choose_experts_gradient, in a row mainloop ----

// What the loss says of the scores, where the first `count` columns of `d_gates` have what it says
// of the gates and those of `chosen` the experts: with shares w / Σw of the weights and their mean
// m = Σ share · d_gate, factor · share · slope · (d_gate - m) at the experts of the row. Of a
// softmax of all scores, the others have -factor · share · m, else 0.
template <int threads, int count, GateWeights weights, int units, class Numbers>
FUSELINE_DEVICE Strip<units> score_gradients(const Numbers& d_gates, const Strip<units>& scores,
                                             const Numbers& chosen, const WholeRow<units>& place,
                                             float factor) {
  const float top = row_reduce<Max, threads>(scores, place).v[0];
  Strip<units> own{};  // the gradient of the gate of a column's expert
  Strip<units> is_chosen{};
  float sum = 0.0F;
  float mean = 0.0F;
#pragma unroll 1
  for (int j = 0; j < count; ++j) {
    const int expert = static_cast<int>(score_at<threads>(chosen, place, j));
    const float d_gate = score_at<threads>(d_gates, place, j);
    const float weight = weight_of<weights>(score_at<threads>(scores, place, expert), top);
    sum += weight;
    mean += weight * d_gate;
    for_each<Strip<units>>([&](int u, int e) {
      if (place.col(u) + e != expert) return;
      own.at(u, e) = d_gate;
      is_chosen.at(u, e) = 1.0F;
    });
  }
  constexpr bool of_all = weights == GateWeights::softmax_of_all;
  if constexpr (of_all) sum = sum_of_weights<weights, threads>(scores, place, top);
  mean /= sum;
  Strip<units> out;
  for_each<Strip<units>>([&](int u, int e) {
    const float weight = weight_of<weights>(scores.at(u, e), top);
    const float slope = weights == GateWeights::sigmoid ? 1.0F - weight : 1.0F;
    const bool counts = of_all || is_chosen.at(u, e) > 0.0F;
    out.at(u, e) = counts ? factor * (weight / sum) * slope * (own.at(u, e) - mean) : 0.0F;
  });
  return out;
}

}  // namespace fuseline::gpu::stream
