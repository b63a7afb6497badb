//! Nodes are read while a Service wants a load balancer, and not otherwise.
use super::*;
use crate::cluster::nodes::Nodes;
use crate::controllers::service::targets::feed::TargetFeed;

fn feed(nodes: impl IntoIterator<Item = Node>) -> (TargetFeed, Nodes, Instant) {
    let nodes = Nodes::fixed(nodes);
    let mut feed = TargetFeed::new(nodes.clone());
    feed.provider_changed(Some(ProviderInfo::default().into()));
    (feed, nodes, Instant::now())
}

#[test]
fn no_node_is_read_while_no_service_wants_a_load_balancer() {
    let (mut feed, nodes, now) = feed([named("a", &[])]);
    nodes.show(named("b", &[]));
    feed.node_changed("b", now);
    assert_eq!((feed.due_at(), feed.refresh(now)), (None, false));
    assert_eq!(names(feed.present(now)), ["a", "b"], "the first one that does reads them all");
    feed.node_changed("b", now);
    assert_eq!(feed.due_at(), None, "nothing has changed since");
    nodes.hide("b");
    feed.node_changed("b", now);
    assert!(feed.due_at().is_some());
    feed.unwanted();
    assert_eq!((feed.due_at(), feed.refresh(now), feed.announce(now + Duration::from_secs(5))), (None, false, false));
    assert_eq!(names(feed.present(now)), ["a"]);
}

#[test]
fn what_was_given_before_targets_were_unwanted_is_compared_with_care_afterwards() {
    let (mut feed, nodes, now) = feed([named("a", &[]), named("b", &[])]);
    let had = feed.present(now).clone();
    feed.unwanted();
    nodes.show(named("b", &[going]));
    let present = feed.present(now);
    assert!(present.replace(&had), "whether a node came meanwhile is not known");
}

#[test]
fn another_provider_is_no_reason_to_give_the_same_targets_anew() {
    let (mut feed, _, now) = feed([named("a", &[])]);
    let had = feed.present(now).clone();
    feed.provider_changed(None);
    feed.provider_changed(Some(ProviderInfo { version: "2".into(), ..ProviderInfo::default() }.into()));
    assert!(!feed.present(now).replace(&had));
    assert!(!feed.announce(now + Duration::from_secs(5)));
}

#[test]
fn changes_are_announced_once_they_come_to_rest_and_only_if_targets_differ() {
    let (mut feed, nodes, now) = feed([named("a", &[])]);
    feed.present(now);
    nodes.show(named("b", &[]));
    feed.node_changed("b", now);
    assert!(!feed.announce(now), "they may go on");
    assert!(feed.refresh(now), "a Service that a user made does not wait for that");
    assert!(!feed.refresh(now));
    let later = now + Duration::from_secs(1);
    assert!(feed.announce(later) && !feed.announce(later));
    nodes.hide("b");
    feed.node_changed("b", later);
    nodes.show(named("b", &[]));
    feed.node_changed("b", later);
    assert!(!feed.announce(later + Duration::from_secs(1)), "they are what they were");
}

#[test]
fn nodes_are_gathered_until_they_come_to_rest_or_a_second_has_passed() {
    let ms = Duration::from_millis;
    let (mut feed, nodes, now) = feed([named("a", &[])]);
    feed.present(now);
    let join = |feed: &mut TargetFeed, number: u32, at| {
        nodes.show(named(&format!("n{number}"), &[]));
        feed.node_changed(&format!("n{number}"), at);
    };
    join(&mut feed, 0, now);
    assert_eq!(feed.due_at(), Some(now + ms(100)));
    join(&mut feed, 1, now + ms(60));
    assert!(!feed.announce(now + ms(159)) && feed.announce(now + ms(160)) && !feed.announce(now + ms(160)));
    let again = now + ms(5000);
    (0..30).for_each(|it| join(&mut feed, 10 + it, again + ms(50) * it));
    assert_eq!(feed.due_at(), Some(again + ms(1000)));
    assert!(feed.announce(again + ms(1000)));
}
