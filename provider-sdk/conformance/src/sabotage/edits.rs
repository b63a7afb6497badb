//! Typed edits of what crosses the proxy as bytes. They know the messages, and no rule.
use std::time::Duration;

use bytes::Bytes;
use prost::Message;
use tonic::{Code, Status};

use super::Edits;
use crate::rpc::Rpc;

/// Changes the answers of one method.
pub fn answer<R: Rpc>(edit: impl Fn(&R, &mut R::Answer) + Send + Sync + 'static) -> Edits {
    let edit = move |path: &str, request: &Bytes, answer: Result<Bytes, Status>| match answer {
        Ok(bytes) if path == R::PATH => {
            let mut answer = decoded::<R::Answer>(&bytes);
            edit(&decoded(request), &mut answer);
            Ok(answer.encode_to_vec().into())
        }
        other => other,
    };
    Edits { answer: Some(Box::new(edit)), ..Edits::default() }
}

/// Changes the requests of one method before the provider sees them.
pub fn request<R: Rpc>(edit: impl Fn(&mut R) + Send + Sync + 'static) -> Edits {
    let edit = move |path: &str, bytes: Bytes| {
        if path != R::PATH {
            return bytes;
        }
        let mut request = decoded::<R>(&bytes);
        edit(&mut request);
        request.encode_to_vec().into()
    };
    Edits { request: Some(Box::new(edit)), ..Edits::default() }
}

/// Answers a call of one method without the provider, where there is an answer.
pub fn instead<R: Rpc>(edit: impl Fn(&R) -> Option<Result<R::Answer, Status>> + Send + Sync + 'static) -> Edits {
    let edit = move |path: &str, request: &Bytes| {
        let answer = if path == R::PATH { edit(&decoded(request)) } else { None };
        answer.map(|answer| answer.map(|answer| answer.encode_to_vec().into()))
    };
    Edits { instead: Some(Box::new(edit)), ..Edits::default() }
}

/// Changes the statuses of every method.
pub fn status(edit: impl Fn(&str, Status) -> Status + Send + Sync + 'static) -> Edits {
    let edit = move |path: &str, _: &Bytes, answer: Result<Bytes, Status>| answer.map_err(|status| edit(path, status));
    Edits { answer: Some(Box::new(edit)), ..Edits::default() }
}

/// Answers one method's refusals with this code by a success, where there is one for the request.
pub fn forgive<R: Rpc>(code: Code, success: impl Fn(&R) -> Option<R::Answer> + Send + Sync + 'static) -> Edits {
    let edit = move |path: &str, request: &Bytes, answer: Result<Bytes, Status>| match answer {
        Err(status) if path == R::PATH && status.code() == code => {
            success(&decoded(request)).map(|success| success.encode_to_vec().into()).ok_or(status)
        }
        other => other,
    };
    Edits { answer: Some(Box::new(edit)), ..Edits::default() }
}

/// Makes one method slow, from its second call on: a run begins with a handshake.
pub fn delay(method: &'static str, delay: Duration) -> Edits {
    Edits { delay: Some((method, delay)), ..Edits::default() }
}

/// What is no message is an empty one: the proxy passes on what it was made for.
fn decoded<M: Message + Default>(bytes: &Bytes) -> M {
    M::decode(bytes.clone()).unwrap_or_default()
}
