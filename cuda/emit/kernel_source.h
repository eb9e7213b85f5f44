// A checked program as the CUDA source of one kernel, and what the host must know to launch it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cuda/compile/compiler.h"
#include "cuda/emit/epilogue_source.h"
#include "cuda/emit/gemm_variant.h"
#include "model/plan.h"
#include "sim/kernels/codes_columns.h"
#include "sim/kernels/gemm_problem.h"

namespace fuseline::cuda {

enum class Schedule : std::uint8_t { cooperative, ping_pong };

// What a GEMM kernel is compiled for. On sm_80 a tile has 128 rows and 128 or 256 columns; cluster
// and schedule are Hopper's. Edges are those of the result, also of a turned tile.
struct GemmConfig {
  SmTarget architecture = SmTarget::sm_90a;
  std::int64_t tile_m = 128, tile_n = 256;
  int cluster = 1;            // along M, or along N if turned
  int cluster_k = 1;          // along K
  std::int64_t a_rows = 128;  // of A that a tile loads
  Schedule schedule = Schedule::cooperative;
  bool batched = false;  // many products (kernels/batch.cuh)
  bool a_apart =
      false;            // A's rows lie apart in runs of whole tiles, and the copy engine finds them
  bool ragged = false;  // groups of rows (kernels/ragged.cuh)
  bool codes = false;   // weights in codes (kernels/gemm_codes.cuh): the same on both architectures
  // Of these, Hopper's for few rows (kernels/sm90/codes_columns.cuh).
  std::optional<CodesColumns> columns{};
  bool of_codes = false;  // Hopper's mainloop multiplies codes by codes (kernels/sm90/config.cuh)
  int blocks_per_sm = 1;  // that a multiprocessor has at the same time, of codes
  bool ragged_k = false;  // groups of rows along K, each of a product of the batch
  bool weights_first = false;  // B is weights (kernels/sm90/config.cuh)
  bool turned = false;         // A and B change places (kernels/sm90/turned_tile.cuh)
  int tail_parts = 1;          // of K, of the tiles of the last round (kernels/sm90/tile_walk.cuh)
  GemmVariant variant{};       // what is tried in place of what is shipped
};

struct GemmKernelSource {
  Source source;
  std::string function;  // the extern "C" kernel; FUNCTION_shared_bytes is a constant beside it
  GemmConfig config;
  std::vector<Field> fields;  // of the epilogue
  int slab_groups = 8;        // groups of 8 columns that the epilogue sees at once
  int row_sums = 0;           // that it leaves of each row and 128 columns
};

// The kernel's one parameter. Hopper: maps of A and B, M N K and the raster's group, epilogue,
// batch, the rows of a run of A, groups of rows, sums of parts of tiles, and of codes their scales.
// Ampere: A, B, M N K, their leading dimensions and the raster's group, epilogue, batch, groups of
// rows. Codes: six pointers, ten numbers, epilogue, groups of rows; for few rows on Hopper a map of
// B, pointers to A and the scales, the sums along rows, four numbers, epilogue.
struct GemmArguments {
  StructLayout whole;     // of the parts above
  StructLayout epilogue;  // of the fields, from the epilogue's place on
};
GemmArguments gemm_arguments(const GemmKernelSource& kernel);

// The tile that a kernel has, as the simulator knows tiles.
GemmTile tile_of(const GemmConfig& config);

// The tile that the simulator chose, as far as our mainloop has it: a program that sums columns
// takes tiles of 128 rows, and one that leaves row partials tiles of whole blocks of 128 columns.
GemmConfig gemm_config(const Program& program, const EpilogueSource& epilogue, const GemmTile& tile,
                       SmTarget architecture);

// `title` and the program's text become the source's first comment. InternalError: products in
// batches with other primitives behind them than maps and stores.
GemmKernelSource gemm_kernel_source(const Graph& graph, const Program& program,
                                    const GemmTile& tile, SmTarget architecture,
                                    const std::string& title);

// The same in another way; nothing where the variant does not change this kernel: Ampere's, codes,
// batches, groups, operands that are not contiguous along K; a cluster of one block, or with fewer
// tiles than blocks.
std::optional<GemmKernelSource> gemm_variant_source(const Graph& graph, const Program& program,
                                                    const GemmTile& tile, SmTarget architecture,
                                                    const std::string& title,
                                                    const GemmVariant& variant);

}  // namespace fuseline::cuda
