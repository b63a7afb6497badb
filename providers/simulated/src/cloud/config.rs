//! The YAML of a cloud's settings and initial state. Whatever is wrong with it is named by its field path. It sets nothing
//! in motion.
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::de::Visitor;
use serde::{Deserialize, Deserializer};

use super::derive::Layout;
use super::faults::FaultSpec;
use super::load_balancers::rules::Terms;
use super::model::{Failure, Spec, Volume};
use super::pace::{Latency, RateLimit};
use super::routes::table::Terms as RouteTerms;
use super::validate;
use super::world::World;

/// A cloud that is to be started.
#[derive(Debug, Default)]
pub struct Settings {
    /// Names the cloud, where the user says so.
    pub cloud_identity: Option<String>,
    /// Where the state is kept; in memory only if absent.
    pub state: Option<PathBuf>,
    /// How long a call takes.
    pub latency: Latency,
    /// How many calls there may be.
    pub rate_limit: Option<RateLimit>,
    /// What is there in the beginning.
    pub world: World,
    /// How load balancers are sold.
    pub load_balancers: Terms,
    /// How routes are sold.
    pub routes: RouteTerms,
    /// What goes wrong from the beginning.
    pub faults: Vec<FaultSpec>,
}

/// Why a configuration was refused.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file resists.
    #[error("--config: {path}: {source}")]
    File {
        /// Which.
        path: String,
        /// How.
        source: io::Error,
    },
    /// It is not YAML, or not of this shape; the message has the field path.
    #[error("--config: {path}: {source}")]
    Shape {
        /// Which.
        path: String,
        /// Where.
        source: serde_yaml_ng::Error,
    },
    /// A value makes no sense; the message begins with the field path.
    #[error("--config: {path}: {source}")]
    Value {
        /// Which.
        path: String,
        /// Where, and why.
        source: Failure,
    },
}

/// The file.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Config {
    /// Names the cloud.
    pub cloud_identity: Option<String>,
    /// The region.
    pub region: Option<String>,
    /// Its zones.
    pub zones: Option<Vec<String>>,
    /// How long a call takes.
    pub latency: Span,
    /// Up to how much longer.
    pub jitter: Span,
    /// How long until a change is seen.
    pub lag: Span,
    /// How many calls there may be.
    pub rate_limit: Option<RateLimitConfig>,
    /// Whether any name has a machine.
    pub auto_instances: bool,
    /// Machines.
    pub instances: Vec<Spec>,
    /// Disks.
    pub volumes: Vec<Volume>,
    /// How load balancers are sold.
    pub load_balancers: LoadBalancersConfig,
    /// How routes are sold.
    pub routes: RoutesConfig,
    /// Faults.
    pub faults: Vec<FaultSpec>,
}

/// How load balancers are sold.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct LoadBalancersConfig {
    /// How long a new one takes until it works.
    pub provisioning: Span,
    /// How many there may be.
    pub max: Option<usize>,
}

/// How routes are sold.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct RoutesConfig {
    /// How many there may be.
    pub max: Option<usize>,
}

/// A rate limit.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RateLimitConfig {
    /// Calls a second.
    pub per_second: f64,
    /// Calls at once; one second's worth unless given.
    pub burst: Option<u32>,
}

impl RateLimitConfig {
    /// The limit; refused unless it ever lets a call pass. `path` is where it stands.
    pub fn checked(self, path: &str) -> Result<RateLimit, Failure> {
        if !(self.per_second.is_finite() && self.per_second > 0.0) {
            return Err(validate::invalid(path, "must be more than 0 calls a second"));
        }
        // Above zero and, from a person, far below 2^32.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let burst = self.burst.unwrap_or(self.per_second.ceil() as u32);
        if burst == 0 {
            Err(validate::invalid(path, "must allow a burst of 1"))
        } else {
            Ok(RateLimit { per_second: self.per_second, burst })
        }
    }
}

impl Config {
    /// Reads and checks a file.
    pub fn read(path: &Path) -> Result<Settings, ConfigError> {
        let name = || path.display().to_string();
        let text = fs::read_to_string(path).map_err(|source| ConfigError::File { path: name(), source })?;
        Self::parse(&text).map_err(|error| error.in_file(name()))
    }

    /// Checks a text.
    fn parse(text: &str) -> Result<Settings, ParseError> {
        // An empty file is a file that says nothing.
        let config: Option<Self> = serde_yaml_ng::from_str(text)?;
        Ok(config.unwrap_or_default().settings()?)
    }

