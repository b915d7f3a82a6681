//! Random lists of what tools, people and crashes do to files, against a model of what must come of them.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fs;
use std::path::PathBuf;

use proptest::prelude::*;

use super::*;

/// Something that happens to the files or to the daemon.
#[derive(Clone, Debug)]
enum Action {
    Append {
        file: usize,
        n: u8,
    },
    Part {
        file: usize,
        percent: u8,
    },
    Finish {
        file: usize,
    },
    /// A new file with the same lines and one more takes its place.
    Replace {
        file: usize,
    },
    /// The same file, without its first lines and with one more.
    Rewrite {
        file: usize,
        percent: u8,
    },
    Truncate {
        file: usize,
        percent: u8,
    },
    Delete {
        file: usize,
    },
    Restore {
        file: usize,
    },
    /// To the other directory and back.
    Move {
        file: usize,
    },
    /// Compresses a rollout, or unpacks it.
    Pack,
    /// The whole file under another project.
    Copy {
        file: usize,
    },
    /// A new file comes under the name of one that is renamed away.
    Rotate {
        file: usize,
    },
    Look {
        everything: bool,
    },
    /// A pass that planned and then came after another one.
    LateLook {
        file: usize,
    },
    Accept,
    Crash,
}

fn action() -> impl Strategy<Value = Action> {
    let file = 0..3_usize;
    let percent = 0..=100_u8;
    prop_oneof![
        6 => (file.clone(), 1..4_u8).prop_map(|(file, n)| Action::Append { file, n }),
        3 => (file.clone(), percent.clone()).prop_map(|(file, percent)| Action::Part { file, percent }),
        3 => file.clone().prop_map(|file| Action::Finish { file }),
        1 => file.clone().prop_map(|file| Action::Replace { file }),
        2 => (file.clone(), percent.clone()).prop_map(|(file, percent)| Action::Rewrite { file, percent }),
        1 => (file.clone(), percent).prop_map(|(file, percent)| Action::Truncate { file, percent }),
        1 => file.clone().prop_map(|file| Action::Delete { file }),
        2 => file.clone().prop_map(|file| Action::Restore { file }),
        2 => file.clone().prop_map(|file| Action::Move { file }),
        2 => Just(Action::Pack),
        1 => file.clone().prop_map(|file| Action::Copy { file }),
        1 => file.clone().prop_map(|file| Action::Rotate { file }),
        5 => any::<bool>().prop_map(|everything| Action::Look { everything }),
        2 => file.prop_map(|file| Action::LateLook { file }),
        2 => Just(Action::Accept),
        2 => Just(Action::Crash),
    ]
}

/// A session's file as its tool sees it.
struct Slot {
    session: &'static str,
    /// Its two places.
    places: [&'static str; 2],
    place: usize,
    is_packed: bool,
    /// The plain text.
    text: Vec<u8>,
    exists: bool,
    /// What is still missing of the unfinished line.
    rest: Vec<u8>,
}

struct World {
    home: Home,
    slots: Vec<Slot>,
    /// Files that were put beside those of the slots, with the plain text.
    beside: Vec<(PathBuf, Vec<u8>, &'static str)>,
    next: u64,
    /// The lines that stood complete in a session's file at a look.
    seen: BTreeMap<&'static str, BTreeSet<Timestamp>>,
}

impl World {
    async fn new() -> Self {
        let slot = |session, places| Slot {
            session,
            places,
            place: 0,
            is_packed: false,
            text: Vec::new(),
            exists: false,
            rest: Vec::new(),
        };
        let slots = vec![
            slot(ONE, ["claude/projects/-w-app", "claude/projects/-w-moved"]),
            slot(TWO, ["claude/projects/-w-app", "claude/projects/-w-moved"]),
            slot(THREAD, ["codex/sessions/2026/03/01", "codex/archived_sessions"]),
        ];
        let home = Home::new().await;
        Self { home, slots, beside: Vec::new(), next: 1, seen: BTreeMap::new() }
    }

    fn path(&self, file: usize) -> PathBuf {
        let slot = &self.slots[file];
        let name = match slot.session {
            THREAD => format!("rollout-2026-03-01T10-00-00-{THREAD}.jsonl"),
            session => format!("{session}.jsonl"),
        };
        let packed = if slot.is_packed { ".zst" } else { "" };
        self.home.path(&format!("{}/{name}{packed}", slot.places[slot.place]))
    }

