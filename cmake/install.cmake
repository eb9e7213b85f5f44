# What `cmake --install` copies, and the Debian package that CPack makes of it: the program, the
# libraries base, model and sim with their headers, the data, the documentation, the manual page and
# bash's completions.
include(GNUInstallDirs)

install(TARGETS fuseline RUNTIME)
if(TARGET fuseline-gui)
  install(TARGETS fuseline-gui RUNTIME OPTIONAL)
endif()

# For other programs. The libraries that ours call are found again by fuselineConfig.cmake.
install(TARGETS fuseline_base fuseline_model fuseline_sim
  ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}/fuseline")
install(DIRECTORY base model sim DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/fuseline"
  FILES_MATCHING PATTERN "*.h")
set(package_folder "${CMAKE_INSTALL_LIBDIR}/cmake/fuseline")
include(CMakePackageConfigHelpers)
set(FUSELINE_WITH_SQLITE "${SQLite3_FOUND}")
configure_package_config_file(cmake/fuselineConfig.cmake.in
  "${PROJECT_BINARY_DIR}/generated/fuselineConfig.cmake" INSTALL_DESTINATION "${package_folder}"
  PATH_VARS CMAKE_INSTALL_LIBDIR CMAKE_INSTALL_INCLUDEDIR CMAKE_INSTALL_DATADIR)
write_basic_package_version_file("${PROJECT_BINARY_DIR}/generated/fuselineConfigVersion.cmake"
  COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/generated/fuselineConfig.cmake"
  "${PROJECT_BINARY_DIR}/generated/fuselineConfigVersion.cmake" DESTINATION "${package_folder}")

install(DIRECTORY scenarios DESTINATION "${CMAKE_INSTALL_DATADIR}/fuseline")
install(DIRECTORY docs/ DESTINATION "${CMAKE_INSTALL_DOCDIR}")
install(FILES README.md DESTINATION "${CMAKE_INSTALL_DOCDIR}")
install(FILES LICENSE DESTINATION "${CMAKE_INSTALL_DOCDIR}" RENAME copyright)

# The program itself says what its options are, so nobody writes them down a second time.
install(CODE "
  foreach(page \"--man;fuseline.1\" \"--completion;bash;fuseline.bash\")
    list(POP_BACK page file)
    execute_process(COMMAND \"$<TARGET_FILE:fuseline>\" \${page}
      OUTPUT_FILE \"${PROJECT_BINARY_DIR}/generated/\${file}\" COMMAND_ERROR_IS_FATAL ANY)
  endforeach()")
install(FILES "${PROJECT_BINARY_DIR}/generated/fuseline.1"
  DESTINATION "${CMAKE_INSTALL_MANDIR}/man1")
install(FILES "${PROJECT_BINARY_DIR}/generated/fuseline.bash"
  DESTINATION "${CMAKE_INSTALL_DATADIR}/bash-completion/completions" RENAME fuseline)

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME fuseline)
set(CPACK_PACKAGE_VENDOR "the authors of fuseline")
# Whoever builds a package answers for it, as Debian's tools see it: DEBFULLNAME and DEBEMAIL, or the
# user on this machine.
set(packager "$ENV{DEBFULLNAME}")
set(packager_address "$ENV{DEBEMAIL}")
if(NOT packager)
  set(packager "$ENV{USER}")
endif()
if(NOT packager)
  set(packager root)
endif()
if(NOT packager_address)
  cmake_host_system_information(RESULT host QUERY FQDN)
  set(packager_address "${packager}@${host}")
  string(REPLACE " " "." packager_address "${packager_address}")
endif()
set(CPACK_PACKAGE_CONTACT "${packager} <${packager_address}>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
set(CPACK_PACKAGE_DESCRIPTION "fuseline models, executes and runs fused neural-network blocks on \
GPUs: it predicts their traffic and time, checks the fused maths on the CPU, and makes CUDA kernels.")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
# Labs compile students' functions; the window asks dot for layouts; other programs link the libraries.
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "g++, graphviz")
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "cmake, libfmt-dev, libtomlplusplus-dev, libzip-dev, zlib1g-dev, \
libsqlite3-dev, libopenblas-dev, libisl-dev, nlohmann-json3-dev")
include(CPack)
