//! How many of a set may go because they are only absent. Pure.

/// A set of so many never loses all.
const NEVER_ALL_OF: usize = 3;

/// A part of `known`, a fraction from 0 to 1: at least one, and never all of three or more.
pub(crate) fn part_of(known: usize, fraction: f64) -> usize {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss, reason = "a part of a count")]
    let part = (known as f64 * fraction.clamp(0.0, 1.0)).floor() as usize;
    let all = if known >= NEVER_ALL_OF { known - 1 } else { known };
    part.max(1).min(all)
}
