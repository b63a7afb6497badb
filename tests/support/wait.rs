//! Waiting for conditions, and watching that one holds. Whoever waits says for what, and gets to see the last look.
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

/// Between two looks.
const PAUSE: Duration = Duration::from_millis(50);

/// Long enough for anything that happens at all, on a machine that is busy with other tests.
pub const PATIENCE: Duration = Duration::from_mins(1);

/// Looks until the look succeeds, and answers what it saw.
///
/// # Errors
/// The last look's error, if none succeeded in time.
pub async fn eventually<T>(what: &str, within: Duration, mut look: impl AsyncFnMut() -> Result<T>) -> Result<T> {
    let deadline = Instant::now() + within;
    loop {
        match tokio::time::timeout(within, look()).await {
            Err(_) => bail!("a single look took longer than {within:?}: {what}"),
            Ok(Ok(seen)) => return Ok(seen),
            Ok(Err(error)) if Instant::now() >= deadline => return Err(error.context(format!("waited {within:?} for: {what}"))),
            Ok(Err(_)) => tokio::time::sleep(PAUSE).await,
        }
    }
}

/// Looks again and again for a while; every look must succeed.
///
/// # Errors
/// The first look's that failed.
pub async fn throughout(what: &str, period: Duration, mut look: impl AsyncFnMut() -> Result<()>) -> Result<()> {
    let end = Instant::now() + period;
    loop {
        look().await.with_context(|| format!("did not hold throughout {period:?}: {what}"))?;
        if Instant::now() >= end {
            return Ok(());
        }
        tokio::time::sleep(PAUSE).await;
    }
}
