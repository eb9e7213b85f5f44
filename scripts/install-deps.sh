#!/usr/bin/env bash
# Installs the Debian packages that fuseline needs and that are not there yet. Does nothing, and
# needs neither root nor network, when all are there. Exit status 3: packages are missing and
# cannot be installed from here.
#   --with-tests  what the tests take too
#   --with-gui    the window: fuseline-gui is built where these are
#   --with-clang  the second compiler and clang-tidy
#   --with-python the Python module: it is built where these are
#   --with-mpi    sweeps on several processes: they are built in where these are
#   --with-site   the site of the documents (scripts/site.sh)
set -euo pipefail

run_packages=(
  g++ cmake ninja-build
  libboost-graph-dev libtomlplusplus-dev nlohmann-json3-dev libcli11-dev libfmt-dev libeigen3-dev
  libopenblas-dev libisl-dev libzip-dev zlib1g-dev libsqlite3-dev
)
test_packages=(libgtest-dev libgmock-dev libbenchmark-dev python3 ccache lld bubblewrap)
gui_packages=(qtbase5-dev libqt5svg5-dev libqcustomplot-dev libjemalloc-dev graphviz
  fonts-dejavu-core)
clang_packages=(clang libomp-dev clang-tidy-14)
python_packages=(python3 python3-dev pybind11-dev)
mpi_packages=(libopenmpi-dev openmpi-bin)
site_packages=(mkdocs)

packages=("${run_packages[@]}")
for option in "$@"; do
  case "$option" in
    --with-tests) packages+=("${test_packages[@]}") ;;
    --with-gui) packages+=("${gui_packages[@]}") ;;
    --with-clang) packages+=("${clang_packages[@]}") ;;
    --with-python) packages+=("${python_packages[@]}") ;;
    --with-mpi) packages+=("${mpi_packages[@]}") ;;
    --with-site) packages+=("${site_packages[@]}") ;;
    *)
      echo "install-deps: there is no option '$option'; allowed: --with-tests, --with-gui," \
        "--with-clang, --with-python, --with-mpi, --with-site" >&2
      exit 2
      ;;
  esac
done

if ! command -v dpkg-query >/dev/null 2>&1; then
  echo "install-deps: not a Debian system; the build needs the equivalents of: ${packages[*]}" >&2
  exit 0
fi

missing=()
for package in "${packages[@]}"; do
  # shellcheck disable=SC2016  # ${Status} is dpkg-query's own field
  status="$(dpkg-query -W -f '${Status}' "$package" 2>/dev/null || true)"
  if [[ "$status" != "install ok installed" ]]; then
    missing+=("$package")
  fi
done
if [[ ${#missing[@]} -eq 0 ]]; then
  exit 0
fi

as_root=()
if [[ "$(id -u)" -ne 0 ]]; then
  if ! command -v sudo >/dev/null 2>&1; then
    echo "install-deps: missing packages, and neither root nor sudo to install them. As root, run:" >&2
    echo "  apt-get update && apt-get install --no-install-recommends ${missing[*]}" >&2
    exit 3
  fi
  as_root=(sudo)
fi

echo "install-deps: installing ${missing[*]}" >&2
# The "${a[@]+...}" form lets an empty array pass under set -u on every bash.
if ! ${as_root[@]+"${as_root[@]}"} apt-get update -q >&2 ||
  ! ${as_root[@]+"${as_root[@]}"} env DEBIAN_FRONTEND=noninteractive \
    apt-get install -q -y --no-install-recommends "${missing[@]}" >&2; then
  echo "install-deps: could not install: ${missing[*]}" >&2
  exit 3
fi
