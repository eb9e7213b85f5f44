#include "cuda/emit/kernel_source.h"

#include <algorithm>
#include <sstream>

#include <fmt/format.h>

#include "cuda/emit/names.h"
#include "model/error.h"

namespace fuseline::cuda {

namespace {

constexpr std::int64_t kSlabCols = 64;  // what an epilogue sees at once (fragment.cuh)
constexpr std::int64_t kWidestTile = 256;
constexpr std::int64_t kThreadsOfGroup = 128;
// Of the 232 registers of a thread that multiplies, those that hold tile values; addresses, row
// vectors and the like take the rest.
constexpr std::int64_t kValueRegisters = 216;

std::string as_comment(const std::string& text) {
  std::string out;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);)
    out += line.empty() ? "//\n" : fmt::format("// {}\n", line);
  return out;
}

const GemmMainloop& gemm_of(const Program& program) {
  const auto* gemm = std::get_if<GemmMainloop>(&program.mainloop);
  FUSELINE_ASSERT(gemm != nullptr, "a GEMM program");
  return *gemm;
}

// Whether a warpgroup's 64 rows of the tile, and what a slab of it loads, have room.
bool fits(const EpilogueSource& epilogue, std::int64_t tile_m, std::int64_t tile_n) {
  const std::int64_t accumulators = 64 * tile_n / kThreadsOfGroup;
  return accumulators + epilogue.live_registers <= kValueRegisters &&
         epilogue.tile_loads * tile_m * 128 + epilogue.col_loads * 256 <= (tile_m + tile_n) * 128;
}

std::string params_size_check(const std::vector<Field>& fields) {
  std::vector<Layout> parts;
  for (const Field& f : fields) parts.push_back(layout_of(f.kind));
  return fmt::format(
      "static_assert(sizeof(Epilogue::Params) == {}, \"the host lays out the parameters "
      "alike\");\n",
      lay_out(parts).whole.size);
}

}  // namespace

GemmConfig gemm_config(const Program& program, const EpilogueSource& epilogue, const GemmTile& tile,
                       SmTarget architecture) {
  GemmConfig config{.architecture = architecture, .tile_m = tile.m, .tile_n = tile.n};
  const GemmMainloop& gemm = gemm_of(program);
  if (epilogue.reduces_columns) config.tile_m = 128;
  config.tile_m = config.tile_m < 128 ? 64 : 128;
  // The widest tile that fits and is no wider than the simulator's; where none is, the narrowest
  // wider one; and rather a wider tile than one of 64 rows.
  const std::int64_t step = std::max<std::int64_t>(epilogue.row_partial_cols, kSlabCols);
  const std::int64_t wanted = std::max(tile.n / step * step, step);
  const auto found = [&] {
    for (config.tile_n = wanted; config.tile_n > 0; config.tile_n -= step)
      if (fits(epilogue, config.tile_m, config.tile_n)) return true;
    for (config.tile_n = wanted + step; config.tile_n <= kWidestTile; config.tile_n += step)
      if (fits(epilogue, config.tile_m, config.tile_n)) return true;
    return false;
  };
  if (!found()) {
    config.tile_m = 64;
    FUSELINE_ASSERT(!epilogue.reduces_columns && found(), "some tile fits every program");
  }
  config.schedule = config.tile_m == 64 ? Schedule::ping_pong : Schedule::cooperative;
  // Thread blocks below each other share the tile of B, if there are two.
  config.cluster =
      gemm.M > config.tile_m
          ? static_cast<int>(std::min<std::int64_t>(2, std::max<std::int64_t>(tile.cluster_m, 1)))
          : 1;
  return config;
}

GemmKernelSource gemm_kernel_source(const Graph& graph, const Program& program,
                                    const GemmTile& tile, SmTarget architecture,
                                    const std::string& title) {
  const GemmMainloop& gemm = gemm_of(program);
  const EpilogueSource epilogue = epilogue_source(graph, program, "Epilogue");
  GemmKernelSource kernel;
  kernel.config = gemm_config(program, epilogue, tile, architecture);
  kernel.fields = epilogue.fields;
  kernel.slab_groups = epilogue.slab_groups;
  kernel.function = Names().unique(program.name);
  const GemmConfig& c = kernel.config;

  std::string& text = kernel.source.text;
  kernel.source.name = kernel.function + ".cu";
  text = as_comment(title) + "//\n" + as_comment(print_program(graph, program));
  text += fmt::format("#include \"gemm_{}.cuh\"\n",
                      c.architecture == SmTarget::sm_90a ? "sm90" : "sm80");
  text +=
      "#include \"epilogue/log_sum_exp.cuh\"\n#include \"epilogue/pair.cuh\"\n"
      "#include \"epilogue/reduce.cuh\"\n#include \"epilogue/vector.cuh\"\n\n"
      "namespace fuseline::gpu {\n\n";
  text += epilogue.text + params_size_check(kernel.fields) + "\n";
  text += fmt::format("using Config = Sm{}Config<{}, {}, {}, {}, Schedule::{}, {}, {}>;\n",
                      c.architecture == SmTarget::sm_90a ? "90" : "80",
                      element_name(graph.tensor(gemm.a.tensor).dtype), c.tile_m, c.tile_n,
                      c.cluster, c.schedule == Schedule::cooperative ? "cooperative" : "ping_pong",
                      gemm.a_is_km, gemm.b_is_kn);
  text += "using Gemm = Sm90Gemm<Config, Epilogue>;\n\n}  // namespace fuseline::gpu\n\n";
  text += fmt::format(
      "extern \"C\" __constant__ int {0}_shared_bytes = "
      "fuseline::gpu::Gemm::shared_bytes;\n\n",
      kernel.function);
  text += "extern \"C\" __global__ void ";
  if (c.cluster > 1) text += fmt::format("__cluster_dims__({}, 1, 1) ", c.cluster);
  text += fmt::format(
      "__launch_bounds__(fuseline::gpu::Gemm::threads, 1)\n{}(const __grid_constant__ "
      "fuseline::gpu::Gemm::Args args) {{\n"
      "  fuseline::gpu::gemm_sm90<fuseline::gpu::Config>(args);\n}}\n",
      kernel.function);
  return kernel;
}

}  // namespace fuseline::cuda
