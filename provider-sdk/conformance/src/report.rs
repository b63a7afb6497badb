//! The result of a run, in the form in which it is published. It judges whole profiles, and renders nothing itself.
use std::collections::BTreeMap;

use ccm_proto::v1::{Capability, ProviderInfo};
use serde::Serialize;

use crate::case::{Case, Level};
use crate::contract;
use crate::exchange::Exchange;

pub mod junit;
pub mod text;

/// What came of one case.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase", tag = "result")]
pub enum Outcome {
    /// It holds.
    Passed,
    /// The provider broke a rule, or the suite could not find out.
    Failed(Failure),
    /// It was not run.
    Skipped {
        /// Why.
        reason: String,
        /// Whether the provider lacks the capability: then nothing of its profile is missing.
        not_offered: bool,
    },
}

/// A failure, with what a person needs to understand it.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Failure {
    /// The rule that was broken; empty if the suite itself was stuck.
    pub rule: String,
    /// The rule's sentence.
    pub sentence: String,
    /// What happened instead.
    pub what: String,
    /// What crossed the socket.
    pub exchanges: Vec<Exchange>,
}

/// One case of the report.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CaseReport {
    /// Its id.
    pub id: &'static str,
    /// What it says.
    pub title: &'static str,
    /// The rules that it cites.
    pub rules: &'static [&'static str],
    /// `core` or `extended`.
    pub level: String,
    /// Whether one of its rules is a MUST.
    pub must: bool,
    /// How long it took.
    pub millis: u64,
    /// What came of it.
    #[serde(flatten)]
    pub outcome: Outcome,
}

/// The verdict on a provider or a profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Verdict {
    /// Every case passed, or is about what the provider does not offer.
    Conformant,
    /// None failed, and a case about a MUST was skipped.
    Partial,
    /// One failed.
    Failed,
}

/// How many cases there were of each outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// That hold.
    pub passed: usize,
    /// That do not.
    pub failed: usize,
    /// That were not run.
    pub skipped: usize,
}

/// The cases of one profile.
#[derive(Clone, Debug, Serialize)]
pub struct Profile {
    /// The verdict.
    pub verdict: Verdict,
    /// What each provider with this profile must do.
    pub core: Counts,
    /// What is optional.
    pub extended: Counts,
}

/// Who was tested.
#[derive(Clone, Debug, Serialize)]
pub struct Provider {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// The protocol version that it chose.
    pub protocol: String,
    /// What it lists.
    pub capabilities: Vec<&'static str>,
}

/// The result of a run.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// The version of the suite.
    pub suite_version: &'static str,
    /// The SHA-256 of CONTRACT.md and the proto files.
    pub contract_digest: String,
    /// When the run began.
    pub date: String,
    /// Who was tested.
    pub provider: Provider,
    /// The hooks that were given.
    pub hooks: Vec<&'static str>,
    /// Whether the suite could change the cloud.
    pub mutations: bool,
    /// Whether the suite started the provider.
    pub command: bool,
    /// The verdict on the provider.
    pub verdict: Verdict,
    /// The verdicts on its profiles.
    pub profiles: BTreeMap<&'static str, Profile>,
    /// Every case that was chosen.
    pub cases: Vec<CaseReport>,
}

impl CaseReport {
    /// The report on a case.
    pub fn new(case: &'static Case, outcome: Outcome, millis: u64) -> Self {
        let Case { id, title, rules, .. } = *case;
        Self { id, title, rules, level: case.level().to_string(), must: case.is_must(), millis, outcome }
    }

    fn verdict(&self) -> Verdict {
        match &self.outcome {
            Outcome::Failed(_) => Verdict::Failed,
            Outcome::Skipped { not_offered: false, .. } if self.must => Verdict::Partial,
            _ => Verdict::Conformant,
        }
    }
}

impl Provider {
    /// As the handshake describes it.
    pub fn of(info: &ProviderInfo) -> Self {
        let names = info.capabilities.iter().filter_map(|one| Capability::try_from(*one).ok());
        Self {
            name: info.name.clone(),
            version: info.version.clone(),
            protocol: info.protocol_version.clone(),
            capabilities: names.map(|one| one.as_str_name()).collect(),
        }
    }
}

impl Report {
    /// Judges the cases of a run.
    pub fn new(provider: Provider, date: String, cases: Vec<CaseReport>) -> Self {
        let verdict = cases.iter().map(CaseReport::verdict).max().unwrap_or(Verdict::Partial);
        Self {
            suite_version: env!("CARGO_PKG_VERSION"),
            contract_digest: contract::digest(),
            date,
            provider,
            hooks: Vec::new(),
            mutations: false,
            command: false,
            verdict,
            profiles: profiles(&cases),
            cases,
        }
    }

    /// How many cases there were of each outcome.
    pub fn counts(&self) -> Counts {
        let mut counts = Counts::default();
        self.cases.iter().for_each(|case| counts.add(case));
        counts
    }

    /// The cases that failed.
    pub fn failures(&self) -> impl Iterator<Item = (&CaseReport, &Failure)> {
        self.cases.iter().filter_map(|case| match &case.outcome {
            Outcome::Failed(failure) => Some((case, failure)),
            _ => None,
        })
    }
}

impl Counts {
    fn add(&mut self, case: &CaseReport) {
        match case.outcome {
            Outcome::Passed => self.passed += 1,
            Outcome::Failed(_) => self.failed += 1,
            Outcome::Skipped { .. } => self.skipped += 1,
        }
    }
}

fn profiles(cases: &[CaseReport]) -> BTreeMap<&'static str, Profile> {
    let mut profiles = BTreeMap::new();
    for case in cases {
        let name = case.id.split('/').next().unwrap_or(case.id);
        let (core, extended) = (Counts::default(), Counts::default());
        let profile = profiles.entry(name).or_insert(Profile { verdict: Verdict::Conformant, core, extended });
        profile.verdict = profile.verdict.max(case.verdict());
        let counts = if case.level == Level::Core.to_string() { &mut profile.core } else { &mut profile.extended };
        counts.add(case);
    }
    profiles
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cases;

    fn verdict(outcomes: Vec<Outcome>) -> Verdict {
        let info = ProviderInfo::default();
        let cases = cases::all().filter(|case| case.is_must()).zip(outcomes);
        let cases = cases.map(|(case, outcome)| CaseReport::new(case, outcome, 1)).collect();
        Report::new(Provider::of(&info), String::new(), cases).verdict
    }

    #[test]
    fn a_must_that_was_skipped_makes_the_verdict_partial_unless_the_provider_does_not_offer_it() {
        let skipped = |not_offered| Outcome::Skipped { reason: String::new(), not_offered };
        assert_eq!(verdict(vec![Outcome::Passed, skipped(true)]), Verdict::Conformant);
        assert_eq!(verdict(vec![Outcome::Passed, skipped(false)]), Verdict::Partial);
        assert_eq!(verdict(vec![]), Verdict::Partial, "nothing was found out");
    }
}
