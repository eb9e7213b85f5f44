// A plan: the ordered kernels of a block and where each tensor lives.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "model/framework_launch.h"
#include "model/gemm_tile.h"
#include "model/graph.h"
#include "model/program.h"

namespace fuseline {

enum class KernelKind : std::uint8_t {
  gemm,
  attention,
  norm,
  pointwise,
  reduction,
  block,
  scan,        // a state carried along the tokens
  conv,        // a convolution along the tokens
  route,       // tokens to experts and back; no kernel is planned as one yet
  collective,  // between GPUs; several GPUs are not built yet
};

// How the kernel's code is made; the simulator's speed of a stream depends on it.
enum class Implementation : std::uint8_t {
  library_gemm,         // vendor GEMM: tile chosen by the library, split-K when thin
  epilogue_gemm,        // our GEMM mainloop with an epilogue program
  library_attention,    // a vendor's fused attention: keys are split for a single new token only
  flash_attention,      // fused attention, online softmax, our own kernels
  library_scan,         // a library's scan, which takes no epilogue
  chunked_scan,         // our own: a thread block walks the tokens of a head, its state on chip
  vectorized,           // contiguous element-wise, 16-byte accesses
  strided,              // generic framework element-wise kernel with index arithmetic per element
  concat,               // generic framework concatenation
  transposing,          // the same where operands lie in different orders: a sector for an element
  framework_reduce,     // generic framework reduction
  framework_select,     // a framework's largest numbers of every row
  framework_order,      // a framework's sort of the few numbers of every row
  framework_sort,       // a framework's sort in one thread block
  framework_sort_pass,  // one pass of a sort of more numbers
  generated_sort,       // compiler-generated sort in one thread block
  scatter_add,          // generic framework kernel that adds rows to rows, an atomic per element
  row_norm,             // a framework's normalisation, one block walks along a row
  resident_row,         // our own: a row is read once and stays in the registers of one block
  generated_pointwise,  // compiler-generated (Triton) element-wise
  generated_reduction,  // compiler-generated (Triton) row reduction
  finisher,             // sums partials
  chained_products,     // two products: what the first makes stays on chip (model/chain.h)
  persistent_block,     // all phases in one launch
};

struct Kernel {
  std::string name;  // unique in the plan: "gate_up"
  KernelKind kind = KernelKind::pointwise;
  Implementation implementation = Implementation::vectorized;
  std::vector<OpId> ops;  // of the plan's graph, in dependency order
  // One, except for persistent_block, which has grid barriers between them, and chained_products,
  // whose second program takes the first one's result from the chip.
  std::vector<Program> phases;
  std::vector<FrameworkLaunch> beside{};  // what a framework launches besides for these operators
  bool in_pieces = false;                 // `beside` is all that is launched, without the kernel
  std::optional<TileEdges> ran{};  // of a GEMM that a measurement knows; otherwise a tile is chosen
  // Clusters across that a group of its raster had when it was measured (our own mainloop). 0: the
  // group that reads least from HBM.
  std::optional<std::int64_t> ran_group{};
};

// A plan says only whether a tensor has a place in memory. The simulator finds out whether L2 holds
// it when it is read.
enum class Home : std::uint8_t { hbm, on_chip };

// Why one pair of neighbouring operators shares a kernel, or does not.
struct FusionNote {
  Edge edge;
  bool fused = false;
  std::string reason;
};

// Rows of a weight (or columns of a vector or cache) are reordered once so that pairs become
// neighbours: inside every group of `group` rows, j and j + group/2 become 2j and 2j + 1. Pairs of
// gate and up take one group of all rows; RoPE's pairs take groups of a head's width d. Only rows
// or columns [begin, begin + count) are touched.
struct Interleaving {
  std::string tensor;
  bool columns = false;
  std::int64_t begin = 0, count = 0, group = 0;
};

// How a plan's inputs and weights are made from those of the block, once and outside the counted
// kernels. First operators run, which fold a norm's weight into a matrix or compute statistics of
// the block's input. Then rows and columns are reordered.
struct Preparation {
  Graph graph;  // its tensors have the names of the block's graph and of the plan's graph
  std::vector<Interleaving> interleavings;
  // Gradients of reordered weights come out in the new order; these say how to put them back.
  std::vector<Interleaving> results;
};

struct Plan {
  std::string policy;
  Graph graph;  // after the policy's rewrites
  Graph block;  // before them: what is computed, the same for every policy
  std::vector<Kernel> kernels;
  std::vector<Home> homes;            // by TensorId
  std::vector<FusionNote> notes;      // one per edge of the graph
  std::vector<std::string> rewrites;  // names of the rewrites applied, in order
  Preparation preparation;
};

// Problems of the whole plan, in words: each operator in exactly one kernel, kernels in dependency
// order, on-chip tensors never loaded from memory, every partial finished once, check_program of
// every phase.
std::vector<std::string> check_plan(const Plan& plan);

std::span<const KernelKind> all_kernel_kinds();
const char* name_of(KernelKind);
const char* name_of(Implementation);

}  // namespace fuseline
