//! What follows where a task of a term panics or ends early: this replica gives the lease back, so that another one takes over, and
//! contends again after a pause. Which tasks there are is for `controllers` to say.
use std::convert::Infallible;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::{Terms, lost};
use crate::provider::backoff::Backoff;
use crate::runtime::leader_election::Leading;
use crate::runtime::supervisor::Ended;
use crate::telemetry::health::Check;

/// The concern's name in `/readyz`.
pub(super) const CHECK: &str = "leadership-term";
/// The first pause before this replica contends again, and the longest.
const PAUSES: (Duration, Duration) = (Duration::from_secs(1), Duration::from_mins(5));
/// A term that lasted so long was a good one: the next failure is a first one.
const LASTING: Duration = Duration::from_mins(10);

/// Terms that a task ended, one after another.
#[derive(Debug)]
pub(super) struct Failures(Backoff);

impl Default for Failures {
    fn default() -> Self {
        Self(Backoff::new(PAUSES.0, PAUSES.1))
    }
}

impl Failures {
    /// A term lasted so long, however it ended.
    pub(super) fn lasted(&mut self, time: Duration) {
        if time >= LASTING {
            self.0.reset();
        }
    }
}

impl Terms {
    /// Leaves the lease to others for a pause.
    pub(super) async fn rest(
        &self,
        ended: &Ended,
        failures: &mut Failures,
        leading: watch::Receiver<Option<Leading>>,
        shutdown: &CancellationToken,
    ) {
        let pause = failures.0.delay();
        let words = humantime::format_duration(Duration::from_millis(u64::try_from(pause.as_millis()).unwrap_or(u64::MAX)));
        let message = format!(
            "the leadership term ended because {ended}. This replica gave the lease back and contends again after {words}; report the \
             panic, which is in the log"
        );
        self.parts.health.set(CHECK, Check::Warning(message));
        self.wires.resting.send_replace(true);
        let over = async {
            lost(leading).await;
            sleep(pause).await;
        };
        shutdown.run_until_cancelled(over).await;
        self.wires.resting.send_replace(false);
    }

    /// Withdraws the warning once a term has lasted. Never returns.
    pub(super) async fn forgets_failures(&self) -> Infallible {
        sleep(LASTING).await;
        self.parts.health.clear(CHECK);
        std::future::pending().await
    }
}
