//! Go's conventions for flags: durations, booleans, underscores. jiff reads durations: its friendly format covers everything that
//! Go prints (humantime reads neither fractions nor units in any order).
use std::ffi::OsString;
use std::fmt::Display;
use std::time::Duration;

use jiff::SignedDuration;
use serde::Serializer;

/// Reads a Go duration: `1h2m3.5s`, `500ms`, `1.5h`, `0`.
pub fn duration(text: &str) -> Result<Duration, String> {
    const REMEDY: &str = "write a Go duration that is not negative, such as 500ms, 15s or 1h2m3.5s";
    if text == "0" {
        return Ok(Duration::ZERO);
    }
    let signed: SignedDuration = text.parse().map_err(|error| format!("{error}; {REMEDY}"))?;
    Duration::try_from(signed).map_err(|_| format!("it is negative; {REMEDY}"))
}

/// Reads a Go duration that must not be zero.
pub fn positive_duration(text: &str) -> Result<Duration, String> {
    match duration(text)? {
        Duration::ZERO => Err("it must be greater than zero".to_owned()),
        positive => Ok(positive),
    }
}

/// Reads what Go's `strconv.ParseBool` reads.
pub fn boolean(text: &str) -> Result<bool, String> {
    match text {
        "1" | "t" | "T" | "TRUE" | "true" | "True" => Ok(true),
        "0" | "f" | "F" | "FALSE" | "false" | "False" => Ok(false),
        other => Err(format!("{other:?} is neither true nor false")),
    }
}

/// An argument as upstream normalises it: underscores in a long flag's name become dashes. Values do not change.
pub fn dashed(argument: OsString) -> OsString {
    let Some(flag) = argument.to_str().filter(|text| text.starts_with("--")) else { return argument };
    match flag.split_once('=') {
        Some((name, value)) => format!("{}={value}", name.replace('_', "-")).into(),
        None => flag.replace('_', "-").into(),
    }
}

/// Writes a duration in the syntax of flags.
pub fn serialize_duration<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    match SignedDuration::try_from(*duration) {
        Ok(signed) => serializer.collect_str(&format_args!("{signed:#}")),
        Err(_) => serializer.collect_str(&format_args!("{}s", duration.as_secs())),
    }
}

/// Writes the display form of each item.
pub fn serialize_each<T: Display, S: Serializer>(items: &[T], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(items.iter().map(ToString::to_string))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn durations_are_read_as_go_reads_them() {
        let rows = [
            ("0", 0),
            ("0s", 0),
            ("500ms", 500),
            ("15s", 15_000),
            ("1.5h", 5_400_000),
            ("1h2m3.5s", 3_723_500),
            ("5m0s", 300_000),
            ("1500us", 1),
            ("100h", 360_000_000),
        ];
        for (text, milliseconds) in rows {
            assert_eq!(duration(text).unwrap().as_millis(), milliseconds, "{text}");
        }
    }

    #[test]
    fn what_is_no_duration_is_refused_with_an_example() {
        for text in ["", "15", "s", "-5s", "1d", "ten seconds", "5 s s"] {
            assert!(duration(text).unwrap_err().contains("500ms"), "{text}");
        }
        assert!(positive_duration("0s").is_err());
    }

    #[test]
    fn booleans_are_read_as_go_reads_them() {
        for (text, value) in [("true", true), ("T", true), ("1", true), ("False", false), ("f", false), ("0", false)] {
            assert_eq!(boolean(text), Ok(value));
        }
        assert!(boolean("yes").is_err());
    }

    #[test]
    fn underscores_are_dashes_in_names_only() {
        for (given, read) in [
            ("--cloud_provider=my_cloud", "--cloud-provider=my_cloud"),
            ("--leader_elect", "--leader-elect"),
            ("a_b", "a_b"),
            ("-v_", "-v_"),
        ] {
            assert_eq!(dashed(given.into()), OsString::from(read));
        }
    }
}
