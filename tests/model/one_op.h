// Graphs of one operator.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "model/graph.h"

namespace fuseline::test {

struct Input {
  std::int64_t rows, cols;
  Role role = Role::input;
};

// One operator from inputs "x0", "x1", .. to the output "y" [rows, cols].
inline Graph one_op(OpKind kind, const std::vector<Input>& inputs, std::int64_t rows,
                    std::int64_t cols, const Attributes& attributes = {}) {
  Graph g;
  Op op{.name = "op", .kind = kind, .attributes = attributes, .site = "op"};
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const bool table = inputs[i].role == Role::table;
    op.reads.push_back(
        g.whole(g.add_tensor({.name = table ? (i == 1 ? "cos" : "sin") : "x" + std::to_string(i),
                              .role = inputs[i].role,
                              .rows = inputs[i].rows,
                              .cols = inputs[i].cols})));
  }
  op.writes.push_back(
      g.whole(g.add_tensor({.name = "y", .role = Role::output, .rows = rows, .cols = cols})));
  g.add_op(op);
  return g;
}

}  // namespace fuseline::test
