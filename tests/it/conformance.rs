//! The conformance suite against the simulated provider: the provider passes in full, and each sabotage is caught by its sentence.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;

use ccm_provider_conformance::sabotage::{self, Proxy, Sabotage};
use ccm_provider_conformance::{Options, Outcome, Report, Selection, Verdict, clean_up, run};
use ccm_test_support::binaries::Binaries;
use ccm_test_support::cloud::Cloud;
use ccm_test_support::simulated::ProviderSpec;
use futures::StreamExt as _;

/// Cases that wait for deadlines: a sabotage run leaves them out unless they cite what it breaks.
const SLOW: [&str; 4] = ["load-balancers/behind", "limits/not-held-up", "limits/deadline", "load-balancers/in-progress"];

/// How many sabotages run at one time. Most of their time is waiting.
const AT_ONCE: usize = 4;

/// A simulated cloud with every hook.
struct World {
    dir: tempfile::TempDir,
    cloud: Cloud,
}

impl World {
    async fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let cloud = Cloud::start(dir.path(), &[]).await.unwrap();
        Self { dir, cloud }
    }

    /// The options of a run, with every hook, at the endpoint or command that is set later.
    async fn options(&self) -> Options {
        let config = self.dir.path().join("config.yaml");
        std::fs::write(&config, hooks(&Binaries::get().await.unwrap().provider, self.cloud.url())).unwrap();
        let journal = self.dir.path().join("journal");
        Options { config: Some(config), allow_mutations: true, journal, ..Options::default() }
    }

    /// Names two machines in the configuration, so that a run needs no answer of the provider to begin.
    async fn name_machines(&self, options: &Options) {
        let provider = &Binaries::get().await.unwrap().provider;
        let mut add = tokio::process::Command::new(provider);
        let output = add.args(["ctl", "--cloud", self.cloud.url(), "add", "machine-1", "machine-2"]).output().await.unwrap();
        let mut text = String::from("machines:\n");
        for line in String::from_utf8(output.stdout).unwrap().lines() {
            let words: Vec<_> = line.split_whitespace().collect();
            let [_, name, id] = words[..] else { panic!("{line}") };
            writeln!(text, "  - {{name: {name}, providerId: \"{id}\"}}").unwrap();
        }
        let config = options.config.as_ref().unwrap();
        // Without the hook that is run after each case, for the sake of time.
        let kept = std::fs::read_to_string(config).unwrap().replace("listResources", "#");
        std::fs::write(config, kept + &text).unwrap();
    }

    /// What there is in the cloud, as JSON.
    async fn left(&self, things: &str) -> String {
        let mut ctl = tokio::process::Command::new(&Binaries::get().await.unwrap().provider);
        let output = ctl.args(["ctl", "--cloud", self.cloud.url(), things, "-o", "json"]).output().await.unwrap();
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    async fn command(&self) -> String {
        let provider = &Binaries::get().await.unwrap().provider;
        format!("{} serve --cloud {}", provider.display(), self.cloud.url())
    }
}

/// A configuration with every hook of the suite.
fn hooks(provider: &Path, cloud: &str) -> String {
    let ctl = format!("{} ctl --cloud {cloud}", provider.display());
    let mut text = String::from("cloudIdentity: simulated://default\ntestCidrs: [10.250.0.0/24, 10.250.1.0/24]\n");
    text += "invalidAnnotation: {key: simulated.ccm-core.dev/load-balancer-max-qps, value: many}\nhooks:\n";
    let commands = [
        ("createMachine", "add {name}"),
        ("stopMachine", "stop {name}"),
        ("deleteMachine", "forget {name}"),
        ("setFault", "fault set {fault}"),
        ("clearFaults", "fault clear"),
    ];
    for (hook, command) in commands {
        writeln!(text, "  {hook}: {ctl} {command}").unwrap();
    }
    let lines = "tr -d '\\n' | sed 's/},{/}\\n{/g'";
    writeln!(text, "  listResources: \"{ctl} load-balancers -o json | {}\"", lines.replace('\\', "\\\\")).unwrap();
    text + "  faults: {cloud-away: error-all, credentials-refused: unauthenticated, rate-limited: throttle, hung: hang, stale: stale, \
            quota-exceeded: lb-quota}\n"
}

fn failures(report: &Report) -> String {
    report
        .failures()
        .map(|(case, failure)| format!("{} {}: {}", case.id, failure.rule, failure.what))
        .collect::<Vec<_>>()
        .join("\n")
}

#[tokio::test]
async fn the_simulated_provider_passes_in_full() {
    let world = World::new().await;
    let options = Options { command: Some(world.command().await), ..world.options().await };
    let report = run(&options, |_| ()).await.unwrap();
    assert_eq!(report.verdict, Verdict::Conformant, "{}", failures(&report));
    let skipped: Vec<_> = report.cases.iter().filter(|case| matches!(case.outcome, Outcome::Skipped { .. })).collect();
    assert!(skipped.iter().all(|case| case.id.starts_with("clusters/")), "{skipped:#?}");
    assert!(report.counts().passed > 100, "{:?}", report.counts());
}

#[tokio::test]
async fn after_a_killed_run_the_cleanup_leaves_nothing_in_the_cloud() {
    let world = World::new().await;
    let options = Options {
        command: Some(world.command().await),
        selection: Selection { only: vec!["load-balancers/".into(), "routes/".into()], ..Selection::default() },
        ..world.options().await
    };
    // The run ends where it stands, and its provider is killed with it.
    tokio::select! {
        report = run(&options, |_| ()) => panic!("the run ended: {report:?}"),
        () = made_something(&options.journal) => {}
    }
    assert!(world.left("instances").await.contains("conformance-"), "the machines of the run are left");
    let removed = clean_up(&options).await.unwrap();
    assert!(removed.contains("Machine") && removed.contains("LoadBalancer"), "{removed}");
    for things in ["instances", "load-balancers", "routes"] {
        assert_eq!(world.left(things).await, "[]", "{things}");
    }
    assert_eq!(clean_up(&options).await.unwrap(), "nothing of an earlier run is left\n");
}

