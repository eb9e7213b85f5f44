// The extension module fuseline._native: calls into the layers below, which return handles or JSON.
// What a person sees, classes with documentation, is made of them in python/fuseline.
#include <atomic>
#include <chrono>

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "base/version.h"
#include "model/explain.h"
#include "python/errors.h"
#include "python/interruptible.h"
#include "python/programs.h"
#include "python/words.h"
#include "sim/executor/verification_json.h"
#include "sim/judge/judged_json.h"
#include "sim/report/chrome_trace.h"
#include "sim/report/error_table_json.h"
#include "sim/report/explained_plan.h"
#include "sim/report/html_report.h"
#include "sim/report/json_output.h"
#include "sim/report/listing.h"
#include "sim/report/prediction_charts.h"
#include "sim/search/search.h"
#include "sim/search/search_json.h"
#include "sim/selection/compare_request.h"
#include "sim/selection/grid.h"
#include "sim/selection/judge_request.h"
#include "sim/selection/report_request.h"
#include "sim/selection/search_request.h"
#include "sim/selection/verdict_request.h"
#include "sim/sure/estimate_bands.h"
#include "sim/verdict/verdict_json.h"

namespace fuseline::python {

namespace {

namespace py = pybind11;

using Release = py::gil_scoped_release;

// What predict() made. Nothing changes it afterwards, so threads may share it.
class PredictedCase {
 public:
  PredictedCase(Selection what, std::vector<Prediction> predictions)
      : what_(std::move(what)), predictions_(std::move(predictions)) {}

  [[nodiscard]] std::size_t size() const { return predictions_.size(); }
  [[nodiscard]] const PlanEstimate& at(std::size_t index) const {
    if (index >= predictions_.size()) throw py::index_error("there is no such prediction");
    return predictions_[index].block;
  }
  [[nodiscard]] std::optional<Band> time_band(std::size_t index) const {
    return Sureness(what_.gpu, what_.workload).time(at(index));
  }
  [[nodiscard]] const Selection& what() const { return what_; }
  [[nodiscard]] const std::vector<Prediction>& predictions() const { return predictions_; }

 private:
  Selection what_;
  std::vector<Prediction> predictions_;
};

PredictedCase predict_request(const Request& request) {
  Selection selection = resolve_selection(request.scenario, request.words);
  if (request.price) selection.price = parse_price(*request.price, selection.layers);
  std::optional<Measurements> measurements;
  if (selection.measurements) measurements = load_measurements(*selection.measurements);
  std::vector<Prediction> predictions;
  for (const std::string& policy : selection.policies)
    predictions.push_back(
        predict(plan_of(selection, policy), selection, measurements ? &*measurements : nullptr));
  return {std::move(selection), std::move(predictions)};
}

// Plans with their reasons; nothing changes them afterwards.
class ExplainedCase {
 public:
  explicit ExplainedCase(const Request& request)
      : what_(resolve_selection(request.scenario, request.words)) {
    for (const std::string& policy : what_.policies)
      plans_.push_back(explain_on(plan_of(what_, policy), what_.gpu));
  }

  [[nodiscard]] std::size_t size() const { return plans_.size(); }
  [[nodiscard]] const ExplainedPlan& at(std::size_t index) const {
    if (index >= plans_.size()) throw py::index_error("there is no such plan");
    return plans_[index];
  }
  [[nodiscard]] std::string json() const { return explanations_json(what_, plans_); }

