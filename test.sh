#!/usr/bin/env bash
# Installs what is missing, builds with warnings as errors, and runs every check and test.
#   ./test.sh           format check, all tests: under ASan + UBSan, or, those that take an optimised
#                       program, in the release build.
#                       Of the kernels for the GPU that did not compile on this machine, those are
#                       compiled that tests/cuda/emit/passed_kernels.txt does not list, and of those that
#                       it lists one in 32, others each day; --long compiles all
#   ./test.sh --quick   the preset dev alone, without the tests labelled slow
#   ./test.sh --long    all tests in dev, under the sanitizers and in the release build, also those
#                       labelled long: all models' kernels, fuzzing and random blocks ten times as many;
#                       then the fuzzer itself, 20 s a target
#   ./test.sh --clang   also clang++: model, simulator and their tests compile without a warning
#   ./test.sh --tsan    also ThreadSanitizer, for the tests that use threads
#   ./test.sh --tidy    also clang-tidy over our sources (slow)
#   ./test.sh --rotate  also one of clang, tsan and tidy (clang and tidy of what changed last), another
#                       one each day
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

quick=false
long=false
clang=none
tsan=false
tidy=none
rotate=false
for argument in "$@"; do
  case "$argument" in
    --quick) quick=true ;;
    --long) long=true ;;
    --clang) clang=all ;;
    --tsan) tsan=true ;;
    --tidy) tidy=all ;;
    --rotate) rotate=true ;;
    --help)
      sed -n '2,/^set /s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
      exit 0
      ;;
    *)
      echo "test.sh: unknown argument '$argument'; allowed: --quick, --long, --clang, --tsan," \
        "--tidy, --rotate, --help" >&2
      exit 2
      ;;
  esac
done
if $quick && $long; then
  echo "test.sh: --quick and --long exclude each other" >&2
  exit 2
fi

# Clones in other folders share what ccache keeps, and which kernels compiled for the GPU as expected.
export CCACHE_BASEDIR="${CCACHE_BASEDIR:-/}" CCACHE_NOHASHDIR="${CCACHE_NOHASHDIR:-1}"
export FUSELINE_PASSED_KERNELS="${FUSELINE_PASSED_KERNELS:-${XDG_CACHE_HOME:-$HOME/.cache}/fuseline-passed-kernels}"
ledger=tests/cuda/emit/passed_kernels.txt
jobs="$(nproc)"
summary=()  # a line for each build that was tested
step() { printf '\n== %s\n' "$*"; }

own_sources() {
  find base model sim lab cuda cli gui python tests bench -type f \( -name '*.cpp' -o -name '*.h' \) \
    -print0 2>/dev/null || true
}

check_format() {
  step "format"
  local tool="" candidate
  for candidate in clang-format-14 clang-format; do
    if command -v "$candidate" >/dev/null 2>&1 && "$candidate" --version | grep -q 'version 14\.'; then
      tool="$candidate"
      break
    fi
  done
  if [[ -z "$tool" ]]; then
    echo "skipped: clang-format 14 is not installed (other versions format differently)"
    return
  fi
  own_sources | xargs -0 -r "$tool" --dry-run -Werror
  echo "ok"
}

# configure PRESET
configure() {
  local options=()
  # ./run.sh builds the same folder without tests, and nothing of it twice.
  if [[ "$1" == release ]]; then options=(-DFUSELINE_BUILD_TESTS=ON); fi
  cmake --preset "$1" ${options[@]+"${options[@]}"} >"build/$1-configure.log" 2>&1 || {
    cat "build/$1-configure.log"
    return 1
  }
}

# Sets cpu to the seconds that this script's commands have computed so far, all cores together.
cpu=0
count_cpu() {
  times >build/times
  cpu="$(awk -F'[ms ]+' 'NR == 2 { printf "%d", $1 * 60 + $2 + $3 * 60 + $4 }' build/times)"
}

# build_and_test PRESET TARGETS [ctest arguments]: TARGETS is "" for all of them.
build_and_test() {
  local preset="$1" targets="$2" begin="$SECONDS" built log cpu_begin cpu_built
  shift 2
  count_cpu
  cpu_begin="$cpu"
  step "build $preset"
  configure "$preset"
  # shellcheck disable=SC2086  # a list of words
  cmake --build --preset "$preset" ${targets:+--target $targets} 2>&1 | tee "build/$preset-build.log"
  # Warnings do not stop a user's release build; here they do. It is the one that GCC compiles.
  if grep -q ' warning: ' "build/$preset-build.log"; then
    echo "test.sh: the build of $preset warns" >&2
    return 1
  fi
  built=$((SECONDS - begin))
  count_cpu
  cpu_built="$cpu"
  step "test $preset"
  # One more than there are cores: tests that write files wait for the disk.
  ctest --preset "$preset" -j $((jobs + 1)) --no-tests=error --no-label-summary "$@" |
    tee "build/$preset-test.log"
  log="build/$preset/Testing/Temporary/LastTest.log"  # what every test of every suite printed
  count_cpu
  summary+=("$preset: built in $built s, tested in $((SECONDS - begin - built)) s:"
    "  $(grep -c '^\[       OK \]' "$log" || true) tests passed,"
    "  $(grep -c '^\[  SKIPPED \].* ms)$' "$log" || true) tests skipped;"
    "  CPU seconds: $((cpu_built - cpu_begin)) to build, $((cpu - cpu_built)) to test")
}

# The files below the given folders (words between bars) with the given ending (.cpp if none is given)
# that the last 20 commits changed and that are still there, the newest first, 24 at most.
changed_sources() {
  git log -n 20 --name-only --format= --diff-filter=d | grep -E "^($1)/.*\.${2:-cpp}$" |
    awk '!seen[$0]++' | while read -r file; do if [[ -e "$file" ]]; then echo "$file"; fi; done | head -n 24
}

