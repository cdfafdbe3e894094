#!/usr/bin/env bash
# Runs the agent with clients and servers that others wrote: run.sh [path/to/waxlog]
#
# Installs them, pinned, into a cache outside of the repository, and prints one line a check. The last line is
# `N passed, N failed`; the exit code is 1 if a check failed. Without the tools it needs it says so and exits 0.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

skip() { echo "interop: skipped, $1"; exit 0; }

command -v node >/dev/null || skip "no node"
node -e 'process.exit(parseInt(process.versions.node) >= 20 ? 0 : 1)' || skip "node is older than 20"
command -v npm >/dev/null || skip "no npm"
command -v python3 >/dev/null || skip "no python3"
python3 -c 'import sys; sys.exit(sys.version_info < (3, 10))' || skip "python3 is older than 3.10"
python3 -c 'import ensurepip, venv' 2>/dev/null || skip "python3 has no venv"
command -v git >/dev/null || skip "no git"
[ -r /proc/self/environ ] || skip "no /proc, by which processes are found"

repository=$(cd "$here/../../.." && pwd)
built=${CARGO_TARGET_DIR:-$repository/target}/debug
if [ $# -gt 0 ]; then
  waxlog=$(realpath -- "$1")
else
  (cd "$repository" && cargo build --quiet -p waxlog)
  waxlog=$built/waxlog
fi
(cd "$repository" && cargo build --quiet -p waxlog-nostr --example talk)
[ -x "$waxlog" ] || { echo "interop: $waxlog is no program" >&2; exit 1; }

# The name says what is installed, so that a changed pin or another node or python gets a folder of its own.
key=$({ cat "$here"/package*.json "$here/requirements.txt"; node --version; python3 --version; } | sha256sum | cut -c1-16)
cache=${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/waxlog-interop/$key
mkdir -p "$cache"

# Chained: where a caller asks whether it worked, `set -e` would not stop at the first step that did not.
install_all() {
  cp "$here"/package*.json "$cache" &&
    # No package needs its install script to run, and none gets to run one.
    (cd "$cache" && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error) &&
    python3 -m venv --clear "$cache/python" &&
    # Every package is pinned; pip has nothing to resolve.
    "$cache/python/bin/pip" install --quiet --disable-pip-version-check --no-deps -r "$here/requirements.txt" &&
    "$cache/python/bin/pip" check --quiet --disable-pip-version-check &&
    touch "$cache/complete"
}

# Two runs at once must not install over each other.
exec 9>"$cache/lock"
flock 9
if [ ! -e "$cache/complete" ]; then
  echo "interop: installing into $cache"
  install_all || { echo "interop: the installation failed" >&2; exit 1; }
fi
flock -u 9

# Modules are looked for above the file that imports them, so a copy runs beside what was installed.
copy=$(mktemp -d "$cache/run.XXXXXX")
scratch=$(mktemp -d)
trap 'rm -rf "$copy" "$scratch"' EXIT
cp -R "$here"/*.mjs "$here/lib" "$here/python" "$copy"

export WAXLOG_BINARY=$waxlog
export TALK_BINARY=$built/examples/talk
export PYTHON_BIN=$cache/python/bin
export PYTHONDONTWRITEBYTECODE=1
export TMPDIR=$scratch
report=$scratch/report

# A part that ends early fails as a whole, whatever it has said before. When it is stopped, its agents see the
# end of their stdin and end themselves and their servers.
part() {
  local code=0
  timeout 58 "$@" 2>&1 | tee -a "$report" || code=${PIPESTATUS[0]}
  if [ "$code" -ne 0 ] && [ "$code" -ne 1 ]; then
    echo "FAIL ${2##*/} ended with code $code" | tee -a "$report"
  elif ! tail -n 1 "$report" | grep -q '^end '; then
    echo "FAIL ${2##*/} did not come to its end" | tee -a "$report"
  fi
}

part node "$copy/servers.mjs" 9>&-
part node "$copy/client.mjs" 9>&-
part node "$copy/relay.mjs" 9>&-
part node "$copy/talk.mjs" 9>&-
part "$PYTHON_BIN/python" "$copy/python/client.py" 9>&-

passed=$(grep -c '^ok ' "$report" || true)
failed=$(grep -c '^FAIL ' "$report" || true)
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
