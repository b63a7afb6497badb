//! What a restart finds in the journal.
#![allow(clippy::unwrap_used)]
use std::fs::{self, OpenOptions};
use std::io::Write as _;

use super::*;
use crate::cloud::routes::model::Target;

fn add(kept: &Kept, destination: &str) -> Arc<Route> {
    let destination = destination.parse().unwrap();
    kept.edit(Edit::Add { destination, target: Target::Gateway("vpn".into()), cluster_uid: None }).unwrap().unwrap()
}

fn all(kept: &Kept) -> Vec<Arc<Route>> {
    kept.table().all().cloned().collect()
}

#[test]
fn a_restart_finds_the_routes_and_a_short_journal() {
    let state = tempfile::tempdir().unwrap();
    let open = || Kept::open(Terms::default(), Some(state.path())).unwrap();
    let first = open();
    let (stays, goes) = (add(&first, "10.244.1.0/24"), add(&first, "fd00::/64"));
    first.edit(Edit::Mark { id: stays.id.clone(), cluster_uid: Some("c".into()) }).unwrap();
    first.edit(Edit::Remove { id: goes.id.clone() }).unwrap();
    let before = all(&first);
    drop(first);

    assert_eq!(all(&open()), before);
    let journal = fs::read_to_string(state.path().join("routes/journal.jsonl")).unwrap();
    assert_eq!(journal.lines().count(), 2, "{journal}");
}

#[test]
fn a_line_that_a_kill_cut_off_was_never_acknowledged() {
    let state = tempfile::tempdir().unwrap();
    let open = || Kept::open(Terms::default(), Some(state.path()));
    let first = open().unwrap();
    add(&first, "10.244.1.0/24");
    let before = all(&first);
    drop(first);
    let path = state.path().join("routes/journal.jsonl");
    OpenOptions::new().append(true).open(&path).unwrap().write_all(b"{\"put\":{\"id\":").unwrap();

    assert_eq!(all(&open().unwrap()), before);
    fs::write(&path, "nonsense\n").unwrap();
    assert!(matches!(open(), Err(StoreError::Content { .. })));
    fs::write(&path, "{\"format\":9}\n").unwrap();
    assert!(matches!(open(), Err(StoreError::Format { found: 9, .. })));
}
