//! What waits to be looked up: three lanes, one entry per distinct query. It knows no clock and calls nobody.
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use tokio::time::Instant;

use super::Reply;
use crate::model::instance::{Answer, NodeQuery};
use crate::provider::{Priority, ProviderError};

/// The lanes, the most urgent first.
const LANES: [Priority; 3] = [Priority::Initialize, Priority::Lifecycle, Priority::Refresh];
/// After so many from the most urgent lane one from a lower lane goes, so that none starves.
const STREAK: u32 = 9;

/// A query and all who wait for its answer.
#[derive(Debug)]
pub struct Item {
    /// What to ask.
    pub query: Arc<NodeQuery>,
    arrived: Instant,
    waiting: Vec<Reply>,
}

impl Item {
    /// Tells all who wait.
    pub fn answer(self, answer: &Result<Answer, ProviderError>) {
        for reply in self.waiting {
            // Who no longer waits needs no answer.
            drop(reply.send(answer.clone()));
        }
    }

    fn is_abandoned(&self) -> bool {
        self.waiting.iter().all(Reply::is_closed)
    }
}

/// The lanes.
#[derive(Debug, Default)]
pub struct Queue {
    lanes: [BTreeMap<u64, Item>; LANES.len()],
    /// Where the queries for a node wait: lane and number.
    by_name: HashMap<String, Vec<(usize, u64)>>,
    next: u64,
    streak: u32,
}

impl Queue {
    /// Adds a look-up. One with an equal query that waits already takes it in, and the higher priority counts for both.
    pub fn push(&mut self, query: NodeQuery, priority: Priority, reply: Reply, now: Instant) {
        let lane = priority as usize;
        let places = self.by_name.entry(query.node_name.clone()).or_default();
        let lanes = &mut self.lanes;
        let equal = places.iter_mut().find(|(lane, number)| lanes[*lane].get(number).is_some_and(|it| *it.query == query));
        if let Some(place) = equal {
            let (old, number) = *place;
            if let Some(mut item) = lanes[old].remove(&number) {
                item.waiting.push(reply);
                place.0 = old.min(lane);
                lanes[place.0].insert(number, item);
            }
            return;
        }
        places.push((lane, self.next));
        lanes[lane].insert(self.next, Item { query: Arc::new(query), arrived: now, waiting: vec![reply] });
        self.next += 1;
    }

    /// How many distinct queries wait.
    pub fn len(&self) -> usize {
        self.lanes.iter().map(BTreeMap::len).sum()
    }

    /// Whether none waits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// When the oldest of each lane came.
    pub fn oldest(&self) -> impl Iterator<Item = (Priority, Instant)> {
        let first = |(lane, items): (Priority, &BTreeMap<u64, Item>)| Some((lane, items.values().next()?.arrived));
        LANES.into_iter().zip(&self.lanes).filter_map(first)
    }

    /// Takes up to `max` for one batch: by lane, then by age; never two for one node.
    pub fn take(&mut self, max: usize) -> Vec<Item> {
        let (mut taken, mut names, mut aside) = (Vec::new(), HashSet::new(), Vec::new());
        while taken.len() < max {
            let Some((lane, number, item)) = self.pop() else { break };
            if item.is_abandoned() {
                continue;
            }
            if names.insert(item.query.node_name.clone()) { taken.push(item) } else { aside.push((lane, number, item)) }
        }
        for (lane, number, item) in aside {
            self.by_name.entry(item.query.node_name.clone()).or_default().push((lane, number));
            self.lanes[lane].insert(number, item);
        }
        taken
    }

    /// Answers all with one error.
    pub fn fail_all(&mut self, error: &ProviderError) {
        let failed = Err(error.clone());
        while let Some((_, _, item)) = self.pop() {
            item.answer(&failed);
        }
    }

    fn pop(&mut self) -> Option<(usize, u64, Item)> {
        let top = self.lanes.iter().position(|lane| !lane.is_empty())?;
        let lane = match self.oldest_below(top) {
            Some(lower) if self.streak >= STREAK => {
                self.streak = 0;
                lower
            }
            Some(_) => {
                self.streak += 1;
                top
            }
            None => top,
        };
        let (number, item) = self.lanes[lane].pop_first()?;
        self.forget(&item.query.node_name, number);
        Some((lane, number, item))
    }

