//! The results of a batch, one for each item, in whatever order they came.
use std::collections::HashMap;

use super::invalid;
use crate::provider::ProviderError;

/// The result for each key, in the keys' order, with its place in the answer. `field` is the field that has the key, which `key`
/// takes out of a result.
pub fn matched<R>(
    keys: impl Iterator<Item = String>,
    results: Vec<R>,
    field: &str,
    key: impl Fn(&mut R) -> String,
) -> Vec<Result<(usize, R), ProviderError>> {
    let mut by_key: HashMap<String, Vec<(usize, R)>> = HashMap::with_capacity(results.len());
    for (index, mut result) in results.into_iter().enumerate() {
        by_key.entry(key(&mut result)).or_default().push((index, result));
    }
    let matched = keys.map(|key| one(by_key.remove(&key).unwrap_or_default(), &key, field)).collect();
    if !by_key.is_empty() {
        let keys: Vec<_> = by_key.keys().take(5).collect();
        tracing::warn!(count = by_key.len(), ?keys, "the provider returned results for items that no batch had; discarded");
    }
    matched
}

fn one<R>(mut results: Vec<(usize, R)>, key: &str, field: &str) -> Result<(usize, R), ProviderError> {
    match (results.pop(), results.len()) {
        (Some(result), 0) => Ok(result),
        (Some((index, _)), more) => {
            Err(invalid(&format!("results[{index}].{field}"), &format!("\"{key}\" was answered {} times", more + 1)))
        }
        (None, _) => Err(invalid("results", &format!("there is none for \"{key}\""))),
    }
}
