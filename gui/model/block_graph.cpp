#include "gui/model/block_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "gui/model/chart_colours.h"
#include "gui/model/graph_parts.h"
#include "gui/model/text.h"
#include "model/operators/all_operators.h"
#include "model/operators/operator_table.h"

namespace fuseline::gui {

namespace {

constexpr double kPointsPerLetter = 7.5;
constexpr double kPointsPerInch = 72;

std::string op_id(const Op& op) { return "op:" + op.name; }
std::string tensor_id(const Tensor& tensor) { return "tensor:" + tensor.name; }

bool comes_from_outside(const Tensor& t) { return t.role != Role::activation; }

// What a kernel moves of each tensor, summed over its launches.
struct Moved {
  Bytes read, stored;
};

class Builder {
 public:
  explicit Builder(const RunView& view)
      : view_(view), result_(*view.result), plan_(*result_.plan), graph_(plan_.graph) {}

  BlockGraph build() {
    collect_kernels();
    BlockGraph out;
    out.about = subject_of(view_);
    const ModelConfig& model = result_.block->model;
    out.title = fmt::format("{}: one block of {}", view_.label(),
                            model.title.empty() ? model.name : model.title);
    out.repeat = fmt::format("× {}", model.layers);
    parts_ = parts_of(graph_);
    for (std::size_t i = 0; i < graph_.ops().size(); ++i) add_op(out, i);
    add_tensors(out);
    add_edges(out);
    add_groups(out);
    return out;
  }

 private:
  void collect_kernels() {
    kernel_of_.assign(graph_.ops().size(), 0);
    for (std::size_t k = 0; k < plan_.kernels.size(); ++k) {
      for (const OpId id : plan_.kernels[k].ops) kernel_of_[static_cast<std::size_t>(id.index)] = k;
    }
    moved_.resize(plan_.kernels.size());
    if (result_.predicted) {
      std::size_t next = 0;
      for (const KernelEstimate& launch : result_.predicted->kernels) {
        if (next < plan_.kernels.size() && plan_.kernels[next].name == launch.name) ++next;
        for (const RequestedBytes& r : launch.requested) {
          Moved& moved = moved_[next - 1][r.tensor];
          moved.read += r.hbm_read;
          moved.stored += r.stored;
        }
        requested_ = requested_ || !launch.requested.empty();
      }
    }
    for (std::size_t i = 0; i < graph_.tensors().size(); ++i) {
      if (plan_.homes[i] != Home::on_chip) {
        largest_ = std::max(largest_, graph_.tensors()[i].bytes());
      }
    }
    for (std::size_t i = 0; i < result_.kernels.size(); ++i) {
      const auto& kernel = result_.kernels[i].plan_kernel;
      if (kernel) first_launch_.emplace(*kernel, i);
    }
  }

  // Without a cache model each kernel moves its operands once.
  Moved moved(std::size_t kernel, const Operand& operand) const {
    const bool on_chip =
        plan_.homes[static_cast<std::size_t>(operand.tensor.index)] == Home::on_chip;
    if (on_chip) return {};
    if (!requested_) return {graph_.bytes(operand), graph_.bytes(operand)};
    const auto found = moved_[kernel].find(operand.tensor);
    return found == moved_[kernel].end() ? Moved{} : found->second;
  }

  void add_op(BlockGraph& out, std::size_t i) {
    const Op& op = graph_.ops()[i];
    const Operator& info = operator_info(op.kind);
    const OpId id{static_cast<std::int32_t>(i)};
    const Kernel& kernel = plan_.kernels[kernel_of_[i]];
    out.nodes.push_back(
        {.id = op_id(op),
         .is_tensor = false,
         .label = op.name,
         .detail = name_of(op.kind),
         .tooltip = fmt::format("{}: {}\n{}\nkernel {}", op.name, info.formula,
                                exact_flops(flops(graph_, graph_.op(id))), kernel.name),
         .colour = {role_of(kernel.kind), 0},
         .thing = op_thing(op.name),
         .part = parts_[op.name]});
  }

