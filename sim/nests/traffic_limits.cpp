#include "sim/nests/traffic_limits.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "model/operators/operator_table.h"
#include "sim/block/limits.h"
#include "sim/nests/integer_sets.h"
#include "sim/nests/kernel_shapes.h"
#include "sim/nests/program_nest.h"

namespace fuseline {

namespace {

// The best tiling that fits and respects every dependence, by the sets; of a few that would be
// better, which dependence each breaks is said in `broken`.
std::optional<TiledTraffic> best_legal(const std::vector<TiledTraffic>& curve, Bytes capacity,
                                       const NestSets& sets, std::string& broken) {
  auto at = std::ranges::upper_bound(curve, capacity, {}, &TiledTraffic::capacity);
  while (at != curve.begin()) {
    --at;
    const auto found = sets.broken_by(at->tiles);
    if (!found) return *at;
    broken = describe(at->tiles) + ": " + found->iterations;
  }
  return std::nullopt;
}

std::string times_text(std::int64_t count) {
  return count > 1 ? fmt::format(", {} times", count) : "";
}

class Limiter {
 public:
  Limiter(const Plan& plan, const Gpu& gpu, TrafficLimits& out)
      : plan_(plan), gpu_(gpu), out_(out) {}

  void run(const std::function<void(const std::string&, double)>& show, const std::string& only) {
    std::vector<std::function<void()>> works;
    const auto offer = [&](const std::string& name, std::function<void()> work) {
      out_.names.push_back(name);
      if (!only.empty() && name != only) return;
      names_.push_back(name);
      works.push_back(std::move(work));
    };
    for (const Kernel& kernel : plan_.kernels) {
      if (const auto s = product_of(plan_.graph, kernel))
        offer(kernel.name, [this, &kernel, s] { add_product(kernel, *s); });
      if (const auto c = attention_of(plan_.graph, kernel))
        offer(kernel.name, [this, &kernel, c] { add_attention(kernel, *c); });
    }
    for (const Kernel& first : plan_.kernels)
      for (const Kernel& second : plan_.kernels)
        if (const auto c = chain_of(plan_, first, second))
          offer(first.name + " + " + second.name,
                [this, &first, &second, c] { add_chain(first, second, *c); });
    for (std::size_t i = 0; i < works.size(); ++i) {
      if (show) show(names_[i], static_cast<double>(i) / static_cast<double>(works.size()));
      works[i]();
    }
  }

 private:
  template <class Shape>
  KernelTraffic traffic(const Shape& shape, std::string name, std::string loops, Bytes once,
                        const NestSets& sets) {
    KernelTraffic t{.name = std::move(name),
                    .loops = std::move(loops),
                    .compulsory = once,
                    .hbm = {},
                    .l2 = {},
                    .curve = tiled_traffic(shape),
                    .least_at = {},
                    .broken = {}};
    keep_legal(t, sets);
    t.least_at = [shape](Bytes capacity) { return least_traffic(shape, capacity); };
    t.hbm = {out_.on_chip,
             least_traffic(shape, out_.on_chip),
             best_legal(t.curve, gpu_.l2_capacity, sets, t.broken),
             {}};
    t.l2 = {out_.of_sm, {}, best_within(t.curve, out_.of_sm), {}};
    return t;
  }

  // Of the curve what is read, each tiling checked by the sets.
  void keep_legal(KernelTraffic& t, const NestSets& sets) const {
    std::vector<TiledTraffic> legal;
    for (const Bytes capacity : curve_capacities(t, gpu_)) {
      auto best = best_legal(t.curve, capacity, sets, t.broken);
      if (best && (legal.empty() || best->capacity > legal.back().capacity))
        legal.push_back(std::move(*best));
    }
    t.curve = std::move(legal);
  }

  void add_product(const Kernel& kernel, const ProductShape& s) {
    const NestSets sets(nest_of(kernel.phases.front()));
    const Bytes once = s.other + Bytes(static_cast<std::int64_t>(s.a_total() + s.b_total()));
    KernelTraffic t =
        traffic(s, kernel.name,
                fmt::format("m {}, n {}, k {}{}", s.m, s.n, s.k, times_text(s.count)), once, sets);
    t.l2.least = least_from_l2(plan_, kernel, gpu_);
    predict(t, kernel.name);
    out_.kernels.push_back(std::move(t));
  }

  void add_attention(const Kernel& kernel, const ChainShape& c) {
    LoopNest nest = nest_of(kernel.phases.front());
    rename(nest, "s", "f");
    const NestSets sets(nest);
    KernelTraffic t = chain(kernel.name, c, sets);
    predict(t, kernel.name);
    out_.kernels.push_back(std::move(t));
  }

  void add_chain(const Kernel& first, const Kernel& second, const ChainShape& c) {
    const NestSets sets(nest_of_chain(c.m, c.f, c.k, c.n));
    out_.chains.push_back(chain(first.name + " + " + second.name, c, sets));
    for (const std::string& name : {first.name, second.name}) predict(out_.chains.back(), name);
  }

