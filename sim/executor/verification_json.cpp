#include "sim/executor/verification_json.h"

#include <cmath>

#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "model/policy.h"
#include "sim/executor/moved_bytes.h"
#include "sim/gpu/plan_target.h"

namespace fuseline::executor {

namespace {

using nlohmann::ordered_json;

ordered_json number_or_null(double value) {
  if (std::isfinite(value)) return value;
  return nullptr;
}

ordered_json error_json(const TensorError& e) {
  ordered_json out = {{"relative_l2", number_or_null(e.relative_l2)},
                      {"max_error", number_or_null(e.largest)},
                      {"worst_tile", number_or_null(e.worst_tile)}};
  if (e.not_finite) out["not_finite_at"] = {e.not_finite->first, e.not_finite->second};
  return out;
}

ordered_json tensor_json(const ComparedTensor& t) {
  ordered_json out = {{"name", t.name}, {"kernel", t.kernel}, {"output", t.output}};
  out.update(error_json(t.error));
  out["unfused"] = error_json(t.unfused);
  if (!t.unfused_of.empty()) out["unfused"]["tensor"] = t.unfused_of;
  out["ratio"] = number_or_null(t.ratio);
  out["passed"] = t.problem.empty();
  if (!t.problem.empty()) out["problem"] = t.problem;
  return out;
}

ordered_json bytes_json(const std::vector<RequestedBytes>& moved,
                        const std::vector<Tensor>& tensors) {
  ordered_json out = ordered_json::object();
  for (const RequestedBytes& r : moved) {
    out[tensors[static_cast<std::size_t>(r.tensor.index)].name] = {
        {"loaded_bytes", r.loaded.value()}, {"stored_bytes", r.stored.value()}};
  }
  return out;
}

ordered_json policy_json(const ModelConfig& model, const Workload& workload, const Gpu& gpu,
                         const VerifiedPolicy& p) {
  const MovedBytes got = counted_bytes(p);
  const MovedBytes want = predicted_bytes(p);
  ordered_json tensors = ordered_json::array();
  for (const ComparedTensor& t : p.tensors) tensors.push_back(tensor_json(t));
  const Plan plan = make_plan(p.policy, model, workload, plan_target(gpu));
  ordered_json kernels = ordered_json::array();
  for (const CountedKernel& k : p.kernels) {
    kernels.push_back({{"name", k.name},
                       {"counted", bytes_json(k.counted, plan.graph.tensors())},
                       {"differing", k.differing}});
  }
  ordered_json not_finite;  // null
  if (p.not_finite) {
    not_finite = {{"tensor", p.not_finite->tensor},
                  {"at", {p.not_finite->row, p.not_finite->col}},
                  {"value", std::isnan(p.not_finite->value) ? "nan"
                            : p.not_finite->value > 0       ? "inf"
                                                            : "-inf"}};
    if (!p.not_finite->kernel.empty()) not_finite["kernel"] = p.not_finite->kernel;
  }
  return {{"policy", p.policy},
          {"passed", p.passed()},
          {"first_not_finite", not_finite},
          {"launches", p.launches},
          {"launches_predicted", p.launches_predicted},
          {"loaded_bytes", got.loaded.value()},
          {"stored_bytes", got.stored.value()},
          {"predicted_loaded_bytes", want.loaded.value()},
          {"predicted_stored_bytes", want.stored.value()},
          {"bytes_equal", p.bytes_equal()},
          {"tensors", tensors},
          {"kernels", kernels}};
}

}  // namespace

std::string verification_json(const ModelConfig& model, const Workload& w, const Gpu& gpu,
                              const VerifyOptions& options, const Verification& result) {
  ordered_json own = ordered_json::array();
  for (const SameMeaning& s : result.own_programs)
    own.push_back(
        {{"file", s.file}, {"tensor", s.tensor}, {"difference", s.difference}, {"same", s.same()}});
  ordered_json policies = ordered_json::array();
  for (const VerifiedPolicy& p : result.policies) policies.push_back(policy_json(model, w, gpu, p));
  ordered_json out = {{"schema", "fuseline.verification/1"},
                      {"model", model.name},
                      {"gpu", gpu.name},
                      {"phase", name_of(w.phase)},
                      {"batch", w.batch},
                      {"seq", w.seq},
                      {"context", w.context},
                      {"dtype", name_of(w.dtype)},
                      {"weights", weights_text(w)},
                      {"activations", activations_text(w)},
                      {"kv", cache_text(w)},
                      {"routing", routing_text(w.routing)},
                      {"seed", options.seed},
                      {"inputs",
                       {{"outliers", options.inputs.outliers},
                        {"scale", options.inputs.scale},
                        {"shift", options.inputs.shift},
                        {"gradient_scale", options.inputs.gradient_scale}}},
                      {"worst_ratio", kWorstRatio},
                      {"passed", result.passed()},
                      {"policies", policies}};
  if (!own.empty()) out["own_programs"] = own;
  return json_text(out);
}

}  // namespace fuseline::executor
