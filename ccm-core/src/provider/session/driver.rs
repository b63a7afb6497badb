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
use crate::provider::{Judge, ProviderState, Verdict};

/// The first pause between attempts to connect, and the longest; dialling a socket costs next to nothing.
const REDIAL: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(2));
/// How often a provider that may not be used is asked again: the operator may have accepted it by now.
const REJUDGE: Duration = Duration::from_secs(5);
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
    board: Board,
    confirmations: mpsc::Receiver<Confirmation>,
    waiting: Vec<Confirmation>,
}

impl Driver {
    pub fn new(
        config: SessionConfig,
        shared: Shared,
        judge: Arc<dyn Judge>,
        board: Board,
        confirmations: mpsc::Receiver<Confirmation>,
    ) -> Self {
        Self { config, shared, judge, board, confirmations, waiting: Vec::new() }
    }

    pub async fn run(mut self) {
        let mut backoff = Backoff::new(REDIAL.0, REDIAL.1);
        loop {
            let started = Instant::now();
            let problem = match Connection::dial(&self.config.endpoint, self.shared.clone()).await {
                Ok(connection) => self.serve(&connection).await,
                Err(problem) => problem.to_string(),
            };
            self.board.disconnected(problem);
            self.answer();
            if started.elapsed() >= LASTING {
                backoff.reset();
            }
            self.rest(backoff.delay()).await;
        }
    }

    /// Stays with one connection until it is of no more use; answers why.
    async fn serve(&mut self, connection: &Connection) -> String {
        loop {
            let asked = Instant::now();
            if let Err(lost) = self.handshake(connection).await {
                return lost;
            }
            self.answer();
            tokio::select! {
                () = connection.closed() => return format!("the provider closed the connection at {}", self.config.endpoint),
                () = self.reason_to_ask(asked) => {}
            }
        }
    }

    async fn handshake(&self, connection: &Connection) -> Result<(), String> {
        match shake(connection, &self.config).await {
            Ok(info) => tokio::select! {
                () = connection.closed() => return Err("the provider closed the connection after the handshake".to_owned()),
                verdict = timeout(VERDICT, self.judge.judge(&info)) => {
                    let late = || Err(Verdict::Later("whether the provider is the accepted one could not be found out in time".to_owned()));
                    self.publish(connection, info, verdict.unwrap_or_else(|_| late()));
                }
            },
            Err(Failure::Unusable(message)) => self.board.refuse(ProviderState::Unusable { message }),
            Err(Failure::Lost(message)) => return Err(message),
        }
        Ok(())
    }

    fn publish(&self, connection: &Connection, info: ProviderInfo, verdict: Result<(), Verdict>) {
        match verdict {
            Ok(()) => self.board.ready(connection, info),
            Err(Verdict::Unusable(message)) => self.board.refuse(ProviderState::Unusable { message }),
            Err(Verdict::IdentityChanged { accepted }) => {
                self.board.refuse(ProviderState::IdentityChanged { accepted, found: Arc::new(info) });
            }
            Err(Verdict::Later(message)) if self.board.knows(&info) => {
                tracing::debug!(message, "the provider keeps its standing");
            }
            Err(Verdict::Later(message)) => self.board.disconnected(message),
        }
    }

    /// Waits until there is a reason for another handshake on this connection.
    async fn reason_to_ask(&mut self, asked: Instant) {
        let ready = self.board.confirmation().is_ok();
        let usual = if ready { self.config.handshake_interval } else { REJUDGE.min(self.config.handshake_interval) };
        let doubt = async {
            self.shared.doubt.notified().await;
            tokio::time::sleep_until(asked + DOUBT).await;
        };
        tokio::select! {
            Some(confirmation) = self.confirmations.recv() => self.waiting.push(confirmation),
            () = sleep(usual.mul_f64(rand::random_range(0.8..1.2))) => {}
            () = doubt => {}
        }
        while let Ok(confirmation) = self.confirmations.try_recv() {
            self.waiting.push(confirmation);
        }
    }

    /// Tells all who asked for the handshake that has just ended.
    fn answer(&mut self) {
        for confirmation in self.waiting.drain(..) {
            drop(confirmation.send(self.board.confirmation()));
        }
    }

    /// Waits before the next attempt to connect; who asks meanwhile learns at once that there is no provider.
    async fn rest(&mut self, delay: Duration) {
        let over = sleep(delay);
        tokio::pin!(over);
        loop {
            tokio::select! {
                () = &mut over => return,
                Some(confirmation) = self.confirmations.recv() => {
                    drop(confirmation.send(self.board.confirmation()));
                }
            }
        }
    }
}
