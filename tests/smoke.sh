#!/usr/bin/env bash
# Runs the built programs once as a new user would, on a scratch home with one session of each tool.
# usage: tests/smoke.sh DIRECTORY_OF_THE_PROGRAMS   (target/release or target/debug)
set -euo pipefail
programs=$(cd "${1:?usage: tests/smoke.sh DIRECTORY_OF_THE_PROGRAMS}" && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
fail() { echo "smoke: $*" >&2; exit 1; }
run() { env -i PATH="$PATH" HOME="$scratch/home" "$programs/$@"; }

claude=$scratch/home/.claude/projects/-w-app/4f2c1b7e-1111-4a4a-9a9a-000000000001.jsonl
codex=$scratch/home/.codex/sessions/2026/03/01/rollout-2026-03-01T10-00-00-4f2c1b7e-2222-4a4a-9a9a-000000000002.jsonl
mkdir -p "$(dirname "$claude")" "$(dirname "$codex")"
cat > "$claude" <<'J'
{"parentUuid":null,"isSidechain":false,"cwd":"/w/app","sessionId":"4f2c1b7e-1111-4a4a-9a9a-000000000001","version":"2.1.200","gitBranch":"main","type":"user","message":{"role":"user","content":"Make the cache bounded"},"uuid":"a0000000-0000-4000-8000-000000000001","timestamp":"2026-03-01T10:00:00.000Z"}
{"parentUuid":"a0000000-0000-4000-8000-000000000001","isSidechain":false,"cwd":"/w/app","sessionId":"4f2c1b7e-1111-4a4a-9a9a-000000000001","version":"2.1.200","gitBranch":"main","type":"assistant","message":{"id":"msg_1","role":"assistant","model":"m","content":[{"type":"tool_use","id":"toolu_1","name":"Edit","input":{"file_path":"/w/app/cache.rs","old_string":"a","new_string":"b"}}]},"uuid":"a0000000-0000-4000-8000-000000000002","timestamp":"2026-03-01T10:00:05.000Z"}
{"parentUuid":"a0000000-0000-4000-8000-000000000002","isSidechain":false,"cwd":"/w/app","sessionId":"4f2c1b7e-1111-4a4a-9a9a-000000000001","version":"2.1.200","gitBranch":"main","type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":"ok"}]},"toolUseResult":{"filePath":"/w/app/cache.rs"},"uuid":"a0000000-0000-4000-8000-000000000003","timestamp":"2026-03-01T10:00:06.000Z"}
{"parentUuid":"a0000000-0000-4000-8000-000000000003","isSidechain":false,"cwd":"/w/app","sessionId":"4f2c1b7e-1111-4a4a-9a9a-000000000001","version":"2.1.200","gitBranch":"main","type":"assistant","message":{"id":"msg_2","role":"assistant","model":"m","content":[{"type":"text","text":"The cache now keeps at most 100 entries."}]},"uuid":"a0000000-0000-4000-8000-000000000004","timestamp":"2026-03-01T10:00:09.000Z"}
J
cat > "$codex" <<'J'
{"timestamp":"2026-03-01T10:00:00.000Z","type":"session_meta","payload":{"id":"4f2c1b7e-2222-4a4a-9a9a-000000000002","timestamp":"2026-03-01T10:00:00.000Z","cwd":"/w/svc","originator":"codex_cli_rs","cli_version":"0.104.0","source":"cli"}}
{"timestamp":"2026-03-01T10:00:01.000Z","type":"event_msg","payload":{"type":"user_message","message":"Explain the retry rule","images":[]}}
{"timestamp":"2026-03-01T10:00:04.000Z","type":"response_item","payload":{"type":"message","role":"assistant","content":[{"type":"output_text","text":"It waits twice as long after each failure."}]}}
J

run majordomusd --once 2> "$scratch/log" || { cat "$scratch/log" >&2; fail "--once failed"; }
[ "$(run majordomusctl sessions --json | grep -c '"prompts": 1')" = 2 ] || fail "not two sessions with a prompt each"
notes=$(find "$scratch/home/.local/share/majordomus/vault" -name '*.md' | wc -l)
[ "$notes" = 2 ] || fail "$notes notes instead of 2"
grep -rq 'cache.rs' "$scratch/home/.local/share/majordomus/vault" || fail "no note names the file"
run majordomusctl envelope 4f2c1b7e-1111 | grep -q '"/w/app/cache.rs"' || fail "the envelope does not name the file"
sum=$(find "$scratch/home/.local" -name '*.json' -o -name '*.md' | sort | xargs sha256sum)
run majordomusd --once 2>> "$scratch/log" || fail "the second run failed"
[ "$sum" = "$(find "$scratch/home/.local" -name '*.json' -o -name '*.md' | sort | xargs sha256sum)" ] || fail "the second run changed something"
echo "smoke: passed"
