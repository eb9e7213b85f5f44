#include "sim/programs/check_results.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "model/operators/operator_table.h"
#include "model/programs/meaning.h"
#include "sim/executor/tensor_error.h"
#include "sim/programs/some_rows.h"
#include "sim/programs/spot_check.h"

namespace fuseline {

namespace {

// Multiplications that fp64 without tiles does in about two seconds on one core.
constexpr std::int64_t kMostChecked = std::int64_t{1} << 30;
constexpr std::int64_t kFewestRows = 2;

double storage_roundoff(Dtype type) {
  // Codes of a row are whole steps of its largest number, or have three bits of mantissa.
  return size_of(type).bits() <= 8 ? row_code_roundoff(type) : unit_roundoff(type);
}

// The longest sum that one of the program's lines makes.
double longest_sum(const Program& p) {
  double longest = 1;
  if (const auto* gemm = std::get_if<GemmMainloop>(&p.mainloop))
    longest = std::max(longest, static_cast<double>(gemm->K * gemm->summed));
  if (const auto* row = std::get_if<RowMainloop>(&p.mainloop))
    longest = std::max(longest, static_cast<double>(row->cols));
  if (const auto* a = std::get_if<AttentionMainloop>(&p.mainloop)) {
    // A gradient's dK sums over the queries of all heads that share the key.
    const std::int64_t queries =
        a->gradient ? a->shape.q_tokens * a->shape.heads / a->shape.kv_heads : 0;
    longest = std::max(
        longest, static_cast<double>(std::max(a->shape.kv_tokens, queries) + a->shape.head_width));
  }
  if (const auto* scan = std::get_if<ScanMainloop>(&p.mainloop))
    longest = std::max(longest, static_cast<double>(scan->shape.tokens * scan->shape.state_width));
  return longest;
}

// Codes that are dequantised before the product are rounded to the type of the other operand.
double dequantised_roundoff(const Graph& graph, const Program& p) {
  const auto* gemm = std::get_if<GemmMainloop>(&p.mainloop);
  if (gemm == nullptr || gemm->weight.scales_sums() || gemm->activation.quantised()) return 0;
  return unit_roundoff(graph.tensor(gemm->a.tensor).dtype);
}

}  // namespace

std::int64_t products_of(const Program& p) {
  if (const auto* gemm = std::get_if<GemmMainloop>(&p.mainloop))
    return checked_product<Flops>(gemm->M, gemm->N, gemm->K, gemm->depths.empty() ? gemm->batch : 1)
        .value();
  if (const auto* a = std::get_if<AttentionMainloop>(&p.mainloop))
    return checked_product<Flops>(
               a->shape.batch * a->shape.heads, a->shape.q_tokens, a->shape.kv_tokens,
               (a->shape.head_width + a->shape.v_width()) * (a->gradient ? 3 : 1))
        .value();
  if (const auto* scan = std::get_if<ScanMainloop>(&p.mainloop))
    return checked_product<Flops>(scan->shape.batch * scan->shape.tokens, scan->shape.heads,
                                  scan->shape.head_width * scan->shape.state_width,
                                  scan->gradient ? 8 : 3)
        .value();
  return 0;
}

std::int64_t products_of(const Plan& plan) {
  std::int64_t products = 0;
  for (const Kernel& k : plan.kernels)
    for (const Program& p : k.phases) products += products_of(p);
  return products;
}

bool CheckedResults::passed() const {
  return why_not.empty() && !tensors.empty() &&
         std::ranges::all_of(tensors, &VerifiedTensor::agrees);
}

std::vector<AllowedError> allowed_errors(const Plan& plan) {
  std::vector<double> allowed(plan.graph.tensors().size());  // of what was made so far
  std::vector<AllowedError> out;
  for (const Kernel& k : plan.kernels)
    for (const Program& p : k.phases) {
      double arriving = (2 * std::sqrt(longest_sum(p)) + 8) * unit_roundoff(Dtype::fp32) +
                        dequantised_roundoff(plan.graph, p);
      for (const Operand& o : loads(p))
        arriving += allowed[static_cast<std::size_t>(o.tensor.index)];
      for (const Operand& o : stores(p)) {
        double& here = allowed[static_cast<std::size_t>(o.tensor.index)];
        here = std::max(here, arriving + storage_roundoff(plan.graph.tensor(o.tensor).dtype));
        out.push_back({.program = p.name, .stored = o, .error = kAmplifiedRoundings * here});
      }
    }
  return out;
}

std::string why_not_finite(const Graph& graph, const Program& program, const ExactTensors& exact) {
  for (const Operand& o : stores(program)) {
    const std::vector<double>& all = exact[static_cast<std::size_t>(o.tensor.index)];
    if (std::ranges::all_of(all, [](double x) { return std::isfinite(x); })) continue;
    return fmt::format(
        "with random normal inputs {} of {} is not finite in fp64 either: they leave the domain of "
        "a line, such as a root of sums of squares that are drawn negative; program export joins "
        "such a gradient to the programs that make what it loads",
        graph.tensor(o.tensor).name, program.name);
  }
  return {};
}

CheckedResults check_results(const Plan& plan, const executor::Inputs& inputs,
                             const std::function<const executor::Storage&(TensorId)>& stored,
                             std::uint64_t seed, int threads) {
  CheckedResults out;
  std::optional<PlanOfRows> some;
  std::vector<std::int64_t> rows;
  const std::int64_t products = products_of(plan), all = rows_of(plan);
  if (products > kMostChecked) {
    const std::int64_t count =
        all == 0 ? 0 : kMostChecked / std::max<std::int64_t>(1, products / all);
    if (count >= kFewestRows) some = plan_of_rows(plan, std::min(count, all));
    if (!some) return spot_check(plan, inputs, stored, seed, threads);
    rows = sample_of_rows(all, std::min(count, all), seed);
    out.rows = static_cast<std::int64_t>(rows.size());
  }
  const Plan& checked = some ? some->plan : plan;
  ExactTensors exact;
  for (std::size_t i = 0; i < checked.graph.tensors().size(); ++i) {
    const Tensor& t = checked.graph.tensors()[i];
    const auto given = inputs.find(t.name);
    if (given == inputs.end())
      exact.emplace_back(static_cast<std::size_t>(t.rows * t.cols));
    else if (some && some->cut[i] != Cut::whole)
      exact.push_back(executor::to_doubles(take_part(*given->second, some->cut[i], rows, all)));
    else
      exact.push_back(executor::to_doubles(*given->second));
  }
  try {
    for (const Kernel& k : checked.kernels)
      for (const Program& p : k.phases) {
        run_meaning(checked.graph, p, exact, nullptr, threads);
        out.why_not = why_not_finite(checked.graph, p, exact);
        if (!out.why_not.empty()) return out;
      }
  } catch (const MissingError& error) {
    out.why_not = error.what();
    return out;
  }
  for (const AllowedError& allowed : allowed_errors(checked)) {
    const auto i = static_cast<std::size_t>(allowed.stored.tensor.index);
    const executor::Storage& whole = stored(allowed.stored.tensor);
    const auto compare = [&](const executor::Storage& got) {
      return executor::compare(got, exact[i], allowed.stored.col_begin, allowed.stored.cols);
    };
    const executor::TensorError error = some && some->cut[i] != Cut::whole
                                            ? compare(take_part(whole, some->cut[i], rows, all))
                                            : compare(whole);
    const bool nothing = error.nothing_wanted && error.largest == 0;
    out.tensors.push_back({.name = checked.graph.tensor(allowed.stored.tensor).name,
                           .program = allowed.program,
                           .error = nothing ? 0 : error.relative_l2,
                           .allowed = allowed.error});
  }
  return out;
}

}  // namespace fuseline
