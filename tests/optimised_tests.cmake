# Tests that take an optimised program, because they compute for minutes under the sanitizers, or show
# that the optimised program does as documented. They are a binary of their own: ./test.sh runs it in
# the release build, and all other tests under the sanitizers. A layer keeps tests of each of its parts
# among the others, so that the sanitizers see all of its code; those of a reader stay there.
set(only_optimised
  cli/audit_test.cpp
  cli/compare_test.cpp
  cli/import_trace_test.cpp
  cli/limits_test.cpp
  cli/readme_commands_test.cpp
  cli/search_test.cpp
  cli/sweep_ranks_test.cpp
  cli/verify_test.cpp
  cuda/emit/attention_source_test.cpp
  cuda/emit/block_source_test.cpp
  cuda/emit/expert_blocks_test.cpp
  cuda/emit/gemm_source_test.cpp
  cuda/emit/gradient_programs_test.cpp
  cuda/emit/open_blocks_test.cpp
  cuda/emit/random_programs_test.cpp
  cuda/emit/scan_source_test.cpp
  cuda/emit/stream_source_test.cpp
  cuda/emit/trained_blocks_test.cpp
  cuda/export/recorded_plan_test.cpp
  error/command_budget_test.cpp
  error/failing_calls_test.cpp
  error/hostile_files_test.cpp
  lab/cheating_test.cpp
  lab/folder_check_test.cpp
  lab/staff_test.cpp
  lab/student_code_test.cpp
  model/policies_test.cpp
  model/rewrites_test.cpp
  sim/block/blocks_in_formats_test.cpp
  sim/block/golden_predictions_test.cpp
  sim/block/imported_block_test.cpp
  sim/block/parallel_block_test.cpp
  sim/block/properties_test.cpp
  sim/block/shipped_blocks_test.cpp
  sim/executor/execute_test.cpp
  sim/executor/train_test.cpp
  sim/executor/verification_test.cpp
  sim/judge/audit/baseline_test.cpp
  sim/judge/audit/shipped_claims_test.cpp
  sim/judge/band_fit_test.cpp
  sim/judge/here_test.cpp
  sim/memory/l2_cache_test.cpp
  sim/nests/product_traffic_test.cpp
  sim/programs/random_programs_test.cpp
  sim/search/distribution_test.cpp
  sim/search/search_test.cpp
  sim/verdict/verdict_test.cpp)
# What they share with the tests of their folder.
set(also_optimised
  cli/cli_run.cpp
  error/run_program.cpp
  lab/lab_support.cpp)
