#if FUSELINE_HAS_CUDA

#include "cuda/run/row_groups.h"

#include <span>

#include "base/error.h"

namespace fuseline::cuda {

RowGroupsParameter row_groups(const Device& device, const std::vector<std::int64_t>& lengths,
                              std::vector<DeviceBuffer>& memory) {
  std::vector<std::int32_t> ends;
  std::int64_t end = 0;
  for (const std::int64_t length : lengths) {
    end += length;
    FUSELINE_ASSERT(length >= 0 && end <= INT32_MAX, "a kernel counts rows with 32 bits");
    ends.push_back(static_cast<std::int32_t>(end));
  }
  DeviceBuffer& buffer =
      memory.emplace_back(device.allocate(Bytes(4 * static_cast<std::int64_t>(ends.size()))));
  buffer.upload(std::as_bytes(std::span(ends)));
  return {buffer.address(), static_cast<std::int32_t>(ends.size())};
}

}  // namespace fuseline::cuda

#endif
