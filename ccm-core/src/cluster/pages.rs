//! Lists by pages, each the newest that there is: a list from the API server's cache would ignore the size of a page.
use kube::api::ListParams;
use kube::core::Request;
use kube::{Client, Error};
use serde::de::{DeserializeOwned, Error as _};

use super::answer::{self, Item};
use super::wire::Page;

/// How many objects are in one page.
const SIZE: u32 = 500;

/// A list that is read page by page.
pub struct Pages {
    client: Client,
    request: Request,
    only_metadata: bool,
    /// What the next page is asked for with; nothing after the last.
    next: Option<ListParams>,
}

impl Pages {
    /// The list at a path.
    pub fn new(client: &Client, path: &str) -> Self {
        let next = Some(ListParams::default().limit(SIZE));
        Self { client: client.clone(), request: Request::new(path), only_metadata: false, next }
    }

    /// The same list, of which the API server sends only the objects' metadata.
    pub fn of_metadata(client: &Client, path: &str) -> Self {
        Self { only_metadata: true, ..Self::new(client, path) }
    }

    /// The next page; nothing after the last.
    pub async fn next<T: DeserializeOwned>(&mut self) -> Result<Option<Page<Item<T>>>, Error> {
        let Some(params) = self.next.take() else { return Ok(None) };
        let request = if self.only_metadata { self.request.list_metadata(&params) } else { self.request.list(&params) };
        let page = answer::page(&self.client, request).await?;
        let token = page.metadata.next.as_ref().filter(|token| !token.is_empty());
        self.next = token.map(|token| params.continue_token(token));
        Ok(Some(page))
    }
}

/// What becomes of every object of a list, past every cache. An object that cannot be read is an error.
pub async fn all<W: DeserializeOwned, T>(client: &Client, path: &str, read: impl Fn(W) -> T) -> Result<Vec<T>, Error> {
    let (mut pages, mut all) = (Pages::new(client, path), Vec::new());
    while let Some(page) = pages.next().await? {
        for item in page.items.into_iter().flatten() {
            match item {
                Item::Readable(object) => all.push(read(object)),
                Item::Unreadable(bare, reason) => {
                    let message = format!("{path}: {}: {reason}", bare.key());
                    return Err(Error::SerdeError(serde_json::Error::custom(message)));
                }
            }
        }
    }
    Ok(all)
}
