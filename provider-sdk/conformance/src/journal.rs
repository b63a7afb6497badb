//! The journal: what a run made in the cloud, on disk before it is made, so that `--cleanup` finds it after a crash.
use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use ccm_proto::v1::{ClusterRef, Service};
use serde::{Deserialize, Serialize};

/// One line: what may exist from now on, or what is gone.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct Entry {
    /// What happened.
    pub event: Event,
    /// The name of the cluster on whose behalf it was made.
    pub cluster_name: String,
    /// That cluster's UID.
    pub cluster_uid: String,
    /// What it is.
    pub thing: Thing,
}

/// What happened to a thing.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub enum Event {
    /// It may exist from now on.
    Made,
    /// The provider said that it is gone.
    Gone,
}

/// A thing in the cloud.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub enum Thing {
    /// The load balancer of a Service.
    LoadBalancer {
        /// The Service's UID.
        uid: String,
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
    },
    /// A route.
    Route {
        /// Its destination.
        destination: String,
    },
    /// A machine that a hook made.
    Machine {
        /// The name of its node.
        name: String,
    },
}

/// The file; none in a run that changes nothing.
#[derive(Debug, Default)]
pub struct Journal(Option<File>);

impl Journal {
    /// Adds to the file, or makes it.
    pub fn open(path: &Path) -> io::Result<Self> {
        Ok(Self(Some(OpenOptions::new().create(true).append(true).open(path)?)))
    }

    /// Writes one line to the disk.
    pub fn note(&self, event: Event, cluster: &ClusterRef, thing: Thing) -> io::Result<()> {
        let Some(mut file) = self.0.as_ref() else { return Ok(()) };
        let entry = Entry { event, cluster_name: cluster.name.clone(), cluster_uid: cluster.uid.clone(), thing };
        file.write_all(format!("{}\n", serde_json::to_string(&entry)?).as_bytes())?;
        file.sync_data()
    }
}

/// What may still exist, by the file: all that was made and is not gone.
pub fn left(path: &PathBuf) -> io::Result<Vec<Entry>> {
    let mut left: Vec<Entry> = Vec::new();
    // A line that was being written when the suite was killed stands for nothing that was made.
    for entry in std::fs::read_to_string(path)?.lines().filter_map(|line| serde_json::from_str::<Entry>(line).ok()) {
        left.retain(|one| (&one.cluster_uid, &one.thing) != (&entry.cluster_uid, &entry.thing));
        if entry.event == Event::Made {
            left.push(entry);
        }
    }
    Ok(left)
}

impl Thing {
    /// The load balancer of this Service.
    pub fn of(service: &Service) -> Self {
        let Service { uid, namespace, name, .. } = service.clone();
        Self::LoadBalancer { uid, namespace, name }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn what_was_made_and_is_not_gone_is_left_and_a_torn_line_is_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("journal");
        let cluster = ClusterRef { name: "c".into(), uid: "u".into() };
        let journal = Journal::open(&path).unwrap();
        let route = |destination: &str| Thing::Route { destination: destination.into() };
        journal.note(Event::Made, &cluster, route("10.0.0.0/24")).unwrap();
        journal.note(Event::Made, &cluster, route("10.0.1.0/24")).unwrap();
        journal.note(Event::Gone, &cluster, route("10.0.0.0/24")).unwrap();
        std::fs::write(&path, std::fs::read_to_string(&path).unwrap() + "{\"event\":\"ma").unwrap();
        let left = left(&path).unwrap();
        assert_eq!(left.iter().map(|entry| entry.thing.clone()).collect::<Vec<_>>(), [route("10.0.1.0/24")]);
    }
}
