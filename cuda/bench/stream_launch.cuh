// Launches of streams, and matrices to check them with.
#pragma once

#include <cmath>

#include "../kernels/stream/mainloop.cuh"
#include "support.cuh"

namespace fuseline::bench {

using namespace gpu::stream;
using gpu::ceil_div;
using gpu::partial_tile;

template <class Program, int warps>
__global__ void __launch_bounds__(32 * warps)
    tiles_kernel(const __grid_constant__ typename Program::Params params,
                 const __grid_constant__ TileSpace space) {
  tiles<Program>(params, space);
}
template <class Program, int block>
__global__ void __launch_bounds__(block)
    rows_kernel(const __grid_constant__ typename Program::Params params,
                const __grid_constant__ RowSpace space) {
  rows<Program>(params, space);
}
template <class Program>
__global__ void __launch_bounds__(Program::threads)
    columns_kernel(const __grid_constant__ typename Program::Params params,
                   const __grid_constant__ ColumnSpace space) {
  columns_down<Program>(params, space);
}

template <class Program, int warps = 8>
void launch_tiles(const typename Program::Params& p, int rows, int cols, cudaStream_t stream) {
  const TileSpace space = tile_space<Program>(rows, cols, warps, 32);
  const auto blocks = static_cast<unsigned>(tile_blocks<Program>(space, warps));
  tiles_kernel<Program, warps><<<blocks, 32 * warps, 0, stream>>>(p, space);
  FUSELINE_CUDA(cudaGetLastError());
}
template <class Program>
void launch_rows(const typename Program::Params& p, const RowSpace& space, cudaStream_t stream) {
  constexpr int block = Program::threads <= 32 ? 256 : Program::threads;
  constexpr int per_block = rows_per_block<Program>(block);
  rows_kernel<Program, block>
      <<<static_cast<unsigned>(ceil_div(space.rows, per_block)), block, 0, stream>>>(p, space);
  FUSELINE_CUDA(cudaGetLastError());
}
template <class Program>
void launch_columns(const typename Program::Params& p, const ColumnSpace& space,
                    cudaStream_t stream) {
  columns_kernel<Program>
      <<<static_cast<unsigned>(column_blocks<Program>(space)), Program::threads, 0, stream>>>(p, space);
  FUSELINE_CUDA(cudaGetLastError());
}

// A [rows, cols] matrix whose rows lie `ld` elements apart; poisoned if seed = 0.
template <class T>
struct Matrix {
  int rows, cols, ld;
  Buffer<T> data;
  Matrix(int r, int c, int padding, unsigned seed)
      : rows(r), cols(c), ld(c + padding), data(static_cast<std::size_t>(r) * ld) {
    seed == 0 ? data.poison() : fill_normal(data, seed);
  }
  template <bool aligned = true>
  [[nodiscard]] Tile<T, aligned> tile() const {
    return {data.data(), ld, rows, cols};
  }
  [[nodiscard]] std::vector<double> values() const {
    const std::vector<T> all = data.host();
    std::vector<double> out;
    for (int r = 0; r < rows; ++r)
      for (int c = 0; c < cols; ++c)
        out.push_back(static_cast<float>(all[static_cast<std::size_t>(r) * ld + c]));
    return out;
  }
};

inline int failures = 0;
inline void compare(const std::string& name, const std::vector<double>& out,
                    const std::vector<double>& reference, double limit) {
  double difference = 0, norm = 0;
  for (std::size_t i = 0; i < reference.size(); ++i) {
    difference += (out[i] - reference[i]) * (out[i] - reference[i]);
    norm += reference[i] * reference[i];
  }
  const double error = std::sqrt(difference / norm);
  const bool fine = out.size() == reference.size() && error < limit;
  if (!fine) ++failures;
  std::printf("%-36s error %.2e (below %.0e) %s\n", name.c_str(), error, limit,
              fine ? "ok" : "WRONG");
}
inline std::vector<double> widened(const std::vector<float>& x) { return {x.begin(), x.end()}; }

}  // namespace fuseline::bench
