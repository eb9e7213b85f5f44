#include "cuda/emit/plan_source.h"

#include <fmt/format.h>

#include "base/error.h"
#include "cuda/emit/attention_source.h"
#include "cuda/emit/kernel_source.h"
#include "cuda/emit/stream_source.h"
#include "sim/gpu/gemm_constants.h"
#include "sim/kernels/gemm_library.h"
#include "sim/kernels/program_streams.h"

namespace fuseline::cuda {

SmTarget target_of(const Gpu& gpu) {
  return gpu.architecture == fuseline::Architecture::hopper ? SmTarget::sm_90a : SmTarget::sm_80;
}

GemmTile own_tile(const Plan& plan, const Program& program, const Gpu& gpu) {
  return choose_tile(gemm_problem_of(program, AddressMap(plan), false), gpu, gemm_constants(gpu));
}

std::string title_of(const Plan& plan, const Kernel& kernel) {
  return fmt::format("Policy {}, kernel {}.", plan.policy, kernel.name);
}

const Program& only_program(const Plan& plan, const Kernel& kernel) {
  if (kernel.phases.size() != 1)
    throw MissingError(
        fmt::format("policy {} has no kernel for a real GPU yet: {} keeps {} phases in one launch",
                    plan.policy, kernel.name, kernel.phases.size()));
  return kernel.phases.front();
}

std::vector<Source> kernel_sources(const Plan& plan, const Kernel& kernel, const Gpu& gpu,
                                   SmTarget target) {
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
  return {stream_kernel_source(plan.graph, program, title).source};
}

}  // namespace fuseline::cuda
