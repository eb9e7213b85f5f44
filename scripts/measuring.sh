# Read by the scripts that measure lists of blocks: `source measuring.sh; begin_measuring DEFAULT "$@"`.
# It reads OUT and MINUTES, which every one of them takes, enters OUT, and sets
#   fuseline  the program              rivals  the options that time torch.compile in turns
#   seconds   after which no further block is begun      failed=0, the script's exit status
begin_measuring() {
  local minutes="$1" root
  shift
  if [[ $# -lt 1 || $1 == -* ]]; then
    # What the script says of itself: its comment, behind the line that names the shell.
    awk 'NR > 1 { if (!/^#/) exit; sub(/^# ?/, ""); print }' "$0" >&2
    exit 2
  fi
  minutes="${2:-$minutes}"
  if [[ ! $minutes =~ ^[0-9]+$ ]]; then
    echo "$0: MINUTES: '$minutes' is no whole number" >&2
    exit 2
  fi
  root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
  seconds=$((minutes * 60))
  fuseline="${FUSELINE:-$root/build/fuseline}"
  rivals=(--rivals torch-compile)
  if [[ -n ${FUSELINE_RIVAL_COMMAND:-} ]]; then
    rivals+=(--rival-command "$FUSELINE_RIVAL_COMMAND")
  elif ! python3 -c 'import torch' 2>/dev/null; then
    echo "python3 has no PyTorch: rivals left out"
    rivals=()
  fi
  failed=0
  mkdir -p "$1"
  cd "$1"
}
