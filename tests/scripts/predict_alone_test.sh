#!/usr/bin/env bash
# predict_alone_test.sh FOLDER: the program fuseline-predict, which ./run.sh builds for a first prediction,
# says what `fuseline predict` says. FOLDER has both programs.
set -euo pipefail
programs="$1"

same() {
  local whole alone
  if ! whole="$("$programs/fuseline" predict "$@" 2>&1)"; then
    echo "fuseline predict $*: $whole" >&2
    exit 1
  fi
  alone="$("$programs/fuseline-predict" predict "$@" 2>&1)"
  if [[ -z "$whole" || "$whole" != "$alone" ]]; then
    echo "the two programs differ: predict $*" >&2
    diff <(echo "$whole") <(echo "$alone") >&2 || true
    exit 1
  fi
}

same
same --help
same --model tinyllama --gpu h200 --phase decode --batch 4 --context 512 --format json
same --model gpt2-large --phase train --seq 256 --kernels --policy eager,coda
same --model mamba2-2.7b --gpu h100 --seq 512 --format csv

# What it does not have, it refuses.
status=0
"$programs/fuseline-predict" verify --model tinyllama >/dev/null 2>&1 || status=$?
if [[ "$status" != 2 ]]; then
  echo "fuseline-predict verify ended with $status" >&2
  exit 1
fi
