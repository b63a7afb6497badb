//! Whether a provider's description keeps the contract's rules. What the provider serves is said by its `parts`.
use crate::provider::Description;

/// The most bytes of a cloud identity.
const MAX_CLOUD_IDENTITY: usize = 256;
/// The most characters of a provider's name.
const MAX_NAME: usize = 40;

/// A description that breaks the contract.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
#[error("the provider's description is not valid: {field}: {problem}")]
pub struct DescriptionError {
    /// The field of [`Description`].
    pub field: &'static str,
    /// What is wrong with it.
    pub problem: &'static str,
}

/// Whether a provider may describe itself so. `has_instances`: it serves instances, which need a providerID prefix.
pub(crate) fn validate(description: &Description, has_instances: bool) -> Result<(), DescriptionError> {
    let refuse = |field, problem| Err(DescriptionError { field, problem });
    if !is_dns_label(&description.name) {
        return refuse("name", "must be a DNS label (lower-case letters, digits, dashes) of 1 to 40 characters");
    }
    if description.cloud_identity.is_empty() || description.cloud_identity.len() > MAX_CLOUD_IDENTITY {
        return refuse("cloud_identity", "must have 1 to 256 bytes");
    }
    if description.provider_id_prefixes.iter().any(String::is_empty) {
        return refuse("provider_id_prefixes", "none may be empty");
    }
    if has_instances && description.provider_id_prefixes.is_empty() {
        return refuse("provider_id_prefixes", "at least one is needed to serve instances, such as `example://`");
    }
    if description.service_annotation_prefixes.iter().any(String::is_empty) {
        return refuse("service_annotation_prefixes", "none may be empty: it would let the provider write every annotation");
    }
    if description.limits.max_batch_size == Some(0) {
        return refuse("limits.max_batch_size", "must be at least 1");
    }
    Ok(())
}

fn is_dns_label(name: &str) -> bool {
    let alphanumeric = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit();
    let bytes = name.as_bytes();
    bytes.len() <= MAX_NAME
        && bytes.first().is_some_and(|&c| alphanumeric(c))
        && bytes.last().is_some_and(|&c| alphanumeric(c))
        && bytes.iter().all(|&c| alphanumeric(c) || c == b'-')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sound() -> Description {
        Description {
            name: "example".into(),
            cloud_identity: "https://api.example.com account 7".into(),
            provider_id_prefixes: vec!["example://".into()],
            ..Description::default()
        }
    }

    #[test]
    fn a_sound_description_passes() {
        assert_eq!(validate(&sound(), true), Ok(()));
    }

    #[test]
    fn each_broken_field_is_named() {
        let cases: [(&str, Description); 6] = [
            ("name", Description { name: "Example".into(), ..sound() }),
            ("name", Description { name: "-x".into(), ..sound() }),
            ("cloud_identity", Description { cloud_identity: "x".repeat(257), ..sound() }),
            ("provider_id_prefixes", Description { provider_id_prefixes: vec![], ..sound() }),
            ("provider_id_prefixes", Description { provider_id_prefixes: vec![String::new()], ..sound() }),
            ("service_annotation_prefixes", Description { service_annotation_prefixes: vec![String::new()], ..sound() }),
        ];
        for (field, description) in cases {
            assert_eq!(validate(&description, true).map_err(|error| error.field), Err(field));
        }
    }

    #[test]
    fn a_provider_without_instances_needs_no_prefix() {
        assert_eq!(validate(&Description { provider_id_prefixes: vec![], ..sound() }, false), Ok(()));
    }
}