 private:
  Selection what_;
  std::vector<ExplainedPlan> plans_;
};

// A sweep's cases; nothing changes them afterwards.
struct SweptCases {
  std::vector<SweptCase> cases;
};

std::string verify_request(const Request& request, const std::atomic<bool>& stop) {
  executor::VerifyOptions options = verify_options(request.verify);
  options.workers.stop = &stop;
  const Selection s = verify_selection(request.scenario, request.words, request.verify);
  const executor::Verification result =
      executor::verify(s.model, s.workload, s.policies, s.gpu, options);
  return executor::verification_json(s.model, s.workload, s.gpu, options, result);
}

std::string verdict_request(const Request& request, const std::atomic<bool>& stop) {
  const Selection s = resolve_selection(request.scenario, request.words);
  VerdictOptions options = verdict_options(s, request.scenario, request.on, request.quick);
  options.stop = &stop;
  const auto verdict = verdict_of_block(s, options);
  return verdict ? verdict_json(s, *verdict) : std::string();
}

// Without cases when it was stopped, which interruptible() then tells Python.
SweptCases sweep_request(const Request& request, const std::atomic<bool>& stop) {
  auto swept = predict_grid(resolve_grid(request.scenario, request.words, request.price), &stop);
  return {swept ? std::move(*swept) : std::vector<SweptCase>()};
}

std::string compare_request(const std::vector<std::string>& files, const Request& request) {
  const MeasuredComparison compared = compare_measured(files, request.words);
  return error_table_json(compared.measurements, compared.table, compared.coverage);
}

std::string gemm_request(const GemmWords& words) {
  const GemmRequest request = resolve_gemm(words);
  return gemm_json(request, estimate_library_gemm(request.gemm, request.gpu, request.fidelity));
}

std::string listing_text(const std::string& topic) {
  parse_word("topic", topic, listing_topics());
  return listing_json(topic, listing_of(topic));
}

std::string search_request(const Request& request, const std::atomic<bool>& stop) {
  const Selection selection = resolve_selection(request.scenario, request.words);
  SearchOptions how = search_options(selection, request.scenario, request.search);
  how.stop = &stop;
  return search_json(selection, search_block(selection, how));
}

// What the same predictions cost without Python: seconds each, the mean of `repeats`.
double seconds_a_prediction(const Request& request, int repeats) {
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < repeats; ++i) (void)predict_request(request);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() / repeats;
}

// Copies of one prediction, made ahead: what a call takes that hands one of them out is what Python
// adds to a prediction.
class ReadyPredictions {
 public:
  ReadyPredictions(const py::dict& keywords, std::size_t count)
      : ready_(count, predict_request(request_of(keywords))) {}

  PredictedCase take(const py::dict& keywords) {
    const Request request = request_of(keywords);
    const Release release;
    if (ready_.empty()) throw py::index_error("all ready predictions were taken");
    PredictedCase out = std::move(ready_.back());
    ready_.pop_back();
    return out;
  }

 private:
  std::vector<PredictedCase> ready_;
};

void bind_predicted_case(py::module_& m) {
  const auto microseconds_at = [](auto end) {
    return [end](const PredictedCase& p, std::size_t i) -> std::optional<double> {
      const auto band = p.time_band(i);
      if (!band) return std::nullopt;
      return to_us(p.at(i).time * end(*band));
    };
  };
  py::class_<ReadyPredictions>(m, "ReadyPredictions")
      .def(py::init<const py::dict&, std::size_t>())
      .def("take", &ReadyPredictions::take);
  py::class_<PredictedCase>(m, "PredictedCase")
      .def("__len__", &PredictedCase::size)
      .def("policy", [](const PredictedCase& p, std::size_t i) { return p.at(i).policy; })
      .def("time_us", [](const PredictedCase& p, std::size_t i) { return to_us(p.at(i).time); })
      .def("time_us_low", microseconds_at([](const Band& band) { return band.low; }))
      .def("time_us_high", microseconds_at([](const Band& band) { return band.high; }))
      .def("flops", [](const PredictedCase& p, std::size_t i) { return p.at(i).flops.value(); })
      .def("hbm_read_bytes",
           [](const PredictedCase& p, std::size_t i) { return p.at(i).hbm_read.value(); })
      .def("hbm_write_bytes",
           [](const PredictedCase& p, std::size_t i) { return p.at(i).hbm_write.value(); })
      .def("l2_bytes", [](const PredictedCase& p, std::size_t i) { return p.at(i).l2.value(); })
      .def("launches", [](const PredictedCase& p, std::size_t i) { return p.at(i).launches; })
      .def(
          "json",
          [](const PredictedCase& p) { return predictions_json(p.what(), p.predictions()); },
          py::call_guard<Release>())
      .def("times_svg",
           [](const PredictedCase& p) { return draw_times(p.what(), p.predictions()).element(); })
      .def("traffic_svg",
           [](const PredictedCase& p) { return draw_traffic(p.what(), p.predictions()).element(); })
      .def("timelines_svg",
           [](const PredictedCase& p) { return draw_timelines(p.predictions()).element(); })
      .def("trace", [](const PredictedCase& p) { return chrome_trace(p.what(), p.predictions()); });
}

void bind_plans_and_sweeps(py::module_& m) {
  py::class_<ExplainedCase>(m, "ExplainedCase")
      .def("__len__", &ExplainedCase::size)
      .def("json", &ExplainedCase::json, py::call_guard<Release>())
      .def("text", [](const ExplainedCase& e, std::size_t i) { return explain_text(e.at(i).what); })
      .def("svg",
           [](const ExplainedCase& e, std::size_t i) { return draw_plan(e.at(i)).element(); });
  py::class_<SweptCases>(m, "SweptCases")
      .def(
          "json", [](const SweptCases& s) { return sweep_json(s.cases); },
          py::call_guard<Release>())
      .def("svg", [](const SweptCases& s) { return draw_sweep(s.cases).element(); });
}

}  // namespace

