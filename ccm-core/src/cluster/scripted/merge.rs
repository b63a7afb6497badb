//! Kubernetes' strategic merge, as far as this crate's patches need it. tests/e2e holds the same patches against a real server.
use serde_json::{Value, json};

const REMOVE: &str = "$deleteFromPrimitiveList/";

/// Merges what a patch has under a key into an object.
pub fn merge(object: &mut Value, key: &str, patch: &Value) {
    if let Some(list) = key.strip_prefix(REMOVE) {
        return take_out(&mut object[list], patch);
    }
    match (key, patch) {
        (_, Value::Null) => drop(object.as_object_mut().and_then(|object| object.remove(key))),
        ("finalizers", Value::Array(items)) => put_in(list(&mut object[key]), items),
        ("conditions", Value::Array(items)) => items.iter().for_each(|item| by_type(list(&mut object[key]), item)),
        (_, Value::Array(items)) => {
            object[key] = items.iter().filter(|item| item["$patch"].is_null()).cloned().collect();
        }
        (_, Value::Object(fields)) => {
            if patch["$patch"] == "replace" || !object[key].is_object() {
                object[key] = json!({});
            }
            let fields = fields.iter().filter(|(field, _)| *field != "$patch");
            fields.for_each(|(field, value)| merge(&mut object[key], field, value));
        }
        _ => object[key].clone_from(patch),
    }
}

fn list(value: &mut Value) -> &mut Vec<Value> {
    if value.is_null() {
        *value = json!([]);
    }
    value.as_array_mut().unwrap()
}

/// The patch's items come first.
fn put_in(list: &mut Vec<Value>, items: &[Value]) {
    list.retain(|item| !items.contains(item));
    list.splice(..0, items.iter().cloned());
}

fn take_out(from: &mut Value, items: &Value) {
    list(from).retain(|item| !items.as_array().unwrap().contains(item));
}

/// The merge key of conditions is their type.
fn by_type(list: &mut Vec<Value>, item: &Value) {
    let found = list.iter().position(|old| old["type"] == item["type"]);
    match found {
        Some(index) if item["$patch"] == "delete" => drop(list.remove(index)),
        Some(index) => item.as_object().unwrap().iter().for_each(|(field, value)| merge(&mut list[index], field, value)),
        None if item["$patch"] == "delete" => {}
        None => list.push(item.clone()),
    }
}
