# cmake -DROOT=DIR -DOUTPUT=FILE.cpp -P embed_text.cmake
# Writes the device headers below ROOT into a C++ file, as cuda/compile/device_headers.h declares.
file(GLOB_RECURSE files RELATIVE "${ROOT}" "${ROOT}/*.cuh")
list(SORT files)
set(body "")
foreach(file IN LISTS files)
  file(READ "${ROOT}/${file}" text)
  string(APPEND body "      {\"${file}\", R\"device_text(${text})device_text\"},\n")
endforeach()
set(code "// Made from cuda/kernels by cmake/embed_text.cmake.\n\
#include \"cuda/compile/device_headers.h\"\n\n\
namespace fuseline::cuda {\n\n\
const std::vector<DeviceHeader>& device_headers() {\n\
  static const std::vector<DeviceHeader> headers = {\n${body}  };\n\
  return headers;\n}\n\n}  // namespace fuseline::cuda\n")
file(WRITE "${OUTPUT}" "${code}")
