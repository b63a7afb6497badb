//! The state as a ConfigMap's data, and back. A value that cannot be read is an error that names its key, never a default.
use std::collections::BTreeMap;
use std::str::FromStr;

use k8s_openapi::api::core::v1::ConfigMap;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::{History, Object, State, Stored, Unreadable};
use crate::names;

pub(super) const IDENTITY: &str = "cloud-identity";
pub(super) const EPOCH: &str = "epoch";
pub(super) const DELETIONS: &str = "deletions";
pub(super) const SPENT_UNTIL: &str = "budget-spent-until";
pub(super) const BREAKERS: &str = "breakers";
pub(super) const RELEASES: &str = "releases";

/// The keys of identity and epoch; all others are the history.
const STANDING: [&str; 2] = [IDENTITY, EPOCH];

/// The content of a ConfigMap, as far as it can be read.
pub(super) fn decode(map: ConfigMap) -> Stored {
    let data = Data { values: map.data.unwrap_or_default() };
    let metadata = map.metadata;
    let object = Object {
        name: metadata.name.unwrap_or_default(),
        uid: metadata.uid.unwrap_or_default(),
        resource_version: metadata.resource_version.unwrap_or_default(),
    };
    Stored {
        accepted_identity: data.values.get(IDENTITY).filter(|identity| !identity.is_empty()).cloned(),
        epoch: data.parsed(EPOCH).map(Option::unwrap_or_default),
        history: history(&data),
        release_request: metadata.annotations.unwrap_or_default().remove(names::annotations::RELEASE_BREAKER),
        object,
    }
}

fn history(data: &Data) -> Result<History, Unreadable> {
    Ok(History {
        deletions: data.json(DELETIONS)?,
        budget_spent_until: data.parsed(SPENT_UNTIL)?,
        trips: data.json(BREAKERS)?.unwrap_or_default(),
        releases: data.json(RELEASES)?.unwrap_or_default(),
    })
}

struct Data {
    values: BTreeMap<String, String>,
}

impl Data {
    fn parsed<T: FromStr<Err: std::error::Error>>(&self, key: &'static str) -> Result<Option<T>, Unreadable> {
        let value = self.values.get(key);
        value.map(|text| text.trim().parse()).transpose().map_err(|problem| Unreadable::new(key, &problem))
    }

    fn json<T: DeserializeOwned>(&self, key: &'static str) -> Result<Option<T>, Unreadable> {
        let value = self.values.get(key);
        value.map(|text| serde_json::from_str(text)).transpose().map_err(|problem| Unreadable::new(key, &problem))
    }
}

/// The data of a ConfigMap; keys whose value is `None` are absent from it.
pub(super) fn encode(state: &State) -> BTreeMap<&'static str, Option<String>> {
    BTreeMap::from([
        (IDENTITY, state.accepted_identity.clone()),
        (EPOCH, Some(state.epoch.to_string())),
        (DELETIONS, state.deletions.as_ref().map(|deletions| lines(deletions))),
        (SPENT_UNTIL, state.budget_spent_until.map(|until| until.to_string())),
        (BREAKERS, Some(lines(&state.trips))),
        (RELEASES, Some(lines(&state.releases))),
    ])
}

/// A JSON array with one element per line, so that `kubectl get -o yaml` and `kubectl edit` show it as a list.
fn lines<T: Serialize>(values: &[T]) -> String {
    let lines: Vec<_> = values.iter().map(|value| json!(value).to_string()).collect();
    match lines.as_slice() {
        [] => "[]".to_owned(),
        lines => format!("[\n{}\n]", lines.join(",\n")),
    }
}

/// A merge patch that writes the state into the ConfigMap, if that is still at the version that was read. Other keys stay.
pub(super) fn patch(state: &State, object: &Object) -> Value {
    let data: Map<_, _> = encode(state).into_iter().map(|(key, value)| (key.to_owned(), json!(value))).collect();
    json!({
        "metadata": {
            "uid": object.uid,
            "resourceVersion": object.resource_version,
            "annotations": { names::annotations::RELEASE_BREAKER: state.release_request },
        },
        "data": data,
    })
}

/// The same for identity and epoch alone: a history that cannot be read stays for a person to look at.
pub(super) fn standing_patch(state: &State, object: &Object) -> Value {
    let data: Map<_, _> = encode(state)
        .into_iter()
        .filter(|(key, _)| STANDING.contains(key))
        .map(|(key, value)| (key.to_owned(), json!(value)))
        .collect();
    json!({ "metadata": { "uid": object.uid, "resourceVersion": object.resource_version }, "data": data })
}
