//! End-to-end tests: the real binaries, real files, a real socket. Each file of tests is about one promise.

mod catch_up;
mod corpus;
mod cli;
mod crash;
mod live;
mod notes;
mod privacy;
mod support;
