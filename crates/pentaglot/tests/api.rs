//! Rules for all options of the library.

mod tree;

use std::fs;

use tree::{rust_files, source};

/// Options structs are `#[non_exhaustive]`, so callers cannot build them as literals: each public field has a setter.
#[test]
fn every_option_has_a_setter() {
    let mut structs = 0;
    let mut missing = Vec::new();
    for file in rust_files(&source()) {
        let text = fs::read_to_string(&file).unwrap();
        for (at, _) in text.match_indices("pub struct ") {
            let rest = &text[at + "pub struct ".len()..];
            let name = rest.split(|c: char| !c.is_alphanumeric()).next().unwrap();
            if !name.ends_with("Options") && !["Limits", "View"].contains(&name) {
                continue;
            }
            structs += 1;
            let body = rest.split("\n}").next().unwrap();
            for line in body.lines() {
                let Some(field) = line.trim().strip_prefix("pub ").and_then(|line| line.split(':').next())
                else {
                    continue;
                };
                // The options of a format are set pair by pair.
                let setter =
                    if field == "options" { "fn with_option(".into() } else { format!("with_{field}(") };
                if !text.contains(&setter) {
                    missing.push(format!("{name}: no {setter}"));
                }
            }
        }
    }
    assert!(structs >= 8, "{structs} structs");
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}
