#include "cli/program_output.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "base/format.h"
#include "base/wrap.h"
#include "cli/predict_table.h"
#include "cli/table.h"
#include "model/primitives/values.h"
#include "model/programs/legality.h"
#include "model/programs/rules.h"
#include "sim/sure/estimate_bands.h"

namespace fuseline {

using nlohmann::ordered_json;

namespace {

// The lines of a mend as they are.
std::string mend_text(const std::string& mend) {
  std::string text;
  for (std::size_t begin = 0; begin < mend.size();) {
    const std::size_t end = std::min(mend.find('\n', begin), mend.size());
    text += (begin == 0 ? "  write: " : "         ") + mend.substr(begin, end - begin) + "\n";
    begin = end + 1;
  }
  return text;
}

}  // namespace

std::string diagnoses_text(const std::vector<Diagnosis>& diagnoses) {
  std::string text;
  for (const Diagnosis& d : diagnoses) {
    text += fmt::format("fuseline: error [{}]: {}\n", d.rule, format_problem(d.problem));
    text += wrap("  why: " + std::string(program_rule(d.rule).reason), "    ");
    text += mend_text(d.mend);
  }
  text += fmt::format("{} mistake{}\n", diagnoses.size(), diagnoses.size() == 1 ? "" : "s");
  return text;
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

ProgramExplanation explain_programs(const ProgramFile& file, const Plan& plan, const Gpu& gpu) {
  ProgramExplanation e;
  for (const DefinedFunction& f : file.functions) {
    const std::vector<std::string>& parameters = f.function.parameters();
    ExplainedFunction& known = e.functions.emplace_back(
        ExplainedFunction{.call = fmt::format("{}({})", f.name, fmt::join(parameters, ", ")),
                          .formula = f.function.text(),
                          .parameters = parameters,
                          .derivatives = {}});
    for (std::size_t i = 0; i < parameters.size(); ++i)
      known.derivatives.push_back(f.function.derivative(i).text());
  }
  for (std::size_t k = 0; k < plan.kernels.size(); ++k)
    for (std::size_t i = 0; i < plan.kernels[k].phases.size(); ++i) {
      const Program& p = plan.kernels[k].phases[i];
      const ProgramPlaces& places = file.places[k][i];
      ProgramCosts costs{.name = p.name, .budget = {}, .lines = {}};
      const bool gemm = std::holds_alternative<GemmMainloop>(p.mainloop);
      if (gemm && plan.kernels[k].implementation == Implementation::epilogue_gemm)
        costs.budget = tile_budget(plan, p, gpu);
      const ValueAnalysis values = analyse(p);
      const auto line_of = [&](Position at) {
        std::string text = file.source->line(at.line);
        return text.substr(std::min(text.find_first_not_of(' '), text.size()));
      };
      LineCost mainloop{.line = places.mainloop.line, .text = line_of(places.mainloop)};
      for (const Operand& o : loads(p)) mainloop.loaded += plan.graph.bytes(o).value();
      for (const Operand& o : stores(p)) mainloop.stored += plan.graph.bytes(o).value();
      std::vector<LineCost> body;
      const auto add = [&](const Primitive& primitive, Position at, bool in_body) {
        LineCost line{.line = at.line, .text = line_of(at)};
        for (const Access& a : primitive.accesses()) {
          const std::int64_t bytes = plan.graph.bytes(a.moved()).value();
          (a.store ? line.stored : line.loaded) += bytes;
          (a.store ? mainloop.stored : mainloop.loaded) -= bytes;
        }
        if (costs.budget && in_body)
          for (const Value v : primitive.defines())
            if (values.knows(v) && values.form(v) == Form::tile)
              line.registers += costs.budget->accumulator_registers * values.width(v) /
                                std::max<std::int64_t>(1, values.width(0));
        body.push_back(std::move(line));
      };
      for (std::size_t j = 0; j < p.prologue.size(); ++j)
        add(p.prologue[j], places.prologue[j], false);
      for (std::size_t j = 0; j < p.body.size(); ++j) add(p.body[j], places.body[j], true);
      if (costs.budget) mainloop.registers = costs.budget->accumulator_registers;
      costs.lines.push_back(std::move(mainloop));
      costs.lines.insert(costs.lines.end(), body.begin(), body.end());
      e.programs.push_back(std::move(costs));
    }
  return e;
}

std::string program_explanation_text(const ProgramExplanation& e) {
  std::string text;
  for (const ExplainedFunction& f : e.functions) {
    text += wrap(f.call + " = " + f.formula, "    ");
    for (std::size_t i = 0; i < f.parameters.size(); ++i)
      text += wrap(fmt::format("  by {}: {}", f.parameters[i], f.derivatives[i]), "    ");
  }
  for (const ProgramCosts& p : e.programs) {
    text += (text.empty() ? "" : "\n") + p.name + "\n";
    if (p.budget) {
      const TileBudget& b = *p.budget;
      text += fmt::format(
          "  tile {} x {} x {}, {} stages; a thread holds {} accumulators, and at most {} "
          "registers "
          "of values\n  shared memory: {:.1f} KiB of stages, {:.1f} KiB of loaded tiles, of {} "
          "KiB\n",
          b.tile.m, b.tile.n, b.tile.k, b.tile.stages, b.accumulator_registers, b.value_registers,
          static_cast<double>(b.stage_bytes) / 1024, static_cast<double>(b.epilogue_bytes) / 1024,
          b.shared_bytes_per_block / 1024);
    }
    std::vector<std::vector<std::string>> rows;
    for (const LineCost& l : p.lines)
      rows.push_back({std::to_string(l.line), l.text.substr(0, l.text.find("  #")),
                      l.loaded > 0 ? megabytes(Bytes(l.loaded)) : "-",
                      l.stored > 0 ? megabytes(Bytes(l.stored)) : "-",
                      l.registers > 0 ? std::to_string(l.registers) : "-"});
    text += format_table(
        {{"line"}, {"program", Align::left}, {"loads MB"}, {"stores MB"}, {"numbers/thread"}},
        rows);
  }
  return text;
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

namespace {

// Programs of one's own have no workload; bands are those of forward work in bf16.
const Workload& plain_workload() {
  static const Workload forward{};
  return forward;
}

}  // namespace

std::string program_prediction_line(const PlanEstimate& e, const Gpu& gpu) {
  const Sureness sure(gpu, plain_workload());
  std::string text = fmt::format("on {}: {} µs", gpu.title, in_microseconds(e.time));
  if (const std::optional<Band> time = sure.time(e))
    text += fmt::format(", 90 % {} to {}", in_microseconds(low_end(e.time, *time)),
                        in_microseconds(high_end(e.time, *time)));
  return text + fmt::format("; HBM {} MB", megabytes(e.hbm_read + e.hbm_write));
}

std::string program_prediction_text(const PlanEstimate& e, const Gpu& gpu) {
  const Sureness sure(gpu, plain_workload());
  const std::string limits = fmt::format(
      "limits: {} MB compulsory, {} MB at least with this much on chip, {} µs at the fastest "
      "rates; the prediction is {:.2f} times that",
      megabytes(e.limits.compulsory), megabytes(e.limits.capacity_bound),
      in_microseconds(e.limits.time),
      e.limits.time.value() > 0 ? e.time.value() / e.limits.time.value() : 0.0);
  return wrap(program_prediction_line(e, gpu)) + wrap(limits) + "\n" +
         kernel_table(e.kernels, &sure, e.policy);
}

ordered_json program_prediction_json(const PlanEstimate& e, const Gpu& gpu) {
  const Sureness sure(gpu, plain_workload());
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

std::string program_verification_text(const VerifiedPrograms& v) {
  std::vector<std::vector<std::string>> rows;
  for (const VerifiedTensor& t : v.tensors)
    rows.push_back({t.name, t.program, fmt::format("{:.2e}", t.error),
                    fmt::format("{:.2e}", t.allowed), t.agrees() ? "agrees" : "DIFFERS"});
  std::string text = format_table({{"tensor", Align::left},
                                   {"program", Align::left},
                                   {"relative L2"},
                                   {"allowed"},
                                   {"verdict", Align::left}},
                                  rows);
  std::int64_t loaded = 0, stored = 0;
  std::string differing;
  for (const VerifiedKernel& k : v.kernels) {
    loaded += k.loaded;
    stored += k.stored;
    for (const std::string& t : k.differing)
      differing += fmt::format("  {} of {}: not as predicted\n", t, k.name);
  }
  text += fmt::format("bytes counted: {} MB loaded, {} MB stored in {} kernels; {}\n",
                      megabytes(Bytes(loaded)), megabytes(Bytes(stored)), v.kernels.size(),
                      differing.empty() ? "as predicted, tensor by tensor" : "NOT as predicted:");
  return text + differing + (v.passed() ? "pass\n" : "FAIL\n");
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
