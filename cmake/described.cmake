# Headers that name what a folder describes, one thing a file, so that adding a thing is adding a
# file. The name of the file is the thing's.

# fuseline_describe(<header> FOLDER <folder> NAMESPACE <namespace> INCLUDES <header>... EXCEPT <stem>...
#                   DECLARATION <text with @name@> ENTRY <text with @name@> TYPE <type of an entry>)
function(fuseline_describe header)
  cmake_parse_arguments(ARG "" "FOLDER;NAMESPACE;DECLARATION;ENTRY;TYPE" "INCLUDES;EXCEPT" ${ARGN})
  file(GLOB files CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/${ARG_FOLDER}/*.cpp")
  list(SORT files)
  set(text "// Made from the files of ${ARG_FOLDER}/: one declaration for each.\n#pragma once\n\n")
  foreach(include IN LISTS ARG_INCLUDES)
    string(APPEND text "#include \"${include}\"\n")
  endforeach()
  set(declarations "")
  set(entries "")
  foreach(file IN LISTS files)
    cmake_path(GET file STEM name)
    if(name IN_LIST ARG_EXCEPT)
      continue()
    endif()
    string(REPLACE "@name@" "${name}" declaration "${ARG_DECLARATION}")
    string(REPLACE "@name@" "${name}" entry "${ARG_ENTRY}")
    string(APPEND declarations "${declaration};\n")
    string(APPEND entries "    ${entry},\n")
  endforeach()
  string(APPEND text "\nnamespace fuseline::${ARG_NAMESPACE} {\n\n${declarations}\n"
    "using Entry = ${ARG_TYPE};\ninline constexpr Entry kAll[] = {\n${entries}};\n\n"
    "}  // namespace fuseline::${ARG_NAMESPACE}\n")
  # Written only when it differs, so that nothing is built again in vain.
  file(CONFIGURE OUTPUT "${header}" CONTENT "${text}" @ONLY)
endfunction()
