//! End-to-end tests: the real binaries, real files, a real socket. Each file of tests is about one promise.

#![expect(clippy::expect_used, reason = "a test that cannot set up its scene fails")]

mod catch_up;
mod cli;
mod corpus;
mod crash;
mod faults;
mod licences;
mod live;
mod notes;
mod privacy;
mod support;
