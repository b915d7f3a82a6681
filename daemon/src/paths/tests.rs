use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::{PermissionsExt, chown, symlink};

use super::*;
use crate::config::Flags;

struct Home {
    dir: tempfile::TempDir,
    env: Env,
}

/// A real home directory of the user who runs the test.
fn home(vars: &[(&str, &str)]) -> Home {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().canonicalize().unwrap();
    let vars = vars
        .iter()
        .map(|(name, value)| {
            let value = value.replace("HOME", &path.display().to_string());
            (OsString::from(name), OsString::from(value))
        })
        .collect();
    let uid = rustix::process::getuid().as_raw();
    let env = Env { vars, home: Some(path.clone()), cwd: path, uid };
    Home { dir, env }
}

impl Home {
    fn path(&self, below: &str) -> PathBuf {
        self.dir.path().canonicalize().unwrap().join(below)
    }

    fn paths(&self) -> Paths {
        let loaded = Loaded::read(&self.env, &Flags::default()).unwrap();
        Paths::resolve(&self.env, &loaded).unwrap()
    }

    fn roots(&self, text: &str) -> Vec<Root> {
        let file = self.path("c.toml");
        fs::write(&file, text).unwrap();
        let flags = Flags { config: Some(file), ..Flags::default() };
        roots(&Loaded::read(&self.env, &flags).unwrap().config, &self.env)
    }
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

#[test]
#[cfg(not(target_os = "macos"))]
fn without_any_variable_everything_is_below_the_home() {
    let home = home(&[]);
    let paths = home.paths();
    let state = home.path(".local/state/majordomus");
    assert_eq!(paths.config_file, home.path(".config/majordomus/config.toml"));
    assert_eq!(paths.ledger, state.join("ledger.db"));
    assert_eq!(paths.sessions_dir, state.join("sessions"));
    assert_eq!(paths.archive_dir, state.join("archive"));
    assert_eq!(paths.lock, state.join("daemon.lock"));
    assert_eq!(paths.socket.path, state.join("majordomusd.sock"));
    assert_eq!(paths.vault_dir, home.path(".local/share/majordomus/vault"));
}

#[test]
fn xdg_directories_are_honoured() {
    let home = home(&[
        ("XDG_CONFIG_HOME", "HOME/c"),
        ("XDG_STATE_HOME", "HOME/s"),
        ("XDG_DATA_HOME", "HOME/d"),
        ("XDG_RUNTIME_DIR", "HOME/r"),
    ]);
    let paths = home.paths();
    assert_eq!(paths.config_file, home.path("c/majordomus/config.toml"));
    assert_eq!(paths.state_dir, home.path("s/majordomus"));
    assert_eq!(paths.vault_dir, home.path("d/majordomus/vault"));
    assert_eq!(paths.socket.path, home.path("r/majordomus/majordomusd.sock"));
    assert_eq!(paths.socket.origin, Origin::Env("XDG_RUNTIME_DIR"));
}

#[test]
fn an_empty_or_relative_xdg_directory_is_ignored() {
    let plain = home(&[]).env;
    for value in ["", "relative/dir"] {
        let vars = ["XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR"];
        let mut env = plain.clone();
        env.vars = vars.iter().map(|name| (OsString::from(name), OsString::from(value))).collect();
        assert_eq!(config_file(&env, None), config_file(&plain, None));
        assert_eq!(state_dir(&env).unwrap(), state_dir(&plain).unwrap());
        let state = Path::new("/s");
        assert_eq!(socket(&env, state), socket(&plain, state));
    }
}

#[test]
fn our_own_variables_win_over_xdg() {
    let home = home(&[
        ("MAJORDOMUS_STATE_DIR", "HOME/mine"),
        ("XDG_STATE_HOME", "HOME/s"),
        ("MAJORDOMUS_SOCKET", "HOME/my.sock"),
        ("XDG_RUNTIME_DIR", "HOME/r"),
    ]);
    let paths = home.paths();
    assert_eq!(paths.state_dir, home.path("mine"));
    assert_eq!(paths.state_origin, Origin::Env("MAJORDOMUS_STATE_DIR"));
    assert_eq!(paths.socket.path, home.path("my.sock"));
}

#[test]
fn a_relative_variable_of_ours_is_read_from_the_working_directory() {
    let home = home(&[("MAJORDOMUS_STATE_DIR", "state")]);
    assert_eq!(home.paths().state_dir, home.path("state"));
}

#[test]
fn without_a_home_the_error_says_what_is_missing() {
    let env = Env { uid: 7, ..Env::default() };
    let error = state_dir(&env).unwrap_err().to_string();
    assert_eq!(error, "no home directory for uid 7, so no place for the state directory; set HOME");
}

#[test]
fn a_runtime_directory_of_another_user_is_ignored() {
    let home = home(&[("XDG_RUNTIME_DIR", "HOME")]);
    let env = Env { uid: home.env.uid + 1, ..home.env.clone() };
    assert_eq!(socket(&env, Path::new("/s")).path, Path::new("/s/majordomusd.sock"));
}

#[test]
fn the_longest_allowed_socket_path_is_kept() {
    let env = Env::default();
    let state = format!("/{}", "s".repeat(MAX_SOCKET_PATH - "//majordomusd.sock".len()));
    let socket = socket(&env, Path::new(&state));
    assert_eq!(socket.path.as_os_str().len(), MAX_SOCKET_PATH);
    assert_eq!(socket.note(), None);
}

#[test]
fn a_socket_path_over_the_limit_becomes_a_short_one_and_says_so() {
    let env = Env { uid: 7, ..Env::default() };
    let state = PathBuf::from(format!("/{}", "s".repeat(MAX_SOCKET_PATH)));
    let socket = socket(&env, &state);
    assert!(socket.path.starts_with("/tmp/majordomus-7"), "{:?}", socket.path);
    assert!(fits(&socket.path));
    let note = socket.note().unwrap();
    assert!(note.contains(&socket.path.display().to_string()) && !note.contains('\n'), "{note}");
}

#[test]
fn the_short_socket_is_in_the_runtime_directory_if_there_is_one() {
    let long = format!("/{}/x.sock", "s".repeat(MAX_SOCKET_PATH));
    let home = home(&[("XDG_RUNTIME_DIR", "HOME"), ("MAJORDOMUS_SOCKET", &long)]);
    let socket = home.paths().socket;
    assert_eq!(socket.path.parent(), Some(home.path("majordomus").as_path()));
    assert_eq!(socket.instead_of, Some(PathBuf::from(long)));
}

#[test]
fn two_long_socket_paths_do_not_meet() {
    let env = Env::default();
    let long = "s".repeat(MAX_SOCKET_PATH);
    let path = |name: &str| socket(&env, Path::new(&format!("/{name}{long}"))).path;
    assert_eq!(path("a"), path("a"));
    assert_ne!(path("a"), path("b"));
}

#[test]
fn a_private_directory_is_made_with_all_that_leads_to_it() {
    let home = home(&[]);
    let path = home.path("a/b/c");
    assert_eq!(ensure_private_dir(&path).unwrap(), PrivateDir::Created);
    for made in ["a", "a/b", "a/b/c"] {
        assert_eq!(mode(&home.path(made)), 0o700, "{made}");
    }
    assert_eq!(ensure_private_dir(&path).unwrap(), PrivateDir::Private);
}

#[test]
fn a_directory_that_is_there_keeps_its_mode() {
    let home = home(&[]);
    let parent = home.path("p");
    fs::create_dir(&parent).unwrap();
    fs::set_permissions(&parent, fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(ensure_private_dir(&parent.join("c")).unwrap(), PrivateDir::Created);
    assert_eq!(mode(&parent), 0o755);
    assert_eq!(ensure_private_dir(&parent).unwrap(), PrivateDir::Readable { mode: 0o755 });
}

#[test]
fn a_symlink_in_place_of_the_directory_is_refused() {
    let home = home(&[]);
    fs::create_dir(home.path("real")).unwrap();
    symlink(home.path("real"), home.path("link")).unwrap();
    let error = ensure_private_dir(&home.path("link")).unwrap_err();
    assert!(matches!(error, DirError::Symlink(_)), "{error}");
    symlink(home.path("nowhere"), home.path("dangling")).unwrap();
    assert!(matches!(ensure_private_dir(&home.path("dangling")), Err(DirError::Symlink(_))));
}

#[test]
fn a_symlink_on_the_way_is_followed() {
    let home = home(&[]);
    fs::create_dir(home.path("real")).unwrap();
    symlink(home.path("real"), home.path("link")).unwrap();
    assert_eq!(ensure_private_dir(&home.path("link/c")).unwrap(), PrivateDir::Created);
}

#[test]
fn a_dangling_symlink_on_the_way_is_refused() {
    let home = home(&[]);
    symlink(home.path("nowhere"), home.path("link")).unwrap();
    assert!(matches!(ensure_private_dir(&home.path("link/c")), Err(DirError::Symlink(_))));
}

#[test]
fn a_file_in_the_way_is_refused() {
    let home = home(&[]);
    fs::write(home.path("f"), "").unwrap();
    assert!(matches!(ensure_private_dir(&home.path("f")), Err(DirError::NotADirectory(_))));
    assert!(matches!(ensure_private_dir(&home.path("f/c")), Err(DirError::NotADirectory(_))));
}

#[test]
fn a_directory_that_others_may_write_to_is_refused_with_the_cure() {
    let home = home(&[]);
    let path = home.path("open");
    fs::create_dir(&path).unwrap();
    for open in [0o777, 0o770, 0o702] {
        fs::set_permissions(&path, fs::Permissions::from_mode(open)).unwrap();
        let error = ensure_private_dir(&path).unwrap_err().to_string();
        assert!(error.ends_with(&format!("chmod go-w {}", path.display())), "{error}");
    }
}

#[test]
fn a_directory_of_another_user_is_refused() {
    let home = home(&[]);
    let mut path = home.path("theirs");
    fs::create_dir(&path).unwrap();
    if chown(&path, Some(54_321), None).is_err() {
        // Only root can give a directory away; for anybody else this one is another's.
        path = PathBuf::from("/usr");
    }
    assert!(matches!(ensure_private_dir(&path), Err(DirError::Owner { .. })));
    assert!(matches!(ensure_socket_dir(&path), Err(DirError::Owner { .. })));
}

#[test]
fn a_socket_may_stand_in_a_shared_directory_that_is_sticky() {
    assert!(ensure_socket_dir(Path::new("/tmp")).is_ok());
    assert!(ensure_private_dir(Path::new("/tmp")).is_err());
}

/// The mask belongs to the whole process, so the claim is tested in a child of its own.
#[test]
fn the_mode_does_not_depend_on_the_umask() {
    const MASK: &str = "MAJORDOMUS_TEST_UMASK";
    const WHERE: &str = "MAJORDOMUS_TEST_DIR";
    if let (Ok(mask), Some(dir)) = (std::env::var(MASK), std::env::var_os(WHERE)) {
        let mask = u32::from_str_radix(&mask, 8).unwrap();
        rustix::process::umask(rustix::fs::Mode::from_raw_mode(mask));
        ensure_private_dir(Path::new(&dir)).unwrap();
        set_private_umask();
        fs::write(Path::new(&dir).join("file"), "").unwrap();
        return;
    }
    let home = home(&[]);
    for mask in ["000", "022", "777"] {
        let dir = home.path(mask).join("below");
        let status = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "paths::tests::the_mode_does_not_depend_on_the_umask"])
            .env(MASK, mask)
            .env(WHERE, &dir)
            .output()
            .unwrap();
        assert!(status.status.success(), "{status:?}");
        assert_eq!(mode(&home.path(mask)), 0o700, "umask {mask}");
        assert_eq!(mode(&dir), 0o700, "umask {mask}");
        assert_eq!(mode(&dir.join("file")), 0o600, "umask {mask}");
    }
}

