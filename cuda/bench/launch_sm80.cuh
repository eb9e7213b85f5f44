// Host side of the sm_80 mainloop.
#pragma once

#include "../kernels/gemm_sm80.cuh"
#include "tensor_map.cuh"

namespace fuseline::bench {

template <class Config, class Epilogue>
__global__ void __launch_bounds__(Config::threads)
    sm80_kernel(const __grid_constant__ gpu::Sm80Args<Config, Epilogue> args) {
  gpu::gemm_sm80<Config, Epilogue>(args);
}

template <class Config, class Epilogue, class T = typename Config::Element>
void launch_sm80(const Operands& op, const T* a, const T* b, int raster_group,
                 const typename Epilogue::Params& epilogue, cudaStream_t stream) {
  using Gemm = gpu::Sm80Gemm<Config, Epilogue>;
  const gpu::Sm80Args<Config, Epilogue> args{a,      b,      op.M,         op.N,    op.K,
                                             op.lda, op.ldb, raster_group, epilogue};
  static const bool once = [] {
    FUSELINE_CUDA(cudaFuncSetAttribute(sm80_kernel<Config, Epilogue>,
                                       cudaFuncAttributeMaxDynamicSharedMemorySize,
                                       Gemm::shared_bytes));
    return true;
  }();
  (void)once;
  const int tiles = gpu::ceil_div(op.M, Config::tile_m) * gpu::ceil_div(op.N, Config::tile_n);
  sm80_kernel<Config, Epilogue>
      <<<static_cast<unsigned>(tiles), Config::threads, Gemm::shared_bytes, stream>>>(args);
  FUSELINE_CUDA(cudaGetLastError());
}

template <class Config>
constexpr bool is_sm80 = Config::tile_k == 32;

template <class Config, class Epilogue, class T = typename Config::Element>
void launch(const Operands& op, const T* a, const T* b, int raster_group,
            const typename Epilogue::Params& epilogue, cudaStream_t stream, int tail_parts = 1) {
  if constexpr (is_sm80<Config>)
    launch_sm80<Config, Epilogue>(op, a, b, raster_group, epilogue, stream);
  else
    launch_sm90<Config, Epilogue>(op, a, b, raster_group, epilogue, stream, tail_parts);
}

}  // namespace fuseline::bench
