//! Every mix of cluster, readiness, marks, lie or truth, and restarts. What is lost is bounded by the rules' own words, and the whole
//! outcome stands in `matrix.txt`: a change of a rule shows there. `CCM_WRITE_MATRIX=1` writes it anew.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
use std::collections::BTreeSet;
use std::fmt::Write;

use super::Simulation;
use crate::cluster::state::{Cause, Deletion};
use crate::controllers::node_lifecycle::fixtures::{cordoned, found, node, ready, tainted};
use crate::model::instance::{InstanceState, Lookup};
use crate::model::node::{Node, Ready};
use crate::names::taints::{TO_BE_DELETED, UNINITIALIZED};

const SIZES: [usize; 5] = [1, 2, 3, 10, 200];
const ZONES: [usize; 2] = [1, 3];
const NAMES: [&str; 3] = ["a", "b", "c"];
const TABLE: &str = "src/controllers/node_lifecycle/decide/tests/matrix.txt";

/// How many nodes are Ready while the story goes on.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Readiness {
    All,
    Half,
    None,
}

/// When two nodes of five are cordoned: while all are Ready, when the lie has begun, when breakers have tripped.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Marks {
    Never,
    Before,
    During,
    After,
}

/// About which nodes the provider lies.
#[derive(Clone, Copy, Debug, PartialEq)]
enum About {
    All,
    ZoneA,
    OtherZones,
    Ready,
    Marked,
    Half,
}

#[derive(Clone, Copy, Debug)]
struct Mix {
    size: usize,
    zones: usize,
    readiness: Readiness,
    restarts: bool,
}

fn number(node: &Node) -> usize {
    node.name.trim_start_matches(|c: char| !c.is_ascii_digit()).parse().unwrap()
}

fn is_ours(node: &Node) -> bool {
    node.name.starts_with('n')
}

impl Mix {
    fn all(mut look: impl FnMut(Self)) {
        for readiness in [Readiness::All, Readiness::Half, Readiness::None] {
            for restarts in [false, true] {
                for size in SIZES {
                    ZONES.into_iter().for_each(|zones| look(Self { size, zones, readiness, restarts }));
                }
            }
        }
    }

    /// Ready nodes, a foreign one, and two that are not initialised, one of which has a providerID already.
    fn cluster(self) -> Simulation {
        let ours = (0..self.size).map(|index| ready(node(&format!("n{index:03}"), NAMES[index % self.zones])));
        let joining = |name| tainted(node(name, "a"), UNINITIALIZED);
        let foreign = Node { provider_id: Some("other://f0".to_owned()), ..node("f0", "a") };
        let unnamed = Node { provider_id: None, ..joining("u0") };
        let young = Node { created_at: crate::controllers::node_lifecycle::fixtures::at(0), ..joining("u1") };
        let mut simulation = Simulation::new(ours.chain([foreign, unnamed, young]));
        simulation.period = 10;
        simulation
    }

    fn marks(self, node: &Node) -> bool {
        is_ours(node) && number(node) < self.size * 2 / 5
    }

    fn is_ready(self, node: &Node) -> bool {
        match self.readiness {
            Readiness::All => true,
            Readiness::Half => number(node) % 2 == 1,
            Readiness::None => false,
        }
    }

    fn step(self, simulation: &mut Simulation) {
        if self.restarts {
            simulation.restart();
        }
    }
}

impl About {
    fn covers(self, mix: Mix, node: &Node) -> bool {
        match self {
            Self::All => true,
            Self::ZoneA => node.zone() == Some("a"),
            Self::OtherZones => node.zone() != Some("a"),
            Self::Ready => mix.is_ready(node),
            Self::Marked => mix.marks(node),
            Self::Half => number(node) % 4 < 2,
        }
    }
}

fn gone(deleted: bool) -> Lookup {
    if deleted { found(InstanceState::Deleted) } else { Lookup::NotFound }
}

/// The machines of foreign and unnamed nodes are never known, which concerns nobody.
fn cloud(lied: impl Fn(&Node) -> Option<Lookup>) -> impl Fn(&Node) -> Option<Lookup> {
    move |node| if is_ours(node) { lied(node).or_else(|| Some(found(InstanceState::Running))) } else { Some(Lookup::NotFound) }
}

