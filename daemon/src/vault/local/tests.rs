use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

use jiff::Timestamp;
use tempfile::TempDir;

use super::*;
use crate::vault::Vault;

fn at(text: &str) -> Timestamp {
    text.parse().expect("a timestamp")
}

fn home() -> (TempDir, LocalVault) {
    let home = TempDir::new().expect("a directory");
    let vault = LocalVault::open(&home.path().join("data/vault")).expect("a vault");
    (home, vault)
}

fn note(slug: &str) -> PutNote {
    PutNote {
        collection: "sessions".to_owned(),
        slug: slug.to_owned(),
        title: "Fix: the \"parser\"".to_owned(),
        kind: "session".to_owned(),
        status: NoteStatus::Active,
        tags: vec!["session".to_owned(), "project:app: x".to_owned()],
        summary: "One. # Two.".to_owned(),
        body: "# Fix\n\n---\n\n## Timeline\n\n- x".to_owned(),
        depends_on: vec![],
        related_to: vec![],
        at: at("2026-12-01T09:00:00Z"),
    }
}

fn change(body: &str) -> UpdateNote {
    UpdateNote {
        body: body.to_owned(),
        title: None,
        tags: None,
        summary: None,
        status: None,
        expected: None,
        message: "test".to_owned(),
        at: at("2026-12-02T09:00:00Z"),
    }
}

fn path(vault: &LocalVault, stored: &Stored) -> PathBuf {
    vault.root.join(&stored.path)
}

