#include "sim/memory/activations.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "model/operators/operator_table.h"

namespace fuseline {

namespace {

// Kernels between which a tensor must be in memory: [first, last].
struct BufferLife {
  std::size_t first = 0;
  std::size_t last = 0;
};

std::optional<BufferLife> life_of_buffer(const Plan& plan, TensorId id) {
  const Tensor& t = plan.graph.tensor(id);
  const bool counted =
      t.role == Role::input || t.role == Role::output ||
      (t.role == Role::activation && plan.homes[static_cast<std::size_t>(id.index)] == Home::hbm);
  if (!counted || is_weight_gradient(plan.graph, id)) return std::nullopt;
  const auto touches = [&](const Kernel& k) {
    return std::any_of(k.ops.begin(), k.ops.end(), [&](OpId op) {
      const auto is = [id](const Operand& o) { return o.tensor == id; };
      const Op& o = plan.graph.op(op);
      return std::any_of(o.reads.begin(), o.reads.end(), is) ||
             std::any_of(o.writes.begin(), o.writes.end(), is);
    });
  };
  std::optional<BufferLife> life;
  for (std::size_t k = 0; k < plan.kernels.size(); ++k) {
    if (!touches(plan.kernels[k])) continue;
    if (!life) life = BufferLife{k, k};
    life->last = k;
  }
  if (!life) return std::nullopt;
  if (t.role == Role::input) life->first = 0;
  if (t.role == Role::output) life->last = plan.kernels.size() - 1;
  return life;
}

// The first kernel with an operator of the backward pass; the number of kernels when none has.
std::size_t first_backward(const Plan& plan) {
  const auto is_backward = [&plan](const Kernel& k) {
    return std::any_of(k.ops.begin(), k.ops.end(),
                       [&plan](OpId op) { return plan.graph.op(op).pass == Pass::backward; });
  };
  const auto found = std::find_if(plan.kernels.begin(), plan.kernels.end(), is_backward);
  return static_cast<std::size_t>(found - plan.kernels.begin());
}

}  // namespace

Activations activations_of(const Plan& plan) {
  std::vector<Bytes> alive(plan.kernels.size());
  const std::size_t backward = first_backward(plan);
  Activations out;
  for (std::size_t i = 0; i < plan.graph.tensors().size(); ++i) {
    const TensorId id{static_cast<std::int32_t>(i)};
    const auto life = life_of_buffer(plan, id);
    if (!life) continue;
    const Tensor& t = plan.graph.tensor(id);
    for (std::size_t k = life->first; k <= life->last; ++k) alive[k] += t.bytes();
    // An output of the forward pass is the next layer's input and counted there; an input that only
    // the backward pass reads is its gradient.
    const bool arrives_late =
        t.role == Role::input && plan.graph.related(id, Relation::gradient_of).has_value();
    if (life->first < backward && life->last >= backward && t.role != Role::output &&
        !arrives_late) {
      out.saved += t.bytes();
    }
  }
  if (!alive.empty()) out.peak = *std::max_element(alive.begin(), alive.end());
  return out;
}

}  // namespace fuseline
