// Random small graphs of steps that blocks are made of: at most 8 operators.
#pragma once

#include <random>
#include <string>
#include <vector>

#include "model/operators/all_operators.h"
#include "tests/sim/block_by_hand.h"

namespace fuseline::test {

inline Graph random_small_graph(std::mt19937& random) {
  const auto one_of = [&](const std::vector<std::int64_t>& all) {
    return all[random() % all.size()];
  };
  BlockSizes sizes;
  sizes.batch = 1;
  sizes.tokens = one_of({1, 16, 100, 256, 777, 2048});
  sizes.model = one_of({64, 128, 320, 512});
  BlockByHand b(sizes);
  Operand x = b.tensor("x", Role::input, sizes.rows(), sizes.model);
  std::vector<Operand> before = {x};  // values that later steps may add
  const int steps = 4 + static_cast<int>(random() % 5);
  for (int i = 0; i < steps; ++i) {
    const std::string name = "s" + std::to_string(i);
    const bool last = i + 1 == steps;
    std::vector<Operand> alike;
    for (const Operand& o : before)
      if (o.cols == x.cols && o.tensor != x.tensor) alike.push_back(o);
    switch (random() % 7) {
      case 0:
      case 1:
        x = b.linear(name, x, one_of({64, 128, 320, 512}));
        break;
      case 2:
        x = b.rms_norm(name, x);
        break;
      case 3:
        x = b.layer_norm(name, x);
        break;
      case 4:
        if (x.cols % 4 == 0 && x.cols > 64) {
          x = b.one(name, operators::swiglu, {x}, x.cols / 2, Pairs{});
          break;
        }
        [[fallthrough]];
      case 5:
        if (!alike.empty()) {
          x = b.residual(name, x, alike[random() % alike.size()]);
          break;
        }
        [[fallthrough]];
      default:
        x = b.one(name, operators::gelu, {x}, x.cols);
    }
    before.push_back(x);
    if (last) b.graph.tensor(x.tensor).role = Role::output;
  }
  // What nobody reads is an output too.
  for (std::size_t t = 0; t < b.graph.tensors().size(); ++t) {
    const TensorId id{static_cast<std::int32_t>(t)};
    if (b.graph.tensor(id).role == Role::activation && b.graph.consumers(id).empty())
      b.graph.tensor(id).role = Role::output;
  }
  return b.graph;
}

}  // namespace fuseline::test
