#include "sim/block/single_gemm.h"

#include <string>
#include <utility>

#include "base/error.h"
#include "model/lower.h"
#include "model/operators/all_operators.h"
#include "sim/gpu/power.h"

namespace fuseline {

Plan library_gemm_plan(const LibraryGemm& gemm) {
  Plan plan;
  plan.policy = "library";
  Graph& graph = plan.graph;
  const auto tensor = [&](const char* name, const char* symbol, Role role, std::int64_t rows,
                          std::int64_t cols) {
    return graph.add_tensor({.name = name,
                             .symbol = symbol,
                             .role = role,
                             .dtype = gemm.dtype,
                             .rows = rows,
                             .cols = cols});
  };
  // Roles that say that every repetition has its own: weights and caches belong to a layer.
  const TensorId x = tensor("x", "[M, K]", Role::weight, gemm.m, gemm.k);
  const TensorId w = tensor("w", "[N, K]", Role::weight, gemm.n, gemm.k);
  const TensorId y = tensor("y", "[M, N]", Role::cache, gemm.m, gemm.n);
  std::vector<OpId> ops;
  const auto add = [&](const char* name, OpKind kind, std::vector<Operand> reads, TensorId to,
                       const Attributes& attributes = {}) {
    ops.push_back(graph.add_op({.name = name,
                                .kind = kind,
                                .reads = std::move(reads),
                                .writes = {graph.whole(to)},
                                .attributes = attributes,
                                .site = "gemm"}));
  };
  plan.homes.assign(3, Home::hbm);
  std::vector<Operand> factors = {graph.whole(x), graph.whole(w)};
  Attributes layout;
  if (gemm.weights.quantised()) {
    layout = GemmLayout{.weight = gemm.weights, .activation = gemm.activations};
    graph.tensor(w).dtype = gemm.weights.element();
  }
  for (const ScaleTensor& t : gemm.weights.beside(gemm.n, gemm.k)) {
    const TensorId scale =
        tensor((std::string("w") + t.suffix).c_str(), "", Role::weight, t.rows, t.cols);
    graph.tensor(scale).dtype = t.type;
    factors.push_back(graph.whole(scale));
    plan.homes.push_back(Home::hbm);
  }
  if (gemm.activations.quantised()) {
    const ScaleTensor t = gemm.activations.beside(gemm.m, gemm.k).front();
    const TensorId scale = tensor("x_scale", "", Role::weight, t.rows, t.cols);
    graph.tensor(scale).dtype = t.type;
    graph.tensor(x).dtype = gemm.activations.element();
    factors.push_back(graph.whole(scale));
    plan.homes.push_back(Home::hbm);
  }
  if (gemm.bias) {
    const TensorId product = tensor("product", "[M, N]", Role::activation, gemm.m, gemm.n);
    const TensorId b = tensor("b", "[1, N]", Role::weight, 1, gemm.n);
    plan.homes.insert(plan.homes.end(), {Home::on_chip, Home::hbm});
    add("gemm", operators::gemm, factors, product, layout);
    add("bias", operators::bias_add, {graph.whole(product), graph.whole(b)}, y);
  } else {
    add("gemm", operators::gemm, factors, y, layout);
  }
  plan.kernels.push_back({.name = "gemm",
                          .kind = KernelKind::gemm,
                          .implementation = Implementation::library_gemm,
                          .ops = ops,
                          .phases = {lower(graph, "gemm", ops)}});
  plan.block = plan.graph;
  return plan;
}

KernelEstimate estimate_library_gemm(const LibraryGemm& gemm, const Gpu& gpu, Fidelity fidelity) {
  const Plan plan = library_gemm_plan(gemm);
  Bytes working_set;
  for (const Tensor& tensor : plan.graph.tensors()) working_set += tensor.bytes();
  // Timed over rotated buffers, so that the run is long and large GEMMs meet the power limit.
  const double launches = benchmark_elapsed(working_set, Seconds(1)).value();
  PlanEstimate all = simulate(plan, gpu, fidelity, {.repeats = 2 * launches});
  FUSELINE_ASSERT(!all.kernels.empty(), "a plan of one GEMM has no kernel");
  KernelEstimate whole = std::move(all.kernels.front());
  for (std::size_t i = 1; i < all.kernels.size(); ++i) {
    const KernelEstimate& part = all.kernels[i];
    whole.flops += part.flops;
    whole.l2 += part.l2;
    whole.smem += part.smem;
  }
  // The plan's sums, which know of overlap between launches and of what is written back later.
  whole.time = all.time;
  whole.hbm_read = all.hbm_read;
  whole.hbm_write = all.hbm_write;
  return whole;
}

}  // namespace fuseline
