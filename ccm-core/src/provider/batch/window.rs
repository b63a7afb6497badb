//! How long a batch that is not full waits for more look-ups. Alone, a look-up goes almost at once. While batches follow one
//! another the wait grows, and in a steady stream a batch waits until it is full or the stream pauses, so that thousands of nodes
//! that trickle in cost tens of calls and not thousands.
use std::time::Duration;

use tokio::time::Instant;

use crate::provider::Priority;

/// The wait after a quiet time.
const SHORTEST: Duration = Duration::from_millis(5);
/// The longest wait without a steady stream; a stream is steady once the wait has grown to it.
const LONGEST: Duration = Duration::from_millis(250);
/// The longest wait in a steady stream.
const STREAM: Duration = Duration::from_secs(1);
/// A stream that brings nothing for so long has paused.
const LULL: Duration = Duration::from_millis(50);
/// Nobody waits for a refresh.
const REFRESH: Duration = Duration::from_millis(500);
/// So long without a batch is a quiet time. Longer than a batch of a steady stream waits.
const QUIET: Duration = Duration::from_secs(2);

/// The present width of the window.
#[derive(Debug, Default)]
pub struct Window {
    width: Duration,
    last: Option<Instant>,
    arrived: Option<Instant>,
}

impl Window {
    /// A look-up has come.
    pub fn arrived(&mut self, now: Instant) {
        self.arrived = Some(now);
    }

    /// When a batch goes that is not full, given the arrival of the oldest look-up of each lane.
    pub fn closes(&self, oldest: impl IntoIterator<Item = (Priority, Instant)>, now: Instant) -> Instant {
        let width = self.width(now);
        let wait = |lane| if lane == Priority::Refresh { REFRESH } else { width };
        let oldest: Vec<_> = oldest.into_iter().collect();
        let first = oldest.iter().map(|(_, arrived)| *arrived).min();
        let closes = oldest.into_iter().map(|(lane, arrived)| arrived + wait(lane)).min();
        let (Some(first), Some(closes)) = (first, closes) else { return now };
        match self.arrived {
            Some(arrived) if width >= LONGEST => closes.max((arrived + LULL).min(first + STREAM)),
            _ => closes,
        }
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

    /// A window at its widest, and when its last batch went.
    fn in_a_stream() -> (Window, Instant) {
        let (mut window, now) = (Window::default(), Instant::now());
        (0..6).for_each(|_| window.sent(now, false));
        (window, now)
    }

    #[test]
    fn a_steady_stream_fills_batches_and_its_pause_ends_the_wait() {
        // When the oldest and the latest look-up came, and when the batch goes: all in ms after the last batch.
        for (oldest, latest, closes) in
            [(0, 0, 250), (0, 150, 250), (0, 240, 290), (0, 600, 650), (0, 980, 1000), (100, 1090, 1100)]
        {
            let (mut window, sent) = in_a_stream();
            let at = |ms| sent + Duration::from_millis(ms);
            window.arrived(at(latest));
            let found = window.closes([(Priority::Initialize, at(oldest))], at(latest).min(at(999)));
            assert_eq!((found - sent).as_millis(), closes, "{oldest} {latest}");
        }
        let (mut window, now) = (Window::default(), Instant::now());
        window.arrived(now);
        assert_eq!(window.closes([(Priority::Initialize, now)], now), now + SHORTEST, "quiet: nothing waits for a stream");
    }

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
