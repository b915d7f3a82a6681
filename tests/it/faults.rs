//! A bad day: what stands in the way is named in one line with its own exit code, and nothing is lost.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{Claude, Home, Said, ago, said, signal};

const S1: &str = "0b2c9d1e-0001-4000-8000-000000000001";
const S2: &str = "0b2c9d1e-0002-4000-8000-000000000002";

/// One line on standard error, with the exit code, about `needle`.
#[track_caller]
fn refused(said: &Said, code: i32, needle: &str) {
    assert_eq!(said.code, code, "{}", said.stderr);
    assert_eq!(said.stderr.lines().count(), 1, "{}", said.stderr);
    assert!(said.stderr.contains(needle), "{}", said.stderr);
}

fn home_with_a_session() -> Home {
    let home = Home::with_idle_after("20m");
    home.claude(S1).at(&ago(7_200)).prompt("One").edit("/w/app/a.rs").answer("Done.");
    home
}

/// Every command that reads the store.
const READING: [&[&str]; 6] = [
    &["status"],
    &["sessions"],
    &["show", "last"],
    &["envelope", "last"],
    &["notes"],
    &["draft", "last"],
];

#[test]
fn a_damaged_ledger_is_exit_7_and_the_remedy_works() {
    let home = home_with_a_session();
    home.once().ok();
    let ledger = home.state().join("ledger.db");
    std::fs::write(&ledger, [0x5a; 9_000]).expect("written");
    for command in READING {
        let mut with_json = command.to_vec();
        with_json.push("--json");
        refused(&home.ctl(command), 7, "ledger.db");
        refused(&home.ctl(&with_json), 7, "ledger.db");
    }
    refused(&home.once(), 7, "move ledger.db* out of");
    std::fs::remove_file(&ledger).expect("removed");
    home.once().ok();
    assert_eq!(home.session(S1)["prompts"], 1);
    assert_eq!((home.envelopes().len(), home.notes().len()), (1, 1));
}

#[test]
fn a_ledger_of_a_newer_version_is_exit_9_and_stays_as_it_is() {
    let home = home_with_a_session();
    home.once().ok();
    let ledger = home.state().join("ledger.db");
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        use sqlx::Connection as _;
        let address = format!("sqlite://{}", ledger.display());
        let mut database = sqlx::SqliteConnection::connect(&address).await.expect("opened");
        let row = "INSERT INTO _sqlx_migrations VALUES (9999, 'future', '2030-01-01', 1, x'00', 1)";
        sqlx::query(row).execute(&mut database).await.expect("written");
        database.close().await.expect("closed");
    });
    let before = std::fs::read(&ledger).expect("read");
    for command in READING {
        refused(&home.ctl(command), 9, "newer version");
    }
    refused(&home.once(), 9, "newer version");
    assert_eq!(std::fs::read(&ledger).expect("read"), before);
}

#[test]
fn a_wrong_command_line_is_exit_2_and_one_line() {
    let home = Home::new();
    for arguments in [
        &["frobnicate"][..],
        &["show"],
        &["sessions", "--tool", "emacs"],
        &["close"],
        &["--json", "status", "--loud"],
        &[],
    ] {
        refused(&home.ctl(arguments), 2, "majordomusctl --help");
    }
    for arguments in [&["--loud"][..], &["--once", "--check"], &["--log-format", "xml"]] {
        refused(&said(home.daemon_command().args(arguments)), 2, "majordomusd --help");
    }
}

#[test]
fn the_daemon_refuses_every_fault_of_the_configuration_with_a_line_each() {
    let home = Home::new().config(
        "[notes]\ndrafter = \"anthropic\"\nbase_url = \"x\"\n[git]\ntimeout = \"0s\"\n[redact]\nextra = [\"(\"]\n",
    );
    let checked = home.ctl(&["config", "check"]);
    assert_eq!((checked.code, checked.stderr.lines().count()), (5, 4), "{}", checked.stderr);
    let check = said(home.daemon_command().arg("--check"));
    for daemon in [home.once(), check] {
        assert_eq!(daemon.code, 5, "{}", daemon.stderr);
        assert_eq!(daemon.stderr.lines().count(), 4, "{}", daemon.stderr);
    }
    assert!(!home.state().exists(), "nothing was begun");
}

