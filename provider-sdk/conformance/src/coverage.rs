//! Which sentences of the contract have cases, and why the others have none.
use std::fmt::Write as _;

use crate::case::Case;
use crate::{cases, contract};

mod uncovered;

pub use uncovered::UNCOVERED;

/// The cases with their rules and needs, one a line.
pub fn list(chosen: &[&Case]) -> String {
    let mut text = String::new();
    for case in chosen {
        let needs: Vec<_> = case.needs.iter().map(ToString::to_string).collect();
        let needs = if needs.is_empty() { String::new() } else { format!("; needs: {}", needs.join(", ")) };
        // Writing to a String does not fail.
        let _ = writeln!(text, "{} ({}): {} [{}]{needs}", case.id, case.level(), case.title, case.rules.join(" "));
    }
    text
}

/// Each sentence with its cases, or with the reason why it has none.
pub fn sentences() -> String {
    let mut text = String::new();
    for rule in contract::rules() {
        let covered: Vec<_> = cases::all().filter(|case| case.rules.contains(&rule.id.as_str())).map(|case| case.id).collect();
        let why = UNCOVERED.iter().find(|(ids, _)| ids.contains(&rule.id.as_str())).map_or("", |(_, why)| why);
        let tail = if covered.is_empty() { format!("no case: {why}") } else { covered.join(", ") };
        // Writing to a String does not fail.
        let _ = writeln!(text, "[{}] {}\n    {tail}", rule.id, rule.text);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::UNCOVERED;
    use crate::{cases, contract};

    #[test]
    fn each_sentence_has_a_case_or_a_reason_and_never_both() {
        let mut silent = Vec::new();
        let mut both = Vec::new();
        for rule in contract::rules() {
            let covered = cases::all().any(|case| case.rules.contains(&rule.id.as_str()));
            let excused = UNCOVERED.iter().filter(|(ids, _)| ids.contains(&rule.id.as_str())).count();
            if !covered && excused == 0 {
                silent.push(&rule.id);
            }
            if usize::from(covered) + excused > 1 {
                both.push(&rule.id);
            }
        }
        assert!(silent.is_empty(), "no case, and no reason in coverage/uncovered.rs: {silent:?}");
        assert!(both.is_empty(), "a case and a reason, or two reasons: {both:?}");
        let unknown: Vec<_> = UNCOVERED.iter().flat_map(|(ids, _)| *ids).filter(|id| contract::rule(id).is_none()).collect();
        assert!(unknown.is_empty(), "no rules of the contract: {unknown:?}");
    }
}
