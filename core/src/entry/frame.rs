//! Bytes become lines. Split on `\n` only (formats.md F1): both tools write U+2028 and its kin raw inside
//! strings. Memory is bounded: a line longer than [`MAX_LINE`] is measured and hashed, not kept.

use std::ops::ControlFlow;

use crate::ids::{LineHash, LineHasher};

/// Lines longer than this many bytes are not parsed (formats.md F11); their place and hash are recorded.
pub const MAX_LINE: usize = 64 * 1024 * 1024;

/// How much of a line that is too long is kept, to tell its type.
const SAMPLE: usize = 4 * 1024;

/// One complete line.
#[derive(Debug, PartialEq, Eq)]
pub struct Line<'a> {
    /// Offset of its first byte in the source.
    pub offset: u64,
    /// Its length in bytes, without the `\n`.
    pub length: u64,
    /// Hash of its bytes, without the `\n`.
    pub hash: LineHash,
    /// What it holds.
    pub body: Body<'a>,
}

/// The bytes of a line.
#[derive(Debug, PartialEq, Eq)]
pub enum Body<'a> {
    /// All of them, without the `\n`.
    Whole(&'a [u8]),
    /// The first few of a line over [`MAX_LINE`].
    TooLong(&'a [u8]),
}

/// Cuts a stream of bytes into lines and holds back the last, unfinished one.
#[derive(Debug)]
pub struct Framer {
    /// Offset in the source of the first byte that is not yet part of a complete line.
    line_start: u64,
    /// The unfinished line, up to `max_line` bytes of it.
    partial: Vec<u8>,
    /// Set once the unfinished line is too long to keep.
    overflow: Option<Overflow>,
    max_line: usize,
}

#[derive(Debug)]
struct Overflow {
    length: u64,
    hasher: LineHasher,
}

impl Framer {
    /// Starts at `offset`, which must be the start of a line.
    pub fn new(offset: u64) -> Self {
        Self::with_max_line(offset, MAX_LINE)
    }

    /// Like [`Framer::new`], with another limit.
    pub fn with_max_line(offset: u64, max_line: usize) -> Self {
        Self { line_start: offset, partial: Vec::new(), overflow: None, max_line }
    }

    /// Offset just after the last complete line.
    pub fn line_start(&self) -> u64 {
        self.line_start
    }

    /// Bytes held back for the unfinished line.
    pub fn pending(&self) -> u64 {
        self.overflow.as_ref().map_or(self.partial.len() as u64, |overflow| overflow.length)
    }

    /// The unfinished line, unless it is empty or too long.
    pub fn unfinished(&self) -> Option<&[u8]> {
        (self.overflow.is_none() && !self.partial.is_empty()).then_some(&self.partial[..])
    }

    /// Takes the next bytes and hands each line that they complete to `take`.
    pub fn push<B>(
        &mut self,
        mut bytes: &[u8],
        mut take: impl FnMut(Line<'_>) -> ControlFlow<B>,
    ) -> ControlFlow<B> {
        while let Some(end) = memchr::memchr(b'\n', bytes) {
            let (head, rest) = bytes.split_at(end);
            bytes = &rest[1..];
            self.finish(head, &mut take)?;
        }
        self.hold(bytes);
        ControlFlow::Continue(())
    }

    /// Completes the line that ends with `head`.
    fn finish<B>(
        &mut self,
        head: &[u8],
        take: &mut impl FnMut(Line<'_>) -> ControlFlow<B>,
    ) -> ControlFlow<B> {
        let offset = self.line_start;
        let result;
        let length;
        if self.overflow.is_some() || self.partial.len() + head.len() > self.max_line {
            self.hold(head);
            // `hold` went over the limit or was over it before.
            let (total, hash) = match self.overflow.take() {
                Some(overflow) => (overflow.length, overflow.hasher.finish()),
                None => (self.partial.len() as u64, LineHash::of(&self.partial)),
            };
            length = total;
            let sample = &self.partial[..self.partial.len().min(SAMPLE)];
            result = take(Line { offset, length, hash, body: Body::TooLong(sample) });
        } else if self.partial.is_empty() {
            length = head.len() as u64;
            let hash = LineHash::of(head);
            result = take(Line { offset, length, hash, body: Body::Whole(head) });
        } else {
            self.partial.extend_from_slice(head);
            length = self.partial.len() as u64;
            let hash = LineHash::of(&self.partial);
            result = take(Line { offset, length, hash, body: Body::Whole(&self.partial) });
        }
        self.partial.clear();
        // A big line must not leave a big buffer behind.
        self.partial.shrink_to(1024 * 1024);
        self.line_start = offset + length + 1;
        result
    }

    /// Keeps bytes of the unfinished line, or counts them once there are too many.
    fn hold(&mut self, bytes: &[u8]) {
        if let Some(overflow) = &mut self.overflow {
            overflow.length += bytes.len() as u64;
            overflow.hasher.update(bytes);
        } else if self.partial.len() + bytes.len() > self.max_line {
            let mut hasher = LineHasher::new();
            hasher.update(&self.partial);
            hasher.update(bytes);
            let length = (self.partial.len() + bytes.len()) as u64;
            self.overflow = Some(Overflow { length, hasher });
            let missing = SAMPLE.saturating_sub(self.partial.len()).min(bytes.len());
            self.partial.extend_from_slice(&bytes[..missing]);
            self.partial.truncate(SAMPLE);
            self.partial.shrink_to(SAMPLE);
        } else {
            self.partial.extend_from_slice(bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use proptest::prelude::*;

    use super::*;

    /// (offset, length, hash, bytes if whole) of each line, and the bytes left over.
    type Framed = (Vec<(u64, u64, LineHash, Option<Vec<u8>>)>, u64);

    fn frame(chunks: &[&[u8]], max_line: usize) -> Framed {
        let mut framer = Framer::with_max_line(0, max_line);
        let mut lines = Vec::new();
        for chunk in chunks {
            let flow: ControlFlow<Infallible> = framer.push(chunk, |line| {
                let body = match line.body {
                    Body::Whole(bytes) => Some(bytes.to_vec()),
                    Body::TooLong(_) => None,
                };
                lines.push((line.offset, line.length, line.hash, body));
                ControlFlow::Continue(())
            });
            assert!(flow.is_continue());
        }
        let pending = framer.pending();
        (lines, pending)
    }

    #[test]
    fn a_torn_line_waits_for_its_rest() {
        let (lines, pending) = frame(&[b"one\ntw"], 100);
        assert_eq!((lines.len(), pending), (1, 2));
        let (lines, pending) = frame(&[b"one\ntw", b"o\n"], 100);
        assert_eq!(lines[1].3.as_deref(), Some(&b"two"[..]));
        assert_eq!((lines[1].0, pending), (4, 0));
    }

    #[test]
    fn unicode_line_separators_do_not_split() {
        let (lines, _) = frame(&["a\u{2028}b\u{85}c\x0b\x0cd\n".as_bytes()], 100);
        assert_eq!(lines.len(), 1);
    }

    #[test]
    fn a_line_over_the_limit_is_measured_and_the_next_is_whole() {
        let long = vec![b'x'; 10_000];
        let (lines, _) = frame(&[&long[..3_000], &long[3_000..], b"\nnext\n"], 4_096);
        assert_eq!((lines[0].1, lines[0].2), (10_000, LineHash::of(&long)));
        assert_eq!(lines[0].3, None);
        assert_eq!(lines[1].0, 10_001);
        assert_eq!(lines[1].3.as_deref(), Some(&b"next"[..]));
    }

    #[test]
    fn a_stop_leaves_the_framer_after_the_line_that_was_taken() {
        let mut framer = Framer::new(0);
        let flow = framer.push(b"a\nb\n", |_| ControlFlow::Break(()));
        assert!(flow.is_break());
        assert_eq!(framer.line_start(), 2);
    }

    proptest! {
        #[test]
        fn any_cut_of_the_same_bytes_gives_the_same_lines(
            bytes in prop::collection::vec(prop_oneof![Just(b'\n'), any::<u8>()], 0..400),
            cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..8),
            max_line in 1_usize..64,
        ) {
            let mut at: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
            at.extend([0, bytes.len()]);
            at.sort_unstable();
            let chunks: Vec<&[u8]> = at.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect();
            let (cut, cut_pending) = frame(&chunks, max_line);
            let (whole, whole_pending) = frame(&[&bytes], max_line);
            prop_assert_eq!(&cut, &whole);
            prop_assert_eq!(cut_pending, whole_pending);
            let consumed: u64 = cut.iter().map(|line| line.1 + 1).sum();
            prop_assert_eq!(consumed + cut_pending, bytes.len() as u64);
        }
    }
}