    fn line(&mut self, file: usize) -> Vec<u8> {
        let n = self.next;
        self.next += 1;
        let mut line = match self.slots[file].session {
            THREAD => codex_line(n),
            session => claude_line(session, n),
        }
        .into_bytes();
        line.push(b'\n');
        line
    }

    /// Brings the slot's plain text to its file, as an append or as another content.
    fn store(&mut self, file: usize, appended: Option<&[u8]>) {
        let path = self.path(file);
        let slot = &self.slots[file];
        if slot.is_packed {
            let packed = zstd::encode_all(slot.text.as_slice(), 3).expect("packed");
            self.home.write(&path, &packed);
        } else if let Some(bytes) = appended
            && slot.exists
        {
            self.home.append(&path, bytes);
        } else {
            let text = slot.text.clone();
            self.home.write(&path, &text);
        }
        self.slots[file].exists = true;
    }

    fn append(&mut self, file: usize, mut bytes: Vec<u8>) {
        // The tools repair an unfinished line before they go on.
        if !self.slots[file].rest.is_empty()
            || self.slots[file].text.last().is_some_and(|byte| *byte != b'\n')
        {
            bytes.insert(0, b'\n');
            self.slots[file].rest.clear();
        }
        if self.slots[file].text.is_empty() && self.slots[file].session == THREAD {
            bytes = [codex_meta().into_bytes(), vec![b'\n'], bytes].concat();
        }
        self.slots[file].text.extend_from_slice(&bytes);
        self.store(file, Some(&bytes));
    }

    async fn act(&mut self, action: &Action) {
        match *action {
            Action::Append { file, n } => {
                let lines: Vec<u8> = (0..n).flat_map(|_| self.line(file)).collect();
                self.append(file, lines);
            }
            Action::Part { file, percent } => {
                let line = self.line(file);
                let cut = (line.len() * usize::from(percent) / 100).clamp(1, line.len() - 1);
                self.append(file, line[..cut].to_vec());
                self.slots[file].rest = line[cut..].to_vec();
            }
            Action::Finish { file } => {
                let rest = std::mem::take(&mut self.slots[file].rest);
                if !rest.is_empty() {
                    self.slots[file].text.extend_from_slice(&rest);
                    self.store(file, Some(&rest));
                }
            }
            Action::Replace { file } if self.slots[file].exists => {
                let mut line = self.line(file);
                if self.slots[file].text.last().is_some_and(|byte| *byte != b'\n') {
                    line.insert(0, b'\n');
                }
                self.slots[file].rest.clear();
                self.slots[file].text.extend_from_slice(&line);
                let path = self.path(file);
                fs::rename(&path, path.with_extension("old")).expect("moved");
                self.store(file, None);
                fs::remove_file(path.with_extension("old")).expect("removed");
            }
            Action::Rewrite { file, percent } if self.slots[file].exists => {
                self.cut(file, percent, false);
                let line = self.line(file);
                self.slots[file].text.extend_from_slice(&line);
                self.store(file, None);
            }
            Action::Truncate { file, percent } if self.slots[file].exists => {
                self.cut(file, percent, true);
                self.store(file, None);
            }
            Action::Delete { file } if self.slots[file].exists => {
                fs::remove_file(self.path(file)).expect("removed");
                self.slots[file].exists = false;
            }
            Action::Restore { file }
                if !self.slots[file].exists && !self.slots[file].text.is_empty() =>
            {
                self.store(file, None);
            }
            Action::Move { file } if self.slots[file].exists => {
                let from = self.path(file);
                self.slots[file].place ^= 1;
                let to = self.path(file);
                fs::create_dir_all(to.parent().expect("a directory")).expect("made");
                fs::rename(from, &to).expect("moved");
                self.home.named.insert(to.clone());
                self.beside.retain(|(path, ..)| *path != to);
            }
            Action::Pack if self.slots[2].exists => {
                let from = self.path(2);
                self.slots[2].is_packed = !self.slots[2].is_packed;
                self.store(2, None);
                fs::remove_file(from).expect("removed");
            }
            Action::Copy { file } if self.slots[file].exists && file != 2 => {
                let session = self.slots[file].session;
                let to = self.home.path(&format!("claude/projects/-w-copy/{session}.jsonl"));
                let text = self.slots[file].text.clone();
                self.home.write(&to, &text);
                self.beside.retain(|(path, ..)| *path != to);
                self.beside.push((to, text, session));
            }
            Action::Rotate { file } if self.slots[file].exists => {
                let from = self.path(file);
                let away = from.with_extension("jsonl.bak");
                fs::rename(&from, away).expect("moved");
                self.slots[file].rest.clear();
                self.slots[file].text.clear();
                self.slots[file].exists = false;
                let line = self.line(file);
                self.append(file, line);
            }
            Action::Look { everything } => {
                let scope = if everything { Scope::Everything } else { Scope::Some };
                self.home.look(scope).await;
                self.note(false);
            }
            Action::LateLook { file } => {
                let late = self.home.plan(Scope::Everything).await;
                let line = self.line(file);
                self.append(file, line);
                self.home.look(Scope::Some).await;
                self.home.read(late).await;
                self.note(false);
            }
            Action::Accept => {
                self.home.look(Scope::Everything).await;
                self.home.accept().await;
                self.note(true);
            }
            Action::Crash => self.home.reopen().await,
            // There is no file to which this could happen.
            _ => {}
        }
    }

