//! Finds the session files below a tool's root. It knows where the tools put them and what lies beside them
//! (formats.md 1.2 and 2.1), follows symlinked directories once, and opens nothing.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use majordomus_core::ids::Tool;

/// A directory that a tool keeps its state in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WatchRoot {
    /// Whose it is.
    pub tool: Tool,
    /// Where it is; canonical if it exists.
    pub path: PathBuf,
}

/// A file that may be a session file, by its name and place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Whose it is.
    pub tool: Tool,
    /// Where it is.
    pub path: PathBuf,
    /// The path below the root, with `/` between components.
    pub below_root: String,
}

/// What a scan found.
#[derive(Debug, Default)]
pub struct Scan {
    /// Files that may be session files.
    pub files: Vec<Candidate>,
    /// Directories in which such files can appear: to be watched.
    pub directories: Vec<PathBuf>,
    /// What could not be looked at, one line each.
    pub problems: Vec<String>,
}

/// Directories of the tools that hold no transcripts.
const OTHER_DIRECTORIES: &[&str] = &["tool-results", "memory", "session-env", "scripts"];

/// How deep below a root transcripts lie at most; a guard against loops that inodes do not show.
const MAX_DEPTH: usize = 12;

impl Scan {
    /// Adds what another scan found.
    pub fn add(&mut self, other: Self) {
        self.files.extend(other.files);
        self.directories.extend(other.directories);
        self.problems.extend(other.problems);
    }
}

impl WatchRoot {
    /// The directories below the root that hold transcripts.
    fn trees(&self) -> &'static [&'static str] {
        match self.tool {
            Tool::Claude => &["projects"],
            Tool::Codex => &["sessions", "archived_sessions"],
        }
    }

    /// Looks through the whole root. A root that does not exist gives nothing: it may appear later.
    pub fn scan(&self) -> Scan {
        let mut scan = Scan::default();
        if !self.path.is_dir() {
            return scan;
        }
        scan.directories.push(self.path.clone());
        let mut seen = HashSet::new();
        for tree in self.trees() {
            let directory = self.path.join(tree);
            // The tree itself may be a symlink to another disk (formats.md F14).
            if directory.is_dir() {
                self.walk(&directory, tree, 0, &mut seen, &mut scan);
            }
        }
        scan
    }

    /// Looks through one directory below the root, as after it appeared.
    pub fn scan_below(&self, directory: &Path) -> Scan {
        let mut scan = Scan::default();
        if directory == self.path {
            return self.scan();
        }
        if let Some(below) = self.below(directory)
            && self
                .trees()
                .iter()
                .any(|tree| below == *tree || below.starts_with(&format!("{tree}/")))
        {
            self.walk(directory, &below, 0, &mut HashSet::new(), &mut scan);
        }
        scan
    }

    /// The candidate at `path`, if a file there can be one.
    pub fn candidate(&self, path: &Path) -> Option<Candidate> {
        let below_root = self.below(path)?;
        is_transcript(self.tool, &below_root).then(|| Candidate {
            tool: self.tool,
            path: path.to_owned(),
            below_root,
        })
    }

    /// The path below the root with `/` between components; `None` if it is not below it.
    fn below(&self, path: &Path) -> Option<String> {
        let below = path.strip_prefix(&self.path).ok()?;
        let parts: Vec<_> = below.iter().map(OsStr::to_string_lossy).collect();
        Some(parts.join("/"))
    }

    fn walk(
        &self,
        directory: &Path,
        below: &str,
        depth: usize,
        seen: &mut HashSet<(u64, u64)>,
        scan: &mut Scan,
    ) {
        let is_new = match fs::metadata(directory) {
            Ok(metadata) => seen.insert((metadata.dev(), metadata.ino())),
            Err(error) => {
                scan.problems.push(format!("cannot look at {}: {error}", directory.display()));
                return;
            }
        };
        if !is_new || depth > MAX_DEPTH {
            return;
        }
        let entries = match fs::read_dir(directory) {
            Ok(entries) => entries,
            Err(error) => {
                scan.problems.push(format!("cannot list {}: {error}", directory.display()));
                return;
            }
        };
        scan.directories.push(directory.to_owned());
        for entry in entries {
            let entry = match entry {
                Ok(entry) => entry,
                Err(error) => {
                    scan.problems.push(format!("cannot list {}: {error}", directory.display()));
                    continue;
                }
            };
            let name = entry.file_name();
            let name = name.to_string_lossy();
            let below = format!("{below}/{name}");
            let path = entry.path();
            // Follows symlinks: dotfile managers link single project directories.
            let Ok(metadata) = fs::metadata(&path) else { continue };
            if metadata.is_dir() {
                if is_transcript(self.tool, &below) {
                    scan.problems
                        .push(format!("{} is a directory, not a session file", path.display()));
                } else if !OTHER_DIRECTORIES.contains(&name.as_ref()) {
                    self.walk(&path, &below, depth + 1, seen, scan);
                }
            } else if metadata.is_file() && is_transcript(self.tool, &below) {
                scan.files.push(Candidate { tool: self.tool, path, below_root: below });
            }
        }
    }
}

