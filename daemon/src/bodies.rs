//! Reads the text of entries through their places. The ledger holds none: what is shown, drafted or searched is
//! read from the tool's own file at the moment of use.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use anyhow::Result;
use majordomus_core::entry::{self, Text};
use majordomus_core::ids::{LedgerSeq, SourceRow, Tool};
use majordomus_core::ledger::{Place, Reader, SourceStatus};

use crate::tail::is_packed;

/// Longer lines are not read for their text; their places say that they are there.
const MAX_BODY: u64 = 16 * 1024 * 1024;

/// Reads bodies, best in file order: the file that was read last stays open until another one is asked for.
#[derive(Default)]
pub struct Bodies {
    open: Option<Open>,
}

struct Open {
    source: SourceRow,
    tool: Tool,
    generation: u32,
    bytes: Bytes,
}

enum Bytes {
    /// Not readable now: gone, or not ours to read.
    None,
    Plain(File),
    /// A compressed file can only be read forwards.
    Compressed {
        path: PathBuf,
        plain: Box<dyn Read + Send>,
        position: u64,
    },
}

impl Bodies {
    /// The texts on the line of the event `seq`, as [`Bodies::texts`] has them; none for an event without a line.
    pub async fn texts_of(&mut self, reader: &mut Reader, seq: LedgerSeq) -> Result<Vec<Text>> {
        match reader.place_of(seq).await? {
            Some(place) => self.texts(reader, place).await,
            None => Ok(Vec::new()),
        }
    }

    /// The texts on the line at `place`; empty when the line cannot be read any more.
    pub async fn texts(&mut self, reader: &mut Reader, place: Place) -> Result<Vec<Text>> {
        if self.open.as_ref().is_none_or(|open| open.source != place.source) {
            self.open = Some(open(reader, place.source).await?);
        }
        let Some(open) = &mut self.open else { return Ok(Vec::new()) };
        if open.generation != place.generation || place.length > MAX_BODY {
            return Ok(Vec::new());
        }
        Ok(match open.bytes.read(place) {
            Ok(Some(line)) => entry::texts(open.tool, &line),
            Ok(None) => Vec::new(),
            Err(error) => {
                tracing::debug!(source = open.source.0, "a body cannot be read: {error}");
                Vec::new()
            }
        })
    }
}

async fn open(reader: &mut Reader, row: SourceRow) -> Result<Open> {
    let Some(source) = reader.source(row).await? else {
        return Ok(Open { source: row, tool: Tool::Claude, generation: 0, bytes: Bytes::None });
    };
    let bytes = if source.checkpoint.status == SourceStatus::Missing {
        Bytes::None
    } else if is_packed(&source.path) {
        Bytes::compressed(source.path.clone()).unwrap_or(Bytes::None)
    } else {
        File::open(&source.path).map_or(Bytes::None, Bytes::Plain)
    };
    Ok(Open { source: row, tool: source.tool, generation: source.checkpoint.generation, bytes })
}

impl Bytes {
    fn compressed(path: PathBuf) -> io::Result<Self> {
        let plain = Box::new(zstd::stream::read::Decoder::new(File::open(&path)?)?);
        Ok(Self::Compressed { path, plain, position: 0 })
    }

    fn read(&mut self, place: Place) -> io::Result<Option<Vec<u8>>> {
        let length = usize::try_from(place.length).map_err(io::Error::other)?;
        match self {
            Self::None => Ok(None),
            Self::Plain(file) => {
                let mut line = vec![0; length];
                file.read_exact_at(&mut line, place.position)?;
                Ok(Some(line))
            }
            Self::Compressed { path, position, .. } if *position > place.position => {
                *self = Self::compressed(path.clone())?;
                self.read(place)
            }
            Self::Compressed { plain, position, .. } => {
                let skip = place.position - *position;
                io::copy(&mut plain.by_ref().take(skip), &mut io::sink())?;
                let mut line = vec![0; length];
                plain.read_exact(&mut line)?;
                *position = place.position + place.length;
                Ok(Some(line))
            }
        }
    }
}
