#include "model/programs/gradient.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>
#include <sstream>
#include <utility>

#include "base/error.h"
#include "model/primitives/all_reductions.h"
#include "model/primitives/load_tile.h"
#include "model/primitives/row_reduce.h"
#include "model/primitives/store_tile.h"
#include "model/primitives/store_vector.h"
#include "model/programs/adjoint.h"
#include "model/programs/lettered_text.h"

namespace fuseline {

namespace {

constexpr const char* kPrefix = "d_";

bool is_given(const Tensor& t) { return t.role == Role::input || t.role == Role::weight; }

bool is_real(Dtype type) { return size_of(type).bits() >= 16; }

class Backwards final : public GradientHomes {
 public:
  Backwards(const ProgramFile& file, const std::vector<std::string>& of, Products products)
      : products_(products), given_(file.plan), forward_(given_.graph) {
    for (std::size_t i = 0; i < forward_.tensors().size(); ++i) {
      const Tensor& t = forward_.tensors()[i];
      const bool named = std::ranges::find(of, t.name) != of.end();
      wanted_.push_back(t.role == Role::activation ||
                        (is_given(t) && is_real(t.dtype) && (of.empty() || named)));
    }
    for (const std::string& name : of) check_name(name);
  }

  ProgramGradient run() {
    for (auto k = given_.kernels.rbegin(); k != given_.kernels.rend(); ++k)
      for (auto p = k->phases.rbegin(); p != k->phases.rend(); ++p) program(*p);
    const bool any = std::ranges::any_of(plan_.graph.tensors(),
                                         [](const Tensor& t) { return t.role == Role::output; });
    if (!any)
      throw InputError(
          {.field = "gradient",
           .message = "no input or weight that is asked for reaches an output",
           .allowed = "tensors that a product, a load of a tile or of a vector reads"});
    plan_.policy = "gradient";
    ProgramGradient made{.plan = std::move(plan_), .forward = {}, .keeps = keeps_, .of = {}};
    for (const auto& [forward, here] : gradients_)
      made.of.emplace_back(made.plan.graph.tensor(here).name, forward_.tensor(forward).name);
    given_.graph = std::move(forward_);
    made.forward = std::move(given_);
    return made;
  }

  // ------------------------------------------------------------ GradientHomes
  std::optional<Operand> of_stored(const Operand& to) override {
    const Tensor& t = forward_.tensor(to.tensor);
    if (t.role == Role::output) return same_place(to, gradient(to.tensor, Role::input));
    if (!made_.contains(to.tensor)) return std::nullopt;
    const std::vector<Operand>& parts = made_.at(to.tensor);
    if (std::ranges::none_of(parts, [&](const Operand& o) { return overlap(o, to); }))
      return std::nullopt;
    return same_place(to, gradient(to.tensor, Role::activation));
  }

  std::optional<Operand> of_loaded(const Operand& from, bool& add) override {
    if (!wanted_.at(static_cast<std::size_t>(from.tensor.index)) ||
        !is_real(forward_.tensor(from.tensor).dtype))
      return std::nullopt;
    std::vector<Operand>& parts = made_[from.tensor];
    add = false;
    for (const Operand& o : parts) {
      if (o == from)
        add = true;
      else if (overlap(o, from))
        throw MissingError(
            fmt::format("parts of {} that are read and overlap state no gradient yet",
                        forward_.tensor(from.tensor).name));
    }
    parts.push_back(from);
    const bool given = is_given(forward_.tensor(from.tensor));
    return same_place(from, gradient(from.tensor, given ? Role::output : Role::activation));
  }

  Operand partials_of(const Operand& vector, std::int64_t rows, std::int64_t cols) override {
    const Operand parts = tensor({.name = unique(plan_.graph.tensor(vector.tensor).name + "_parts"),
                                  .role = Role::activation,
                                  .dtype = Dtype::fp32,
                                  .rows = rows,
                                  .cols = cols});
    finish_.push_back({parts, vector});
    return parts;
  }

