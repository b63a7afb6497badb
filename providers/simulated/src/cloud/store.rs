//! The cloud's state on disk: one JSON file, replaced whole. A change that was acknowledged survives a kill -9 and a power
//! cut; a file is never seen half written. It knows nothing of what the state means.
use std::collections::BTreeMap;
use std::fs::{self, File, TryLockError};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::model::Volume;
use super::world::Slot;

/// The layout of the file; another number is another layout.
pub(super) const FORMAT: u32 = 1;

/// What is kept.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Saved {
    /// The layout of the file.
    format: u32,
    /// Names the cloud for its whole life.
    pub cloud_identity: String,
    /// Machines, by name.
    pub slots: BTreeMap<String, Slot>,
    /// Disks, by id.
    pub volumes: BTreeMap<String, Volume>,
}

impl Saved {
    /// What shall be kept.
    pub fn new(cloud_identity: String, slots: BTreeMap<String, Slot>, volumes: BTreeMap<String, Volume>) -> Self {
        Self { format: FORMAT, cloud_identity, slots, volumes }
    }
}

/// Why the state could not be read or kept.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The directory or a file in it resists.
    #[error("--state: {path}: {source}")]
    File {
        /// Which.
        path: String,
        /// How.
        source: io::Error,
    },
    /// Another process keeps its state there.
    #[error("--state: another process uses {0}; stop it, or choose another directory")]
    InUse(String),
    /// The file is not what this program writes.
    #[error("--state: {path} cannot be read: {source}; move it away to start anew")]
    Content {
        /// Which.
        path: String,
        /// Where it goes wrong.
        source: serde_json::Error,
    },
    /// The file was written by another version.
    #[error("--state: {path} has format {found}, and this program reads {FORMAT}; move it away to start anew")]
    Format {
        /// Which.
        path: String,
        /// The format that it has.
        found: u32,
    },
}

/// A directory that this process alone writes to.
#[derive(Debug)]
pub struct Store {
    directory: PathBuf,
    file: PathBuf,
    /// Locked as long as the store lives; the kernel lets go of it however the process ends.
    _lock: File,
}

impl Store {
    /// Takes the directory, making it where needed, and reads what is there.
    pub fn open(directory: &Path) -> Result<(Self, Option<Saved>), StoreError> {
        fs::create_dir_all(directory).map_err(at(directory))?;
        let store = Self { directory: directory.to_owned(), file: directory.join("cloud.json"), _lock: lock(directory)? };
        let saved = store.read()?;
        Ok((store, saved))
    }

    fn read(&self) -> Result<Option<Saved>, StoreError> {
        let path = || self.file.display().to_string();
        let text = match fs::read(&self.file) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(at(&self.file)(error)),
        };
        let saved: Saved = serde_json::from_slice(&text).map_err(|source| StoreError::Content { path: path(), source })?;
        if saved.format == FORMAT { Ok(Some(saved)) } else { Err(StoreError::Format { path: path(), found: saved.format }) }
    }

    /// Keeps this in place of what was kept. When it returns, the state is on the disk.
    pub fn save(&self, saved: &Saved) -> Result<(), StoreError> {
        let text =
            serde_json::to_vec(saved).map_err(|source| StoreError::Content { path: self.file.display().to_string(), source })?;
        replace(&self.directory, &self.file, &text).map_err(at(&self.file))
    }
}

/// Puts a text in place of a file of the directory. When it returns, it is on the disk.
pub(super) fn replace(directory: &Path, file: &Path, text: &[u8]) -> io::Result<()> {
    let mut next = tempfile::Builder::new().prefix(".cloud-").tempfile_in(directory)?;
    next.write_all(text)?;
    next.as_file().sync_all()?;
    next.persist(file)?;
    // Without this the rename itself may be lost.
    File::open(directory)?.sync_all()
}

fn lock(directory: &Path) -> Result<File, StoreError> {
    let path = directory.join("lock");
    let file = File::options().create(true).truncate(false).write(true).open(&path).map_err(at(&path))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(StoreError::InUse(directory.display().to_string())),
        Err(TryLockError::Error(error)) => Err(at(&path)(error)),
    }
}

/// Names the file in what it resists with.
pub(super) fn at(path: &Path) -> impl FnOnce(io::Error) -> StoreError {
    let path = path.display().to_string();
    |source| StoreError::File { path, source }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn what_was_saved_is_read_by_the_next_process() {
        let directory = tempfile::tempdir().unwrap();
        let saved = Saved::new("simulated://x".into(), BTreeMap::from([("a".into(), Slot::default())]), BTreeMap::new());
        let (store, nothing) = Store::open(directory.path()).unwrap();
        assert_eq!(nothing, None);
        store.save(&saved).unwrap();
        drop(store);
        assert_eq!(Store::open(directory.path()).unwrap().1, Some(saved));
    }

    #[test]
    fn two_processes_cannot_share_a_directory() {
        let directory = tempfile::tempdir().unwrap();
        let _first = Store::open(directory.path()).unwrap();
        assert!(matches!(Store::open(directory.path()), Err(StoreError::InUse(_))));
    }

    #[test]
    fn a_broken_file_is_named_and_left_alone() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("cloud.json");
        fs::write(&file, "{").unwrap();
        let message = Store::open(directory.path()).unwrap_err().to_string();
        assert!(message.contains("cloud.json"), "{message}");
        assert_eq!(fs::read_to_string(file).unwrap(), "{");
    }
}
