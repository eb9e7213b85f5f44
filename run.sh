#!/usr/bin/env bash
# Builds what is asked for (installing what is missing) and runs it. Without arguments it predicts the
# shipped LLaMA-2-7B scenario on an H100; with arguments it is `fuseline ARGUMENTS`, started in the
# current folder. Only the tool writes to stdout; the build goes to build/run.log.
# A prediction takes less than half of the program: until another command is asked for, `predict` alone
# is built. build/fuseline is this script until then, so that every command works from the start.
set -euo pipefail
root="$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")" && pwd)"

"$root/scripts/install-deps.sh" </dev/null
mkdir -p "$root/build"
log="$root/build/run.log"
if [[ $# -eq 0 && "$(basename "$0")" == run.sh ]]; then
  set -- predict "$root/scenarios/llama2-7b-h100.toml"
fi

program=fuseline
if [[ "${1:-}" == predict && ! -x "$root/build/release/bin/fuseline" ]]; then program=fuseline-predict; fi
binary="$root/build/release/bin/$program"

build() (
  cd "$root"
  cmake --preset release && cmake --build --preset release --target "$program"
)

if [[ ! -x "$binary" ]]; then
  echo "building $program (a few minutes the first time) ..." >&2
fi
if ! build >"$log" 2>&1 </dev/null; then
  cat "$log" >&2
  echo "run.sh: the build failed; the log above is $log" >&2
  exit 1
fi
if [[ "$program" == fuseline ]]; then
  ln -sfn release/bin/fuseline "$root/build/fuseline"
else
  ln -sfn ../run.sh "$root/build/fuseline"
fi
exec "$binary" "$@"
