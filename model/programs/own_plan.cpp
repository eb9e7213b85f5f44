#include "model/programs/own_plan.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "base/error.h"
#include "model/operators/all_operators.h"
#include "model/operators/operator_table.h"

namespace fuseline {

namespace {

[[noreturn]] void no_reference() {
  FUSELINE_ASSERT(false, "a program's meaning is that of its text (model/programs/meaning.h)");
}

// One operation an element is near enough: the tensor cores do the rest. Known when the program
// starts, because block_programs.cpp copies it then.
constinit const Operator kProgram{
    .name = "program",
    .op_class = OpClass::pointwise,
    .locality = Locality::tile_local,
    .formula = "the lines of a program",
    .reads = {},
    .write = OperandSpec{"out", "M", "N"},
    .flops =
        [](const Graph&, const Op& op) {
          return checked_product<Flops>(op.writes[0].rows, op.writes[0].cols);
        },
    .sum_length = [](const Graph&, const Op&) { return std::int64_t{1}; },
    .reference = [](const Graph&, const Op&, const TensorValues&,
                    TensorValues&) { no_reference(); },
    .lower = [](Emitter&, const Op&) {},
    .extent =
        [](const Op& op) {
          return Extent{op.writes[0].rows, op.writes[0].cols};
        },
    .gradient = no_gradient("a program of one's own has the gradient that its author writes"),
    .framework = [](const Graph&, const Op&) { return Implementation::vectorized; }};

// An operand once.
void keep(std::vector<Operand>& all, const Operand& o) {
  if (std::ranges::find(all, o) == all.end()) all.push_back(o);
}

void add_operators(Plan& plan, Kernel& kernel, const Program& p) {
  Op rest{.name = p.name, .kind = kProgram, .site = p.name};
  std::vector<Operand> of_mainloop;
  if (std::optional<Op> product = own_product(plan, p)) {
    of_mainloop = product->reads;
    rest.reads.push_back(product->writes[0]);
    kernel.ops.push_back(plan.graph.add_op(std::move(*product)));
  }
  for (const Operand& o : loads(p))
    if (std::ranges::find(of_mainloop, o) == of_mainloop.end()) keep(rest.reads, o);
  for (const Operand& o : stores(p)) keep(rest.writes, o);
  kernel.ops.push_back(plan.graph.add_op(std::move(rest)));
}

}  // namespace

OpKind own_program_kind() { return kProgram; }

void set_own_kind(Kernel& k) {
  const Mainloop& mainloop = k.phases.front().mainloop;
  if (std::holds_alternative<GemmMainloop>(mainloop)) {
    k.kind = KernelKind::gemm;
    k.implementation = Implementation::epilogue_gemm;
  } else if (std::holds_alternative<AttentionMainloop>(mainloop)) {
    k.kind = KernelKind::attention;
    k.implementation = Implementation::flash_attention;
  } else if (std::holds_alternative<ScanMainloop>(mainloop)) {
    k.kind = KernelKind::scan;
    k.implementation = Implementation::chunked_scan;
  } else if (std::holds_alternative<RowMainloop>(mainloop)) {
    k.kind = KernelKind::reduction;
    k.implementation = Implementation::resident_row;
  } else {
    k.kind = KernelKind::pointwise;
    k.implementation = Implementation::vectorized;
  }
}

std::optional<Op> own_product(Plan& plan, const Program& p) {
  const auto* gemm = std::get_if<GemmMainloop>(&p.mainloop);
  if (gemm == nullptr || gemm->batch != 1 || !gemm->groups.empty() || !gemm->depths.empty())
    return std::nullopt;
  const TensorId y = plan.graph.add_tensor({.name = p.name + " product",
                                            .symbol = "[M, N]",
                                            .role = Role::activation,
                                            .dtype = Dtype::fp32,
                                            .rows = gemm->M,
                                            .cols = gemm->N});
  plan.homes.push_back(Home::on_chip);
  Op product{.name = p.name + " product",
             .kind = operators::gemm,
             .reads = {gemm->a, gemm->b},
             .writes = {plan.graph.whole(y)},
             .attributes = GemmLayout{.a_is_km = gemm->a_is_km,
                                      .b_is_kn = gemm->b_is_kn,
                                      .weight = gemm->weight,
                                      .activation = gemm->activation},
             .site = p.name};
  for (const Operand& o : gemm->beside_b) product.reads.push_back(o);
  if (gemm->a_scale) product.reads.push_back(*gemm->a_scale);
  return product;
}

Plan whole_plan(const ProgramFile& file) {
  FUSELINE_ASSERT(file.readable(), "a text that could not be read");
  Plan plan = file.plan;
  if (!file.has_operators) {
    for (Kernel& kernel : plan.kernels) {
      const std::vector<Program> phases = kernel.phases;
      for (const Program& p : phases) add_operators(plan, kernel, p);
    }
    plan.block = plan.graph;
  }
  return plan;
}

}  // namespace fuseline
