#!/usr/bin/env bash
# cmake --install, a program that finds it with find_package, the manual page, the completions, and
# the Debian package: as a user would try them, away from the source tree.
#   install_test.sh WHAT SOURCE BUILD
#     installed   all but the package
#     package     the package: exit status 77 where dpkg-dev is not installed
set -euo pipefail
what="$1" source="$2" build="$3"
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
unset FUSELINE_DATA
export HOME="$work"

fail() {
  echo "FAILED: $*" >&2
  exit 1
}
step() { echo "-- $*"; }

step "cmake --install"
cmake --install "$build" --prefix "$work/usr" >"$work/install.log" || { cat "$work/install.log"; fail "install"; }
cd "$work"
program="$work/usr/bin/fuseline"
# Only the installed data has this GPU.
sed 's/^name = .*/name = "of-this-test"/' "$source/scenarios/gpus/h200.toml" \
  >"$work/usr/share/fuseline/scenarios/gpus/of-this-test.toml"
[[ -n "$("$program" list gpus --format csv | grep '^of-this-test,')" ]] || fail "the installed data is not what is read"
# Not even a trace of the source tree: another one would be read on another machine.
"$program" predict --model tinyllama --gpu h200 --policy coda --seq 256 --format json >installed.json
"$build/bin/fuseline" predict --model tinyllama --gpu h200 --policy coda --seq 256 --format json >built.json
cmp installed.json built.json || fail "the installed program predicts otherwise"

if [[ "$what" == installed ]]; then

step "find_package"
generator=()
if command -v ninja >/dev/null; then generator=(-G Ninja); fi
cmake -S "$source/examples/embed" -B "$work/embed" ${generator[@]+"${generator[@]}"} \
  -DCMAKE_PREFIX_PATH="$work/usr" >"$work/embed.log" 2>&1 || { cat "$work/embed.log"; fail "find_package"; }
cmake --build "$work/embed" >"$work/embed.log" 2>&1 || { cat "$work/embed.log"; fail "the example does not build"; }
FUSELINE_DATA="$work/usr/share/fuseline/scenarios" "$work/embed/embed" llama2-7b of-this-test | tee embed.out
grep -Eq '^[a-z-]+ [0-9.]+ us$' embed.out || fail "the example prints no prediction"
status=0
FUSELINE_DATA="$work/usr/share/fuseline/scenarios" "$work/embed/embed" lama2-7b h200 2>embed.err || status=$?
[[ "$status" == 2 ]] && grep -q "did you mean 'llama2-7b'" embed.err || { cat embed.err; fail "the error of the example: status $status"; }

step "manual page"
page="$work/usr/share/man/man1/fuseline.1"
for words in 'import trace' 'lab check' '\\-\\-model' 'EXIT STATUS'; do
  grep -q -- "$words" "$page" || fail "the manual page lacks $words"
done
if command -v man >/dev/null && command -v groff >/dev/null; then
  LC_ALL=C.UTF-8 MANROFFSEQ='' MANWIDTH=90 man --warnings -E UTF-8 -l -Tutf8 "$page" >man.txt 2>man.err
  [[ ! -s man.err ]] || { cat man.err; fail "groff warns of the manual page"; }
  grep -q 'fuseline predict' man.txt || fail "the manual page does not show predict"
else
  echo "   groff is not installed: the page was not formatted"
fi

step "completions"
# offer WORDS...: what bash would offer for the last word.
offer() {
  bash -c '
    source "$1"; shift
    COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
    _fuseline
    printf "%s\n" "${COMPREPLY[@]}"' bash "$work/usr/share/bash-completion/completions/fuseline" \
    "$program" "$@"
}
offers() {
  local wanted="$1"
  shift
  [[ -n "$(offer "$@" | grep -x -- "$wanted")" ]] || { offer "$@"; fail "'$*' is not completed with $wanted"; }
}
offers predict pre
offers --policy predict --pol
offers llama2-7b predict --model llama2
offers of-this-test explain --gpu of
offers coda predict --policy co
offers eager,coda predict --policy eager,co
offers decode predict --phase d
offers json gemm --format js
offers trace import t
offers --replace import trace --rep
offers verify program v
offers models list mod
if [[ -n "$(offer gemm --phase '' | grep decode)" ]]; then fail "gemm has no --phase"; fi
# Of every command that the help lists.
"$program" --help | sed -n '/^commands:/,/^$/s/^  \([a-z]*\) .*/\1/p' | while read -r command; do
  [[ "$command" == gui ]] || offers --help "$command" --he
done

echo "installed, found, read and completed"
exit 0
fi

step "Debian package"
if ! command -v dpkg-deb >/dev/null || ! command -v dpkg-shlibdeps >/dev/null; then
  echo "skipped: dpkg-dev is not installed"
  exit 77
fi
cp "$build/CPackConfig.cmake" cpack.cmake
cpack --config cpack.cmake -B "$work/packed" >cpack.log 2>&1 || { cat cpack.log; fail "cpack"; }
package=("$work"/packed/*.deb)
dpkg-deb -I "${package[0]}" | sed -n '/Package/,$p'
dpkg-deb -c "${package[0]}" >contents.txt
for file in usr/bin/fuseline usr/share/fuseline/scenarios/gpus/h200.toml \
  usr/share/fuseline/scenarios/models/llama2-7b.toml usr/share/doc/fuseline/cli.md \
  usr/share/doc/fuseline/copyright usr/share/man/man1/fuseline.1 usr/include/fuseline/model/plan.h \
  usr/share/bash-completion/completions/fuseline; do
  grep -q " \./$file\$" contents.txt || fail "the package lacks $file"
done
grep -q 'libfuseline_sim\.a' contents.txt || fail "the package lacks the libraries"
if grep -E "$build|\.o\$|/CMakeFiles|__pycache__" contents.txt; then fail "the package holds what it should not"; fi
[[ -n "$(dpkg-deb -I "${package[0]}" | grep 'Depends:.*libfmt9')" ]] || fail "the package does not say what it needs"
# As dpkg would unpack it.
dpkg-deb -x "${package[0]}" "$work/root"
"$work/root/usr/bin/fuseline" predict --model tinyllama --gpu h200 --policy coda --seq 256 --format json >packed.json
cmp installed.json packed.json || fail "the packaged program predicts otherwise"
echo "packed"
