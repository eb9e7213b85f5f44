// Layers of a block as operators.
#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "cuda/export/entry_program.h"
#include "cuda/export/export_parts.h"

namespace fuseline::cuda {

namespace {

class Layers {
 public:
  Layers(const Plan& plan, const Gpu& gpu, int layers, int threads)
      : plan_(plan), gpu_(gpu), layers_(layers), threads_(threads) {}

  Exported run() {
    find_backward();
    describe(out_, plan_, gpu_);
    out_.layers = layers_;
    add_entry();
    RecordedPlan block = record_plan(plan_, gpu_, threads_);
    const std::vector<RecordedLaunch> launches = std::exchange(block.launches, {});
    const std::size_t codes = out_.codes.size(), workspaces = out_.workspaces.size();
    take_codes(out_, std::move(block));
    ExportedOperator forward{.name = "forward"}, backward{.name = "backward"};
    Uses forward_uses, backward_uses;
    for (const int l : entry_launches_) forward.launches.push_back(l);
    for (const auto& [program, place] : entry_programs_) forward_uses.add(program, place);
    for (int i = 0; i < layers_; ++i)
      add_layer(launches, i, false, codes, workspaces, forward, forward_uses);
    for (int i = layers_; has_backward_ && i-- > 0;)
      add_layer(launches, i, true, codes, workspaces, backward, backward_uses);
    finish(forward, backward, forward_uses, backward_uses);
    return std::move(out_);
  }

 private:
  [[nodiscard]] const Tensor& tensor(TensorId id) const { return plan_.graph.tensor(id); }

  void find_backward() {
    for (const Kernel& k : plan_.kernels) {
      backward_.push_back(!k.ops.empty() && std::ranges::all_of(k.ops, [&](OpId op) {
        return plan_.graph.op(op).pass == Pass::backward;
      }));
      has_backward_ = has_backward_ || backward_.back();
    }
    for (std::size_t i = 0; i < plan_.kernels.size(); ++i)
      for (const Program& p : plan_.kernels[i].phases) {
        if (!backward_[i])
          for (const Operand& o : stores(p)) made_forward_.insert(o.tensor);
        if (backward_[i])
          for (const Operand& o : loads(p)) read_backward_.insert(o.tensor);
      }
  }

  // The tensor of that name, made when it is new.
  int named(const std::string& name, const Tensor& like, Role role) {
    const auto [found, fresh] = index_.emplace(name, static_cast<int>(out_.tensors.size()));
    if (fresh) out_.tensors.push_back(exported(like, name, role));
    return found->second;
  }
  [[nodiscard]] std::string of_layer(const std::string& name, int layer) const {
    return fmt::format("{}_{}", name, layer);
  }

  // Where tensor `id` of layer `layer` is.
  int place(TensorId id, int layer) {
    const Tensor& t = tensor(id);
    const Graph& g = plan_.graph;
    switch (t.role) {
      case Role::weight:
      case Role::cache:
        if (!t.of_next_layer.empty()) {
          if (layer + 1 == layers_) return named(t.name, t, t.role);
          return named(of_layer(t.of_next_layer, layer + 1), t, t.role);
        }
        return named(of_layer(t.name, layer), t, t.role);
      case Role::table:
        return named(t.name, t, t.role);
      case Role::input: {
        if (const auto source = g.with(Relation::carried_to_next_layer, id)) {
          if (layer > 0) return place(*source, layer - 1);
          return named(t.name, t, entry_.contains(t.name) ? Role::activation : Role::input);
        }
        // The gradient of an output that the next layer's input gets.
        if (const auto of = g.related(id, Relation::gradient_of); of && layer + 1 < layers_)
          if (const auto next = g.related(*of, Relation::carried_to_next_layer))
            if (const auto gradient = g.with(Relation::gradient_of, *next))
              return place(*gradient, layer + 1);
        return named(t.name, t, t.role);
      }
      case Role::output: {
        if (g.related(id, Relation::carried_to_next_layer))
          return layer + 1 == layers_ ? named(t.name, t, t.role)
                                      : named(of_layer(t.name, layer), t, Role::activation);
        const auto of = g.related(id, Relation::gradient_of);
        if (of && g.with(Relation::carried_to_next_layer, *of))
          return layer == 0 ? named(t.name, t, t.role)
                            : named(of_layer(t.name, layer), t, Role::activation);
        return named(of_layer(t.name, layer), t, t.role);
      }
      case Role::activation:
        if (made_forward_.contains(id) && read_backward_.contains(id))
          return named(of_layer(t.name, layer), t, t.role);
        return named(t.name, t, t.role);
    }
    FUSELINE_ASSERT(false, "unknown role");
  }

