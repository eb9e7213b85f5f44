#!/usr/bin/env bash
# Measures the blocks of scenarios/measurements/h200-fuseline on the GPU of this machine, some of them
# in turns with torch.compile, where python3 has PyTorch.
#
#   scripts/measure-blocks.sh OUT [MINUTES]
#
# OUT/blocks is a measurement folder for `fuseline compare`, OUT/*.log what was printed. After MINUTES
# (60) no further block is begun. $FUSELINE is the program (build/fuseline), $FUSELINE_CHECK the size
# of the check (auto), $FUSELINE_RIVAL_COMMAND what runs the rivals (python3 with
# cuda/rivals/pytorch_blocks.py).
set -euo pipefail

# shellcheck source=scripts/measuring.sh
source "$(dirname "${BASH_SOURCE[0]}")/measuring.sh"
begin_measuring 60 "$@"
policies=unfused,per-operator,flash-attention,coda

measure() {
  if ((SECONDS > seconds)); then
    echo "not begun: $*"
    failed=1
    return
  fi
  local log
  log="$(tr -cs 'a-z0-9\n' '-' <<<"block$*").log"
  local extend=() rival=()
  [[ -d blocks ]] && extend=(--extend)
  if [[ -n ${rounds:-} ]]; then
    rival=(${rivals[@]+"${rivals[@]}"} --rounds "$rounds")
  fi
  echo "== $* ($SECONDS s)"
  # The "${a[@]+...}" form lets an empty array pass under set -u on every bash.
  "$fuseline" measure --policy "$policies" "$@" --check "${FUSELINE_CHECK:-auto}" --kernels \
    --output blocks ${extend[@]+"${extend[@]}"} ${rival[@]+"${rival[@]}"} >"$log" 2>&1 || failed=1
  grep -aE '^(unfused|per-operator|flash-attention|coda|torch-compile|fuseline:|note: rival)' "$log" ||
    true
}

# The blocks of the tables in docs/measuring.md come first.
policies+=,torch-compile rounds=4 measure --model llama2-7b --seq 2048
rounds=4 measure --model llama2-7b --phase train --seq 2048
rounds=2 measure --model llama2-7b --phase decode --context 2048
rounds=2 measure --model llama2-7b --phase decode --batch 16 --context 2048
rounds=2 measure --model llama2-70b --seq 2048
rounds=2 measure --model gpt2-xl --seq 2048
for model in gpt2-xl llama2-70b; do
  measure --model $model --phase train --seq 2048
  measure --model $model --phase decode --context 2048
  measure --model $model --phase decode --batch 16 --context 2048
done
for model in llama2-7b gpt2-xl llama2-70b; do
  measure --model $model --batch 4 --seq 2048
done
echo "$SECONDS s"
exit $failed
