//! What survives a restart, and what a disk that resists leaves behind.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
use super::*;
use crate::cloud::load_balancers::model::{Family, Publish, Targets};

fn wanted() -> Wanted {
    Wanted {
        mark: Mark { cluster_uid: "c".into(), service_uid: "s".into(), ..Mark::default() },
        ip_families: vec![Family::IPv4, Family::IPv6],
        publish: Publish::Hostname,
        ip_mode: None,
        listeners: Vec::new(),
        targets: Targets::default(),
        max_qps: Some(9),
    }
}

fn open(directory: &Path) -> Kept {
    Kept::open(Terms::default(), Some(directory)).unwrap()
}

#[test]
fn a_restart_finds_every_load_balancer_as_it_was() {
    let directory = tempfile::tempdir().unwrap();
    let first = open(directory.path());
    let web = first.put("web", wanted()).unwrap();
    first.put("db", wanted()).unwrap();
    first.delete("db", &wanted().mark).unwrap();
    drop(first);
    assert_eq!(open(directory.path()).all(), [web]);
}

#[test]
fn a_change_that_cannot_be_kept_is_not_made() {
    let directory = tempfile::tempdir().unwrap();
    let kept = open(directory.path());
    drop(directory);
    assert!(matches!(kept.put("web", wanted()), Err(CloudError::Storage(_))));
    assert!(kept.all().is_empty());
}

#[test]
fn what_a_killed_process_had_not_finished_is_no_load_balancer() {
    let directory = tempfile::tempdir().unwrap();
    open(directory.path()).put("web", wanted()).unwrap();
    std::fs::write(directory.path().join(DIRECTORY).join(".cloud-half"), "{").unwrap();
    assert_eq!(open(directory.path()).all().len(), 1);
}

#[test]
fn a_broken_file_is_named() {
    let directory = tempfile::tempdir().unwrap();
    open(directory.path()).put("web", wanted()).unwrap();
    std::fs::write(directory.path().join(DIRECTORY).join("web.json"), "{").unwrap();
    let message = Kept::open(Terms::default(), Some(directory.path())).unwrap_err().to_string();
    assert!(message.contains("web.json"), "{message}");
}
