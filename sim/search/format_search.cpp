#include "sim/search/format_search.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "model/blocks/block.h"
#include "sim/executor/execute.h"
#include "sim/executor/inputs.h"
#include "sim/executor/memory_need.h"
#include "sim/executor/reference_fast.h"
#include "sim/executor/tensor_error.h"
#include "sim/search/plan_choices.h"

namespace fuseline {

namespace {

std::string format_of(const Workload& work) {
  return work.formats.weights.quantised() ? work.formats.weights.name() : name_of(work.dtype);
}

// What the block gives, in fp64, of weights that no format rounds.
class PlainBlock {
 public:
  PlainBlock(const PredictionCase& c, const Workload& work, const FormatOptions& options)
      : options_(options), block_(build_block(c.model, without_formats(work))), values_(values()) {}

  // Of the plan's outputs the one that is farthest off.
  void judge(const Graph& block, const Plan& plan, const Gpu& gpu, FormatPlan& out) const {
    executor::check_memory(executor::memory_need(block, {plan}, options_.workers.threads),
                           executor::available_memory());
    const executor::Inputs given = executor::random_storage(block, options_.seed, options_.workers);
    const executor::Inputs inputs =
        executor::prepare_inputs(plan, given, options_.seed, options_.workers);
    const executor::Execution done =
        executor::execute(plan, inputs, gpu, {.workers = options_.workers, .check_inputs = false});
    for (std::size_t i = 0; i < block_.tensors().size(); ++i) {
      const Tensor& t = block_.tensors()[i];
      if (t.role != Role::output) continue;
      const auto got = plan.graph.find_tensor(t.name);
      if (!got || !done.memory->has(*got)) continue;
      const executor::TensorError error = executor::compare(
          done.memory->at(*got), values_.at(TensorId{static_cast<std::int32_t>(i)}), 0, t.cols);
      if (!out.worst.empty() && error.relative_l2 <= out.error) continue;
      out.error = error.relative_l2;
      out.worst = t.name;
    }
    FUSELINE_ASSERT(!out.worst.empty(), "the block has no output that the plan stores");
  }

 private:
  static Workload without_formats(Workload work) {
    work.formats = {};
    return work;
  }

  [[nodiscard]] TensorValues values() const {
    executor::check_memory(executor::memory_need(block_, {}, options_.workers.threads),
                           executor::available_memory());
    return executor::fast_reference(
        block_, executor::random_storage(block_, options_.seed, options_.workers),
        options_.workers);
  }

  const FormatOptions& options_;
  Graph block_;
  TensorValues values_;
};

}  // namespace

Workload format_check_sizes(const Workload& workload) {
  constexpr std::int64_t kCheckedRows = 64, kCheckedContext = 256;
  Workload small = workload;
  small.seq = std::min(small.seq, kCheckedRows);
  small.batch = std::max<std::int64_t>(1, std::min(small.batch, kCheckedRows / small.seq));
  if (small.context > 0)
    small.context = std::max(small.seq, std::min(small.context, kCheckedContext));
  return small;
}

FormatSearch search_formats(const std::vector<PredictionCase>& cases, const SearchOptions& options,
                            const FormatOptions& formats) {
  FUSELINE_ASSERT(!cases.empty(), "no format");
  FormatSearch out{.budget = formats.budget,
                   .checked = format_check_sizes(cases.front().workload),
                   .plans = {},
                   .best = {}};
  const PlainBlock plain(cases.front(), out.checked, formats);
  for (const PredictionCase& c : cases) {
    FormatPlan p{.format = format_of(c.workload), .worst = {}, .found = search_block(c, options)};
    SizedBlock sized(c, format_check_sizes(c.workload), options);
    plain.judge(sized.block(), sized.plan(choices_of(p.found)), c.gpu, p);
    p.within = p.error <= formats.budget;
    if (p.within && (!out.best || p.found.value() < out.plans[*out.best].found.value()))
      out.best = out.plans.size();
    out.plans.push_back(std::move(p));
  }
  return out;
}

}  // namespace fuseline
