#include "model/explain.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "base/wrap.h"

namespace fuseline {

namespace {

constexpr std::size_t line_width = 100;

std::string shape_text(const Tensor& t) {
  if (t.outer.empty()) return fmt::format("[{}, {}] {}", t.rows, t.cols, name_of(t.dtype));
  return fmt::format("[{}, {}] {}", fmt::join(t.outer, ", "), t.cols, name_of(t.dtype));
}

KernelExplanation explain_kernel(const Plan& plan, const Kernel& kernel) {
  KernelExplanation e{kernel.name, name_of(kernel.kind), name_of(kernel.implementation), {}, {}};
  for (const OpId id : kernel.ops) e.operators.push_back(plan.graph.op(id).name);
  for (const Program& p : kernel.phases) e.programs.push_back(print_program(plan.graph, p));
  for (const FrameworkLaunch& launch : kernel.beside) e.beside.push_back(launch.name);
  e.in_pieces = kernel.in_pieces;
  return e;
}

TensorExplanation explain_tensor(const Plan& plan, TensorId id) {
  const Tensor& t = plan.graph.tensor(id);
  TensorExplanation e{t.name, shape_text(t), name_of(t.role), "HBM", "", {}, t.bytes()};
  std::vector<Operand> stored;
  for (const Kernel& kernel : plan.kernels) {
    for (const Program& program : kernel.phases) {
      for (const Operand& o : stores(program)) {
        if (o.tensor != id) continue;
        e.producer = program.name;
        stored.push_back(o);
      }
      for (const Operand& o : loads(program)) {
        const bool known = !e.consumers.empty() && e.consumers.back() == program.name;
        if (o.tensor == id && !known) e.consumers.push_back(program.name);
      }
    }
  }
  if (plan.homes[static_cast<std::size_t>(id.index)] == Home::on_chip) {
    e.home = "on chip";
    e.bytes = Bytes(0);
  } else if (stored.size() == 1 && t.role == Role::activation && stored[0].cols < t.cols &&
             stored[0].rows == t.rows) {
    e.home = fmt::format("HBM, columns {}:{} only", stored[0].col_begin,
                         stored[0].col_begin + stored[0].cols);
    e.bytes = plan.graph.bytes(stored[0]);
  }
  return e;
}

std::vector<std::string> explain_preparation(const Preparation& preparation) {
  std::vector<std::string> lines;
  for (const Op& op : preparation.graph.ops()) {
    std::string reads;
    for (const Operand& o : op.reads)
      reads += (reads.empty() ? "" : ", ") + preparation.graph.tensor(o.tensor).name;
    lines.push_back(fmt::format("{} = {}({})", preparation.graph.tensor(op.writes[0].tensor).name,
                                name_of(op.kind), reads));
  }
  for (const Interleaving& i : preparation.interleavings)
    lines.push_back(fmt::format("{}: {} {}:{} interleaved in groups of {}", i.tensor,
                                i.columns ? "columns" : "rows", i.begin, i.begin + i.count,
                                i.group));
  for (const Interleaving& i : preparation.results)
    lines.push_back(fmt::format("{}: {} {}:{} come out interleaved in groups of {}", i.tensor,
                                i.columns ? "columns" : "rows", i.begin, i.begin + i.count,
                                i.group));
  return lines;
}

std::string join(const std::vector<std::string>& words, const char* between) {
  std::string text;
  for (const std::string& w : words) text += (text.empty() ? "" : between) + w;
  return text;
}

// Breaks at spaces; further lines start with `indent`.
std::string wrap(const std::string& text, const std::string& indent) {
  const std::string lead = text.substr(0, text.find_first_not_of(" \n"));
  const std::vector<std::string> lines =
      broken(text.substr(lead.size()), line_width - indent.size(), line_width - lead.size());
  std::string result = lead;
  for (std::size_t i = 0; i < lines.size(); ++i) result += (i > 0 ? indent : "") + lines[i] + "\n";
  return result;
}

std::string indented(const std::string& block) {
  std::string text;
  std::size_t begin = 0;
  while (begin < block.size()) {
    const std::size_t end = block.find('\n', begin);
    text += "  " + block.substr(begin, end - begin) + "\n";
    begin = end + 1;
  }
  return text;
}

}  // namespace

Explanation explain(const Plan& plan) {
  Explanation e;
  e.policy = plan.policy;
  e.rewrites = plan.rewrites;
  for (const Kernel& kernel : plan.kernels) e.kernels.push_back(explain_kernel(plan, kernel));
  for (std::size_t i = 0; i < plan.graph.tensors().size(); ++i)
    e.tensors.push_back(explain_tensor(plan, TensorId{static_cast<std::int32_t>(i)}));
  for (const FusionNote& n : plan.notes)
    e.edges.push_back({plan.graph.op(n.edge.from).name, plan.graph.op(n.edge.to).name,
                       plan.graph.tensor(n.edge.tensor).name, n.fused, n.reason});
  e.preparation = explain_preparation(plan.preparation);
  return e;
}

std::string explain_text(const Explanation& e) {
  std::size_t programs = 0;
  std::size_t launches = e.kernels.size();
  for (const KernelExplanation& k : e.kernels) {
    programs += k.programs.size();
    launches += k.beside.size();
    if (k.in_pieces) --launches;
  }
  std::string text =
      fmt::format("policy {}: {} launch{}", e.policy, launches, launches == 1 ? "" : "es");
  if (programs != e.kernels.size()) text += fmt::format(", {} phases", programs);
  text += "\n" + wrap("rewrites: " + (e.rewrites.empty() ? "none" : join(e.rewrites, ", ")), "  ");
  text += "\nkernels\n";
  for (std::size_t i = 0; i < e.kernels.size(); ++i) {
    const KernelExplanation& k = e.kernels[i];
    text += wrap(fmt::format("\n{}. {} ({}, {}): {}", i + 1, k.name, k.kind, k.implementation,
                             join(k.operators, " ")),
                 "   ");
    if (!k.predicted.empty()) text += wrap("   " + k.predicted, "   ");
    if (!k.beside.empty())
      text += wrap(std::string("   launched ") + (k.in_pieces ? "in its place: " : "beside it: ") +
                       join(k.beside, ", "),
                   "     ");
    for (std::size_t p = 0; p < k.programs.size(); ++p)
      text += indented((p > 0 ? "-- grid barrier --\n" : "") + k.programs[p]);
    if (!k.instructions.empty())
      text += wrap("   as instructions, with counters in place of grid barriers; SM 0:", "   ");
    for (const std::string& line : k.instructions) text += wrap("     " + line, "       ");
  }
  if (!e.preparation.empty()) {
    text += "\nonce, before the first block\n";
    for (const std::string& line : e.preparation) text += wrap("  " + line, "    ");
  }
  text += "\ntensors (name, shape, home)\n";
  for (const TensorExplanation& t : e.tensors)
    text += fmt::format("  {:<22} {:<22} {}\n", t.name, t.shape, t.home);
  text += "\nneighbouring operators\n";
  for (const EdgeExplanation& edge : e.edges)
    text += wrap(fmt::format("  {} -> {}: {}: {}", edge.from, edge.to,
                             edge.fused ? "one kernel" : "apart", edge.reason),
                 "      ");
  return text;
}

}  // namespace fuseline
