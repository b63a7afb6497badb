//! The order of the rooms in `ccm-core/src`: no import runs from a lower room to a higher. The order is the picture in
//! ARCHITECTURE.md; this reads it, and every path that begins at the crate's root.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
use std::collections::{BTreeMap, BTreeSet};

use crate::tree::{Source, files, read};

const SOURCES: &str = "ccm-core/src/";

/// The row of each room, 0 at the bottom.
fn rows() -> BTreeMap<String, usize> {
    let text = read("ARCHITECTURE.md");
    let picture = text.split("```rooms\n").nth(1).and_then(|rest| rest.split("```").next()).expect("a picture of the rooms");
    let rows = picture.lines().rev().enumerate();
    rows.flat_map(|(at, row)| row.split_whitespace().map(move |room| (room.to_owned(), at))).collect()
}

/// The room that a file lies in: `provider` of `ccm-core/src/provider/session.rs`.
fn room(path: &str) -> Option<&str> {
    path.strip_prefix(SOURCES)?.split('/').next()?.split('.').next()
}

/// The rooms that a file names, each with a line in which it does.
fn named(file: &Source) -> BTreeMap<String, usize> {
    let paths = file.code().flat_map(|(at, line)| line.split("crate::").skip(1).map(move |rest| (at, rest)));
    let rooms = paths.flat_map(|(at, rest)| roots(rest).into_iter().map(move |room| (room, at)));
    rooms.collect()
}

/// The first names of a path or of a group of paths: `a` of `a::b`, `a` and `b` of `{a::x, b}`.
fn roots(rest: &str) -> Vec<String> {
    let name = |text: &str| text.trim().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect::<String>();
    match rest.strip_prefix('{') {
        Some(group) => group.split(',').map(name).filter(|name| !name.is_empty()).collect(),
        None => vec![name(rest)],
    }
}

fn core() -> Vec<Source> {
    files("rs").into_iter().filter(|file| file.path.starts_with(SOURCES)).collect()
}

#[test]
fn every_room_is_in_the_picture_and_every_room_of_the_picture_exists() {
    let sources = core();
    let exist: BTreeSet<_> = sources.iter().filter_map(|file| room(&file.path)).map(str::to_owned).collect();
    assert_eq!(exist, rows().into_keys().collect(), "ARCHITECTURE.md, \"The order of the rooms\"");
}

#[test]
fn no_import_runs_from_a_lower_room_to_a_higher() {
    let rows = rows();
    let mut found = Vec::new();
    for file in core().iter().filter(|file| !file.is_test()) {
        let own = rows[room(&file.path).expect("a room")];
        for (other, at) in named(file).into_iter().filter(|(other, _)| rows.get(other).is_some_and(|row| *row > own)) {
            found.push(format!("{}:{at} imports from `{other}`, which is above it", file.path));
        }
    }
    assert!(found.is_empty(), "move it down, or pass it in:\n  {}", found.join("\n  "));
}

#[test]
fn groups_and_single_paths_are_both_seen() {
    assert_eq!(roots("model::node::Node;"), ["model"]);
    assert_eq!(roots("{cluster::gate, config};"), ["cluster", "config"]);
}