/// A lie of five minutes and its end, in steps between which a leader may die.
fn lie(mix: Mix, marks: Marks, about: About, deleted: bool) -> Simulation {
    let mut simulation = mix.cluster();
    let lied = cloud(move |node| about.covers(mix, node).then(|| gone(deleted)));
    let mark = |simulation: &mut Simulation, when| {
        if marks == when {
            simulation.change(|node| if mix.marks(&node) { cordoned(node) } else { node });
        }
    };
    mark(&mut simulation, Marks::Before);
    simulation.run(10, cloud(|_| None));
    simulation.change(|node| Node { ready: if mix.is_ready(&node) { node.ready } else { Ready::Unknown }, ..node });
    mix.step(&mut simulation);
    simulation.run(20, &lied);
    mark(&mut simulation, Marks::During);
    mix.step(&mut simulation);
    simulation.run(130, &lied);
    mark(&mut simulation, Marks::After);
    mix.step(&mut simulation);
    simulation.run(120, &lied);
    mix.step(&mut simulation);
    simulation.run(200, cloud(|_| None));
    simulation
}

/// What controllers may lose for mere absence in a window.
fn budget(size: usize) -> usize {
    if size < 10 { 1 } else { 10 }
}

fn zone_budget(size: usize) -> usize {
    (size / 5).max(1).min(if size >= 3 { size - 1 } else { size })
}

fn of_cause(deleted: &[Deletion], cause: Cause) -> usize {
    deleted.iter().filter(|deletion| deletion.cause == cause).count()
}

fn check_lie(mix: Mix, marks: Marks, about: About, deleted: bool, simulation: &Simulation) {
    let story = format!("{mix:?}, marks {marks:?}, lie about {about:?}, deleted: {deleted}");
    let absent: Vec<_> = simulation.deleted.iter().filter(|deletion| deletion.cause == Cause::Absent).collect();
    assert!(absent.len() <= budget(mix.size), "{story}: {} for mere absence", absent.len());
    for zone in NAMES.into_iter().take(mix.zones) {
        let (of_zone, lost) = (
            (0..mix.size).filter(|index| NAMES[index % mix.zones] == zone).count(),
            absent.iter().filter(|deletion| deletion.zone.as_deref() == Some(zone)).count(),
        );
        assert!(lost <= zone_budget(of_zone), "{story}: {lost} in zone {zone}");
    }
    let planned = of_cause(&simulation.deleted, Cause::Planned);
    let may_be_planned = marks == Marks::Before && !mix.restarts;
    assert!(planned == 0 || may_be_planned, "{story}: {planned} marks that nobody set while the node was Ready");
    assert!(planned <= mix.size * 2 / 5, "{story}");
    let known = of_cause(&simulation.deleted, Cause::Deleted);
    assert!(known == 0 || deleted, "{story}");
    let all_or_ready = matches!(about, About::All | About::Ready) && mix.size > 1;
    assert!(!all_or_ready || known == 0, "{story}: {known} by a lie about all, or about the Ready ones");
    assert!(simulation.deleted.iter().all(|deletion| deletion.node.starts_with('n')), "{story}: foreign or joining");
    assert_eq!(simulation.state.trips.len(), 0, "{story}: a breaker is tripped after the lie");
}

/// Machines that are truly gone.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Truth {
    OneForgotten,
    ThirdDeleted,
    ThirdCordonedThenForgotten,
    SpotReclaim,
    ScaleDown,
    ZoneOutage,
}

impl Truth {
    const ALL: [Self; 6] = [
        Self::OneForgotten,
        Self::ThirdDeleted,
        Self::ThirdCordonedThenForgotten,
        Self::SpotReclaim,
        Self::ScaleDown,
        Self::ZoneOutage,
    ];

    /// How many of the first nodes go.
    fn goes(self, size: usize) -> usize {
        match self {
            Self::OneForgotten => 1,
            Self::ThirdDeleted | Self::ThirdCordonedThenForgotten | Self::SpotReclaim => (size / 3).max(1),
            Self::ScaleDown => (size * 2 / 5).max(1),
            Self::ZoneOutage => 0,
        }
    }

    fn is_marked(self) -> bool {
        matches!(self, Self::ThirdCordonedThenForgotten | Self::ScaleDown)
    }

    fn lookup(self) -> Lookup {
        gone(matches!(self, Self::ThirdDeleted | Self::SpotReclaim))
    }

    /// Whether the rules say that it needs nobody: the cloud keeps records, or a mark that counts, or the budget has room.
    fn is_unaided(self, mix: Mix) -> bool {
        let within = self.goes(mix.size) <= budget(mix.size);
        let kept = matches!(self, Self::ThirdDeleted | Self::SpotReclaim | Self::ZoneOutage);
        kept || within && !self.is_marked() || self.is_marked() && (!mix.restarts || self.goes(mix.size) == 1)
    }
}

