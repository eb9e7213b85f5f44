#!/usr/bin/env bash
# list_kernels.sh: compiles every kernel for the GPU that the tests compile and that did not compile on
# this machine before, and writes those that compiled as expected to tests/cuda/emit/passed_kernels.txt.
# ./test.sh compiles the kernels that this file does not list, and of the others a sample.
# Half an hour of a core when a device header changed that all kernels include; needs the CUDA toolkit.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

export FUSELINE_PASSED_KERNELS="${FUSELINE_PASSED_KERNELS:-${XDG_CACHE_HOME:-$HOME/.cache}/fuseline-passed-kernels}"
unset FUSELINE_KERNELS_OF_DAY FUSELINE_COMPILE_AGAIN
ledger=tests/cuda/emit/passed_kernels.txt

mkdir -p build
cmake --preset release -DFUSELINE_BUILD_TESTS=ON >build/release-configure.log
cmake --build --preset release --target optimised_tests cuda_tests extension_tests
# CTest knows a program's suites when it has been built.
suites="$(grep -rlE 'compile_support\.h|passed_kernels\.h' tests --include='*.cpp' |
  xargs grep -ohE '^TEST(_F|_P)?\([A-Za-z]+' | sed 's/.*(//' | grep -v '^Long' | sort -u | paste -sd '|')"
log="$PWD/build/kernels.log"
rm -f "$log"
FUSELINE_LOG_OF_KERNELS="$log" ctest --preset release -j "$(nproc)" --no-tests=error --no-label-summary \
  -R "^(Optimised\.)?(.*/)?($suites)(/.*)?\$"
# CTest would run what is left of them with the optimised tests, also when it is out of date.
rm -f build/release/tests/cuda_tests build/release/tests/extension_tests

{
  echo "# Kernels that compiled as expected. scripts/list_kernels.sh writes this file."
  sort -u "$log"
} >"$ledger.new"
mv "$ledger.new" "$ledger"
echo "$ledger: $(grep -vc '^#' "$ledger") kernels"
