//! The mirror of the state on the lease: who writes it when, and what stays beside it.
use std::collections::BTreeMap;

use super::*;

fn mirror(epoch: u64) -> Mirror {
    Mirror { provider: "simulated".to_owned(), cloud_identity: "here".to_owned(), epoch }
}

impl Contender {
    /// Until the lease carries this by what the elector says.
    async fn carries(&mut self, mirror: &Mirror) {
        let carries = |leading: &Option<Leading>| leading.as_ref().is_some_and(|it| it.mirror.as_ref() == Some(mirror));
        within(self.leading.wait_for(carries)).await.unwrap();
    }
}

fn carried(server: &ApiServer) -> Option<Mirror> {
    Mirror::of(Some(&server.annotations()))
}

#[tokio::test(start_paused = true)]
async fn a_mirror_is_written_at_once_and_kept_by_every_renewal_beside_what_others_wrote() {
    let server = ApiServer::default();
    let mut baz = Contender::start(&server, "baz");
    assert_eq!(baz.leads().await.mirror, None);
    let sent = now();
    baz.mirror.send_replace(Some(mirror(3)));
    baz.carries(&mirror(3)).await;
    assert_eq!((now() - sent, carried(&server)), (Duration::ZERO, Some(mirror(3))));
    for damage in [BTreeMap::new(), BTreeMap::from([("theirs".to_owned(), "1".to_owned())])] {
        server.annotate(damage.clone());
        baz.renews().await;
        assert_eq!(carried(&server), Some(mirror(3)), "after {damage:?}");
        assert!(damage.keys().all(|key| server.annotations().contains_key(key)));
    }
    server.delete();
    while server.holder().is_empty() {
        baz.renews().await;
    }
    assert_eq!(carried(&server), Some(mirror(3)), "on a lease that was made anew");
}

#[tokio::test(start_paused = true)]
async fn the_next_leader_sees_the_mirror_and_writes_none_of_its_own_before_it_has_one() {
    let server = ApiServer::default();
    let mut baz = Contender::start(&server, "baz");
    baz.leads().await;
    baz.mirror.send_replace(Some(mirror(3)));
    baz.carries(&mirror(3)).await;
    baz.ends().await.unwrap();
    let mut qux = Contender::start(&server, "qux");
    assert_eq!(qux.leads().await.mirror, Some(mirror(3)));
    qux.renews().await;
    assert_eq!(carried(&server), Some(mirror(3)));
    qux.mirror.send_replace(Some(mirror(4)));
    qux.carries(&mirror(4)).await;
}

#[tokio::test(start_paused = true)]
async fn a_mirror_of_a_later_term_is_never_written_over() {
    let server = ApiServer::default();
    let mut baz = Contender::start(&server, "baz");
    baz.leads().await;
    baz.mirror.send_replace(Some(mirror(3)));
    baz.carries(&mirror(3)).await;
    let mut later = BTreeMap::new();
    mirror(7).write(&mut later);
    server.annotate(later);
    baz.carries(&mirror(7)).await;
    baz.renews().await;
    assert_eq!(carried(&server), Some(mirror(7)));
}
