# Settings and functions that every layer's CMakeLists.txt shares.

# Flags for our own code only. Third-party headers are system includes and stay silent.
add_library(fuseline_flags INTERFACE)
target_include_directories(fuseline_flags INTERFACE "${PROJECT_SOURCE_DIR}"
  "${PROJECT_BINARY_DIR}/generated")
target_compile_options(fuseline_flags INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wconversion)
# Nobody replaces our functions while the program runs, so the compiler may inline them although the
# code is position independent.
if(CMAKE_POSITION_INDEPENDENT_CODE)
  target_compile_options(fuseline_flags INTERFACE -fno-semantic-interposition)
endif()
# GCC collects its garbage first at 128 MiB, which files that are compiled together need at once. At
# 512 MiB it takes 8 % less time.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_options(fuseline_flags INTERFACE "SHELL:--param ggc-min-heapsize=524288")
endif()
# GCC 12 warns falsely of overlapping string copies when it optimises (GCC bug 105651).
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  target_compile_options(fuseline_flags INTERFACE -Wno-restrict)
endif()
# Files that are compiled together (CMAKE_UNITY_BUILD) are included, and GCC takes what is local to
# an included file for something that other files see.
if(CMAKE_UNITY_BUILD AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_options(fuseline_flags INTERFACE -Wno-subobject-linkage)
endif()
if(FUSELINE_WERROR)
  target_compile_options(fuseline_flags INTERFACE -Werror)
endif()
if(FUSELINE_SANITIZE)
  target_compile_options(fuseline_flags INTERFACE
    "-fsanitize=${FUSELINE_SANITIZE}" -fno-sanitize-recover=all -fno-omit-frame-pointer)
  if(FUSELINE_SANITIZE MATCHES "undefined")
    # A third of the compile time. AddressSanitizer finds what most of these would: an access to a
    # null pointer, behind an object or through a pointer that ran out of its array is an access to
    # memory that is not the program's. x86 processors load from any address (alignment), and the
    # code casts no pointer to a class that derives from the pointer's (vptr).
    target_compile_options(fuseline_flags INTERFACE
      -fno-sanitize=null,object-size,vptr,pointer-overflow,alignment)
  endif()
  # Until version 15 Clang writes code for a check that its runtime leaves off by default.
  if(FUSELINE_SANITIZE MATCHES "address" AND CMAKE_CXX_COMPILER_ID STREQUAL "Clang"
      AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 15)
    target_compile_options(fuseline_flags INTERFACE -fsanitize-address-use-after-return=never)
  endif()
  target_link_options(fuseline_flags INTERFACE "-fsanitize=${FUSELINE_SANITIZE}")
endif()

# LLD links the program and each binary of the tests in a quarter of the time.
find_program(FUSELINE_LLD ld.lld)
if(FUSELINE_LLD)
  target_link_options(fuseline_flags INTERFACE -fuse-ld=lld)
endif()

# What is built for longer than it computes is not optimised under the sanitizers, where clang++ takes
# 24 s for a room that takes 63 s with -O1. The fuzzer runs all of it millions of times. GCC does not compile
# Eigen without optimisation where the headers were precompiled with it, and takes the end of a function
# that no case reaches for a mistake.
set(fuseline_cold_options "")
if(FUSELINE_SANITIZE AND NOT FUSELINE_SANITIZE MATCHES "fuzzer" AND CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  set(fuseline_cold_options -O0)
endif()

# What is optimised under the sanitizers and not HOT. Clang's inliner is most of the optimising, and the
# code of AddressSanitizer's checks most of what is then compiled. Here only small functions are inlined, and
# in a function that accesses memory more than 30 times a check is a call of the sanitizer's library: the
# same checks, in three quarters of the compile time. With calls in every function a short loop takes four
# times as long (CheckResults).
set(fuseline_lukewarm_options "")
if(FUSELINE_SANITIZE MATCHES "address" AND NOT FUSELINE_SANITIZE MATCHES "fuzzer"
    AND CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  set(fuseline_lukewarm_options "SHELL:-mllvm -inline-threshold=25"
    "SHELL:-mllvm -asan-instrumentation-with-call-threshold=30")
endif()

# fuseline_optimised_first(<program> <layer>...)
#   A function that several objects hold, such as one of std::vector, is linked from the first of them. Here
#   these are the layers that are optimised, not the tests and the cold rooms, whose -O0 would
#   otherwise slow down what the layers compute. Each object of these layers is linked.
function(fuseline_optimised_first program)
  set(archives ${ARGN})
  list(TRANSFORM archives REPLACE "(.+)" "$<TARGET_FILE:\\1>")
  target_link_options(${program} PRIVATE -Wl,--whole-archive ${archives} -Wl,--no-whole-archive)
  set_property(TARGET ${program} APPEND PROPERTY LINK_DEPENDS ${archives})
endfunction()

# Another allocator than glibc's, for the window and the optimised tests. Sanitizers bring one of
# their own.
find_library(FUSELINE_JEMALLOC jemalloc)
if(FUSELINE_JEMALLOC AND NOT FUSELINE_SANITIZE)
  add_library(fuseline_jemalloc INTERFACE)
  target_link_libraries(fuseline_jemalloc INTERFACE
    -Wl,--push-state,--no-as-needed "${FUSELINE_JEMALLOC}" -Wl,--pop-state)
endif()

# Libraries that .cpp files of any layer may use; their headers never appear in ours. Debian's
# toml++ target links the compiled library, which spares every reader of TOML the parser's compile
# time (0.7 s instead of 3.2 s a file).
add_library(fuseline_external INTERFACE)
target_link_libraries(fuseline_external INTERFACE
  Boost::headers fmt::fmt nlohmann_json::nlohmann_json tomlplusplus::tomlplusplus
  Eigen3::Eigen Threads::Threads)

# The headers of the standard library and of fmt are most of what a small file compiles. Precompiled,
# they cost a file about 0.1 s instead of 0.6 s. The preset clang compiles without them, and so tells
# which file forgets an include.
option(FUSELINE_PCH "Precompile the headers of libraries (GCC and Clang)" ON)
if(FUSELINE_PCH AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  set(FUSELINE_USE_PCH ON)
  # ccache takes part only where the preprocessor names the precompiled header.
  target_compile_options(fuseline_flags INTERFACE -fpch-preprocess)
  # GCC 12 also warns falsely of strings that are moved and joined (GCC bugs 105329 and 105651). In a
  # system header it keeps silent, and forgets that it is in one when the header is precompiled.
  if(CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    target_compile_options(fuseline_flags INTERFACE
      -Wno-array-bounds -Wno-stringop-overflow -Wno-stringop-overread)
  endif()
elseif(FUSELINE_PCH AND CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  set(FUSELINE_USE_PCH ON)
  # ccache takes part only where the precompiled header does not say when it was made.
  target_compile_options(fuseline_flags INTERFACE "SHELL:-Xclang -fno-pch-timestamp")
else()
  set(FUSELINE_USE_PCH OFF)
endif()
set(fuseline_library_headers
  <algorithm> <array> <charconv> <cmath> <cstdint> <filesystem> <functional> <limits> <map>
  <memory> <optional> <set> <span> <string> <string_view> <utility> <variant> <vector>
  <fmt/format.h> <fmt/ranges.h>)

# fuseline_precompile(<target> <owner> <header>...)
#   The owner, one of the targets, compiles the headers; the others, of the same flags, share them.
function(fuseline_precompile target owner)
  if(NOT FUSELINE_USE_PCH)
    return()
  endif()
  if(target STREQUAL owner)
    target_precompile_headers(${target} PRIVATE ${ARGN})
    # A precompiled header holds its folder's name, so that no two folders have the same. ccache takes
    # the text of this file for its contents: what libraries it has, and their versions. Headers of
    # our own change without a new version, so none of them is precompiled.
    string(JOIN " " contents ${ARGN} "${CMAKE_CXX_COMPILER_ID}" "${CMAKE_CXX_COMPILER_VERSION}"
      "fmt ${fmt_VERSION}" "GTest ${GTest_VERSION}" "Qt ${Qt6_VERSION}")
    set(suffix gch)
    if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
      set(suffix pch)
    endif()
    file(CONFIGURE OUTPUT
      "${CMAKE_CURRENT_BINARY_DIR}/CMakeFiles/${target}.dir/cmake_pch.hxx.${suffix}.sum"
      CONTENT "${contents}\n" @ONLY)
  else()
    target_precompile_headers(${target} REUSE_FROM ${owner})
  endif()
endfunction()

# fuseline_cold(<target>)
#   Little is computed in this target (fuseline_cold_options). It shares the precompiled headers of a
#   target of the same options.
function(fuseline_cold target)
  target_compile_options(${target} PRIVATE ${fuseline_cold_options})
  set(owner fuseline_base)
  if(fuseline_cold_options)
    set(owner fuseline_sim_programs)
  endif()
  fuseline_precompile(${target} ${owner} ${fuseline_library_headers})
endfunction()

# fuseline_add_layer(<name> [COLD] [DEPENDS <layer>...] [EXCLUDE <file>...])
#   Static library of all .cpp files below the current folder; DEPENDS names the layers whose
#   headers it may include. COLD as in fuseline_cold. A folder without sources
#   gives an interface library.
function(fuseline_add_layer name)
  cmake_parse_arguments(ARG "COLD" "" "DEPENDS;EXCLUDE" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/*.cpp")
  foreach(file IN LISTS ARG_EXCLUDE)
    list(REMOVE_ITEM sources "${CMAKE_CURRENT_SOURCE_DIR}/${file}")
  endforeach()
  if(sources)
    add_library(${name} STATIC ${sources})
    target_link_libraries(${name} PUBLIC fuseline_flags ${ARG_DEPENDS} PRIVATE fuseline_external)
    if(ARG_COLD)
      fuseline_cold(${name})
    else()
      target_compile_options(${name} PRIVATE ${fuseline_lukewarm_options})
      fuseline_precompile(${name} fuseline_base ${fuseline_library_headers})
    endif()
  else()
    add_library(${name} INTERFACE)
    target_link_libraries(${name} INTERFACE fuseline_flags ${ARG_DEPENDS})
  endif()
endfunction()

# fuseline_add_room(<name> [COLD|HOT] [LATER] OF <layer> FILES <regular expression> [DEPENDS <layer>...])
#   Takes the files whose paths match out of the layer's library into an object library that the layer
#   links: for other flags, other precompiled headers, so that what is compiled together elsewhere
#   stays the same where the room grows, or because no prediction takes them (LATER). DEPENDS and COLD
#   as of the layer. HOT: much is computed there, so it is optimised fully in every build but under the
#   sanitizers.
#   What is not LATER is also linked to fuseline-predict (cli/CMakeLists.txt).
function(fuseline_add_room name)
  cmake_parse_arguments(ARG "COLD;HOT;LATER" "OF;FILES" "DEPENDS" ${ARGN})
  get_target_property(others ${ARG_OF} SOURCES)
  set(sources ${others})
  list(FILTER sources INCLUDE REGEX "${ARG_FILES}")
  list(FILTER others EXCLUDE REGEX "${ARG_FILES}")
  # Objects of rooms that were taken out before.
  list(FILTER sources EXCLUDE REGEX "^[$]<TARGET_OBJECTS:")
  list(FILTER others EXCLUDE REGEX "^[$]<TARGET_OBJECTS:")
  get_property(rooms GLOBAL PROPERTY fuseline_rooms_of_${ARG_OF})
  list(APPEND rooms $<TARGET_OBJECTS:${name}>)
  set_property(GLOBAL PROPERTY fuseline_rooms_of_${ARG_OF} ${rooms})
  add_library(${name} OBJECT ${sources})
  target_link_libraries(${name} PRIVATE fuseline_flags ${ARG_DEPENDS} fuseline_external)
  if(ARG_COLD)
    fuseline_cold(${name})
  else()
    set(owner fuseline_base)
    if(NOT ARG_HOT)
      target_compile_options(${name} PRIVATE ${fuseline_lukewarm_options})
    elseif(NOT FUSELINE_SANITIZE)
      target_compile_options(${name} PRIVATE -O3)
      set(owner fuseline_model_hot)  # the first such room
    endif()
    fuseline_precompile(${name} ${owner} ${fuseline_library_headers})
  endif()
  set_target_properties(${ARG_OF} PROPERTIES SOURCES "${others};${rooms}" LINKER_LANGUAGE CXX)
  if(NOT ARG_LATER)
    set_property(GLOBAL APPEND PROPERTY fuseline_objects_of_predictions $<TARGET_OBJECTS:${name}>)
  endif()
endfunction()