  void add_tensors(BlockGraph& out) {
    for (const Tensor& t : graph_.tensors()) {
      if (!comes_from_outside(t)) continue;
      out.nodes.push_back({.id = tensor_id(t),
                           .is_tensor = true,
                           .label = t.name,
                           .detail = fmt::format("[{}, {}] {}", t.rows, t.cols, name_of(t.dtype)),
                           .tooltip = fmt::format("{} {} {}\n{}", name_of(t.role), t.name, t.symbol,
                                                  exact_bytes(t.bytes())),
                           .colour = {role_of(t.role), 0},
                           .thing = tensor_thing(t.name),
                           .part = {},
                           .is_boundary = t.role == Role::input || t.role == Role::output});
    }
  }

  double thickness(Bytes bytes) const {
    return largest_ == Bytes(0)
               ? 0
               : std::min(1.0, std::sqrt(bytes.as_double() / largest_.as_double()));
  }

  static const Operand* operand_of(const std::vector<Operand>& operands, TensorId tensor) {
    for (const Operand& o : operands) {
      if (o.tensor == tensor) return &o;
    }
    return nullptr;
  }

  void add_edges(BlockGraph& out) {
    for (const FusionNote& note : plan_.notes) add_inner_edge(out, note);
    for (std::size_t i = 0; i < graph_.ops().size(); ++i) {
      const Op& op = graph_.ops()[i];
      std::set<TensorId> seen;
      for (const Operand& o : op.reads) {
        const Tensor& t = graph_.tensor(o.tensor);
        if (!comes_from_outside(t) || !seen.insert(o.tensor).second) continue;
        if (!graph_.producers(o.tensor).empty()) continue;  // a note's edge shows it
        const Bytes bytes = moved(kernel_of_[i], o).read;
        out.edges.push_back(outer_edge(tensor_id(t), op_id(op), t, bytes, "read by " + op.name));
        out.edges.back().hbm_read = bytes;
      }
      for (const Operand& o : op.writes) {
        const Tensor& t = graph_.tensor(o.tensor);
        if (!comes_from_outside(t)) continue;
        const Bytes bytes = moved(kernel_of_[i], o).stored;
        out.edges.push_back(outer_edge(op_id(op), tensor_id(t), t, bytes, "stored by " + op.name));
        out.edges.back().hbm_stored = bytes;
      }
    }
  }

  GraphEdge outer_edge(std::string from, std::string to, const Tensor& t, Bytes bytes,
                       const std::string& what) const {
    GraphEdge e;
    e.from = std::move(from);
    e.to = std::move(to);
    e.tensor = t.name;
    e.thickness = thickness(bytes);
    e.label = short_bytes(bytes);
    e.tooltip = fmt::format("{} {}\n{}", t.name, what, exact_bytes(bytes));
    e.thing = tensor_thing(t.name);
    return e;
  }

  void add_inner_edge(BlockGraph& out, const FusionNote& note) {
    const auto from = static_cast<std::size_t>(note.edge.from.index);
    const auto to = static_cast<std::size_t>(note.edge.to.index);
    const Op& producer = graph_.ops()[from];
    const Op& consumer = graph_.ops()[to];
    const Tensor& t = graph_.tensor(note.edge.tensor);
    GraphEdge e;
    e.from = op_id(producer);
    e.to = op_id(consumer);
    e.tensor = t.name;
    e.choice = {producer.name, consumer.name};
    e.fused = kernel_of_[from] == kernel_of_[to];
    e.on_chip = plan_.homes[static_cast<std::size_t>(note.edge.tensor.index)] == Home::on_chip;
    e.can_toggle = !view_.run.is_measurement() &&
                   !(is_attention_step(producer.kind) && is_attention_step(consumer.kind));
    e.reason = note.reason;
    if (!e.fused) {
      if (const Operand* o = operand_of(consumer.reads, note.edge.tensor)) {
        e.hbm_read = moved(kernel_of_[to], *o).read;
      }
    }
    if (const Operand* o = operand_of(producer.writes, note.edge.tensor)) {
      e.hbm_stored = moved(kernel_of_[from], *o).stored;
    }
    const Bytes crossing = e.hbm_read + e.hbm_stored;
    e.thickness = thickness(crossing);
    e.label = e.on_chip ? "on chip" : short_bytes(crossing);
    e.tooltip =
        fmt::format("{}: {} → {}\n{}\n{}{}", t.name, producer.name, consumer.name,
                    e.on_chip ? "never leaves the chip"
                              : fmt::format("stored: {}\nread from HBM: {}",
                                            exact_bytes(e.hbm_stored), exact_bytes(e.hbm_read)),
                    e.fused ? "one kernel: " : "apart: ", note.reason);
    e.thing = edge_thing(e.choice);
    out.edges.push_back(std::move(e));
  }

