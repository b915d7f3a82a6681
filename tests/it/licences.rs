//! Every dependency has a licence that this project accepts. Works offline: it asks cargo for what is locked.

use std::process::Command;

use serde_json::Value;

/// The same list stands in deny.toml.
const ACCEPTED: [&str; 12] = [
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "ISC",
    "MIT",
    "MPL-2.0",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

/// Whether an SPDX expression can be met with accepted licences.
fn is_met(expression: &str) -> bool {
    // Old crates write `MIT/Apache-2.0` for `MIT OR Apache-2.0`.
    let expression = expression.replace('/', " OR ").replace(['(', ')'], "");
    expression.split(" AND ").all(|all| all.split(" OR ").any(|one| ACCEPTED.contains(&one.trim())))
}

#[test]
fn every_dependency_has_a_licence_that_is_accepted() {
    // Only this platform's packages are sure to be here.
    let rustc = Command::new("rustc").arg("-vV").output().expect("rustc runs");
    let rustc = String::from_utf8_lossy(&rustc.stdout).into_owned();
    let host = rustc.lines().find_map(|line| line.strip_prefix("host: ")).expect("a host");
    let output = Command::new(env!("CARGO"))
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .args(["metadata", "--format-version", "1", "--locked", "--offline"])
        .args(["--filter-platform", host])
        .output()
        .expect("cargo runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let packages = metadata["packages"].as_array().expect("a list");
    assert!(packages.len() > 50);
    let refused: Vec<String> = packages
        .iter()
        .filter(|package| !package["license"].as_str().is_some_and(is_met))
        .map(|package| {
            format!("{} {}: {}", package["name"], package["version"], package["license"])
        })
        .collect();
    assert!(refused.is_empty(), "{refused:#?}");
    // Nothing is fetched from anywhere but the registry.
    let foreign = packages.iter().filter_map(|package| package["source"].as_str());
    assert!(foreign.clone().all(|source| source.starts_with("registry+")));
}

#[test]
fn the_list_is_the_one_of_deny_toml() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../deny.toml");
    let deny = std::fs::read_to_string(path).expect("read");
    for licence in ACCEPTED {
        assert!(deny.contains(&format!("\"{licence}\"")), "{licence}");
    }
}
