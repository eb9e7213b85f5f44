// The files of cuda/kernels, which are part of the binary, and how they join a source.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace fuseline::cuda {

struct DeviceHeader {
  std::string_view path;  // below cuda/kernels: "epilogue/map.cuh"
  std::string_view text;
};
const std::vector<DeviceHeader>& device_headers();

// The text with every #include "FILE" of a device header in its place, each header once; FILE is
// relative to the including header, or to cuda/kernels. #line keeps the compiler's messages
// pointing at the files as they are. #include <...> stays. InternalError: there is no such header.
std::string join_headers(const std::string& name, std::string_view text);

}  // namespace fuseline::cuda
