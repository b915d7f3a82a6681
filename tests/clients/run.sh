#!/usr/bin/env bash
# Drives the real Claude Code and Codex CLIs, offline, against a scripted model on loopback, with majordomusd
# watching a scratch home, and checks what the daemon makes of their sessions.
# usage: tests/clients/run.sh DIRECTORY_OF_THE_PROGRAMS   (target/release or target/debug)
# npm fetches the two CLIs once, into target/clients. Where npm is missing, or cannot fetch, nothing is checked.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
programs=$(cd "${1:?usage: tests/clients/run.sh DIRECTORY_OF_THE_PROGRAMS}" && pwd)
npm_dir=$here/../../target/clients
if ! command -v npm >/dev/null || ! command -v node >/dev/null || ! command -v git >/dev/null; then
  echo "real clients: skipped: npm, node or git is missing"
  exit 0
fi
mkdir -p "$npm_dir"
if [ ! -x "$npm_dir/node_modules/.bin/claude" ] || [ ! -x "$npm_dir/node_modules/.bin/codex" ]; then
  if ! timeout 300 npm install --prefix "$npm_dir" --no-audit --no-fund --silent \
      @anthropic-ai/claude-code @openai/codex; then
    echo "real clients: skipped: npm cannot fetch the CLIs"
    exit 0
  fi
fi
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
timeout 180 node "$here/run.mjs" "$programs" "$npm_dir/node_modules/.bin" "$scratch"
