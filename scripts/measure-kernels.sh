#!/usr/bin/env bash
# Measures `coda` and `whole-block` in turns with torch.compile, in blocks at sizes that the project had
# not measured when this list was written: 12 decode blocks, 16 forward and train blocks, and the
# decode blocks of `whole-block` (scenarios/measurements/h100-kernels-fuseline).
#
#   scripts/measure-kernels.sh OUT [MINUTES]
#
# OUT/blocks is a measurement folder for `fuseline compare`, OUT/*.log what was printed. After MINUTES
# (8) no further block is begun; a second call with the same OUT goes on where the first one ended. Every
# call measures the first block, so that calls can be compared. $FUSELINE is the program
# (build/fuseline), $FUSELINE_CHECK the size of the check (auto), $FUSELINE_RIVAL_COMMAND what runs the
# rivals (python3 with cuda/rivals/pytorch_blocks.py).
set -euo pipefail

# shellcheck source=scripts/measuring.sh
source "$(dirname "${BASH_SOURCE[0]}")/measuring.sh"
begin_measuring 8 "$@"

run() {
  local log="$1"
  shift
  echo "== $* ($SECONDS s)"
  local ended=0
  "$fuseline" measure "$@" --check "${FUSELINE_CHECK:-auto}" --kernels \
    ${rivals[@]+"${rivals[@]}"} >"$log.log" 2>&1 || ended=$?
  grep -aE '^(whole-block|coda|per-operator|torch-compile|fuseline:|note: rival)' "$log.log" || true
  return "$ended"
}

# A block that an earlier call has measured is left out.
measure() {
  local policies="$1" log extend=()
  shift
  log="$(tr -cs 'a-z0-9\n' '-' <<<"$policies $*")"
  if [[ -e $log.done ]]; then return; fi
  if ((SECONDS > seconds)); then
    echo "not begun: $*"
    failed=1
    return
  fi
  [[ -d blocks ]] && extend=(--extend)
  if run "$log" --policy "$policies" "$@" --output blocks ${extend[@]+"${extend[@]}"}; then
    touch "$log.done"
  else
    failed=1
  fi
}

# The block that all calls share.
call=1
while [[ -e call-$call.log ]]; do call=$((call + 1)); done
run "call-$call" --policy coda --model llama2-7b --seq 1304 --output "call-$call" || failed=1

whole() { measure whole-block,coda --phase decode --context 2048 "$@"; }
whole --model llama2-7b
whole --model llama2-13b
for batch in 1 4 8; do
  whole --model llama3-8b --batch $batch
  whole --model tinyllama --batch $batch
done

decode() { measure coda,per-operator --phase decode "$@"; }
decode --model llama2-7b --batch 3 --context 1700
decode --model llama3-8b --batch 1 --context 27000
decode --model llama2-13b --batch 7 --context 900
decode --model mistral-7b --batch 20 --context 1300
decode --model qwen3-8b --batch 48 --context 700
decode --model tinyllama --batch 100 --context 600
decode --model phi3 --batch 12 --context 2100
decode --model gpt2-xl --batch 40 --context 500
decode --model llama3-8b --batch 128 --context 500
decode --model falcon-7b --batch 5 --context 3000
decode --model gemma2-9b --batch 16 --context 1100
decode --model llama2-70b --batch 2 --context 5000

wide() { measure coda,per-operator "$@"; }
wide --model llama2-7b --seq 1304
wide --model llama3-8b --batch 2 --seq 904
wide --model llama2-13b --seq 2600
wide --model tinyllama --batch 3 --seq 1336
wide --model qwen3-8b --seq 1832
wide --model mistral-7b --seq 3112
wide --model phi3 --seq 1400
wide --model gpt2-xl --batch 2 --seq 776
wide --model bert-large --batch 5 --seq 312
wide --model vit-l --batch 4 --seq 400
wide --model llama3-70b --seq 1096
wide --model llama2-7b --phase train --seq 1192
wide --model tinyllama --phase train --batch 2 --seq 1512
wide --model gpt2-xl --phase train --seq 904
wide --model llama3-8b --phase train --seq 1128
wide --model phi3 --phase train --seq 1096
echo "$SECONDS s"
exit $failed
