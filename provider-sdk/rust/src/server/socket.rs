//! The socket file: who may take it, what is done about one that exists, and its removal. It knows nothing of gRPC.
use std::fs::{DirBuilder, File, OpenOptions, Permissions, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::net::{UnixListener, UnixStream};
use tokio::time::timeout;

/// The socket's mode: owner and group may connect.
const SOCKET_MODE: u32 = 0o660;
/// The mode of a directory that is made for it.
const DIRECTORY_MODE: u32 = 0o770;
/// How long a live server has to accept the connection that tells it from a stale file.
const PROBE: Duration = Duration::from_secs(1);

/// Why a socket could not be taken.
#[derive(Debug, thiserror::Error)]
pub enum SocketError {
    /// Another process holds the lock.
    #[error("another provider holds {}: stop it, or give this one another --endpoint", path.display())]
    Locked {
        /// The lock file.
        path: PathBuf,
    },
    /// A process answers on the socket.
    #[error("something already listens on {}: stop it, or give this provider another --endpoint", path.display())]
    InUse {
        /// The socket.
        path: PathBuf,
    },
    /// The path is a file of another kind, which is left alone.
    #[error("{} exists and is no socket: remove it, or give another --endpoint", path.display())]
    NotASocket {
        /// The file.
        path: PathBuf,
    },
    /// The system refused.
    #[error("cannot {action} {}: is the directory writable for this user?", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// With what.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// A socket that listens, and the lock that makes it this process's own.
#[derive(Debug)]
pub struct Socket {
    path: PathBuf,
    /// Device and inode: a file that replaced ours is not removed.
    identity: (u64, u64),
    _lock: File,
}

impl Socket {
    /// Takes the path: locks it, removes a stale socket, listens.
    pub async fn bind(path: &Path) -> Result<(Self, UnixListener), SocketError> {
        make_directory(path)?;
        let lock = lock(path)?;
        make_way(path).await?;
        let failed = |action| move |source| SocketError::Io { action, path: path.to_owned(), source };
        let listener = UnixListener::bind(path).map_err(failed("listen on"))?;
        std::fs::set_permissions(path, Permissions::from_mode(SOCKET_MODE)).map_err(failed("set the mode of"))?;
        let identity = identity(path).map_err(failed("look at"))?;
        Ok((Self { path: path.to_owned(), identity, _lock: lock }, listener))
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        if identity(&self.path).is_ok_and(|identity| identity == self.identity)
            && let Err(error) = std::fs::remove_file(&self.path)
        {
            tracing::warn!(path = %self.path.display(), %error, "the socket could not be removed");
        }
    }
}

fn identity(path: &Path) -> io::Result<(u64, u64)> {
    std::fs::symlink_metadata(path).map(|file| (file.dev(), file.ino()))
}

/// Makes the directory if there is none; one that exists keeps its mode.
fn make_directory(path: &Path) -> Result<(), SocketError> {
    let Some(directory) = path.parent().filter(|directory| !directory.exists()) else { return Ok(()) };
    let failed = |source| SocketError::Io { action: "make the directory", path: directory.to_owned(), source };
    DirBuilder::new().recursive(true).mode(DIRECTORY_MODE).create(directory).map_err(failed)?;
    // The process's umask may have taken the group's share.
    std::fs::set_permissions(directory, Permissions::from_mode(DIRECTORY_MODE)).map_err(failed)
}

/// The lock file stays when the server ends: removing it would let two processes lock two files of one name.
fn lock(socket: &Path) -> Result<File, SocketError> {
    let mut path = socket.as_os_str().to_owned();
    path.push(".lock");
    let path = PathBuf::from(path);
    let file = OpenOptions::new().write(true).create(true).truncate(false).mode(SOCKET_MODE).open(&path);
    let file = file.map_err(|source| SocketError::Io { action: "open the lock", path: path.clone(), source })?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(SocketError::Locked { path }),
        Err(TryLockError::Error(source)) => Err(SocketError::Io { action: "lock", path, source }),
    }
}

/// Removes a socket that nobody answers on.
async fn make_way(path: &Path) -> Result<(), SocketError> {
    let failed = |action| move |source| SocketError::Io { action, path: path.to_owned(), source };
    match std::fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(failed("look at")(error)),
        Ok(file) if !file.file_type().is_socket() => return Err(SocketError::NotASocket { path: path.to_owned() }),
        Ok(_) => {}
    }
    match timeout(PROBE, UnixStream::connect(path)).await {
        Ok(Err(error)) if error.kind() == io::ErrorKind::ConnectionRefused => {
            tracing::info!(path = %path.display(), "removing a stale socket: nobody answers on it");
            std::fs::remove_file(path).map_err(failed("remove the stale socket"))
        }
        Ok(Err(error)) if error.kind() == io::ErrorKind::PermissionDenied => {
            Err(failed("tell whether anything listens on")(error))
        }
        _ => Err(SocketError::InUse { path: path.to_owned() }),
    }
}
