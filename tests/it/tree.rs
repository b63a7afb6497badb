//! The project's files as the tests of its own rules see them. It reads, and judges nothing.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
use std::fs;
use std::path::{Path, PathBuf};

/// Folders that hold nothing of ours.
const FOREIGN: [&str; 4] = ["target", "node_modules", "__pycache__", ".git"];

/// A file of the project.
pub struct Source {
    /// Its path from the project's root, with `/`.
    pub path: String,
    /// What is in it.
    pub text: String,
}

impl Source {
    /// Whether it is of a test, rather than of what is shipped.
    pub fn is_test(&self) -> bool {
        self.path.split('/').any(|part| part == "tests" || part == "tests.rs" || part == "scripted.rs")
    }

    /// The code lines of Rust without comments, up to a module of tests at the end, each with its number.
    pub fn code(&self) -> impl Iterator<Item = (usize, &str)> {
        let shipped = self.text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
        shipped.lines().enumerate().map(|(at, line)| (at + 1, line.split("//").next().unwrap_or_default()))
    }
}

/// The project's root.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the package `ccm-tests` lies in the root").to_owned()
}

/// One file, by its path from the root.
pub fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// All files with this extension, sorted by path.
pub fn files(extension: &str) -> Vec<Source> {
    let mut paths = Vec::new();
    collect(&root(), extension, &mut paths);
    paths.sort();
    paths
        .into_iter()
        .map(|path| Source { text: fs::read_to_string(&path).expect("text in UTF-8"), path: relative(&path) })
        .collect()
}

/// Whether `word` stands in `line` by itself: `tonic`, and not the `tonic` of `monotonic`.
pub fn has_word(line: &str, word: &str) -> bool {
    line.split(|c: char| !c.is_alphanumeric() && c != '_').any(|part| part == word)
}

fn relative(path: &Path) -> String {
    path.strip_prefix(root()).expect("below the root").to_string_lossy().replace('\\', "/")
}

fn collect(folder: &Path, extension: &str, into: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder of the project") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if path.is_dir() && !FOREIGN.contains(&name) {
            collect(&path, extension, into);
        } else if path.extension().is_some_and(|found| found == extension) && path.is_file() {
            into.push(path);
        }
    }
}