  static bool is_attention_step(OpKind kind) {
    return kind == operators::attention_scores || kind == operators::softmax ||
           kind == operators::attention_context;
  }

  void add_groups(BlockGraph& out) {
    std::map<fuseline::KernelKind, int> shades;
    for (std::size_t k = 0; k < plan_.kernels.size(); ++k) {
      const Kernel& kernel = plan_.kernels[k];
      const int shade = shades[kernel.kind]++;
      if (kernel.ops.size() < 2) continue;
      GraphGroup group{.kernel = k,
                       .name = kernel.name,
                       .nodes = {},
                       .colour = {role_of(kernel.kind), shade},
                       .thing = {}};
      for (const OpId id : kernel.ops) group.nodes.push_back(op_id(graph_.op(id)));
      if (const auto launch = first_launch_.find(k); launch != first_launch_.end()) {
        group.thing = kernel_thing(view_.run.id, launch->second);
      }
      out.groups.push_back(std::move(group));
    }
  }

  const RunView& view_;
  const RunResult& result_;
  const Plan& plan_;
  const Graph& graph_;
  std::vector<std::size_t> kernel_of_;
  std::vector<std::map<TensorId, Moved>> moved_;
  std::map<std::size_t, std::size_t> first_launch_;
  std::map<std::string, std::string> parts_;  // by operator
  Bytes largest_{};
  bool requested_ = false;
};

}  // namespace

BlockGraph block_graph(const RunView& view) {
  if (view.ok() && view.result->plan) return Builder(view).build();
  BlockGraph out;
  out.title = view.run.name;
  if (view.result != nullptr && view.result->problem) {
    out.problem = view.result->problem->text;
  } else if (view.result != nullptr) {
    out.problem =
        view.run.policy + " is no policy: its kernels were measured, its graph is unknown";
  }
  return out;
}

std::string dot_text(const BlockGraph& graph) {
  std::map<std::string, std::size_t> index;
  std::string out =
      "digraph block {\n"
      "  graph [rankdir=TB, nodesep=0.25, ranksep=0.45, splines=spline, ordering=out];\n"
      "  node [shape=box, fixedsize=true, fontname=\"sans\", fontsize=12];\n";
  if (graph.landscape) out.replace(out.find("rankdir=TB"), 10, "rankdir=LR");
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const GraphNode& node = graph.nodes[i];
    index[node.id] = i;
    const std::size_t letters =
        std::max(node.label.size(), node.is_tensor ? node.detail.size() : 0);
    const double width = (static_cast<double>(letters) + 3) * kPointsPerLetter / kPointsPerInch;
    out += fmt::format("  n{} [width={:.2f}, height={}];\n", i, width, node.is_tensor ? 0.5 : 0.4);
  }
  std::set<std::pair<std::size_t, std::size_t>> drawn;
  for (const GraphEdge& edge : graph.edges) {
    const std::size_t from = index.at(edge.from), to = index.at(edge.to);
    if (!drawn.emplace(from, to).second) continue;
    // Operators stand below each other, tensors from outside beside them.
    const bool inner = !graph.nodes[from].is_tensor && !graph.nodes[to].is_tensor;
    out += fmt::format("  n{} -> n{}{};\n", from, to, inner ? " [weight=8]" : "");
  }
  return out + "}\n";
}

Table to_table(const BlockGraph& graph) {
  Table table{
      "graph",
      {"from", "to", "tensor", "fused", "on_chip", "hbm_read_bytes", "hbm_stored_bytes", "reason"},
      {}};
  for (const GraphEdge& e : graph.edges) {
    add_row(
        table,
        {e.from, e.to, e.tensor, std::string(e.fused ? "yes" : "no"),
         std::string(e.on_chip ? "yes" : "no"), e.hbm_read.value(), e.hbm_stored.value(), e.reason},
        graph.about);
  }
  return table;
}

}  // namespace fuseline::gui
