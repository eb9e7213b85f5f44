#if FUSELINE_HAS_CUDA

#include "cuda/run/prepare.h"

#include <utility>
#include <variant>

#include "cuda/emit/attention_source.h"
#include "cuda/emit/block_source.h"
#include "cuda/emit/chain_source.h"
#include "cuda/emit/kernel_source.h"
#include "cuda/emit/plan_source.h"
#include "cuda/emit/scan_source.h"
#include "cuda/emit/stream_source.h"
#include "cuda/run/attention_launch.h"
#include "cuda/run/block_launch.h"
#include "cuda/run/chain_launch.h"
#include "cuda/run/gemm_launch.h"
#include "cuda/run/scan_launch.h"
#include "cuda/run/stream_launch.h"
#include "model/chain.h"
#include "sim/block/launch_overlap.h"

namespace fuseline::cuda {

namespace {

using AttentionSources = std::vector<AttentionKernelSource>;
using KernelText = std::variant<GemmKernelSource, AttentionSources, ScanKernelSource,
                                StreamKernelSource, BlockKernelSource, ChainKernelSource>;

ChainKernelSource chain_on(const DeviceInfo& device, const Plan& plan, const Kernel& kernel) {
  return chain_of(plan, kernel, device.multiprocessors, device.shared_per_block.value());
}

KernelText text_of(const Plan& plan, const Kernel& kernel, const GemmTile* tile, SmTarget target,
                   const DeviceInfo& device) {
  const Graph& graph = plan.graph;
  const Program& program = kernel.phases.front();
  const std::string title = title_of(plan, kernel);
  if (tile != nullptr) return gemm_kernel_source(graph, program, *tile, target, title);
  if (std::holds_alternative<AttentionMainloop>(program.mainloop))
    return attention_sources(graph, program, target, title);
  if (std::holds_alternative<ScanMainloop>(program.mainloop))
    return scan_kernel_source(graph, program, title, device.shared_per_block.value(),
                              device.multiprocessors);
  return stream_kernel_source(graph, program, title);
}

void add_sources(const KernelText& text, std::vector<Source>& sources) {
  if (const auto* gemm = std::get_if<GemmKernelSource>(&text)) sources.push_back(gemm->source);
  if (const auto* scan = std::get_if<ScanKernelSource>(&text)) sources.push_back(scan->source);
  if (const auto* stream = std::get_if<StreamKernelSource>(&text))
    sources.push_back(stream->source);
  if (const auto* block = std::get_if<BlockKernelSource>(&text)) sources.push_back(block->source);
  if (const auto* chain = std::get_if<ChainKernelSource>(&text)) sources.push_back(chain->source);
  if (const auto* attention = std::get_if<AttentionSources>(&text))
    for (const AttentionKernelSource& part : *attention) sources.push_back(part.source);
}

Launches launches_of(const LaunchContext& context, const KernelText& text, const Program& program) {
  if (const auto* gemm = std::get_if<GemmKernelSource>(&text))
    return prepare_gemm(context, *gemm, program);
  if (const auto* scan = std::get_if<ScanKernelSource>(&text))
    return prepare_scan(context, *scan, program);
  if (const auto* stream = std::get_if<StreamKernelSource>(&text))
    return prepare_stream(context, *stream, program);
  return prepare_attention(context, std::get<AttentionSources>(text), program);
}

// Whether the vendor's library takes the program's place.
bool by_library(const Kernel& kernel, const Program& program, const PrepareOptions& options) {
  const auto* gemm = std::get_if<GemmMainloop>(&program.mainloop);
  const bool codes = gemm != nullptr && gemm->weight.quantised();  // no library of ours takes them
  return options.library != nullptr && !codes &&
         kernel.implementation == Implementation::library_gemm;
}

std::optional<GemmTile> tile_of(const Plan& plan, const Kernel& kernel, const Program& program,
                                const Gpu& described, const PrepareOptions& options) {
  if (!std::holds_alternative<GemmMainloop>(program.mainloop)) return std::nullopt;
  std::optional<GemmTile> tile;
  if (options.tile) tile = options.tile(kernel.name);
  return tile ? tile : own_tile(plan, program, described);
}

}  // namespace

std::vector<Source> plan_sources(const KernelStore& store, const DeviceInfo& device,
                                 const Plan& plan, const Gpu& described,
                                 const PrepareOptions& options) {
  std::vector<Source> sources;
  for (const Kernel& kernel : plan.kernels) {
    if (is_block_kernel(kernel)) {
      sources.push_back(block_kernel_source(plan, kernel, store.target()).source);
      continue;
    }
    if (handed_over(kernel)) {
      sources.push_back(chain_on(device, plan, kernel).source);
      continue;
    }
    const Program& program = only_program(plan, kernel);
    const bool attention = std::holds_alternative<AttentionMainloop>(program.mainloop);
    if (by_library(kernel, program, options) || (attention && options.attention_library != nullptr))
      continue;
    const std::optional<GemmTile> tile = tile_of(plan, kernel, program, described, options);
    add_sources(text_of(plan, kernel, tile ? &*tile : nullptr, store.target(), device), sources);
  }
  return sources;
}

std::vector<PreparedKernel> prepare_plan(const LaunchContext& context, const Gpu& described,
                                         const PrepareOptions& options) {
  const Plan& plan = context.plan;
  std::vector<PreparedKernel> result;
  std::vector<std::pair<std::size_t, KernelText>> texts;  // of the kernels that are our own
  for (const Kernel& kernel : plan.kernels) {
    PreparedKernel prepared{.name = kernel.name, .kind = kernel.kind};
    if (is_block_kernel(kernel)) {
      texts.emplace_back(result.size(), block_kernel_source(plan, kernel, context.store.target()));
      result.push_back(std::move(prepared));
      continue;
    }
    if (handed_over(kernel)) {
      texts.emplace_back(result.size(), chain_on(context.device.info(), plan, kernel));
      result.push_back(std::move(prepared));
      continue;
    }
    const Program& program = only_program(plan, kernel);
    if (by_library(kernel, program, options))
      prepared.launches = prepare_library_gemm(context, *options.library, program);
    if (options.attention_library != nullptr &&
        std::holds_alternative<AttentionMainloop>(program.mainloop))
      prepared.launches = prepare_library_attention(context, *options.attention_library, program);
    prepared.library = !prepared.launches.empty();
    if (!prepared.library) {
      prepared.tile = tile_of(plan, kernel, program, described, options);
      texts.emplace_back(result.size(),
                         text_of(plan, kernel, prepared.tile ? &*prepared.tile : nullptr,
                                 context.store.target(), context.device.info()));
    }
    result.push_back(std::move(prepared));
  }
  std::vector<Source> sources;
  for (const auto& [index, text] : texts) add_sources(text, sources);
  context.store.compile_ahead(sources, options.threads);
  for (const auto& [index, text] : texts) {
    PreparedKernel& prepared = result[index];
    if (const auto* block = std::get_if<BlockKernelSource>(&text)) {
      prepared.instructions = std::make_shared<const BlockInstructions>(
          block_instructions(block->block, block_sizes(context.device.info().multiprocessors)));
      prepared.launches = prepare_block(context, *block, *prepared.instructions);
      continue;
    }
    if (const auto* chain = std::get_if<ChainKernelSource>(&text))
      prepared.launches = prepare_chain(context, *chain, plan.kernels[index]);
    else
      prepared.launches = launches_of(context, text, plan.kernels[index].phases.front());
  }
  // Ampere's code cannot wait.
  if (options.overlap && context.store.target() == SmTarget::sm_90a &&
      launches_overlap(plan, described))
    for (PreparedKernel& prepared : result)
      for (const auto& launch : prepared.launches) launch->let_overlap();
  return result;
}

}  // namespace fuseline::cuda

#endif
