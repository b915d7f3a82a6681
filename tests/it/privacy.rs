//! What must not stand where, and who may read what.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use crate::support::{Home, ago, files_below};

const S1: &str = "0b2c9d1e-0001-4000-8000-000000000001";
const S2: &str = "0b2c9d1e-0002-4000-8000-000000000002";

#[test]
fn no_prompt_answer_command_or_output_stands_in_the_ledger_or_in_an_envelope() {
    let home = Home::with_idle_after("20m");
    home.claude(S1)
        .at(&ago(7_200))
        .prompt("zebra-prompt about the parser")
        .tool(
            "Bash",
            &serde_json::json!({"command": "echo zebra-command"}),
            "zebra-output",
            &serde_json::json!({"stdout": "zebra-output"}),
        )
        .answer("zebra-answer to you")
        .title("zebra-title");
    home.codex(S2)
        .at(&ago(7_200))
        .meta(Path::new("/w/svc"))
        .prompt("zebra-codex-prompt")
        .patch("src/a.rs")
        .answer("zebra-codex-answer");
    home.once().ok();
    assert_eq!(home.envelopes().len(), 2);
    for file in files_below(&home.state()) {
        let bytes = std::fs::read(&file).expect("read");
        let found = bytes.windows(6).any(|window| window == b"zebra-");
        assert!(!found, "{} holds text", file.display());
    }
    assert!(
        home.notes().iter().any(|(_, note)| note.contains("zebra-prompt")),
        "the note may quote"
    );
}

#[test]
fn case_121_state_and_socket_are_private_under_any_umask() {
    let home = Home::with_idle_after("1s");
    std::fs::create_dir_all(home.state()).expect("made");
    std::fs::set_permissions(home.state(), std::fs::Permissions::from_mode(0o755)).expect("set");
    let command = home.daemon_command();
    let program = command.get_program().to_owned();
    let mut shell = std::process::Command::new("sh");
    shell.env_clear().arg("-c").arg("umask 000; exec \"$0\"").arg(program);
    for (name, value) in command.get_envs() {
        if let Some(value) = value {
            shell.env(name, value);
        }
    }
    let mut child = shell.spawn().expect("started");
    home.claude(S1).prompt("One").edit("/w/app/a.rs").answer("Done.");
    home.wait("the note", || home.notes().len() == 1);
    let mode = |path: &Path| std::fs::metadata(path).expect("there").permissions().mode() & 0o777;
    assert_eq!(mode(&home.state()), 0o700);
    assert_eq!(mode(&home.socket()), 0o600);
    assert_eq!(mode(home.socket().parent().expect("a parent")), 0o700);
    let files: Vec<PathBuf> =
        files_below(&home.state()).into_iter().chain(files_below(&home.vault())).collect();
    assert!(files.len() >= 4, "{files:?}");
    for file in files {
        assert_eq!(mode(&file), 0o600, "{}", file.display());
        for above in file.ancestors().skip(1).take_while(|above| above.starts_with(home.state())) {
            assert_eq!(mode(above), 0o700, "{}", above.display());
        }
    }
    child.kill().expect("killed");
    child.wait().expect("waited");
}

