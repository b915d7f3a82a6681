use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use serde_json::json;

use super::output::*;
use super::*;

const A: &str = "1111111111111111111111111111111111111111";
const B: &str = "2222222222222222222222222222222222222222";

fn text(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("serialises")
}

#[test]
fn a_fact_and_an_absence_are_written_and_read_back() {
    let fact = Known::inferred("main".to_owned());
    insta::assert_snapshot!(text(&fact), @r#"{"value":"main","provenance":"inferred"}"#);
    let absent = Known::<String>::absent("detached head");
    insta::assert_snapshot!(text(&absent), @r#"{"absent":"detached head"}"#);
    for known in [fact, absent] {
        assert_eq!(serde_json::from_str::<Known<String>>(&text(&known)).expect("reads"), known);
    }
}

#[test]
fn a_fact_that_is_also_absent_is_refused() {
    for foreign in [
        json!({"value": "x", "provenance": "observed", "absent": "y"}),
        json!({"value": "x"}),
        json!({"value": "x", "provenance": "guessed"}),
        json!({}),
    ] {
        assert!(serde_json::from_value::<Known<String>>(foreign.clone()).is_err(), "{foreign}");
    }
}

#[test]
fn the_working_tree_is_clean_or_counted() {
    assert_eq!(text(&WorkingTree::from(Uncommitted::default())), r#""clean""#);
    let dirty = WorkingTree::from(Uncommitted { staged: 1, changed: 0, untracked: 2 });
    insta::assert_snapshot!(text(&dirty), @r#"{"staged":1,"changed":0,"untracked":2}"#);
    for tree in [WorkingTree::Clean, dirty] {
        assert_eq!(serde_json::from_str::<WorkingTree>(&text(&tree)).expect("reads"), tree);
    }
}

#[test]
fn an_empty_list_of_commits_is_not_an_absent_one() {
    let empty = CommitsBetween::Listed { commits: vec![], provenance: Provenance::Observed };
    let diverged = CommitsBetween::Diverged {
        diverged: Heads { start: A[..4].to_owned(), end: B[..4].to_owned() },
    };
    let absent = CommitsBetween::absent("no such directory");
    insta::assert_snapshot!(text(&empty), @r#"{"commits":[],"provenance":"observed"}"#);
    insta::assert_snapshot!(text(&diverged), @r#"{"diverged":{"start":"1111","end":"2222"}}"#);
    insta::assert_snapshot!(text(&absent), @r#"{"absent":"no such directory"}"#);
    for commits in [empty, diverged, absent] {
        assert_eq!(
            serde_json::from_str::<CommitsBetween>(&text(&commits)).expect("reads"),
            commits
        );
    }
}

#[test]
fn what_follows_from_an_inferred_head_is_inferred() {
    let (recorded, inferred) = (Known::recorded(A.to_owned()), Known::inferred(B.to_owned()));
    let (heads_of_both, provenance) = heads(&recorded, &inferred).expect("both known");
    assert_eq!((heads_of_both.start.as_str(), heads_of_both.end.as_str()), (A, B));
    assert_eq!(provenance, Provenance::Inferred);
    assert_eq!(heads(&recorded, &recorded).expect("known").1, Provenance::Observed);
}

#[test]
fn an_absent_or_foreign_head_gives_the_reason() {
    let good = Known::recorded(A.to_owned());
    let short = Known::recorded("--all".to_owned());
    assert_eq!(
        heads(&good, &Known::absent("no commits yet")),
        Err("the end head is not known: no commits yet".to_owned())
    );
    assert_eq!(heads(&short, &good), Err("the start head is not a full commit hash".to_owned()));
}

#[test]
fn branch_names_are_never_expressions_or_options() {
    for name in ["main", "feature/a-b", "(odd)", "ünï", "a@b", "a.b"] {
        assert!(is_branch_name(name), "{name}");
    }
    for name in [
        "", "-x", "a..b", "a~1", "a^", "a:b", "a b", "x@{1}", "a//b", "/a", "a/", ".a", "a/.b",
        "a.lock", "a.", "a\nb", "a?", "a*", "a[b", "a\\b",
    ] {
        assert!(!is_branch_name(name), "{name}");
    }
}

#[test]
fn only_lower_hex_is_a_hash() {
    assert!(is_hash("1a2b") && is_full_hash(A) && is_full_hash(&"a".repeat(64)));
    for foreign in ["", "abc", "HEAD", "--all", "1A2B", "1a2b\n", &"a".repeat(65)] {
        assert!(!is_hash(foreign), "{foreign}");
    }
    assert!(!is_full_hash(&A[1..]));
}

#[test]
fn versions_of_all_vendors_are_read() {
    assert_eq!(parse_version(b"git version 2.47.3\n"), Some((2, 47)));
    assert_eq!(parse_version(b"git version 2.39.3 (Apple Git-146)\n"), Some((2, 39)));
    assert_eq!(parse_version(b"git version 2.50.GIT\n"), Some((2, 50)));
    assert_eq!(parse_version(b"hub version 2.14\n"), None);
}

#[test]
fn the_layout_of_a_worktree_is_read() {
    let layout = parse_layout(b"false\ntrue\n/p/.git\n/p/.git/worktrees/w\n/elsewhere/w \xff\n");
    let layout = layout.expect("complete");
    assert!(!layout.is_bare && layout.is_shallow);
    assert_eq!(layout.common_dir, PathBuf::from("/p/.git"));
    assert_eq!(layout.root, Some(PathBuf::from(OsString::from_vec(b"/elsewhere/w \xff".to_vec()))));
    assert_eq!(parse_layout(b"true\nfalse\n/p.git\n/p.git\n").expect("bare").root, None);
}

#[test]
fn a_line_break_in_a_path_is_not_guessed_away() {
    assert_eq!(parse_layout(b"false\nfalse\n/p\nq/.git\n/p\nq/.git\n/p\nq\n"), None);
    assert_eq!(parse_layout(b"false\nfalse\n/p/.git\nq/.git\n/x\n"), None);
    assert_eq!(parse_layout(b"false\nfalse\n/p/.git\n"), None);
    assert_eq!(parse_layout(b""), None);
}

#[test]
fn filter_names_keep_their_odd_characters() {
    let config = Config::parse(
        b"filter.a=b.c d\"x.clean\nrun\0filter.lfs.process\nrun\0filter.lfs.required\0filter.\xff.smudge\n\0\
          filter.plain\nno driver\0",
    );
    let names: Vec<&[u8]> = config.filters.iter().map(Vec::as_slice).collect();
    assert_eq!(names, [&b"a=b.c d\"x"[..], b"lfs", b"\xff"]);
}

#[test]
fn the_remote_is_origin_then_the_branchs_then_the_only_one() {
    let config = |remotes: &str| Config::parse(remotes.replace(';', "\0").as_bytes());
    let one = "remote.up.url\nhttps://u:p@h.example/a.git;remote.up.url\nhttps://second;";
    assert_eq!(config(one).remote(None), Ok("https://h.example/a.git".to_owned()));
    let two = format!("{one}remote.b.url\ngit@h:b;branch.x.y.remote\nb;");
    assert_eq!(config(&two).remote(Some("x.y")), Ok("git@h:b".to_owned()));
    assert!(config(&two).remote(Some("other")).is_err());
    let three = format!("{two}remote.origin.url\n/srv/o;");
    assert_eq!(config(&three).remote(Some("x.y")), Ok("/srv/o".to_owned()));
    assert_eq!(config("core.bare\nfalse;").remote(None), Err("no remote"));
    assert!(config("remote.o.url\nhttps://h/a\rb;").remote(None).is_err());
}

#[test]
fn status_counts_and_skips_the_origin_of_a_rename() {
    let status = Status::parse(
        format!(
            "# branch.oid {A}\0# branch.head feature/x\0# branch.upstream origin/x\0# branch.ab +3 -12\0# stash 2\0\
             1 M. N... 100644 100644 100644 {A} {B} staged\0\
             1 .M N... 100644 100644 100644 {A} {A} a path\nwith ? odd  parts\0\
             1 MM N... 100644 100644 100644 {A} {B} both\0\
             2 R. N... 100644 100644 100644 {A} {A} R100 new name\0? old name\0\
             u UU N... 100644 100644 100644 100644 {A} {A} {B} in conflict\0\
             ? new\0? dir/\0! ignored\0"
        )
        .as_bytes(),
    )
    .expect("well formed");
    assert_eq!(status.uncommitted, Uncommitted { staged: 3, changed: 3, untracked: 2 });
    let paths: Vec<_> = status.changed_paths.iter().map(|p| String::from_utf8_lossy(p)).collect();
    assert_eq!(paths, ["a path\nwith ? odd  parts", "both", "in conflict"]);
    assert_eq!(status.ahead_behind, Some(AheadBehind { ahead: 3, behind: 12 }));
    assert_eq!((status.head.as_deref(), status.branch.as_deref()), (Some(A), Some("feature/x")));
}

#[test]
fn status_tells_a_fresh_repository_and_a_detached_head() {
    let fresh =
        Status::parse(b"# branch.oid (initial)\0# branch.head main\0").expect("well formed");
    assert_eq!((fresh.head, fresh.branch.as_deref()), (None, Some("main")));
    let detached = format!("# branch.oid {A}\0# branch.head (detached)\0");
    let detached = Status::parse(detached.as_bytes()).expect("well formed");
    assert_eq!((detached.head.as_deref(), detached.branch), (Some(A), None));
}

#[test]
fn a_status_of_unknown_form_gives_no_counts() {
    for foreign in
        [&b"M  file\0"[..], b"1 M.\0", b"2 R. a b c d e f g h new\0", b"# branch.oid xyz\0"]
    {
        assert_eq!(Status::parse(foreign), None, "{}", String::from_utf8_lossy(foreign));
    }
}

#[test]
fn a_filter_attribute_is_seen_whatever_the_path() {
    assert!(!names_a_filter(b"filter\0filter\0unspecified\0a\nb\0filter\0unset\0"));
    assert!(names_a_filter(b"a\0filter\0unspecified\0b\0filter\0lfs\0"));
    assert!(!names_a_filter(b""));
}

#[test]
fn hashes_are_taken_only_if_all_lines_are() {
    assert_eq!(parse_hashes(format!("{A}\n{B}\n").as_bytes()), Some(vec![A.into(), B.into()]));
    assert_eq!(parse_hashes(b""), Some(vec![]));
    assert_eq!(parse_hashes(format!("{A}\nwarning: x\n").as_bytes()), None);
}

#[test]
fn ahead_and_behind_are_read_in_that_order() {
    assert_eq!(parse_ahead_behind(b"3\t5\n"), Some(AheadBehind { ahead: 3, behind: 5 }));
    assert_eq!(parse_ahead_behind(b"3 5"), None);
}

#[test]
fn answers_are_matched_to_questions_by_order() {
    let body = "tree x\nauthor y\n\nFirst line\nsecond \x1bline\n\nbody\n";
    let output = format!(
        "abcd^{{commit}} missing\n{A} commit {}\n{body}\nbeef^{{commit}} ambiguous\n",
        body.len()
    );
    let commits = parse_commits(&["abcd", "1111", "beef", "dead"], output.as_bytes());
    let found: Vec<_> = commits.iter().map(|c| (c.given.as_str(), c.full.as_deref())).collect();
    assert_eq!(found, [("abcd", None), ("1111", Some(A)), ("beef", None), ("dead", None)]);
    assert_eq!(commits[1].subject.as_deref(), Some("First line second line"));
}

#[test]
fn an_output_that_breaks_off_resolves_nothing_more() {
    let output = format!("{A} commit 900\ntree x\n");
    assert_eq!(parse_commits(&["1111"], output.as_bytes())[0].full, None);
    let huge = format!("{A} commit {}\n", usize::MAX);
    assert_eq!(parse_commits(&["1111"], huge.as_bytes())[0].full, None);
}

proptest::proptest! {
    #[test]
    fn no_output_whatever_makes_a_parser_panic(bytes: Vec<u8>) {
        parse_layout(&bytes);
        Config::parse(&bytes).remote(Some("main")).ok();
        Status::parse(&bytes);
        names_a_filter(&bytes);
        parse_hashes(&bytes);
        parse_ahead_behind(&bytes);
        parse_version(&bytes);
        parse_commits(&["abcd", "1234"], &bytes);
    }
}
