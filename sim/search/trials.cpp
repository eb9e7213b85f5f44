#include "sim/search/trials.h"

#include "base/piece_text.h"

namespace fuseline {

Trials::Trials(const Evaluator& evaluator, const std::string& text) : evaluator_(evaluator) {
  for (PieceReader in(text); in.more();) {
    One one;
    one.candidate.block = static_cast<std::size_t>(in.whole());
    const std::string key = in.word();
    one.candidate.grouping = Grouping(key.begin(), key.end());
    one.plan.one_launch = in.flag();
    one.plan.simulations = static_cast<std::size_t>(in.whole());
    if (in.flag()) {
      one.plan.values.emplace();
      for (double& value : *one.plan.values) value = in.real();
    }
    tried_ += one.plan.simulations;
    all_.push_back(std::move(one));
  }
}

std::string Trials::text() const {
  PieceWriter out;
  for (const One& one : all_) {
    out.whole(static_cast<std::int64_t>(one.candidate.block))
        .word(std::string(one.candidate.grouping.begin(), one.candidate.grouping.end()));
    out.flag(one.plan.one_launch).whole(static_cast<std::int64_t>(one.plan.simulations));
    out.flag(one.plan.values.has_value());
    if (one.plan.values)
      for (const double value : *one.plan.values) out.real(value);
  }
  return std::move(out).text();
}

std::optional<PlanValues> Trials::values(const Candidate& candidate) {
  if (const TriedPlan* before = evaluator_.known(candidate)) return before->values;
  const auto [at, first] = places_.try_emplace({candidate.block, candidate.grouping}, all_.size());
  if (first) {
    all_.push_back({candidate, evaluator_.tried(candidate)});
    tried_ += all_.back().plan.simulations;
  }
  return all_[at->second].plan.values;
}

}  // namespace fuseline
