#include "sim/executor/memory_need.h"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <limits>
#include <string>

#include "model/error.h"
#include "sim/executor/panel_cache.h"

namespace fuseline::executor {

namespace {

bool is_given(const Tensor& t) { return t.role != Role::activation && t.role != Role::output; }

bool is_scores(const Graph& graph, TensorId id) {
  const std::vector<OpId> producers = graph.producers(id);
  return !producers.empty() && (graph.op(producers[0]).kind == OpKind::attention_scores ||
                                graph.op(producers[0]).kind == OpKind::softmax);
}

bool only_products_read(const Graph& graph, TensorId id) {
  const std::vector<OpId> readers = graph.consumers(id);
  return std::all_of(readers.begin(), readers.end(),
                     [&](OpId op) { return graph.op(op).kind == OpKind::gemm; });
}

std::string gigabytes(Bytes bytes) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f GB", bytes.as_double() * 1e-9);
  return text;
}

}  // namespace

Bytes memory_need(const Graph& block, const std::vector<Plan>& plans, int threads) {
  Bytes shared;
  for (std::size_t i = 0; i < block.tensors().size(); ++i) {
    const TensorId id{static_cast<std::int32_t>(i)};
    const Tensor& t = block.tensor(id);
    const Bytes as_doubles = checked_product<Bytes>(t.rows, t.cols, 8);
    if (is_given(t)) shared += t.bytes();
    if (is_given(t) ? !only_products_read(block, id) : !is_scores(block, id)) shared += as_doubles;
  }
  Bytes largest;
  for (const Plan& plan : plans) {
    Bytes own(PanelCache::kBudgetBytes);
    for (std::size_t i = 0; i < plan.graph.tensors().size(); ++i) {
      const Tensor& t = plan.graph.tensors()[i];
      if (plan.homes[i] != Home::hbm) continue;
      const bool in_block = block.find_tensor(t.name).has_value();
      if (!is_given(t) || !in_block || t.role == Role::cache) own += t.bytes();
    }
    largest = std::max(largest, own);
  }
  constexpr std::int64_t kPerThread = 64 << 20;  // tiles, fp64 panels
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
