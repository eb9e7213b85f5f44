#include "cli/verify_output.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/format.h"
#include "cli/table.h"
#include "sim/executor/moved_bytes.h"

namespace fuseline {

namespace {

using executor::ComparedTensor;
using executor::CountedKernel;
using executor::TensorError;
using executor::VerifiedPolicy;

std::string error_text(double error) {
  return std::isfinite(error) ? fmt::format("{:.2e}", error) : "not finite";
}

// Kernels of many operators have long names; JSON has them whole.
std::string shortened(const std::string& kernel) {
  constexpr std::size_t kMost = 20;
  return kernel.size() <= kMost ? kernel : kernel.substr(0, kMost - 1) + "…";
}

std::string tensor_table(const VerifiedPolicy& p) {
  std::vector<std::vector<std::string>> rows;
  for (const ComparedTensor& t : p.tensors) {
    rows.push_back({t.name + (t.output ? " *" : ""), shortened(t.kernel),
                    error_text(t.error.relative_l2), error_text(t.unfused.relative_l2),
                    error_text(t.error.largest), error_text(t.unfused.largest),
                    error_text(t.error.worst_tile),
                    std::isfinite(t.ratio) ? fmt::format("{:.2f}", t.ratio) : "-",
                    t.problem.empty() ? "pass" : "FAIL"});
  }
  return format_table({{"tensor", Align::left},
                       {"stored by", Align::left},
                       {"rel. L2"},
                       {"unfused"},
                       {"max"},
                       {"unfused"},
                       {"tile"},
                       {"ratio"},
                       {"", Align::left}},
                      rows);
}

std::string bytes_text(const VerifiedPolicy& p) {
  const executor::MovedBytes got = counted_bytes(p);
  std::string text = fmt::format("bytes counted: {} MB loaded, {} MB stored in {} kernels",
                                 megabytes(got.loaded), megabytes(got.stored), p.kernels.size());
  if (p.bytes_equal()) {
    text += "; as predicted, tensor by tensor\n";
  } else {
    text += "; FAIL, they differ from the prediction:\n";
    for (const CountedKernel& k : p.kernels)
      if (!k.differing.empty())
        text += wrap(fmt::format("  {}: {}", k.name, fmt::join(k.differing, ", ")), "    ");
  }
  text += fmt::format("launches: {}{}\n", p.launches,
                      p.launches == p.launches_predicted
                          ? ", as predicted"
                          : fmt::format("; FAIL, {} predicted", p.launches_predicted));
  return text;
}

// The worst of its tensors by ratio.
const ComparedTensor* worst(const VerifiedPolicy& p) {
  const auto it = std::max_element(
      p.tensors.begin(), p.tensors.end(),
      [](const ComparedTensor& a, const ComparedTensor& b) { return a.ratio < b.ratio; });
  return it == p.tensors.end() ? nullptr : &*it;
}

std::string summary_table(const std::vector<VerifiedPolicy>& policies) {
  std::vector<std::vector<std::string>> rows;
  for (const VerifiedPolicy& p : policies) {
    const ComparedTensor* t = worst(p);
    const executor::MovedBytes got = counted_bytes(p);
    std::string worst_ratio =
        t != nullptr && std::isfinite(t->ratio) ? fmt::format("{:.2f}", t->ratio) : "-";
    std::string worst_tensor = t != nullptr ? t->name : "";
    if (p.not_finite) {
      worst_ratio = "not finite";
      worst_tensor = p.not_finite->tensor;
    }
    rows.push_back({p.policy, std::to_string(p.launches), megabytes(got.loaded),
                    megabytes(got.stored), p.bytes_equal() ? "equal" : "DIFFER", worst_ratio,
                    worst_tensor, p.passed() ? "pass" : "FAIL"});
  }
  return format_table({{"policy", Align::left},
                       {"launches"},
                       {"MB loaded"},
                       {"MB stored"},
                       {"as predicted"},
                       {"worst ratio"},
                       {"of", Align::left},
                       {"", Align::left}},
                      rows);
}

std::string not_finite_text(const executor::NotFinite& n) {
  return fmt::format("the first value that is not finite: {} in {}[{}, {}], {}",
                     std::isnan(n.value) ? "NaN" : (n.value > 0 ? "inf" : "-inf"), n.tensor, n.row,
                     n.col,
                     n.kernel.empty() ? "prepared from the inputs" : "stored by " + n.kernel);
}

std::string policy_text(const VerifiedPolicy& p, bool fault) {
  std::string text = fmt::format("{}: {}{}\n", p.policy, p.passed() ? "pass" : "FAIL",
                                 fault && !p.broken ? ", the fault cannot happen here" : "");
  text += tensor_table(p);
  if (p.not_finite) text += wrap("FAIL " + not_finite_text(*p.not_finite));
  for (const ComparedTensor& t : p.tensors)
    if (!t.problem.empty())
      text += wrap(fmt::format("FAIL {} (kernel {}): {}", t.name, t.kernel, t.problem));
  return text + bytes_text(p);
}

// What differs from the usual random inputs.
std::string inputs_text(const executor::InputDistribution& inputs) {
  const executor::InputDistribution usual;
  std::string text;
  const auto add = [&text](const char* what, double value, double before) {
    if (value != before) text += fmt::format("{}{} {:g}", text.empty() ? "" : ", ", what, value);
  };
  add("outliers", inputs.outliers, usual.outliers);
  add("x scaled by", inputs.scale, usual.scale);
  add("x shifted by", inputs.shift, usual.shift);
  add("dy scaled by", inputs.gradient_scale, usual.gradient_scale);
  return text.empty() ? text : "inputs: " + text + "\n";
}

}  // namespace

std::string first_failure(const executor::Verification& result) {
  for (const SameMeaning& s : result.own_programs)
    if (!s.same())
      return fmt::format("{} does not compute the block's {}: {:.1e} away in fp64", s.file,
                         s.tensor, s.difference);
  for (const VerifiedPolicy& p : result.policies) {
    if (p.not_finite) return p.policy + ": " + not_finite_text(*p.not_finite);
    for (const ComparedTensor& t : p.tensors)
      if (!t.problem.empty())
        return fmt::format("{}: {} (kernel {}): {}", p.policy, t.name, t.kernel, t.problem);
    for (const CountedKernel& k : p.kernels)
      if (!k.differing.empty())
        return fmt::format("{}: bytes of {} (kernel {}) differ from the prediction", p.policy,
                           k.differing.front(), k.name);
    if (p.launches != p.launches_predicted)
      return fmt::format("{}: {} launches, {} predicted", p.policy, p.launches,
                         p.launches_predicted);
  }
  return {};
}

std::string verification_table(const Selection& selection, const executor::VerifyOptions& options,
                               const executor::Verification& result) {
  const bool fault = std::any_of(result.policies.begin(), result.policies.end(),
                                 [](const VerifiedPolicy& p) { return p.broken; });
  std::string text = fmt::format("{}, {}, seed {}; tiles as on {}\n", selection.model.name,
                                 describe(selection.workload), options.seed, selection.gpu.name);
  text += wrap(
      fmt::format("errors against fp64; a plan fails at {:g} times the unfused one's, in the whole "
                  "tensor or its worst tile (128 x 128); * output",
                  executor::kWorstRatio));
  text += inputs_text(options.inputs);
  for (const SameMeaning& s : result.own_programs)
    text += wrap(fmt::format(
        "{}: {} is {}what the block's operators make of random inputs, in fp64: "
        "{:.1e} away (relative L2){}",
        s.file, s.tensor, s.same() ? "" : "not ", s.difference, s.same() ? "" : ": FAIL"));
  for (const VerifiedPolicy& p : result.policies) text += "\n" + policy_text(p, fault);
  return text + "\n" + summary_table(result.policies);
}

}  // namespace fuseline
