#if FUSELINE_HAS_CUDA

#include <array>
#include <memory>

#include <fmt/format.h>

#include "base/error.h"
#include "cuda/driver/driver.h"
#include "cuda/driver/driver_calls.h"

namespace fuseline::cuda {

TensorMap Device::tensor_map(const TensorMapShape& shape) const {
#if CUDA_VERSION >= 12000
  static_assert(sizeof(CUtensorMap) == sizeof(TensorMap));
  CUtensorMapDataType type = CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
  if (shape.type == TensorType::fp16) type = CU_TENSOR_MAP_DATA_TYPE_FLOAT16;
  if (shape.type == TensorType::fp32) type = CU_TENSOR_MAP_DATA_TYPE_FLOAT32;
  if (shape.type == TensorType::byte) type = CU_TENSOR_MAP_DATA_TYPE_UINT8;
  CUtensorMapSwizzle swizzle = CU_TENSOR_MAP_SWIZZLE_NONE;
  if (shape.swizzle == 32) swizzle = CU_TENSOR_MAP_SWIZZLE_32B;
  if (shape.swizzle == 64) swizzle = CU_TENSOR_MAP_SWIZZLE_64B;
  if (shape.swizzle == 128) swizzle = CU_TENSOR_MAP_SWIZZLE_128B;
  CUtensorMapL2promotion promotion = CU_TENSOR_MAP_L2_PROMOTION_NONE;
  if (shape.l2_promotion == 64) promotion = CU_TENSOR_MAP_L2_PROMOTION_L2_64B;
  if (shape.l2_promotion == 128) promotion = CU_TENSOR_MAP_L2_PROMOTION_L2_128B;
  if (shape.l2_promotion == 256) promotion = CU_TENSOR_MAP_L2_PROMOTION_L2_256B;
  const std::array<cuuint64_t, 4> sizes = {
      static_cast<cuuint64_t>(shape.cols), static_cast<cuuint64_t>(shape.rows),
      static_cast<cuuint64_t>(shape.beside), static_cast<cuuint64_t>(shape.stacked)};
  const std::array<cuuint64_t, 3> strides = {static_cast<cuuint64_t>(shape.row_bytes),
                                             static_cast<cuuint64_t>(shape.beside_bytes),
                                             static_cast<cuuint64_t>(shape.stacked_bytes)};
  const std::array<cuuint32_t, 4> box = {static_cast<cuuint32_t>(shape.box_cols),
                                         static_cast<cuuint32_t>(shape.box_rows),
                                         static_cast<cuuint32_t>(shape.box_beside), 1};
  const std::array<cuuint32_t, 4> steps = {1, 1, 1, 1};
  const unsigned rank = shape.beside > 0 ? 4 : shape.rows > 0 ? 2 : 1;
  // NOLINTNEXTLINE(performance-no-int-to-ptr): the driver gives addresses as numbers
  void* address = reinterpret_cast<void*>(shape.address);
  CUtensorMap map{};
  calls_->check(
      calls_->encode_tensor_map(&map, type, rank, address, sizes.data(), strides.data(), box.data(),
                                steps.data(), CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle, promotion,
                                CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE),
      fmt::format("describing a {} x {} tensor to the copy engine", shape.rows, shape.cols));
  TensorMap result{};
  static_assert(sizeof(result) == sizeof(map));
  __builtin_memcpy(&result, &map, sizeof(result));
  return result;
#else
  (void)shape;
  throw MissingError("fuseline was built with a CUDA toolkit older than 12: no bulk copies");
#endif
}

}  // namespace fuseline::cuda

#endif