  KernelTraffic chain(const std::string& name, const ChainShape& c, const NestSets& sets) {
    const Bytes once = c.other + Bytes(static_cast<std::int64_t>(c.moved_once()));
    return traffic(c, name,
                   fmt::format("m {}, f {}, k {}, n {}{}", c.m, c.f, c.k, c.n, times_text(c.count)),
                   once, sets);
  }

  // The loop of the keys has the name that chains give it.
  static void rename(LoopNest& nest, const std::string& from, const std::string& to) {
    for (Loop& loop : nest.loops)
      if (loop.name == from) loop.name = to;
    for (NestStatement& s : nest.statements) {
      for (std::string& loop : s.loops)
        if (loop == from) loop = to;
      for (NestAccess& a : s.accesses)
        for (char& c : a.elements)
          if (c == from.front()) c = to.front();
    }
  }

  // Adds what the simulator says of the kernel.
  void predict(KernelTraffic& t, const std::string& kernel) const {
    for (const KernelEstimate& e : out_.estimate.kernels)
      if (e.name == kernel || e.name.starts_with(kernel + "_combine") ||
          e.name.starts_with(kernel + "_reduce")) {
        t.hbm.predicted += e.hbm_read + e.hbm_write;
        t.l2.predicted += e.l2;
      }
  }

  const Plan& plan_;
  const Gpu& gpu_;
  TrafficLimits& out_;
  std::vector<std::string> names_;  // of what is worked out
};

// Operators by the sets that share what they read.
class Sharing {
 public:
  explicit Sharing(std::size_t tensors) : parent_(tensors) {
    std::iota(parent_.begin(), parent_.end(), std::size_t{0});
  }
  std::size_t of(TensorId t) {
    auto i = static_cast<std::size_t>(t.index);
    while (parent_[i] != i) i = parent_[i];
    return i;
  }
  void join(TensorId a, TensorId b) { parent_[of(a)] = of(b); }

 private:
  std::vector<std::size_t> parent_;
};

std::int64_t largest_cluster(const Gpu& gpu) {
  std::int64_t most = 1;
  const TileMenu& menu = gpu.architecture->tiles;
  for (const auto* list : {&menu.library, &menu.own})
    for (const GemmTile& tile : *list) most = std::max(most, tile.cluster());
  for (const GroupedTile& grouped : menu.grouped) most = std::max(most, grouped.tile.cluster());
  return most;
}

}  // namespace

Bytes on_chip_memory(const Gpu& gpu) {
  return gpu.l2_capacity + gpu.sm_count * (gpu.smem_per_sm + gpu.registers_per_sm);
}

Bytes least_of_block(const Graph& block, const Gpu& gpu, Bytes on_chip) {
  const Limits limits = limits_of(block, gpu);
  Sharing sharing(block.tensors().size());
  for (const Op& op : block.ops())
    if (is_gemm(op)) sharing.join(op.reads[0].tensor, op.reads[1].tensor);
  // What a product moves in besides each of its matrices once. An operand that no weight is, and
  // the result, may be made on the chip: once is free.
  std::map<std::size_t, double> again;
  for (const Op& op : block.ops()) {
    const auto s = product_of(block, op);
    if (!s) continue;
    const double more =
        moved_in(*s, on_chip.as_double()) - s->a_total() - s->b_total() - s->c_total();
    double& most = again[sharing.of(op.reads[0].tensor)];
    most = std::max(most, more);
  }
  double sum = 0;
  for (const auto& [set, more] : again) sum += more;
  const Bytes own_once = limits.own - compulsory_bytes(block).foldable;
  const Bytes moved = own_once + Bytes(static_cast<std::int64_t>(sum * (1 - 1e-9)));
  return std::max(limits.least, moved);
}

Bytes least_from_l2(const Plan& plan, const Kernel& kernel, const Gpu& gpu) {
  const auto s = product_of(plan.graph, kernel);
  if (!s) return {};
  const std::int64_t cluster = largest_cluster(gpu);
  const Bytes room = cluster * (gpu.smem_per_sm + gpu.registers_per_sm);
  const std::int64_t clusters = (gpu.sm_count + cluster - 1) / cluster;
  const double moved = moved_in(*s, room.as_double(), clusters) - s->c_total();
  const double once = s->a_total() + s->b_total();
  return s->other + Bytes(static_cast<std::int64_t>(std::max(once, moved) * (1 - 1e-9)));
}

TrafficLimits traffic_limits(const Plan& plan, const Gpu& gpu, const SimulationOptions& options,
                             const std::function<void(const std::string&, double)>& show,
                             const std::string& only) {
  TrafficLimits out{.on_chip = on_chip_memory(gpu),
                    .of_sm = gpu.smem_per_sm + gpu.registers_per_sm,
                    .block_least = {},
                    .estimate = simulate(plan, gpu, Fidelity::hierarchy, options),
                    .kernels = {},
                    .chains = {},
                    .names = {}};
  out.block_least = least_of_block(plan.block, gpu, out.on_chip);
  Limiter(plan, gpu, out).run(show, only);
  return out;
}

}  // namespace fuseline
