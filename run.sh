#!/usr/bin/env bash
# Builds fuseline (installing what is missing) and runs it. Without arguments it predicts the
# shipped LLaMA-2-7B scenario on an H100; with arguments it is `fuseline ARGUMENTS`, started in the
# current folder. Only the tool writes to stdout; the build goes to build/run.log.
set -euo pipefail
root="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"

"$root/scripts/install-deps.sh" </dev/null
mkdir -p "$root/build"
log="$root/build/run.log"
binary="$root/build/release/bin/fuseline"

build() (
  cd "$root"
  cmake --preset release && cmake --build --preset release --target fuseline
)

[[ -x "$binary" ]] || echo "building fuseline (a few minutes the first time) ..." >&2
if ! build >"$log" 2>&1 </dev/null; then
  cat "$log" >&2
  echo "run.sh: the build failed; the log above is $log" >&2
  exit 1
fi
ln -sfn release/bin/fuseline "$root/build/fuseline"

if [[ $# -eq 0 ]]; then
  set -- predict "$root/scenarios/llama2-7b-h100.toml"
fi
exec "$binary" "$@"