#[test]
fn a_note_is_a_markdown_file_with_front_matter() {
    let (_home, vault) = home();
    let stored = vault
        .put(&PutNote { depends_on: vec!["vault://local/a/b.md".into()], ..note("s-1") })
        .expect("stored");
    assert_eq!(stored.uri, "vault://local/sessions/s-1.md");
    let text = fs::read_to_string(path(&vault, &stored)).expect("a file");
    insta::assert_snapshot!(text, @r#"
    ---
    title: "Fix: the \"parser\""
    type: "session"
    status: "active"
    tags:
      - "session"
      - "project:app: x"
    summary: "One. # Two."
    created: "2026-12-01T09:00:00Z"
    updated: "2026-12-01T09:00:00Z"
    depends_on:
      - "vault://local/a/b.md"
    ---

    # Fix

    ---

    ## Timeline

    - x
    "#);
}

#[test]
fn what_was_put_is_read_back() {
    let (_home, vault) = home();
    let put = note("s-1");
    let stored = vault.put(&put).expect("stored");
    let read = vault.get(&stored.uri).expect("the note");
    assert_eq!((read.head.title, read.head.kind, read.head.tags), (put.title, put.kind, put.tags));
    assert_eq!(
        (read.head.summary, read.body, read.head.status),
        (put.summary, put.body, put.status)
    );
    assert_eq!(
        (read.head.uri, read.head.path, read.head.version),
        (stored.uri, stored.path, stored.version)
    );
}

#[test]
fn a_taken_slug_is_a_conflict_and_changes_nothing() {
    let (_home, vault) = home();
    let stored = vault.put(&note("s-1")).expect("stored");
    let again = vault.put(&PutNote { body: "other".into(), ..note("s-1") });
    assert!(matches!(again, Err(VaultError::Conflict { .. })), "{again:?}");
    assert_eq!(vault.get(&stored.uri).expect("the note").head.version, stored.version);
    let left: Vec<_> = fs::read_dir(vault.root.join("sessions")).expect("a directory").collect();
    assert_eq!(left.len(), 1, "{left:?}");
}

#[test]
fn of_many_puts_of_one_slug_one_is_made() {
    let (_home, vault) = home();
    let made = std::thread::scope(|scope| {
        let puts: Vec<_> =
            (0..8).map(|_| scope.spawn(|| vault.put(&note("s-1")).is_ok())).collect();
        puts.into_iter().map(|put| put.join().expect("no panic")).filter(|ok| *ok).count()
    });
    assert_eq!(made, 1);
}

#[test]
fn an_update_of_another_version_is_a_conflict() {
    let (_home, vault) = home();
    let stored = vault.put(&note("s-1")).expect("stored");
    let file = path(&vault, &stored);
    let edited = fs::read_to_string(&file).expect("a file").replace("# Fix", "# Fix by hand");
    fs::write(&file, &edited).expect("a person's edit");
    let stale = UpdateNote { expected: Some(stored.version), ..change("new") };
    let refused = vault.update(&stored.uri, &stale);
    assert!(matches!(refused, Err(VaultError::Conflict { .. })), "{refused:?}");
    assert_eq!(fs::read_to_string(&file).expect("a file"), edited);

    let now = vault.get(&stored.uri).expect("the note");
    assert!(now.body.starts_with("# Fix by hand"));
    let next = UpdateNote { expected: Some(now.head.version), ..change("new") };
    vault.update(&stored.uri, &next).expect("updated");
    assert_eq!(vault.get(&stored.uri).expect("the note").body, "new");
}

#[test]
fn an_edit_between_reading_and_replacing_is_not_overwritten() {
    let (_home, vault) = home();
    let stored = vault.put(&note("s-1")).expect("stored");
    let place = Place::from_uri(&stored.uri).expect("a place");
    let directory = vault.directory(&place).expect("a directory");
    fs::write(path(&vault, &stored), "by hand").expect("a person's edit");
    let late = vault.write(&directory, &place, b"ours", Replace::This(&stored.version));
    assert!(matches!(late, Err(VaultError::Conflict { .. })), "{late:?}");
    assert_eq!(fs::read_to_string(path(&vault, &stored)).expect("a file"), "by hand");
}

#[test]
fn an_update_keeps_what_it_does_not_name() {
    let (_home, vault) = home();
    let stored = vault.put(&note("s-1")).expect("stored");
    let file = path(&vault, &stored);
    let text = fs::read_to_string(&file).expect("a file");
    fs::write(&file, text.replace("type:", "aliases: [a, b] # mine\ntype:"))
        .expect("a person's edit");
    let tags = Some(vec!["session".to_owned(), "rust".to_owned()]);
    vault.update(&stored.uri, &UpdateNote { tags, ..change("new") }).expect("updated");
    let text = fs::read_to_string(&file).expect("a file");
    assert!(text.contains("aliases: [a, b] # mine\n") && text.contains("  - \"rust\"\n"), "{text}");
    assert!(
        text.contains("created: \"2026-12-01T09:00:00Z\"\nupdated: \"2026-12-02T09:00:00Z\""),
        "{text}"
    );
    assert_eq!(vault.get(&stored.uri).expect("the note").head.title, note("s-1").title);
}

#[test]
fn an_update_that_changes_nothing_does_not_touch_the_file() {
    let (_home, vault) = home();
    let stored = vault.put(&note("s-1")).expect("stored");
    let before = fs::metadata(path(&vault, &stored)).expect("metadata");
    let same = UpdateNote {
        title: Some(note("s-1").title),
        tags: Some(note("s-1").tags),
        ..change(&format!("{}\n", note("s-1").body))
    };
    assert_eq!(vault.update(&stored.uri, &same).expect("updated"), stored);
    let after = fs::metadata(path(&vault, &stored)).expect("metadata");
    assert_eq!((before.ino(), before.mtime_nsec()), (after.ino(), after.mtime_nsec()));
}

#[test]
fn a_broken_head_loses_no_body() {
    let (_home, vault) = home();
    let stored = vault.put(&note("s-1")).expect("stored");
    fs::write(
        path(&vault, &stored),
        "---\ntitle: x\n# Mine\n\ntext\n\n---\n\n## Timeline\n\n- x\n",
    )
    .expect("an edit");
    let read = vault.get(&stored.uri).expect("the note");
    assert_eq!(read.body, "# Mine\n\ntext\n\n---\n\n## Timeline\n\n- x");
    vault.update(&stored.uri, &change(&format!("{}\n- y", read.body))).expect("updated");
    assert_eq!(vault.get(&stored.uri).expect("the note").body, format!("{}\n- y", read.body));
}

#[test]
fn a_persons_own_file_is_a_note() {
    let (_home, vault) = home();
    vault.put(&note("s-1")).expect("stored");
    fs::write(vault.root.join("sessions/My note.md"), "# Hand made\n").expect("a file");
    let read = vault.get("vault://local/sessions/My note.md").expect("the note");
    assert_eq!((read.head.title.as_str(), read.head.kind.as_str()), ("Hand made", "note"));
}

#[test]
fn hostile_names_are_refused() {
    let (home, vault) = home();
    for slug in [
        "",
        "..",
        "../x",
        "/etc/x",
        "a/b",
        "A",
        "a.b",
        "a\0b",
        "a\nb",
        ".x",
        "-x",
        &"x".repeat(300),
    ] {
        let put = vault.put(&note(slug));
        assert!(matches!(put, Err(VaultError::Refused { .. })), "{slug:?} {put:?}");
    }
    for collection in
        ["", "/", "..", "a/../b", "/abs", "a//b", "a/", ".git", "a\\b", "a\0", "a\u{7}", "a/.."]
    {
        let put = vault.put(&PutNote { collection: collection.into(), ..note("s-1") });
        assert!(matches!(put, Err(VaultError::Refused { .. })), "{collection:?} {put:?}");
    }
    for uri in [
        "vault://local/../x.md",
        "vault://local/a/../../x.md",
        "vault://local//etc/x.md",
        "file:///x.md",
        "vault://local/x.md",
        "vault://local/a/.md",
        "vault://local/a/x",
    ] {
        assert!(matches!(vault.get(uri), Err(VaultError::Refused { .. })), "{uri}");
        assert!(
            matches!(vault.update(uri, &change("x")), Err(VaultError::Refused { .. })),
            "{uri}"
        );
    }
    assert_eq!(fs::read_dir(home.path()).expect("a directory").count(), 1);
    assert_eq!(fs::read_dir(&vault.root).expect("a directory").count(), 0);
}

#[test]
fn a_body_with_nul_or_beyond_the_limit_is_refused() {
    let (_home, vault) = home();
    for body in ["a\0b".to_owned(), "x".repeat(MAX_BODY + 1)] {
        assert!(matches!(
            vault.put(&PutNote { body, ..note("s-1") }),
            Err(VaultError::Refused { .. })
        ));
    }
}

#[test]
fn no_symbolic_link_is_followed() {
    let (home, vault) = home();
    let outside = home.path().join("outside");
    fs::create_dir(&outside).expect("a directory");
    fs::write(outside.join("secret.md"), "secret").expect("a file");
    symlink(&outside, vault.root.join("sessions")).expect("a link");
    let put = vault.put(&note("s-1"));
    assert!(matches!(put, Err(VaultError::Refused { .. })), "{put:?}");
    let got = vault.get("vault://local/sessions/secret.md");
    assert!(matches!(got, Err(VaultError::Refused { .. })), "{got:?}");
    assert!(vault.browse("sessions", true).is_err());
    assert_eq!(fs::read_dir(&outside).expect("a directory").count(), 1);

    let tasks = PutNote { collection: "tasks".into(), ..note("t-1") };
    vault.put(&tasks).expect("stored");
    symlink(outside.join("secret.md"), vault.root.join("tasks/link.md")).expect("a link");
    let uri = "vault://local/tasks/link.md";
    assert!(matches!(vault.get(uri), Err(VaultError::Refused { .. })));
    assert!(matches!(vault.update(uri, &change("x")), Err(VaultError::Refused { .. })));
    let taken = vault.put(&PutNote { slug: "link".into(), ..tasks });
    assert!(matches!(taken, Err(VaultError::Conflict { .. })), "{taken:?}");
    assert_eq!(vault.browse("tasks", true).expect("a list").len(), 1);
    assert_eq!(fs::read_to_string(outside.join("secret.md")).expect("a file"), "secret");
}

// The call that makes a pipe is Linux only.
#[cfg(target_os = "linux")]
#[test]
fn a_pipe_with_a_notes_name_does_not_hold_the_daemon() {
    let (_home, vault) = home();
    let stored = vault.put(&note("s-1")).expect("stored");
    let pipe = vault.root.join("sessions/pipe.md");
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, FileType::Fifo, Mode::from_raw_mode(0o600), 0)
        .expect("a pipe");
    let got = vault.get("vault://local/sessions/pipe.md");
    assert!(matches!(got, Err(VaultError::Refused { .. })), "{got:?}");
    let listed: Vec<String> =
        vault.browse("sessions", true).expect("a list").into_iter().map(|head| head.uri).collect();
    assert_eq!(listed, [stored.uri]);
}