    /// Drops lines from the end or from the beginning.
    fn cut(&mut self, file: usize, percent: u8, from_end: bool) {
        let slot = &mut self.slots[file];
        slot.rest.clear();
        let lines: Vec<&[u8]> = slot.text.split_inclusive(|byte| *byte == b'\n').collect();
        let whole = lines.iter().filter(|line| line.ends_with(b"\n")).count();
        let kept = whole * usize::from(percent) / 100;
        slot.text = match from_end {
            true => lines[..kept].concat(),
            // A rollout keeps its header.
            false if slot.session == THREAD && whole > 0 => {
                [lines[..1].concat(), lines[(whole - kept).max(1)..whole].concat()].concat()
            }
            false => lines[whole - kept..whole].concat(),
        };
    }

    /// Notes which lines a look had before it.
    fn note(&mut self, accepted: bool) {
        let own = self.slots.iter().filter(|slot| slot.exists);
        let own = own.map(|slot| (&slot.text, slot.session));
        let beside = self.beside.iter().map(|(_, text, session)| (text, *session));
        for (text, session) in own.chain(beside) {
            for line in text.split_inclusive(|byte| *byte == b'\n') {
                if !line.ends_with(b"\n") && !accepted {
                    continue;
                }
                let Ok(line) = serde_json::from_slice::<serde_json::Value>(line) else { continue };
                if line["type"] == "session_meta" {
                    continue;
                }
                let at = line["timestamp"].as_str().expect("a time").parse().expect("a time");
                self.seen.entry(session).or_default().insert(at);
            }
        }
    }

    async fn check(&self) {
        let rows = self.home.rows().await;
        let mut places = HashSet::new();
        let mut ends: BTreeMap<(SourceRow, u32), u64> = BTreeMap::new();
        for (session, rows) in &rows {
            let mut counted = Vec::new();
            for (source, (generation, position, length, kind, at, counts, _)) in rows {
                assert!(places.insert((*source, *generation, *position)), "a place twice");
                let end = ends.entry((*source, *generation)).or_default();
                assert_eq!(*position, *end, "{session}: no gap and no overlap");
                *end = position + length + 1;
                if *counts && matches!(*kind, "prompt" | "answer") {
                    counted.push(at.expect("a time"));
                }
            }
            counted.sort_unstable();
            let none = BTreeSet::new();
            let seen = self.seen.get(session.as_str()).unwrap_or(&none);
            assert_eq!(counted, seen.iter().copied().collect::<Vec<_>>(), "{session}");
        }
        for session in self.seen.keys() {
            assert!(rows.keys().any(|known| known.as_str() == *session), "{session} is lost");
        }
        for (row, source) in self.home.sources().await {
            let checkpoint = source.checkpoint;
            let end = ends.get(&(row, checkpoint.generation)).copied().unwrap_or(0);
            assert!(
                checkpoint.position == end || checkpoint.position + 1 == end,
                "position {} and rows up to {end}",
                checkpoint.position
            );
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn whatever_happens_to_the_files_each_line_counts_once(
        actions in prop::collection::vec(action(), 1..24),
    ) {
        block_on(async {
            let mut world = World::new().await;
            for action in &actions {
                world.act(action).await;
            }
            world.act(&Action::Look { everything: true }).await;
            world.check().await;
            let before = world.home.lines().await;
            assert_eq!(world.home.look(Scope::Everything).await.events, 0);
            assert_eq!(world.home.lines().await, before, "a second look adds nothing");
        });
    }
}
