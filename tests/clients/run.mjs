// See run.sh. usage: node run.mjs PROGRAMS CLIS SCRATCH
import { execFile, execFileSync, spawn } from 'node:child_process';
import { mkdirSync, readFileSync, readdirSync, writeFileSync, openSync, existsSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { startModel } from './model.mjs';

const [programs, clis, scratch] = process.argv.slice(2);
const home = join(scratch, 'home'), repo = join(scratch, 'repo'), state = join(scratch, 'state');
const vault = join(scratch, 'vault'), config = join(scratch, 'config.toml');
const model = await startModel();

for (const directory of [join(home, '.claude'), join(home, '.codex'), repo, join(scratch, 'run')]) mkdirSync(directory, { recursive: true });
const git = (...words) => execFileSync('git', ['-C', repo, ...words], { encoding: 'utf8' }).trim();
git('init', '-q', '-b', 'main');
git('-c', 'user.name=dev', '-c', 'user.email=dev@example.com', 'commit', '-q', '--allow-empty', '-m', 'Start');
writeFileSync(join(home, '.codex/config.toml'), `model = "gpt-5.4"
model_provider = "fake"
check_for_update_on_startup = false
[analytics]
enabled = false
[model_providers.fake]
name = "fake"
base_url = "${model.url}/v1"
wire_api = "responses"
env_key = "FAKE_KEY"
`);
// Long enough that a session is seen alive, short enough to wait for.
writeFileSync(config, '[sessions]\nidle_after = "4s"\nend_grace = "4s"\n');

const ours = { HOME: home, PATH: process.env.PATH, XDG_RUNTIME_DIR: join(scratch, 'run'), MAJORDOMUS_STATE_DIR: state,
  MAJORDOMUS_CONFIG: config };
writeFileSync(config, readFileSync(config, 'utf8') + `[vault]\npath = "${vault}"\n`);
const theirs = { HOME: home, PATH: process.env.PATH, DISABLE_TELEMETRY: '1', DISABLE_AUTOUPDATER: '1', DISABLE_ERROR_REPORTING: '1',
  CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1', ANTHROPIC_BASE_URL: model.url, ANTHROPIC_API_KEY: 'sk-dummy', FAKE_KEY: 'x' };

const run = (program, words) => new Promise((resolve, reject) => {
  const child = execFile(join(clis, program), words, { cwd: repo, env: theirs, timeout: 60_000, maxBuffer: 1 << 26 },
    (error, stdout, stderr) => error ? reject(new Error(`${program} ${words[0]}: ${error.message}\n${stderr}`)) : resolve(stdout));
  child.stdin.end();
});
const claude = async (...words) => JSON.parse(await run('claude', ['-p', ...words, '--allowedTools', 'Bash', '--output-format', 'json'])).session_id;
const codex = (...words) => run('codex', ['exec', '--skip-git-repo-check', '-s', 'danger-full-access', ...words]);
const ctl = (...words) => JSON.parse(execFileSync(join(programs, 'majordomusctl'), [...words, '--json'], { env: ours, encoding: 'utf8' }));

let failures = 0;
const check = (what, holds, seen) => {
  console.log(`${holds ? 'ok    ' : 'FAILED'} ${what}${holds ? '' : `: ${JSON.stringify(seen)}`}`);
  if (!holds) failures += 1;
};
const until = async (what, look) => {
  for (let n = 0; n < 300; n += 1) {
    try { const found = look(); if (found) return found; } catch { /* not there yet */ }
    await sleep(100);
  }
  throw new Error(`waited in vain until ${what}`);
};
const session = (id) => ctl('sessions').find((one) => one.id === id);
const envelope = (tool, id, n) => join(state, 'sessions', tool, id, `${n}.json`);
const note = (id) => { const path = join(vault, 'sessions', `session-${id}.md`); return existsSync(path) ? readFileSync(path, 'utf8') : ''; };

const log = openSync(join(scratch, 'daemon.log'), 'w');
const daemon = spawn(join(programs, 'majordomusd'), [], { env: ours, stdio: ['ignore', log, log] });
try {
  await until('the daemon runs', () => ctl('status').daemon === 'running');

  const first = await claude('Create main.rs and commit it');
  const alive = await until('the session is seen', () => session(first));
  check('a running Claude Code session is shown live', alive.state === 'open', alive);
  const head = git('rev-parse', 'HEAD');
  await until('the first note', () => note(first));
  const one = session(first);
  check('its prompt is the one that was given', one.prompts === 1 && one.title === 'Create main.rs and commit it', one);
  check('its commit is the one that was made', one.commits.length === 1 && head.startsWith(one.commits[0]), one.commits);
  const record = readFileSync(envelope('claude', first, 1));
  const git1 = JSON.parse(record).git;
  check('the end head was observed', git1.end.head.value === head && git1.end.head.provenance === 'observed', git1.end.head);
  check('the note names the commit', note(first).includes(one.commits[0]), note(first));

  await claude('Write another line and commit it, please', '--resume', first);
  await until('the second envelope', () => existsSync(envelope('claude', first, 2)));
  await until('the update', () => note(first).includes('Session resumed.'));
  check('a resumed session has two prompts and two commits', session(first).prompts === 2 && session(first).commits.length === 2, session(first));
  check('the first envelope is byte-identical', readFileSync(envelope('claude', first, 1)).equals(record), 'changed');

  const fork = await claude('Let us postpone the retry logic until next week', '--resume', first, '--fork-session');
  await until('the fork is closed', () => existsSync(envelope('claude', fork, 1)));
  const forked = session(fork);
  check('the fork counts only its own part', forked.prompts === 1 && forked.commits.length === 0, forked);
  check('the fork names its parent', forked.forked_from === first, forked.forked_from);
  check('the parent is unchanged by the fork', session(first).prompts === 2, session(first));

  await codex('Create main.rs and commit it');
  const thread = await until('the Codex session is seen', () => ctl('sessions').find((found) => found.tool === 'codex'));
  const codexHead = git('rev-parse', 'HEAD');
  await until('the Codex note', () => note(thread.id));
  check('the Codex prompt and commit are right', session(thread.id).prompts === 1 &&
    codexHead.startsWith(session(thread.id).commits[0] ?? 'none'), session(thread.id));
  await codex('resume', '--last', 'Let us postpone the retry logic until next week');
  await until('the second Codex envelope', () => existsSync(envelope('codex', thread.id, 2)));
  check('the resumed Codex session has two prompts', session(thread.id).prompts === 2, session(thread.id));

  const before = ctl('sessions').length;
  await codex('--ephemeral', 'hi');
  await run('claude', ['-p', 'hi', '--no-session-persistence', '--setting-sources', '', '--tools', '', '--strict-mcp-config']);
  check('ephemeral runs leave no session', ctl('sessions').length === before, ctl('sessions').length);

  const status = ctl('status');
  check('every line was read and every shape is known', status.ledger.unreadable === 0 && status.ledger.unknown === 0, status.ledger);
  const notes = readdirSync(join(vault, 'sessions'));
  check('each session that changed something has one note', notes.length === 2, notes);
} catch (error) {
  console.log(`FAILED ${error.message}\n${readFileSync(join(scratch, 'daemon.log'), 'utf8')}`);
  failures += 1;
} finally {
  daemon.kill('SIGTERM');
  model.stop();
}
console.log(failures === 0 ? 'real clients: passed' : `real clients: ${failures} failed`);
process.exit(failures === 0 ? 0 : 1);
