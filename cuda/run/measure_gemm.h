// One product on the GPU here: the vendor's library, and every tile of our own mainloop.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cuda/counters/gpu_state.h"
#include "cuda/emit/gemm_variant.h"
#include "model/gemm_tile.h"
#include "sim/block/single_gemm.h"
#include "sim/executor/parallel.h"
#include "sim/gpu/gpu.h"

namespace fuseline::cuda {

struct MeasuredTile {
  GemmTile tile;
  std::string name;     // "128 x 256, cluster 2, 1 parts", "turned 96 x 256, ..."
  Seconds time;         // median
  Seconds predicted{};  // by the estimate that chooses among tiles
  bool final = false;   // timed in all rounds, and checked; the others were slower in the first
};

// A tile with something changed, in turns with the same tile as it is shipped.
struct MeasuredVariant {
  std::string variant;  // of gemm_variants()
  std::string tile;
  Seconds time, shipped_time;
  double error = 0;  // of its own result
};

struct MeasuredGemm {
  LibraryGemm gemm;
  std::string library;  // what it chose among its proposals
  Seconds library_time;
  Seconds library_predicted, chosen_predicted;
  std::vector<MeasuredTile> tiles;  // the first is the simulator's choice, which `coda` takes too
  double error = 0;                 // the worst relative L2 error, of the library too
  int copies = 1;                   // of x, w and y, that take turns, so that L2 holds none
  GpuStateSummary state;
  std::vector<MeasuredVariant> variants;  // of the fastest tiles and of the chosen one

  [[nodiscard]] const MeasuredTile& chosen() const { return tiles.front(); }
  [[nodiscard]] const MeasuredTile& best() const;  // among the final ones
  [[nodiscard]] bool right() const;                // the error is one of rounding
  [[nodiscard]] bool right(const MeasuredVariant& v) const;
};

struct GemmMeasureOptions {
  executor::Workers workers;            // of the host: inputs, compiler, check
  std::uint64_t seed = 1;               // of the inputs: normal numbers
  int rounds = 7;                       // of those that are left after a first look at all
  std::vector<GemmVariant> variants{};  // to be timed beside the fastest tiles
};

// Keeps the GPU, its library and the compiled kernels from product to product.
class GemmMeasurer {
 public:
  // `described` chooses the tile. MissingError: no driver, GPU, toolkit or library.
  GemmMeasurer(const Gpu& described, const GemmMeasureOptions& options);
  ~GemmMeasurer();
  GemmMeasurer(GemmMeasurer&&) noexcept;
  GemmMeasurer& operator=(GemmMeasurer&&) noexcept;
  GemmMeasurer(const GemmMeasurer&) = delete;
  GemmMeasurer& operator=(const GemmMeasurer&) = delete;

  [[nodiscard]] std::string device() const;
  [[nodiscard]] std::string driver() const;
  [[nodiscard]] std::string libraries() const;  // "CUDA 13.0, cuBLASLt 13.1.0"

  // All take turns: each after a rest, and in every other round backwards. Operands are cold.
  // MissingError: memory, or a product that the library does not have. Cancelled when workers.stop
  // is set. InternalError: a kernel faulted.
  MeasuredGemm measure(LibraryGemm gemm);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Mean error of rounding to the storage type, twice: sums are fp32 of exact products.
double rounding_tolerance(Dtype type);

}  // namespace fuseline::cuda
