#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "sim/search/distribution.h"

namespace fuseline {

namespace {

using ShapesJson = nlohmann::ordered_json;

ShapesJson groups_json(const std::vector<SequenceGroup>& groups) {
  ShapesJson list = ShapesJson::array();
  for (const SequenceGroup& g : groups)
    list.push_back({{"sequences", g.sequences}, {"tokens", g.tokens}, {"context", g.context}});
  return list;
}

ShapesJson shape_json(const ShapeWeight& s) {
  ShapesJson shape = {
      {"batch", s.batch}, {"tokens", s.tokens}, {"context", s.context}, {"weight", s.weight}};
  if (s.mixed()) shape["sequences"] = groups_json(s.sequences);
  return shape;
}

ShapesJson buckets_json(const std::vector<Bucket>& buckets, bool pads) {
  ShapesJson list = ShapesJson::array();
  for (const Bucket& b : buckets) {
    ShapesJson one = {{"first_shape", b.shapes.first},
                      {"last_shape", b.shapes.last},
                      {"choices_of", b.choices},
                      {"share", b.size.weight},
                      {"time_us", to_us(b.time)}};
    if (pads) {
      one["batch"] = b.size.batch;
      one["tokens"] = b.size.tokens;
      one["context"] = b.size.context;
      if (b.size.mixed()) one["sequences"] = groups_json(b.size.sequences);
      one["slower_than_fallback"] = b.slower;
    }
    list.push_back(std::move(one));
  }
  return list;
}

ShapesJson means_json(const std::vector<Seconds>& means) {
  ShapesJson list = ShapesJson::array();
  for (const Seconds s : means) list.push_back(to_us(s));
  return list;
}

ShapesJson optional_json(const std::optional<double>& value) {
  return value ? ShapesJson(*value) : ShapesJson(nullptr);
}

ShapesJson servings_json(const DistributionResult& r) {
  ShapesJson list = ShapesJson::array();
  for (const Serving& s : r.servings)
    list.push_back({{"way", s.way},
                    {"plans", s.plans},
                    {"kernels", s.kernels},
                    {"block_us", to_us(s.block)},
                    {"compile_s", s.compile.value()},
                    {"call_ms", s.call.value() * 1e3},
                    {"fallback_share", s.fallback},
                    {"earned_after_calls", optional_json(s.earned_after)}});
  return list;
}

}  // namespace

std::string distribution_json(const PredictionCase& c, const Distribution& of,
                              const DistributionResult& r) {
  ShapesJson shapes = ShapesJson::array();
  for (const ShapeResult& s : r.shapes) {
    ShapesJson one = shape_json(s.shape);
    one["optimal"] = s.complete;
    one["time_us"] = to_us(s.own);
    one["one_plan_time_us"] = to_us(s.shared);
    one["bucket_time_us"] = to_us(s.bucketed);
    one["bucket"] = s.choices;
    one["padded_time_us"] = to_us(s.padded);
    one["fallback_time_us"] = to_us(s.fallback);
    shapes.push_back(std::move(one));
  }
  ShapesJson kept = ShapesJson::array();
  for (const Bucket& b : r.buckets) kept.push_back(b.choices);
  return json_text(
      {{"schema", "fuseline.distribution/1"},
       {"model", c.model.name},
       {"gpu", c.gpu.name},
       {"phase", name_of(c.workload.phase)},
       {"distribution", of.name},
       {"source", of.source},
       {"date", of.date},
       {"assumed", of.assumed},
       {"mean_us_plan_for_each", to_us(r.each)},
       {"mean_us_buckets", to_us(r.bucketed)},
       {"mean_us_one_plan", to_us(r.one)},
       {"mean_us_padded", to_us(r.padded_mean)},
       {"mean_us_fallback", to_us(r.fallback)},
       {"different_plans", r.different},
       {"one_plan_of", r.for_all},
       {"buckets", std::move(kept)},
       {"bucket_ranges", buckets_json(r.buckets, false)},
       {"padded_buckets", buckets_json(r.padded, true)},
       {"mean_us_by_buckets", means_json(r.by_buckets)},
       {"mean_us_by_padded_buckets", means_json(r.by_padded)},
       {"compile_s_per_kernel", r.options.compile.value()},
       {"calls", r.calls},
       {"calls_assumed", r.calls_assumed},
       {"different_sizes", r.sizes.counts.different},
       {"layers", c.model.layers},
       {"ways", servings_json(r)},
       {"fallback_share_that_negates_one_plan", optional_json(r.fallback_negates_one)},
       {"fallback_share_that_negates_padding", optional_json(r.fallback_negates_padded)},
       {"stopped", r.stopped},
       {"shapes", std::move(shapes)}});
}

}  // namespace fuseline
