//! The table: every call and every end that it can have. What stands in a cell: what is known of the definition, what is known of the
//! targets, and how long they pause; `=` is "as before".
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
use std::fmt::Write as _;
use std::sync::Arc;

use super::*;
use crate::cluster::gate::Closed;
use crate::controllers::service::tests::fixtures::refusal;
use crate::provider::Outcome::{Retry, Terminal, Unknown, Unsupported};

const TABLE: &str = include_str!("table.txt");
const MINUTE: Duration = Duration::from_mins(1);

fn targets(name: &str) -> Targets {
    Targets { candidates: Arc::from(name), ..Targets::none() }
}

fn made() -> Definition {
    Definition::InDesiredState { fingerprint: 1, drifted: false }
}

/// What is known before a call of a load balancer that was given targets, or of one that was never seen.
fn before(definition: Definition, had: Option<&str>, now: Instant) -> Memory {
    let mut memory = Memory {
        definition,
        targets: Given { had: had.map(targets), unsure: false },
        uid: "uid".to_owned(),
        seen: 1,
        ..Memory::default()
    };
    if definition == Definition::Refused {
        memory.definition_retry.again(Pause::Exactly(MINUTE * 30), 1, &PAUSES, now);
    }
    memory
}

/// Each call, what is known before, and its name.
fn calls(now: Instant) -> Vec<(&'static str, Call, Memory)> {
    let settled = || before(made(), Some("had"), now);
    vec![
        ("Ensure", Call::Ensure { paced: false }, settled()),
        ("Ensure, paced", Call::Ensure { paced: true }, before(Definition::InTurn, None, now)),
        ("Update", Call::UpdateTargets, settled()),
        ("Update while Ensure is refused", Call::UpdateTargets, before(Definition::Refused, Some("had"), now)),
        ("Delete", Call::Delete { keeps_finalizer: false }, settled()),
        ("Plan after a restart", Call::Plan(Purpose::Restart), before(Definition::NeverEnsured, None, now)),
        ("Plan for drift", Call::Plan(Purpose::Drift), settled()),
    ]
}

fn error(outcome: provider::Outcome, reason: &str) -> Outcome {
    Outcome::Failed(Failure::from(&refusal(outcome, reason)))
}

fn unwritten(error: &WriteError) -> Outcome {
    Outcome::Failed(Failure::from(error))
}

fn outcomes() -> Vec<(&'static str, Outcome)> {
    let (soon, later) = (Retry { after: None }, Retry { after: Some(MINUTE * 4) });
    vec![
        ("done", Outcome::Done { fingerprint: 2 }),
        ("done: deleted", Outcome::Deleted),
        ("a plan has changes to make", Outcome::Differs),
        ("a plan has changes to report", Outcome::DriftReported),
        ("in_progress", Outcome::InProgress(MINUTE)),
        ("implemented elsewhere", Outcome::ImplementedElsewhere),
        ("USER_CONFIGURATION", error(Terminal, "USER_CONFIGURATION")),
        ("CREDENTIALS_INVALID", error(Terminal, "CREDENTIALS_INVALID")),
        ("INTERNAL", error(soon, "INTERNAL")),
        ("UNKNOWN", error(Unknown, "UNKNOWN")),
        ("UNAVAILABLE", error(soon, "UNAVAILABLE")),
        ("UNAVAILABLE, RetryInfo 4 min", error(later, "UNAVAILABLE")),
        ("RESOURCE_EXHAUSTED", error(soon, "RESOURCE_EXHAUSTED")),
        ("RATE_LIMITED", error(later, "RATE_LIMITED")),
        ("CONFLICT", error(soon, "CONFLICT")),
        ("NOT_LEADING", error(soon, "NOT_LEADING")),
        ("UNIMPLEMENTED", error(Unsupported, "UNIMPLEMENTED")),
        ("DEADLINE_EXCEEDED", error(Unknown, "DEADLINE_EXCEEDED")),
        ("CONNECTION_LOST", error(Unknown, "CONNECTION_LOST")),
        ("the gate is closed", unwritten(&Closed::NotLeading.into())),
        ("a write is refused", unwritten(&WriteError::Conflict)),
        ("the Service is gone", unwritten(&WriteError::Gone)),
        ("the work panicked", Outcome::Failed(Failure::Panicked)),
    ]
}