  Operand again(const Operand& o) override {
    const Tensor& t = forward_.tensor(o.tensor);
    const auto [at, fresh] = again_.emplace(o.tensor, TensorId{});
    if (fresh) {
      Tensor kept = t;
      if (t.role == Role::activation || t.role == Role::output) kept.role = Role::input;
      at->second = add_tensor(kept).tensor;  // no gradient has its name
    }
    Operand here = o;
    here.tensor = at->second;
    return here;
  }

 private:
  void check_name(const std::string& name) const {
    std::vector<std::string> names;
    for (const Tensor& t : forward_.tensors())
      if (is_given(t) && is_real(t.dtype)) names.push_back(t.name);
    if (std::ranges::find(names, name) != names.end()) return;
    throw InputError({.field = "gradient",
                      .value = name,
                      .message = "is no input or weight of the file",
                      .allowed = fmt::format("{}", fmt::join(names, ", ")),
                      .nearest = nearest_name(name, names)});
  }

  Operand tensor(Tensor t) {
    t.name = unique(t.name);
    return add_tensor(std::move(t));
  }
  Operand add_tensor(Tensor t) {
    const TensorId id = plan_.graph.add_tensor(std::move(t));
    plan_.homes.push_back(Home::hbm);
    return plan_.graph.whole(id);
  }
  std::string unique(std::string name) const {
    while (plan_.graph.find_tensor(name) || forward_.find_tensor(name)) name += "_";
    return name;
  }

  // The tensor that holds the gradient of a forward one.
  Operand gradient(TensorId of, Role role) {
    if (const auto found = gradients_.find(of); found != gradients_.end())
      return plan_.graph.whole(found->second);
    const Tensor& t = forward_.tensor(of);
    Tensor d = t;
    d.name = kPrefix + t.name;
    d.role = role;
    const Operand whole = tensor(std::move(d));
    gradients_[of] = whole.tensor;
    return whole;
  }
  static Operand same_place(Operand forward, const Operand& gradient) {
    forward.tensor = gradient.tensor;
    return forward;
  }

  void add(Program p, KernelKind kind) {
    Kernel k{.name = p.name, .kind = kind, .ops = {}, .phases = {}};
    k.phases.push_back(std::move(p));
    plan_.kernels.push_back(std::move(k));
  }

  void program(Program& p) {
    const bool reaches =
        std::ranges::any_of(stores(p), [&](const Operand& o) { return of_stored(o).has_value(); });
    if (!reaches) return;
    const auto* gemm = std::get_if<GemmMainloop>(&p.mainloop);
    const bool loop = std::holds_alternative<RowMainloop>(p.mainloop) ||
                      std::holds_alternative<StreamMainloop>(p.mainloop);
    if (gemm == nullptr && !loop) missing(p, "attention or a scan");
    if (gemm != nullptr && (gemm->batch != 1 || !gemm->groups.empty() || !gemm->depths.empty() ||
                            gemm->weight.quantised() || gemm->activation.quantised()))
      missing(p, "a product in a batch, in groups or of codes");
    if (const auto* row = std::get_if<RowMainloop>(&p.mainloop); row != nullptr && row->heads > 1)
      missing(p, "a loop over the rows of heads");
    finish_.clear();
    ProgramAdjoint back(p, *this);
    back.run();
    const std::optional<Value> dy = gemm != nullptr ? back.of(0) : std::nullopt;
    if (gemm != nullptr && back.product_again()) replace_product(p, back);
    std::optional<Operand> product = dy ? back.product_in_memory() : std::nullopt;
    if (dy && !product) product = stored_anyway(*gemm, back.lines(), *dy);
    if (dy && !product) {
      product = tensor({.name = kPrefix + p.name + "_product",
                        .role = Role::activation,
                        .dtype = forward_.tensor(gemm->a.tensor).dtype,
                        .rows = gemm->M,
                        .cols = gemm->N});
      back.emit(StoreTile{.in = *dy, .to = *product});
    }
    const std::vector<Primitive> lines = back.lines();
    const bool stores_any = std::ranges::any_of(lines, [](const Primitive& line) {
      return std::ranges::any_of(line.accesses(), [](const Access& a) { return a.store; });
    });
    if (stores_any) {
      Program own{.name = kPrefix + p.name, .mainloop = p.mainloop, .body = lines};
      own.names = back.names();
      KernelKind kind = loop ? KernelKind::pointwise : KernelKind::gemm;
      if (std::holds_alternative<RowMainloop>(p.mainloop)) kind = KernelKind::norm;
      if (gemm != nullptr && back.product_again()) {
        GemmMainloop same = *gemm;
        same.a = again(gemm->a);
        same.b = again(gemm->b);
        own.mainloop = std::move(same);
      } else if (gemm != nullptr) {
        own.mainloop = StreamMainloop{gemm->M, gemm->N};
        kind = KernelKind::pointwise;
      }
      add(std::move(own), kind);
    }
    sum_up();
    if (product) products(p.name, *gemm, *product);
  }

