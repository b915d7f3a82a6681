-- A place is read once because the checkpoint of its source moves in the same transaction; the index that said so a
-- second time cost a third of every catch-up. The lines of a source are found through its session.
DROP INDEX event_place;

-- Which shapes of lines each version of a tool wrote, and how often: a count kept with the events, in the
-- transaction that adds them. A name is a path of type names, or of a type and a field that is not known.
CREATE TABLE shape (
    tool      TEXT NOT NULL,
    -- The tool's version as the lines tell it; empty where they do not.
    version   TEXT NOT NULL,
    name      TEXT NOT NULL,
    known     INTEGER NOT NULL CHECK (known IN (0, 1)),
    n         INTEGER NOT NULL,
    -- The first event of this shape.
    first_seq INTEGER NOT NULL,
    -- Names and types of the members of the first line of an unknown shape; never a text.
    sample    TEXT,
    PRIMARY KEY (tool, version, name)
) STRICT, WITHOUT ROWID;
