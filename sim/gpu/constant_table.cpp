#include "sim/gpu/constant_table.h"

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "base/error.h"

namespace fuseline {
namespace {

// One row a constant, sorted by name within its group.
constexpr ConstantInfo kTable[] = {
    {"attention.block_bytes_per_cycle", "B/clock", "keys and values that one thread block streams",
     Zero::refused,
     [](Constants& c) -> ConstantPlace { return &c.attention.block_bytes_per_cycle; }},
    {"attention.block_cycles_per_key", "clocks",
     "waiting of one thread block for a key, beside streaming it", Zero::allowed,
     [](Constants& c) -> ConstantPlace { return &c.attention.block_cycles_per_key; }},
    {"attention.blocks_per_sm", "blocks/SM", "thread blocks that a split decode kernel aims at",
     Zero::refused, [](Constants& c) -> ConstantPlace { return &c.attention.blocks_per_sm; }},
    {"attention.combine_split_us", "us", "for each split beside combine_us", Zero::allowed,
     [](Constants& c) -> ConstantPlace { return &c.attention.combine_split; }},
    {"attention.combine_us", "us", "merging the splits of decode attention", Zero::allowed,
     [](Constants& c) -> ConstantPlace { return &c.attention.combine; }},
    {"attention.exp_cycles", "clocks/score", "softmax of one score on one SM", Zero::refused,
     [](Constants& c) -> ConstantPlace { return &c.attention.exp_cycles; }},
    {"attention.full_tile_width", "columns", "wider heads leave room for smaller tiles only",
     Zero::refused, [](Constants& c) -> ConstantPlace { return &c.attention.full_tile_width; }},
    {"attention.gradient_exps", "1", "softmax work of attention's gradient over its forward's",
     Zero::refused, [](Constants& c) -> ConstantPlace { return &c.attention.gradient_exps; }},
    {"attention.gradient_products", "1", "products of attention's gradient over its forward's",
     Zero::refused, [](Constants& c) -> ConstantPlace { return &c.attention.gradient_products; }},
    {"attention.hbm_fraction", "1", "of the sustained HBM rate that decode attention reaches",
     Zero::refused, [](Constants& c) -> ConstantPlace { return &c.attention.hbm_fraction; }},
    {"attention.item_cycles_per_width", "clocks",
     "per query tile and head column: Q in, result out", Zero::allowed,
     [](Constants& c) -> ConstantPlace { return &c.attention.item_cycles_per_width; }},
    {"attention.overlap_exponent", "1", "p-norm over the walk of a decode kernel and its transfer",
     Zero::refused, [](Constants& c) -> ConstantPlace { return &c.attention.overlap_exponent; }},
    {"attention.product_exposed", "1", "share of the products' time that softmax does not hide",
     Zero::refused, [](Constants& c) -> ConstantPlace { return &c.attention.product_exposed; }},
    {"attention.repeated_l2_share", "1",
     "of the L2 time of keys that further thread blocks load again", Zero::allowed,
     [](Constants& c) -> ConstantPlace { return &c.attention.repeated_l2_share; }},
    {"attention.served_blocks_per_sm", "blocks/SM",
     "decode blocks that an SM serves at their full speed", Zero::refused,
     [](Constants& c) -> ConstantPlace { return &c.attention.served_blocks_per_sm; }},
    {"attention.split_least_keys", "keys", "caches with fewer visible keys are not split",
     Zero::refused, [](Constants& c) -> ConstantPlace { return &c.attention.split_least_keys; }},
    {"attention.split_start_us", "us", "first loads and last stores of a decode attention kernel",
     Zero::allowed, [](Constants& c) -> ConstantPlace { return &c.attention.split_start; }},
    {"attention.start_us", "us", "first loads and last stores of a prefill attention kernel",
     Zero::allowed, [](Constants& c) -> ConstantPlace { return &c.attention.start; }},
    {"attention.wide_block_bytes_per_cycle", "B/clock",
     "the same where blocks share the columns of a wide head", Zero::refused,
     [](Constants& c) -> ConstantPlace { return &c.attention.wide_block_bytes_per_cycle; }},
    {"attention.wide_head_loss", "1",
     "more time for every full_tile_width columns beyond the first", Zero::allowed,
     [](Constants& c) -> ConstantPlace { return &c.attention.wide_head_loss; }},
    {"gemm.alignment_bytes", "B",
     "rows of an operand must be a multiple of it for bulk copies and vector loads", Zero::refused,
     [](Constants& c) -> ConstantPlace { return &c.gemm.alignment_bytes; }},
    {"gemm.cluster_wave_us", "us",
     "start and end of our own clusters along K, which each wave of them pays again", Zero::refused,
     [](Constants& c) -> ConstantPlace { return &c.gemm.cluster_wave; }},
    {"gemm.concurrency_exponent", "1", "HBM rate ~ (SMs with work / SMs) to this power",
     Zero::refused, [](Constants& c) -> ConstantPlace { return &c.gemm.concurrency_exponent; }},
    {"gemm.dequantise_instructions", "instructions/element",
     "from the code of a weight to the type of the tensor cores, scale applied", Zero::allowed,
     [](Constants& c) -> ConstantPlace { return &c.gemm.dequantise_instructions; }},
    {"gemm.epilogue_bytes_per_cycle", "B/clock", "library epilogue of one SM, mostly hidden",
     Zero::refused, [](Constants& c) -> ConstantPlace { return &c.gemm.epilogue_bytes_per_cycle; }},
    {"gemm.exposed_epilogue_bytes_per_cycle", "B/clock", "epilogue program while no MMA runs",
     Zero::refused,
     [](Constants& c) -> ConstantPlace { return &c.gemm.exposed_epilogue_bytes_per_cycle; }},
    {"gemm.fp8_fraction", "1", "of the tensor rate of fp8, beside gemm.tensor_fraction",
     Zero::refused, [](Constants& c) -> ConstantPlace { return &c.gemm.fp8_fraction; }},
    {"gemm.hbm_fraction", "1", "of the sustained HBM rate", Zero::refused,
     [](Constants& c) -> ConstantPlace { return &c.gemm.hbm_fraction; }},
    {"gemm.int8_fraction", "1", "of the tensor rate of int8, beside gemm.tensor_fraction",
     Zero::refused, [](Constants& c) -> ConstantPlace { return &c.gemm.int8_fraction; }},
    {"gemm.l2_fraction", "1", "of the L2 rate of plain loads; bulk copies reach more",
     Zero::refused, [](Constants& c) -> ConstantPlace { return &c.gemm.l2_fraction; }},
    {"gemm.least_split_steps", "steps",
     "of the pipeline in a part of K: shorter parts are all fill and drain", Zero::refused,
     [](Constants& c) -> ConstantPlace { return &c.gemm.least_split_steps; }},
    {"gemm.least_tile_rows", "rows",
     "tiles below this height are taken only where they cover all rows", Zero::allowed,
     [](Constants& c) -> ConstantPlace { return &c.gemm.least_tile_rows; }},
    {"gemm.overlap_exponent", "1", "p-norm over the parts of a wave; large = perfect overlap",
     Zero::refused, [](Constants& c) -> ConstantPlace { return &c.gemm.overlap_exponent; }},
    {"gemm.packed_cluster", "blocks",
     "clusters of so many thread blocks or more fill gemm.packed_fraction of the SMs",
     Zero::refused, [](Constants& c) -> ConstantPlace { return &c.gemm.packed_cluster; }},
    {"gemm.packed_fraction", "1", "of the SMs that clusters of four or more can fill",
     Zero::refused, [](Constants& c) -> ConstantPlace { return &c.gemm.packed_fraction; }},
    {"gemm.raster_group_tiles", "tiles", "of a raster group of the library", Zero::refused,
     [](Constants& c) -> ConstantPlace { return &c.gemm.raster_group_tiles; }},
    {"gemm.reduction_fraction", "1", "of the L2 rate, in that kernel", Zero::refused,
     [](Constants& c) -> ConstantPlace { return &c.gemm.reduction_fraction; }},
    {"gemm.reduction_us", "us", "the kernel that sums split-K partials, beyond an empty one",
     Zero::refused, [](Constants& c) -> ConstantPlace { return &c.gemm.reduction; }},
    {"gemm.rescale_instructions", "instructions/element",
     "of a tile, for every group of columns of codes whose sums get the scales of both operands",
     Zero::allowed, [](Constants& c) -> ConstantPlace { return &c.gemm.rescale_instructions; }},
    {"gemm.sm_fetch_bytes_per_cycle", "B/clock", "operand panels from L2 into one SM",
     Zero::refused, [](Constants& c) -> ConstantPlace { return &c.gemm.sm_fetch_bytes_per_cycle; }},
    {"gemm.start_us", "us", "fill and drain of the pipeline, beyond an empty kernel", Zero::refused,
     [](Constants& c) -> ConstantPlace { return &c.gemm.start; }},
    {"gemm.tensor_fraction", "1", "of the datasheet tensor rate, in the steady mainloop",
     Zero::refused, [](Constants& c) -> ConstantPlace { return &c.gemm.tensor_fraction; }},
    {"gemm.tf32_fraction", "1",
     "tensor rate of fp32 operands, which run as TF32, over that of bf16", Zero::refused,
     [](Constants& c) -> ConstantPlace { return &c.gemm.tf32_fraction; }},
    {"gemm.thin_columns", "columns", "tiles of thin problems are a multiple of it wide",
     Zero::refused, [](Constants& c) -> ConstantPlace { return &c.gemm.thin_columns; }},
    {"gemm.thin_rows", "rows", "problems of so few rows get the narrowest tile that covers them",
     Zero::allowed, [](Constants& c) -> ConstantPlace { return &c.gemm.thin_rows; }},
    {"gemm.tile_indifference", "1",
     "difference in predicted time that the choice of a tile ignores", Zero::allowed,
     [](Constants& c) -> ConstantPlace { return &c.gemm.tile_indifference; }},
    {"gemm.unaligned_bytes_per_cycle", "B/clock",
     "fetch where rows are no multiple of gemm.alignment_bytes", Zero::refused,
     [](Constants& c) -> ConstantPlace { return &c.gemm.unaligned_bytes_per_cycle; }},
    {"l2.capacity_fraction", "1",
     "of the nominal capacity that an LRU cache has to have, where two partitions keep copies",
     Zero::refused, [](Constants& c) -> ConstantPlace { return &c.l2.capacity_fraction; }},
    {"l2.single_partition_fraction", "1", "the same where one partition keeps no second copy",
     Zero::refused, [](Constants& c) -> ConstantPlace { return &c.l2.single_partition_fraction; }},
    {"launch.gap_us", "us", "a kernel after a different one, beyond a chain of equal empty kernels",
     Zero::allowed, [](Constants& c) -> ConstantPlace { return &c.launch.gap; }},
    {"power.clock_exponent", "1", "dynamic power ~ clock to this power", Zero::refused,
     [](Constants& c) -> ConstantPlace { return &c.power.clock_exponent; }},
    {"power.constant_share", "1", "of the TDP, drawn by an active GPU without work", Zero::allowed,
     [](Constants& c) -> ConstantPlace { return &c.power.constant_share; }},
    {"power.hbm_share", "1", "of the TDP, HBM at its bandwidth", Zero::allowed,
     [](Constants& c) -> ConstantPlace { return &c.power.hbm_share; }},
    {"power.l2_share", "1", "of the TDP, L2 at its bandwidth", Zero::allowed,
     [](Constants& c) -> ConstantPlace { return &c.power.l2_share; }},
    {"power.lowest_clock", "1", "of the boost clock that the limit never goes below", Zero::refused,
     [](Constants& c) -> ConstantPlace { return &c.power.lowest_clock; }},
    {"power.reaction_ms", "ms", "over which the limit averages power", Zero::refused,
     [](Constants& c) -> ConstantPlace { return &c.power.reaction; }},
    {"power.reaction_sharpness", "1", "of the step from full speed to the steady clock",
     Zero::refused, [](Constants& c) -> ConstantPlace { return &c.power.reaction_sharpness; }},
    {"power.tensor_share", "1", "of the TDP, tensor cores at the datasheet rate", Zero::refused,
     [](Constants& c) -> ConstantPlace { return &c.power.tensor_share; }},
    {"route.generated_sort_us", "us",
     "one comparison of a compiler-generated sort, one after the other", Zero::allowed,
     [](Constants& c) -> ConstantPlace { return &c.route.generated_sort; }},
    {"route.order_us", "us", "a framework puts the few numbers of every row in order",
     Zero::allowed, [](Constants& c) -> ConstantPlace { return &c.route.order; }},
    {"route.select_instructions", "instructions/element",
     "largest numbers of every row of at least 32", Zero::refused,
     [](Constants& c) -> ConstantPlace { return &c.route.select_instructions; }},
    {"route.select_row_us", "us", "of one row, from first to last pass", Zero::allowed,
     [](Constants& c) -> ConstantPlace { return &c.route.select_row; }},
    {"route.select_start_us", "us", "the same of several rows", Zero::allowed,
     [](Constants& c) -> ConstantPlace { return &c.route.select_start; }},
    {"route.sort_number_us", "us", "for each number of a thread, in one of the 16 passes",
     Zero::allowed, [](Constants& c) -> ConstantPlace { return &c.route.sort_number; }},
    {"route.sort_pass_us", "us", "one of the passes over numbers that no thread block holds",
     Zero::allowed, [](Constants& c) -> ConstantPlace { return &c.route.sort_pass; }},
    {"route.sort_step_us", "us", "one of the 16 passes in one thread block", Zero::allowed,
     [](Constants& c) -> ConstantPlace { return &c.route.sort_step; }},
    {"route.sort_warp_us", "us", "for each further warp, in one of the 16 passes", Zero::allowed,
     [](Constants& c) -> ConstantPlace { return &c.route.sort_warp; }},
    {"scan.chunk_us", "us", "64 tokens of a scan in chunks, beside their products", Zero::allowed,
     [](Constants& c) -> ConstantPlace { return &c.scan.chunk; }},
    {"scan.prefix_instructions", "instructions/element",
     "of a library's scan with a rate for every column of its state, per token and number of it",
     Zero::refused, [](Constants& c) -> ConstantPlace { return &c.scan.prefix_instructions; }},
    {"scan.prefix_tokens", "tokens", "that such a scan takes at a time", Zero::refused,
     [](Constants& c) -> ConstantPlace { return &c.scan.prefix_tokens; }},
    {"scan.product_fraction", "1", "of the tensor cores' rate that products of chunks reach",
     Zero::refused, [](Constants& c) -> ConstantPlace { return &c.scan.product_fraction; }},
    {"scan.step_us", "us", "one token of a scan that goes token by token", Zero::allowed,
     [](Constants& c) -> ConstantPlace { return &c.scan.step; }},
    {"scan.walk_instructions", "instructions/element",
     "of such a scan, for each number of the state and token", Zero::refused,
     [](Constants& c) -> ConstantPlace { return &c.scan.walk_instructions; }},
    {"stream.block_threads", "threads", "of a block of a framework kernel", Zero::refused,
     [](Constants& c) -> ConstantPlace { return &c.stream.block_threads; }},
    {"stream.concat_instructions", "instructions/element", "framework concatenation", Zero::refused,
     [](Constants& c) -> ConstantPlace { return &c.stream.concat_instructions; }},
    {"stream.concat_latency_fraction", "1",
     "of stream.strided_latency_us that a concatenation takes", Zero::allowed,
     [](Constants& c) -> ConstantPlace { return &c.stream.concat_latency_fraction; }},
    {"stream.exposed_row_waves", "waves",
     "of a resident-row kernel that nothing hides: the first and the last", Zero::refused,
     [](Constants& c) -> ConstantPlace { return &c.stream.exposed_row_waves; }},
    {"stream.gelu_instructions", "instructions/element", "tanh and its polynomial", Zero::refused,
     [](Constants& c) -> ConstantPlace { return &c.stream.gelu_instructions; }},
    {"stream.generated_norm_instructions", "instructions/element",
     "compiler-generated Welford update", Zero::refused,
     [](Constants& c) -> ConstantPlace { return &c.stream.generated_norm_instructions; }},
    {"stream.generated_row_padding", "1",
     "elements that a compiler-generated row kernel issues per element", Zero::refused,
     [](Constants& c) -> ConstantPlace { return &c.stream.generated_row_padding; }},
    {"stream.generated_row_start_us", "us", "the same of a kernel that a compiler made",
     Zero::allowed, [](Constants& c) -> ConstantPlace { return &c.stream.generated_row_start; }},
    {"stream.generated_row_threads", "threads", "of a block of a compiler-generated row kernel",
     Zero::refused, [](Constants& c) -> ConstantPlace { return &c.stream.generated_row_threads; }},
    {"stream.hbm_fraction", "1", "of the sustained HBM rate that mixed reads and writes reach",
     Zero::refused, [](Constants& c) -> ConstantPlace { return &c.stream.hbm_fraction; }},
    {"stream.issue_lanes", "lanes/clock",
     "instructions that one SM issues in a clock, times the lanes of each", Zero::refused,
     [](Constants& c) -> ConstantPlace { return &c.stream.issue_lanes; }},
    {"stream.l2_fraction", "1", "of the L2 rate that streams reach", Zero::refused,
     [](Constants& c) -> ConstantPlace { return &c.stream.l2_fraction; }},
    {"stream.layer_norm_instructions", "instructions/element",
     "Welford update of mean and variance", Zero::refused,
     [](Constants& c) -> ConstantPlace { return &c.stream.layer_norm_instructions; }},
    {"stream.layer_norm_step_factor", "1",
     "longer steps, for Welford's update divides in every one", Zero::refused,
     [](Constants& c) -> ConstantPlace { return &c.stream.layer_norm_step_factor; }},
    {"stream.miss_exposed", "1",
     "share of the shorter of streaming and waiting that a row kernel does not hide when its rows "
     "are in HBM",
     Zero::allowed, [](Constants& c) -> ConstantPlace { return &c.stream.miss_exposed; }},
    {"stream.miss_wait", "1", "more waiting of dependent steps whose row is in HBM", Zero::allowed,
     [](Constants& c) -> ConstantPlace { return &c.stream.miss_wait; }},
    {"stream.pointwise_instructions", "instructions/element",
     "loads, arithmetic and stores of a vectorised kernel", Zero::refused,
     [](Constants& c) -> ConstantPlace { return &c.stream.pointwise_instructions; }},
    {"stream.ramp_us", "us", "from the first miss to a full pipe of them, and back", Zero::allowed,
     [](Constants& c) -> ConstantPlace { return &c.stream.ramp; }},
    {"stream.reduce_latency_us", "us", "framework reduction of resident rows", Zero::allowed,
     [](Constants& c) -> ConstantPlace { return &c.stream.reduce_latency; }},
    {"stream.reduce_least_us", "us", "the same of next to no rows", Zero::allowed,
     [](Constants& c) -> ConstantPlace { return &c.stream.reduce_least; }},
    {"stream.reduce_rows", "rows",
     "from this count on a framework reduction takes all of stream.reduce_latency_us",
     Zero::refused, [](Constants& c) -> ConstantPlace { return &c.stream.reduce_rows; }},
    {"stream.resident_row_instructions", "instructions/element",
     "sums or maximum, exponential and scale of a row in registers, vectorised", Zero::refused,
     [](Constants& c) -> ConstantPlace { return &c.stream.resident_row_instructions; }},
    {"stream.resident_row_steps", "steps",
     "of a kernel that loads its row together and then reduces once", Zero::allowed,
     [](Constants& c) -> ConstantPlace { return &c.stream.resident_row_steps; }},
    {"stream.resident_row_threads", "threads", "of a block that keeps its row in registers",
     Zero::refused, [](Constants& c) -> ConstantPlace { return &c.stream.resident_row_threads; }},
    {"stream.rope_instructions", "instructions/element",
     "beside these: two products and a sum, and the table", Zero::allowed,
     [](Constants& c) -> ConstantPlace { return &c.stream.rope_instructions; }},
    {"stream.row_block_us", "us",
     "a framework's norm: one thread block from its launch to the next in its place", Zero::allowed,
     [](Constants& c) -> ConstantPlace { return &c.stream.row_block; }},
    {"stream.row_instructions", "instructions/element",
     "sum of squares and scale in a framework's row kernel", Zero::refused,
     [](Constants& c) -> ConstantPlace { return &c.stream.row_instructions; }},
    {"stream.row_start_us", "us", "first instruction of a row kernel to its first step",
     Zero::allowed, [](Constants& c) -> ConstantPlace { return &c.stream.row_start; }},
    {"stream.row_step_us", "us", "one dependent step of a row kernel: load, shuffle, barrier",
     Zero::allowed, [](Constants& c) -> ConstantPlace { return &c.stream.row_step; }},
    {"stream.scatter_add_instructions", "instructions/element",
     "framework kernel that adds rows to rows, an atomic for each element", Zero::refused,
     [](Constants& c) -> ConstantPlace { return &c.stream.scatter_add_instructions; }},
    {"stream.softmax_instructions", "instructions/element", "maximum, exponential, sum, scale",
     Zero::refused, [](Constants& c) -> ConstantPlace { return &c.stream.softmax_instructions; }},
    {"stream.strided_add_factor", "1",
     "more instructions where the operands of a strided sum lie in different orders", Zero::refused,
     [](Constants& c) -> ConstantPlace { return &c.stream.strided_add_factor; }},
    {"stream.strided_convert_factor", "1",
     "more instructions where elements of a strided kernel change width", Zero::refused,
     [](Constants& c) -> ConstantPlace { return &c.stream.strided_convert_factor; }},
    {"stream.strided_instructions", "instructions/element",
     "framework kernel with index arithmetic", Zero::refused,
     [](Constants& c) -> ConstantPlace { return &c.stream.strided_instructions; }},
    {"stream.strided_latency_us", "us", "one element's path through a generic framework kernel",
     Zero::allowed, [](Constants& c) -> ConstantPlace { return &c.stream.strided_latency; }},
    {"stream.thread_elements", "elements", "that a thread of a framework kernel has at once",
     Zero::refused, [](Constants& c) -> ConstantPlace { return &c.stream.thread_elements; }},
    {"stream.transposing_instructions", "instructions/element",
     "framework kernel whose operands lie in different orders", Zero::refused,
     [](Constants& c) -> ConstantPlace { return &c.stream.transposing_instructions; }},
    {"stream.vector_thread_elements", "elements", "the same where loads are 16 bytes wide",
     Zero::refused, [](Constants& c) -> ConstantPlace { return &c.stream.vector_thread_elements; }},
    {"sync.barrier_us", "us", "one grid barrier of a persistent kernel", Zero::allowed,
     [](Constants& c) -> ConstantPlace { return &c.sync.barrier; }},
};

// Seconds per unit of a file.
double seconds_per(std::string_view unit) { return unit == "ms" ? 1e-3 : 1e-6; }

}  // namespace

std::span<const ConstantInfo> constant_table() { return kTable; }

const ConstantInfo* find_constant(std::string_view name) {
  const auto* const found = std::find_if(std::begin(kTable), std::end(kTable),
                                         [name](const ConstantInfo& c) { return name == c.name; });
  return found == std::end(kTable) ? nullptr : found;
}

std::vector<std::string> constant_names() {
  std::vector<std::string> names;
  for (const ConstantInfo& c : kTable) names.emplace_back(c.name);
  return names;
}

bool is_whole(const ConstantInfo& constant) {
  Constants any;
  return std::holds_alternative<std::int64_t*>(constant.place(any));
}

double value_of(const ConstantInfo& constant, const Constants& constants) {
  Constants copy = constants;  // place() hands out where to write
  return std::visit(
      [&constant](const auto* field) {
        if constexpr (std::is_same_v<decltype(field), const Seconds*>) {
          return field->value() / seconds_per(constant.unit);
        } else {
          return static_cast<double>(*field);
        }
      },
      constant.place(copy));
}

void set_value(const ConstantInfo& constant, Constants& constants, double value) {
  std::visit(
      [&constant, value](auto* field) {
        using Field = std::remove_pointer_t<decltype(field)>;
        if constexpr (std::is_same_v<Field, Seconds>) {
          *field = Seconds(value * seconds_per(constant.unit));
        } else if constexpr (std::is_same_v<Field, std::int64_t>) {
          FUSELINE_ASSERT(std::abs(value) < 1e15, constant.name);
          *field = std::llround(value);
        } else {
          *field = value;
        }
      },
      constant.place(constants));
}

}  // namespace fuseline
