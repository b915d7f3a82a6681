//! Drafting and storing: closed episodes become notes in the vault. What a note says is decided in core; here is
//! the order of reading, merging and writing, so that a note is written once and a person's edits stay.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use majordomus_core::draft::{Redactor, check_evidence, extractive};
use majordomus_core::ids::SessionKey;
use majordomus_core::ledger::{DraftTask, Ledger, NoteRow, Reader, SessionState};
use majordomus_core::note::fields::Fields;
use majordomus_core::note::session::{read_questions, render_truth};
use majordomus_core::note::timeline::{self, merge_entry, merge_full, split_body};
use majordomus_core::note::{Note, NoteKind, NoteStatus, NoteTags, human, slug};
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

use crate::api::notes_cutoff;
use crate::config::{Scripted, VaultKind};
use crate::failure::{Exit, Failure};
use crate::git::Git;
use crate::policy::DraftRule;
use crate::run::{InForce, NoteRules, Settings};
use crate::story;
use crate::vault::{LocalVault, PutNote, Stored, StoredNote, UpdateNote, Vault, VaultError};

/// Times that a note is read and merged again because somebody else wrote it meanwhile.
const MAX_TRIES: usize = 5;

/// Drafts and stores notes.
#[derive(Debug)]
pub struct NoteWriter {
    ledger: Arc<Mutex<Ledger>>,
    /// Which sessions get notes; a reload may change it.
    pub rules: InForce<NoteRules>,
    settings: Settings,
    vault: Vault,
    git: Git,
    redactor: Redactor,
    /// Dates in notes are those of the user.
    time_zone: TimeZone,
}

/// What a pass did.
#[derive(Debug, Default)]
pub struct Pass {
    /// The notes that were written.
    pub written: Vec<WrittenNote>,
    /// Sessions whose note could not be written, one line each; they are tried again.
    pub failed: Vec<String>,
}

/// A note that was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrittenNote {
    /// Where it is.
    pub uri: String,
    /// Where a person can open it: its file, since the vault is a directory.
    pub place: String,
    /// It was there before.
    pub is_update: bool,
}

/// A note as it would be written.
#[derive(Clone, Debug)]
pub struct Drafted {
    /// Its slug.
    pub slug: String,
    /// The note.
    pub note: Note,
    /// The compiled truth as drafted, before a person's edits are put in.
    truth: String,
    /// Time of the last entry that it covers.
    synced_at: Timestamp,
    /// The session's directory.
    cwd: Option<String>,
    /// Its remote, where the transcript tells.
    remote: Option<String>,
}

/// What became of one session.
enum Done {
    Written(WrittenNote),
    /// There is nothing to write, now or later.
    Nothing,
}

impl NoteWriter {
    /// Opens the vault that `settings` name.
    pub fn new(settings: &Settings, ledger: Arc<Mutex<Ledger>>) -> Result<Self> {
        Ok(Self {
            ledger,
            vault: open_vault(settings)?,
            git: settings.git(),
            redactor: settings.redactor()?,
            rules: InForce::new(settings.note_rules()),
            settings: settings.clone(),
            time_zone: TimeZone::system(),
        })
    }

    /// The vault, for people.
    pub fn describe_vault(&self) -> String {
        self.settings.paths.vault_dir.display().to_string()
    }

    /// Writes the notes of every closed episode that has none yet. One that fails does not stop the others.
    pub async fn pass(&self, now: Timestamp, stop: &CancellationToken) -> Result<Pass> {
        let mut pass = Pass::default();
        let mut reader = Reader::open(&self.settings.paths.ledger).await?;
        let cutoff = notes_cutoff(&mut reader, self.rules.get().notes_since).await?;
        for task in reader.undrafted(cutoff).await? {
            if stop.is_cancelled() {
                break;
            }
            let Some(state) = reader.session(task.session).await? else { continue };
            match self.write(&mut reader, &state, &task, now).await {
                Ok(Done::Written(note)) => pass.written.push(note),
                Ok(Done::Nothing) => {}
                Err(error) => pass.failed.push(format!(
                    "cannot write the note of {} session {}: {error:#}",
                    state.key.tool, state.key.native
                )),
            }
        }
        Ok(pass)
    }

