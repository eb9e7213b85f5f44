#!/usr/bin/env bash
# Measures the blocks of scenarios/measurements/h200-fuseline on the GPU of this machine, and PyTorch
# on two of them before and after, where python3 has it.
#
#   scripts/measure-blocks.sh OUT [MINUTES]
#
# OUT/blocks is a measurement folder for `fuseline compare`, OUT/rival-*.csv are PyTorch's times,
# OUT/*.log what was printed. After MINUTES (60) no further block is begun. $FUSELINE is the program
# (build/fuseline), $FUSELINE_CHECK the size of the check (auto).
set -euo pipefail

if [[ $# -lt 1 || $1 == -* ]]; then
  sed -n '2,9s/^# \{0,1\}//p' "$0" >&2
  exit 2
fi
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
out="$1"
seconds=$((${2:-60} * 60))
fuseline="${FUSELINE:-$root/build/fuseline}"
policies=unfused,per-operator,flash-attention,coda
mkdir -p "$out"
cd "$out"
failed=0

measure() {
  if ((SECONDS > seconds)); then
    echo "not begun: $*"
    failed=1
    return
  fi
  local log
  log="$(tr -cs 'a-z0-9\n' '-' <<<"$*").log"
  local extend=()
  [[ -d blocks ]] && extend=(--extend)
  echo "== $* ($SECONDS s)"
  "$fuseline" measure --policy "$policies" "$@" --check "${FUSELINE_CHECK:-auto}" --kernels \
    --output blocks "${extend[@]}" >"$log" 2>&1 || failed=1
  grep -aE '^(unfused|per-operator|flash-attention|coda|torch-compile|fuseline:)' "$log" || true
}

rival() {
  if ! python3 -c 'import torch' 2>/dev/null; then
    echo "no PyTorch: rivals left out"
    return
  fi
  echo "== PyTorch, $1 ($SECONDS s)"
  env -u LD_LIBRARY_PATH python3 "$root/cuda/rivals/pytorch_blocks.py" --models llama2-7b \
    --executions torch-compile --phases forward,train --shapes 1x2048 --out "rival-$1.csv" \
    >"rival-$1.log" 2>&1 || failed=1
  tail -n 2 "rival-$1.csv" || true
}

rival before
policies+=,torch-compile measure --model llama2-7b --seq 2048
measure --model llama2-7b --phase train --seq 2048
rival after
for model in gpt2-xl llama2-70b; do
  measure --model $model --seq 2048
  measure --model $model --phase train --seq 2048
done
for model in llama2-7b gpt2-xl llama2-70b; do
  measure --model $model --phase decode --context 2048
  measure --model $model --phase decode --batch 16 --context 2048
  measure --model $model --batch 4 --seq 2048
done
echo "$SECONDS s"
exit $failed
