//! deploy/README.md keeps up with the sources: every reason of an event and every metric has its row there, and no row is
//! about one that does not exist. What the words say is for a reader to judge.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
use std::collections::{BTreeMap, BTreeSet};

use crate::tree::{Source, files, read};

/// The rows of the table below a heading, cell by cell; the first cell is a name in backticks.
fn rows(heading: &str) -> Vec<Vec<String>> {
    let text = read("deploy/README.md");
    let section = text.split(&format!("\n## {heading}\n")).nth(1).unwrap_or_else(|| panic!("no heading {heading}"));
    let section = section.split("\n## ").next().unwrap_or_default();
    let rows = section.lines().filter(|line| line.starts_with("| `"));
    rows.map(|row| row.trim_matches('|').split('|').map(|cell| cell.trim().replace('`', "")).collect()).collect()
}

/// Both ways at once, so that one run tells all that is to be done.
fn same(what: &str, in_sources: &BTreeSet<String>, in_document: &BTreeSet<String>) {
    let missing: Vec<_> = in_sources.difference(in_document).collect();
    let unknown: Vec<_> = in_document.difference(in_sources).collect();
    assert!(missing.is_empty() && unknown.is_empty(), "{what}: without a row {missing:?}, with a row and unknown {unknown:?}");
}

/// What stands between the first two quotes.
fn literal(text: &str) -> Option<&str> {
    text.split('"').nth(1)
}

/// What stands between quotes and cannot be anything but a metric's name.
fn literals(text: &str) -> impl Iterator<Item = &str> {
    let is_name = |text: &&str| text.contains('_') && text.bytes().all(|b| b.is_ascii_lowercase() || b == b'_');
    text.split('"').skip(1).step_by(2).filter(is_name)
}

#[test]
fn every_reason_of_an_event_has_its_row() {
    let names = read("ccm-core/src/names.rs");
    let module = names.split("pub mod events {").nth(1).and_then(|rest| rest.split("\n}").next()).expect("the module events");
    let constants = module.split("pub const ").skip(1);
    let reasons: BTreeSet<_> =
        constants.map(|it| literal(it).unwrap_or_else(|| panic!("no reason in {it}")).to_owned()).collect();
    assert!(reasons.len() > 20, "only {reasons:?} were found");
    same("reasons of events", &reasons, &rows("Events").into_iter().map(|row| row[0].clone()).collect());
}

#[test]
fn every_metric_has_its_row() {
    let core = files("rs").into_iter().filter(|file| file.path.starts_with("ccm-core/src/") && !file.is_test());
    let registered: BTreeSet<_> = core.flat_map(|file| metrics(&file)).collect();
    assert!(registered.len() > 20, "only {registered:?} were found");
    // Counters are registered without the ending that they are shown with.
    let plain = |row: Vec<String>| match (row[0].strip_suffix("_total"), row[1].as_str()) {
        (Some(name), "counter") => name.to_owned(),
        (None, "gauge" | "histogram") => row[0].clone(),
        _ => panic!("counters, and nothing else, end in _total: {row:?}"),
    };
    same("metrics", &registered, &rows("Metrics").into_iter().map(plain).collect());
}

/// The names of the metrics that a file registers, with the prefixes of their registries.
fn metrics(file: &Source) -> Vec<String> {
    let code = file.code().map(|(_, line)| line).collect::<Vec<_>>().join("\n");
    let mut found = registered(&file.path, &code);
    if code.contains("impl Collector for") {
        found.extend(literals(&code).map(str::to_owned));
    }
    found
}

/// Call by call, in their order: `let it = registry.sub_registry_with_prefix("a")`, then `it.register("b", …)` is `a_b`.
fn registered(path: &str, code: &str) -> Vec<String> {
    let mut prefixes = BTreeMap::new();
    let mut found = Vec::new();
    for (at, _) in code.match_indices('(') {
        let (before, after) = (&code[..at], &code[at + 1..]);
        let Some((before, method)) = before.rsplit_once('.') else { continue };
        let receiver = before.trim_end().rsplit(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default();
        let name = || {
            let argument = after.split(',').next().unwrap_or_default();
            let name = literal(argument).filter(|_| argument.trim_start().starts_with('"') && !receiver.is_empty());
            let name = name.unwrap_or_else(|| panic!("{path}: cannot tell which metric this is: {receiver}.{method}({argument}"));
            prefixes.get(receiver).map_or_else(|| name.to_owned(), |prefix| format!("{prefix}_{name}"))
        };
        match method {
            "register" => found.push(name()),
            "sub_registry_with_prefix" => {
                let variable = before.rsplit_once("let ").and_then(|(_, rest)| rest.split_whitespace().next());
                let variable = variable.unwrap_or_else(|| panic!("{path}: a registry without a name: {receiver}.{method}"));
                let prefix = name();
                prefixes.insert(variable.to_owned(), prefix);
            }
            _ => {}
        }
    }
    found
}
