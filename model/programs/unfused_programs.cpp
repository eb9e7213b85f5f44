#include "model/programs/unfused_programs.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "model/primitives/columns.h"
#include "model/primitives/load_tile.h"
#include "model/primitives/store_tile.h"
#include "model/primitives/values.h"
#include "model/programs/own_plan.h"

namespace fuseline {

namespace {

bool stores_memory(const Primitive& p) {
  return std::ranges::any_of(p.accesses(), [](const Access& a) { return a.store; });
}

// One program taken apart.
class Apart {
 public:
  Apart(Plan& plan, const Kernel& kernel)
      : plan_(plan), kernel_(kernel), program_(kernel.phases.front()), values_(analyse(program_)) {}

  std::vector<Kernel> run() {
    const auto* gemm = std::get_if<GemmMainloop>(&program_.mainloop);
    const auto* stream = std::get_if<StreamMainloop>(&program_.mainloop);
    if (gemm == nullptr && stream == nullptr) return {kernel_};
    rows_ = gemm != nullptr ? gemm->M : stream->rows;
    if (gemm != nullptr) {
      if (gemm->batch != 1) return {kernel_};
      type_ = plan_.graph.tensor(gemm->a.tensor).dtype;
      if (size_of(type_).bits() < 16) type_ = Dtype::bf16;
      Kernel product = kernel_;
      product.implementation = Implementation::library_gemm;
      product.phases.front().body = {keep(0)};
      made_.push_back(std::move(product));
    }
    for (const Primitive& p : program_.body) take(p);
    return made_.size() > 1 ? std::move(made_) : std::vector<Kernel>{kernel_};
  }

 private:
  void take(const Primitive& p) {
    if (const auto* part = p.as<Columns>(); part != nullptr && homes_.contains(part->in)) {
      Operand home = homes_.at(part->in);
      home.col_begin += part->begin;
      home.cols = part->cols;
      homes_[part->out] = home;
      return;
    }
    const bool stored = stores_memory(p);
    if (const auto* store = p.as<StoreTile>();
        store != nullptr && homes_.contains(store->in) && homes_.at(store->in) == store->to)
      return;  // the kernel that made it stored it there
    const std::vector<Value> made = p.defines();
    const bool tile =
        std::ranges::any_of(made, [&](Value v) { return values_.form(v) == Form::tile; });
    if (!stored && (!tile || p.is<LoadTile>() || p.uses().empty())) {
      again_.push_back(p);  // a load, or a number of a row or of a column
      return;
    }
    Program own{.name = fmt::format("{}_{}", program_.name, made_.size() + 1),
                .mainloop = StreamMainloop{},
                .body = needs(p.uses())};
    std::int64_t cols = 0;
    for (const Value v : p.uses()) cols = std::max(cols, width_of(v));
    own.body.push_back(p);
    for (const Value v : made) {
      cols = std::max(cols, width_of(v));
      if (values_.form(v) == Form::tile) own.body.push_back(keep(v));
    }
    own.names = program_.names;
    own.mainloop = StreamMainloop{rows_, cols};
    Kernel k{.name = own.name, .kind = KernelKind::pointwise, .ops = {}, .phases = {}};
    k.phases.push_back(std::move(own));
    made_.push_back(std::move(k));
  }

  [[nodiscard]] std::int64_t width_of(Value v) const {
    return values_.form(v) == Form::tile ? values_.width(v) : 0;
  }

  // Where a tile goes: to the first store that the program has for it, or to a tensor of its own.
  Primitive keep(Value v) {
    for (const Primitive& p : program_.body)
      if (const auto* store = p.as<StoreTile>();
          store != nullptr && store->in == v && !store->accumulate) {
        homes_[v] = store->to;
        return p;
      }
    const TensorId id = plan_.graph.add_tensor({.name = fmt::format("{}_value{}", program_.name, v),
                                                .symbol = "[M, N]",
                                                .role = Role::activation,
                                                .dtype = type_,
                                                .rows = rows_,
                                                .cols = values_.width(v)});
    plan_.homes.push_back(Home::hbm);
    homes_[v] = plan_.graph.whole(id);
    return StoreTile{.in = v, .to = homes_.at(v)};
  }

  // Loads of these values from where they went, and what is made again, in the program's order.
  std::vector<Primitive> needs(const std::vector<Value>& wanted) {
    std::vector<Primitive> loads, chain;
    std::vector<Value> open = wanted;
    std::vector<Value> done;
    while (!open.empty()) {
      const Value v = open.back();
      open.pop_back();
      if (std::ranges::find(done, v) != done.end()) continue;
      done.push_back(v);
      if (const auto home = homes_.find(v); home != homes_.end()) {
        loads.emplace_back(LoadTile{.out = v, .from = home->second});
        continue;
      }
      for (const Primitive& p : again_)
        if (std::ranges::count(p.defines(), v) != 0 && std::ranges::find(chain, p) == chain.end()) {
          chain.push_back(p);
          for (const Value u : p.uses()) open.push_back(u);
        }
    }
    for (const Primitive& p : again_)
      if (std::ranges::find(chain, p) != chain.end()) loads.push_back(p);
    return loads;
  }

  Plan& plan_;
  const Kernel& kernel_;
  const Program& program_;
  ValueAnalysis values_;
  std::int64_t rows_ = 0;
  Dtype type_ = Dtype::bf16;
  std::map<Value, Operand> homes_;  // of tiles in memory
  std::vector<Primitive> again_;
  std::vector<Kernel> made_;
};

}  // namespace

std::optional<Plan> unfused_programs(const ProgramFile& file) {
  if (file.has_operators) return std::nullopt;
  ProgramFile apart = file;
  apart.plan.policy = "unfused";
  apart.plan.kernels.clear();
  for (const Kernel& kernel : file.plan.kernels) {
    if (kernel.phases.size() != 1) return std::nullopt;
    for (Kernel& k : Apart(apart.plan, kernel).run()) apart.plan.kernels.push_back(std::move(k));
  }
  if (apart.plan.kernels.size() == file.plan.kernels.size()) return std::nullopt;
  return whole_plan(apart);
}

}  // namespace fuseline
