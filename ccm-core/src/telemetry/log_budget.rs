//! One log line per object up to some hundreds a minute; above that the lines are only counted.
use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// The lines of one minute.
const LINES: u32 = 300;
const MINUTE: Duration = Duration::from_secs(60);

/// How many lines were written in this minute.
#[derive(Debug, Default)]
pub struct LogBudget(Mutex<Option<Window>>);

#[derive(Debug)]
struct Window {
    began: Instant,
    asked: u32,
}

/// What to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Line {
    /// The line.
    Write,
    /// The line, after one about so many that were left out in the minute before.
    WriteAfter(u32),
    /// Nothing: there were enough.
    LeaveOut,
}

impl LogBudget {
    /// What to do about one more line.
    pub fn ask(&self, now: Instant) -> Line {
        let mut window = self.0.lock();
        let current = window.get_or_insert(Window { began: now, asked: 0 });
        if now.saturating_duration_since(current.began) >= MINUTE {
            let left_out = current.asked.saturating_sub(LINES);
            *current = Window { began: now, asked: 1 };
            return if left_out > 0 { Line::WriteAfter(left_out) } else { Line::Write };
        }
        current.asked += 1;
        if current.asked <= LINES { Line::Write } else { Line::LeaveOut }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lines_of_a_minute_are_bounded_and_the_rest_is_counted() {
        let (budget, start) = (LogBudget::default(), Instant::now());
        let written = (0..1500).filter(|_| budget.ask(start) == Line::Write).count();
        assert_eq!(written, 300);
        assert_eq!(budget.ask(start + MINUTE), Line::WriteAfter(1200));
        assert_eq!(budget.ask(start + MINUTE), Line::Write);
        assert_eq!(budget.ask(start + MINUTE * 2), Line::Write, "nothing was left out");
    }
}