#[test]
fn roots_that_do_not_exist_are_kept() {
    let home = home(&[]);
    let found: Vec<_> = home.roots("").into_iter().map(|root| (root.tool, root.path)).collect();
    assert_eq!(
        found,
        [
            (Tool::Claude, home.path(".claude")),
            (Tool::Claude, home.path(".config/claude")),
            (Tool::Codex, home.path(".codex")),
        ]
    );
}

#[test]
fn the_second_default_root_follows_the_config_home() {
    let home = home(&[("XDG_CONFIG_HOME", "HOME/c")]);
    let found: Vec<_> = home.roots("").into_iter().map(|root| root.path).collect();
    assert_eq!(found[..2], [home.path(".claude"), home.path("c/claude")]);
}

#[test]
fn two_names_of_one_directory_are_one_root() {
    let home = home(&[]);
    fs::create_dir(home.path("real")).unwrap();
    symlink(home.path("real"), home.path("link")).unwrap();
    let found = home
        .roots("[sources]\nclaude = [\"~/link\", \"~/real\", \"~/link/../real/\"]\ncodex = []\n");
    let expected = Root {
        tool: Tool::Claude,
        path: home.path("real"),
        configured_as: PathBuf::from("~/link"),
    };
    assert_eq!(found, [expected]);
}

