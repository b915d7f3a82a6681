//! `sqlx::migrate!` embeds the files at compile time but does not watch them: without this line a new
//! migration would be missing from an incremental build.
fn main() {
    println!("cargo:rerun-if-changed=../migrations");
}
