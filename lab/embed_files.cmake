# cmake -DROOT=DIR -DFILES=a.h,b.cpp -DOUTPUT=FILE.cpp -P embed_files.cmake
# Writes these files below ROOT into a C++ file, as lab/embedded_files.h declares.
string(REPLACE "," ";" files "${FILES}")
set(body "")
foreach(file IN LISTS files)
  file(READ "${ROOT}/${file}" text)
  string(APPEND body "      {\"${file}\", R\"lab_text(${text})lab_text\"},\n")
endforeach()
file(WRITE "${OUTPUT}" "// Made by lab/embed_files.cmake.\n\
#include \"lab/embedded_files.h\"\n\n\
namespace fuseline::lab {\n\n\
const std::map<std::string, std::string>& embedded_files() {\n\
  static const std::map<std::string, std::string> files = {\n${body}  };\n\
  return files;\n}\n\n}  // namespace fuseline::lab\n")
