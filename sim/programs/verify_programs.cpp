#include "sim/programs/verify_programs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <random>
#include <utility>

#include "base/error.h"
#include "model/programs/meaning.h"
#include "sim/block/estimate.h"
#include "sim/executor/execute.h"
#include "sim/executor/float_formats.h"
#include "sim/executor/inputs.h"
#include "sim/executor/tensor_error.h"
#include "sim/programs/check_results.h"

namespace fuseline {

namespace {

constexpr std::int64_t kMostProducts = std::int64_t{1} << 31;
constexpr int kDraws = 16;  // of roundings, where one draw says too little

double stored_as(Dtype type, double x) { return executor::rounded_to(type, static_cast<float>(x)); }

// By how much roundings change columns of a tensor, relative; 0 where they leave no numbers.
double changed(const std::vector<double>& exact, const std::vector<double>& rounded,
               std::int64_t all_cols, const Operand& o) {
  double error = 0, norm = 0;
  for (std::size_t i = 0; i < exact.size(); ++i) {
    const auto col = static_cast<std::int64_t>(i) % all_cols;
    if (col < o.col_begin || col >= o.col_begin + o.cols) continue;
    error += (rounded[i] - exact[i]) * (rounded[i] - exact[i]);
    norm += exact[i] * exact[i];
  }
  const double relative = std::sqrt(error / norm);
  return std::isfinite(relative) ? relative : 0;
}

void refuse_not_finite(const Graph& graph, const Program& p, const ExactTensors& exact,
                       const char* type) {
  for (const Operand& o : stores(p)) {
    const Tensor& t = graph.tensor(o.tensor);
    const std::vector<double>& all = exact[static_cast<std::size_t>(o.tensor.index)];
    const auto at = std::ranges::find_if(all, [](double x) { return !std::isfinite(x); });
    if (at == all.end()) continue;
    const std::int64_t i = at - all.begin();
    throw InputError(
        {.field = "program " + p.name,
         .value = t.name,
         .message = fmt::format("is no finite number of {} in row {}, column {}: there is nothing "
                                "to compare with",
                                type, i / t.cols, i % t.cols),
         .allowed = "steps whose results are finite for the random inputs, such as log(max(x, "
                    "1e-6))"});
  }
}

// The tensors in fp64 with roundings by chance behind every step.
ExactTensors with_roundings(const Plan& plan, ExactTensors given, std::uint64_t seed, int threads) {
  Roundings roundings{.random = std::mt19937_64(seed), .stored = stored_as};
  for (const Kernel& k : plan.kernels)
    for (const Program& p : k.phases) {
      run_meaning(plan.graph, p, given, &roundings, threads);
      refuse_not_finite(plan.graph, p, given, "the tensor's type");
    }
  return given;
}

// Given tensors whose numbers name rows, columns or places hold such numbers: each as often as any
// other, in a random order.
void choose_names(const Plan& plan, std::uint64_t seed, executor::Inputs& inputs) {
  std::map<TensorId, std::int64_t> names;
  for (const Kernel& k : plan.kernels)
    for (const Program& p : k.phases)
      for (const Primitive& primitive : p.body)
        for (const Access& access : primitive.accesses()) {
          if (access.names < 1 || access.store) continue;
          const auto [at, first] = names.emplace(access.operand.tensor, access.names);
          if (!first) at->second = std::min(at->second, access.names);
        }
  std::mt19937_64 random(seed);
  for (const auto& [id, count] : names) {
    const Tensor& t = plan.graph.tensor(id);
    if (!inputs.contains(t.name)) continue;
    std::vector<float> all(static_cast<std::size_t>(t.rows * t.cols));
    for (std::size_t i = 0; i < all.size(); ++i) {
      const auto name = static_cast<float>(i % static_cast<std::uint64_t>(count));
      const float held = executor::rounded_to(t.dtype, name);
      all[i] = held < static_cast<float>(count) ? held : 0;  // rounded up
    }
    std::ranges::shuffle(all, random);
    const auto numbers = std::make_shared<executor::Storage>(t.dtype, t.rows, t.cols);
    for (std::int64_t r = 0; r < t.rows; ++r) numbers->write(r, 0, t.cols, all.data() + r * t.cols);
    inputs[t.name] = numbers;
  }
}

void refuse_large(const Plan& plan) {
  const std::int64_t products = products_of(plan);
  if (products <= kMostProducts) return;
  throw InputError({.field = "size",
                    .value = std::to_string(products),
                    .message = "multiplications are too many for fp64 without tiles",
                    .allowed = fmt::format(
                        "at most {}: give the letters smaller sizes, with --size", kMostProducts)});
}

VerifiedTensor judged_tensor(const Graph& graph, const AllowedError& allowed,
                             const executor::Memory& memory, const ExactTensors& exact,
                             double by_rounding) {
  const Operand& o = allowed.stored;
  const Tensor& t = graph.tensor(o.tensor);
  if (by_rounding >= 1)
    throw InputError({.field = "program " + allowed.program,
                      .value = t.name,
                      .message = "is nothing but roundings: they change it by as much as it is",
                      .allowed = "steps that do not take near numbers from each other"});
  const executor::TensorError error = executor::compare(
      memory.at(o.tensor), exact[static_cast<std::size_t>(o.tensor.index)], o.col_begin, o.cols);
  // Where fp64 rounds everything away, such as log(1 + 1e-20), fp32 may keep more.
  const bool nothing = error.nothing_wanted && error.largest < 0x1p-50;
  return {.name = t.name,
          .program = allowed.program,
          .error = nothing ? 0 : error.relative_l2,
          .allowed = std::max(allowed.error, kAmplifiedRoundings * by_rounding)};
}

}  // namespace

bool VerifiedPrograms::passed() const {
  return std::ranges::all_of(tensors, &VerifiedTensor::agrees) &&
         std::ranges::all_of(kernels, [](const VerifiedKernel& k) { return k.differing.empty(); });
}

VerifiedPrograms verify_programs(const Plan& plan, const Gpu& gpu, std::uint64_t seed,
                                 const executor::Workers& workers) {
  refuse_large(plan);
  executor::Inputs inputs = executor::random_storage(plan.graph, seed, workers);
  choose_names(plan, seed, inputs);
  ExactTensors exact;
  for (const Tensor& t : plan.graph.tensors()) {
    const auto given = inputs.find(t.name);
    const auto elements = static_cast<std::size_t>(t.rows * t.cols);
    exact.push_back(given == inputs.end() ? std::vector<double>(elements)
                                          : executor::to_doubles(*given->second));
  }
  VerifiedPrograms out;
  const ExactTensors given = exact;
  for (const Kernel& k : plan.kernels)
    for (const Program& p : k.phases) {
      run_meaning(plan.graph, p, exact, nullptr, workers.threads);
      refuse_not_finite(plan.graph, p, exact, "fp64");
    }

  const executor::Execution executed = executor::execute(plan, inputs, gpu, {.workers = workers});
  const std::vector<AllowedError> of_formats = allowed_errors(plan);
  std::vector<double> squares(of_formats.size());  // of what each draw of roundings changes
  const auto draw = [&](int number) {
    const ExactTensors rounded =
        with_roundings(plan, given, seed + static_cast<std::uint64_t>(number), workers.threads);
    for (std::size_t i = 0; i < of_formats.size(); ++i) {
      const Operand& o = of_formats[i].stored;
      const auto at = static_cast<std::size_t>(o.tensor.index);
      const double by = changed(exact[at], rounded[at], plan.graph.tensor(o.tensor).cols, o);
      squares[i] += by * by;
    }
  };
  const auto judged = [&](int draws) {
    std::vector<VerifiedTensor> all;
    for (std::size_t i = 0; i < of_formats.size(); ++i)
      all.push_back(judged_tensor(plan.graph, of_formats[i], *executed.memory, exact,
                                  std::sqrt(squares[i] / draws)));
    return all;
  };
  draw(0);
  out.tensors = judged(1);
  // Where one number carries a tensor, or a rounding decides about a step, a single draw may by
  // chance change next to nothing. The root mean square of several is what roundings change.
  if (!std::ranges::all_of(out.tensors, &VerifiedTensor::agrees)) {
    for (int i = 1; i < kDraws; ++i) draw(i);
    out.tensors = judged(kDraws);
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
