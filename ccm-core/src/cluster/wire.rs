//! What the API server sends, reduced to the fields in use: everything else is skipped while it is parsed and takes no memory.
//! What the values mean is said in `convert`.
pub mod node;
pub mod service;

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Deserialize;

/// `metadata` of an object.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Meta {
    pub name: String,
    pub namespace: Option<String>,
    pub uid: Option<String>,
    pub resource_version: Option<String>,
    pub generation: Option<i64>,
    pub creation_timestamp: Option<Timestamp>,
    pub deletion_timestamp: Option<Timestamp>,
    pub labels: Option<BTreeMap<String, String>>,
    pub annotations: Option<BTreeMap<String, String>>,
    pub finalizers: Option<Vec<String>>,
}

/// An object of which only the metadata is read.
#[derive(Debug, Deserialize)]
pub struct Bare {
    pub metadata: Identity,
}

impl Bare {
    /// As views have it: `NAME`, or `NAMESPACE/NAME`.
    pub fn key(&self) -> String {
        let Identity { name, namespace, .. } = &self.metadata;
        namespace.as_ref().map_or_else(|| name.clone(), |namespace| format!("{namespace}/{name}"))
    }
}

/// What identifies an object and its version.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Identity {
    pub name: String,
    pub namespace: Option<String>,
    pub resource_version: Option<String>,
}

/// An object of which only the annotations are read.
#[derive(Debug, Deserialize)]
pub struct Annotated {
    pub metadata: Annotations,
}

/// The annotations in `metadata`.
#[derive(Debug, Deserialize)]
pub struct Annotations {
    pub annotations: Option<BTreeMap<String, String>>,
}

/// One page of a list.
#[derive(Debug, Deserialize)]
pub struct Page<T> {
    pub metadata: PageMeta,
    pub items: Option<Vec<T>>,
}

impl<T> Page<T> {
    /// The same with other items.
    pub fn map<U>(self, change: impl FnMut(T) -> U) -> Page<U> {
        Page { metadata: self.metadata, items: self.items.map(|items| items.into_iter().map(change).collect()) }
    }
}

/// `metadata` of a list.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PageMeta {
    pub resource_version: Option<String>,
    #[serde(rename = "continue")]
    pub next: Option<String>,
}
