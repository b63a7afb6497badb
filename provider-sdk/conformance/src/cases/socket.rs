//! The socket: who may use it, and what providers do at their start and end. The suite starts providers of its own for this.
use std::fs::{self, File};
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ccm_proto::v1::GetProviderInfoRequest;
use uuid::Uuid;

use crate::case::{Case, Checked, Ended, Need, broken, check};
use crate::connection::channel;
use crate::context::{Context, HANDSHAKE, failed};
use crate::process::{By, Launcher, Running};
use crate::rpc::Rpc as _;
use crate::suite::handshake;

/// How long a provider without work may take to exit.
const EXIT: Duration = Duration::from_secs(40);

/// The cases.
pub const CASES: &[Case] = &[
    Case::new("socket/flag", "the endpoint is taken from --endpoint", &["SOCK-2"], &[Need::Command], |c| {
        Box::pin(serves_by(c, By::Flag))
    }),
    Case::new("socket/environment", "the endpoint is taken from PROVIDER_ENDPOINT", &["SOCK-2"], &[Need::Command], |c| {
        Box::pin(serves_by(c, By::Environment))
    }),
    Case::new("socket/modes", "a new folder has mode 0770, the socket 0660", &["SOCK-3"], &[Need::Command], |c| {
        Box::pin(modes(c))
    }),
    Case::new("socket/lock", "the lock file is locked by flock while the provider runs", &["SOCK-4"], &[Need::Command], |c| {
        Box::pin(lock(c))
    }),
    Case::new(
        "socket/taken",
        "a provider does not start where another one answers, and the other goes on",
        &["SOCK-5"],
        &[Need::Command],
        |c| Box::pin(taken(c)),
    ),
    Case::new("socket/stale", "a socket at which no process answers is replaced", &["SOCK-5"], &[Need::Command], |c| {
        Box::pin(stale(c))
    }),
    Case::new("socket/long-path", "a path that no socket can have is refused", &["SOCK-1"], &[Need::Command], |c| {
        Box::pin(long_path(c))
    }),
    Case::new(
        "socket/removed",
        "at shutdown the socket goes, the lock file stays, and the next provider starts",
        &["SOCK-9", "LIFE-3"],
        &[Need::Command],
        |c| Box::pin(removed(c)),
    ),
];

fn launcher(c: &Context) -> Checked<&Launcher> {
    c.suite.launcher.as_ref().ok_or_else(|| Ended::Skipped("needs --command".into()))
}

/// A path for a provider of the case's own, in a folder that does not exist.
fn new_path(c: &Context) -> Checked<PathBuf> {
    Ok(launcher(c)?.dir().join(&Uuid::new_v4().to_string()[..8]).join("p.sock"))
}

async fn started(c: &Context, by: By) -> Checked<Running> {
    launcher(c)?.start(&new_path(c)?, by).await
}

async fn answers(c: &Context, rule: &'static str, path: &Path) -> Checked {
    let answer = c.send_on(&channel(path), handshake(&c.suite.cluster), HANDSHAKE).await;
    answer.map(drop).map_err(|status| failed(rule, GetProviderInfoRequest::PATH, &status))
}

fn mode(rule: &'static str, path: &Path) -> Checked<u32> {
    let data = fs::metadata(path).map_err(|error| broken(rule, format!("{}: {error}", path.display())))?;
    Ok(data.permissions().mode() & 0o777)
}

async fn serves_by(c: &Context, by: By) -> Checked {
    let provider = started(c, by).await;
    let provider = provider.map_err(|ended| match ended {
        Ended::Stuck(why) => broken("SOCK-2", why),
        other => other,
    })?;
    answers(c, "SOCK-2", &provider.socket).await
}

async fn modes(c: &Context) -> Checked {
    let provider = started(c, By::Flag).await?;
    let folder = mode("SOCK-3", provider.socket.parent().unwrap_or(&provider.socket))?;
    check("SOCK-3", folder == 0o770, format!("the folder has mode {folder:o}"))?;
    let socket = mode("SOCK-3", &provider.socket)?;
    check("SOCK-3", socket == 0o660, format!("the socket has mode {socket:o}"))
}

fn lock_path(socket: &Path) -> PathBuf {
    PathBuf::from(format!("{}.lock", socket.display()))
}

async fn lock(c: &Context) -> Checked {
    let provider = started(c, By::Flag).await?;
    let path = lock_path(&provider.socket);
    let file = File::open(&path).map_err(|error| broken("SOCK-4", format!("{}: {error}", path.display())))?;
    check("SOCK-4", file.try_lock().is_err(), "the lock file can be locked while the provider runs")
}

async fn taken(c: &Context) -> Checked {
    let first = started(c, By::Flag).await?;
    let mut second = launcher(c)?.spawn(&first.socket, By::Flag)?;
    let ended = second.wait(EXIT).await;
    check("SOCK-5", ended.is_some_and(|status| !status.success()), format!("the second provider's end: {ended:?}"))?;
    answers(c, "SOCK-5", &first.socket).await
}

async fn stale(c: &Context) -> Checked {
    let path = new_path(c)?;
    let stuck = |error: std::io::Error| Ended::Stuck(format!("{}: {error}", path.display()));
    fs::create_dir_all(path.parent().unwrap_or(&path)).map_err(stuck)?;
    // The file stays when its listener is gone.
    drop(UnixListener::bind(&path).map_err(stuck)?);
    let provider = launcher(c)?.start(&path, By::Flag).await;
    let provider = provider.map_err(|ended| broken("SOCK-5", format!("it does not replace a stale socket: {ended:?}")))?;
    answers(c, "SOCK-5", &provider.socket).await
}

async fn long_path(c: &Context) -> Checked {
    let path = launcher(c)?.dir().join("x".repeat(108));
    let mut provider = launcher(c)?.spawn(&path, By::Flag)?;
    let ended = provider.wait(EXIT).await;
    let refused = ended.is_some_and(|status| !status.success());
    check("SOCK-1", refused, format!("a path of {} bytes; the provider's end: {ended:?}", path.as_os_str().len()))
}

async fn removed(c: &Context) -> Checked {
    let mut provider = started(c, By::Flag).await?;
    provider.terminate();
    let ended = provider.wait(EXIT).await;
    check("LIFE-3", ended.is_some(), format!("it did not exit within {EXIT:?} after SIGTERM"))?;
    let left = fs::symlink_metadata(&provider.socket).is_ok_and(|data| data.file_type().is_socket());
    check("SOCK-9", !left, "the socket is still there")?;
    check("SOCK-9", lock_path(&provider.socket).exists(), "the lock file is gone")?;
    let again = launcher(c)?.start(&provider.socket, By::Flag).await?;
    answers(c, "SOCK-9", &again.socket).await
}
