//! Identity and epoch as an annotation of the lease: what is left of the state when its ConfigMap is lost. It knows the
//! annotation's text, and neither the lease nor the ConfigMap.
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::names;

/// What the leader of a term writes on the lease.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Mirror {
    /// The provider's name.
    pub provider: String,
    /// The accepted cloud identity.
    pub cloud_identity: String,
    /// The epoch of the term.
    pub epoch: u64,
}

impl Mirror {
    /// The mirror among these annotations. One that cannot be read is none.
    pub fn of(annotations: Option<&BTreeMap<String, String>>) -> Option<Self> {
        serde_json::from_str(annotations?.get(names::annotations::STATE)?).ok()
    }

    /// Writes the mirror among annotations, unless they have one of a later term. All others stay.
    pub fn write(&self, annotations: &mut BTreeMap<String, String>) {
        if Self::of(Some(annotations)).is_some_and(|there| there.epoch > self.epoch) {
            return;
        }
        let text = serde_json::json!(self).to_string();
        annotations.insert(names::annotations::STATE.to_owned(), text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mirror(epoch: u64) -> Mirror {
        Mirror { provider: "simulated".to_owned(), cloud_identity: "here".to_owned(), epoch }
    }

    #[test]
    fn a_mirror_survives_the_way_to_an_annotation_and_back_beside_others() {
        let mut annotations = BTreeMap::from([("theirs".to_owned(), "1".to_owned())]);
        mirror(3).write(&mut annotations);
        assert_eq!(Mirror::of(Some(&annotations)), Some(mirror(3)));
        assert_eq!(annotations["theirs"], "1");
    }

    #[test]
    fn a_later_terms_mirror_stays_and_what_is_none_is_replaced() {
        let mut annotations = BTreeMap::new();
        mirror(3).write(&mut annotations);
        mirror(2).write(&mut annotations);
        assert_eq!(Mirror::of(Some(&annotations)), Some(mirror(3)));
        annotations.insert(names::annotations::STATE.to_owned(), "{]".to_owned());
        assert_eq!(Mirror::of(Some(&annotations)), None);
        mirror(2).write(&mut annotations);
        assert_eq!(Mirror::of(Some(&annotations)), Some(mirror(2)));
        assert_eq!(Mirror::of(None), None);
    }
}
