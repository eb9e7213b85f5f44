#!/usr/bin/env bash
# Starts the window with no arguments, takes a screenshot, fuses an edge with the mouse, takes
# another, and prints the numbers that both show. On an X server without a screen where Debian's
# package xvfb is installed, else without any display.
# usage: scripts/gui-screenshots.sh GUI_ROBOT [FOLDER]      (GUI_ROBOT: built with the tests)
set -euo pipefail

if [[ $# -lt 1 || $# -gt 2 ]]; then
  echo "usage: scripts/gui-screenshots.sh GUI_ROBOT [FOLDER]" >&2
  exit 2
fi
robot="$(realpath "$1")"
folder="$(realpath -m "${2:-.}")"
cd "$(dirname "${BASH_SOURCE[0]}")/.."
mkdir -p "$folder"
state="$(mktemp -d)"
trap 'rm -rf "$state"' EXIT

display=(env QT_QPA_PLATFORM=offscreen)
if command -v xvfb-run >/dev/null 2>&1; then
  display=(xvfb-run --auto-servernum --server-args="-screen 0 1600x1000x24"
    env QT_QPA_PLATFORM=xcb)
fi
XDG_STATE_HOME="$state" "${display[@]}" "$robot" \
  ready "shot=$folder/opened.png" \
  run=eager ready "say=shown at first:" totals \
  "hover=down -> residual2" previewed ready "say=pointing at the edge:" details \
  "click=down -> residual2" ready "say=after the click:" strip totals "shot=$folder/fused.png" \
  "key=Ctrl+Z" ready quit
