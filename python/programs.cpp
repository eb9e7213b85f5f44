#include "python/programs.h"

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <pybind11/stl.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json_text.h"
#include "model/programs/gradient.h"
#include "model/programs/own_plan.h"
#include "model/programs/program_file.h"
#include "model/programs/unfused_programs.h"
#include "python/interruptible.h"
#include "python/words.h"
#include "sim/programs/checked_file.h"
#include "sim/programs/program_json.h"
#include "sim/selection/selection.h"
#include "sim/selection/words.h"

namespace fuseline::python {

namespace {

namespace py = pybind11;
using nlohmann::ordered_json;

using NewSizes = std::map<std::string, std::int64_t>;

// A text of programs with the GPU that it is checked for. Nothing changes it afterwards, so threads
// may share it.
class OwnPrograms {
 public:
  OwnPrograms(ProgramFile file, const std::optional<std::string>& gpu, const NewSizes& sizes)
      : file_(std::move(file)) {
    for (const auto& [letter, size] : sizes)
      if (size < 1 || size > kLargestSize)
        throw InputError({.file = kCommandLine,
                          .field = "sizes",
                          .value = letter + "=" + std::to_string(size),
                          .message = "is out of range",
                          .allowed = "1 to " + std::to_string(kLargestSize)});
    if (!sizes.empty()) file_ = with_sizes(file_, sizes, {.file = kCommandLine, .field = "sizes"});
    gpu_ = load_gpu_option(gpu.value_or(file_.target.empty() ? "h100" : file_.target));
    mistakes_ = mistakes_on(file_, gpu_);
  }

  [[nodiscard]] const std::string& text() const { return file_.source->text; }
  [[nodiscard]] const std::string& gpu() const { return gpu_.name; }
  [[nodiscard]] bool legal() const { return mistakes_.empty(); }
  [[nodiscard]] std::string diagnoses() const { return json_text(diagnoses_json(mistakes_)); }
  [[nodiscard]] std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const Kernel& kernel : file_.plan.kernels)
      for (const Program& program : kernel.phases) names.push_back(program.name);
    return names;
  }
  [[nodiscard]] NewSizes sizes() const { return file_.sizes.all(); }

  [[nodiscard]] std::string predict() const {
    const PlanEstimate estimate = simulate(legal_plan(), gpu_, Fidelity::hierarchy);
    ordered_json out = program_prediction_json(estimate, gpu_);
    if (const std::optional<Plan> apart = unfused_programs(file_))
      out["unfused"] =
          unfused_prediction_json(estimate, simulate(*apart, gpu_, Fidelity::hierarchy));
    return json_text(out);
  }

  [[nodiscard]] std::string verify(std::uint64_t seed, const executor::Workers& workers) const {
    return json_text(program_verification_json(verify_programs(legal_plan(), gpu_, seed, workers)));
  }

  [[nodiscard]] std::string explain() const {
    return json_text(program_explanation_json(explain_programs(file_, legal_plan(), gpu_)));
  }

  // The gradient's text, and that of the forward programs that belong to it.
  [[nodiscard]] std::pair<std::string, std::string> gradient(const std::vector<std::string>& of,
                                                             bool kept) const {
    refuse_mistakes();
    const ProgramGradient made =
        program_gradient(file_, of, kept ? Products::kept : Products::again);
    return {gradient_text(made.plan, file_.target), gradient_text(made.forward, file_.target)};
  }

 private:
  void refuse_mistakes() const {
    if (!legal()) throw InputError(mistakes_.front().problem);
  }
  [[nodiscard]] Plan legal_plan() const {
    refuse_mistakes();
    return whole_plan(file_);
  }

  ProgramFile file_;
  Gpu gpu_;
  std::vector<Diagnosis> mistakes_;
};

OwnPrograms program_of_file(const py::object& path, const std::optional<std::string>& gpu,
                            const NewSizes& sizes) {
  const std::string name = text_of_value("file", path);
  const py::gil_scoped_release release;
  return {read_program_file(name), gpu, sizes};
}

OwnPrograms program_of_text(const std::string& text, const std::optional<std::string>& gpu,
                            const NewSizes& sizes) {
  return {read_program_text(text, "text"), gpu, sizes};
}

std::string verify_interruptibly(const OwnPrograms& programs, const std::optional<int>& threads,
                                 std::uint64_t seed) {
  executor::Workers workers;
  workers.threads = threads ? static_cast<int>(parse_whole_number(
                                  "threads", std::to_string(*threads), 1, kMostThreads))
                            : executor::available_threads();
  return interruptible([&](const std::atomic<bool>& stop) {
    executor::Workers stoppable = workers;
    stoppable.stop = &stop;
    return programs.verify(seed, stoppable);
  });
}

}  // namespace

void bind_programs(py::module_& m) {
  const auto unlocked = py::call_guard<py::gil_scoped_release>();
  py::class_<OwnPrograms>(m, "OwnPrograms")
      .def("text", &OwnPrograms::text)
      .def("gpu", &OwnPrograms::gpu)
      .def("legal", &OwnPrograms::legal)
      .def("diagnoses", &OwnPrograms::diagnoses)
      .def("names", &OwnPrograms::names)
      .def("sizes", &OwnPrograms::sizes)
      .def("predict", &OwnPrograms::predict, unlocked)
      .def("explain", &OwnPrograms::explain, unlocked)
      .def("gradient", &OwnPrograms::gradient, unlocked)
      .def("verify", &verify_interruptibly);
  m.def("program_of_file", &program_of_file);
  m.def("program_of_text", &program_of_text, unlocked);
}

}  // namespace fuseline::python
