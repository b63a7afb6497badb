//! What the metadata of a request says: its id, its trace and its deadline. Nonsense counts as absent.
use std::time::Duration;

use tonic::metadata::MetadataMap;

/// The key of the id under which both sides log a call.
pub(super) const REQUEST_ID: &str = "x-request-id";
const TRACE_PARENT: &str = "traceparent";
const TIMEOUT: &str = "grpc-timeout";
/// The longest request id that is taken over.
const MAX_REQUEST_ID: usize = 128;
/// The longest deadline that makes sense; what is longer is cut to it.
const LONGEST_TIMEOUT: Duration = Duration::from_hours(24);

/// The caller's id of the call, or a new one.
pub(super) fn request_id(metadata: &MetadataMap) -> String {
    let given = metadata.get(REQUEST_ID).and_then(|id| id.to_str().ok());
    let sound = given.filter(|id| !id.is_empty() && id.len() <= MAX_REQUEST_ID);
    sound.map_or_else(|| uuid::Uuid::new_v4().to_string(), str::to_owned)
}

/// The W3C `traceparent`, if it has the form of one: `00-<32 hex>-<16 hex>-<2 hex>`.
pub(super) fn trace_parent(metadata: &MetadataMap) -> Option<String> {
    let given = metadata.get(TRACE_PARENT)?.to_str().ok()?;
    let mut parts = given.split('-');
    let sound = [2, 32, 16, 2].iter().all(|&length| parts.next().is_some_and(|part| is_hex(part, length)));
    sound.then(|| given.to_owned())
}

fn is_hex(part: &str, length: usize) -> bool {
    part.len() == length && part.bytes().all(|c| c.is_ascii_digit() || (b'a'..=b'f').contains(&c))
}

/// The caller's deadline, from the header `grpc-timeout`: up to eight digits and a unit.
pub(super) fn timeout(metadata: &MetadataMap) -> Option<Duration> {
    let given = metadata.get(TIMEOUT)?.to_str().ok()?;
    let (digits, unit) = given.split_at_checked(given.len().checked_sub(1)?)?;
    let number: u64 = digits.parse().ok().filter(|_| digits.len() <= 8)?;
    let timeout = match unit {
        "H" => Duration::from_secs(number * 3600),
        "M" => Duration::from_secs(number * 60),
        "S" => Duration::from_secs(number),
        "m" => Duration::from_millis(number),
        "u" => Duration::from_micros(number),
        "n" => Duration::from_nanos(number),
        _ => return None,
    };
    Some(timeout.min(LONGEST_TIMEOUT))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn with(key: &'static str, value: &str) -> MetadataMap {
        let mut metadata = MetadataMap::new();
        metadata.insert(key, value.parse().unwrap());
        metadata
    }

    #[test]
    fn a_timeout_has_digits_and_a_unit() {
        for (text, timeout_wanted) in [
            ("10S", Some(Duration::from_secs(10))),
            ("1500m", Some(Duration::from_millis(1500))),
            ("99999999H", Some(LONGEST_TIMEOUT)),
            ("10", None),
            ("S", None),
            ("-1S", None),
            ("123456789S", None),
        ] {
            assert_eq!(timeout(&with(TIMEOUT, text)), timeout_wanted, "{text}");
        }
    }

    #[test]
    fn a_request_without_an_id_gets_one_of_its_own() {
        assert_eq!(request_id(&with(REQUEST_ID, "core-7")), "core-7");
        assert_ne!(request_id(&MetadataMap::new()), request_id(&MetadataMap::new()));
        assert_eq!(request_id(&with(REQUEST_ID, &"x".repeat(129))).len(), 36);
    }

    #[test]
    fn a_malformed_trace_is_none() {
        let sound = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        assert_eq!(trace_parent(&with(TRACE_PARENT, sound)).as_deref(), Some(sound));
        assert_eq!(trace_parent(&with(TRACE_PARENT, "00-zz-b7ad6b7169203331-01")), None);
    }
}