#[test]
fn what_is_in_the_way_of_a_directory_is_named_by_the_check_too() {
    let home = Home::new();
    let check = |home: &Home| said(home.daemon_command().arg("--check"));
    let vault = home.vault();
    std::fs::create_dir_all(vault.parent().expect("a parent")).expect("made");
    std::fs::write(&vault, "in the way").expect("written");
    refused(&check(&home), 69, "vault is not a directory");
    refused(&home.once(), 69, "vault is not a directory");
    let status = home.ctl(&["status", "--json"]);
    assert_eq!(status.json()["vault"]["ok"], false);
    std::fs::remove_file(&vault).expect("removed");

    let real = home.path("real");
    std::fs::create_dir_all(&real).expect("made");
    std::fs::remove_dir_all(home.state()).expect("removed");
    std::os::unix::fs::symlink(&real, home.state()).expect("linked");
    refused(&check(&home), 1, "symlink");
    refused(&home.once(), 1, "symlink");
    std::fs::remove_file(home.state()).expect("removed");

    std::fs::write(home.state(), "in the way").expect("written");
    refused(&check(&home), 1, "state is not a directory");
    refused(&home.once(), 1, "state is not a directory");
    std::fs::remove_file(home.state()).expect("removed");

    std::fs::create_dir(home.state()).expect("made");
    std::fs::set_permissions(home.state(), std::fs::Permissions::from_mode(0o777)).expect("set");
    refused(&check(&home), 1, "chmod go-w");
    refused(&home.once(), 1, "chmod go-w");
    std::fs::remove_dir(home.state()).expect("removed");

    check(&home).ok();
    assert!(!home.state().exists() && !home.vault().exists(), "a check makes nothing");
}

#[test]
fn the_superuser_makes_nothing_in_anothers_home() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: only the superuser can");
        return;
    }
    let home = Home::new();
    std::os::unix::fs::chown(home.path("home"), Some(65_534), None).expect("given away");
    refused(&home.once(), 1, "belongs to uid 65534");
    assert!(!home.path("home/.local").exists());
}

#[test]
fn names_chosen_by_others_reach_no_terminal_and_no_log_raw() {
    let root = b"home/with space\nand \xff\x1b[31m";
    let home = Home::with_idle_after("20m");
    let root = home.path("").join(std::ffi::OsStr::from_bytes(root));
    let file = root.join("projects/-w-app").join(format!("{S1}.jsonl"));
    let cwd = Path::new("/w/\u{1b}[2Japp\nx");
    let claude = Claude::new(file, S1).cwd(cwd).at(&ago(7_200));
    drop(claude.prompt("One \u{1b}[31m").edit("/w/\u{1b}]0;x\u{7}\n.rs").answer("Done."));
    let name = std::ffi::OsStr::from_bytes(b"bad\x1b[31m\n\xff.jsonl");
    Claude::new(home.path("home/.claude/projects/-w-app").join(name), S2)
        .at(&ago(7_200))
        .prompt("Two")
        .answer("Done.");
    std::fs::create_dir(root.join("projects/-w-app/dir\u{1b}[31m\n.jsonl")).expect("made");
    let both = std::ffi::OsString::from_iter([
        home.path("home/.claude").as_os_str(),
        std::ffi::OsStr::new(":"),
        root.as_os_str(),
    ]);
    let run = |command: &mut std::process::Command, arguments: &[&str]| {
        let said = said(command.env("CLAUDE_CONFIG_DIR", &both).args(arguments));
        for (index, text) in [&said.stdout, &said.stderr].into_iter().enumerate() {
            let bad = text.chars().find(|c| c.is_control() && !matches!(c, '\n' | '\t'));
            assert_eq!(bad, None, "{arguments:?} {index}: {text:?}");
        }
        said
    };
    let once = run(&mut home.daemon_command(), &["--once"]).ok();
    assert!(once.stderr.lines().all(|line| line.starts_with("20")), "{}", once.stderr);
    run(&mut home.daemon_command(), &["--check"]).ok();
    for arguments in [
        &["sessions"][..],
        &["show", S1],
        &["show", S2],
        &["notes"],
        &["draft", S1],
        &["config", "show"],
    ] {
        run(&mut home.ctl_command(), arguments).ok();
    }
    let status = run(&mut home.ctl_command(), &["status"]).stdout;
    assert_eq!(status.lines().filter(|line| line.starts_with("source")).count(), 3, "{status}");
    for arguments in [&["show", "a\u{1b}[31m\nb"][..], &["--config", "/a\u{1b}[31m\n", "status"]] {
        assert_eq!(run(&mut home.ctl_command(), arguments).stderr.lines().count(), 1);
    }
    let sessions = run(&mut home.ctl_command(), &["sessions", "--json"]).ok().json();
    assert_eq!(sessions.as_array().map(Vec::len), Some(2), "both are read, whatever their names");
}

