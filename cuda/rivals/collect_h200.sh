#!/usr/bin/env bash
# Measures the PyTorch rivals on one GPU, for calibration and tests. Each stage ends within ten
# minutes and leaves at most eight files in $OUT; give each stage a directory of its own. Clocks and
# limits stay as they are found.
#
#   OUT=results/1 cuda/rivals/collect_h200.sh stage1   GEMMs, attention, streaming, power, blocks
#   OUT=results/2 cuda/rivals/collect_h200.sh stage2   counters per kernel (Nsight Compute), training
set -u
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
stage=${1:-}
case $stage in
  stage1 | stage2) ;;
  *) echo "usage: OUT=DIRECTORY $0 stage1|stage2" >&2; exit 2 ;;
esac
: "${OUT:?set OUT to the directory for the results}"
mkdir -p "$OUT"

limit_total=${RIVAL_SECONDS:-555}   # seconds for the whole stage
python=${PYTHON:-python3}
log=$OUT/log.txt
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export PYTHONUNBUFFERED=1 TORCHINDUCTOR_COMPILE_THREADS=${TORCHINDUCTOR_COMPILE_THREADS:-16}
export TORCHINDUCTOR_CACHE_DIR=${TORCHINDUCTOR_CACHE_DIR:-$work/inductor}
export TRITON_CACHE_DIR=${TRITON_CACHE_DIR:-$work/triton} TMPDIR=$work
SECONDS=0

# step NAME LIMIT COMMAND...: runs the command for at most LIMIT seconds, or what is left. The command
# finds in RIVAL_BUDGET the seconds after which it should start nothing new.
step() {
  local name=$1 limit=$2 left=$((limit_total - SECONDS))
  shift 2
  ((limit > left)) && limit=$left
  if ((limit < 24)); then
    echo "== $name: skipped, $left s left" | tee -a "$log"
    return 1
  fi
  local began=$SECONDS
  echo "== $name: at $began s, limit $limit s" | tee -a "$log"
  RIVAL_BUDGET=$((limit - 12)) timeout -k 3 "$limit" "$@" >>"$log" 2>&1
  local status=$?
  echo "== $name: status $status after $((SECONDS - began)) s" | tee -a "$log"
  return "$status"
}

find_ncu() {
  command -v ncu || ls -d /usr/local/cuda/bin/ncu 2>/dev/null ||
    ls -d /opt/nvidia/nsight-compute/*/ncu 2>/dev/null | sort -V | tail -n 1
}

counters=gpu__time_duration.sum,dram__bytes_read.sum,dram__bytes_write.sum,lts__t_bytes.sum

# profile NAME LIMIT BLOCK,BLOCK...: profiles blocks, appends their kernels to kernels.csv.
profile() {
  local name=$1 limit=$2 blocks=$3
  local raw=$work/$name.csv list=$work/$name.json
  step "counters-$name" "$limit" "$ncu" --profile-from-start off --target-processes application-only \
    --cache-control none --clock-control none --metrics "$counters" --nvtx --csv --page raw \
    --print-units base --log-file "$raw" \
    "$python" "$here/pytorch_blocks.py" --profile --blocks "$blocks" --out "$list"
  if [[ -s $raw ]]; then
    "$python" "$here/ncu_to_kernels.py" "$raw" --blocks "$list" --out "$OUT/kernels.csv" --append \
      2>&1 | tee -a "$log"
    { echo "== $name"; cat "$raw"; } | gzip -c >>"$OUT/ncu_raw.csv.gz"
    # The tool's own messages, without the table.
    grep -v '^"' "$raw" | tail -n 3 >>"$log"
  fi
}

# grid MODEL: the blocks of a model that are profiled.
grid() {
  local model=$1 execution
  for execution in eager composed torch-compile; do
    printf '%s:%s:forward:1x2048,' "$model" "$execution"
    [[ $execution == composed ]] && continue
    printf '%s:%s:decode:1@2048,%s:%s:decode:16@2048,' "$model" "$execution" "$model" "$execution"
  done | sed 's/,$//'
}

stage1() {
  step gemm 190 "$python" "$here/pytorch_gemm.py" --out "$OUT/gemm.csv"
  step attention 75 "$python" "$here/pytorch_attention.py" --out "$OUT/attention.csv"
  step streaming 60 "$python" "$here/pytorch_streaming.py" --out "$OUT/streaming.csv"
  step power 40 "$python" "$here/pytorch_power.py" --out "$OUT/power.csv"
  # The llama2-7b blocks tie this machine to earlier measurements.
  step blocks 400 "$python" "$here/pytorch_blocks.py" --out "$OUT/block.csv" \
    --blocks llama2-7b:eager:forward:1x2048,llama2-7b:eager:decode:1@2048 \
    --models llama3-8b,llama2-13b,tinyllama,gpt2-large --executions eager,composed,torch-compile \
    --phases forward,decode --shapes 1x2048,4x2048,1x512,1x8192 \
    --decode-shapes 1@2048,16@2048,64@2048,8@512,4@8192
}

stage2() {
  ncu=$(find_ncu)
  if [[ -z $ncu ]]; then
    echo "== Nsight Compute (ncu) not found: no counters" | tee -a "$log"
  else
    "$ncu" --version 2>&1 | tail -n 2 >>"$log"
    profile llama3-8b 100 "$(grid llama3-8b)"
    profile gpt2-large 80 "$(grid gpt2-large)"
    profile tinyllama 80 "$(grid tinyllama)"
    profile more 45 gpt2-xl:eager:forward:1x2048,llama2-7b:eager:decode:16@2048
  fi
  step train 160 "$python" "$here/pytorch_blocks.py" --out "$OUT/block_train.csv" \
    --models llama3-8b,llama2-13b,tinyllama,gpt2-large --executions eager,composed,torch-compile \
    --phases train --shapes 1x2048,4x2048
  if [[ -n $ncu ]]; then
    local model execution blocks
    for model in tinyllama gpt2-xl; do
      blocks=
      for execution in eager composed torch-compile; do
        blocks+=$model:$execution:train:1x2048,
      done
      profile "train-$model" 80 "${blocks%,}"
    done
  fi
}

: >"$log"
[[ $stage == stage2 ]] && rm -f "$OUT/kernels.csv" "$OUT/ncu_raw.csv.gz"
"$python" "$here/rival_timing.py" meta "$OUT/meta.json" >>"$log" 2>&1
"$stage"
# A last look at the clocks, warm.
nvidia-smi --query-gpu=pstate,clocks.sm,clocks.mem,power.draw,temperature.gpu --format=csv \
  2>/dev/null | tee -a "$log"
echo "== $stage ended after $SECONDS s" | tee -a "$log"
grep -n FAILED "$log" | head -n 40
for file in "$OUT"/*.csv; do
  [[ -e $file ]] && wc -l "$file"
done
exit 0
