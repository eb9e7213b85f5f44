#!/usr/bin/env bash
# Draws the pictures of README.md and docs/gui.md: the window as it opens, and its views. Needs no
# display; takes Graphviz and the font of Debian's package fonts-dejavu-core.
# With GUI_ROBOT (built with the tests) also what the recorded uses in tests/gui/steps show.
# usage: scripts/gui-pictures.sh FUSELINE_GUI [FOLDER [GUI_ROBOT]]
set -euo pipefail

if [[ $# -lt 1 || $# -gt 3 ]]; then
  echo "usage: scripts/gui-pictures.sh FUSELINE_GUI [FOLDER [GUI_ROBOT]]" >&2
  exit 2
fi
program="$(realpath "$1")"
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
folder="$(realpath -m "${2:-$root/docs/pictures}")"
robot="${3:+$(realpath "$3")}"
cd "$root"
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
mkdir -p "$folder"

# draw VIEW[,VIEW...] WIDTHxHEIGHT [NAME-SUFFIX [OPTIONS]]
draw() {
  local views="$1" size="$2" suffix="${3:-}" view
  shift $(($# < 3 ? $# : 3))
  rm -rf "$work/out"
  "$program" --export "$work/out" --views "$views" --size "$size" "$@" >"$work/log" || {
    cat "$work/log" >&2
    return 1
  }
  for view in ${views//,/ }; do
    mv "$work/out/$view.png" "$folder/$view$suffix.png"
  done
}

draw window 1240x800 "" --light
draw window 1240x800 -dark --dark
draw graph 600x820 "" --light --run coda
draw graphs 1000x820 "" --light
draw block 900x640 "" --light
draw code 900x900 "" --light --run coda --kernel gate_up
draw layers 1240x640 "" --light --run coda
draw plan 900x900 "" --light --run coda
draw motion 1000x640 "" --light --run coda --kernel gate_up
draw motion 1240x640 -two --light --run coda --beside torch-compile
cat >"$work/traced.toml" <<'SESSION'
title = "A traced block"
model = "tinyllama"
gpu = "h200"
phase = "decode"
context = 2048
policies = ["eager", "torch-compile"]
SESSION
draw trace 1000x560 "" --light "$work/traced.toml" --trace docs/torch-trace.json
draw traffic,waterfall,memory,timeline,roofline-hbm 900x500 "" --light
draw validation,sweep 1180x520 "" --light
draw whole-model,serving,causes 1000x560 "" --light
draw missions 900x560 "" --light

[[ -n "$robot" ]] || exit 0
for steps in tests/gui/steps/*.steps; do
  rm -rf "$work/state" "$work/shots"
  mkdir -p "$work/state" "$work/shots"
  XDG_STATE_HOME="$work/state" QT_QPA_PLATFORM=offscreen "$robot" --out "$work/shots" "$steps"
  for shot in "$work"/shots/*.png; do
    mv "$shot" "$folder/use-$(basename "$shot")"
  done
done
