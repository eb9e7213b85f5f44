#include "gui/model/validation_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/format.h"
#include "gui/model/chart_colours.h"
#include "gui/model/text.h"
#include "sim/judge/standard_predictors.h"

namespace fuseline::gui {

namespace {

double number_of(const Amount& amount) {
  if (const auto* bytes = std::get_if<Bytes>(&amount)) return bytes->as_double();
  return to_us(std::get<Seconds>(amount));
}

std::string text_of(const Amount& amount) {
  if (const auto* bytes = std::get_if<Bytes>(&amount)) return exact_bytes(*bytes);
  return short_time(std::get<Seconds>(amount));
}

bool counts_bytes(Quantity q) { return q == Quantity::block_hbm || q == Quantity::gemm_kernel_hbm; }

const char* title_of(Quantity q) {
  switch (q) {
    case Quantity::block_time:
      return "Time of blocks";
    case Quantity::kernel_time:
      return "kernel time";
    case Quantity::gemm_time:
      return "Time of library GEMMs";
    case Quantity::block_hbm:
      return "HBM traffic of blocks";
    case Quantity::gemm_kernel_hbm:
      return "HBM traffic of GEMM kernels";
  }
  return "";
}

ScatterPoint point_of(const std::string& label, Quantity quantity, const Amount& measured,
                      const Amount& predicted, const std::string& predictor) {
  ScatterPoint p;
  p.label = label;
  p.quantity = quantity;
  p.at = {number_of(measured), number_of(predicted)};
  p.error = (p.at.y - p.at.x) / p.at.x;
  p.inside_band = std::abs(p.error) <= kBand;
  p.tooltip = fmt::format("{}\nmeasured {}\npredicted {} ({})\n{}", label, text_of(measured),
                          text_of(predicted), predictor, signed_percent_text(p.error));
  return p;
}

// Axes from the measured values alone, so that a bad prediction does not shrink the picture of the
// others; what lies beyond is clamped by the widget and keeps its numbers.
void finish(Scatter& scatter, std::size_t judged_predictor) {
  const bool bytes = counts_bytes(scatter.quantity);
  scatter.title = title_of(scatter.quantity);
  scatter.x_label = bytes ? "measured, bytes" : "measured, µs";
  scatter.y_label = bytes ? "predicted, bytes" : "predicted, µs";
  double low = 1e300, high = 0;
  for (const ScatterPoint& p : scatter.points) {
    low = std::min(low, p.at.x);
    high = std::max(high, p.at.x);
    if (p.predictor != judged_predictor) continue;
    ++scatter.judged;
    scatter.inside_band += p.inside_band ? 1 : 0;
  }
  scatter.axis = {std::pow(10.0, std::floor(std::log10(low))),
                  std::pow(10.0, std::ceil(std::log10(high)))};
  if (scatter.axis.low == scatter.axis.high) scatter.axis.high *= 10;
}

std::string source_of_row(const MeasurementMeta& meta) {
  std::string text = meta.title;
  for (const std::string& part : {meta.device, meta.toolkit, meta.framework, meta.date}) {
    if (!part.empty()) text += (text.empty() ? "" : "; ") + part;
  }
  return text;
}

ErrorLine line_of(const ErrorRow& row) {
  ErrorLine line;
  line.what = row.what;
  line.target = row.target;
  for (std::size_t p = 0; p < row.by_predictor.size(); ++p) {
    const ErrorStats& s = row.by_predictor[p];
    if (s.cases == 0) {
      line.cells.emplace_back("–");
    } else if (row.is_worst_case) {
      line.cells.push_back(signed_percent_text(s.worst));
    } else {
      line.cells.push_back(fmt::format("{} ({})", percent(s.mape), signed_percent_text(s.bias)));
    }
    line.meets_target.push_back(row.meets_target(p));
  }
  return line;
}

Subject about_all(const Gpu& gpu, const std::string& source) {
  return {.model = kAllCases,
          .gpu = gpu.name,
          .machine = gpu.title,
          .phase = kAllCases,
          .policy = kAllCases,
          .source = source};
}

// A library GEMM is of no model and has its sizes in its label.
Subject about_case(const JudgedCase& c, const std::string& predictor, const Gpu& gpu) {
  Subject s = about_all(gpu, predictor);
  if (c.block.model.empty()) {
    s.model = c.label;
    return s;
  }
  PredictionCase block;
  block.model.name = c.block.model;
  block.gpu = gpu;
  block.workload = c.block.workload;
  return subject_of(block, c.block.execution, predictor);
}

}  // namespace

ValidationChart validation_of_runs(const Results& results) {
  ValidationChart chart;
  chart.predictors = {"as simulated"};
  Scatter time, traffic;
  time.quantity = Quantity::block_time;
  traffic.quantity = Quantity::block_hbm;
  for (const RunView& view : results.runs) {
    if (!view.ok() || !view.run.is_measurement() || !view.result->predicted) continue;
    const RunResult& r = *view.result;
    const Totals predicted = totals_of(*r.predicted);
    const auto add = [&](Scatter& scatter, const Amount& measured, const Amount& said) {
      scatter.points.push_back(
          point_of(view.label(), scatter.quantity, measured, said, chart.predictors.front()));
      scatter.points.back().colour = colour_of_run(results, view.run.id);
      scatter.points.back().run = view.run.id;
      scatter.points.back().about =
          subject_of(*r.block, view.run.policy, name_of(r.block->fidelity));
    };
    if (chart.source.find(r.source) == std::string::npos) {
      chart.source += (chart.source.empty() ? "" : " | ") + r.source;
    }
    add(time, r.totals.time, predicted.time);
    if (r.totals.has_bytes) add(traffic, r.totals.hbm(), predicted.hbm());
  }
  for (Scatter* scatter : {&time, &traffic}) {
    if (scatter->points.empty()) continue;
    finish(*scatter, 0);
    chart.scatters.push_back(std::move(*scatter));
  }
  if (chart.scatters.empty()) {
    chart.problem =
        "no run is a measurement: add one from a folder of measurements, or judge all of them";
  }
  return chart;
}

ErrorTable judge(const Gpu& gpu, const Measurements& measurements, const std::stop_token& stop,
                 const Progress& progress) {
  std::vector<Predictor> predictors = standard_predictors(gpu, measurements);
  const std::size_t total =
      predictors.size() *
      (measurements.blocks.size() + measurements.traces.size() + measurements.gemms.size());
  std::size_t done = 0;
  const auto step = [&stop, &progress, &done, total] {
    throw_if_stopped(stop);
    if (progress) progress(std::min(++done, total), total);
  };
  for (Predictor& p : predictors) {
    p.block = [inner = std::move(p.block), &step](const BlockCase& c) {
      step();
      return inner(c);
    };
    p.gemm = [inner = std::move(p.gemm), &step](const MeasuredGemm& g) {
      step();
      return inner(g);
    };
  }
  return validate(measurements, predictors);
}

Gpu measured_gpu(const Setup& setup, const Measurements& measurements) {
  const std::string& name = measurements.meta.gpu;
  if (name.empty()) {
    throw InputError({.file = measurements.path,
                      .field = "gpu",
                      .message = "is not recorded, so nothing can be predicted for it",
                      .allowed = "gpu = \"NAME\" in meta.toml, the GPU that was measured"});
  }
  Gpu chosen = load_gpu(setup.gpu);
  return chosen.name == name ? chosen : load_gpu(name);
}

std::string whose_predictions(const Gpu& measured, const Gpu& chosen) {
  if (measured.name == chosen.name) return {};
  return fmt::format(
      "All of these were measured on {} and are judged by predictions for {}. The session's GPU is "
      "{}, of which nothing is judged here.",
      measured.title, measured.title, chosen.title);
}

ValidationChart validation_chart(const ErrorTable& table, const MeasurementMeta& meta,
                                 const Gpu& gpu) {
  ValidationChart chart;
  chart.predictors = table.predictors;
  chart.not_judged = table.not_judged;
  chart.source = source_of_row(meta);
  const auto hierarchy = std::ranges::find(table.predictors, "hierarchy");
  const std::size_t judged = hierarchy == table.predictors.end()
                                 ? 0
                                 : static_cast<std::size_t>(hierarchy - table.predictors.begin());
  for (const Quantity q : {Quantity::block_time, Quantity::block_hbm, Quantity::gemm_time,
                           Quantity::gemm_kernel_hbm}) {
    Scatter scatter;
    scatter.quantity = q;
    for (const JudgedCase& c : table.cases) {
      if (c.quantity != q) continue;
      for (std::size_t p = 0; p < table.predictors.size(); ++p) {
        if (!c.predicted[p]) continue;
        ScatterPoint point = point_of(c.label, q, c.measured, *c.predicted[p], table.predictors[p]);
        point.predictor = p;
        point.about = about_case(c, table.predictors[p], gpu);
        point.colour = {ColourRole::run, static_cast<int>(p)};
        scatter.points.push_back(std::move(point));
      }
    }
    if (scatter.points.empty()) continue;
    finish(scatter, judged);
    chart.scatters.push_back(std::move(scatter));
  }
  for (const ErrorRow& row : table.rows) chart.errors.push_back(line_of(row));
  if (chart.scatters.empty()) chart.problem = "the measurements hold nothing that is predicted";
  return chart;
}

Table scatter_table(const ValidationChart& chart) {
  Table table{
      "validation", {"case", "quantity", "predictor", "measured", "predicted", "error"}, {}};
  for (const Scatter& s : chart.scatters) {
    for (const ScatterPoint& p : s.points) {
      Subject measured = p.about;
      measured.source = kMeasuredSource;
      add_row(table,
              {p.label, std::string(name_of(p.quantity)), chart.predictors[p.predictor], p.at.x,
               p.at.y, p.error},
              p.about, &measured);
    }
  }
  return table;
}

Table error_table(const ErrorTable& errors, const Gpu& gpu) {
  Table table{"errors", {"what", "predictor", "cases", "mape", "bias", "worst", "target"}, {}};
  for (const ErrorRow& row : errors.rows) {
    for (std::size_t p = 0; p < errors.predictors.size(); ++p) {
      const ErrorStats& s = row.by_predictor[p];
      Subject about = about_all(gpu, errors.predictors[p]);
      const Subject measured = about_all(gpu, kMeasuredSource);
      add_row(table,
              {row.what, errors.predictors[p], static_cast<std::int64_t>(s.cases), s.mape, s.bias,
               s.worst, row.target ? Cell(*row.target) : Cell()},
              about, &measured);
    }
  }
  return table;
}

}  // namespace fuseline::gui
