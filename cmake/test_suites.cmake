# Says to CTest which suites a test program has. A test of CTest, and so a process, is a suite or several
# suites: starting a program under the sanitizers takes longer than most of its tests.

# fuseline_test_suites(<binary> LABEL <label> [PREFIX <text>] [TOGETHER <number>] FROM <folder> FOLDER <folder>)
#   The first run in a build folder starts with the suites named Slow* and with those of
#   suites_of_many_seconds, so that none of them is left over at the end for one core; later runs start
#   with what took longest (CTest's own count).
#   Tests run in the folder FROM and write in FOLDER. The label of a suite named Slow* has "-slow" behind it, that of one named Long* "-long"; the name
#   counts without the instance that values were given to ("All/SlowBlocks").
#   TOGETHER: as many of the other suites share one process and one test of CTest, which is named after
#   all of them ("Scan+Replay"), so that ctest -R finds it by each.
string(JOIN "|" suites_of_many_seconds
  BlockLaunch CommandBudgets DocumentedCommands EveryPolicy Export FailingCalls GradientProgramSources
  GraphView HostileFiles LeastTraffic Limits MainWindow ModulatedBlock NastyInputs NumberFormats OpenBlocks
  ProgramNest RecordedUses ReplayedTargets Sandbox Scan ScanSource TraceImport UnlikeThings VerdictCommand
  WholeModel WorkOnRanks)

function(fuseline_test_suites binary)
  cmake_parse_arguments(ARG "" "LABEL;PREFIX;TOGETHER;FROM;FOLDER" "" ${ARGN})
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
  set(together "")  # names of suites that wait for a process
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
    elseif(ARG_TOGETHER)
      list(APPEND together "${suite}")
      list(LENGTH together waiting)
      if(waiting EQUAL ARG_TOGETHER)
        fuseline_add_suites("${together}" ${label} ${seconds} ${cost})
        set(together "")
      endif()
      continue()
    endif()
    fuseline_add_suites("${suite}" ${label} ${seconds} ${cost})
  endforeach()
  if(together)
    fuseline_add_suites("${together}" ${ARG_LABEL} 1200 0)
  endif()
endfunction()

# One test of CTest for these suites of fuseline_test_suites, whose variables it reads.
function(fuseline_add_suites suites label seconds cost)
  list(JOIN suites "+" name)
  list(TRANSFORM suites APPEND ".*" OUTPUT_VARIABLE filters)
  list(JOIN filters ":" filter)
  set(name "${ARG_PREFIX}${name}")
  add_test("${name}" "${binary}" "--gtest_filter=${filter}")
  set_tests_properties("${name}" PROPERTIES WORKING_DIRECTORY "${ARG_FROM}"
    TIMEOUT ${seconds} COST ${cost} LABELS "${label}" ENVIRONMENT "TEST_TMPDIR=${ARG_FOLDER}")
endfunction()