/// Waits until the journal has a load balancer that may exist.
async fn made_something(journal: &Path) {
    let mut ticks = tokio::time::interval(std::time::Duration::from_millis(1));
    loop {
        ticks.tick().await;
        let text = std::fs::read_to_string(journal).unwrap_or_default();
        if text.lines().last().is_some_and(|line| line.contains("made") && line.contains("loadBalancer")) {
            return;
        }
    }
}

#[tokio::test]
async fn what_a_run_without_mutations_skips_is_exactly_what_changes_the_cloud() {
    let world = World::new().await;
    let options = Options { command: Some(world.command().await), allow_mutations: false, ..world.options().await };
    let report = run(&options, |_| ()).await.unwrap();
    assert_eq!(report.verdict, Verdict::Partial, "{}", failures(&report));
    let calls = world.cloud.ctl().calls().await.unwrap();
    let changes = format!("{calls:?}");
    assert!(!changes.contains("PutLoadBalancer") && !changes.contains("DeleteLoadBalancer"), "{changes}");
    for case in &report.cases {
        if let Outcome::Skipped { reason, .. } = &case.outcome {
            let known = ["--allow-mutations", "CAPABILITY_", "machines in the configuration"];
            assert!(known.iter().any(|word| reason.contains(word)), "{}: {reason}", case.id);
        }
    }
}

#[tokio::test]
async fn the_suite_changes_nothing_in_a_cloud_that_was_not_named() {
    let world = World::new().await;
    let options = Options { command: Some(world.command().await), ..world.options().await };
    let config = options.config.clone().unwrap();
    std::fs::write(&config, std::fs::read_to_string(&config).unwrap().replace("simulated://default", "another")).unwrap();
    let error = run(&options, |_| ()).await.unwrap_err().to_string();
    assert!(error.contains("simulated://default") && error.contains("nothing was changed"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_sabotage_is_caught_by_the_sentence_that_it_breaks() {
    let all = sabotage::all();
    assert!(all.len() >= 40, "{} sabotages", all.len());
    let names: BTreeSet<_> = all.iter().map(|one| one.name).collect();
    assert_eq!(names.len(), all.len());
    let findings: Vec<_> = futures::stream::iter(chosen(all)).map(caught).buffer_unordered(AT_ONCE).collect().await;
    let findings: Vec<_> = findings.into_iter().flatten().collect();
    assert!(findings.is_empty(), "{}", findings.join("\n"));
}

/// With this variable all of them run, which takes minutes.
const ALL: &str = "CCM_TEST_ALL_SABOTAGES";
/// Of so many one runs otherwise.
const ONE_OF: usize = 6;

/// Those that run this time: all, or every so many, so that a test of minutes is for who asks for it.
fn chosen(all: Vec<Sabotage>) -> Vec<Sabotage> {
    let step = if std::env::var_os(ALL).is_some() { 1 } else { ONE_OF };
    all.into_iter().step_by(step).collect()
}

/// What is wrong with the cases, if anything: none failed by the broken rule, or one failed by another.
async fn caught(sabotage: Sabotage) -> Option<String> {
    let world = World::new().await;
    let mut provider = ProviderSpec::new(world.dir.path()).of(&world.cloud).start().await.unwrap();
    let front = world.dir.path().join("front.sock");
    let (name, rules) = (sabotage.name, sabotage.rules);
    let proxy = Proxy::start(&front, &provider.spec().endpoint(), sabotage).unwrap();
    let skip = SLOW.iter().filter(|id| !cites(id, rules)).map(|&id| id.to_owned()).collect();
    let options = Options {
        endpoint: Some(format!("unix://{}", front.display())),
        selection: Selection { only: profiles(rules), skip },
        ..world.options().await
    };
    world.name_machines(&options).await;
    let report = run(&options, |_| ()).await;
    drop(proxy);
    provider.process().kill().await.unwrap();
    let report = match report {
        Ok(report) => report,
        Err(error) => return Some(format!("{name}: {error}")),
    };
    let (hit, stray): (Vec<_>, Vec<_>) = report.failures().partition(|(_, failure)| rules.contains(&failure.rule.as_str()));
    let first = hit.iter().any(|(_, failure)| failure.rule == rules[0]);
    let stray = stray.iter().map(|(case, failure)| {
        format!(
            "
    {} {}: {}",
            case.id, failure.rule, failure.what
        )
    });
    let stray = stray.collect::<Vec<_>>().concat();
    (!first || !stray.is_empty()).then(|| format!("{name}: {} is caught: {first}; by other sentences: {stray}", rules[0]))
}

/// The profiles of the cases that cite one of the rules: all their cases run, the others do not, for the sake of time.
fn profiles(rules: &[&str]) -> Vec<String> {
    let chosen = Selection { only: rules.iter().map(|&rule| rule.to_owned()).collect(), ..Selection::default() };
    let profiles: BTreeSet<_> =
        chosen.ids().filter_map(|id| id.split_once('/')).map(|(profile, _)| format!("{profile}/")).collect();
    profiles.into_iter().collect()
}

fn cites(id: &str, rules: &[&str]) -> bool {
    let chosen = Selection { only: rules.iter().map(|&rule| rule.to_owned()).collect(), ..Selection::default() };
    chosen.ids().any(|one| one == id)
}