/// Asks over the socket and reads one line.
fn ask(stream: &mut BufReader<UnixStream>, method: &str) -> Value {
    let line = format!("{}\n", json!({"jsonrpc": "2.0", "id": 1, "method": method}));
    stream.get_mut().write_all(line.as_bytes()).expect("written");
    read(stream)
}

fn read(stream: &mut BufReader<UnixStream>) -> Value {
    let mut line = String::new();
    stream.read_line(&mut line).expect("read");
    serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"))
}

fn connect(home: &Home) -> BufReader<UnixStream> {
    let stream = UnixStream::connect(home.socket()).expect("connected");
    stream.set_read_timeout(Some(Duration::from_secs(20))).expect("set");
    BufReader::new(stream)
}

#[test]
fn a_client_too_many_is_told_so_and_one_that_leaves_frees_its_place() {
    let home = Home::new();
    let _daemon = home.start();
    // Listeners, of whom nothing is heard: they must be missed when they leave.
    let mut listeners: Vec<_> = (0..64).map(|_| connect(&home)).collect();
    for listener in &mut listeners {
        assert_eq!(ask(listener, "events.subscribe")["result"]["subscribed"], true);
    }
    for _ in 0..6 {
        let refusal = read(&mut connect(&home));
        assert_eq!(refusal["error"]["data"]["exit"], "unresponsive", "{refusal}");
    }
    refused(&home.ctl(&["status"]), 6, "64 clients");
    drop(listeners);
    home.wait("a place is free", || home.ctl(&["status"]).code == 0);
}

