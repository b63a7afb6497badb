//! The flags of upstream's cloud-controller-manager that have no effect here: accepted with one warning each, or refused with the
//! remedy. They are hidden from `--help`. The class of each flag and its reason are data, in `compatibility/table.rs`.
use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};

use super::Invalid;

mod table;
#[cfg(test)]
mod tests;

use table::{Class, FLAGS, Flag, Shape};

/// The flags of [`FLAGS`] that no other group of arguments has, with the given values.
#[derive(Debug)]
pub(super) struct CompatibilityArgs {
    given: Vec<Given>,
}

#[derive(Debug)]
struct Given {
    flag: &'static Flag,
    values: Vec<String>,
}

impl CompatibilityArgs {
    /// One sentence for each flag that has no effect, or the first flag that must be refused.
    pub(super) fn warnings(self) -> Result<Vec<String>, Invalid> {
        self.given.iter().filter(|given| given.asks_for_something()).filter_map(Given::judged).collect()
    }
}

impl Given {
    /// Whether it asks for anything that does not happen anyway.
    fn asks_for_something(&self) -> bool {
        self.values.last().is_none_or(|last| !self.flag.harmless.contains(&last.as_str()))
    }

    fn judged(&self) -> Option<Result<String, Invalid>> {
        let name = self.flag.name;
        match self.flag.class {
            Class::Honoured => None,
            Class::Ignored(why) => Some(Ok(format!("--{name} does nothing here: {why}"))),
            Class::Refused { problem, remedy } => Some(Err(Invalid::new(name, problem, remedy))),
        }
    }
}

impl Flag {
    fn arg(&self) -> Arg {
        let arg = Arg::new(self.name).long(self.name).hide(true).action(ArgAction::Append).allow_hyphen_values(true);
        match self.shape {
            Shape::Boolean => {
                arg.num_args(0..=1).require_equals(true).default_missing_value("true").value_parser(canonical_boolean)
            }
            Shape::Value => arg.num_args(1),
        }
    }
}

/// `--flag=F` and `--flag=false` mean the same.
fn canonical_boolean(text: &str) -> Result<String, String> {
    super::go_syntax::boolean(text).map(|value| value.to_string())
}

fn unserved() -> impl Iterator<Item = &'static Flag> {
    FLAGS.iter().filter(|flag| !matches!(flag.class, Class::Honoured))
}

impl Args for CompatibilityArgs {
    fn augment_args(command: Command) -> Command {
        command.args(unserved().map(Flag::arg))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for CompatibilityArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let given = unserved().filter(|flag| matches.value_source(flag.name) == Some(ValueSource::CommandLine));
        let values = |flag: &Flag| {
            let found = matches.try_get_many::<String>(flag.name).map_err(|error| clap::Error::raw(ErrorKind::Io, error))?;
            Ok(found.into_iter().flatten().cloned().collect())
        };
        Ok(Self {
            given: given.map(|flag| values(flag).map(|values| Given { flag, values })).collect::<Result<_, clap::Error>>()?,
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}
