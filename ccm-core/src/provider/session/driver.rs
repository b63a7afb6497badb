//! The loop of a session: dial, shake hands, judge, wait for a reason to do it again.
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, timeout};

use super::board::Board;
use super::handshake::{Failure, shake};
use super::{Confirmation, SessionConfig};
use crate::model::provider_info::ProviderInfo;
use crate::provider::backoff::Backoff;
use crate::provider::grpc::{Connection, Shared};
use crate::provider::{Judge, ProviderError, ProviderState, Verdict};

/// The first pause between attempts to connect, and the longest; dialling a socket costs next to nothing.
const REDIAL: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(2));
/// How often a provider that may not be used is asked again: the operator may have accepted it by now.
const REJUDGE: Duration = Duration::from_secs(5);
/// After a handshake that confirmed nothing the next one begins within this range, at random.
const AGAIN: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(5));
/// How long a verdict may take.
const VERDICT: Duration = Duration::from_secs(10);
/// No two handshakes follow one another faster because of failing calls.
const DOUBT: Duration = Duration::from_secs(1);
/// A connection that lasted so long was a good one: the next is dialled without delay.
const LASTING: Duration = Duration::from_secs(1);

pub struct Driver {
    config: SessionConfig,
    shared: Shared,
    judge: Arc<dyn Judge>,
    board: Arc<Board>,
    confirmations: mpsc::Receiver<Confirmation>,
    waiting: Vec<Confirmation>,
}

/// What a handshake says to those who asked for it.
type Answer = Result<Arc<ProviderInfo>, ProviderError>;

/// What one handshake gave. Nothing that was known before it counts.
enum Shaken {
    /// The provider answered and was judged.
    Judged(Answer),
    /// The provider answered, and the verdict on a provider that was judged before is not known now.
    Unjudged(String),
    /// The provider did not answer, or refused to for now.
    Missed(String),
}

impl Driver {
    pub fn new(
        config: SessionConfig,
        shared: Shared,
        judge: Arc<dyn Judge>,
        board: Arc<Board>,
        confirmations: mpsc::Receiver<Confirmation>,
    ) -> Self {
        Self { config, shared, judge, board, confirmations, waiting: Vec::new() }
    }

    pub async fn run(mut self) {
        let mut backoff = Backoff::new(REDIAL.0, REDIAL.1);
        loop {
            let started = Instant::now();
            let dialled = Connection::dial(&self.config.endpoint, &self.config.peer_uids, self.shared.clone()).await;
            let problem = match dialled {
                Ok(connection) => self.serve(&connection).await,
                Err(problem) => problem.to_string(),
            };
            let gone = Err(self.board.disconnected(problem));
            self.answer(&gone);
            if started.elapsed() >= LASTING {
                backoff.reset();
            }
            self.rest(backoff.delay(), &gone).await;
        }
    }

    /// Stays with one connection until it is of no more use; answers why.
    async fn serve(&mut self, connection: &Connection) -> String {
        let (mut unanswered, limit) = (None, self.config.deadlines.silence);
        loop {
            let asked = Instant::now();
            let shaken = tokio::select! {
                shaken = self.handshake(connection) => shaken,
                () = silence(connection, unanswered, limit) => Err(self.silent()),
            };
            let shaken = match shaken {
                Err(lost) => return lost,
                // No call depends on this connection, and a new one may reach another process.
                Ok(Shaken::Missed(why)) if !self.board.is_live() => return why,
                Ok(shaken) => shaken,
            };
            unanswered = unanswered.or(Some(asked)).filter(|_| matches!(shaken, Shaken::Missed(_)));
            let (answer, pause) = self.settle(shaken);
            self.answer(&answer);
            tokio::select! {
                () = connection.closed() => return self.closed(),
                () = silence(connection, unanswered, limit) => return self.silent(),
                () = self.reason_to_ask(asked, pause) => {}
            }
        }
    }

