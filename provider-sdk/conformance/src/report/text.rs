//! The report for people: one line for each case, the failures in full, and the verdict. It writes text and nothing else.
use std::fmt::Write as _;

use super::{CaseReport, Counts, Failure, Outcome, Report};

/// One line about a case.
pub fn line(case: &CaseReport) -> String {
    match &case.outcome {
        Outcome::Passed => format!("ok    {} ({} ms)", case.id, case.millis),
        Outcome::Failed(failure) => format!("FAIL  {} {}: {}", case.id, failure.rule, failure.what),
        Outcome::Skipped { reason, .. } => format!("skip  {}: {reason}", case.id),
    }
}

/// The failures in full, and the verdict.
pub fn summary(report: &Report) -> String {
    let mut text = String::new();
    for (case, failure) in report.failures() {
        text += &failed(case, failure);
    }
    for (name, profile) in &report.profiles {
        let (core, extended) = (counts(profile.core), counts(profile.extended));
        // Writing to a String does not fail.
        let _ = writeln!(text, "{name:16} {:?}; core: {core}; extended: {extended}", profile.verdict);
    }
    let provider = &report.provider;
    let all = counts(report.counts());
    let _ = writeln!(text, "{} {}: {:?}; {all}", provider.name, provider.version, report.verdict);
    text
}

/// One failure: the sentence, what happened instead, and the exchange.
pub fn failed(case: &CaseReport, failure: &Failure) -> String {
    let mut text = format!("\n{}: {}\n", case.id, case.title);
    if failure.rule.is_empty() {
        let _ = writeln!(text, "  the suite could not find out: {}", failure.what);
    } else {
        let _ = writeln!(text, "  [{}] {}\n  but: {}", failure.rule, failure.sentence, failure.what);
    }
    for exchange in &failure.exchanges {
        let _ = writeln!(text, "    {} ({} ms)", exchange.method, exchange.millis);
        let _ = writeln!(text, "      -> {}\n      <- {}", exchange.request, exchange.answer);
    }
    text + "\n"
}

fn counts(counts: Counts) -> String {
    format!("{} passed, {} failed, {} skipped", counts.passed, counts.failed, counts.skipped)
}
