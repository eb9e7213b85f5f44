#include "sim/programs/program_json.h"

#include <nlohmann/json.hpp>

#include "model/programs/rules.h"
#include "sim/sure/estimate_bands.h"

namespace fuseline {

using nlohmann::ordered_json;

const Workload& bands_of_programs() {
  static const Workload forward{};
  return forward;
}

ordered_json diagnoses_json(const std::vector<Diagnosis>& diagnoses) {
  ordered_json all = ordered_json::array();
  for (const Diagnosis& d : diagnoses) {
    const InputProblem& p = d.problem;
    const std::string mend = !d.mend.empty() ? d.mend : p.nearest;
    all.push_back({{"rule", d.rule},
                   {"why", program_rule(d.rule).reason},
                   {"line", p.line},
                   {"column", p.column},
                   {"text", p.shown},
                   {"value", p.value},
                   {"message", p.message},
                   {"allowed", p.allowed},
                   {"nearest", p.nearest},
                   {"mend", mend}});
  }
  return all;
}

ordered_json program_explanation_json(const ProgramExplanation& e) {
  ordered_json programs = ordered_json::array();
  for (const ProgramCosts& p : e.programs) {
    ordered_json lines = ordered_json::array();
    for (const LineCost& l : p.lines)
      lines.push_back({{"line", l.line},
                       {"text", l.text},
                       {"loaded_bytes", l.loaded},
                       {"stored_bytes", l.stored},
                       {"numbers_per_thread", l.registers}});
    ordered_json one = {{"name", p.name}, {"lines", std::move(lines)}};
    if (p.budget) {
      const TileBudget& b = *p.budget;
      one["tile"] = {b.tile.m, b.tile.n, b.tile.k};
      one["stages"] = b.tile.stages;
      one["accumulator_registers"] = b.accumulator_registers;
      one["value_registers"] = b.value_registers;
      one["stage_bytes"] = b.stage_bytes;
      one["epilogue_bytes"] = b.epilogue_bytes;
      one["shared_bytes_per_block"] = b.shared_bytes_per_block;
    }
    programs.push_back(std::move(one));
  }
  ordered_json functions = ordered_json::array();
  for (const ExplainedFunction& f : e.functions) {
    ordered_json by = ordered_json::object();
    for (std::size_t i = 0; i < f.parameters.size(); ++i) by[f.parameters[i]] = f.derivatives[i];
    functions.push_back({{"call", f.call}, {"formula", f.formula}, {"derivatives", std::move(by)}});
  }
  return {{"functions", std::move(functions)}, {"programs", std::move(programs)}};
}

ordered_json program_prediction_json(const PlanEstimate& e, const Gpu& gpu) {
  const Sureness sure(gpu, bands_of_programs());
  ordered_json kernels = ordered_json::array();
  for (const KernelEstimate& k : e.kernels) {
    const Band time = sure.time(k, e.policy);
    kernels.push_back({{"name", k.name},
                       {"time_us", to_us(k.time)},
                       {"time_us_low", to_us(low_end(k.time, time))},
                       {"time_us_high", to_us(high_end(k.time, time))},
                       {"bound", name_of(k.bound)},
                       {"hbm_read_bytes", k.hbm_read.value()},
                       {"hbm_write_bytes", k.hbm_write.value()},
                       {"l2_bytes", k.l2.value()},
                       {"compulsory_bytes", k.compulsory.value()},
                       {"tile", k.tile}});
  }
  ordered_json out = {{"time_us", to_us(e.time)}};
  if (const std::optional<Band> time = sure.time(e)) {
    out["time_us_low"] = to_us(low_end(e.time, *time));
    out["time_us_high"] = to_us(high_end(e.time, *time));
  }
  out["hbm_bytes"] = (e.hbm_read + e.hbm_write).value();
  out["limits"] = {{"compulsory_bytes", e.limits.compulsory.value()},
                   {"capacity_bound_bytes", e.limits.capacity_bound.value()},
                   {"time_us", to_us(e.limits.time)}};
  out["kernels"] = std::move(kernels);
  return out;
}

ordered_json unfused_prediction_json(const PlanEstimate& fused, const PlanEstimate& unfused) {
  return {{"kernels", unfused.kernels.size()},
          {"time_us", to_us(unfused.time)},
          {"hbm_bytes", (unfused.hbm_read + unfused.hbm_write).value()},
          {"gain", unfused.time / fused.time}};
}

ordered_json program_verification_json(const VerifiedPrograms& v) {
  ordered_json tensors = ordered_json::array(), kernels = ordered_json::array();
  for (const VerifiedTensor& t : v.tensors)
    tensors.push_back({{"name", t.name},
                       {"program", t.program},
                       {"relative_l2", t.error},
                       {"allowed", t.allowed},
                       {"agrees", t.agrees()}});
  for (const VerifiedKernel& k : v.kernels)
    kernels.push_back({{"name", k.name},
                       {"loaded_bytes", k.loaded},
                       {"stored_bytes", k.stored},
                       {"differing", k.differing}});
  return {{"passed", v.passed()}, {"tensors", std::move(tensors)}, {"kernels", std::move(kernels)}};
}

}  // namespace fuseline
