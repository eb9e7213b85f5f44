#include "sim/block/single_gemm.h"

#include <string>
#include <utility>

#include "base/error.h"
#include "model/lower.h"
#include "model/operators/all_operators.h"
#include "sim/gpu/power.h"

namespace fuseline {

namespace {

constexpr int kCopies = 5;             // of w that take turns
constexpr double kTableLaunches = 30;  // of a table's benchmark before its median
constexpr double kHotLaunches = 100;   // of a search for the best rate of one shape

// Launches before the one that counts, of which the power limit knows.
double launches_before(const LibraryGemm& gemm, Bytes working_set) {
  if (gemm.run == Run::burst) return 0;
  if (gemm.run == Run::sustained) return 1e9;
  if (gemm.operands == Operands::rotating) return kTableLaunches;
  if (gemm.operands == Operands::hot) return kHotLaunches;
  return benchmark_elapsed(working_set, Seconds(1)).value();
}

}  // namespace

const std::vector<std::string>& operand_words() {
  static const std::vector<std::string> words = {"cold", "rotating", "hot"};
  return words;
}

const std::vector<std::string>& run_words() {
  static const std::vector<std::string> words = {"benchmark", "burst", "sustained"};
  return words;
}

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
  // Roles that say that every repetition has its own: weights and caches belong to a layer. Others
  // are the same memory each time.
  const bool cold = gemm.operands == Operands::cold;
  const TensorId x = tensor("x", "[M, K]", cold ? Role::weight : Role::activation, gemm.m, gemm.k);
  const TensorId w = tensor("w", "[N, K]", Role::weight, gemm.n, gemm.k);
  // A benchmark's call allocates its result, and the next call gets the memory that was freed.
  const TensorId y = tensor("y", "[M, N]", cold ? Role::cache : Role::output, gemm.m, gemm.n);
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
  SimulationOptions options{.repeats = 2 * launches_before(gemm, working_set)};
  if (gemm.operands == Operands::hot) options.replay = true;
  if (gemm.operands == Operands::rotating) {
    options.runs = 2 * kCopies;
    options.copies = kCopies;
  }
  PlanEstimate all = simulate(plan, gpu, fidelity, options);
  FUSELINE_ASSERT(!all.kernels.empty(), "a plan of one GEMM has no kernel");
  KernelEstimate whole = std::move(all.kernels.front());
  for (std::size_t i = 1; i < all.kernels.size(); ++i) {
    const KernelEstimate& part = all.kernels[i];
    whole.flops += part.flops;
    whole.l2 += part.l2;
    whole.smem += part.smem;
    whole.dynamic_energy += part.dynamic_energy;
  }
  // The plan's sums, which know of overlap between launches and of what is written back later.
  whole.time = all.time;
  whole.hbm_read = all.hbm_read;
  whole.hbm_write = all.hbm_write;
  return whole;
}

}  // namespace fuseline