PYBIND11_MODULE(_native, m) {
  m.doc() = "Calls into fuseline's layers; use the package fuseline instead.";
  translate_errors();
  m.attr("version") = kVersion;
  bind_predicted_case(m);
  bind_plans_and_sweeps(m);
  bind_programs(m);
  m.def("predict", [](const py::dict& keywords) {
    const Request request = request_of(keywords);
    const Release release;
    return predict_request(request);
  });
  m.def("explain", [](const py::dict& keywords) {
    const Request request = request_of(keywords);
    const Release release;
    return ExplainedCase(request);
  });
  m.def("report", [](const py::dict& keywords, const std::optional<std::string>& measurements) {
    const Request request = request_of(keywords);
    const Release release;
    return html_report(report_case(request.scenario, request.words, measurements));
  });
  m.def("verify", [](const py::dict& keywords) {
    const Request request = request_of(keywords);
    return interruptible(
        [&](const std::atomic<bool>& stop) { return verify_request(request, stop); });
  });
  m.def("verdict", [](const py::dict& keywords) {
    const Request request = request_of(keywords);
    return interruptible(
        [&](const std::atomic<bool>& stop) { return verdict_request(request, stop); });
  });
  m.def("search", [](const py::dict& keywords) {
    const Request request = request_of(keywords);
    return interruptible(
        [&](const std::atomic<bool>& stop) { return search_request(request, stop); });
  });
  m.def("sweep", [](const py::dict& keywords) {
    const Request request = request_of(keywords);
    return interruptible(
        [&](const std::atomic<bool>& stop) { return sweep_request(request, stop); });
  });
  m.def("compare", [](const std::vector<std::string>& files, const py::dict& keywords) {
    const Request request = request_of(keywords);
    const Release release;
    return compare_request(files, request);
  });
  m.def("gemm", [](const py::dict& keywords) {
    const GemmWords words = gemm_words_of(keywords);
    const Release release;
    return gemm_request(words);
  });
  m.def(
      "judge",
      [](const std::optional<std::string>& path, const std::optional<std::string>& gpu) {
        return judged_json(judge_figures(path, gpu));
      },
      py::call_guard<Release>());
  m.def("listing", &listing_text, py::call_guard<Release>());
  m.def("seconds_a_prediction", [](const py::dict& keywords, int repeats) {
    const Request request = request_of(keywords);
    const Release release;
    return seconds_a_prediction(request, repeats);
  });
}

}  // namespace fuseline::python