#[test]
fn a_missing_root_below_a_symlink_is_one_root() {
    let home = home(&[]);
    fs::create_dir(home.path("real")).unwrap();
    symlink(home.path("real"), home.path("link")).unwrap();
    let found = home.roots("[sources]\nclaude = [\"~/link/c\", \"~/real/c\"]\ncodex = []\n");
    assert_eq!(found.len(), 1, "{found:?}");
}

#[test]
fn a_directory_of_both_tools_is_a_root_of_each() {
    let found = home(&[]).roots("[sources]\nclaude = [\"~/x\"]\ncodex = [\"~/x\"]\n");
    assert_eq!(found.len(), 2, "{found:?}");
}

#[test]
fn a_place_reached_through_a_symlink_is_still_inside() {
    let home = home(&[("XDG_STATE_HOME", "HOME/link")]);
    fs::create_dir(home.path(".claude")).unwrap();
    symlink(home.path(".claude"), home.path("link")).unwrap();
    let refused = home.paths().inside_roots(&home.roots(""));
    assert_eq!(refused.len(), 1, "{refused:?}");
    assert_eq!(refused[0].place, Place::State);
}

#[test]
fn a_neighbour_with_a_longer_name_is_not_inside() {
    let home = home(&[("MAJORDOMUS_STATE_DIR", "HOME/.claude-state")]);
    assert_eq!(home.paths().inside_roots(&home.roots("")), []);
}

#[test]
fn state_and_vault_inside_a_sessions_repository_are_refused() {
    let home = home(&[("XDG_STATE_HOME", "HOME/repo/s"), ("XDG_DATA_HOME", "HOME/repo/d")]);
    let refused = home.paths().inside_work_tree(&home.path("repo"));
    assert_eq!(
        refused.iter().map(|refused| refused.place).collect::<Vec<_>>(),
        [Place::State, Place::Vault]
    );
    assert!(refused[0].to_string().contains("the Git working tree of a session"));
    assert_eq!(home.paths().inside_work_tree(&home.path("other")), []);
}

#[test]
fn the_paths_are_shown_with_their_origins() {
    let home = home(&[("MAJORDOMUS_STATE_DIR", "/s")]);
    let shown: Vec<_> = home
        .paths()
        .show()
        .into_iter()
        .map(|setting| format!("{} {}", setting.key, setting.origin))
        .collect();
    assert_eq!(
        shown,
        [
            "paths.config_file default",
            "paths.state_dir env MAJORDOMUS_STATE_DIR",
            "paths.socket default",
            "paths.vault_dir default"
        ]
    );
}
