// Lab 7: which edges to keep on chip: a graph problem.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/error.h"
#include "base/format.h"
#include "base/lists.h"
#include "lab/labs/all_labs.h"
#include "lab/labs/parts.h"
#include "lab/plan_bytes.h"
#include "model/blocks/block.h"
#include "model/config/model_files.h"
#include "model/custom_fusion.h"
#include "model/policy.h"

namespace fuseline::lab {

namespace {

// The rewrites that the last task leaves out: what `explain --policy coda` shows is no answer.
const std::vector<std::string> kLeftOut = {"rotate_statistics", "interleave_heads"};

// The choices without these rewrites, and without the edges that are then not there or not legal.
CustomFusion without_rewrites(CustomFusion custom, const Graph& graph,
                              const std::vector<std::string>& left_out) {
  std::erase_if(custom.rewrites, [&](const std::string& name) { return holds(left_out, name); });
  std::vector<OnChipEdge> wanted;
  std::swap(wanted, custom.on_chip);
  for (const OnChipEdge& edge : wanted) {
    custom.on_chip.push_back(edge);
    try {
      static_cast<void>(make_custom_plan(graph, custom.rewrites, custom.on_chip));
    } catch (const InputError&) {
      custom.on_chip.pop_back();
    }
  }
  return custom;
}

Lab lab_planning(const Student& student) {
  const std::string model =
      student.pick_name("lab7.model", {"llama2-7b", "llama2-13b", "llama3-8b", "tinyllama"});
  const ModelConfig config = load_model(model);
  const Workload work{.batch = student.pick("lab7.batch", {1, 2, 3}),
                      .seq = student.pick("lab7.seq", {1024, 2048, 3072})};
  const Graph graph = build_block(config, work);
  const auto bytes_with = [&](const std::vector<std::string>& rewrites,
                              const std::vector<OnChipEdge>& edges) {
    return plan_bytes(make_custom_plan(graph, rewrites, edges));
  };
  const Plan compiled = make_plan("torch-compile", config, work);
  const Plan coda = make_plan("coda", config, work);
  const Plan apart = make_custom_plan(graph, {}, {});
  const double none = plan_bytes(apart).as_double();
  const double second = none - bytes_with({}, {{"down", "residual2"}}).as_double();
  const Bytes gate = bytes_with({"interleave_gate_up"}, {{"gate_up", "swiglu"}});
  const double gate_saves = none - gate.as_double();
  const double tensor =
      static_cast<double>(work.rows()) * static_cast<double>(config.D) * 2;  // [M, D] in bf16
  const std::vector<OnChipEdge> residuals = {{"oproj", "residual1"}, {"down", "residual2"}};
  const Bytes only_residuals = bytes_with({}, residuals);
  std::vector<OnChipEdge> with_gate = residuals;
  with_gate.push_back({"gate_up", "swiglu"});
  const Bytes residuals_and_gate = bytes_with({"interleave_gate_up"}, with_gate);
  const auto edge_count = static_cast<std::int64_t>(apart.notes.size());
  const std::int64_t free_edges =
      std::ranges::count(apart.notes, false, &FusionNote::fused);  // those in attention
  const std::int64_t kept_edges = student.between("lab7.edges", 2, 4);
  const auto kernels = [](const Plan& plan) {
    return static_cast<std::int64_t>(plan.kernels.size());
  };
  const Bytes like_coda =
      plan_bytes(make_plan(kCustomPolicy, config, work, custom_like(coda, graph)));
  const CustomFusion alone = without_rewrites(custom_like(coda, graph), graph, kLeftOut);
  const Bytes best = plan_bytes(make_custom_plan(graph, alone.rewrites, alone.on_chip));
  const std::string selection =
      fmt::format("--model {} --batch {} --seq {}", model, work.batch, work.seq);
  const std::vector<Mistake> plans = {
      {only_residuals.as_double(),
       "both residuals ride already: what does swiglu need before it can join gate_up? "
       "(interleave_gate_up)"},
      {residuals_and_gate.as_double(),
       "the norms still read and write whole rows: split them (split_norm), so that their "
       "statistics join the GEMM before and their scale the GEMM after"},
      {gate.as_double(), "the residuals can join the GEMMs before them"}};
  std::vector<Mistake> last_plans = plans;
  last_plans.push_back(
      {like_coda.as_double(), "that is coda as it is: two of its rewrites are left out"});

  Lab lab;
  lab.intro = fmt::format(
      "Your block: **{}**, batch {}, {} tokens, in bf16. Your commands take `{}`.\n"
      "Bytes are each kernel's distinct operands once (`--fidelity roofline`); attention's three\n"
      "operators always share a kernel here.",
      config.title, work.batch, grouped(work.seq), selection);
  lab.tasks = {
      {.id = "7.1",
       .text = fmt::format(
           "The block is a directed graph: an edge joins an operator to one that reads its\n"
           "result. `fuseline explain {} --policy xla` lists the edges under\n"
           "\"neighbouring operators\". Those inside attention are decided; each other one may be\n"
           "kept on chip or not. How many sets of choices are that, legal or not?",
           selection),
       .key = whole_key(
           std::int64_t{1} << free_edges,
           {{std::pow(2.0, static_cast<double>(edge_count)),
             "attention's edges are decided: leave them out"},
            {static_cast<double>(free_edges), "that is the number of edges: count sets of them"},
            {static_cast<double>(2 * free_edges),
             "two choices for each edge multiply: they do not add up"},
            {static_cast<double>(free_edges * free_edges),
             "two choices for each edge: two to the power of the edges, not the square"},
            {std::pow(2.0, static_cast<double>(free_edges - 1)),
             "one edge is missing: h is read by the norm and by the second residual"},
            {std::pow(2.0, static_cast<double>(graph.ops().size())),
             "that takes operators for edges: count the arrows"}}),
       .hints = {"Count the lines with an arrow; a tensor with two readers makes two edges.",
                 "Without scores -> softmax and softmax -> context. Each edge doubles the sets."}},
      {.id = "7.2",
       .text = fmt::format(
           "A legal plan without rewrites keeps {} edges on chip beside attention's. No two of\n"
           "them join the same two kernels, and none is inside a kernel already. How many\n"
           "kernels has it?",
           kept_edges),
       .key = whole_key(
           kernels(apart) - kept_edges,
           {{static_cast<double>(kernels(apart)),
             "that is without any fusion but attention's: each edge joins two kernels to one"},
            {static_cast<double>(static_cast<std::int64_t>(graph.ops().size()) - kept_edges),
             "attention's three operators are one kernel from the start"},
            {static_cast<double>(kernels(apart) - 2 * kept_edges),
             "two kernels become one: one kernel fewer for each edge, not two"},
            {static_cast<double>(kernels(compiled)), "that is torch-compile"},
            {static_cast<double>(kernels(coda)), "that is coda"}}),
       .hints = {"What does contracting one edge do to the number of kernels?",
                 "Kernels without any choice (attention is one of them), minus the edges."}},
      {.id = "7.3",
       .text = "Contracting `residual1 -> residual2` alone is refused. Why?",
       .key =
           ChoiceKey{
               {{"a", "the two tensors that the pair adds do not fit into shared memory together",
                 "two additions need hardly any space: look for another path"},
                {"b", "the pair would have to run both before and after all that lies between them",
                 ""},
                {"c", "the pair would add the same residual twice, and it may be added only once",
                 "nothing forbids it: look for another path between the two"}}},
       .hints = {"Is there another way from residual1 to residual2?"}},
      {.id = "7.4",
       .text = "How many bytes does keeping `down -> residual2` on chip save?",
       .key = byte_key(second, {{tensor, "down's result is written and read back: both go"},
                                {3 * tensor, "y is still written, and h still read"},
                                {2 * second, "that is fp32: bf16 has 2 bytes an element"}}),
       .hints = {"One tensor [M, D] no longer goes through HBM.", "4 M D bytes."}},
      {.id = "7.5",
       .text = "h, the result of `residual1`, has two readers: `norm2` and `residual2`. Suppose\n"
               "`residual1 -> norm2` is kept on chip and nothing else. How many bytes does that\n"
               "save?",
       .key = byte_key(none - bytes_with({}, {{"residual1", "norm2"}}).as_double(),
                       {{2 * tensor, "h is still written: residual2 reads it later"},
                        {3 * tensor, "h is still written, and residual2 still reads it"}}),
       .hints = {"Must h still be stored?", "Only norm2's read goes away: 2 M D bytes."}},
      {.id = "7.6",
       .text = "And how many does `gate_up -> swiglu` save, after the rewrite "
               "`interleave_gate_up`?",
       .key = byte_key(gate_saves,
                       {{gate_saves / 2, "gate and up are both [M, F], each written and read"},
                        {2 * tensor, "the tensor is [M, 2F], not [M, D]"}}),
       .hints = {"Which tensor lies between the two?", "[M, 2F] written and read: 8 M F bytes."}},
      {.id = "7.7",
       .text = "Why is `swiglu -> down` refused, although nobody else reads swiglu's result?",
       .key = ChoiceKey{{{"a",
                          "as an operand of down's mainloop it would be computed again for every "
                          "column of tiles",
                          ""},
                         {"b",
                          "down's result would be needed before swiglu has run, so the kernel "
                          "would wait for itself",
                          "there is one path only: read the reason in explain"},
                         {"c",
                          "swiglu is not linear, and a kernel with a GEMM may hold linear "
                          "operators only",
                          "an epilogue may hold any function of a tile: read the reason"}}},
       .hints = {"`explain --policy per-operator` names the reason."}},
      {.id = "7.8",
       .text = fmt::format(
           "Write `plan.toml`: rewrites, and edges to keep on chip, in the table [custom].\n"
           "`fuseline explain plan.toml` shows what becomes of it and why an edge is refused;\n"
           "`fuseline predict plan.toml --fidelity roofline` counts its bytes. It has to be legal\n"
           "and to move at most {} MB.",
           megabytes(residuals_and_gate)),
       .key = PlanKey{config, work, residuals_and_gate, plans},
       .hints = {"Start with the two residuals.",
                 "gate_up -> swiglu needs the rewrite interleave_gate_up.",
                 "Edges: oproj -> residual1, down -> residual2, gate_up -> swiglu."},
       .points = 2},
      {.id = "7.9",
       .text = fmt::format(
           "The same file again, for a GPU whose kernels cannot hand statistics to the next block\n"
           "and cannot turn pairs in an epilogue: do without the rewrites `{}`.\n"
           "Bring it to {} MB.",
           fmt::join(kLeftOut, "` and `"), megabytes(best)),
       .key = PlanKey{config, work, best, last_plans, kLeftOut},
       .hints = {"`fuseline explain --policy coda` lists rewrites; two of them are left out here.",
                 "split_norm and interleave_gate_up are enough.",
                 "After the rewrites operators have other names: qkv -> qkv_scale, residual1 -> "
                 "stats_norm2, gate_up -> gate_up_scale and so on; explain plan.toml lists them."},
       .points = 2},
  };
  return lab;
}

}  // namespace

constinit const LabDescription labs::lab_07_planning{.folder = "07-fusion-planning",
                                                     .title = "fusion planning as a graph problem",
                                                     .make = lab_planning};

}  // namespace fuseline::lab
