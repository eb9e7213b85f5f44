#include "sim/search/plan_choices.h"

#include <cctype>
#include <iterator>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/piece_text.h"
#include "model/blocks/block.h"
#include "model/chain.h"
#include "model/policy.h"
#include "model/program.h"
#include "sim/gpu/plan_target.h"

namespace fuseline {

namespace {

// A program's text without its numbers: they count rows and tiles, and the letters say the rest.
std::string without_numbers(const std::string& text) {
  std::string out;
  for (const char c : text)
    if (std::isdigit(static_cast<unsigned char>(c)) == 0) out += c;
  return out;
}

}  // namespace

PlanChoices choices_of(const SearchResult& r) {
  PlanChoices c{.policy = r.policys_own, .rewrites = r.plan.rewrites, .kernels = {}};
  for (const Kernel& k : r.plan.kernels) {
    c.one_launch = c.one_launch || (k.phases.size() != 1 && !handed_over(k));
    std::vector<std::string> names;
    for (const OpId id : k.ops) names.push_back(r.plan.graph.op(id).name);
    c.kernels.push_back(std::move(names));
  }
  return c;
}

PlanChoices fallback_choices() {
  return {.policy = kFallbackPolicy, .rewrites = {}, .kernels = {}};
}

std::string text_of(const PlanChoices& choices) {
  PieceWriter out;
  const auto list = [&](const std::vector<std::string>& words) {
    out.whole(std::ssize(words));
    for (const std::string& word : words) out.word(word);
  };
  out.word(choices.policy).flag(choices.one_launch);
  list(choices.rewrites);
  out.whole(std::ssize(choices.kernels));
  for (const std::vector<std::string>& kernel : choices.kernels) list(kernel);
  return std::move(out).text();
}

PlanChoices choices_from(const std::string& text) {
  PieceReader in(text);
  const auto list = [&] {
    std::vector<std::string> words(static_cast<std::size_t>(in.whole()));
    for (std::string& word : words) word = in.word();
    return words;
  };
  PlanChoices choices;
  choices.policy = in.word();
  choices.one_launch = in.flag();
  choices.rewrites = list();
  choices.kernels.resize(static_cast<std::size_t>(in.whole()));
  for (std::vector<std::string>& kernel : choices.kernels) kernel = list();
  return choices;
}

SizedBlock::SizedBlock(const PredictionCase& c, const Workload& workload,
                       const SearchOptions& options)
    : work_(workload),
      gpu_(c.gpu),
      constraints_(options.constraints),
      block_(build_block(c.model, workload)),
      evaluator_(block_, gpu_, {.launching = c.launching, .allowed = options.allowed}) {}

SizedBlock::Made SizedBlock::policys(const std::string& policy) const {
  Made made{.plan = make_plan(policy, block_, plan_target(gpu_)), .estimate = {}};
  made.estimate = evaluator_.estimate(made.plan);
  return made;
}

std::optional<std::size_t> SizedBlock::numbered(const std::vector<std::string>& rewrites) {
  if (evaluator_.blocks() == 0) {
    const bool chains = evaluator_.options().allowed == Allowed::with_chains;
    for (RewrittenBlock& b : rewritten_blocks(block_, chains))
      evaluator_.add(std::move(b), constraints_);
  }
  for (std::size_t b = 0; b < evaluator_.blocks(); ++b)
    if (evaluator_.space(b).block().rewrites == rewrites && evaluator_.space(b).searchable())
      return b;
  return std::nullopt;
}

// Empty where the choices do not exist at this size, or are not legal.
std::optional<Candidate> SizedBlock::candidate(const PlanChoices& choices) {
  if (!choices.policy.empty() || choices.one_launch) return std::nullopt;
  const auto number = numbered(choices.rewrites);
  if (!number) return std::nullopt;
  KernelSpace& space = evaluator_.space(*number);
  const Graph& graph = space.block().graph;
  Groups groups;
  for (const std::vector<std::string>& names : choices.kernels) {
    std::vector<OpId> ops;
    for (const std::string& name : names) {
      const auto id = graph.find_op(name);
      if (!id) return std::nullopt;
      ops.push_back(*id);
    }
    groups.push_back(std::move(ops));
  }
  const auto grouping = space.grouping_of(groups);
  if (!grouping || !space.legal(*grouping)) return std::nullopt;
  if (!evaluator_.values({*number, *grouping})) return std::nullopt;
  return Candidate{*number, *grouping};
}

Seconds SizedBlock::time(const PlanChoices& choices) {
  if (const auto found = candidate(choices))
    return Seconds((*evaluator_.values(*found))[static_cast<std::size_t>(Objective::time)]);
  return policys(choices.policy.empty() ? kFallbackPolicy : choices.policy).estimate.time;
}

Plan SizedBlock::plan(const PlanChoices& choices) {
  if (const auto found = candidate(choices)) return evaluator_.plan(*found, false);
  return policys(choices.policy.empty() ? kFallbackPolicy : choices.policy).plan;
}

SizedBlock::Made SizedBlock::made(const PlanChoices& choices) {
  if (const auto found = candidate(choices)) {
    Made own{.plan = evaluator_.plan(*found, false), .estimate = {}};
    own.estimate = evaluator_.estimate(own.plan);
    return own;
  }
  return policys(choices.policy.empty() ? kFallbackPolicy : choices.policy);
}

std::optional<SizedBlock::Parts> SizedBlock::parts(const PlanChoices& choices) {
  const Made all = made(choices);
  Parts parts;
  bool apart = false;
  for (const KernelEstimate& k : all.estimate.kernels) {
    const bool attention = k.kind == KernelKind::attention;
    (attention ? parts.attention : parts.others) += k.time;
    apart = apart || attention;
  }
  return apart ? std::optional(parts) : std::nullopt;
}

std::vector<std::string> SizedBlock::kernels(const PlanChoices& choices) {
  const Made made = this->made(choices);
  std::vector<std::string> out;
  for (const KernelEstimate& k : made.estimate.kernels) {
    std::string text = fmt::format("{} tile {} splits {} choice {}\n", fmt::join(k.operators, " "),
                                   fmt::join(k.tile, "x"), k.split_k, fmt::join(k.choice, " "));
    for (const Kernel& kernel : made.plan.kernels)
      if (kernel.name == k.name)
        for (const Program& program : kernel.phases)
          text += without_numbers(print_program(made.plan.graph, program));
    out.push_back(std::move(text));
  }
  return out;
}

}  // namespace fuseline
