#include "model/plan.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <variant>

#include "base/error.h"
#include "model/chain.h"

namespace fuseline {

namespace {

std::size_t operator_index(TensorId id) { return static_cast<std::size_t>(id.index); }

bool is_partial(const Plan& plan, TensorId id) {
  return plan.graph.tensor(id).role == Role::activation &&
         std::ranges::any_of(plan.kernels, [&](const Kernel& k) {
           return std::ranges::any_of(k.phases, [&](const Program& p) {
             return std::ranges::any_of(p.body, [&](const Primitive& primitive) {
               return std::ranges::any_of(primitive.accesses(), [&](const Access& access) {
                 return access.reach == Reach::partials && access.operand.tensor == id;
               });
             });
           });
         });
}

// Follows the plan in launch order and remembers which columns of each tensor are in memory.
class Checker {
 public:
  explicit Checker(const Plan& plan) : plan_(plan), present_(plan.graph.tensors().size()) {}

  std::vector<std::string> run() {
    if (plan_.homes.size() != plan_.graph.tensors().size())
      problems_.emplace_back("not every tensor has a home");
    operators_once();
    std::set<std::string> names;
    for (const Kernel& kernel : plan_.kernels) {
      if (!names.insert(kernel.name).second)
        problems_.push_back("two kernels are named " + kernel.name);
      if (kernel.phases.empty()) problems_.push_back(kernel.name + " has no program");
      if (kernel.implementation == Implementation::chained_products)
        if (const std::string why = why_not_handed_over(plan_.graph, kernel); !why.empty())
          problems_.push_back(kernel.name + ": " + why);
      kept_ = handed_over(kernel);
      for (const Program& program : kernel.phases) follow(program);
    }
    outputs();
    partials_finished_once();
    return problems_;
  }

 private:
  void operators_once() {
    std::vector<int> count(plan_.graph.ops().size());
    for (const Kernel& kernel : plan_.kernels)
      for (const OpId id : kernel.ops) ++count[static_cast<std::size_t>(id.index)];
    for (std::size_t i = 0; i < count.size(); ++i)
      if (count[i] != 1)
        problems_.push_back("operator " + plan_.graph.ops()[i].name + " is in " +
                            std::to_string(count[i]) + " kernels");
  }

  bool on_chip(TensorId id) const {
    return operator_index(id) < plan_.homes.size() &&
           plan_.homes[operator_index(id)] == Home::on_chip;
  }

  void follow(const Program& program) {
    for (const std::string& p : check_program(plan_.graph, program)) problems_.push_back(p);
    // What this program stores itself it has at hand (a cache that attention appends to).
    const std::vector<Operand> stored = stores(program);
    for (const Operand& o : loads(program)) {
      const Tensor& t = plan_.graph.tensor(o.tensor);
      if (on_chip(o.tensor) && !(kept_ && kept_->tensor == o.tensor))
        problems_.push_back(program.name + " loads " + t.name + ", which stays on chip");
      readers_[o.tensor].insert(&program);
      const bool made = t.role == Role::activation || t.role == Role::output;
      if (made && !in_memory(o))
        problems_.push_back(program.name + " loads " + t.name +
                            " before it is stored: kernels against the dependencies");
    }
    for (const Operand& o : stored) {
      if (on_chip(o.tensor) && !(kept_ && kept_->tensor == o.tensor))
        problems_.push_back(program.name + " stores " + plan_.graph.tensor(o.tensor).name +
                            ", which stays on chip");
      present_[operator_index(o.tensor)].push_back(o);
    }
  }

  // Whether stores so far cover all elements of the operand.
  bool in_memory(const Operand& wanted) const {
    std::vector<Operand> parts = present_[operator_index(wanted.tensor)];
    std::ranges::sort(parts, {}, &Operand::col_begin);
    const auto columns_of = [&](auto has_rows) {
      std::int64_t reached = wanted.col_begin;
      for (const Operand& part : parts)
        if (part.col_begin <= reached && has_rows(part))
          reached = std::max(reached, part.col_begin + part.cols);
      return reached >= wanted.col_begin + wanted.cols;
    };
    const auto holds_rows = [](const Operand& part, Operand rows) {
      rows.col_begin = part.col_begin;
      rows.cols = part.cols;
      return covers(part, rows);
    };
    if (columns_of([&](const Operand& part) { return holds_rows(part, wanted); })) return true;
    // Different stores may have made different rows.
    for (std::int64_t r = 0; r < wanted.rows; ++r) {
      Operand row = wanted;
      row.rows = 1;
      row.at = {wanted.tensor_row(r)};
      if (!columns_of([&](const Operand& part) { return holds_rows(part, row); })) return false;
    }
    return true;
  }

