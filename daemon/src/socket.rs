//! The status socket: JSON-RPC 2.0, one object per line, on a Unix socket that only its owner can use.
//!
//! What is asked does not wait for work: answers come from read-only views of the ledger and from counters. A
//! line is bounded, clients are bounded and timed, and garbage gets an error, never a crash.

pub mod client;
pub mod protocol;
pub mod server;
