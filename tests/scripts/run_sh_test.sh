#!/usr/bin/env bash
# run_sh_test.sh ROOT: what ./run.sh builds and starts, and what build/fuseline is before and after. CMake and
# the packages are played by scripts here: "building" a target makes a program that says its name
# and its arguments.
set -euo pipefail
root="$1"
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT

mkdir "$work/tools"
cat >"$work/tools/cmake" <<'EOF'
#!/usr/bin/env bash
if [[ "$1" == --preset ]]; then exit 0; fi
echo "building ${*: -1}"
if [[ -e broken ]]; then exit 1; fi
mkdir -p build/release/bin
printf '#!/bin/sh\necho "%s:$*"\n' "${*: -1}" >"build/release/bin/${*: -1}"
chmod +x "build/release/bin/${*: -1}"
EOF
chmod +x "$work/tools/cmake"
export PATH="$work/tools:$PATH"

fresh() {
  rm -rf "$work/tree"
  mkdir -p "$work/tree/scripts"
  cp "$root/run.sh" "$work/tree/run.sh"
  printf '#!/bin/sh\nexit 0\n' >"$work/tree/scripts/install-deps.sh"
  chmod +x "$work/tree/scripts/install-deps.sh"
}

# expect WHAT COMMAND...: the last thing that the command writes to stdout.
expect() {
  local what="$1" said
  shift
  said="$(cd / && "$@" 2>"$work/messages")"
  if [[ "$said" != "$what" ]]; then
    echo "$*: '$said' instead of '$what'" >&2
    cat "$work/messages" >&2
    exit 1
  fi
}

tree="$work/tree"
fresh
expect "fuseline-predict:predict $tree/scenarios/llama2-7b-h100.toml" "$tree/run.sh"
expect "fuseline-predict:predict --gpu h200" "$tree/run.sh" predict --gpu h200
expect "fuseline-predict:predict --gpu h200" "$tree/build/fuseline" predict --gpu h200
expect "fuseline:explain --gpu h200" "$tree/build/fuseline" explain --gpu h200
[[ "$(readlink "$tree/build/fuseline")" == release/bin/fuseline ]]
expect "fuseline:predict $tree/scenarios/llama2-7b-h100.toml" "$tree/run.sh"
expect "fuseline:" "$tree/build/fuseline"

# By its name alone, without arguments, it is the program and not a first prediction.
fresh
expect "fuseline-predict:predict" "$tree/run.sh" predict
expect "fuseline:" "$tree/build/fuseline"

# The whole program at once.
fresh
expect "fuseline:lab list" "$tree/run.sh" lab list
[[ ! -e "$tree/build/release/bin/fuseline-predict" ]]

# A build that fails shows its log, and nothing is started.
touch "$tree/broken"
if said="$("$tree/run.sh" lab list 2>"$work/messages")"; then exit 1; fi
[[ -z "$said" ]] && grep -q "building fuseline" "$work/messages" && grep -q "the build failed" "$work/messages"
