#include "sim/search/least_cost.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "model/implementation.h"
#include "model/lower.h"
#include "model/operators/operator.h"
#include "model/program.h"
#include "sim/block/block_walk.h"
#include "sim/block/limits.h"
#include "sim/gpu/power.h"
#include "sim/memory/traffic.h"

namespace fuseline {

namespace {

constexpr Bytes kEnough(std::int64_t{1} << 44);  // no block touches so much

Kernel kernel_of(const Graph& graph, const std::string& name, const std::vector<OpId>& ops) {
  return {name, kind_of(graph, ops), hand_written_implementation(graph, ops), ops,
          lower_kernel(graph, name, ops)};
}

bool touches(const Op& op, TensorId tensor) {
  const auto is = [tensor](const Operand& o) { return o.tensor == tensor; };
  return std::ranges::any_of(op.reads, is) || std::ranges::any_of(op.writes, is);
}

// The graph whose inputs are no outputs of the layer before: what a layer read is there for the
// next one, as if whoever made it had left it in L2.
Graph every_layer_alike(const Graph& graph) {
  Graph out;
  for (Tensor t : graph.tensors()) {
    if (t.role == Role::input || t.role == Role::output) t.role = Role::activation;
    out.add_tensor(std::move(t));
  }
  for (const Op& op : graph.ops()) out.add_op(op);
  for (const Related& r : graph.relations())
    if (r.relation != Relation::carried_to_next_layer) out.relate(r.tensor, r.relation, r.to);
  return out;
}

// The kernel behind those that append to a cache that it reads: the new rows may be in L2. Other
// tensors of a layer's own that more than this kernel touches count as found there.
Plan alone(const KernelSpace& space, const UnitSet& set) {
  const Graph& graph = space.block().graph;
  const std::vector<OpId> ops = space.operators(set);
  Plan plan;
  plan.policy = "search";
  std::vector<OpId> appends;
  std::vector<TensorId> shared;
  for (std::size_t i = 0; i < graph.tensors().size(); ++i) {
    const TensorId tensor{static_cast<std::int32_t>(i)};
    const bool mine =
        std::ranges::any_of(ops, [&](OpId id) { return touches(graph.op(id), tensor); });
    if (!mine || graph.tensor(tensor).role == Role::activation) continue;
    bool others = false;
    for (std::size_t o = 0; o < graph.ops().size(); ++o) {
      const OpId id{static_cast<std::int32_t>(o)};
      if (std::ranges::find(ops, id) != ops.end() || !touches(graph.op(id), tensor)) continue;
      if (graph.op(id).kind->appends) {
        if (std::ranges::find(appends, id) == appends.end()) appends.push_back(id);
      } else {
        others = true;
      }
    }
    if (others) shared.push_back(tensor);
  }
  for (const OpId id : appends)
    plan.kernels.push_back(kernel_of(graph, "append_" + graph.op(id).name, {id}));
  plan.kernels.push_back(kernel_of(graph, "kernel", ops));
  plan.graph = every_layer_alike(graph);
  plan.homes.assign(graph.tensors().size(), Home::hbm);
  for (const TensorId tensor : shared)
    if (graph.tensor(tensor).role == Role::weight || graph.tensor(tensor).role == Role::cache)
      plan.graph.tensor(tensor).role = Role::activation;
  return plan;
}

bool has_mainloop(const WalkedKernel& k) {
  return k.estimate.kind == KernelKind::gemm || k.estimate.kind == KernelKind::attention ||
         k.estimate.kind == KernelKind::scan || k.estimate.kind == KernelKind::block;
}

// What does not fit the L2 at the kernel's begin and end passes through HBM while it runs.
void add_overflow(const Gpu& gpu, WalkedKernel& k) {
  const Bytes room = gpu.l2_capacity + gpu.l2_capacity;
  if (has_mainloop(k) || k.estimate.compulsory <= room) return;
  const Seconds least = k.estimate.launch_time + (k.estimate.compulsory - room) / fastest_hbm(gpu);
  k.fixed = std::max(k.fixed, least - k.compute);
}

std::string key_of(const KernelSpace& space, const UnitSet& set, const Plan& plan) {
  std::string key;
  for (const Kernel& kernel : plan.kernels) {
    key += name_of(kernel.implementation);
    for (const Program& program : kernel.phases) key += print_program(plan.graph, program);
  }
  // What of it belongs to a layer.
  for (const OpId id : space.operators(set)) {
    for (const auto* list : {&plan.graph.op(id).reads, &plan.graph.op(id).writes})
      for (const Operand& o : *list) {
        const Tensor& t = plan.graph.tensor(o.tensor);
        key += t.name + name_of(t.role) + std::to_string(t.rows) + "x" + std::to_string(t.cols);
      }
    key += plan.graph.op(id).name;
  }
  return key;
}

}  // namespace

Seconds LeastCost::time(const Gpu& gpu, double clock_factor) const {
  Seconds sum;
  for (const WalkedKernel& k : launches) sum += time_at(k, gpu, clock_factor);
  return sum;
}

// n phases take n - 1 barriers and one launch, so each takes the less of the two at least.
Seconds LeastCost::time_in_one_launch(const Gpu& gpu, double clock_factor) const {
  Seconds sum;
  for (const WalkedKernel& k : launches) {
    Seconds launch = k.estimate.launch_time;
    if (!k.gemms.empty()) {
      launch = gpu.constants.launch.gap;
      for (const WalkedGemm& gemm : k.gemms) launch += gemm.estimate.time.launch;
    }
    const Seconds own = time_at(k, gpu, clock_factor);
    sum += std::min(own, own - launch + std::min(gpu.constants.sync.barrier, gpu.tiny_kernel));
  }
  return sum;
}

LeastCosts::LeastCosts(const Gpu& gpu) : gpu_(&gpu), generous_(gpu) {
  generous_.l2_capacity = kEnough;
}

const LeastCost& LeastCosts::of(const KernelSpace& space, const UnitSet& kernel) {
  const Plan plan = alone(space, kernel);
  std::string key = key_of(space, kernel, plan);
  {
    const std::scoped_lock lock(mutex_);
    if (const auto found = known_.find(key); found != known_.end()) return found->second;
  }
  LeastCost cost;
  std::vector<WalkedKernel> all = walk_block(plan, generous_, {.runs = 2, .memo = nullptr});
  const PowerModel power = power_model(*gpu_);
  for (auto k = all.begin() + std::ssize(plan.kernels) - 1; k != all.end(); ++k) {
    add_overflow(*gpu_, *k);
    const KernelEstimate& e = k->estimate;
    cost.hbm += e.hbm_read + e.hbm_write;
    cost.energy += dynamic_energy(power, has_mainloop(*k) ? e.flops - e.spared : Flops(),
                                  e.hbm_read + e.hbm_write, e.l2, e.smem);
    cost.count += e.launches;
    cost.launches.push_back(std::move(*k));
  }
  const std::scoped_lock lock(mutex_);
  return known_.try_emplace(std::move(key), std::move(cost)).first->second;
}

double highest_clock(const Gpu& gpu, Seconds time, Seconds fastest, Joules energy, double repeats) {
  const PowerModel power = power_model(gpu);
  const double watts = (power.limit - power.constant).value();
  if (watts <= 0 || energy.value() <= 0) return 1;
  // The plan that is looked for settles at a steady clock s, and ends at 1 + (s - 1) a, where a is
  // how far the limit has come. At s it takes no more than time · (1 + (s - 1) a) / s, and draws
  // energy · s^(exponent - 1) in that time: no more than the limit leaves, unless s is the lowest
  // clock.
  const double acting = 1 - clock_factor_after(power, 0, fastest * (repeats / 2));
  const auto end = [&](double s) { return 1 + (s - 1) * acting; };
  const auto allowed = [&](double s) {
    return energy.value() * std::pow(s, power.clock_exponent) <= watts * time.value() * end(s);
  };
  constexpr int kSteps = 4000;
  const double step = (1 - power.lowest_clock_factor) / kSteps;
  for (int i = 0; i < kSteps; ++i) {
    const double s = 1 - i * step;
    // Between two steps the higher one is the safe side.
    if (allowed(s)) return std::min(1.0, end(std::min(1.0, s + step)));
  }
  return end(power.lowest_clock_factor + step);
}

}  // namespace fuseline
