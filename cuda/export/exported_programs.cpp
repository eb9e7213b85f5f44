// Programs of one's own as operators, with their gradient.
#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "base/error.h"
#include "cuda/export/export_parts.h"

namespace fuseline::cuda {

namespace {

class Programs {
 public:
  Programs(const Plan& plan, const Gpu& gpu, int threads)
      : plan_(plan), gpu_(gpu), threads_(threads) {}

  Exported run(const ProgramGradient* gradient) {
    describe(out_, plan_, gpu_);
    const std::vector<int> places = add_tensors(plan_);
    Uses uses;
    ExportedOperator all = add_launches("all", plan_, record_plan(plan_, gpu_, threads_), places,
                                        uses, &out_.operators);
    std::optional<RecordedPlan> backward;
    if (gradient != nullptr && may_have_gradient(all, uses)) try {
        backward = record_plan(gradient->plan, gpu_, threads_);
      } catch (const MissingError& e) {
        out_.no_gradient = e.what();  // such as a primitive that no epilogue has
      }
    if (backward) {
      add_gradient(*gradient, std::move(*backward), all, uses);
    } else {
      uses.give_to(all, [&](int t) { return is_output(t); });
      out_.operators.push_back(std::move(all));
    }
    return std::move(out_);
  }

 private:
  // PyTorch's autograd takes no operator that changes what it is given.
  bool may_have_gradient(ExportedOperator all, const Uses& uses) {
    uses.give_to(all, [](int) { return true; });
    if (all.changed.empty()) return true;
    out_.no_gradient = "it changes " +
                       out_.tensors[static_cast<std::size_t>(all.changed.front())].name +
                       ", which it is given";
    return false;
  }
  [[nodiscard]] bool is_output(int t) const {
    return out_.tensors[static_cast<std::size_t>(t)].role == Role::output;
  }
  [[nodiscard]] int place_of(const std::string& name) const {
    const auto at = std::ranges::find(out_.tensors, name, &ExportedTensor::name);
    return at == out_.tensors.end() ? -1 : static_cast<int>(at - out_.tensors.begin());
  }

  // By tensor of the plan. Those of a gradient that have a name of the forward pass are its own.
  std::vector<int> add_tensors(const Plan& plan) {
    std::vector<int> places(plan.graph.tensors().size(), -1);
    for (std::size_t i = 0; i < places.size(); ++i) {
      if (plan.homes[i] != Home::hbm) continue;
      const Tensor& t = plan.graph.tensors()[i];
      places[i] = place_of(t.name);
      if (places[i] >= 0) continue;
      places[i] = static_cast<int>(out_.tensors.size());
      out_.tensors.push_back(exported(t, t.name, t.role));
    }
    return places;
  }

  // The plan's launches as one operator, whose uses are `all`; and each kernel as one, into `each`.
  ExportedOperator add_launches(const std::string& name, const Plan& plan, RecordedPlan recorded,
                                const std::vector<int>& places, Uses& all,
                                std::vector<ExportedOperator>* each) {
    const auto place = [&](TensorId id) { return places.at(static_cast<std::size_t>(id.index)); };
    const std::size_t codes = out_.codes.size(), workspaces = out_.workspaces.size();
    const std::size_t first = out_.launches.size();
    for (const RecordedLaunch& l : std::exchange(recorded.launches, {}))
      out_.launches.push_back(placed(l, place, codes, workspaces));
    take_codes(out_, std::move(recorded));
    ExportedOperator whole{.name = name};
    for (const Kernel& k : plan.kernels) {
      ExportedOperator op{.name = k.name};
      Uses uses;
      for (const Program& p : k.phases) {
        uses.add(p, place);
        all.add(p, place);
      }
      for (std::size_t i = first; i < out_.launches.size(); ++i)
        if (out_.launches[i].program == k.name) {
          op.launches.push_back(static_cast<int>(i));
          whole.launches.push_back(static_cast<int>(i));
        }
      uses.give_to(op, [](int) { return true; });
      if (each != nullptr) each->push_back(std::move(op));
    }
    return whole;
  }

  void add_gradient(const ProgramGradient& gradient, RecordedPlan recorded, ExportedOperator& all,
                    const Uses& uses) {
    for (const Kernel& k : gradient.plan.kernels)
      for (const Program& p : k.phases)
        out_.programs.push_back(print_program(gradient.plan.graph, p));
    Uses of_gradient;
    ExportedOperator backward = add_launches("all_gradient", gradient.plan, std::move(recorded),
                                             add_tensors(gradient.plan), of_gradient, nullptr);
    of_gradient.give_to(backward, [&](int t) { return is_output(t); });
    const std::set<int> read(backward.inputs.begin(), backward.inputs.end());
    uses.give_to(all, [&](int t) { return is_output(t) || read.contains(t); });
    results_first(out_, all);
    all.gradient = backward.name;
    for (const auto& [d, of] : gradient.of)
      if (const int at = place_of(d); at >= 0) backward.gradients.emplace_back(at, place_of(of));
    out_.operators.push_back(std::move(all));
    out_.operators.push_back(std::move(backward));
  }

  const Plan& plan_;
  const Gpu& gpu_;
  int threads_;
  Exported out_;
};

}  // namespace

Exported exported_programs(const Plan& plan, const ProgramGradient* gradient, const Gpu& gpu,
                           int threads) {
  return Programs(plan, gpu, threads).run(gradient);
}

}  // namespace fuseline::cuda