# Each file by itself and without precompiled headers, as no other build compiles it: which file
# forgets an include.
run_clang() {
  step "clang, $1 sources"
  configure clang
  if [[ "$1" == changed ]]; then
    local files
    mapfile -t files < <(changed_sources 'base|model|sim|lab|cli' || true)
    if [[ ${#files[@]} -eq 0 ]]; then
      echo "nothing changed in the last 20 commits"
      return
    fi
    # Not by Ninja, which would build the libraries of a whole program first.
    scripts/compile_alone.py build/clang "${files[@]}"
    return
  fi
  cmake --build --preset clang --target base_tests model_tests fuseline_sim
  ctest --preset clang -j "$jobs" --no-tests=error --no-label-summary -L '^(base|model)$'
}

# Each header by itself: in a build, what it forgets to include may have been included before it.
check_headers() {
  step "headers by themselves, changed ones"
  configure clang
  local files
  mapfile -t files < <(changed_sources 'base|model|sim|lab/course|cuda|cli|gui' h | grep -vE '^cuda/(kernels|export/texts)/' || true)
  if [[ ${#files[@]} -gt 0 ]]; then scripts/compile_alone.py build/clang "${files[@]}"; fi
}

# The tests whose code runs in threads. parallel_loop takes plain threads there, because
# ThreadSanitizer does not see how GCC's OpenMP synchronises (base/parallel_for.cpp).
run_tsan() {
  local threaded='Parallel|Execut|Verif|EveryPolicy|EveryFault|LatestWins|Audit|Sweep|Crossover'
  threaded+='|Train|Compute|Workbench|ResultCache|OutputFile|WalkMemo|Scan|Mixer|Inputs|RandomStorage'
  build_and_test tsan "base_tests sim_tests gui_model_tests" -LE 'slow|long' -R "$threaded"
}

# clang-tidy reads the clang preset's commands, which name no precompiled header of GCC's.
run_tidy() {
  step "clang-tidy, $1 sources"
  configure clang
  local of_this_change=()
  if [[ "$1" == changed ]]; then
    mapfile -t of_this_change < <(changed_sources 'base|model|sim|lab|cuda|cli|gui|tests|bench' || true)
    if [[ ${#of_this_change[@]} -eq 0 ]]; then
      echo "nothing changed in the last 20 commits"
      return
    fi
  fi
  {
    if [[ "$1" == changed ]]; then
      printf '%s\n' "${of_this_change[@]}"
    else
      own_sources | tr '\0' '\n' | grep '\.cpp$'
    fi
  } | grep -v '^lab/harness/' | xargs -r -P "$jobs" -n 2 clang-tidy -p build/clang --quiet
}

# Another one each day, so that each of them is at most three days old.
if $rotate; then
  case $(($(date -u +%s) / 86400 % 3)) in
    0) [[ "$clang" == all ]] || clang=changed; chosen="--clang, of what changed in the last commits" ;;
    1) tsan=true; chosen="--tsan" ;;
    *) [[ "$tidy" == all ]] || tidy=changed; chosen="--tidy, of what changed in the last commits" ;;
  esac
  echo "today's additional check: $chosen"
fi

with_checks=()
# The sanitised build takes clang++.
if ! $quick || [[ "$clang" != none ]] || [[ "$tidy" != none ]]; then with_checks=(--with-clang); fi
scripts/install-deps.sh --with-tests --with-gui --with-python --with-mpi ${with_checks[@]+"${with_checks[@]}"} </dev/null
mkdir -p build
check_format

if $quick; then
  build_and_test dev "" -LE 'slow|long'
elif $long; then
  export FUSELINE_COMPILE_AGAIN=1
  build_and_test dev ""
  # NVRTC is not ours to sanitise. The claims are the same predictions thousands of times over.
  build_and_test asan "all optimised_tests" -E '(Slow|Long)(Gemm|Attention|Stream|Expert)Sources|OpenBlocks|ScanSource|SlowShippedClaims'
  build_and_test release optimised -E '_NOT_BUILT'
  step "fuzz, 20 s a target"
  scripts/fuzz.sh --seconds 20
else
  FUSELINE_KERNELS_OF_DAY="$(($(date -u +%s) / 86400))"
  export FUSELINE_KERNELS_OF_DAY
  FUSELINE_LOG_OF_KERNELS="$PWD/build/kernels.log"
  export FUSELINE_LOG_OF_KERNELS
  rm -f "$FUSELINE_LOG_OF_KERNELS"
  echo "of the kernels for the GPU that did not compile here before, those are compiled that $ledger does" \
    "not list, and one in 32 of those that it lists; --long compiles all of them"
  build_and_test asan "" -LE 'long|optimised' -E '_NOT_BUILT'
  build_and_test release optimised -LE long -E '_NOT_BUILT'
fi
if ! $quick; then check_headers; fi
if [[ "$clang" != none ]]; then run_clang "$clang"; fi
if [[ "$tidy" != none ]]; then run_tidy "$tidy"; fi
if $tsan; then run_tsan; fi

step "all passed"
printf '%s\n' ${summary[@]+"${summary[@]}"}
if [[ -e "${FUSELINE_LOG_OF_KERNELS:-}" ]]; then
  unlisted="$(sort -u "$FUSELINE_LOG_OF_KERNELS" | comm -23 - <(grep -v '^#' "$ledger") | wc -l)"
  if [[ "$unlisted" -gt 0 ]]; then
    echo "$unlisted kernels for the GPU passed that $ledger does not list, so that another machine compiles" \
      "them too: scripts/list_kernels.sh writes it"
  fi
fi