  // What the first layer needs besides the block's input, computed from that.
  void add_entry() {
    std::optional<EntryProgram> entry = entry_program(plan_);
    if (!entry) return;
    entry_ = std::move(entry->makes);
    entry_plan_ = std::move(entry->plan);
    RecordedPlan recorded = record_plan(entry_plan_, gpu_, threads_);
    const std::vector<RecordedLaunch> launches = std::exchange(recorded.launches, {});
    const std::size_t codes = out_.codes.size(), workspaces = out_.workspaces.size();
    take_codes(out_, std::move(recorded));
    const auto where = [this](TensorId id) {
      const Tensor& t = entry_plan_.graph.tensor(id);
      if (const auto same = plan_.graph.find_tensor(t.name)) return place(*same, 0);
      // A layer's last kernel reads the next layer's weight; the first layer's is nobody's next.
      const bool next = std::ranges::any_of(
          plan_.graph.tensors(), [&](const Tensor& w) { return w.of_next_layer == t.name; });
      FUSELINE_ASSERT(next, "no layer has " + t.name);
      return named(of_layer(t.name, 0), t, Role::weight);
    };
    for (const RecordedLaunch& l : launches) {
      entry_launches_.push_back(static_cast<int>(out_.launches.size()));
      out_.launches.push_back(placed(l, where, codes, workspaces));
    }
    out_.programs.insert(out_.programs.begin(),
                         print_program(entry_plan_.graph, entry_plan_.kernels[0].phases[0]));
    entry_programs_.emplace_back(entry_plan_.kernels[0].phases[0], where);
  }

  void add_layer(const std::vector<RecordedLaunch>& launches, int layer, bool backward,
                 std::size_t codes, std::size_t workspaces, ExportedOperator& op, Uses& uses) {
    const auto where = [&](TensorId id) { return place(id, layer); };
    for (std::size_t i = 0; i < plan_.kernels.size(); ++i)
      if (backward_[i] == backward)
        for (const Program& p : plan_.kernels[i].phases) uses.add(p, where);
    for (const RecordedLaunch& recorded : launches) {
      const auto kernel = std::ranges::find(plan_.kernels, recorded.program, &Kernel::name);
      if (backward_[static_cast<std::size_t>(kernel - plan_.kernels.begin())] != backward) continue;
      op.launches.push_back(static_cast<int>(out_.launches.size()));
      out_.launches.push_back(placed(recorded, where, codes, workspaces));
    }
  }

  void finish(ExportedOperator& forward, ExportedOperator& backward, const Uses& forward_uses,
              const Uses& backward_uses) {
    ExportedOperator later;
    backward_uses.give_to(later, [](int) { return true; });
    const std::set<int> read_later(later.inputs.begin(), later.inputs.end());
    forward_uses.give_to(forward, [&](int t) {
      return out_.tensors[static_cast<std::size_t>(t)].role == Role::output ||
             read_later.contains(t);
    });
    results_first(out_, forward);
    if (has_backward_) {
      backward_uses.give_to(backward, [&](int t) {
        return out_.tensors[static_cast<std::size_t>(t)].role == Role::output;
      });
      forward.gradient = backward.name;
      gradients_of(backward);
    }
    out_.operators.push_back(std::move(forward));
    if (has_backward_) out_.operators.push_back(std::move(backward));
  }

  // Which output is the gradient of which given tensor, and which input that of which output.
  void gradients_of(ExportedOperator& backward) {
    const Graph& g = plan_.graph;
    for (const Related& r : g.relations()) {
      if (r.relation != Relation::gradient_of) continue;
      for (int layer = 0; layer < layers_; ++layer) {
        const Role role = tensor(r.tensor).role;
        if (role != Role::output && role != Role::input) continue;
        const int gradient = place(r.tensor, layer), of = place(r.to, layer);
        const auto& uses = role == Role::output ? backward.outputs : backward.inputs;
        if (std::ranges::find(uses, gradient) == uses.end()) continue;
        const std::pair pair{gradient, of};
        if (std::ranges::find(backward.gradients, pair) == backward.gradients.end())
          backward.gradients.push_back(pair);
      }
    }
  }

  const Plan& plan_;
  const Gpu& gpu_;
  int layers_, threads_;
  bool has_backward_ = false;
  std::vector<bool> backward_;  // by kernel
  std::set<TensorId> made_forward_, read_backward_;
  std::set<std::string> entry_;
  Plan entry_plan_;
  std::vector<int> entry_launches_;
  std::vector<std::pair<Program, std::function<int(TensorId)>>> entry_programs_;
  std::map<std::string, int> index_;
  Exported out_;
};

}  // namespace

Exported exported_block(const Plan& plan, const Gpu& gpu, int layers, int threads) {
  return Layers(plan, gpu, layers, threads).run();
}

}  // namespace fuseline::cuda
