#include "sim/executor/memory_need.h"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <limits>
#include <set>
#include <string>

#include "base/error.h"
#include "model/operators/all_operators.h"
#include "model/operators/operator_table.h"
#include "sim/executor/panel_cache.h"
#include "sim/executor/reference_attention.h"
#include "sim/executor/reference_fast.h"

namespace fuseline::executor {

namespace {

bool is_given(const Tensor& t) { return t.role != Role::activation && t.role != Role::output; }

// Tensors that attention's reference never holds whole.
std::set<TensorId> streamed(const Graph& block) {
  std::set<TensorId> tensors;
  for (const AttentionSteps& steps : streamed_attentions(block))
    for (const Op* op : {steps.scores, steps.softmax, steps.d_probs, steps.d_softmax})
      if (op != nullptr) tensors.insert(op->writes[0].tensor);
  return tensors;
}

bool only_products_read(const Graph& graph, TensorId id) {
  const std::vector<OpId> readers = graph.consumers(id);
  return std::all_of(readers.begin(), readers.end(), [&](OpId reader) {
    const Op& op = graph.op(reader);
    // Those of groups of rows with codes take their operands as doubles.
    return is_gemm(op) && (!is_ragged(op) || products_of_groups(op));
  });
}

std::string gigabytes(Bytes bytes) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f GB", bytes.as_double() * 1e-9);
  return text;
}

// What the reference needs besides its tensors: the first operand of a product, and of each thread
// a panel of the second (256 rows), or what attention holds.
Bytes reference_scratch(const Graph& block, int threads) {
  Bytes operand;
  Bytes panel;
  for (const Op& op : block.ops()) {
    if (is_gemm(op)) {
      const GemmShape s = gemm_shape(op);
      operand = std::max(operand, checked_product<Bytes>(s.M, s.K, 8));
      panel = std::max(panel, checked_product<Bytes>(256, s.K, 8));
    } else if (op.kind == operators::attention_scores) {
      panel = std::max(
          panel, checked_product<Bytes>(doubles_per_thread(op.attributes.as<AttentionShape>()), 8));
    }
  }
  return operand + panel * threads;
}

// A plan's own tensors, its reordered or otherwise prepared inputs, panels.
Bytes execution_need(const Graph& block, const Plan& plan) {
  Bytes own(PanelCache::kBudgetBytes);
  std::set<std::string> reordered;
  for (const Interleaving& how : plan.preparation.interleavings) reordered.insert(how.tensor);
  for (std::size_t i = 0; i < plan.graph.tensors().size(); ++i) {
    const Tensor& t = plan.graph.tensors()[i];
    if (plan.homes[i] != Home::hbm) continue;
    const bool shared = is_given(t) && block.find_tensor(t.name).has_value();
    if (!shared || t.role == Role::cache || reordered.contains(t.name)) own += t.bytes();
  }
  return own;
}

}  // namespace

Bytes memory_need(const Graph& block, const std::vector<Plan>& plans, int threads) {
  const std::set<TensorId> never_whole = streamed(block);
  Bytes shared;
  for (std::size_t i = 0; i < block.tensors().size(); ++i) {
    const TensorId id{static_cast<std::int32_t>(i)};
    const Tensor& t = block.tensor(id);
    const Bytes as_doubles = checked_product<Bytes>(t.rows, t.cols, 8);
    if (is_given(t)) shared += t.bytes();
    if (is_given(t) ? !only_products_read(block, id) : !never_whole.contains(id))
      shared += as_doubles;
  }
  Bytes largest = reference_scratch(block, threads);
  for (const Plan& plan : plans) largest = std::max(largest, execution_need(block, plan));
  constexpr std::int64_t kPerThread = 64 << 20;  // tiles, the library's own buffers
  return shared + largest + Bytes(kPerThread * threads);
}

Bytes available_memory() {
  std::ifstream file("/proc/meminfo");
  std::string name, unit;
  std::int64_t kilobytes = 0;
  while (file >> name >> kilobytes) {
    std::getline(file, unit);
    if (name == "MemAvailable:") return checked_product<Bytes>(kilobytes, 1024);
  }
  return Bytes(std::numeric_limits<std::int64_t>::max());
}

void check_memory(Bytes need, Bytes limit) {
  if (need <= limit) return;
  throw InputError({.file = "command line",
                    .field = "the block",
                    .message = "needs " + gigabytes(need) + " of memory, more than the " +
                               gigabytes(limit) + " that it may use",
                    .allowed = "fewer tokens (--seq, --batch, --context), a smaller model, or "
                               "another --memory-limit"});
}

}  // namespace fuseline::executor
