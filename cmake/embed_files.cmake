# cmake -DROOT=DIR -DOUTPUT=FILE.cpp -P embed_files.cmake
# Writes the files of ROOT into a C++ file, as cuda/export/texts.h declares.
file(GLOB files RELATIVE "${ROOT}" "${ROOT}/*.py" "${ROOT}/*.h" "${ROOT}/*.c")
list(SORT files)
set(body "")
foreach(file IN LISTS files)
  file(READ "${ROOT}/${file}" text)
  string(APPEND body "  if (file == \"${file}\") return R\"export_text(${text})export_text\";\n")
endforeach()
set(code "// Made from cuda/export/texts by cmake/embed_files.cmake.\n\
#include \"cuda/export/texts.h\"\n\n\
namespace fuseline::cuda {\n\n\
std::string export_text(std::string_view file) {\n${body}  return {};\n}\n\n\
}  // namespace fuseline::cuda\n")
file(WRITE "${OUTPUT}" "${code}")
