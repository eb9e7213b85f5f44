#include "gui/model/subject.h"

#include <fmt/format.h>

#include <tuple>

#include "model/config/config.h"
#include "model/config/routing_loads.h"

namespace fuseline::gui {

namespace {

std::string formats_of(const Workload& w) {
  const std::string plain = name_of(w.dtype);
  std::string text;
  const auto add = [&](const char* what, const std::string& format) {
    if (format != plain) text += fmt::format("{} {}, ", what, format);
  };
  add("weights", weights_text(w));
  add("activations", activations_text(w));
  add("cache", cache_text(w));
  return text + plain;
}

std::string sizes_of(const Subject& s) {
  std::string text = fmt::format("{}, {}, batch {}, {} tokens", s.model, s.phase, s.batch, s.seq);
  if (s.context > 0) text += fmt::format(" of {}", s.context);
  if (!s.routing.empty()) text += ", experts " + s.routing;
  return text;
}

}  // namespace

Subject subject_of(const PredictionCase& block, const std::string& policy,
                   const std::string& source) {
  const Workload& w = block.workload;
  return {.model = block.model.name,
          .gpu = block.gpu.name,
          .machine = block.gpu.title,
          .phase = name_of(w.phase),
          .batch = w.batch,
          .seq = w.seq,
          .context = w.phase == Phase::decode ? w.context : 0,
          .formats = formats_of(w),
          .routing = w.routing.name,
          .policy = policy,
          .source = source};
}

std::string missing_in(const Subject& s) {
  if (s.model.empty()) return "the model";
  if (s.gpu.empty() || s.machine.empty()) return "the GPU";
  if (s.phase.empty()) return "the phase";
  if (s.policy.empty()) return "the policy";
  if (s.source.empty()) return "whether it was predicted or measured";
  if (s.phase == kAllCases) return {};
  if (s.batch < 1 || s.seq < 1) return "the sizes";
  if (s.formats.empty()) return "the number formats";
  return {};
}

Likeness likeness(const Subject& base, const Subject& other) {
  const auto work = [](const Subject& s) {
    return std::tie(s.model, s.phase, s.batch, s.seq, s.context, s.routing);
  };
  if (work(base) != work(other)) return Likeness::other_work;
  if (base.machine != other.machine) return Likeness::other_machine;
  if (base.formats != other.formats) return Likeness::other_formats;
  const bool one_is_measured =
      (base.source == kMeasuredSource) != (other.source == kMeasuredSource);
  return one_is_measured && base.policy != other.policy ? Likeness::mixed : Likeness::alike;
}

std::string likeness_note(const Subject& base, const Subject& other) {
  switch (likeness(base, other)) {
    case Likeness::alike:
      return {};
    case Likeness::other_formats:
      return "the baseline is stored in " + base.formats;
    case Likeness::other_machine:
      return "the baseline is of " + base.machine;
    case Likeness::mixed:
      return "a measurement beside a prediction of another policy: the difference holds the "
             "prediction's error too";
    case Likeness::other_work:
      break;
  }
  return fmt::format("not compared with the baseline, which is of another work: {}",
                     sizes_of(base));
}

}  // namespace fuseline::gui