    /// One handshake and the verdict on it; an error where the connection ended meanwhile.
    async fn handshake(&self, connection: &Connection) -> Result<Shaken, String> {
        match shake(connection, &self.config).await {
            Ok(info) => tokio::select! {
                () = connection.closed() => Err(self.closed()),
                verdict = timeout(VERDICT, self.judge.judge(&info)) => {
                    let late = || Err(Verdict::Later("whether the provider is the accepted one could not be found out in time".to_owned()));
                    Ok(self.publish(connection, info, verdict.unwrap_or_else(|_| late())))
                }
            },
            Err(Failure::Unusable(message)) => Ok(Shaken::Judged(Err(self.board.refuse(ProviderState::Unusable { message })))),
            Err(Failure::Missed(message)) => Ok(Shaken::Missed(message)),
        }
    }

    fn publish(&self, connection: &Connection, info: ProviderInfo, verdict: Result<(), Verdict>) -> Shaken {
        Shaken::Judged(match verdict {
            Ok(()) => Ok(self.board.ready(connection, info)),
            Err(Verdict::Unusable(message)) => Err(self.board.refuse(ProviderState::Unusable { message })),
            Err(Verdict::IdentityChanged { accepted }) => {
                Err(self.board.refuse(ProviderState::IdentityChanged { accepted, found: Arc::new(info) }))
            }
            Err(Verdict::Later(message)) if self.board.knows(&info) => return Shaken::Unjudged(message),
            Err(Verdict::Later(message)) => Err(self.board.disconnected(message)),
        })
    }

    /// What those are told who asked for this handshake, and when the next one is due by itself.
    fn settle(&self, shaken: Shaken) -> (Answer, Duration) {
        let usual = self.config.handshake_interval;
        match shaken {
            Shaken::Judged(answer) if answer.is_ok() => (answer, usual.mul_f64(rand::random_range(0.8..1.2))),
            Shaken::Judged(answer) => (answer, REJUDGE.min(usual).mul_f64(rand::random_range(0.8..1.2))),
            Shaken::Unjudged(why) | Shaken::Missed(why) => {
                (Err(self.board.missed(why)), rand::random_range(AGAIN.0..AGAIN.1).min(usual))
            }
        }
    }

    fn silent(&self) -> String {
        let (endpoint, limit) = (&self.config.endpoint, humantime::format_duration(self.config.deadlines.silence));
        format!("the provider at {endpoint} answered nothing for {limit}: look whether it hangs, and restart it if so")
    }

    fn closed(&self) -> String {
        format!("the provider closed the connection at {}", self.config.endpoint)
    }

    /// Waits until there is a reason for another handshake on this connection: at the latest `pause` from now.
    async fn reason_to_ask(&mut self, asked: Instant, pause: Duration) {
        let doubt = async {
            self.shared.doubt.notified().await;
            tokio::time::sleep_until(asked + DOUBT).await;
        };
        tokio::select! {
            Some(confirmation) = self.confirmations.recv() => self.waiting.push(confirmation),
            () = sleep(pause) => {}
            () = doubt => {}
        }
        while let Ok(confirmation) = self.confirmations.try_recv() {
            self.waiting.push(confirmation);
        }
    }

    /// Tells all who asked for the handshake that has just ended what it gave. Who asked while it ran waits for the next.
    fn answer(&mut self, answer: &Answer) {
        for confirmation in self.waiting.drain(..) {
            drop(confirmation.send(answer.clone()));
        }
    }

    /// Waits before the next attempt to connect; who asks meanwhile learns at once that there is no provider.
    async fn rest(&mut self, delay: Duration, gone: &Answer) {
        let over = sleep(delay);
        tokio::pin!(over);
        loop {
            tokio::select! {
                () = &mut over => return,
                Some(confirmation) = self.confirmations.recv() => drop(confirmation.send(gone.clone())),
            }
        }
    }
}

/// Returns when nothing was answered on the connection for `limit`; never while its handshakes are answered. `unanswered` is
/// when the first of those began that were not.
async fn silence(connection: &Connection, unanswered: Option<Instant>, limit: Duration) {
    match unanswered {
        Some(since) => connection.silent(since, limit).await,
        None => std::future::pending().await,
    }
}
