//! The daemon and its companion: everything that touches files, processes, sockets and the clock. No rule is made
//! here: what an episode is, when it is over and what a note says is decided in `majordomus-core`.

pub mod api;
pub mod bodies;
pub mod clock;
pub mod close;
pub mod config;
pub mod console;
pub mod ctl;
pub mod daemon;
pub mod failure;
pub mod git;
pub mod live;
pub mod lock;
pub mod paths;
pub mod policy;
pub mod printable;
pub mod run;
pub mod scan;
pub mod socket;
pub mod story;
pub mod tail;
pub mod vault;
pub mod view;
pub mod watch;
pub mod write;