/// Nodes stay Ready for 40 s after their machines are gone.
fn truth(mix: Mix, truth: Truth) -> (Simulation, bool) {
    let mut simulation = mix.cluster();
    let goes = move |node: &Node| is_ours(node) && number(node) < truth.goes(mix.size);
    let after = cloud(move |node| goes(node).then(|| truth.lookup()));
    if truth.is_marked() {
        simulation.change(|node| if goes(&node) { tainted(node, TO_BE_DELETED) } else { node });
    }
    simulation.run(10, cloud(|_| None));
    simulation
        .change(|node| Node { ready: if mix.is_ready(&node) || goes(&node) { node.ready } else { Ready::Unknown }, ..node });
    mix.step(&mut simulation);
    simulation.run(30, &after);
    let out = |node: &Node| goes(node) || truth == Truth::ZoneOutage && node.zone() == Some("a");
    simulation.change(|node| Node { ready: if out(&node) { Ready::Unknown } else { node.ready }, ..node });
    mix.step(&mut simulation);
    simulation.run(200, &after);
    let mut released = false;
    while simulation.release() {
        released = true;
        simulation.run(60, &after);
    }
    (simulation, released)
}

fn check_truth(mix: Mix, story: Truth, simulation: &Simulation, released: bool) {
    let lost: BTreeSet<_> = simulation.names_deleted().into_iter().map(str::to_owned).collect();
    let wanted: BTreeSet<_> = (0..story.goes(mix.size)).map(|index| format!("n{index:03}")).collect();
    assert_eq!(lost, wanted, "{mix:?}, {story:?}: released {released}");
    assert!(!(released && story.is_unaided(mix)), "{mix:?}, {story:?}: needed an operator");
}

/// Rows of one story whose cells are how many nodes were lost in each cluster.
struct Table {
    text: String,
    rows: usize,
    /// Rows that lose nothing.
    silent: usize,
    /// The last row, which holds for restarts as well where the next one is the same.
    last: Option<(String, String)>,
}

impl Table {
    fn new() -> Self {
        let columns: Vec<_> =
            SIZES.iter().flat_map(|size| ZONES.map(|zones| format!("{:>6}", format!("{size}/{zones}")))).collect();
        let head = format!("{:<62}{}\n", "nodes/zones", columns.concat());
        Self { text: head, rows: 0, silent: 0, last: None }
    }

    fn row(&mut self, name: &str, cells: &[String], mix: Mix) {
        self.rows += 1;
        let text = cells.iter().map(|cell| format!("{cell:>6}")).collect::<Vec<_>>().concat();
        match self.last.take() {
            Some((_, before)) if mix.restarts && before == text => self.write(&format!("{name} +-"), &text),
            Some((before_name, before)) => {
                self.write(&before_name, &before);
                self.write(&format!("{name} +"), &text);
            }
            None => self.last = Some((format!("{name} -"), text)),
        }
        self.silent += usize::from(cells.iter().all(|cell| cell == "0"));
    }

    fn write(&mut self, name: &str, cells: &str) {
        if cells.split_whitespace().any(|cell| cell != "0") {
            writeln!(self.text, "{name:<62}{cells}").unwrap();
        }
    }
}

fn lies(table: &mut Table) {
    for about in [About::All, About::ZoneA, About::OtherZones, About::Ready, About::Marked, About::Half] {
        for (deleted, word) in [(false, "not found"), (true, "DELETED")] {
            for marks in [Marks::Never, Marks::Before, Marks::During, Marks::After] {
                rows(table, &format!("lie: {about:?} {word}, marks {marks:?}"), |mix| {
                    let simulation = lie(mix, marks, about, deleted);
                    check_lie(mix, marks, about, deleted, &simulation);
                    simulation.deleted.len().to_string()
                });
            }
        }
    }
}

fn truths(table: &mut Table) {
    for story in Truth::ALL {
        rows(table, &format!("truth: {story:?}"), |mix| {
            let (simulation, released) = truth(mix, story);
            check_truth(mix, story, &simulation, released);
            format!("{}{}", simulation.deleted.len(), if released { "R" } else { "" })
        });
    }
}

fn rows(table: &mut Table, story: &str, mut tell: impl FnMut(Mix) -> String) {
    let mut cells = Vec::new();
    Mix::all(|mix| {
        cells.push(tell(mix));
        if cells.len() == SIZES.len() * ZONES.len() {
            table.row(&format!("{story}, {:?} Ready", mix.readiness), &cells, mix);
            cells.clear();
        }
    });
}

#[test]
fn no_lie_costs_more_than_the_rules_say_and_every_truth_ends_with_the_right_nodes() {
    let mut table = Table::new();
    lies(&mut table);
    truths(&mut table);
    let (rows, silent) = (table.rows, table.silent);
    let text = format!(
        "Nodes lost by each story. R: after an operator released a breaker. +: leaders die at each step, -: none does.\n\
         Of {rows} rows {silent} lose nothing in any cluster and are left out.\n{}",
        table.text
    );
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(TABLE);
    if std::env::var_os("CCM_WRITE_MATRIX").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    assert_eq!(std::fs::read_to_string(&path).unwrap_or_default(), text, "see {}", path.display());
}
