#!/usr/bin/env bash
# Installs what is missing, builds with warnings as errors, and runs every check and test.
#   ./test.sh          format check, all tests, all tests again under ASan + UBSan
#   ./test.sh --quick  without the sanitizer run and the tests labelled slow
#   ./test.sh --tidy   clang-tidy over our sources as well (slow)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

quick=false
tidy=false
for argument in "$@"; do
  case "$argument" in
    --quick) quick=true ;;
    --tidy) tidy=true ;;
    *)
      echo "test.sh: unknown argument '$argument'; allowed: --quick, --tidy" >&2
      exit 2
      ;;
  esac
done

# Clones in other folders share what ccache keeps.
export CCACHE_BASEDIR="${CCACHE_BASEDIR:-/}" CCACHE_NOHASHDIR="${CCACHE_NOHASHDIR:-1}"
jobs="$(nproc)"
step() { printf '\n== %s\n' "$*"; }

own_sources() {
  find base model sim lab cuda cli gui tests bench -type f \( -name '*.cpp' -o -name '*.h' \) \
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

# build_and_test PRESET [ctest arguments]
build_and_test() {
  local preset="$1"
  shift
  step "build $preset"
  cmake --preset "$preset" >"build/$preset-configure.log" 2>&1 || {
    cat "build/$preset-configure.log"
    return 1
  }
  cmake --build --preset "$preset"
  step "test $preset"
  ctest --preset "$preset" -j "$jobs" --no-tests=error --no-label-summary "$@"
}

run_tidy() {
  step "clang-tidy"
  own_sources | tr '\0' '\n' | grep '\.cpp$' | grep -v '^lab/harness/' |
    xargs -r -P "$jobs" -n 4 clang-tidy -p build/dev --quiet
}

scripts/install-deps.sh --with-tests --with-gui </dev/null
mkdir -p build
check_format

if $quick; then
  build_and_test dev -LE slow
else
  build_and_test dev
fi
if $tidy; then
  run_tidy
fi
if ! $quick; then
  # NVRTC is not ours to sanitise: what it makes of the sources was tested above. The claims are the
  # same predictions thousands of times over.
  build_and_test asan -E "Slow(Gemm|Attention|Stream)Sources|SlowShippedClaims"
fi