    async fn write(
        &self,
        reader: &mut Reader,
        state: &SessionState,
        task: &DraftTask,
        now: Timestamp,
    ) -> Result<Done> {
        if let Some(reason) = scripted_reason(self.rules.get().scripted, task) {
            return self.skip(task, reason).await;
        }
        let known = reader.notes(Some(state.row)).await?.into_iter().find(|note| {
            note.kind == NoteKind::Session.as_str() && note.vault == vault_name(&self.vault)
        });
        for _ in 0..MAX_TRIES {
            let there = self.existing(&state.key, known.as_ref()).await?;
            let there = match there {
                Existing::Deleted => return self.skip(task, "deleted_in_vault").await,
                Existing::Archived => return self.skip(task, "archived_in_vault").await,
                Existing::None => None,
                Existing::There(note) => Some(note),
            };
            let recorded = known.as_ref().and_then(|note| note.synced_at);
            let in_vault = there.as_deref().and_then(|note| tags_of(note).last_synced());
            // A write that the ledger did not learn of: its entry stands in the note already. With nothing after
            // it the same is written again, which changes nothing but the ledger.
            let mut draft = None;
            for since in [in_vault.max(recorded), recorded.or(in_vault)] {
                if draft.is_none() {
                    let with = (&self.git, &self.redactor, &self.time_zone);
                    draft = compose(reader, with, state, since, there.as_deref()).await?;
                }
            }
            let Some(draft) = draft else { return self.skip(task, "nothing_new").await };
            if let Some(reason) = self.forbidden(&draft).await {
                return self.skip(task, reason).await;
            }
            if let Some(why) = self.refusal(&draft) {
                anyhow::bail!(why);
            }
            let is_update = there.is_some();
            let stored = match there {
                None => self.put(&draft, now).await,
                Some(there) => self.update(&draft, &there, known.as_ref(), now).await,
            };
            match stored {
                Ok(stored) => {
                    self.record(state, task, &draft, &stored, now).await?;
                    let place =
                        self.settings.paths.vault_dir.join(&stored.path).display().to_string();
                    return Ok(Done::Written(WrittenNote { uri: stored.uri, place, is_update }));
                }
                // Somebody wrote it meanwhile: read, merge and try again.
                Err(VaultError::Conflict { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        anyhow::bail!("the note is being written by somebody else; it is tried again later")
    }

    /// The note of a session as the vault has it.
    async fn existing(&self, key: &SessionKey, known: Option<&NoteRow>) -> Result<Existing> {
        let uri = match known.and_then(|note| note.uri.clone()) {
            Some(uri) => uri,
            None => note_uri(&self.vault, NoteKind::Session, &slug::session(&key.native)),
        };
        match self.vault.get(&uri).await {
            Ok(note) if note.head.status == NoteStatus::Archived => Ok(Existing::Archived),
            Ok(note) => Ok(Existing::There(Box::new(note))),
            Err(VaultError::NotFound { .. }) if known.is_some_and(|note| note.uri.is_some()) => {
                // akb.md: a deleted note is made again only when somebody asks.
                Ok(Existing::Deleted)
            }
            Err(VaultError::NotFound { .. }) => Ok(Existing::None),
            Err(error) => Err(error.into()),
        }
    }

    /// Why the policy forbids a note about this session, if it does. It is asked here again: the remote is only
    /// known now, and a repository has its own word.
    async fn forbidden(&self, draft: &Drafted) -> Option<&'static str> {
        let policy = &self.settings.policy;
        let remote = match (&draft.remote, draft.cwd.as_deref()) {
            (None, Some(cwd)) if policy.needs_remote() => {
                self.git.observe(Path::new(cwd)).await.remote.value().cloned()
            }
            (remote, _) => remote.clone(),
        };
        if policy.exclusion(draft.cwd.as_deref(), remote.as_deref()).is_some() {
            return Some("excluded_by_policy");
        }
        let (rule, problem) = policy.draft_rule(Path::new(draft.cwd.as_deref()?));
        if let Some(problem) = problem {
            tracing::warn!("{problem}");
        }
        (rule == DraftRule::Off).then_some("draft_off_in_repository")
    }

    /// Why the vault must not be written to for this session.
    fn refusal(&self, draft: &Drafted) -> Option<String> {
        draft.cwd.as_deref().map(Path::new).and_then(|cwd| self.settings.refusal_in(cwd))
    }

    async fn put(&self, draft: &Drafted, now: Timestamp) -> Result<Stored, VaultError> {
        self.vault.put(put_note(draft, now)).await
    }

    async fn update(
        &self,
        draft: &Drafted,
        there: &StoredNote,
        known: Option<&NoteRow>,
        now: Timestamp,
    ) -> Result<Stored, VaultError> {
        let (current, _) = split_body(&there.body);
        let ours = known.map(|note| note.lines.as_slice()).unwrap_or_default();
        // Equal texts: a write that the ledger did not learn of, or nothing to say anew.
        let truth = if current.trim() == draft.truth.trim() {
            draft.truth.clone()
        } else {
            human::keep_edits(ours, current, &draft.truth)
        };
        let (_, entries) = split_body(&draft.note.body);
        let draft_body =
            entries.first().map_or_else(|| truth.clone(), |entry| merge_entry(entry, &truth));
        let merged = merge_full(&draft_body, &there.body);
        for warning in &merged.warnings {
            tracing::warn!("note {}: {warning}", there.head.uri);
        }
        let fields = Fields { ours, current, next: split_body(&merged.content).0 };
        let (title, summary) =
            (fields.title(&there.head.title), fields.summary(&there.head.summary));
        let tags = tags_of(there).updated_by(&draft.note.tags);
        self.vault
            .update(
                &there.head.uri,
                UpdateNote {
                    body: merged.content,
                    title: Some(title),
                    tags: Some(tags.into()),
                    summary: Some(summary),
                    status: None,
                    expected: Some(there.head.version.clone()),
                    message: "Update from resumed session".to_owned(),
                    at: now,
                },
            )
            .await
    }

    async fn record(
        &self,
        state: &SessionState,
        task: &DraftTask,
        draft: &Drafted,
        stored: &Stored,
        now: Timestamp,
    ) -> Result<()> {
        let note = NoteRow {
            session: state.row,
            kind: draft.note.kind.as_str().to_owned(),
            slug: draft.slug.clone(),
            vault: vault_name(&self.vault).to_owned(),
            uri: Some(stored.uri.clone()),
            version: Some(stored.version.0.clone()),
            // Of the draft, not of the merged text: a person's lines must not be taken for ours next time.
            lines: human::line_hashes(&draft.truth),
            synced_at: Some(draft.synced_at),
            episode: task.episode,
            updated_at: now,
        };
        self.ledger.lock().await.record_note(&note).await?;
        Ok(())
    }

    async fn skip(&self, task: &DraftTask, reason: &str) -> Result<Done> {
        self.ledger.lock().await.skip_note(task.session, task.episode, reason).await?;
        Ok(Done::Nothing)
    }
}

/// A session's note in the vault.
enum Existing {
    /// There never was one.
    None,
    /// It is there.
    There(Box<StoredNote>),
    /// A person put it away: it is left alone.
    Archived,
    /// It was there, and somebody deleted it.
    Deleted,
}

fn tags_of(note: &StoredNote) -> NoteTags {
    NoteTags::parse(note.head.tags.iter())
}

/// Why a scripted session gets no note, if it does not.
fn scripted_reason(policy: Scripted, task: &DraftTask) -> Option<&'static str> {
    if !task.is_scripted {
        return None;
    }
    match policy {
        Scripted::Always => None,
        Scripted::Changed if task.has_changes => None,
        Scripted::Changed => Some("scripted_without_changes"),
        Scripted::Never => Some("scripted"),
    }
}

/// Drafts the session note as of `state`. `since` is the time up to which the note `there` covers the session;
/// `None` comes back when nothing is new since then.
pub async fn compose(
    reader: &mut Reader,
    (git, redactor, time_zone): (&Git, &Redactor, &TimeZone),
    state: &SessionState,
    since: Option<Timestamp>,
    there: Option<&StoredNote>,
) -> Result<Option<Drafted>> {
    let (mut story, summary) = story::read(reader, state).await?;
    add_subjects(git, &mut story).await;
    redactor.mask_story(&mut story);
    let checked = check_evidence(extractive::draft(&story, since), &story);
    for rejected in &checked.rejected {
        tracing::debug!(session = %state.key.native, why = ?rejected.why, "a statement was dropped");
    }
    let draft = checked.draft;
    let Some(entry) = &draft.entry else { return Ok(None) };
    let asked_before = there.map_or_else(Vec::new, |note| read_questions(split_body(&note.body).0));
    let truth = render_truth(&draft.sections(&asked_before));
    let entry = timeline::entry(&entry.text, &state.key.native, story.last_at, time_zone);
    let tags = NoteTags::new(state.key.tool, story.project.as_deref())
        .with_session(&state.key.native)
        .with_last_synced(story.last_at)
        .with_drafter(extractive::NAME)
        .with(&draft.topics);
    let note = Note {
        kind: NoteKind::Session,
        title: draft.title.clone(),
        summary: draft.plain_summary(),
        status: NoteStatus::Active,
        tags,
        body: merge_entry(&entry, &truth),
    };
    Ok(Some(Drafted {
        slug: slug::session(&state.key.native),
        note,
        truth,
        synced_at: story.last_at,
        remote: summary.git.remote,
        cwd: story.cwd,
    }))
}

/// Asks Git for the subjects of the story's commits; where it does not know them, the hash stands alone.
async fn add_subjects(git: &Git, story: &mut majordomus_core::draft::Story) {
    let Some(cwd) = story.cwd.clone() else { return };
    let hashes: Vec<String> = story.commits.iter().map(|commit| commit.hash.clone()).collect();
    if hashes.is_empty() {
        return;
    }
    for resolved in git.resolve_commits(Path::new(&cwd), &hashes).await {
        if let Some(commit) = story.commits.iter_mut().find(|commit| commit.hash == resolved.given)
        {
            commit.subject = resolved.subject;
        }
    }
}

/// What the vault is told of a new note.
pub fn put_note(draft: &Drafted, now: Timestamp) -> PutNote {
    PutNote {
        collection: draft.note.kind.collection().to_owned(),
        slug: draft.slug.clone(),
        title: draft.note.title.clone(),
        kind: draft.note.kind.akb_type().to_owned(),
        status: draft.note.status,
        tags: draft.note.tags.clone().into(),
        summary: draft.note.summary.clone(),
        body: draft.note.body.clone(),
        depends_on: Vec::new(),
        related_to: Vec::new(),
        at: now,
    }
}

/// Opens the vault that the settings name.
fn open_vault(settings: &Settings) -> Result<Vault> {
    match settings.config.vault.kind {
        VaultKind::Local => directory_vault(&settings.paths.vault_dir),
        VaultKind::Akb => Err(Failure::new(
            Exit::ConfigInvalid,
            "[vault] kind = \"akb\" is not in this version; take it out, and notes go to a local directory",
        )
        .into()),
    }
}

/// Opens a directory as a vault.
pub fn directory_vault(path: &Path) -> Result<Vault> {
    let vault = LocalVault::open(path)
        .with_context(|| format!("cannot use {} for notes", path.display()))?;
    Ok(Vault::Local(vault))
}

/// The name under which the ledger knows a vault.
fn vault_name(vault: &Vault) -> &'static str {
    match vault {
        Vault::Local(_) => "local",
    }
}

/// Where a note with this slug is, or would be.
fn note_uri(vault: &Vault, kind: NoteKind, slug: &str) -> String {
    match vault {
        Vault::Local(_) => format!("vault://local/{}/{slug}.md", kind.collection()),
    }
}
