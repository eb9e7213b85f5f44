#include "cuda/emit/plan_source.h"

#include <algorithm>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "cuda/emit/attention_source.h"
#include "cuda/emit/block_source.h"
#include "cuda/emit/chain_source.h"
#include "cuda/emit/kernel_source.h"
#include "cuda/emit/not_built.h"
#include "cuda/emit/scan_source.h"
#include "cuda/emit/stream_source.h"
#include "model/chain.h"
#include "sim/gpu/plan_target.h"
#include "sim/kernels/chain_kernel.h"
#include "sim/kernels/gemm_library.h"
#include "sim/kernels/program_streams.h"

namespace fuseline::cuda {

namespace {

// Types of a byte that streams and epilogues load and store.
bool moved_as_bytes(Dtype type) { return type == Dtype::e4m3 || type == Dtype::int8; }

// What mainloops take in few bits: their kernels read codes.
std::vector<Operand> operands_in_codes(const Program& program) {
  std::vector<Operand> operands;
  if (const auto* gemm = std::get_if<GemmMainloop>(&program.mainloop);
      gemm != nullptr && gemm->weight.quantised()) {
    operands = gemm->beside_b;
    operands.push_back(gemm->b);
    if (gemm->activation.quantised()) operands.push_back(gemm->a);
  }
  return operands;
}

}  // namespace

SmTarget target_of(const Gpu& gpu) {
  if (has_feature(gpu, Feature::wgmma) && has_feature(gpu, Feature::bulk_copy))
    return SmTarget::sm_90a;
  if (has_feature(gpu, Feature::mma_sync)) return SmTarget::sm_80;
  throw MissingError(fmt::format(
      "there are no kernels for the architecture {} of {}: our kernels need mma_sync, or "
      "wgmma and bulk_copy",
      gpu.architecture == nullptr ? "?" : gpu.architecture->name, gpu.name));
}

GemmTile own_tile(const Plan& plan, const Program& program, const Gpu& gpu) {
  return choose_tile(gemm_problem_of(program, AddressMap(plan), false), gpu);
}

std::string title_of(const Plan& plan, const Kernel& kernel) {
  return fmt::format("Policy {}, kernel {}.", plan.policy, kernel.name);
}

const Program& only_program(const Plan& plan, const Kernel& kernel) {
  if (kernel.phases.size() != 1)
    throw MissingError(
        fmt::format("policy {} has no kernel for a real GPU yet: {} keeps {} phases in one launch",
                    plan.policy, kernel.name, kernel.phases.size()));
  const Program& program = kernel.phases.front();
  if (const std::string missing = not_built(program); !missing.empty())
    throw MissingError(fmt::format("policy {}, kernel {}: {} has no kernel for a real GPU yet",
                                   plan.policy, kernel.name, missing));
  const std::vector<Operand> of_mainloop = operands_in_codes(program);
  for (const std::vector<Operand>& moved : {loads(program), stores(program)})
    for (const Operand& o : moved)
      if (const Tensor& t = plan.graph.tensor(o.tensor);
          size_of(t.dtype).bits() <= 8 && !moved_as_bytes(t.dtype) &&
          std::ranges::find(of_mainloop, o) == of_mainloop.end())
        throw MissingError(fmt::format(
            "policy {}, kernel {}: what moves {} in {} has no kernel for a real GPU yet",
            plan.policy, kernel.name, t.name, name_of(t.dtype)));
  return program;
}

ChainKernelSource chain_of(const Plan& plan, const Kernel& kernel, std::int64_t sm_count,
                           std::int64_t shared_bytes_per_block) {
  const auto layout = chain_layout(kernel, sm_count);
  FUSELINE_ASSERT(layout.has_value(), kernel.name + " is no chain");
  const std::string missing = chain_not_built(plan.graph, kernel, *layout, shared_bytes_per_block);
  if (!missing.empty())
    throw MissingError(fmt::format("policy {}, kernel {}: {} has no kernel for a real GPU yet",
                                   plan.policy, kernel.name, missing));
  return chain_kernel_source(plan.graph, kernel, *layout, title_of(plan, kernel));
}

std::vector<Source> kernel_sources(const Plan& plan, const Kernel& kernel, const Gpu& gpu,
                                   SmTarget target) {
  if (is_block_kernel(kernel)) return {block_kernel_source(plan, kernel, target).source};
  if (handed_over(kernel))
    return {chain_of(plan, kernel, gpu.sm_count, plan_target(gpu).shared_bytes_per_block).source};
  const Program& program = only_program(plan, kernel);
  const std::string title = title_of(plan, kernel);
  if (std::holds_alternative<GemmMainloop>(program.mainloop))
    return {gemm_kernel_source(plan.graph, program, own_tile(plan, program, gpu), target, title)
                .source};
  if (std::holds_alternative<AttentionMainloop>(program.mainloop)) {
    std::vector<Source> sources;
    for (AttentionKernelSource& part : attention_sources(plan.graph, program, target, title))
      sources.push_back(std::move(part.source));
    return sources;
  }
  if (std::holds_alternative<ScanMainloop>(program.mainloop))
    return {scan_kernel_source(plan.graph, program, title, plan_target(gpu).shared_bytes_per_block,
                               gpu.sm_count)
                .source};
  return {stream_kernel_source(plan.graph, program, title).source};
}

}  // namespace fuseline::cuda