/// Whether a file at this place below a root is a transcript, by its name.
fn is_transcript(tool: Tool, below_root: &str) -> bool {
    let mut parts: Vec<&str> = below_root.split('/').collect();
    let Some(name) = parts.pop() else { return false };
    // macOS resource forks and hidden files.
    if name.starts_with('.') {
        return false;
    }
    match tool {
        Tool::Claude => {
            let Some(stem) = name.strip_suffix(".jsonl") else { return false };
            match parts.as_slice() {
                ["projects", _project] => {
                    !stem.is_empty() && !matches!(stem, "history" | "journal" | "skill-injections")
                }
                ["projects", _project, _session, rest @ ..] => {
                    rest.contains(&"subagents") && stem.starts_with("agent-")
                }
                _ => false,
            }
        }
        Tool::Codex => {
            let is_below = matches!(parts.first(), Some(&"sessions" | &"archived_sessions"));
            let plain = name.strip_suffix(".zst").unwrap_or(name);
            is_below && name.starts_with("rollout-") && plain.strip_suffix(".jsonl").is_some()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_transcripts_are_taken() {
        for (tool, path) in [
            (Tool::Claude, "projects/-w-p/0b2c.jsonl"),
            (Tool::Claude, "projects/-w-p/agent-1a2b3c4d.jsonl"),
            (Tool::Claude, "projects/-w-p/0b2c/subagents/agent-1.jsonl"),
            (Tool::Claude, "projects/-w-p/0b2c/subagents/workflows/wf_1/agent-1.jsonl"),
            (Tool::Codex, "sessions/2026/01/02/rollout-x.jsonl"),
            (Tool::Codex, "sessions/rollout-x.jsonl"),
            (Tool::Codex, "archived_sessions/rollout-x.jsonl.zst"),
        ] {
            assert!(is_transcript(tool, path), "{path}");
        }
        for (tool, path) in [
            (Tool::Claude, "history.jsonl"),
            (Tool::Claude, "projects/history.jsonl"),
            (Tool::Claude, "projects/-w-p/0b2c.jsonl.tmp"),
            (Tool::Claude, "projects/-w-p/._0b2c.jsonl"),
            (Tool::Claude, "projects/-w-p/0b2c/subagents/workflows/wf_1/journal.jsonl"),
            (Tool::Claude, "projects/-w-p/0b2c/tool-results/agent-1.jsonl"),
            (Tool::Claude, "transcripts/ses_1.jsonl"),
            (Tool::Codex, "history.jsonl"),
            (Tool::Codex, "session_index.jsonl"),
            (Tool::Codex, "sessions/2026/01/02/rollout-x.jsonl.tmp"),
            (Tool::Codex, "sessions/2026/01/02/debug_transcript.jsonl"),
        ] {
            assert!(!is_transcript(tool, path), "{path}");
        }
    }

    #[test]
    fn a_symlinked_project_is_followed_once_and_a_loop_ends() {
        let home = tempfile::tempdir().expect("a directory");
        let root = WatchRoot { tool: Tool::Claude, path: home.path().join("root") };
        let real = home.path().join("elsewhere/-w-p");
        fs::create_dir_all(&real).expect("made");
        fs::create_dir_all(root.path.join("projects")).expect("made");
        fs::write(real.join("a.jsonl"), "").expect("written");
        std::os::unix::fs::symlink(&real, root.path.join("projects/-w-p")).expect("linked");
        std::os::unix::fs::symlink(&real, root.path.join("projects/-w-q")).expect("linked");
        std::os::unix::fs::symlink(&root.path, real.join("loop")).expect("linked");
        assert_eq!(root.scan().files.len(), 1);
    }

    #[test]
    fn a_directory_with_a_session_files_name_is_named_and_the_rest_goes_on() {
        let home = tempfile::tempdir().expect("a directory");
        let root = WatchRoot { tool: Tool::Claude, path: home.path().to_owned() };
        fs::create_dir_all(home.path().join("projects/-w-p/x.jsonl")).expect("made");
        fs::write(home.path().join("projects/-w-p/y.jsonl"), "").expect("written");
        let scan = root.scan();
        assert_eq!(scan.files.len(), 1);
        assert_eq!(scan.problems.len(), 1);
        assert!(scan.problems[0].contains("x.jsonl is a directory"));
    }
}