    fn oldest_below(&self, top: usize) -> Option<usize> {
        let first = |lane: &usize| self.lanes[*lane].keys().next().copied();
        (top + 1..LANES.len()).filter(|lane| first(lane).is_some()).min_by_key(first)
    }

    fn forget(&mut self, name: &str, number: u64) {
        if let Some(places) = self.by_name.get_mut(name) {
            places.retain(|(_, it)| *it != number);
            if places.is_empty() {
                self.by_name.remove(name);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::oneshot;

    use super::*;

    type Answers = Vec<oneshot::Receiver<Result<Answer, ProviderError>>>;

    fn push(queue: &mut Queue, answers: &mut Answers, name: &str, id: Option<&str>, priority: Priority) {
        let (reply, answer) = oneshot::channel();
        answers.push(answer);
        let query = NodeQuery { node_name: name.to_owned(), provider_id: id.map(str::to_owned), ..NodeQuery::default() };
        queue.push(query, priority, reply, Instant::now());
    }

    fn names(items: &[Item]) -> Vec<&str> {
        items.iter().map(|it| it.query.node_name.as_str()).collect()
    }

    #[test]
    fn urgent_lanes_go_first_and_lower_ones_fill_the_rest() {
        let (mut queue, mut answers) = (Queue::default(), Answers::new());
        for (name, priority) in
            [("r", Priority::Refresh), ("l", Priority::Lifecycle), ("i", Priority::Initialize), ("r2", Priority::Refresh)]
        {
            push(&mut queue, &mut answers, name, None, priority);
        }
        assert_eq!(names(&queue.take(3)), ["i", "l", "r"]);
        assert_eq!(names(&queue.take(3)), ["r2"]);
        assert!(queue.is_empty() && queue.by_name.is_empty());
    }

    #[test]
    fn no_lane_starves_whatever_the_size_of_a_batch() {
        let (mut queue, mut answers) = (Queue::default(), Answers::new());
        push(&mut queue, &mut answers, "refresh", None, Priority::Refresh);
        (0..50).for_each(|n| push(&mut queue, &mut answers, &format!("node-{n}"), None, Priority::Initialize));
        let order: Vec<_> = (0..51).flat_map(|_| queue.take(1)).collect();
        assert_eq!(names(&order).iter().position(|it| *it == "refresh"), Some(9));
    }

    #[test]
    fn equal_queries_share_one_place_with_the_higher_priority() {
        let (mut queue, mut answers) = (Queue::default(), Answers::new());
        push(&mut queue, &mut answers, "other", None, Priority::Lifecycle);
        push(&mut queue, &mut answers, "a", None, Priority::Refresh);
        push(&mut queue, &mut answers, "a", None, Priority::Initialize);
        push(&mut queue, &mut answers, "a", None, Priority::Refresh);
        let items = queue.take(10);
        assert_eq!((names(&items), items[0].waiting.len()), (vec!["a", "other"], 3));
    }

    #[test]
    fn different_queries_for_one_node_go_in_different_batches() {
        let (mut queue, mut answers) = (Queue::default(), Answers::new());
        push(&mut queue, &mut answers, "a", None, Priority::Initialize);
        push(&mut queue, &mut answers, "a", Some("simulated://a"), Priority::Lifecycle);
        push(&mut queue, &mut answers, "b", None, Priority::Refresh);
        assert_eq!(names(&queue.take(10)), ["a", "b"]);
        push(&mut queue, &mut answers, "a", Some("simulated://a"), Priority::Lifecycle);
        let rest = queue.take(10);
        assert_eq!((names(&rest), rest[0].waiting.len()), (vec!["a"], 2), "what was set aside is still found");
    }

    #[test]
    fn nobody_asks_for_what_nobody_awaits() {
        let (mut queue, mut answers) = (Queue::default(), Answers::new());
        push(&mut queue, &mut answers, "a", None, Priority::Initialize);
        answers.clear();
        assert!(queue.take(10).is_empty() && queue.is_empty());
    }
}
