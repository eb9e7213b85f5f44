#include "sim/judge/judged_json.h"

#include <nlohmann/json.hpp>

#include "base/json_text.h"

namespace fuseline {

std::string judged_json(const std::vector<JudgedFigure>& figures) {
  using nlohmann::ordered_json;
  ordered_json list = ordered_json::array(), groups = ordered_json::array();
  for (const JudgedFigure& j : figures) {
    ordered_json one = {
        {"id", j.figure.id},         {"source", j.figure.source},   {"citation", j.figure.citation},
        {"gpu", j.figure.gpu},       {"quality", j.figure.quality}, {"config", j.figure.config},
        {"metric", j.figure.metric}, {"unit", j.figure.unit},       {"published", j.figure.value},
        {"caveat", j.figure.caveat}};
    if (j.predicted) {
      one["policy"] = j.figure.policy;
      one["predicted"] = *j.predicted;
      one["error"] = *j.error();
      one["cause"] = name_of(j.cause);
      if (j.share) one["share"] = *j.share;
      if (j.share) one["verdict"] = j.verdict;
    } else {
      one["not_predicted"] = j.not_predicted;
    }
    list.push_back(std::move(one));
  }
  for (const FigureGroup& g : groups_of(figures)) {
    groups.push_back({{"cause", name_of(g.cause)},
                      {"gpu", g.gpu},
                      {"phase", g.phase},
                      {"metric", g.metric},
                      {"figures", g.figures},
                      {"mean_error", g.mean_error},
                      {"bias", g.bias}});
  }
  return json_text({{"schema", "fuseline.judgement/1"},
                    {"groups", std::move(groups)},
                    {"figures", std::move(list)}});
}

}  // namespace fuseline
