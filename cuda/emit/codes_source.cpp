#include "cuda/emit/codes_source.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"
#include "cuda/emit/comment.h"
#include "cuda/emit/names.h"
#include "model/formats/weight_format.h"
#include "sim/kernels/codes_columns.h"
#include "sim/kernels/codes_tile.h"

namespace fuseline::cuda {

namespace {

const char* codes_name(Dtype type) {
  switch (type) {
    case Dtype::e4m3:
      return "Codes::e4m3";
    case Dtype::int8:
      return "Codes::int8";
    case Dtype::int4:
      return "Codes::int4";
    case Dtype::e2m1:
      return "Codes::e2m1";
    default:
      FUSELINE_ASSERT(false, "codes of a type that weights do not have");
  }
}

const char* scale_name(Dtype type) {
  switch (type) {
    case Dtype::fp32:
      return "ScaleType::fp32";
    case Dtype::bf16:
      return "ScaleType::bf16";
    case Dtype::fp16:
      return "ScaleType::fp16";
    case Dtype::e4m3:
      return "ScaleType::e4m3";
    case Dtype::e8m0:
      return "ScaleType::e8m0";
    default:
      FUSELINE_ASSERT(false, "scales of a type that weights do not have");
  }
}

}  // namespace

std::string weight_codes_text(const StoredWeight& weight) {
  const WeightFormat& f = *weight.format;
  return fmt::format("WeightCodes<{}, {}, {}, {}, {}, {}, {}>", codes_name(f.element),
                     scale_name(f.scale), weight.group, f.group_rows, f.zero_points, f.tensor_scale,
                     weight.pairs);
}

bool multiplies_codes(const GemmMainloop& gemm, const GemmTile& tile, SmTarget architecture) {
  return architecture == SmTarget::sm_90a && !tile.dequantises &&
         multiplies_codes(gemm.weight, gemm.activation) && gemm.groups.empty() &&
         gemm.depths.empty() && gemm.batch == 1 && !gemm.a_is_km && !gemm.b_is_kn &&
         gemm.a.at.run <= 1;
}

std::string codes_not_built(const Program& program) {
  const auto* gemm = std::get_if<GemmMainloop>(&program.mainloop);
  if (gemm == nullptr || !gemm->weight.quantised()) return "";
  const std::string product = "a product with weights in " + gemm->weight.name();
  if (gemm->a_is_km || gemm->b_is_kn || gemm->batch > 1 || !gemm->depths.empty())
    return product + " whose operands lie along K";
  if (gemm->weight.group % kCodesTogether != 0)
    return product + fmt::format(" whose groups are no multiple of {} columns", kCodesTogether);
  if (gemm->K % 2 != 0 && size_of(gemm->weight.element()).bits() < 8)
    return product + " and an odd number of them in a row";
  if (gemm->a.at.run > 1) return product + " of rows that lie apart";
  for (const Primitive& p : program.body)
    for (const Access& access : p.accesses())
      if (access.reach == Reach::partials && access.along == Axis::cols)
        return product + " that sums columns";
  return "";
}

GemmConfig codes_config(const GemmMainloop& gemm, const EpilogueNeeds& needs,
                        const GemmTile& wanted, SmTarget architecture) {
  const bool of_the_other = wanted.dequantises && !wanted.whole_depth;
  if (architecture == SmTarget::sm_90a && gemm.groups.empty() && !gemm.activation.quantised() &&
      !of_the_other)
    if (const auto form = codes_columns({gemm.M, gemm.N, gemm.K, gemm.weight}, needs)) {
      GemmConfig config{
          .architecture = architecture, .tile_m = kColumnsRows, .tile_n = form->columns};
      config.codes = true;
      config.columns = form;
      return config;
    }
  const GemmTile tile = codes_tile(gemm.M, gemm.N, gemm.K, gemm.groups, gemm.weight,
                                   architecture == SmTarget::sm_90a);
  GemmConfig config{.architecture = architecture, .tile_m = tile.m, .tile_n = tile.n};
  config.codes = true;
  config.ragged = !gemm.groups.empty();
  config.cluster_k = static_cast<int>(tile.cluster_k);
  config.blocks_per_sm = static_cast<int>(tile.blocks_per_sm);
  return config;
}

GemmKernelSource codes_kernel_source(const Graph& graph, const Program& program,
                                     const GemmTile& tile, SmTarget architecture,
                                     const std::string& title) {
  const auto& gemm = std::get<GemmMainloop>(program.mainloop);
  EpilogueSource epilogue = epilogue_source(graph, program, "Epilogue");
  GemmKernelSource kernel;
  kernel.config = codes_config(gemm, epilogue.needs, tile, architecture);
  if (kernel.config.columns) {
    epilogue = epilogue_source(graph, program, "Epilogue", kColumnsStrip / 8);
    FUSELINE_ASSERT(epilogue.gathered_cols == 1, program.name + ": groups wider than a strip");
  }
  kernel.fields = epilogue.fields;
  kernel.slab_groups = epilogue.needs.slab_groups;
  kernel.row_sums = epilogue.needs.row_sums;
  kernel.function = Names().unique(program.name);
  kernel.source.name = kernel.function + ".cu";
  const GemmConfig& c = kernel.config;
  // A bf16 holds every code, so codes of both operands are multiplied as that.
  const char* element =
      gemm.activation.quantised() ? "bf16" : element_name(graph.tensor(gemm.a.tensor).dtype);

  std::string& text = kernel.source.text;
  text = as_comment(title) + "//\n" + as_comment(print_program(graph, program));
  text += fmt::format("#include \"{}\"\n", c.columns ? "sm90/codes_columns.cuh" : "gemm_codes.cuh");
  text +=
      "#include \"epilogue/log_sum_exp.cuh\"\n"
      "#include \"epilogue/pair.cuh\"\n#include \"epilogue/reduce.cuh\"\n"
      "#include \"epilogue/vector.cuh\"\n\nnamespace fuseline::gpu {\n\n";
  text += epilogue.text + "\n";
  text += fmt::format("using Weight = {};\n", weight_codes_text(gemm.weight));
  if (c.columns) {
    text += fmt::format(
        "using Config = CodesColumnsConfig<{}, Weight, {}, {}, {}, {}>;\n"
        "using Gemm = CodesColumns<Config, Epilogue>;\n"
        "static_assert(Gemm::stages == {}, \"the host knows the ring\");\n",
        element, gemm.K, c.columns->columns, c.columns->rows, c.columns->row_warps,
        c.columns->stages);
  } else {
    text += fmt::format("using Config = CodesConfig<{}, Weight, {}, {}, {}", element, c.tile_m,
                        c.cluster_k, c.ragged);
    if (gemm.activation.quantised())
      text += fmt::format(", {}, {}", codes_name(gemm.activation.element()), gemm.activation.group);
    text += ">;\nusing Gemm = CodesGemm<Config, Epilogue>;\n";
  }
  text += fmt::format(
      "static_assert(sizeof(Gemm::Args) == {}, \"the host lays out the parameters alike\");\n\n"
      "}}  // namespace fuseline::gpu\n\n",
      gemm_arguments(kernel).whole.whole.size);
  text += fmt::format(
      "extern \"C\" __constant__ int {}_shared_bytes = fuseline::gpu::Gemm::shared_bytes;\n\n",
      kernel.function);
  text += "extern \"C\" __global__ void ";
  if (c.cluster_k > 1) text += fmt::format("__cluster_dims__({}, 1, 1) ", c.cluster_k);
  text += fmt::format(
      "__launch_bounds__(fuseline::gpu::Gemm::threads, {})\n{}(const __grid_constant__ "
      "fuseline::gpu::Gemm::Args args) {{\n"
      "  fuseline::gpu::{}();\n"
      "  fuseline::gpu::{}<fuseline::gpu::Config>(args);\n}}\n",
      c.blocks_per_sm, kernel.function,
      c.columns ? "let_the_next_kernel_begin" : "begin_behind_the_kernel_before",
      c.columns ? "codes_columns" : "gemm_codes");
  return kernel;
}

}  // namespace fuseline::cuda
