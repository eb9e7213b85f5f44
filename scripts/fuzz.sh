#!/usr/bin/env bash
# Builds the fuzz targets with libFuzzer and runs them, each on its corpus, its seeds and its
# dictionary. What crashes, hangs or takes too much memory is left in build/fuzz/findings.
#   scripts/fuzz.sh                         every target, an hour of all together
#   scripts/fuzz.sh --seconds 20            20 s a target
#   scripts/fuzz.sh --seconds 60 trace      one target, or several
#   scripts/fuzz.sh --list                  the targets
# Exit status 1: something was found. What it found new ways through stays in build/fuzz/grown/TARGET;
# --keep adds the smallest such inputs to the corpora in the tree.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

seconds=""
keep=false
list=false
chosen=()
while (($# > 0)); do
  case "$1" in
    --seconds) seconds="${2:?--seconds needs a number}"; shift ;;
    --keep) keep=true ;;
    --list) list=true ;;
    --help) sed -n '2,/^set /s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; exit 0 ;;
    -*) echo "fuzz.sh: unknown option '$1'; allowed: --seconds, --keep, --list, --help" >&2; exit 2 ;;
    *) chosen+=("$1") ;;
  esac
  shift
done

if ! command -v clang++ >/dev/null; then
  echo "fuzz.sh: clang++ is not here. On Debian: scripts/install-deps.sh --with-tests --with-clang" >&2
  exit 3
fi
export CCACHE_BASEDIR="${CCACHE_BASEDIR:-/}" CCACHE_NOHASHDIR="${CCACHE_NOHASHDIR:-1}"
mkdir -p build
cmake --preset fuzz >build/fuzz-configure.log || { cat build/fuzz-configure.log; exit 1; }
cmake --build --preset fuzz --target fuseline_fuzz >build/fuzz-build.log || {
  cat build/fuzz-build.log
  exit 1
}
fuzzer="$(find build/fuzz -name fuseline_fuzz -type f -perm -u+x | head -n 1)"
# Readers write and read files; in memory they do it faster.
if [[ -d /dev/shm && -w /dev/shm ]]; then export TMPDIR=/dev/shm; fi
mapfile -t known < <("$fuzzer")
if $list; then printf '%s\n' "${known[@]}" | cut -d' ' -f1; exit 0; fi
for name in ${chosen[@]+"${chosen[@]}"}; do
  if ! printf '%s\n' "${known[@]}" | cut -d' ' -f1 | grep -qx -- "$name"; then
    echo "fuzz.sh: there is no target '$name'; scripts/fuzz.sh --list names them" >&2
    exit 2
  fi
done
targets="${#chosen[@]}"
if ((targets == 0)); then targets="${#known[@]}"; fi
: "${seconds:=$((3600 / targets))}"

found=0
printf '%-20s %10s %9s %8s %s\n' target runs "runs/s" edges result
for line in "${known[@]}"; do
  read -r name dictionary seeds <<<"$line"
  if ((${#chosen[@]} > 0)) && ! printf '%s\n' "${chosen[@]}" | grep -qx -- "$name"; then continue; fi
  grown="build/fuzz/grown/$name" findings="build/fuzz/findings/$name" given="build/fuzz/seeds/$name"
  rm -rf "$given"
  mkdir -p "$grown" "$findings" "$given"
  # shellcheck disable=SC2086  # a list of patterns
  for seed in $seeds; do cp -- "$seed" "$given/${seed//\//_}"; done
  mkdir -p "tests/fuzz/corpora/$name"
  log="build/fuzz/$name.log"
  status=0
  FUSELINE_FUZZ_TARGET="$name" "$fuzzer" -max_total_time="$seconds" -timeout=20 -rss_limit_mb=2048 \
    -malloc_limit_mb=1024 -max_len=16384 -print_final_stats=1 -detect_leaks=0 \
    -dict="tests/fuzz/dictionaries/$dictionary.dict" -artifact_prefix="$findings/" \
    "$grown" "tests/fuzz/corpora/$name" "$given" >"$log" 2>&1 || status=$?
  runs="$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")"
  rate="$(sed -n 's/^stat::average_exec_per_sec: *//p' "$log")"
  edges="$(grep -o 'cov: [0-9]*' "$log" | tail -n 1 | cut -d' ' -f2)"
  result="nothing found"
  if ((status != 0)); then
    result="FOUND: $(grep -m 1 -E '^fuzz: |ERROR: ' "$log" || echo "status $status"), see $log"
    found=1
  fi
  printf '%-20s %10s %9s %8s %s\n' "$name" "${runs:-?}" "${rate:-?}" "${edges:-?}" "$result"
  if $keep && ((status == 0)); then
    small="build/fuzz/small/$name"
    rm -rf "$small"
    mkdir -p "$small"
    FUSELINE_FUZZ_TARGET="$name" "$fuzzer" -merge=1 -max_len=512 "$small" "tests/fuzz/corpora/$name" \
      "$given" "$grown" >>"$log" 2>&1 || true
    # The 12 smallest that are new: a corpus is read in every test run.
    find "$small" -type f -size -2 -printf '%s %p\n' | sort -n | head -n 12 | cut -d' ' -f2- |
      while read -r input; do cp -n -- "$input" "tests/fuzz/corpora/$name/"; done
  fi
done
exit "$found"
