//! What Kubernetes takes for a label, an address and a name. Each check answers what is wrong, in words.
use std::net::IpAddr;

const MAX_LABEL: usize = 63;
const MAX_DNS_NAME: usize = 253;
const MAX_PORT_ERROR: usize = 316;

/// A label's key: an optional DNS subdomain and a slash, and a name.
pub fn label_key(key: &str) -> Result<(), &'static str> {
    let (prefix, name) = key.split_once('/').map_or((None, key), |(prefix, name)| (Some(prefix), name));
    if prefix.is_some_and(|it| !is_subdomain(it)) {
        return Err("is not a label key: what stands before the slash is not a DNS name in lower case");
    }
    if name.is_empty() || !is_label_text(name) { Err("is not a label key") } else { Ok(()) }
}

/// A label's value; it may be empty.
pub fn label_value(value: &str) -> Result<(), &'static str> {
    if is_label_text(value) {
        Ok(())
    } else {
        Err("is not a label value: at most 63 letters, digits, '-', '_' and '.', a letter or digit at both ends")
    }
}

/// An IPv4 or IPv6 address.
pub fn ip(text: &str) -> Result<(), &'static str> {
    text.parse::<IpAddr>().map(drop).map_err(|_| "is not an IP address")
}

/// A host or DNS name. Upper case and underscores, which clouds do use, are let through as Kubernetes does.
pub fn dns_name(text: &str) -> Result<(), &'static str> {
    let label = |it: &str| {
        (1..=MAX_LABEL).contains(&it.len())
            && it.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'))
            && !it.starts_with('-')
            && !it.ends_with('-')
    };
    if text.len() <= MAX_DNS_NAME && text.split('.').all(label) { Ok(()) } else { Err("is not a DNS name") }
}

/// A DNS name where Kubernetes takes only lower case and no address.
pub fn hostname(text: &str) -> Result<(), &'static str> {
    if ip(text).is_ok() {
        return Err("is an IP address where a DNS name belongs");
    }
    if is_subdomain(text) { Ok(()) } else { Err("is not a DNS name") }
}

/// Why a port does not work: a word, or a word of a domain.
pub fn port_error(text: &str) -> Result<(), &'static str> {
    let (domain, word) = text.split_once('/').map_or((None, text), |(domain, word)| (Some(domain), word));
    let word_passes = word.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
        && word.as_bytes().first().is_some_and(u8::is_ascii_alphanumeric)
        && word.as_bytes().last().is_some_and(u8::is_ascii_alphanumeric);
    if text.len() <= MAX_PORT_ERROR && word_passes && domain.is_none_or(is_subdomain) {
        Ok(())
    } else {
        Err("is not a word in CamelCase, or `domain/Word`")
    }
}

fn is_label_text(text: &str) -> bool {
    let edge = |b: Option<&u8>| b.is_none_or(u8::is_ascii_alphanumeric);
    text.len() <= MAX_LABEL
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
        && edge(text.as_bytes().first())
        && edge(text.as_bytes().last())
}

fn is_subdomain(text: &str) -> bool {
    let lower = |b: u8| !b.is_ascii_uppercase() && b != b'_';
    dns_name(text).is_ok() && text.bytes().all(lower)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(valid: fn(&str) -> Result<(), &'static str>, good: &[&str], bad: &[&str]) {
        for it in good {
            assert_eq!(valid(it), Ok(()), "{it}");
        }
        for it in bad {
            assert!(valid(it).is_err(), "{it}");
        }
    }

    #[test]
    fn the_rules_are_those_of_kubernetes() {
        let long = "x".repeat(64);
        check(label_value, &["", "m5.large", "eu_1-a", "0"], &["-a", "a-", "a b", "ü", "a/b", &long]);
        check(hostname, &["lb.example.com", "lb"], &["", "Lb.example.com", "a_b.example.com", "192.0.2.1", "::1", "a..b"]);
        check(port_error, &["MixedProtocolNotSupported", "example.com/Full"], &["", "two words", "/Full", "Example/Full", "a/"]);
        check(label_key, &["a", "example.com/a", "A_b.c"], &["", "/a", "example.com/", "Example.com/a", "a/b/c", &long]);
        check(ip, &["10.0.0.1", "::1", "2001:db8::1"], &["", "10.0.0", "010.0.0.1", "fe80::1%eth0", "not-an-ip"]);
        check(dns_name, &["a", "WIN-1", "a_b.internal"], &["", "a..b", "-a", "a b", "a.", &long]);
    }
}