  void outputs() {
    for (std::size_t i = 0; i < plan_.graph.tensors().size(); ++i) {
      const TensorId id{static_cast<std::int32_t>(i)};
      if (plan_.graph.tensor(id).role == Role::output && !in_memory(plan_.graph.whole(id)))
        problems_.push_back("output " + plan_.graph.tensor(id).name + " is not stored");
    }
  }

  void partials_finished_once() {
    for (std::size_t i = 0; i < plan_.graph.tensors().size(); ++i) {
      const TensorId id{static_cast<std::int32_t>(i)};
      if (!is_partial(plan_, id)) continue;
      const auto it = readers_.find(id);
      const std::size_t finishers = it == readers_.end() ? 0 : it->second.size();
      if (finishers != 1)
        problems_.push_back("partials " + plan_.graph.tensor(id).name + " have " +
                            std::to_string(finishers) + " finishers");
    }
  }

  const Plan& plan_;
  std::vector<std::string> problems_;
  std::optional<Operand> kept_;                // on chip, between the kernel's two programs
  std::vector<std::vector<Operand>> present_;  // by tensor
  std::map<TensorId, std::set<const Program*>> readers_;
};

}  // namespace

std::vector<std::string> check_plan(const Plan& plan) { return Checker(plan).run(); }

std::span<const KernelKind> all_kernel_kinds() {
  static constexpr std::array kKinds = {
      KernelKind::gemm,      KernelKind::attention, KernelKind::norm, KernelKind::pointwise,
      KernelKind::reduction, KernelKind::block,     KernelKind::scan, KernelKind::conv,
      KernelKind::route,     KernelKind::collective};
  return kKinds;
}

const char* name_of(KernelKind kind) {
  switch (kind) {
    case KernelKind::gemm:
      return "gemm";
    case KernelKind::attention:
      return "attention";
    case KernelKind::norm:
      return "norm";
    case KernelKind::pointwise:
      return "pointwise";
    case KernelKind::reduction:
      return "reduction";
    case KernelKind::block:
      return "block";
    case KernelKind::scan:
      return "scan";
    case KernelKind::conv:
      return "conv";
    case KernelKind::route:
      return "route";
    case KernelKind::collective:
      return "collective";
  }
  FUSELINE_ASSERT(false, "unknown kernel kind");
}

const char* name_of(Implementation implementation) {
  switch (implementation) {
    case Implementation::library_gemm:
      return "library GEMM";
    case Implementation::epilogue_gemm:
      return "epilogue GEMM";
    case Implementation::library_attention:
      return "library attention";
    case Implementation::flash_attention:
      return "flash attention";
    case Implementation::library_scan:
      return "library scan";
    case Implementation::chunked_scan:
      return "chunked scan";
    case Implementation::vectorized:
      return "vectorized";
    case Implementation::strided:
      return "strided";
    case Implementation::concat:
      return "concatenation";
    case Implementation::transposing:
      return "transposing";
    case Implementation::framework_select:
      return "framework selection";
    case Implementation::framework_order:
      return "framework order";
    case Implementation::framework_sort:
      return "framework sort";
    case Implementation::framework_sort_pass:
      return "framework sort pass";
    case Implementation::generated_sort:
      return "generated sort";
    case Implementation::framework_reduce:
      return "framework reduction";
    case Implementation::scatter_add:
      return "scattered addition";
    case Implementation::row_norm:
      return "row norm";
    case Implementation::resident_row:
      return "resident row";
    case Implementation::generated_pointwise:
      return "generated pointwise";
    case Implementation::generated_reduction:
      return "generated reduction";
    case Implementation::finisher:
      return "finisher";
    case Implementation::chained_products:
      return "chained products";
    case Implementation::persistent_block:
      return "persistent block";
  }
  FUSELINE_ASSERT(false, "unknown implementation");
}

}  // namespace fuseline
