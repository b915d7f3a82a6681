//! Kills: after one, and a new start, everything is as if nothing had happened.

use std::path::Path;
use std::time::Duration;

use sha2::{Digest as _, Sha256};

use crate::support::{Home, ago};

const N: usize = 40;

/// The same sessions in each home: their times are fixed when the test starts.
fn fill(home: &Home, at: &str) {
    for n in 0..N {
        let mut claude = home.claude(&format!("0b2c9d1e-{n:04}-4000-8000-000000000001")).at(at);
        for turn in 0..30 {
            claude = claude.prompt(&format!("Prompt {turn}")).edit("/w/app/a.rs").answer("Done.");
        }
        let mut codex = home.codex(&format!("0b2c9d1e-{n:04}-4000-8000-000000000002")).at(at);
        codex = codex.meta(Path::new("/w/svc"));
        for turn in 0..30 {
            codex = codex.prompt(&format!("Prompt {turn}")).patch("src/a.rs").answer("Done.");
        }
    }
}

/// Everything that the ledger knows of entries, without the row ids that depend on the order of arrival.
fn ledger(home: &Home) -> Vec<String> {
    let path = home.state().join("ledger.db");
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let mut reader = majordomus_core::ledger::Reader::open(&path).await.expect("opened");
        let mut rows = Vec::new();
        for session in reader.sessions().await.expect("listed") {
            let (first, last) =
                (majordomus_core::ids::LedgerSeq(0), majordomus_core::ids::LedgerSeq(i64::MAX));
            let key = session.key.native.to_string();
            reader
                .events(session.row, first, last, |event| {
                    let place =
                        event.place.map(|place| (place.generation, place.position, place.length));
                    rows.push(format!(
                        "{key} {} {place:?} {:?} {:?}",
                        event.kind.as_str(),
                        event.counts,
                        event.facts
                    ));
                })
                .await
                .expect("read");
        }
        rows.sort();
        rows
    })
}

#[test]
fn a_kill_in_the_middle_of_the_catch_up_changes_nothing() {
    let at = ago(7_200);
    let undisturbed = Home::with_idle_after("20m");
    fill(&undisturbed, &at);
    undisturbed.once().ok();
    let expected = ledger(&undisturbed);
    assert_eq!(expected.len(), N * (30 * 4 + 2) + N * (1 + 30 * 6 + 2));

    let home = Home::with_idle_after("20m");
    fill(&home, &at);
    let mut kills = 0;
    for wait in [5_u64, 20, 40, 60, 80, 100, 140, 180] {
        let daemon = home.start_only();
        // A kill wherever the daemon happens to be: the point of the test is that it does not matter.
        std::thread::sleep(Duration::from_millis(wait));
        daemon.kill();
        kills += 1;
    }
    assert_eq!(kills, 8);
    home.once().ok();
    let got = ledger(&home);
    assert_eq!(got.len(), expected.len());
    assert_eq!(got, expected);
    assert_eq!(home.envelopes().len(), undisturbed.envelopes().len());
    assert_eq!(home.notes().len(), undisturbed.notes().len());
}

#[test]
fn case_086_a_stale_socket_is_no_obstacle() {
    let home = Home::new();
    home.start().kill();
    assert!(home.socket().exists(), "the kill left it");
    assert_eq!(home.ctl(&["status"]).code, 3, "nobody answers there");
    let _daemon = home.start();
}

#[test]
fn an_envelope_whose_close_was_cut_off_is_closed_again_with_the_same_bytes() {
    let home = Home::with_idle_after("20m");
    let id = "0b2c9d1e-0001-4000-8000-000000000001";
    home.claude(id).at(&ago(7_200)).prompt("One").answer("Done.");
    home.once().ok();
    let (name, bytes) = home.envelopes().remove(0);
    let digest = Sha256::digest(&bytes);
    // As after a kill between the file and the transaction: the file is there, the ledger knows nothing of it.
    for file in ["ledger.db", "ledger.db-wal", "ledger.db-shm"] {
        let path = home.state().join(file);
        if path.exists() {
            std::fs::remove_file(path).expect("removed");
        }
    }
    home.once().ok();
    let again = home.envelopes();
    assert_eq!(again.len(), 1);
    assert_eq!((&again[0].0, Sha256::digest(&again[0].1)), (&name, digest));
}
