//! Rows as they are measured, then medians and ratios. It prints figures and judges only whether the measure itself held still.
use jiff::Timestamp;

use super::writes::Writes;
use crate::usage::{Usage, number};

/// The bare client's runs may differ by this share of their median; more, and the machine was busy with something else.
const MOST_SPREAD: f64 = 0.10;

/// One client's turn.
#[derive(Clone, Debug)]
pub struct Row {
    /// Which client.
    pub client: &'static str,
    /// From its start to its first write, in seconds.
    start: f64,
    /// From its first write to its last, in seconds.
    seconds: f64,
    /// Whether that was all.
    is_complete: bool,
    /// Nodes that were initialised.
    pub done: usize,
    /// Successful writes to nodes.
    writes: usize,
    /// Writes refused because the node had changed.
    conflicts: usize,
    /// Calls to the cloud.
    calls: Option<u64>,
    /// Its processes; none for the bare client.
    usages: Vec<Usage>,
}

impl Row {
    /// What was written by a client that began then.
    pub fn of(client: &'static str, began: Timestamp, writes: &Writes) -> Self {
        Self {
            client,
            start: writes.since(began),
            seconds: writes.seconds(),
            is_complete: writes.is_complete(),
            done: writes.done,
            writes: writes.successful,
            conflicts: writes.conflicts,
            calls: None,
            usages: Vec::new(),
        }
    }

    /// With what its processes used, and how often it called the cloud.
    #[must_use]
    pub fn with(self, usages: Vec<Usage>, calls: u64) -> Self {
        Self { usages, calls: Some(calls), ..self }
    }

    /// Infinite where not all was done.
    pub fn seconds(&self) -> f64 {
        if self.is_complete { self.seconds } else { f64::INFINITY }
    }

    fn usage(&self, name: &str) -> Option<&Usage> {
        self.usages.iter().find(|usage| usage.name == name)
    }
}

/// All rows.
pub struct Report {
    nodes: usize,
    rows: Vec<Row>,
}

impl Report {
    /// Of a run over so many nodes.
    pub fn new(nodes: usize) -> Self {
        Self { nodes, rows: Vec::new() }
    }

    /// The columns' names.
    pub fn head() {
        println!(
            "{:<24} {:>8} {:>7} {:>8} {:>9} {:>8} {:>8} {:>9}",
            "", "seconds", "start", "CPU s", "peak MiB", "calls", "writes", "conflicts"
        );
    }

    /// Prints one row that does not count.
    pub fn print(&self, label: &str, row: &Row) {
        let own = row.usage(row.client);
        println!(
            "{label:<24} {:>8.2} {:>7.2} {:>8} {:>9} {:>8} {:>8} {:>9}",
            row.seconds,
            row.start,
            shown(own.and_then(|own| own.cpu), 2),
            shown(own.and_then(|own| own.peak), 1),
            row.calls.map_or("-".to_owned(), |calls| calls.to_string()),
            row.writes,
            row.conflicts
        );
        for other in row.usages.iter().filter(|usage| usage.name != row.client) {
            let (cpu, peak) = (shown(other.cpu, 2), shown(other.peak, 1));
            println!("{:<24} {:>8} {:>7} {cpu:>8} {peak:>9}", format!("  {}", other.name), "", "");
        }
        if !row.is_complete {
            println!("  {} of {} nodes were done when its time was over", row.done, self.nodes);
        }
    }

    /// Prints a row and keeps it.
    pub fn add(&mut self, row: Row) {
        self.print(row.client, &row);
        self.rows.push(row);
    }

    /// The medians, the ratios, and whether they count.
    pub fn summary(&self) {
        println!("\n{:<24} {:>8} {:>8} {:>14} {:>9} {:>8}", "medians", "seconds", "CPU s", "CPU ms a node", "peak MiB", "calls");
        let mut seen: Vec<&str> = Vec::new();
        for row in &self.rows {
            if !seen.contains(&row.client) {
                seen.push(row.client);
                self.medians(row);
            }
        }
        println!("\nratios of medians");
        for other in seen.iter().filter(|&&client| client != "ccm-core") {
            self.ratios(other);
        }
        self.spread();
    }

    fn medians(&self, of: &Row) {
        let client = of.client;
        let own = of.usages.iter().map(|usage| usage.name);
        for name in std::iter::once(client).chain(own.filter(|&name| name != client)) {
            let cpu = self.median(client, |row| row.usage(name)?.cpu);
            let per_node = cpu.map(|cpu| cpu * 1000.0 / number(self.nodes));
            println!(
                "{:<24} {:>8} {:>8} {:>14} {:>9} {:>8}",
                if name == client { name.to_owned() } else { format!("  {name}") },
                if name == client { shown(self.seconds(client), 2) } else { String::new() },
                shown(cpu, 2),
                shown(per_node, 3),
                shown(self.median(client, |row| row.usage(name)?.peak), 1),
                if name == client { shown(self.median(client, |row| row.calls.map(number)), 0) } else { String::new() },
            );
        }
    }

    fn ratios(&self, other: &str) {
        let ratio = |value: &dyn Fn(&str) -> Option<f64>| value("ccm-core").zip(value(other)).map(|(ours, theirs)| ours / theirs);
        let seconds = ratio(&|client| self.seconds(client));
        let cpu = ratio(&|client| self.median(client, |row| row.usage(client)?.cpu));
        let peak = ratio(&|client| self.median(client, |row| row.usage(client)?.peak));
        for (what, ratio) in [("seconds", seconds), ("CPU", cpu), ("peak memory", peak)] {
            if let Some(ratio) = ratio {
                println!("  {:<46} {ratio:>6.2}", format!("ccm-core / {other}, {what}"));
            }
        }
    }

    fn spread(&self) {
        let all: Vec<f64> = self.of("bare client").map(Row::seconds).collect();
        let (least, most) = all.iter().fold((f64::INFINITY, 0.0_f64), |(least, most), &one| (least.min(one), most.max(one)));
        let spread = self.seconds("bare client").map_or(f64::NAN, |median| (most - least) / median);
        println!("  {:<46} {:>5.1} %", "spread of the bare client", spread * 100.0);
        if spread > MOST_SPREAD {
            println!("VOID: the bare client's runs differ by more than {:.0} %: the machine was busy", MOST_SPREAD * 100.0);
        }
    }

    fn seconds(&self, client: &str) -> Option<f64> {
        self.median(client, |row| Some(row.seconds()))
    }

    fn of<'a>(&'a self, client: &str) -> impl Iterator<Item = &'a Row> {
        self.rows.iter().filter(move |row| row.client == client)
    }

    fn median(&self, client: &str, value: impl Fn(&Row) -> Option<f64>) -> Option<f64> {
        let mut values: Vec<f64> = self.of(client).filter_map(value).collect();
        values.sort_by(f64::total_cmp);
        let (lower, upper) = (values.len().checked_sub(1)? / 2, values.len() / 2);
        Some(f64::midpoint(values[lower], values[upper])).filter(|median| median.is_finite())
    }
}

fn shown(value: Option<f64>, digits: usize) -> String {
    value.map_or("-".to_owned(), |value| format!("{value:.digits$}"))
}
