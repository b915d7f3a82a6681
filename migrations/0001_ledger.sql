-- The ledger and what is derived from it. Never edit this file once it was released: add the next number.
--
-- `event` and `envelope` are append-only; triggers refuse UPDATE and DELETE. INSERT OR REPLACE would walk past
-- the triggers, so the program opens the database with recursive_triggers=ON.
-- Every other table is a projection or a cursor: it can be rebuilt from the events and the sources.

CREATE TABLE meta (
    key   TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- A session as its tool names it. A row without `first_seq` is only known by name (a parent not seen yet).
CREATE TABLE session (
    id            INTEGER PRIMARY KEY,
    tool          TEXT NOT NULL CHECK (tool IN ('claude', 'codex')),
    native        TEXT NOT NULL,
    -- A thread that a tool runs for itself (review, guardian): in the ledger, in no list.
    machine       INTEGER NOT NULL DEFAULT 0 CHECK (machine IN (0, 1)),
    forked_from   INTEGER REFERENCES session (id),
    -- First and last event that carry this session's stamp.
    first_seq     INTEGER,
    last_seq      INTEGER,
    -- Latest activity in microseconds since the epoch, never later than the file that shows it.
    active_at     INTEGER,
    -- A sign that the tool ended the session, and when; cleared by later activity.
    ended_at      INTEGER,
    -- Number of the open episode, or of the last closed one; 0 before the first.
    episode       INTEGER NOT NULL DEFAULT 0,
    -- First event of the open episode; NULL while none is open.
    open_seq      INTEGER,
    UNIQUE (tool, native)
) STRICT;
CREATE INDEX session_open ON session (active_at) WHERE open_seq IS NOT NULL;

-- Other ids under which a session can be found.
CREATE TABLE alias (
    session INTEGER NOT NULL REFERENCES session (id),
    alias   TEXT NOT NULL,
    PRIMARY KEY (alias, session)
) STRICT, WITHOUT ROWID;

-- A file of a tool, and how far it was read. `position` moves in the transaction that adds the events.
CREATE TABLE source (
    id          INTEGER PRIMARY KEY,
    tool        TEXT NOT NULL,
    -- The path as bytes: it need not be UTF-8.
    path        BLOB NOT NULL,
    device      INTEGER NOT NULL,
    inode       INTEGER NOT NULL,
    -- Counts the contents that this file has had: a rewrite starts the next one.
    generation  INTEGER NOT NULL DEFAULT 0,
    -- Size and change time at the last look; equal ones mean that there is nothing to read.
    size        INTEGER NOT NULL DEFAULT 0,
    mtime_ns    INTEGER NOT NULL DEFAULT 0,
    -- Bytes that are in the ledger: always the end of a line.
    position    INTEGER NOT NULL DEFAULT 0,
    -- Rolling hash of the lines up to `position`; tells an append from a rewrite.
    chain       BLOB NOT NULL,
    -- Hash of the first and the last bytes up to `position`: the cheap test for the same.
    anchor      BLOB NOT NULL,
    -- Bytes after `position` that wait for their line end.
    pending     INTEGER NOT NULL DEFAULT 0,
    session     INTEGER REFERENCES session (id),
    -- State of the line reader, as JSON.
    reader      TEXT NOT NULL,
    -- 'live', 'missing' (the file is gone, the ledger keeps what it has), 'unrecognised' (no session file, by its
    -- lines) or 'excluded' (by policy: its lines from `position` on are not in the ledger).
    state       TEXT NOT NULL DEFAULT 'live'
                CHECK (state IN ('live', 'missing', 'unrecognised', 'excluded')),
    error       TEXT
) STRICT;
CREATE UNIQUE INDEX source_path ON source (path);
CREATE INDEX source_inode ON source (device, inode);
CREATE INDEX source_session ON source (session);
CREATE INDEX source_pending ON source (id) WHERE pending > 0;

-- Where and with what a tool was at work; repeats on every line, so it is kept once. Empty means none.
CREATE TABLE context (
    id      INTEGER PRIMARY KEY,
    cwd     TEXT NOT NULL,
    branch  TEXT NOT NULL,
    version TEXT NOT NULL,
    agent   TEXT NOT NULL,
    UNIQUE (cwd, branch, version, agent)
) STRICT;

-- The ledger. `seq` is its line order and the only order that counts.
CREATE TABLE event (
    seq         INTEGER PRIMARY KEY,
    -- The session stamp.
    session     INTEGER REFERENCES session (id),
    -- The place of the entry; NULL for the daemon's own events.
    source      INTEGER REFERENCES source (id),
    generation  INTEGER,
    position    INTEGER,
    length      INTEGER,
    hash        BLOB,
    -- The entry's time in microseconds since the epoch, and as written where that is not the usual form.
    at          INTEGER,
    at_written  TEXT,
    kind        TEXT NOT NULL,
    context     INTEGER REFERENCES context (id),
    -- Identity across files; the event that holds it in table `entry` is the one that counts.
    entry       INTEGER,
    -- The session that the line says it was copied from.
    copied_from INTEGER REFERENCES session (id),
    -- Small structured facts as JSON; never a body.
    facts       TEXT
) STRICT;
CREATE UNIQUE INDEX event_place ON event (source, generation, position) WHERE source IS NOT NULL;
CREATE INDEX event_session ON event (session, seq) WHERE session IS NOT NULL;
CREATE INDEX event_odd ON event (kind) WHERE kind IN ('unreadable', 'unknown');

CREATE TRIGGER event_no_update BEFORE UPDATE ON event
BEGIN SELECT RAISE (ABORT, 'event is append-only'); END;
CREATE TRIGGER event_no_delete BEFORE DELETE ON event
BEGIN SELECT RAISE (ABORT, 'event is append-only'); END;

-- Which event counts for an entry that stands in several files.
CREATE TABLE entry (
    id  INTEGER PRIMARY KEY,
    seq INTEGER NOT NULL
) STRICT;

-- The closed episodes. The record itself is the file; this row proves it.
CREATE TABLE envelope (
    id          TEXT PRIMARY KEY,
    session     INTEGER NOT NULL REFERENCES session (id),
    episode     INTEGER NOT NULL,
    -- The session.closed event.
    closed_seq  INTEGER NOT NULL,
    first_seq   INTEGER NOT NULL,
    last_seq    INTEGER NOT NULL,
    -- Below the state directory.
    path        TEXT NOT NULL,
    sha256      TEXT NOT NULL,
    -- Hash of the envelope before it on this machine; NULL for the first.
    previous    TEXT,
    started_at  INTEGER,
    active_at   INTEGER,
    closed_at   INTEGER NOT NULL,
    reason      TEXT NOT NULL,
    outcome     TEXT NOT NULL,
    meaningful  INTEGER NOT NULL CHECK (meaningful IN (0, 1)),
    scripted    INTEGER NOT NULL CHECK (scripted IN (0, 1)),
    changed     INTEGER NOT NULL CHECK (changed IN (0, 1)),
    UNIQUE (session, episode)
) STRICT;
CREATE INDEX envelope_order ON envelope (closed_seq);
CREATE TRIGGER envelope_no_update BEFORE UPDATE ON envelope
BEGIN SELECT RAISE (ABORT, 'envelope is immutable'); END;
CREATE TRIGGER envelope_no_delete BEFORE DELETE ON envelope
BEGIN SELECT RAISE (ABORT, 'envelope is immutable'); END;

-- What a session's summary was folded to, up to `seq`; a cache.
CREATE TABLE summary (
    session INTEGER PRIMARY KEY REFERENCES session (id),
    seq     INTEGER NOT NULL,
    json    TEXT NOT NULL
) STRICT;

-- Notes and where they are. No text: the note itself is in the vault.
CREATE TABLE note (
    id          INTEGER PRIMARY KEY,
    session     INTEGER NOT NULL REFERENCES session (id),
    kind        TEXT NOT NULL,
    slug        TEXT NOT NULL,
    vault       TEXT NOT NULL,
    uri         TEXT,
    version     TEXT,
    -- Hashes of the lines that were written last, 8 bytes each, to tell a person's edits from ours.
    lines       BLOB NOT NULL,
    -- Last entry covered, in microseconds, and the last episode covered.
    synced_at   INTEGER,
    episode     INTEGER NOT NULL,
    updated_at  INTEGER NOT NULL,
    UNIQUE (session, kind, slug, vault)
) STRICT;

-- Why a closed episode has no note (and need not be looked at again).
CREATE TABLE skipped (
    session INTEGER NOT NULL REFERENCES session (id),
    episode INTEGER NOT NULL,
    reason  TEXT NOT NULL,
    PRIMARY KEY (session, episode)
) STRICT, WITHOUT ROWID;
