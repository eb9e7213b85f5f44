#include "sim/programs/verify_programs.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "base/error.h"
#include "model/programs/meaning.h"
#include "sim/block/estimate.h"
#include "sim/executor/execute.h"
#include "sim/executor/inputs.h"
#include "sim/executor/tensor_error.h"
#include "sim/programs/check_results.h"

namespace fuseline {

namespace {

constexpr std::int64_t kMostProducts = std::int64_t{1} << 31;

void refuse_large(const Plan& plan) {
  std::int64_t products = 0;
  for (const Kernel& k : plan.kernels)
    for (const Program& p : k.phases)
      if (const auto* gemm = std::get_if<GemmMainloop>(&p.mainloop))
        products += checked_product<Flops>(gemm->M, gemm->N, gemm->K, gemm->batch).value();
  if (products <= kMostProducts) return;
  throw InputError({.field = "size",
                    .value = std::to_string(products),
                    .message = "multiplications are too many for fp64 without tiles",
                    .allowed = fmt::format(
                        "at most {}: give the letters smaller sizes, with --size", kMostProducts)});
}

}  // namespace

bool VerifiedPrograms::passed() const {
  return std::ranges::all_of(tensors, &VerifiedTensor::agrees) &&
         std::ranges::all_of(kernels, [](const VerifiedKernel& k) { return k.differing.empty(); });
}

VerifiedPrograms verify_programs(const Plan& plan, const Gpu& gpu, std::uint64_t seed,
                                 const executor::Workers& workers) {
  refuse_large(plan);
  const executor::Inputs inputs = executor::random_storage(plan.graph, seed, workers);
  ExactTensors exact;
  for (const Tensor& t : plan.graph.tensors()) {
    const auto given = inputs.find(t.name);
    const auto elements = static_cast<std::size_t>(t.rows * t.cols);
    exact.push_back(given == inputs.end() ? std::vector<double>(elements)
                                          : executor::to_doubles(*given->second));
  }
  VerifiedPrograms out;
  for (const Kernel& k : plan.kernels)
    for (const Program& p : k.phases) run_meaning(plan.graph, p, exact);

  const executor::Execution executed = executor::execute(plan, inputs, gpu, {.workers = workers});
  for (const AllowedError& allowed : allowed_errors(plan)) {
    const Operand& o = allowed.stored;
    const executor::TensorError error =
        executor::compare(executed.memory->at(o.tensor),
                          exact[static_cast<std::size_t>(o.tensor.index)], o.col_begin, o.cols);
    const bool nothing = error.nothing_wanted && error.largest == 0;
    out.tensors.push_back({.name = plan.graph.tensor(o.tensor).name,
                           .program = allowed.program,
                           .error = nothing ? 0 : error.relative_l2,
                           .allowed = allowed.error});
  }

  const PlanEstimate predicted = simulate(plan, gpu, Fidelity::hierarchy);
  for (const executor::ExecutedKernel& k : executed.kernels) {
    VerifiedKernel v{.name = k.name, .differing = {}};
    std::map<TensorId, std::pair<std::int64_t, std::int64_t>> difference;
    for (const RequestedBytes& r : k.moved) {
      v.loaded += r.loaded.value();
      v.stored += r.stored.value();
      difference[r.tensor].first += r.loaded.value();
      difference[r.tensor].second += r.stored.value();
    }
    for (const KernelEstimate& e : predicted.kernels)
      if (e.name == k.name)
        for (const RequestedBytes& r : e.requested) {
          difference[r.tensor].first -= r.loaded.value();
          difference[r.tensor].second -= r.stored.value();
        }
    for (const auto& [id, d] : difference)
      if (d.first != 0 || d.second != 0) v.differing.push_back(plan.graph.tensor(id).name);
    out.kernels.push_back(std::move(v));
  }
  return out;
}

}  // namespace fuseline