  // Where a line of the gradient stores the product's own gradient for another reason.
  std::optional<Operand> stored_anyway(const GemmMainloop& gemm,
                                       const std::vector<Primitive>& lines, Value dy) const {
    const Dtype type = forward_.tensor(gemm.a.tensor).dtype;
    for (const Primitive& line : lines)
      if (const auto* store = line.as<StoreTile>();
          store != nullptr && store->in == dy && !store->accumulate &&
          plan_.graph.tensor(store->to.tensor).dtype == type && store->to.rows == gemm.M &&
          store->to.cols == gemm.N && store->to.at == RowRuns{})
        return store->to;
    return std::nullopt;
  }

  // The product's epilogue again from a tile that the forward pass stored, or is to store.
  void replace_product(Program& p, ProgramAdjoint& back) {
    const std::vector<Value> tiles = back.in_place_of_product();
    for (const Value v : tiles)
      for (const Primitive& line : p.body)
        if (const auto* store = line.as<StoreTile>();
            store != nullptr && store->in == v && !store->accumulate &&
            is_real(forward_.tensor(store->to.tensor).dtype))
          return back.load_again(v, store->to);
    if (products_ == Products::again) return;
    const auto& gemm = std::get<GemmMainloop>(p.mainloop);
    const Value v = tiles.front();
    Tensor kept{.name = unique(p.name + "_" + p.names.at(static_cast<std::size_t>(v))),
                .role = Role::activation,
                .dtype = forward_.tensor(gemm.a.tensor).dtype,
                .rows = gemm.M,
                .cols = back.shape(v).width};
    const TensorId id = forward_.add_tensor(std::move(kept));
    given_.homes.push_back(Home::hbm);
    wanted_.push_back(false);
    const Operand to = forward_.whole(id);
    // Behind the line that makes it, so that it holds no registers for longer.
    const auto maker = std::ranges::find_if(
        p.body, [&](const Primitive& line) { return std::ranges::count(line.defines(), v) > 0; });
    p.body.insert(maker == p.body.end() ? p.body.begin() : maker + 1,
                  Primitive(StoreTile{.in = v, .to = to}));
    back.load_again(v, to);  // of the program with its new line
    keeps_ = true;
  }

