// Host side of the copy engine: encodes tensor maps through the driver's entry point, so that the
// program needs no link to the driver's library.
#pragma once

#include <cstring>

#include "../kernels/gemm_sm90.cuh"
#include "support.cuh"

namespace fuseline::bench {

template <class T>
constexpr CUtensorMapDataType tensor_map_type() {
  if constexpr (std::is_same_v<T, gpu::bf16>) return CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
  if constexpr (std::is_same_v<T, gpu::fp16>) return CU_TENSOR_MAP_DATA_TYPE_FLOAT16;
  if constexpr (std::is_same_v<T, gpu::e4m3>) return CU_TENSOR_MAP_DATA_TYPE_UINT8;
  return CU_TENSOR_MAP_DATA_TYPE_FLOAT32;
}

inline auto tensor_map_encoder() {
  static const auto function = [] {
    void* entry = nullptr;
    cudaDriverEntryPointQueryResult result;
    FUSELINE_CUDA(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &entry, 12000,
                                                   cudaEnableDefault, &result));
    return reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(entry);
  }();
  return function;
}

// A [rows, cols] matrix with `ld` elements from row to row, copied in boxes of box_rows × box_cols.
// rows = 0: a vector.
template <class T>
gpu::TmaMap matrix_map(const T* data, int rows, int cols, int ld, int box_rows, int box_cols,
                       CUtensorMapSwizzle swizzle = CU_TENSOR_MAP_SWIZZLE_128B) {
  CUtensorMap map;
  const cuuint64_t sizes[2] = {static_cast<cuuint64_t>(cols), static_cast<cuuint64_t>(rows)};
  const cuuint64_t strides[1] = {static_cast<cuuint64_t>(ld) * sizeof(T)};
  const cuuint32_t box[2] = {static_cast<cuuint32_t>(box_cols), static_cast<cuuint32_t>(box_rows)};
  const cuuint32_t steps[2] = {1, 1};
  const CUresult status =
      tensor_map_encoder()(&map, tensor_map_type<T>(), rows > 0 ? 2 : 1, const_cast<T*>(data),
                           sizes, strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle,
                           CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (status != CUDA_SUCCESS)
    throw std::runtime_error("cuTensorMapEncodeTiled: error " + std::to_string(status) + " for " +
                             std::to_string(rows) + " x " + std::to_string(cols) + ", ld " +
                             std::to_string(ld));
  gpu::TmaMap out;
  static_assert(sizeof out == sizeof map);
  std::memcpy(&out, &map, sizeof map);
  return out;
}

// Maps of what an epilogue loads and stores (see kernels/sm90/tile_io.cuh).
template <class T, int slot, int each = 2>
gpu::TileIn<T, slot, each> tile_in(const T* data, int rows, int cols, int ld, int tile_rows) {
  return {matrix_map(data, rows, cols, ld, tile_rows, 64), data, ld, 0};
}
template <class T, int slot>
gpu::ColsIn<T, slot> cols_in(const T* data, int cols) {
  return {matrix_map(data, 0, cols, cols, 0, 64, CU_TENSOR_MAP_SWIZZLE_NONE), data, cols, 0};
}
// `each`, `groups`: of the value that is stored (kernels/fragment.cuh).
template <class T>
gpu::TileOut<T> tile_out(T* data, int rows, int cols, int ld, int each = 2, int groups = 8) {
  const int size = static_cast<int>(sizeof(T));
  const int box_cols = std::min(4 * each * groups, 128 / size);
  const CUtensorMapSwizzle swizzle = box_cols * size == 128  ? CU_TENSOR_MAP_SWIZZLE_128B
                                     : box_cols * size == 64 ? CU_TENSOR_MAP_SWIZZLE_64B
                                                             : CU_TENSOR_MAP_SWIZZLE_32B;
  return {matrix_map(data, rows, cols, ld, 16, box_cols, swizzle), data, ld, cols};
}

inline int multiprocessors() {
  static const int count = [] {
    int device = 0;
    int n = 0;
    FUSELINE_CUDA(cudaGetDevice(&device));
    FUSELINE_CUDA(cudaDeviceGetAttribute(&n, cudaDevAttrMultiProcessorCount, device));
    return n;
  }();
  return count;
}

template <class Config, class Epilogue>
__global__ void __cluster_dims__(Config::cluster* Config::cluster_k) __launch_bounds__(384, 1)
    sm90_kernel(const __grid_constant__ typename Config::template Args<Epilogue> args) {
  gpu::gemm_sm90<Config>(args);
}

struct Operands {
  int M, N, K;
  int lda, ldb;  // elements from row to row of A and B as stored
};

// For kernels that share tiles: for each thread block and part a tile of 256 × 128 in fp32, and
// zeros.
constexpr int most_tail_parts = 4;
inline gpu::TailSums tail_sums(int parts) {
  static const auto places = static_cast<std::size_t>(multiprocessors()) * most_tail_parts;
  static const Buffer<float> sums(places * 256 * 128);
  static const Buffer<gpu::u32> ready = [] {
    Buffer<gpu::u32> numbers(places * 4);
    numbers.zero();
    return numbers;
  }();
  return {sums.data(), ready.data(), parts};
}

template <class Config, class Epilogue, class T = typename Config::Operand>
void launch_sm90(const Operands& op, const T* a, const T* b, int raster_group,
                 const typename Epilogue::Params& epilogue, cudaStream_t stream,
                 int tail_parts = 1, [[maybe_unused]] const gpu::CodeScales& scales = {}) {
  using Gemm = gpu::Sm90Gemm<Config, Epilogue>;
  typename Gemm::Args args;
  // The mainloop's first operand has the tile's edge tile_m; if turned it is B.
  const int rows_a = Config::turned ? op.N : op.M, rows_b = Config::turned ? op.M : op.N;
  const int lda = Config::turned ? op.ldb : op.lda, ldb = Config::turned ? op.lda : op.ldb;
  args.a = matrix_map(Config::turned ? b : a, Config::a_is_km ? op.K : rows_a,
                      Config::a_is_km ? rows_a : op.K, lda, Config::a_box_rows, Config::a_box_cols);
  args.b = matrix_map(Config::turned ? a : b, Config::b_is_kn ? op.K : rows_b,
                      Config::b_is_kn ? rows_b : op.K, ldb, Config::b_box_rows, Config::b_box_cols);
  args.M = op.M;
  args.N = op.N;
  args.K = op.K;
  args.raster_group = raster_group;
  args.epilogue = epilogue;
  if constexpr (Config::scaled) args.scales = scales;
  static const bool once = [] {
    FUSELINE_CUDA(cudaFuncSetAttribute(sm90_kernel<Config, Epilogue>,
                                       cudaFuncAttributeMaxDynamicSharedMemorySize,
                                       Gemm::shared_bytes));
    return true;
  }();
  (void)once;
  const int tiles = gpu::ceil_div(rows_a, Config::tile_m * Config::cluster) * Config::cluster *
                    gpu::ceil_div(rows_b, Config::tile_n);
  const int most = multiprocessors() / Config::cluster * Config::cluster;
  // Clusters along K make one tile each.
  const int blocks = Config::cluster_k > 1 ? tiles * Config::cluster_k
                     : Config::shares_tail ? most
                                           : std::min(tiles, most);
  if (Config::shares_tail)
    args.tail = tail_sums(std::min(tail_parts, gpu::ceil_div(op.K, Config::tile_k)));
  sm90_kernel<Config, Epilogue>
      <<<static_cast<unsigned>(blocks), Gemm::threads, Gemm::shared_bytes, stream>>>(args);
  FUSELINE_CUDA(cudaGetLastError());
}

}  // namespace fuseline::bench