/// Whether a call can end so.
fn can_end(call: Call, outcome: Outcome) -> bool {
    match (call, outcome) {
        (Call::Delete { .. }, Outcome::Done { .. }) => false,
        (call, Outcome::Deleted) => matches!(call, Call::Delete { .. }),
        (call, Outcome::Differs) => matches!(call, Call::Plan(_)),
        (call, Outcome::DriftReported) => call == Call::Plan(Purpose::Drift),
        _ => true,
    }
}

fn definition(before: Definition, after: &Memory) -> &'static str {
    if after.plans_unimplemented || after.definition == before {
        return if after.plans_unimplemented { "no plans" } else { "=" };
    }
    match after.definition {
        Definition::NeverEnsured => "never ensured",
        Definition::InTurn => "in turn",
        Definition::Differs => "differs",
        Definition::InDesiredState { drifted: false, .. } => "in the desired state",
        Definition::InDesiredState { drifted: true, .. } => "drifted",
        Definition::Unknown => "unknown",
        Definition::Refused => "refused",
        Definition::ImplementedElsewhere { .. } => "elsewhere",
    }
}

fn given(before: &Given, after: &Given) -> &'static str {
    match after {
        after if after == before => "=",
        Given { unsure: true, .. } => "unsure",
        Given { had: Some(_), .. } => "given",
        Given { had: None, .. } => "none",
    }
}

fn pause(length: Option<Duration>) -> String {
    match length {
        None => "no pause".to_owned(),
        Some(length) if length == MINUTE => "polled".to_owned(),
        Some(length) if length == MINUTE * 30 => "= pause".to_owned(),
        Some(length) if length <= Duration::from_millis(1500) => "back-off".to_owned(),
        Some(length) if length >= MINUTE * 4 => "back-off of 4 min or more".to_owned(),
        Some(_) => "terminal".to_owned(),
    }
}

fn cell(before: &Memory, attempt: &Attempt, after: &Memory, now: Instant) -> String {
    let mut cell = format!("{}; {}", definition(before.definition, after), given(&before.targets, &after.targets));
    let left = |at: Option<Instant>| at.map(|at| at - now);
    let next = pause(left(after.definition_retry.not_before(1, now)));
    write!(cell, "; {next}").unwrap();
    match left(after.targets_retry.not_before(attempt.targets.retry_key(), now)) {
        Some(length) if pause(Some(length)) != next => write!(cell, ", targets {}", pause(Some(length))).unwrap(),
        Some(_) => cell.push_str(", targets alike"),
        None => {}
    }
    cell
}

fn render() -> String {
    let now = Instant::now();
    let mut text = String::new();
    for (name, call, memory) in calls(now) {
        writeln!(text, "\n{name}").unwrap();
        for (end, outcome) in outcomes().into_iter().filter(|(_, outcome)| can_end(call, *outcome)) {
            let set = if call == Call::Plan(Purpose::Drift) { "had" } else { "present" };
            let attempt = Attempt { call, seen: 1, fingerprint: 1, targets: targets(set) };
            let after = memory.clone().after(&attempt, outcome, now);
            assert!(after.uid == memory.uid, "{name}: {end}");
            let cell = cell(&memory, &attempt, &after, now);
            let all = if matches!(outcome.answered(), Answered::RateLimited(_)) { ", all pause" } else { "" };
            writeln!(text, "  {end:30} {cell}{all}").unwrap();
        }
    }
    text.trim_start().to_owned()
}

#[test]
fn each_call_and_outcome_say_what_is_known_of_definition_and_targets_and_what_is_retried_when() {
    let found = render();
    let (found, expected): (Vec<_>, Vec<_>) = (found.lines().collect(), TABLE.lines().collect());
    let differ: Vec<_> = found.iter().filter(|line| !expected.contains(line)).collect();
    assert!(found == expected, "lines that are not in the table: {differ:#?}");
}

#[test]
fn only_an_answer_says_that_the_rate_limit_is_over_and_only_its_reason_that_there_is_one() {
    for (name, outcome) in outcomes() {
        let expected = match name {
            "RATE_LIMITED" => Answered::RateLimited(Some(MINUTE * 4)),
            "DEADLINE_EXCEEDED"
            | "CONNECTION_LOST"
            | "the gate is closed"
            | "a write is refused"
            | "the Service is gone"
            | "the work panicked" => Answered::No,
            _ => Answered::Yes,
        };
        assert_eq!(outcome.answered(), expected, "{name}");
    }
}
