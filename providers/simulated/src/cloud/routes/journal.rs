//! The routes on disk: a journal with a line for each change, which a start makes as short as the table. A change that was
//! acknowledged survives a kill -9 and a power cut; a batch is one write. What the lines mean is the table's matter; the lock on
//! the directory is the cloud's own.
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ipnet::IpNet;
use serde::{Deserialize, Serialize};

use super::model::Route;
use super::table::{Record, Table};
use crate::cloud::store::{FORMAT, StoreError, at, replace};

/// The file.
const FILE: &str = "journal.jsonl";

/// A line.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
enum Line {
    /// The first: the layout of the file.
    Format(u32),
    /// A route is there.
    Put(Box<Route>),
    /// A route is gone.
    Gone(IpNet, String),
}

/// The journal of a cloud that runs.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: File,
}

impl Journal {
    /// Makes the directory where needed, and reads what is there. The journal begins anew with just that.
    pub fn open(directory: &Path) -> Result<(Self, Table), StoreError> {
        fs::create_dir_all(directory).map_err(at(directory))?;
        let path = directory.join(FILE);
        let table = read(&path)?;
        let text = lines(std::iter::once(Line::Format(FORMAT)).chain(table.all().map(put)), &path)?;
        replace(directory, &path, &text).map_err(at(&path))?;
        let file = File::options().append(true).open(&path).map_err(at(&path))?;
        Ok((Self { path, file }, table))
    }

    /// Keeps these changes. When it returns, they are on the disk.
    pub fn append(&mut self, records: &[Record]) -> Result<(), StoreError> {
        let line = |record: &Record| match record {
            Record::Put(route) => put(route),
            Record::Gone(destination, id) => Line::Gone(*destination, id.clone()),
        };
        let text = lines(records.iter().map(line), &self.path)?;
        self.file.write_all(&text).and_then(|()| self.file.sync_data()).map_err(at(&self.path))
    }
}

fn put(route: &Arc<Route>) -> Line {
    Line::Put(Box::new(route.as_ref().clone()))
}

fn lines(lines: impl Iterator<Item = Line>, path: &Path) -> Result<Vec<u8>, StoreError> {
    let mut text = Vec::new();
    for line in lines {
        serde_json::to_writer(&mut text, &line).map_err(content(path))?;
        text.push(b'\n');
    }
    Ok(text)
}

fn read(path: &Path) -> Result<Table, StoreError> {
    let text = match fs::read(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Table::default()),
        Err(error) => return Err(at(path)(error)),
    };
    // What has no end of line was never acknowledged.
    let whole = text.iter().rposition(|byte| *byte == b'\n').map_or(&text[..0], |end| &text[..end]);
    let mut table = Table::default();
    for line in whole.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        match serde_json::from_slice(line).map_err(content(path))? {
            Line::Format(FORMAT) => {}
            Line::Format(found) => return Err(StoreError::Format { path: path.display().to_string(), found }),
            Line::Put(route) => table.replay(Record::Put(Arc::new(*route))),
            Line::Gone(destination, id) => table.replay(Record::Gone(destination, id)),
        }
    }
    Ok(table)
}

fn content(path: &Path) -> impl FnOnce(serde_json::Error) -> StoreError {
    let path = path.display().to_string();
    |source| StoreError::Content { path, source }
}
