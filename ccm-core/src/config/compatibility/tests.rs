//! Every flag of Go's parses to the class that the table gives it.
#![allow(clippy::unwrap_used, clippy::panic)]
use std::collections::BTreeSet;

use super::table::{Class, FLAGS, Flag, Shape};
use crate::config::{Config, ConfigError};

/// What `cloud-controller-manager` v0.37.2 registers, written down by a program that walked its flag set: name, Go's type, and a
/// value that Go accepts. v0.36.3 registers the same but [`NEW_IN_V0_37`].
const GO: &str = include_str!("go-v0.37.2-flags.tsv");

/// What v0.37 has and v0.36 has not. Nothing is gone since, and no type is another.
const NEW_IN_V0_37: [&str; 1] = ["concurrent-node-lifecycle-syncs"];

/// One line of [`GO`].
#[derive(Clone, Copy)]
struct GoFlag {
    name: &'static str,
    type_: &'static str,
    sample: &'static str,
}

fn go() -> impl Iterator<Item = GoFlag> {
    GO.lines().map(|line| match line.split('\t').collect::<Vec<_>>()[..] {
        [name, type_, sample] => GoFlag { name, type_, sample },
        _ => panic!("{line:?} has not three columns"),
    })
}

fn sample(flag: &Flag) -> &'static str {
    go().find(|go| go.name == flag.name).unwrap().sample
}

fn parse(flags: &[String]) -> Result<Config, ConfigError> {
    let base = ["ccm-core", "--provider-endpoint=unix:///run/p.sock"].map(str::to_owned);
    Config::from_args(base.iter().chain(flags))
}

fn equals(flag: &Flag, value: &str) -> Vec<String> {
    vec![format!("--{}={value}", flag.name)]
}

/// All ways of writing it that Go takes.
fn spellings(flag: &Flag) -> Vec<Vec<String>> {
    let other = match flag.shape {
        Shape::Boolean => vec![format!("--{}", flag.name)],
        Shape::Value => vec![format!("--{}", flag.name), sample(flag).to_owned()],
    };
    let underscores = vec![format!("--{}={}", flag.name.replace('-', "_"), sample(flag))];
    vec![equals(flag, sample(flag)), other, underscores]
}

fn with_class(wanted: fn(&Class) -> bool) -> impl Iterator<Item = &'static Flag> {
    FLAGS.iter().filter(move |flag| wanted(&flag.class))
}

#[test]
fn the_table_has_exactly_the_flags_that_go_has() {
    let table: BTreeSet<_> = FLAGS.iter().map(|flag| flag.name).collect();
    assert_eq!(table, go().map(|flag| flag.name).collect());
    assert_eq!(table.len(), FLAGS.len());
}

#[test]
fn a_flag_that_is_new_in_go_is_in_the_table() {
    for name in NEW_IN_V0_37 {
        assert!(FLAGS.iter().any(|flag| flag.name == name), "--{name}");
        assert!(parse(&[format!("--{name}=7")]).is_ok(), "--{name}");
    }
}

#[test]
fn booleans_of_go_are_booleans_here() {
    for (flag, go) in FLAGS.iter().map(|flag| (flag, go().find(|go| go.name == flag.name).unwrap())) {
        assert_eq!(flag.shape == Shape::Boolean, matches!(go.type_, "bool" | "version"), "{}", flag.name);
    }
}

#[test]
fn every_honoured_flag_is_taken_without_a_word() {
    let printed = ["help", "version"];
    for flag in with_class(|class| *class == Class::Honoured).filter(|flag| !printed.contains(&flag.name)) {
        for arguments in spellings(flag) {
            let config = parse(&arguments).unwrap_or_else(|error| panic!("{arguments:?}: {error}"));
            assert_eq!(config.warnings, Vec::<String>::new(), "{arguments:?}");
        }
    }
}

#[test]
fn every_ignored_flag_gives_one_warning_that_names_it() {
    for flag in with_class(|class| matches!(class, Class::Ignored(_))) {
        for arguments in spellings(flag).into_iter().filter(|_| !flag.harmless.contains(&sample(flag))) {
            let config = parse(&arguments).unwrap_or_else(|error| panic!("{arguments:?}: {error}"));
            assert_eq!(config.warnings.len(), 1, "{arguments:?}");
            assert!(config.warnings[0].starts_with(&format!("--{} does nothing here: ", flag.name)));
        }
        let twice = [equals(flag, sample(flag)), equals(flag, sample(flag))].concat();
        assert_eq!(parse(&twice).unwrap().warnings.len(), 1, "{twice:?}");
    }
}

#[test]
fn every_refused_flag_says_its_name_and_the_remedy() {
    for flag in with_class(|class| matches!(class, Class::Refused { .. })) {
        let Class::Refused { remedy, .. } = flag.class else { continue };
        for arguments in spellings(flag) {
            let message = parse(&arguments).unwrap_err().to_string();
            assert!(message.starts_with(&format!("--{}: ", flag.name)) && message.ends_with(remedy), "{message}");
        }
    }
}

#[test]
fn asking_for_what_happens_anyway_is_fine() {
    for flag in FLAGS {
        for value in flag.harmless {
            let config = parse(&equals(flag, value)).unwrap_or_else(|error| panic!("--{}={value}: {error}", flag.name));
            assert_eq!(config.warnings, Vec::<String>::new(), "--{}={value}", flag.name);
        }
    }
}
