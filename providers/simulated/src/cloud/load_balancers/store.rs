//! Load balancers on disk: a JSON file for each, replaced whole, so that a change of one of a thousand writes one file. A
//! change that was acknowledged survives a kill -9 and a power cut. What they mean is not this module's matter; the lock on
//! the directory is the cloud's own.
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::model::LoadBalancer;
use crate::cloud::store::{FORMAT, StoreError, at, replace};

/// A file.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Saved {
    /// The layout of the file.
    format: u32,
    /// What is in it.
    load_balancer: LoadBalancer,
}

/// The directory of the files.
#[derive(Debug)]
pub struct Files {
    directory: PathBuf,
}

impl Files {
    /// Makes the directory where needed, and reads what is there.
    pub fn open(directory: PathBuf) -> Result<(Self, Vec<LoadBalancer>), StoreError> {
        fs::create_dir_all(&directory).map_err(at(&directory))?;
        let mut kept = Vec::new();
        for entry in fs::read_dir(&directory).map_err(at(&directory))? {
            let path = entry.map_err(at(&directory))?.path();
            // Anything else is what a killed process had not finished.
            if path.extension().is_some_and(|extension| extension == "json") {
                kept.push(read(&path)?);
            }
        }
        Ok((Self { directory }, kept))
    }

    /// Keeps this in place of what was kept under its name.
    pub fn save(&self, one: &LoadBalancer) -> Result<(), StoreError> {
        let file = self.file(&one.name);
        let saved = Saved { format: FORMAT, load_balancer: one.clone() };
        let content = |source| StoreError::Content { path: file.display().to_string(), source };
        let text = serde_json::to_vec(&saved).map_err(content)?;
        replace(&self.directory, &file, &text).map_err(at(&file))
    }

    /// Keeps nothing of this name.
    pub fn remove(&self, name: &str) -> Result<(), StoreError> {
        let file = self.file(name);
        match fs::remove_file(&file) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(at(&file)(error)),
            _ => {}
        }
        File::open(&self.directory).and_then(|directory| directory.sync_all()).map_err(at(&self.directory))
    }

    fn file(&self, name: &str) -> PathBuf {
        self.directory.join(format!("{name}.json"))
    }
}

fn read(path: &Path) -> Result<LoadBalancer, StoreError> {
    let text = fs::read(path).map_err(at(path))?;
    let name = || path.display().to_string();
    let saved: Saved = serde_json::from_slice(&text).map_err(|source| StoreError::Content { path: name(), source })?;
    if saved.format == FORMAT { Ok(saved.load_balancer) } else { Err(StoreError::Format { path: name(), found: saved.format }) }
}