    fn settings(self) -> Result<Settings, Failure> {
        if let Some(identity) = &self.cloud_identity {
            validate::identity("cloudIdentity", identity)?;
        }
        Ok(Settings {
            latency: Latency { base: self.latency.0, jitter: self.jitter.0 },
            rate_limit: self.rate_limit.map(|limit| limit.checked("rateLimit")).transpose()?,
            world: self.world()?,
            cloud_identity: self.cloud_identity,
            state: None,
            load_balancers: Terms { provisioning: self.load_balancers.provisioning.0, max: self.load_balancers.max },
            routes: RouteTerms { max: self.routes.max },
            faults: self.faults,
        })
    }

    fn world(&self) -> Result<World, Failure> {
        let mut world = World { layout: self.layout()?, auto: self.auto_instances, lag: self.lag.0, ..World::default() };
        for (index, spec) in self.instances.iter().enumerate() {
            let path = format!("instances[{index}]");
            validate::spec(&world.layout, &path, spec)?;
            if world.slots.contains_key(&spec.name) {
                return Err(validate::invalid(&format!("{path}.name"), &format!("{:?} stands there already", spec.name)));
            }
            world.seed(spec);
        }
        for (index, volume) in self.volumes.iter().enumerate() {
            validate::volume(&world.layout, &format!("volumes[{index}]"), volume)?;
            world.volumes.insert(volume.id.clone(), volume.clone());
        }
        Ok(world)
    }

    fn layout(&self) -> Result<Layout, Failure> {
        let default = Layout::default();
        let zones = self.zones.clone().unwrap_or(default.zones);
        if zones.is_empty() || zones.iter().any(String::is_empty) {
            return Err(validate::invalid("zones", "must name at least one zone, and none may be empty"));
        }
        Ok(Layout { region: self.region.clone().unwrap_or(default.region), zones })
    }
}

#[derive(Debug, thiserror::Error)]
enum ParseError {
    #[error(transparent)]
    Shape(#[from] serde_yaml_ng::Error),
    #[error(transparent)]
    Value(#[from] Failure),
}

impl ParseError {
    fn in_file(self, path: String) -> ConfigError {
        match self {
            Self::Shape(source) => ConfigError::Shape { path, source },
            Self::Value(source) => ConfigError::Value { path, source },
        }
    }
}

/// A length of time, such as `20ms`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Span(pub Duration);

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // The error must come from a visitor: only then does the parser add the field's path.
        deserializer.deserialize_str(SpanVisitor)
    }
}

struct SpanVisitor;

impl Visitor<'_> for SpanVisitor {
    type Value = Span;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a duration such as 20ms")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Span, E> {
        humantime::parse_duration(text)
            .map(Span)
            .map_err(|error| E::custom(format!("{text:?} is no duration such as 20ms: {error}")))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_the_documentation_is_read() {
        let readme = include_str!("../../README.md");
        let example = readme.split("```yaml\n").nth(1).unwrap().split("```").next().unwrap();
        let settings = Config::parse(example).unwrap();
        assert_eq!(settings.world.slots.len(), 2);
        assert_eq!(settings.latency.base, Duration::from_millis(20));
        assert_eq!(settings.faults.len(), 1);
    }

    #[test]
    fn an_empty_file_says_nothing() {
        assert_eq!(Config::parse("").unwrap().world.layout, Layout::default());
    }

    #[test]
    fn every_error_has_the_path_of_its_field() {
        let table = [
            ("instances: [{name: a}, {name: b}, {name: c, zone: moon}]", "instances[2].zone: there is no zone"),
            ("instances: [{name: a}, {name: a}]", "instances[1].name: \"a\" stands there"),
            ("instances: [{name: a, zone: [1]}]", "instances[0].zone: invalid type"),
            ("instances: [{name: a, size: big}]", "instances[0]: unknown field `size`"),
            ("instances: [{name: a, state: gone}]", "instances[0].state: unknown variant `gone`"),
            ("volumes: [{id: v, zone: moon}]", "volumes[0].zone: there is no zone"),
            ("latency: soon", "latency: \"soon\" is no duration"),
            ("rateLimit: {perSecond: 0}", "rateLimit: must be more"),
            ("zones: []", "zones: must name"),
            ("cloudIdentity: ''", "cloudIdentity: must have"),
            ("faults: [{name: gremlins}]", "faults[0].name: unknown variant"),
        ];
        for (text, expected) in table {
            let message = Config::parse(text).unwrap_err().to_string();
            assert!(message.starts_with(expected), "{message}");
        }
    }
}
