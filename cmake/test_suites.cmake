# Says to CTest which suites a test program has: one test of CTest, and so one process, a suite.
# Starting a program under the sanitizers takes longer than most of its tests.

# fuseline_test_suites(<binary> LABEL <label> [PREFIX <text>] FROM <folder> FOLDER <folder>)
#   The first run in a build folder starts with the suites named Slow* and with those of
#   suites_of_many_seconds, so that none of them is left over at the end for one core; later runs start
#   with what took longest (CTest's own count).
#   Tests run in the folder FROM and write in FOLDER. The label of a suite named Slow* has "-slow" behind it, that of one named Long* "-long"; the name
#   counts without the instance that values were given to ("All/SlowBlocks").
string(JOIN "|" suites_of_many_seconds
  CommandBudgets EveryPolicy DocumentedCommands Export FailingCalls GradientProgramSources GraphView
  HostileFiles MainWindow NumberFormats OpenBlocks RecordedUses ScanSource UnlikeThings WorkOnRanks)

function(fuseline_test_suites binary)
  cmake_parse_arguments(ARG "" "LABEL;PREFIX;FROM;FOLDER" "" ${ARGN})
  if(NOT EXISTS "${binary}")
    # ctest -E '_NOT_BUILT' leaves out what this build was not asked for.
    cmake_path(GET binary FILENAME name)
    add_test("${name}_NOT_BUILT" "${binary}")
    return()
  endif()
  execute_process(COMMAND "${binary}" --gtest_list_tests OUTPUT_VARIABLE listed
    COMMAND_ERROR_IS_FATAL ANY)
  # A line of a suite: "Suite." or "All/Suite/0.  # TypeParam = int"; those of its tests are indented.
  string(REGEX MATCHALL "(^|\n)[^ \n][^ \n]*\\." suites "${listed}")
  foreach(suite IN LISTS suites)
    string(REGEX REPLACE "^\n|\\.$" "" suite "${suite}")
    set(label "${ARG_LABEL}")
    set(seconds 1200)
    set(cost 0)
    if(suite MATCHES "^(.*/)?Slow")
      string(APPEND label "-slow")
      set(seconds 1800)
      set(cost 60)
    elseif(suite MATCHES "^(.*/)?Long")
      string(APPEND label "-long")
      set(seconds 3600)
    elseif(suite MATCHES "^(.*/)?(${suites_of_many_seconds})$")
      set(cost 30)
    endif()
    set(name "${ARG_PREFIX}${suite}")
    add_test("${name}" "${binary}" "--gtest_filter=${suite}.*")
    set_tests_properties("${name}" PROPERTIES WORKING_DIRECTORY "${ARG_FROM}"
      TIMEOUT ${seconds} COST ${cost} LABELS "${label}" ENVIRONMENT "TEST_TMPDIR=${ARG_FOLDER}")
  endforeach()
endfunction()
