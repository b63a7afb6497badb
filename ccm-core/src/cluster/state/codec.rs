//! The state as a ConfigMap's data, and back. A value that cannot be read is an error that names its key, never a default.
use std::collections::BTreeMap;
use std::str::FromStr;

use k8s_openapi::api::core::v1::ConfigMap;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::{Object, State, StateError};
use crate::names;

const IDENTITY: &str = "cloud-identity";
const EPOCH: &str = "epoch";
const DELETIONS: &str = "deletions";
const SPENT_UNTIL: &str = "budget-spent-until";
const BREAKERS: &str = "breakers";
const RELEASES: &str = "releases";

/// The state that a ConfigMap holds.
pub(super) fn decode(map: ConfigMap) -> Result<State, StateError> {
    let data = Data { values: map.data.unwrap_or_default() };
    let metadata = map.metadata;
    let object = Object {
        name: metadata.name.unwrap_or_default(),
        uid: metadata.uid.unwrap_or_default(),
        resource_version: metadata.resource_version.unwrap_or_default(),
    };
    Ok(State {
        accepted_identity: data.values.get(IDENTITY).cloned(),
        epoch: data.parsed(EPOCH)?.unwrap_or_default(),
        deletions: data.json(DELETIONS)?,
        budget_spent_until: data.parsed(SPENT_UNTIL)?,
        trips: data.json(BREAKERS)?.unwrap_or_default(),
        releases: data.json(RELEASES)?.unwrap_or_default(),
        release_request: metadata.annotations.unwrap_or_default().remove(names::annotations::RELEASE_BREAKER),
        object: Some(object),
    })
}

struct Data {
    values: BTreeMap<String, String>,
}

impl Data {
    fn parsed<T: FromStr<Err: std::error::Error + Send + Sync + 'static>>(
        &self,
        key: &'static str,
    ) -> Result<Option<T>, StateError> {
        let value = self.values.get(key);
        value.map(|text| text.trim().parse()).transpose().map_err(|source| StateError::unreadable(key, source))
    }

    fn json<T: DeserializeOwned>(&self, key: &'static str) -> Result<Option<T>, StateError> {
        let value = self.values.get(key);
        value.map(|text| serde_json::from_str(text)).transpose().map_err(|source| StateError::unreadable(key, source))
    }
}

/// The data as a ConfigMap holds it; keys whose value is `None` are to be absent.
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

/// A JSON array with one element a line, so that `kubectl get -o yaml` and `kubectl edit` show it as a list.
fn lines<T: Serialize>(values: &[T]) -> String {
    let lines: Vec<_> = values.iter().map(|value| json!(value).to_string()).collect();
    match lines.as_slice() {
        [] => "[]".to_owned(),
        lines => format!("[\n{}\n]", lines.join(",\n")),
    }
}

/// A merge patch that makes the ConfigMap hold the state, if it is still at the version that was read. Other keys stay.
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