  // dA = dY·B and dB = dY^T·A, or their transposes, in the order in which A and B are stored.
  void products(const std::string& name, const GemmMainloop& m, const Operand& dy) {
    bool more = false;
    if (const auto to = of_loaded(m.a, more)) {
      GemmMainloop d{.a = dy, .b = again(m.b), .M = m.M, .N = m.K, .K = m.N, .b_is_kn = !m.b_is_kn};
      if (m.a_is_km)
        d = {.a = again(m.b), .b = dy, .M = m.K, .N = m.M, .K = m.N, .a_is_km = !m.b_is_kn};
      multiply(kPrefix + name + "_a", d, *to, more);
    }
    if (const auto to = of_loaded(m.b, more)) {
      GemmMainloop d{.a = dy,
                     .b = again(m.a),
                     .M = m.N,
                     .N = m.K,
                     .K = m.M,
                     .a_is_km = true,
                     .b_is_kn = !m.a_is_km};
      if (m.b_is_kn)
        d = {.a = again(m.a),
             .b = dy,
             .M = m.K,
             .N = m.N,
             .K = m.M,
             .a_is_km = !m.a_is_km,
             .b_is_kn = true};
      multiply(kPrefix + name + "_b", d, *to, more);
    }
  }
  void multiply(const std::string& name, const GemmMainloop& m, const Operand& to, bool more) {
    Program p{.name = name, .mainloop = m, .body = {}};
    p.body.emplace_back(StoreTile{.in = 0, .to = to, .accumulate = more});
    p.names = {"y"};
    add(std::move(p), KernelKind::gemm);
  }

  struct Finish {
    Operand parts, vector;
  };
  // Partials of one shape in one program.
  void sum_up() {
    while (!finish_.empty()) {
      const Operand first = finish_.front().parts;
      Program p{.name = "sum_" + plan_.graph.tensor(first.tensor).name,
                .mainloop = RowMainloop{first.rows, first.cols},
                .body = {}};
      std::vector<Finish> others;
      Value v = 0;
      for (const Finish& f : finish_) {
        if (f.parts.rows != first.rows || f.parts.cols != first.cols) {
          others.push_back(f);
          continue;
        }
        p.body.emplace_back(LoadTile{.out = v, .from = f.parts});
        p.body.emplace_back(RowReduce{.out = v + 1, .fn = reductions::sum, .in = v});
        p.body.emplace_back(StoreVector{.in = v + 1, .to = f.vector, .axis = Axis::rows});
        const std::string number = v == 0 ? "" : std::to_string(v / 2 + 1);
        p.names.push_back("p" + number);
        p.names.push_back("s" + number);
        v += 2;
      }
      add(std::move(p), KernelKind::reduction);
      finish_ = std::move(others);
    }
  }

  [[noreturn]] static void missing(const Program& p, const std::string& what) {
    throw MissingError(fmt::format("program {}: {} states no gradient yet", p.name, what));
  }

  Products products_;
  Plan given_;     // the forward pass
  Graph forward_;  // its tensors
  bool keeps_ = false;
  std::vector<bool> wanted_;                        // by forward tensor
  std::map<TensorId, TensorId> again_, gradients_;  // forward -> here
  std::map<TensorId, std::vector<Operand>> made_;   // parts whose gradients were stored
  std::vector<Finish> finish_;
  Plan plan_;
};

}  // namespace

ProgramGradient program_gradient(const ProgramFile& file, const std::vector<std::string>& of,
                                 Products products) {
  if (file.has_operators)
    throw InputError({.file = file.source->file,
                      .field = "gradient",
                      .message = "is a whole plan: its gradient is a plan for training",
                      .allowed = "a file of programs, or `fuseline explain --phase train --format "
                                 "program`"});
  return Backwards(file, of, products).run();
}

Plan gradient_of(const ProgramFile& file, const std::vector<std::string>& of) {
  return program_gradient(file, of).plan;
}

std::string gradient_text(const Plan& gradient, const std::string& target) {
  // Programs alone: each gets the kernel that programs of one's own get.
  std::istringstream whole(plan_text(gradient, target));
  std::string text;
  for (std::string line; std::getline(whole, line);) {
    const auto begins = [&](const char* word) { return line.rfind(word, 0) == 0; };
    if (begins("hash ") || begins("plan ") || begins("kernel ")) continue;
    text += (begins("  ") ? line.substr(2) : line) + "\n";
  }
  return lettered_text(text);
}

}  // namespace fuseline
