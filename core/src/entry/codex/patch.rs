//! Which files a patch changes: the headers of `apply_patch` (formats.md 2.5), and the `changes` that Codex
//! itself reports.

use super::super::{FileChange, FileTouch};
use super::fields::Fields;
use super::tidy;

/// A patch or report that names more files than this is cut.
const MAX_FILES: usize = 1_000;

/// Longer paths than any system takes are cut to this many characters.
const MAX_PATH: usize = 4_096;

/// The files that a patch names, in its order. `text` may hold a command line around the patch.
pub(super) fn files(text: &str) -> Vec<FileTouch> {
    let mut files: Vec<FileTouch> = Vec::new();
    let mut inside = false;
    for line in text.lines() {
        let Some(header) =
            line.trim_start_matches(|c: char| c.is_whitespace()).strip_prefix("*** ")
        else {
            // `apply_patch "*** Begin Patch` on one line.
            inside |= line.contains("*** Begin Patch");
            continue;
        };
        if header.starts_with("Begin Patch") {
            inside = true;
        } else if header.starts_with("End Patch") {
            inside = false;
        }
        if !inside || files.len() >= MAX_FILES {
            continue;
        }
        if let Some(path) = header.strip_prefix("Add File:") {
            push(&mut files, path, FileChange::Written);
        } else if let Some(path) = header.strip_prefix("Update File:") {
            push(&mut files, path, FileChange::Edited);
        } else if let Some(path) = header.strip_prefix("Delete File:") {
            push(&mut files, path, FileChange::Deleted);
        } else if let Some(path) = header.strip_prefix("Move to:") {
            if let Some(moved) = files.last_mut() {
                moved.how = FileChange::Deleted;
            }
            push(&mut files, path, FileChange::Written);
        }
    }
    files
}

/// The files of `patch_apply_end.changes` and `FileChange.changes`: an object from path to
/// `{"type":"add"|"delete"|"update","move_path":…}`, in older builds `{"add":{…}}`.
pub(super) fn changes(changes: &Fields<'_>) -> Vec<FileTouch> {
    let mut files = Vec::new();
    for (path, change) in changes.members().take(MAX_FILES) {
        let Some(change) = Fields::parse(change) else {
            continue;
        };
        let tag = change.text("type");
        let is = |name: &str| tag.as_deref() == Some(name) || change.raw(name).is_some();
        let moved = change
            .text("move_path")
            .or_else(|| change.object("update")?.text("move_path"))
            .filter(|to| !to.is_empty());
        if let Some(to) = moved {
            push(&mut files, path, FileChange::Deleted);
            push(&mut files, &to, FileChange::Written);
        } else if is("add") {
            push(&mut files, path, FileChange::Written);
        } else if is("delete") {
            push(&mut files, path, FileChange::Deleted);
        } else if is("update") {
            push(&mut files, path, FileChange::Edited);
        }
    }
    files
}

fn push(files: &mut Vec<FileTouch>, path: &str, how: FileChange) {
    let path = tidy(path, MAX_PATH);
    if !path.is_empty() {
        files.push(FileTouch { path, how });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(files: &[FileTouch]) -> Vec<String> {
        files.iter().map(|file| format!("{:?} {}", file.how, file.path)).collect()
    }

    #[test]
    fn the_headers_of_a_patch_name_its_files() {
        let patch = "*** Begin Patch\n*** Add File: a b.rs\n+x\n*** Update File: c.rs\n@@\n-*** Add File: no\n\
                     +y\n*** Delete File: d.rs\n*** Update File: old.rs\n*** Move to: new.rs\n*** End Patch\n\
                     *** Add File: after.rs";
        assert_eq!(
            shown(&files(patch)),
            ["Written a b.rs", "Edited c.rs", "Deleted d.rs", "Deleted old.rs", "Written new.rs"]
        );
    }

    #[test]
    fn a_patch_in_a_command_line_is_found() {
        let heredoc =
            "apply_patch <<'EOF'\n*** Begin Patch\n*** Update File: a.rs\r\n*** End Patch\nEOF";
        assert_eq!(shown(&files(heredoc)), ["Edited a.rs"]);
        let argument = "apply_patch *** Begin Patch\n*** Delete File: b.rs\n*** End Patch";
        assert_eq!(shown(&files(argument)), ["Deleted b.rs"]);
    }

    #[test]
    fn headers_outside_a_patch_name_nothing() {
        assert!(files("*** Update File: a.rs").is_empty());
    }

    #[test]
    fn reported_changes_are_read_in_both_spellings() {
        let object = r#"{"/p/a":{"type":"add","content":"x"},"/p/b":{"update":{"unified_diff":"","move_path":"/p/c"}},
            "/p/d":{"type":"update","move_path":null},"/p/e":{"delete":{}},"/p/f":7}"#;
        let fields = Fields::parse(object).expect("object");
        assert_eq!(
            shown(&changes(&fields)),
            ["Written /p/a", "Deleted /p/b", "Written /p/c", "Edited /p/d", "Deleted /p/e"]
        );
    }
}