#[test]
fn modes_do_not_depend_on_the_umask() {
    let (_home, vault) = home();
    let before = rustix::process::umask(Mode::empty());
    let stored = vault.put(&PutNote { collection: "a/b".into(), ..note("s-1") }).expect("stored");
    vault.update(&stored.uri, &change("new")).expect("updated");
    rustix::process::umask(before);
    let mode = |path: PathBuf| fs::metadata(path).expect("metadata").permissions().mode() & 0o7777;
    assert_eq!(mode(vault.root.clone()), 0o700);
    assert_eq!(mode(vault.root.join("a")), 0o700);
    assert_eq!(mode(vault.root.join("a/b")), 0o700);
    assert_eq!(mode(path(&vault, &stored)), 0o600);
}

#[test]
fn a_temporary_file_left_by_a_crash_is_in_nobodys_way() {
    let (_home, vault) = home();
    let stored = vault.put(&note("s-1")).expect("stored");
    let name = format!(".majordomus-{}.tmp", &hex(stored.path.as_bytes())[..16]);
    fs::write(vault.root.join("sessions").join(&name), "torn").expect("a file");
    assert_eq!(vault.browse("sessions", true).expect("a list").len(), 1);
    vault.update(&stored.uri, &change("new")).expect("updated");
    assert!(!vault.root.join("sessions").join(name).exists());
}

