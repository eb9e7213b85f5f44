#include "model/import/norms.h"

namespace fuseline {

std::optional<TensorView> norm_step(Translator& t, std::size_t x, const char* call,
                                    const char* heads, const std::vector<MatrixColumns>& weights,
                                    double eps) {
  const auto& view = t.view(t.behind(x));
  if (!view || view->dims.empty() || !(eps > 0)) return std::nullopt;
  const auto range = in_any_order(*view, t.rows_of(*view));
  const Dimension& last = view->dims.back();
  if (!range || last.size() != 1 || last[0].axis != MatrixAxis::column || last[0].stride != 1)
    return std::nullopt;
  const std::int64_t width = last[0].size;
  for (const MatrixColumns& weight : weights)
    if (weight.count != width) return std::nullopt;
  DraftStep step;
  // [B, T, H, d] are heads, also where there is one.
  if (width == range->count && view->dims.size() < 4) {
    step.call = call;
    step.name = {.site = "norm", .result = "xn#", .counted = true};
    for (const MatrixColumns& weight : weights) step.equal.emplace_back(*range, weight);
  } else {
    if (std::string(heads).empty()) return std::nullopt;
    step.call = heads;
    step.name = {.site = "qknorm", .op = "norm", .result = "n"};
    step.hands_on = true;
    for (const MatrixColumns& weight : weights) step.widths.push_back({weight, {{"d", width}}});
  }
  step.values.push_back({"eps", Setting{"norm_eps", eps}});
  auto result = t.pointwise(std::move(step), {x});
  if (!result) return std::nullopt;
  DraftStep& made = t.draft().steps.back();
  made.reads.insert(made.reads.end(), weights.begin(), weights.end());
  return result;
}

}  // namespace fuseline
