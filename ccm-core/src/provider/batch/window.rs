//! How long a batch that is not full waits for company. Alone, a look-up goes almost at once; while look-ups keep coming
//! the wait grows, so that thousands of nodes that trickle in cost tens of calls and not thousands.
use std::time::Duration;

use tokio::time::Instant;

use crate::provider::Priority;

/// The wait after a quiet time.
const SHORTEST: Duration = Duration::from_millis(5);
/// The wait in a steady stream.
const LONGEST: Duration = Duration::from_millis(250);
/// Nobody waits for a refresh.
const REFRESH: Duration = Duration::from_millis(500);
/// So long without a batch is a quiet time.
const QUIET: Duration = Duration::from_secs(1);

/// The present width of the window.
#[derive(Debug, Default)]
pub struct Window {
    width: Duration,
    last: Option<Instant>,
}

impl Window {
    /// When a batch goes that is not full, given the arrival of the oldest look-up of each lane.
    pub fn closes(&self, oldest: impl IntoIterator<Item = (Priority, Instant)>, now: Instant) -> Instant {
        let width = self.width(now);
        let closes = |(lane, arrived)| arrived + if lane == Priority::Refresh { REFRESH } else { width };
        oldest.into_iter().map(closes).min().unwrap_or(now)
    }

    /// A batch has gone.
    pub fn sent(&mut self, now: Instant, full: bool) {
        let width = self.width(now);
        self.width = if full { width } else { (width * 2).min(LONGEST) };
        self.last = Some(now);
    }

    fn width(&self, now: Instant) -> Duration {
        match self.last {
            Some(last) if now < last + QUIET => self.width.max(SHORTEST),
            _ => SHORTEST,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_widens_while_batches_follow_one_another_and_narrows_in_quiet() {
        let (mut window, mut now) = (Window::default(), Instant::now());
        let mut widths = Vec::new();
        for _ in 0..8 {
            let closes = window.closes([(Priority::Initialize, now)], now);
            widths.push((closes - now).as_millis());
            now = closes;
            window.sent(now, false);
        }
        assert_eq!(widths, [5, 10, 20, 40, 80, 160, 250, 250]);
        now += QUIET;
        assert_eq!(window.closes([(Priority::Lifecycle, now)], now), now + SHORTEST);
    }

    #[test]
    fn refreshes_wait_longer_unless_something_urgent_goes() {
        let (window, now) = (Window::default(), Instant::now());
        assert_eq!(window.closes([(Priority::Refresh, now)], now), now + REFRESH);
        assert_eq!(window.closes([(Priority::Initialize, now), (Priority::Refresh, now)], now), now + SHORTEST);
    }
}
