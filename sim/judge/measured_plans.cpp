#include "sim/judge/measured_plans.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/csv.h"
#include "base/error.h"
#include "model/config/model_files.h"
#include "model/policy.h"
#include "model/programs/legality.h"
#include "model/programs/program_file.h"
#include "sim/block/estimate.h"
#include "sim/gpu/plan_target.h"
#include "sim/measured/measurement.h"
#include "sim/sure/estimate_bands.h"

namespace fuseline {

namespace {

std::shared_ptr<const Plan> legal_plan(const std::string& path) {
  ProgramFile file = read_program_file(path);
  const std::vector<Diagnosis> wrong = check_programs(file);
  if (!wrong.empty()) throw InputError(wrong.front().problem);
  if (!file.has_operators)
    throw InputError({.file = path,
                      .message = "holds programs without the operators of a block",
                      .allowed = "a plan of search --output"});
  return std::make_shared<const Plan>(std::move(file.plan));
}

const KernelEstimate& kernel_apart(const PlanEstimate& e, const std::string& kind,
                                   const std::string& file) {
  const auto found = std::ranges::find(e.kernels, kind, &KernelEstimate::judged_apart);
  if (found == e.kernels.end())
    throw InputError({.file = file,
                      .field = "kind",
                      .value = kind,
                      .message = "no kernel of this row's plan is of this kind",
                      .allowed = "the kind of a kernel of the plan"});
  return *found;
}

Seconds micros(const CsvTable& csv, std::size_t row, const char* column) {
  return Seconds(1e-6 * csv.positive(row, column));
}

}  // namespace

std::vector<MeasuredPlan> load_measured_plans(const std::string& csv_file) {
  const CsvTable csv(csv_file);
  const std::filesystem::path folder = std::filesystem::path(csv_file).parent_path();
  std::vector<MeasuredPlan> plans;
  for (std::size_t row = 0; row < csv.rows(); ++row) {
    MeasuredPlan p;
    p.gpu = csv.text(row, "gpu");
    p.model = csv.text(row, "model");
    p.workload.phase = parse_phase(csv.text(row, "phase"), "phase");
    p.workload.batch = csv.whole(row, "batch", 1);
    p.workload.seq = csv.whole(row, "seq", 1);
    p.workload.context = csv.whole(row, "context");
    p.rival = csv.text(row, "rival");
    p.time = micros(csv, row, "plan_us");
    p.rival_time = micros(csv, row, "rival_us");
    p.kind = csv.text(row, "kind");
    if (std::ranges::count(kinds_judged_apart(), p.kind) == 0)
      csv.fail(row, "kind", "is no kind that is judged apart", kinds_judged_apart().front());
    p.plan = legal_plan((folder / csv.text(row, "plan")).string());
    plans.push_back(std::move(p));
  }
  return plans;
}

std::vector<Residual> plan_rows(const std::string& folder) {
  const std::string file = (std::filesystem::path(folder) / "plans.csv").string();
  std::vector<Residual> rows;
  for (const MeasuredPlan& p : load_measured_plans(file)) {
    const Gpu gpu = load_gpu(p.gpu);
    const SimulationOptions timed{.replay = true, .rotating = true, .runs = 2};
    const PlanEstimate e = simulate(*p.plan, gpu, Fidelity::hierarchy, timed);
    const PlanEstimate rival =
        simulate(make_plan(p.rival, load_model(p.model), p.workload, plan_target(gpu)), gpu,
                 Fidelity::hierarchy, timed);
    const KernelEstimate& kernel = kernel_apart(e, p.kind, file);
    const Phase phase = p.workload.phase;
    const BlockCase block{.model = p.model, .execution = p.kind, .workload = p.workload};
    const auto add = [&](WorkClass work, double predicted, double measured) {
      rows.push_back({.work = std::move(work),
                      .model = p.model,
                      .where = gpu.name + " " + block.label(),
                      .standing = standing_of(gpu),
                      .predicted = predicted,
                      .measured = measured,
                      .gpu = gpu.name});
    };
    add(time_class(e, phase), e.time.value(), p.time.value());
    const bool slower = e.time > rival.time;  // a gain's row is of the faster as predicted
    const double gain = rival.time / e.time, measured = p.rival_time / p.time;
    add(gain_class(gain_side(rival, phase), gain_side(e, phase), gain), slower ? 1 / gain : gain,
        slower ? 1 / measured : measured);
    add(time_class(kernel, phase, maker_of(e.policy)), kernel.time.value(),
        (kernel.time + (p.time - p.rival_time) - (e.time - rival.time)).value());
  }
  return rows;
}

}  // namespace fuseline
