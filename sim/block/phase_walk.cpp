#include "sim/block/phase_walk.h"

#include <algorithm>
#include <type_traits>
#include <utility>

#include "model/chain.h"
#include "sim/gpu/code_rate.h"
#include "sim/kernels/chain_kernel.h"
#include "sim/kernels/gemm_parts.h"
#include "sim/kernels/operand_rows.h"

namespace fuseline {

WalkedKernel PhaseWalker::follower(const std::string& name, KernelKind kind, Seconds work,
                                   HbmTraffic hbm, Bytes l2) const {
  WalkedKernel k;
  k.estimate.name = name;
  k.estimate.kind = kind;
  k.estimate.hbm_read = hbm.read;
  k.estimate.hbm_write = hbm.write;
  k.estimate.l2 = l2;
  k.estimate.l2_time = l2 / gpu_.l2_bandwidth;
  k.estimate.launch_time = gpu_.tiny_kernel + gpu_.constants.launch.gap;
  k.estimate.bound = Bound::launch;
  k.fixed = k.estimate.launch_time + work;
  k.estimate.time = k.fixed;
  return k;
}

template <class OneWalk>
WalkTraffic PhaseWalker::through_l2(const OneWalk& one) {
  WalkKey key;
  fuseline::describe(one, key);
  if constexpr (std::is_same_v<OneWalk, GemmWalk>) {
    if (l2_.remembers())
      return l2_.walk(key, [&](Bytes capacity) { return parts_of(one, capacity); });
  }
  return l2_.walk(key, [&](L2Cache& cache) { return fuseline::walk(one, cache); });
}

AnyWalk PhaseWalker::walk_of(const Kernel& kernel, const Program& program) const {
  if (handed_over(kernel)) return chain_walk(kernel, program, addresses_, gpu_);
  if (std::holds_alternative<GemmMainloop>(program.mainloop)) {
    return gemm_walk(gemm_problem_of(kernel, program, addresses_), gpu_);
  }
  if (std::holds_alternative<AttentionMainloop>(program.mainloop))
    return attention_walk(program, addresses_, gpu_);
  if (std::holds_alternative<ScanMainloop>(program.mainloop))
    return scan_walk(plan_.graph, program, addresses_, gpu_);
  return stream_walk(stream_kernel_of(plan_.graph, kernel, program, addresses_, gpu_), gpu_);
}

WalkedPhase PhaseWalker::gemm(const Kernel& kernel, const Program& program) {
  GemmWalk walked = gemm_walk(gemm_problem_of(kernel, program, addresses_), gpu_);
  GemmEstimate g = estimate_gemm(walked, through_l2(walked), gpu_);
  WalkedPhase phase;
  KernelEstimate& e = phase.kernel.estimate;
  e.hbm_read = g.hbm.read;
  e.hbm_write = g.hbm.write;
  e.l2 = g.l2;
  e.smem = g.smem;
  e.bound = g.time.bound;
  e.tile = {g.tile.m, g.tile.n, g.tile.k};
  e.split_k = g.tile.split_k * g.tile.cluster_k;
  e.choice = {g.tile.cluster_m,  g.tile.cluster_n,
              g.tile.cluster_k,  g.tile.split_k,
              g.tile.tail_parts, fetches_by_elements(walked.problem, gpu_) ? 1 : 0};
  e.launches = walked.problem.launches();
  if (walked.problem.activation.quantised()) {
    const double share = gpu_.tensor_bf16 / code_rate(gpu_, walked.problem.activation.element());
    e.spared = Flops(static_cast<std::int64_t>(g.flops.as_double() * (1 - share)));
  }
  e.tensor_time = g.time.tensor;
  e.hbm_time = g.time.hbm;
  e.l2_time = g.time.l2;
  e.smem_time = g.time.smem;
  phase.tile = {g.tile.m, g.tile.n};
  if (g.reduction) {
    phase.followers.push_back(follower(kernel.name + "_reduce", KernelKind::reduction,
                                       g.reduction->time - gpu_.tiny_kernel, g.reduction->hbm,
                                       g.reduction->l2));
  }
  phase.kernel.gemms.push_back({std::move(walked.problem), std::move(g)});
  return phase;
}

WalkedPhase PhaseWalker::attention(const Kernel& kernel, const Program& program) {
  const AttentionWalk walked = attention_walk(program, addresses_, gpu_);
  const AttentionEstimate a =
      estimate_attention(program, kernel.implementation, walked, gpu_, through_l2(walked).hbm);
  WalkedPhase phase;
  KernelEstimate& e = phase.kernel.estimate;
  e.hbm_read = a.hbm.read;
  e.hbm_write = a.hbm.write;
  e.l2 = a.l2;
  e.smem = a.smem;
  e.bound = a.bound;
  e.tensor_time = a.tensor_time;
  e.smem_time = a.exp_time;
  e.hbm_time = a.hbm_time;
  e.l2_time = a.l2_time;
  e.tile = {kQueryTile, kKeyTile};
  e.choice = {a.splits};
  phase.tile = {kQueryTile, kKeyTile};
  const bool computes = a.bound == Bound::tensor || a.bound == Bound::smem;
  phase.kernel.compute = computes ? a.tensor_time + a.exp_time : Seconds();
  phase.kernel.fixed = a.work - phase.kernel.compute;
  // A phase of a longer kernel finds its threads running and its queries in sight.
  if (kernel.phases.size() == 1) phase.kernel.fixed += a.own_start;
  if (a.combine_work) {
    phase.followers.push_back(follower(kernel.name + "_combine", KernelKind::attention,
                                       *a.combine_work, {}, a.combine_l2));
  }
  return phase;
}

WalkedPhase PhaseWalker::scan(const Kernel& kernel, const Program& program) {
  const ScanWalk walked = scan_walk(plan_.graph, program, addresses_, gpu_);
  const bool library = kernel.implementation == Implementation::library_scan;
  const ScanEstimate s = estimate_scan(program, walked, gpu_, through_l2(walked).hbm, library);
  WalkedPhase phase;
  KernelEstimate& e = phase.kernel.estimate;
  e.hbm_read = s.hbm.read;
  e.hbm_write = s.hbm.write;
  e.l2 = s.l2;
  e.smem = s.smem;
  e.bound = s.bound;
  e.tensor_time = s.tensor_time;
  e.hbm_time = s.hbm_time;
  e.l2_time = s.l2_time;
  phase.tile = default_tile(program);
  e.tile = {phase.tile.m, phase.tile.n};
  if (walked.chunks) e.tile = {scan_chunk_tokens, walked.chunks->cols};
  const bool computes = s.bound == Bound::tensor || s.bound == Bound::sync;
  phase.kernel.compute = computes ? std::max(s.tensor_time, s.wait_time) : Seconds();
  phase.kernel.fixed = s.work - phase.kernel.compute;
  return phase;
}

WalkedPhase PhaseWalker::stream(const Kernel& kernel, const Program& program) {
  const StreamKernel walked = stream_kernel_of(plan_.graph, kernel, program, addresses_, gpu_);
  const StreamEstimate s = estimate_stream(walked, gpu_, through_l2(stream_walk(walked, gpu_)));
  WalkedPhase phase;
  KernelEstimate& e = phase.kernel.estimate;
  e.hbm_read = s.hbm.read;
  e.hbm_write = s.hbm.write;
  e.l2 = s.l2;
  e.bound = s.bound;
  e.hbm_time = s.hbm_time;
  e.l2_time = s.l2_time;
  e.smem_time = s.issue_time;
  phase.tile = default_tile(program);
  phase.kernel.fixed = s.work;
  return phase;
}

WalkedKernel PhaseWalker::walk(const Kernel& kernel, const FrameworkLaunch& launch) {
  const std::string name = kernel.name + "_" + launch.name;
  if (launch.moved.empty()) return follower(name, kernel.kind, Seconds(), {}, Bytes());
  const StreamKernel walked = stream_kernel_of(launch, kernel, addresses_, gpu_);
  const StreamEstimate s = estimate_stream(walked, gpu_, through_l2(stream_walk(walked, gpu_)));
  const Seconds tensor = launch.flops / (gpu_.tensor_bf16 * gpu_.constants.gemm.tensor_fraction);
  WalkedKernel k = follower(name, kernel.kind, Seconds(), s.hbm, s.l2);
  k.estimate.hbm_time = s.hbm_time;
  k.estimate.l2_time = s.l2_time;
  k.estimate.smem_time = s.issue_time;
  k.estimate.tensor_time = tensor;
  k.estimate.bound = tensor > s.work ? Bound::tensor : s.bound;
  if (tensor > s.work)
    k.compute = tensor;
  else
    k.fixed += s.work;
  k.estimate.time = time_at(k, gpu_, 1.0);
  return k;
}

// What one product of a chain moves; the kernel's time is that of both.
WalkedPhase PhaseWalker::chain(const Kernel& kernel, const Program& program) {
  const WalkTraffic moved = through_l2(chain_walk(kernel, program, addresses_, gpu_));
  WalkedPhase phase;
  phase.kernel.estimate.hbm_read = moved.hbm.read;
  phase.kernel.estimate.hbm_write = moved.hbm.write;
  const auto layout = chain_layout(kernel, gpu_);
  const bool second = &program == &kernel.phases[1];
  phase.tile = second ? layout->second_tile() : layout->first_tile();
  return phase;
}

WalkedPhase PhaseWalker::walk(const Kernel& kernel, const Program& program) {
  if (handed_over(kernel)) return chain(kernel, program);
  if (std::holds_alternative<GemmMainloop>(program.mainloop)) return gemm(kernel, program);
  if (std::holds_alternative<AttentionMainloop>(program.mainloop)) {
    return attention(kernel, program);
  }
  if (std::holds_alternative<ScanMainloop>(program.mainloop)) return scan(kernel, program);
  return stream(kernel, program);
}

Seconds time_at(const WalkedKernel& kernel, const Gpu& gpu, double clock_factor) {
  Seconds time = kernel.fixed + kernel.compute / clock_factor;
  for (const WalkedGemm& gemm : kernel.gemms) {
    time +=
        time_gemm(gemm.problem, gemm.estimate.tile, gemm.estimate.waves, gpu, clock_factor).time;
  }
  return time;
}

}  // namespace fuseline