#[test]
fn garbage_at_the_socket_gets_an_error_and_the_daemon_lives() {
    use std::io::{BufRead as _, BufReader, Write as _};
    use std::os::unix::net::UnixStream;

    let home = Home::new();
    let _daemon = home.start();
    let ask = |line: &[u8]| {
        let mut stream = UnixStream::connect(home.socket()).expect("connected");
        stream.write_all(line).expect("written");
        stream.write_all(b"\n").expect("written");
        let mut answer = String::new();
        BufReader::new(stream).read_line(&mut answer).expect("answered");
        serde_json::from_str::<serde_json::Value>(&answer).expect("JSON")
    };
    assert_eq!(ask(b"\xff\xfe garbage")["error"]["code"], -32_700);
    assert_eq!(ask(b"[1,2]")["error"]["code"], -32_600);
    let unknown = ask(br#"{"jsonrpc":"2.0","id":7,"method":"make.coffee"}"#);
    assert_eq!((&unknown["error"]["code"], &unknown["id"]), (&(-32_601).into(), &7.into()));
    let wrong =
        ask(br#"{"jsonrpc":"2.0","id":"x","method":"session.show","params":{"sesion":"a"}}"#);
    assert_eq!(wrong["error"]["code"], -32_602);
    let missing =
        ask(br#"{"jsonrpc":"2.0","id":1,"method":"session.show","params":{"session":"nobody"}}"#);
    assert_eq!(missing["error"]["code"], -32_000);
    let status = ask(br#"{"jsonrpc":"2.0","id":2,"method":"status"}"#);
    assert_eq!(status["result"]["daemon"], "running");
}

#[test]
fn a_vault_or_a_state_directory_where_agents_work_is_refused() {
    let home = Home::new();
    let inside = home.path("home/.claude/notes");
    let home = home.config(&format!("[vault]\npath = \"{}\"\n", inside.display()));
    let said = home.once();
    assert_eq!(said.code, 5, "{}", said.stderr);
    assert!(said.stderr.contains(".claude"), "{}", said.stderr);

    let home = Home::with_idle_after("20m");
    let repository = home.repository("repo");
    home.claude(S1).cwd(&repository).at(&ago(7_200)).prompt("One").edit("/w/a.rs").answer("Done.");
    home.once().ok();
    let home =
        home.config(&format!("[vault]\npath = \"{}\"\n", repository.join("notes").display()));
    let said = home.once();
    assert_eq!(said.code, 5, "{}", said.stderr);
    assert!(said.stderr.contains("repo"), "{}", said.stderr);
}

#[test]
fn a_session_id_never_leads_out_of_the_state_directory() {
    let home = Home::with_idle_after("20m");
    let hostile = "../../../../escape";
    let file = home.path("home/.claude/projects/-w-app/notuuid.jsonl");
    let claude = crate::support::Claude::new(file, hostile).at(&ago(7_200));
    drop(claude.prompt("One").edit("/w/app/a.rs").answer("Done."));
    home.once().ok();
    assert_eq!(home.envelopes().len(), 1);
    assert_eq!(home.notes().len(), 1);
    assert!(
        files_below(&home.path(""))
            .iter()
            .all(|path| !path.display().to_string().contains("/escape"))
    );
}

#[test]
fn case_123_an_excluded_session_is_not_even_in_the_ledger_until_the_policy_lets_it_in() {
    let config = "[projects]\nexclude = [\"/w/secret/**\"]\n";
    let home = Home::with_idle_after("20m");
    home.claude(S1)
        .cwd(Path::new("/w/secret/x"))
        .at(&ago(7_200))
        .title("zebra")
        .prompt("zebra-prompt")
        .answer("Done.");
    home.codex(S2).at(&ago(7_200)).meta(Path::new("/w/svc")).prompt("One").answer("Done.");
    let home = home.config(config);
    home.once().ok();
    assert!(home.session(S1).is_null());
    assert_eq!(home.session(S2)["prompts"], 1);
    let status = home.ctl(&["status", "--json"]).json();
    assert_eq!(status["funnel"]["dropped"]["file_excluded"], 1);
    let ledger = std::fs::read(home.state().join("ledger.db")).expect("read");
    assert!(!ledger.windows(9).any(|window| window == b"/w/secret"));
    // The policy changes its mind.
    let home = home.without_config(config);
    home.once().ok();
    assert_eq!(home.session(S1)["prompts"], 1);
}

#[test]
fn a_repository_that_wants_no_notes_gets_none() {
    let home = Home::with_idle_after("20m");
    let repository = home.repository("repo");
    std::fs::write(repository.join(".majordomus.toml"), "draft = \"off\"\n").expect("written");
    home.claude(S1).cwd(&repository).at(&ago(7_200)).prompt("One").edit("/w/a.rs").answer("Done.");
    home.once().ok();
    assert!(home.notes().is_empty());
    assert_eq!(home.envelopes().len(), 1, "the record is made all the same");
    let dropped = home.ctl(&["status", "--json"]).json()["funnel"]["dropped"].clone();
    assert_eq!(dropped["draft_off_in_repository"], 1);
}
