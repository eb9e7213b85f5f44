#!/usr/bin/env bash
# Builds the site of docs/ into build/site: tutorial, how-to, explanation, reference. Every link is
# checked. Exit status 1: a link is dead; 3: MkDocs is not here.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

if ! command -v mkdocs >/dev/null 2>&1; then
  echo "site: MkDocs is not installed. On Debian: scripts/install-deps.sh --with-site" >&2
  exit 3
fi
python3 scripts/check_links.py
mkdir -p build
PYTHONDONTWRITEBYTECODE=1 PYTHONPATH="$PWD/scripts${PYTHONPATH:+:$PYTHONPATH}" mkdocs build --clean --quiet
echo "site: open build/site/index.html"
