//! The yardstick of the catch-up: reads session files and parses each line into nothing.
//!
//! `cargo run --release -p majordomus-core --example bare_pass -- DIR…` prints bytes, lines and seconds.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::time::Instant;

use serde::de::IgnoredAny;

fn main() {
    let start = Instant::now();
    let mut files = Vec::new();
    for directory in std::env::args().skip(1) {
        collect(Path::new(&directory), &mut files);
    }
    let (mut bytes, mut lines, mut bad) = (0_usize, 0_usize, 0_usize);
    let mut line = Vec::new();
    for file in &files {
        let Ok(file) = File::open(file) else { continue };
        let mut input = BufReader::with_capacity(256 * 1024, file);
        loop {
            line.clear();
            match input.read_until(b'\n', &mut line) {
                Ok(0) | Err(_) => break,
                Ok(n) => bytes += n,
            }
            lines += 1;
            bad += usize::from(serde_json::from_slice::<IgnoredAny>(&line).is_err());
        }
    }
    let seconds = start.elapsed().as_secs_f64();
    println!(
        "{} files, {bytes} bytes, {lines} lines ({bad} not JSON) in {seconds:.3} s",
        files.len()
    );
}

fn collect(path: &Path, files: &mut Vec<PathBuf>) {
    if path.extension().is_some_and(|extension| extension == "jsonl") {
        files.push(path.to_owned());
    } else if let Ok(entries) = std::fs::read_dir(path) {
        for entry in entries.flatten() {
            collect(&entry.path(), files);
        }
    }
}