#[test]
fn browse_lists_one_collection_and_search_goes_below() {
    let (_home, vault) = home();
    vault.put(&note("s-1")).expect("stored");
    vault.put(&PutNote { at: at("2026-12-03T09:00:00Z"), ..note("s-2") }).expect("stored");
    vault.put(&PutNote { status: NoteStatus::Archived, ..note("s-3") }).expect("stored");
    let below = PutNote {
        collection: "sessions/tasks".into(),
        tags: vec!["task".into()],
        body: "Release 파서".into(),
        ..note("t-1")
    };
    vault.put(&below).expect("stored");
    vault.put(&PutNote { collection: "sessions-old".into(), ..note("o-1") }).expect("stored");
    let paths = |heads: Vec<NoteHead>| heads.into_iter().map(|head| head.path).collect::<Vec<_>>();
    assert_eq!(
        paths(vault.browse("sessions", false).expect("a list")),
        ["sessions/s-2.md", "sessions/s-1.md"]
    );
    assert_eq!(vault.browse("sessions", true).expect("a list").len(), 3);
    assert_eq!(vault.browse("nothing", true).expect("a list"), []);
    assert_eq!(
        paths(vault.search("파서 RELEASE", "sessions", &[]).expect("a list")),
        ["sessions/tasks/t-1.md"]
    );
    let tags = ["task".to_owned(), "other".to_owned()];
    assert_eq!(
        paths(vault.search("", "sessions", &tags).expect("a list")),
        ["sessions/tasks/t-1.md"]
    );
    assert_eq!(vault.search("nosuchword", "sessions", &[]).expect("a list"), []);
}

#[test]
fn a_note_that_is_not_there_is_not_found() {
    let (_home, vault) = home();
    for uri in ["vault://local/sessions/x.md", "vault://local/none/x.md"] {
        assert!(matches!(vault.get(uri), Err(VaultError::NotFound { .. })));
        assert!(matches!(vault.update(uri, &change("x")), Err(VaultError::NotFound { .. })));
    }
}

#[test]
fn a_vault_that_went_away_is_unreachable_and_not_made_anew() {
    let (_home, vault) = home();
    fs::remove_dir_all(&vault.root).expect("removed");
    assert!(matches!(vault.put(&note("s-1")), Err(VaultError::Unreachable { .. })));
    assert!(!vault.root.exists());
}

#[test]
fn a_file_that_is_not_utf8_is_left_alone() {
    let (_home, vault) = home();
    let stored = vault.put(&note("s-1")).expect("stored");
    fs::write(path(&vault, &stored), b"# \xff\n").expect("an edit");
    assert!(matches!(vault.update(&stored.uri, &change("x")), Err(VaultError::Refused { .. })));
    assert_eq!(fs::read(path(&vault, &stored)).expect("a file"), b"# \xff\n");
}

#[tokio::test]
async fn the_vault_is_used_through_its_enum() {
    let (_home, local) = home();
    let vault = Vault::Local(local);
    let stored = vault.put(note("s-1")).await.expect("stored");
    vault.update(&stored.uri, change("new")).await.expect("updated");
    assert_eq!(vault.get(&stored.uri).await.expect("the note").body, "new");
    assert_eq!(vault.browse("sessions", false).await.expect("a list").len(), 1);
    assert_eq!(vault.search("new", "sessions", &[]).await.expect("a list").len(), 1);
}
