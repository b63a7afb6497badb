//! Answers of the API server, each parsed once, straight from its text into what is asked for.
use std::pin::Pin;

use futures::io::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt};
use http::Request;
use kube::core::WatchEvent;
use kube::core::request::Error as RequestError;
use kube::{Client, Error};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::wire::{Bare, Page};

/// An object of an answer.
#[derive(Debug)]
pub enum Item<T> {
    /// As it was asked for.
    Readable(T),
    /// One whose other fields have a shape that is not known here, and what is wrong.
    Unreadable(Bare, String),
}

/// The answer to a request that concerns one object.
pub async fn object<T: DeserializeOwned>(client: &Client, request: Result<Request<Vec<u8>>, RequestError>) -> Result<T, Error> {
    serde_json::from_slice(&text(client, request).await?).map_err(Error::SerdeError)
}

/// The answer to a list.
pub async fn page<T: DeserializeOwned>(
    client: &Client,
    request: Result<Request<Vec<u8>>, RequestError>,
) -> Result<Page<Item<T>>, Error> {
    parse_page(&text(client, request).await?).map_err(Error::SerdeError)
}

/// The answer to a watch.
pub async fn lines(client: &Client, request: Result<Request<Vec<u8>>, RequestError>) -> Result<Lines, Error> {
    let body = client.request_stream(request.map_err(Error::BuildRequest)?).await?;
    Ok(Lines { body: Box::pin(body), line: Vec::new() })
}

async fn text(client: &Client, request: Result<Request<Vec<u8>>, RequestError>) -> Result<Vec<u8>, Error> {
    let mut body = Box::pin(client.request_stream(request.map_err(Error::BuildRequest)?).await?);
    let mut text = Vec::new();
    body.read_to_end(&mut text).await.map_err(Error::ReadEvents)?;
    Ok(text)
}

/// The lines of a watch.
pub struct Lines {
    body: Pin<Box<dyn AsyncBufRead + Send>>,
    /// Used for one after the other.
    line: Vec<u8>,
}

impl Lines {
    /// The next event; nothing at the end, also where that is in the middle of a line.
    pub async fn next<T: DeserializeOwned>(&mut self) -> Result<Option<WatchEvent<Item<T>>>, Error> {
        self.line.clear();
        self.body.read_until(b'\n', &mut self.line).await.map_err(Error::ReadEvents)?;
        match parse_event(&self.line) {
            Ok(event) => Ok(Some(event)),
            Err(error) if error.is_eof() && !self.line.ends_with(b"\n") => Ok(None),
            Err(error) => Err(Error::SerdeError(error)),
        }
    }
}

/// Only where it fails is it tried again with less.
fn parse_event<T: DeserializeOwned>(line: &[u8]) -> Result<WatchEvent<Item<T>>, serde_json::Error> {
    match serde_json::from_slice(line) {
        Ok(event) => Ok(map(event, Item::Readable)),
        Err(error) => match serde_json::from_slice(line) {
            Ok(event) => Ok(map(event, |bare| Item::Unreadable(bare, error.to_string()))),
            Err(_) => Err(error),
        },
    }
}

fn map<T, U>(event: WatchEvent<T>, change: impl FnOnce(T) -> U) -> WatchEvent<U> {
    match event {
        WatchEvent::Added(object) => WatchEvent::Added(change(object)),
        WatchEvent::Modified(object) => WatchEvent::Modified(change(object)),
        WatchEvent::Deleted(object) => WatchEvent::Deleted(change(object)),
        WatchEvent::Bookmark(bookmark) => WatchEvent::Bookmark(bookmark),
        WatchEvent::Error(status) => WatchEvent::Error(status),
    }
}

/// Only where it fails is it tried again with less.
fn parse_page<T: DeserializeOwned>(text: &[u8]) -> Result<Page<Item<T>>, serde_json::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Either<T> {
        Readable(T),
        Unreadable(Bare),
    }
    match serde_json::from_slice::<Page<T>>(text) {
        Ok(page) => Ok(page.map(Item::Readable)),
        Err(error) => Ok(serde_json::from_slice::<Page<Either<T>>>(text)?.map(|either| match either {
            Either::Readable(object) => Item::Readable(object),
            Either::Unreadable(bare) => Item::Unreadable(bare, error.to_string()),
        })),
    }
}
