#include "sim/programs/program_costs.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "model/primitives/values.h"

namespace fuseline {

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

}  // namespace fuseline
