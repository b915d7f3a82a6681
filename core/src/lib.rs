//! What majordomus decides. This library knows no runtime, no terminal, no network, no home directory and no
//! clock: it is handed bytes, rows and the time, and gives back values. Its one side effect is the ledger's
//! database, through a connection that it is given.
//!
//! The order of the modules is the flow of the data: a line becomes an [`entry`], entries become events of the
//! ledger, events fold into a session, an episode closes into an envelope, and a note is drafted from it.

pub mod draft;
pub mod entry;
pub mod envelope;
pub mod ids;
pub mod ledger;
pub mod note;
pub mod policy;
pub mod session;
