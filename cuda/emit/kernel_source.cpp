#include "cuda/emit/kernel_source.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "cuda/emit/codes_source.h"
#include "cuda/emit/comment.h"
#include "cuda/emit/names.h"
#include "cuda/emit/widths.h"
#include "sim/kernels/gemm_schedule.h"

namespace fuseline::cuda {

namespace {

constexpr std::int64_t kWidestTile = 256;
constexpr std::int64_t kStepBytes = 128;  // of a row of an operand in a step of K

const GemmMainloop& gemm_of(const Program& program) {
  const auto* gemm = std::get_if<GemmMainloop>(&program.mainloop);
  FUSELINE_ASSERT(gemm != nullptr, "a GEMM program");
  return *gemm;
}

// Whether the epilogue of products in batches has what it must: of loads only a table's know which
// product a tile belongs to.
bool stores_only(const Program& program) {
  const auto plain_store = [](const Access& a) {
    return (a.store && a.reach == Reach::tile && !a.accumulate) ||
           (!a.store && a.reach == Reach::table && a.period == 0);
  };
  return std::ranges::all_of(program.body, [&](const Primitive& p) {
    const std::vector<Access> accesses = p.accesses();
    return accesses.empty() ? p.demands().elementwise : std::ranges::all_of(accesses, plain_store);
  });
}

GemmConfig ampere_config(const EpilogueSource& epilogue, const GemmTile& tile, std::int64_t N) {
  GemmConfig config{.architecture = SmTarget::sm_80};
  config.tile_m = 128;
  config.tile_n = tile.n >= kWidestTile && N > 128 ? kWidestTile : 128;
  FUSELINE_ASSERT(epilogue.needs.row_partial_cols <= 128, "a warp has 128 columns of its rows");
  return config;
}

// Whether the mainloop has this tile turned for the program.
bool turns(const GemmMainloop& gemm, const EpilogueSource& epilogue, const GemmTile& tile) {
  return tile.turned() && gemm.batch == 1 && gemm.groups.empty() && gemm.depths.empty() &&
         !gemm.a_is_km && epilogue.gathered_cols == 1 && fits(epilogue.needs, tile);
}

// From the sixth argument of Sm90Config on that says more than the defaults.
std::string more_arguments(const GemmConfig& c) {
  if (c.turned) return fmt::format(", false, false, false, {}, true", c.tail_parts > 1);
  if (c.tail_parts > 1) return fmt::format(", {}, false, false, true", c.a_apart);
  if (c.ragged_k) return ", false, false, true";
  if (c.ragged) return ", false, true";
  return c.a_apart ? ", true" : "";
}

// Whether a variant is compiled into the kernel; the others are of how it is launched.
bool compiled_apart(const GemmVariant& v) { return v.half_boxes || v.store_by_threads; }

// Whether its Config is a struct over the one that its shape gives.
bool over_shipped(const GemmConfig& c) { return c.weights_first || compiled_apart(c.variant); }

// The mainloop's own edges: those of a turned tile change places with its operands.
std::string hopper_config(const GemmConfig& c, const GemmMainloop& gemm, const char* element) {
  const char* const name = c.of_codes ? "Shape" : over_shipped(c) ? "Shipped" : "Config";
  std::string text =
      fmt::format("using {} = Sm90Config<{}, {}, {}, {}, Schedule::{}, {}, {}, {}, {}, {}{}>;\n",
                  name, element, c.turned ? c.tile_n : c.tile_m, c.turned ? c.tile_m : c.tile_n,
                  c.cluster, c.schedule == Schedule::cooperative ? "cooperative" : "ping_pong",
                  c.turned ? gemm.b_is_kn : gemm.a_is_km, c.turned ? gemm.a_is_km : gemm.b_is_kn,
                  c.batched, c.cluster_k, c.turned ? c.tile_n : c.a_rows, more_arguments(c));
  if (c.of_codes)
    text += fmt::format("using {} = Sm90CodesConfig<Shape, {}>;\n",
                        over_shipped(c) ? "Shipped" : "Config", weight_codes_text(gemm.weight));
  if (!over_shipped(c)) return text;
  text += "struct Config : Shipped {\n";
  if (c.weights_first) text += "  static constexpr bool weights_first = true;\n";
  if (compiled_apart(c.variant))
    text += fmt::format("  static constexpr bool half_boxes = {}, store_by_threads = {};\n",
                        c.variant.half_boxes, c.variant.store_by_threads);
  return text + "};\n";
}

// Whether a variant changes this kernel.
bool applies(const GemmVariant& v, const GemmConfig& c, const GemmMainloop& gemm) {
  if (c.architecture != SmTarget::sm_90a || c.codes || c.of_codes || c.ragged || c.ragged_k ||
      c.a_apart || gemm.batch > 1 || gemm.a_is_km || gemm.b_is_kn)
    return false;
  if (v.cluster == 2) return true;
  const std::int64_t shared = c.turned ? c.tile_m : c.tile_n;  // rows of the operand that is shared
  const std::int64_t across = c.turned ? gemm.N : gemm.M, each = c.turned ? c.tile_n : c.tile_m;
  return c.cluster == 2 && shared % (8 * v.cluster) == 0 && across > each * (v.cluster - 1);
}

}  // namespace

GemmConfig gemm_config(const Program& program, const EpilogueSource& epilogue, const GemmTile& tile,
                       SmTarget architecture) {
  const GemmMainloop& gemm = gemm_of(program);
  if (architecture == SmTarget::sm_80) {
    GemmConfig config = ampere_config(epilogue, tile, gemm.N);
    config.ragged = !gemm.groups.empty();
    config.ragged_k = !gemm.depths.empty();
    return config;
  }
  const bool of_codes = gemm.weight.quantised();
  const std::int64_t step_k = of_codes ? kStepBytes : kStepBytes / 2;
  const std::int64_t steps = (gemm.K + step_k - 1) / step_k;
  if (turns(gemm, epilogue, tile)) {
    GemmConfig config{.architecture = architecture, .tile_m = tile.m, .tile_n = tile.n};
    config.turned = true;
    config.of_codes = of_codes;
    config.cluster = static_cast<int>(tile.cluster_n);
    config.a_rows = tile.m;
    if (!of_codes) config.tail_parts = static_cast<int>(std::min(tile.tail_parts, steps));
    return config;
  }
  GemmConfig config{.architecture = architecture, .tile_m = tile.m, .tile_n = tile.n};
  config.of_codes = of_codes;
  config.ragged = !gemm.groups.empty();
  config.ragged_k = !gemm.depths.empty();
  if (epilogue.needs.reduces_columns || config.ragged_k) config.tile_m = 128;
  config.tile_m = config.tile_m < 128 ? 64 : 128;
  // The widest tile that fits and is no wider than the simulator's; where none is, the narrowest
  // wider one; and rather a wider tile than one of 64 rows.
  const std::int64_t step = std::lcm(
      std::max<std::int64_t>(epilogue.needs.row_partial_cols, kSlabCols), epilogue.gathered_cols);
  const std::int64_t all = (gemm.N + step - 1) / step * step;
  const std::int64_t wanted = std::min(std::max(tile.n / step * step, step), all);
  const auto found = [&] {
    for (config.tile_n = wanted; config.tile_n > 0; config.tile_n -= step)
      if (fits(epilogue.needs, {.m = config.tile_m, .n = config.tile_n})) return true;
    for (config.tile_n = wanted + step; config.tile_n <= kWidestTile; config.tile_n += step)
      if (fits(epilogue.needs, {.m = config.tile_m, .n = config.tile_n})) return true;
    return false;
  };
  if (!found()) {
    config.tile_m = 64;
    FUSELINE_ASSERT(!epilogue.needs.reduces_columns && found(), "some tile fits every program");
  }
  config.schedule = config.tile_m == 64 ? Schedule::ping_pong : Schedule::cooperative;
  // Thread blocks below each other share the tile of B, if there are as many. Those of groups may
  // have another B.
  const auto below = static_cast<int>(std::max<std::int64_t>(tile.cluster_m, 1));
  config.cluster = gemm.M > config.tile_m * (below - 1) && !config.ragged ? below : 1;
  const GemmTile split{.m = config.tile_m, .n = config.tile_n, .cluster_k = tile.cluster_k};
  if (tile.cluster_k > 1 && gemm.batch == 1 && !config.ragged && !config.ragged_k &&
      config.cluster == 1 && steps >= tile.cluster_k && fits(epilogue.needs, split))
    config.cluster_k = static_cast<int>(tile.cluster_k);
  const bool one_product = gemm.batch == 1 && !config.ragged && !config.ragged_k;
  if (one_product && config.schedule == Schedule::cooperative && config.cluster_k == 1)
    config.tail_parts = static_cast<int>(std::min(tile.tail_parts, steps));
  const bool plain = one_product && !gemm.a_is_km;
  config.a_apart = plain && gemm.a.at.run > 1 && gemm.a.at.run % config.tile_m == 0;
  config.a_rows = config.tile_m;
  if (plain && !config.a_apart) {
    // Fewer rows of A make a smaller stage, which must hold what a slab loads.
    const std::int64_t rows = own_loaded_rows(config.tile_m, gemm.M);
    const std::int64_t loads =
        epilogue.needs.tile_loads * config.tile_m * 128 + epilogue.needs.col_loads * 256;
    if (loads <= (rows + config.tile_n) * 128) config.a_rows = rows;
  }
  // Of groups the box of A is as high as most of them are. Whoever has more rows takes more boxes.
  if (config.ragged) {
    const auto groups = static_cast<std::int64_t>(gemm.groups.size());
    config.a_rows = own_loaded_rows(config.tile_m, (gemm.M + groups - 1) / groups);
  }
  return config;
}

GemmTile tile_of(const GemmConfig& config) {
  return {.m = config.tile_m,
          .n = config.tile_n,
          .cluster_m = config.turned ? 1 : config.cluster,
          .cluster_n = config.turned ? config.cluster : 1};
}

GemmArguments gemm_arguments(const GemmKernelSource& kernel) {
  std::vector<Layout> fields;
  for (const Field& f : kernel.fields) fields.push_back(layout_of(f.kind));
  constexpr Layout map{128, 64}, pointer{8, 8}, batch{56, 8}, groups{16, 8}, tail{24, 8};
  constexpr Layout scales{40, 64};
  GemmArguments arguments;
  arguments.epilogue = lay_out(fields);
  const Layout epilogue = arguments.epilogue.whole;
  if (kernel.config.columns) {
    arguments.whole = lay_out({map, {16, 8}, {16, 8}, {16, 4}, epilogue});
    return arguments;
  }
  if (kernel.config.codes) {
    arguments.whole = lay_out({{48, 8}, {40, 4}, epilogue, groups});
    return arguments;
  }
  if (kernel.config.architecture == SmTarget::sm_80) {
    arguments.whole = lay_out({pointer, pointer, {24, 4}, epilogue, batch, groups});
    return arguments;
  }
  std::vector<Layout> parts = {map, map, {16, 4}, epilogue, batch, {4, 4}, groups, tail};
  if (kernel.config.of_codes) parts.push_back(scales);
  arguments.whole = lay_out(parts);
  return arguments;
}

namespace {

GemmKernelSource source_of(const Graph& graph, const Program& program, const std::string& title,
                           const EpilogueSource& epilogue, GemmConfig config) {
  const GemmMainloop& gemm = gemm_of(program);
  GemmKernelSource kernel;
  kernel.config = std::move(config);
  kernel.config.weights_first = kernel.config.architecture == SmTarget::sm_90a &&
                                !kernel.config.batched &&
                                graph.tensor(gemm.b.tensor).role == Role::weight;
  kernel.fields = epilogue.fields;
  kernel.slab_groups = epilogue.needs.slab_groups;
  kernel.function = Names().unique(program.name);
  const GemmConfig& c = kernel.config;
  const bool hopper = c.architecture == SmTarget::sm_90a;
  // Sm90CodesConfig says what is multiplied where it is codes.
  const char* element = c.of_codes ? "bf16" : element_name(graph.tensor(gemm.a.tensor).dtype);

  std::string& text = kernel.source.text;
  kernel.source.name = kernel.function + ".cu";
  text = as_comment(title) + "//\n" + as_comment(print_program(graph, program));
  text += fmt::format("#include \"gemm_{}.cuh\"\n", hopper ? "sm90" : "sm80");
  text +=
      "#include \"epilogue/log_sum_exp.cuh\"\n#include \"epilogue/pair.cuh\"\n"
      "#include \"epilogue/reduce.cuh\"\n#include \"epilogue/vector.cuh\"\n\n"
      "namespace fuseline::gpu {\n\n";
  text += epilogue.text + "\n";
  if (hopper)
    text += hopper_config(c, gemm, element);
  else
    text += fmt::format("using Config = Sm80Config<{}, {}, {}, {}, {}{}>;\n", element, c.tile_n,
                        gemm.a_is_km, gemm.b_is_kn, c.batched,
                        c.ragged_k ? ", false, true"
                        : c.ragged ? ", true"
                                   : "");
  text += fmt::format("using Gemm = {}Gemm<Config, Epilogue>;\n", hopper ? "Sm90" : "Sm80");
  text += fmt::format(
      "static_assert(sizeof(Gemm::Args) == {}, \"the host lays out the parameters alike\");\n\n"
      "}}  // namespace fuseline::gpu\n\n",
      gemm_arguments(kernel).whole.whole.size);
  text += fmt::format(
      "extern \"C\" __constant__ int {}_shared_bytes = fuseline::gpu::Gemm::shared_bytes;\n\n",
      kernel.function);
  text += "extern \"C\" __global__ void ";
  if (const int blocks = c.cluster * c.cluster_k; blocks > 1)
    text += fmt::format("__cluster_dims__({}, 1, 1) ", blocks);
  text += fmt::format(
      "__launch_bounds__(fuseline::gpu::Gemm::threads, 1)\n{}(const __grid_constant__ "
      "fuseline::gpu::Gemm::Args args) {{\n"
      "  fuseline::gpu::{}();\n"
      "  fuseline::gpu::gemm_{}<fuseline::gpu::Config>(args);\n}}\n",
      kernel.function, hopper ? "let_the_next_kernel_begin" : "begin_behind_the_kernel_before",
      hopper ? "sm90" : "sm80");
  return kernel;
}

}  // namespace

GemmKernelSource gemm_kernel_source(const Graph& graph, const Program& program,
                                    const GemmTile& tile, SmTarget architecture,
                                    const std::string& title) {
  const GemmMainloop& gemm = gemm_of(program);
  if (gemm.weight.quantised() && !multiplies_codes(gemm, tile, architecture))
    return codes_kernel_source(graph, program, tile, architecture, title);
  FUSELINE_ASSERT(gemm.batch == 1 || stores_only(program), program.name);
  EpilogueSource epilogue = epilogue_source(graph, program, "Epilogue");
  GemmConfig config = gemm_config(program, epilogue, tile, architecture);
  if (const int groups = slab_groups_of(epilogue.needs, tile_of(config));
      architecture == SmTarget::sm_90a && groups != epilogue.needs.slab_groups)
    epilogue = epilogue_source(graph, program, "Epilogue", groups);
  config.batched = gemm.batch > 1 || config.ragged_k;
  return source_of(graph, program, title, epilogue, std::move(config));
}

std::optional<GemmKernelSource> gemm_variant_source(const Graph& graph, const Program& program,
                                                    const GemmTile& tile, SmTarget architecture,
                                                    const std::string& title,
                                                    const GemmVariant& variant) {
  const GemmMainloop& gemm = gemm_of(program);
  if (gemm.weight.quantised()) return std::nullopt;
  const EpilogueSource epilogue = epilogue_source(graph, program, "Epilogue");
  GemmConfig config = gemm_config(program, epilogue, tile, architecture);
  if (!applies(variant, config, gemm)) return std::nullopt;
  config.variant = variant;
  if (variant.cluster != 2) {
    config.cluster = variant.cluster;
    config.tail_parts = 1;  // the walk over shared tiles counts on clusters that fill the GPU
  }
  return source_of(graph, program, title + ", " + variant.name, epilogue, std::move(config));
}

}  // namespace fuseline::cuda
