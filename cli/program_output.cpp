#include "cli/program_output.h"

#include <fmt/format.h>

#include "base/format.h"
#include "base/wrap.h"
#include "cli/predict_table.h"
#include "cli/table.h"
#include "model/programs/rules.h"
#include "sim/programs/program_json.h"
#include "sim/sure/estimate_bands.h"

namespace fuseline {

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

std::string program_prediction_line(const PlanEstimate& e, const Gpu& gpu) {
  const Sureness sure(gpu, bands_of_programs());
  std::string text = fmt::format("on {}: {} µs", gpu.title, in_microseconds(e.time));
  if (const std::optional<Band> time = sure.time(e))
    text += fmt::format(", 90 % {} to {}", in_microseconds(low_end(e.time, *time)),
                        in_microseconds(high_end(e.time, *time)));
  return text + fmt::format("; HBM {} MB", megabytes(e.hbm_read + e.hbm_write));
}

std::string program_prediction_text(const PlanEstimate& e, const Gpu& gpu) {
  const Sureness sure(gpu, bands_of_programs());
  const std::string limits = fmt::format(
      "limits: {} MB compulsory, {} MB at least with this much on chip, {} µs at the fastest "
      "rates; the prediction is {:.2f} times that",
      megabytes(e.limits.compulsory), megabytes(e.limits.capacity_bound),
      in_microseconds(e.limits.time),
      e.limits.time.value() > 0 ? e.time.value() / e.limits.time.value() : 0.0);
  return wrap(program_prediction_line(e, gpu)) + wrap(limits) + "\n" +
         kernel_table(e.kernels, &sure, e.policy);
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

}  // namespace fuseline
