// From programs to what the simulated memory system sees: matrices in the L2's address space,
// streams of a kernel, GEMM problems.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "model/plan.h"
#include "sim/kernels/gemm_problem.h"
#include "sim/memory/l2_cache.h"

namespace fuseline {

// Where a column range of a matrix lies in the cache's address space.
struct CachedSlice {
  CachedMatrix matrix;
  std::int64_t rows = 0;  // of the operand, counted from the matrix's first
  std::int64_t col_begin = 0;
  std::int64_t cols = 0;
};

// Gives every tensor of a plan an id in the cache. A tensor of which kernels store slices only is
// laid out slice by slice. Activations whose last reader has run give their memory to the next of
// the same shape. Weights, their gradients and caches get new ids in every layer; the input of a
// layer is the output of the one before.
class AddressMap {
 public:
  explicit AddressMap(const Plan& plan);

  // Layer 0, 1, ...; the same number again means a replay with the same data. `chained`: its input
  // is what the layer before has written; otherwise all layers read the same input.
  void enter_layer(std::int64_t layer, bool chained = true) {
    layer_ = layer;
    chained_ = chained;
  }
  [[nodiscard]] std::int64_t layer() const { return layer_; }
  [[nodiscard]] CachedSlice locate(const Operand& operand) const { return locate(operand, layer_); }
  [[nodiscard]] CachedSlice locate(const Operand& operand, std::int64_t layer) const;
  // What a launch beside the kernel moves, or the kernel in pieces.
  [[nodiscard]] CachedSlice locate(const Kernel& kernel, const LaunchAccess& access) const;
  // Whether every layer has a tensor of its own in its place.
  [[nodiscard]] bool per_layer(TensorId tensor) const {
    return per_layer_[static_cast<std::size_t>(tensor.index)] != 0;
  }
  [[nodiscard]] const Graph& graph() const { return *graph_; }
  // Scratch memory of a kernel: split-K partials, partial attention results.
  static constexpr std::uint32_t workspace = 0;

 private:
  struct Piece {
    TensorId tensor;
    std::int64_t col_begin, cols;
    std::uint32_t id;
  };
  void reuse_buffers(const Plan& plan);
  void chain_layers(const Graph& graph);
  void place_scratch(const Plan& plan);

  const Graph* graph_;
  std::vector<std::vector<Piece>> pieces_;                                // by tensor
  std::vector<std::uint8_t> per_layer_;                                   // by tensor
  std::map<std::pair<std::string, std::string>, std::uint32_t> scratch_;  // by kernel and name
  std::uint32_t ids_ = 1;            // of one layer; 0 is the workspace
  std::vector<TensorId> neighbour_;  // by tensor: the output carried to it, or where it goes
  std::int64_t layer_ = 0;
  bool chained_ = true;
};

// One tensor that a stream or row kernel moves. Row r of `rows` kernel rows touches row
// r·part.rows/rows of the part; a table's row r mod part.rows.
struct Stream {
  CachedSlice part;
  bool store = false;
  bool repeated = false;              // a table, or rows that are gathered several times each
  bool vector = false;                // broadcast along the rows: one row
  bool of_columns = false;            // partials of columns: its rows go with the tile's columns
  ColumnPart moved{};                 // of every group of columns; no group: all of them
  [[nodiscard]] Bytes bytes() const;  // each element once
};
std::vector<Stream> streams_of(const Program& program, const AddressMap& addresses);

// The GEMM with its epilogue's loads and stores. `library`: the vendor's mainloop.
GemmProblem gemm_problem_of(const Program& program, const AddressMap& addresses, bool library);
// The same of a kernel, which says whose mainloop it is and whether the product is attention's.
GemmProblem gemm_problem_of(const Kernel& kernel, const Program& program,
                            const AddressMap& addresses);

}  // namespace fuseline