#[test]
fn half_a_line_a_line_without_end_and_a_slow_client_harm_nobody_else() {
    let home = Home::new();
    let _daemon = home.start();
    let mut slow = connect(&home);
    slow.get_mut().write_all(br#"{"jsonrpc":"2.0","#).expect("written");
    let mut half = connect(&home);
    half.get_mut().write_all(br#"{"jsonrpc":"2.0","id":1,"meth"#).expect("written");
    drop(half);
    let mut long = connect(&home);
    // The daemon hangs up before all is written.
    let written = long.get_mut().write_all(&vec![b'x'; 2 * 1024 * 1024]);
    assert!(written.is_err(), "a bounded line");
    assert_eq!(read(&mut long)["error"]["code"], -32_600);
    assert_eq!(home.ctl(&["status"]).code, 0);
    slow.get_mut().write_all(b"\"id\":5,\"method\":\"status\"}\n").expect("written");
    assert_eq!(read(&mut slow)["id"], 5);
}

#[test]
fn a_subscriber_sees_lines_closes_and_notes() {
    let home = Home::new();
    let _daemon = home.start();
    let mut events = connect(&home);
    ask(&mut events, "events.subscribe");
    home.claude(S1).prompt("One").edit("/w/app/a.rs").answer("Done.");
    assert_eq!(read(&mut events)["params"]["kind"], "events.appended");
    home.wait("the session", || home.session(S1)["answers"] == 1);
    home.ctl(&["close", S1]).ok();
    let mut kinds = Vec::new();
    while kinds.last().is_none_or(|kind| kind != "note.written") {
        let event = read(&mut events);
        assert_eq!((&event["jsonrpc"], &event["method"]), (&json!("2.0"), &json!("event")));
        kinds.push(event["params"]["kind"].as_str().expect("text").to_owned());
    }
    assert!(kinds.contains(&"session.closed".to_owned()), "{kinds:?}");
}

#[test]
fn a_listener_that_only_closes_its_side_goes_on_listening() {
    let home = Home::new();
    let _daemon = home.start();
    let mut events = connect(&home);
    ask(&mut events, "events.subscribe");
    events.get_ref().shutdown(std::net::Shutdown::Write).expect("shut");
    home.claude(S1).prompt("One");
    assert_eq!(read(&mut events)["params"]["kind"], "events.appended");
}

#[test]
fn a_second_daemon_with_another_state_directory_does_not_take_the_socket() {
    let home = Home::new();
    let daemon = home.start();
    let mut second = home.daemon_command();
    second.env("MAJORDOMUS_STATE_DIR", home.path("other"));
    refused_at_the_end(&said(&mut second), 75, "MAJORDOMUS_SOCKET");
    let status = home.ask(&["status"]);
    assert_eq!(status["pid"], daemon.pid());
}

/// Like [`refused`], where the log may say something before.
#[track_caller]
fn refused_at_the_end(said: &Said, code: i32, needle: &str) {
    assert_eq!(said.code, code, "{}", said.stderr);
    assert!(
        said.stderr.lines().last().is_some_and(|line| line.contains(needle)),
        "{}",
        said.stderr
    );
}

#[test]
fn what_is_no_socket_is_left_alone_and_named() {
    let home = Home::new();
    std::fs::create_dir_all(home.socket()).expect("made");
    let above = home.socket().parent().expect("a parent").to_owned();
    std::fs::set_permissions(&above, std::fs::Permissions::from_mode(0o700)).expect("set");
    refused(&home.ctl(&["stop"]), 3, "not running");
    refused_at_the_end(&said(&mut home.daemon_command()), 1, "in the way of the socket");
    std::fs::remove_dir(home.socket()).expect("removed");
    std::fs::write(home.socket(), "mine").expect("written");
    refused(&home.ctl(&["stop"]), 3, "not running");
    refused_at_the_end(&said(&mut home.daemon_command()), 1, "in the way of the socket");
    assert_eq!(std::fs::read(home.socket()).expect("read"), b"mine");
    // A parent that is a file: nobody can listen there.
    let mut ctl = home.ctl_command();
    refused(&said(ctl.env("MAJORDOMUS_SOCKET", home.socket().join("x")).arg("stop")), 3, "running");
}

#[test]
fn a_hangup_takes_what_can_be_taken_and_names_what_needs_a_restart() {
    let home = Home::new().config("[log]\nlevel = \"error\"\n");
    let daemon = home.start();
    home.claude(S1).prompt("One").edit("/w/app/a.rs").answer("Done.");
    home.wait("the session", || home.session(S1)["answers"] == 1);
    let config = home.path("config.toml");
    let reload = |text: &str| {
        std::fs::write(&config, text).expect("written");
        signal(daemon.pid(), "HUP");
    };
    let logged = |text: &str| home.wait(text, || home.log().contains(text));
    reload("[sessions]\nidle_after = \"soon\"\nend_grace = 3\n");
    logged("the old one stays: ");
    logged("sessions.end_grace");
    reload("[redact]\nextra = [\"(\"]\n");
    logged("redact.extra entry 1");
    assert_eq!(home.envelopes().len(), 0);
    reload("[sessions]\nidle_after = \"1s\"\nend_grace = \"1h\"\n[git]\nenabled = false\n");
    logged("applied: sessions.idle_after");
    logged("only after a restart: git.enabled, log.level");
    home.wait("the new rule closes it", || home.envelopes().len() == 1);
}

#[test]
fn a_user_signal_writes_the_state_to_the_log_as_one_line_of_json() {
    let home = Home::new().config("[log]\nlevel = \"error\"\nformat = \"json\"\n");
    let daemon = home.start();
    signal(daemon.pid(), "USR1");
    let state = || {
        let log = home.log();
        let lines = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let mut messages =
            lines.filter_map(|line| Some(line["fields"]["message"].as_str()?.to_owned()));
        messages.find_map(|line| Some(line.strip_prefix("state: ")?.to_owned()))
    };
    home.wait("the state", || state().is_some());
    let state: Value = serde_json::from_str(&state().expect("there")).expect("JSON");
    assert_eq!((&state["daemon"], &state["pid"]), (&json!("running"), &json!(daemon.pid())));
    for line in home.log().lines() {
        serde_json::from_str::<Value>(line).unwrap_or_else(|error| panic!("{error}: {line}"));
    }
}

#[test]
fn a_stop_in_the_middle_of_a_catch_up_ends_at_once_and_the_next_start_goes_on() {
    const FILES: usize = 12;
    const LINES: usize = 4_000;
    let home = Home::new();
    for n in 0..FILES {
        let mut claude = home.claude(&format!("0b2c9d1e-{n:04}-4000-8000-000000000001"));
        let message = json!({"message": {"role": "user", "content": "x".repeat(400)}});
        let lines: Vec<String> = (0..LINES).map(|_| claude.line("user", &message) + "\n").collect();
        drop(claude.raw(lines.concat().as_bytes()));
    }
    let events = |status: &Value| status["ledger"]["events"].as_u64().unwrap_or(0);
    let daemon = home.start_only();
    home.wait("the catch-up has begun", || events(&home.ctl(&["status", "--json"]).json()) > 0);
    let began = Instant::now();
    assert_eq!(daemon.terminate(), 0);
    assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
    let stopped = events(&home.ctl(&["status", "--json"]).json());
    assert!(stopped < (FILES * LINES) as u64, "it was in the middle: {stopped}");
    assert!(!home.log().contains("caught up"), "{}", home.log());
    let _daemon = home.start();
    // Every line once, and an opening for each session.
    assert_eq!(events(&home.ask(&["status"])), (FILES * (LINES + 1)) as u64);
}

/// A small file system, taken away when it goes out of scope.
struct SmallDisk(std::path::PathBuf);

impl SmallDisk {
    fn mount(path: &Path, size: &str) -> Option<Self> {
        std::fs::create_dir_all(path).expect("made");
        let options = format!("size={size},mode=700");
        let mut mount = std::process::Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &options, "tmpfs"]).arg(path);
        let is_mounted = mount.output().is_ok_and(|output| output.status.success());
        is_mounted.then(|| Self(path.to_owned()))
    }

    fn grow(&self, size: &str) {
        let mut mount = std::process::Command::new("mount");
        mount.args(["-o", &format!("remount,size={size}")]).arg(&self.0);
        assert!(mount.status().expect("started").success());
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Lazily: a daemon of a test that failed may still be on it.
        let unmounted = std::process::Command::new("umount").arg("-l").arg(&self.0).status();
        assert!(unmounted.is_ok_and(|status| status.success()) || std::thread::panicking());
    }
}

#[test]
fn case_080_a_full_disk_is_told_once_and_costs_nothing_when_there_is_room_again() {
    let home = Home::new();
    let Some(disk) = SmallDisk::mount(&home.state(), "600k") else {
        eprintln!("skipped: no file system can be mounted here");
        return;
    };
    let daemon = home.start();
    let mut claude = home.claude(S1);
    let message = json!({"message": {"role": "user", "content": "x"}});
    let lines: Vec<String> = (0..6_000).map(|_| claude.line("user", &message) + "\n").collect();
    drop(claude.raw(lines.concat().as_bytes()));
    home.wait("it is told", || home.log().contains("disk is full"));
    let status = home.ask(&["status"]);
    assert!(status["problems"][0].as_str().is_some_and(|line| line.contains("full")), "{status}");
    disk.grow("64m");
    home.wait("all is read", || home.session(S1)["prompts"] == 6_000);
    assert_eq!(home.log().matches("disk is full").count(), 1, "{}", home.log());
    assert!(home.log().contains("tailing works again"), "{}", home.log());
    assert_eq!(home.ask(&["status"])["problems"], json!([]));
    assert_eq!(daemon.terminate(), 0);
    home.once().ok();
    assert_eq!(home.session(S1)["prompts"], 6_000);
}
