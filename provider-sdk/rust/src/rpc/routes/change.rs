//! One change of a route, and how it is handed to the provider: alone, or together with others of its batch.
use crate::context::CallContext;
use crate::error::ProviderError;
use crate::parts::RoutesPart;
use crate::provider::{Progress, Result};
use crate::routes::{NewRoute, RouteOutcome};

/// What tells one change of a route from another.
#[derive(Clone, PartialEq)]
pub(super) struct Change {
    pub(super) verb: Verb,
    pub(super) epoch: u64,
    pub(super) new: NewRoute,
}

#[derive(Clone, Copy, PartialEq)]
pub(super) enum Verb {
    Create,
    Delete,
}

/// What a change that has ended came to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Made {
    AsRequested,
    TargetNotFound,
}

impl Verb {
    pub(super) const fn method(self) -> &'static str {
        match self {
            Self::Create => "CreateRoutes",
            Self::Delete => "DeleteRoutes",
        }
    }
}

impl Change {
    /// The thing that is changed.
    pub(super) fn key(&self) -> String {
        format!("route/{}", self.new.route.destination_cidr)
    }
}

/// Makes one change.
pub(super) async fn alone(part: &RoutesPart, ctx: &CallContext, change: Change) -> Result<Progress<Made>> {
    let Change { verb, new, .. } = change;
    match (part, verb) {
        (RoutesPart::Single(part), Verb::Create) => progress(verb, part.create(ctx, &new).await?),
        (RoutesPart::Single(part), Verb::Delete) => progress(verb, part.delete(ctx, &new.route).await?),
        (RoutesPart::Batches(_), _) => {
            let one = Change { verb, epoch: ctx.epoch().unwrap_or_default(), new };
            let mut results = together(part, ctx, verb, vec![one]).await?;
            results.pop().unwrap_or_else(|| Err(ProviderError::internal("the provider answered 0 of 1 items")))
        }
    }
}

/// Makes several changes in one call of the provider, which takes batches.
pub(super) async fn together(
    part: &RoutesPart,
    ctx: &CallContext,
    verb: Verb,
    changes: Vec<Change>,
) -> Result<Vec<Result<Progress<Made>>>> {
    let RoutesPart::Batches(part) = part else { return Err(ProviderError::internal("this provider takes no batches")) };
    let new: Vec<_> = changes.into_iter().map(|change| change.new).collect();
    let results = match verb {
        Verb::Create => part.create_batch(ctx, &new).await?,
        Verb::Delete => {
            let routes: Vec<_> = new.into_iter().map(|new| new.route).collect();
            part.delete_batch(ctx, &routes).await?
        }
    };
    Ok(results.into_iter().map(|result| result.and_then(|outcome| progress(verb, outcome))).collect())
}

fn progress(verb: Verb, outcome: RouteOutcome) -> Result<Progress<Made>> {
    match outcome {
        RouteOutcome::Done => Ok(Progress::Done(Made::AsRequested)),
        RouteOutcome::InProgress(progress) => Ok(Progress::InProgress(progress)),
        RouteOutcome::TargetNotFound if verb == Verb::Create => Ok(Progress::Done(Made::TargetNotFound)),
        RouteOutcome::TargetNotFound => {
            Err(ProviderError::internal("the provider answered a deletion with \"target not found\", which it never may"))
        }
    }
}
