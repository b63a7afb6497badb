//! What holds for every controller that works object by object: properties of random runs, and the rules one by one.
#![allow(clippy::unwrap_used)]
use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum P {
    High,
    Low,
    Paced,
}

/// Two priorities that share what is reserved for the second.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Pooled {
    First,
    Second,
    Mass,
}

impl Priority for Pooled {
    const ALL: &'static [Self] = &[Self::First, Self::Second, Self::Mass];

    fn pool(self) -> Self {
        if self == Self::First { Self::Second } else { self }
    }

    fn reserved(self, limit: usize, _waits: bool) -> usize {
        if self == Self::Second { limit / 4 } else { 0 }
    }
}

const PACE: Duration = Duration::from_millis(100);

impl Priority for P {
    const ALL: &'static [Self] = &[Self::High, Self::Low, Self::Paced];

    fn reserved(self, limit: usize, _waits: bool) -> usize {
        if self == Self::High && limit >= 2 { (limit / 4).max(1) } else { 0 }
    }

    fn pace(self) -> Option<Duration> {
        (self == Self::Paced).then_some(PACE)
    }
}

/// Objects that each need a number of pieces of work, and a scheduler that is asked to see to it.
struct Model {
    scheduler: Scheduler<P>,
    needs: BTreeMap<Key, (P, u32)>,
    rests: BTreeMap<Key, Instant>,
    running: Vec<Key>,
    limit: usize,
    now: Instant,
}

#[derive(Clone, Copy, Debug)]
enum Op {
    Need(u8, P),
    End(usize),
    RateLimited(usize),
    Rest(u8, u16),
    Pass(u16),
}

fn op() -> impl Strategy<Value = Op> {
    let priority = prop_oneof![Just(P::High), Just(P::Low), Just(P::Paced)];
    prop_oneof![
        4 => (0..12_u8, priority).prop_map(|(key, priority)| Op::Need(key, priority)),
        4 => any::<usize>().prop_map(Op::End),
        1 => any::<usize>().prop_map(Op::RateLimited),
        1 => (0..12_u8, 0..2000_u16).prop_map(|(key, millis)| Op::Rest(key, millis)),
        2 => (0..500_u16).prop_map(Op::Pass),
    ]
}

impl Model {
    fn new(limit: usize) -> Self {
        let (needs, rests, now) = (BTreeMap::new(), BTreeMap::new(), Instant::now());
        Self { scheduler: Scheduler::default(), needs, rests, running: Vec::new(), limit, now }
    }

    fn apply(&mut self, op: Op) {
        match op {
            Op::Need(key, priority) => {
                let key = Key::from(key.to_string());
                let need = self.needs.entry(Arc::clone(&key)).or_insert((priority, 0));
                *need = (priority, need.1 + 1);
                self.scheduler.name(key);
            }
            Op::End(which) => self.end(which, Answered::Yes),
            Op::RateLimited(which) => self.end(which, Answered::RateLimited(None)),
            Op::Rest(key, millis) => {
                let key = Key::from(key.to_string());
                self.rests.insert(Arc::clone(&key), self.now + Duration::from_millis(millis.into()));
                self.scheduler.name(key);
            }
            Op::Pass(millis) => self.now += Duration::from_millis(millis.into()),
        }
        self.turn();
    }

    fn end(&mut self, which: usize, answered: Answered) {
        if self.running.is_empty() {
            return;
        }
        let key = self.running.swap_remove(which % self.running.len());
        if answered == Answered::Yes {
            self.needs.get_mut(&key).unwrap().1 -= 1;
        }
        self.scheduler.finish(&key, answered, self.now);
    }

    fn due(&self, key: &Key) -> Option<Result<P, Instant>> {
        let (priority, _) = self.needs.get(key).filter(|(_, left)| *left > 0)?;
        Some(self.rests.get(key).filter(|at| **at > self.now).map_or(Ok(*priority), |at| Err(*at)))
    }

    fn settle(&mut self, key: &Key) {
        match self.due(key) {
            Some(Ok(priority)) => self.scheduler.queue(key, priority),
            Some(Err(at)) => self.scheduler.rest(key, at),
            None => self.scheduler.idle(key),
        }
    }

    /// One turn of the loop. What must never happen is checked where it would.
    fn turn(&mut self) {
        self.scheduler.wake(self.now);
        while let Some(key) = self.scheduler.take_named() {
            assert!(!self.running.contains(&key), "a key that is worked on is not looked at");
            self.settle(&key);
        }
        while let Some((key, priority)) = self.scheduler.next(self.limit, self.now) {
            assert!(self.scheduler.paused_until(self.now).is_none(), "nothing begins in a pause");
            if self.due(&key) != Some(Ok(priority)) {
                self.settle(&key);
                continue;
            }
            assert!(!self.running.contains(&key), "no key is worked on twice at a time");
            self.scheduler.begin(&key, priority, self.now);
            self.running.push(key);
        }
        assert!(self.running.len() <= self.limit, "no more run than may");
        assert_eq!(self.running.len(), self.scheduler.running_total());
    }

    /// Lets everything end. Time passes only as the scheduler asks for it.
    fn drain(&mut self) {
        for _ in 0..100_000 {
            if !self.running.is_empty() {
                self.end(0, Answered::Yes);
            } else if let Some(at) = self.scheduler.wake_at(self.now) {
                self.now = at;
            } else {
                return;
            }
            self.turn();
        }
    }
}

proptest! {
    #[test]
    fn no_key_is_worked_on_twice_at_a_time_and_nothing_is_lost(limit in 1..6_usize, ops in prop::collection::vec(op(), 0..200)) {
        let mut model = Model::new(limit);
        ops.into_iter().for_each(|op| model.apply(op));
        model.drain();
        prop_assert!(model.needs.values().all(|(_, left)| *left == 0), "left undone: {:?}", model.needs);
        prop_assert!(model.scheduler.entries.is_empty() && model.scheduler.timers.is_empty(), "an idle scheduler keeps nothing");
    }

    #[test]
    fn nobody_starves_whatever_comes_first(limit in 1..6_usize, crowd in 1..40_u32) {
        let mut model = Model::new(limit);
        model.apply(Op::Need(100, P::Low));
        for round in 0..200 {
            (0..crowd).for_each(|n| model.apply(Op::Need(u8::try_from(n % 90).unwrap(), P::High)));
            if model.needs[&Key::from("100")].1 == 0 {
                return Ok(());
            }
            model.end(round, Answered::Yes);
            model.turn();
        }
        prop_assert!(model.needs[&Key::from("100")].1 == 0, "the low one was never worked on");
    }
}

fn named(keys: &[(&str, P)]) -> Model {
    let mut model = Model::new(8);
    model.limit = 8;
    for (key, priority) in keys {
        model.needs.insert(Key::from(*key), (*priority, 1));
        model.scheduler.name(*key);
    }
    model
}

#[test]
fn urgent_work_begins_first_and_equally_urgent_work_in_the_order_of_its_naming() {
    let mut model = named(&[("c", P::Low), ("b", P::High), ("a", P::High)]);
    model.limit = 1;
    let mut order = Vec::new();
    for _ in 0..3 {
        model.turn();
        order.push(model.running[0].to_string());
        model.end(0, Answered::Yes);
    }
    assert_eq!(order, ["b", "a", "c"]);
}

#[test]
fn reserved_places_stay_free_for_those_whose_they_are() {
    let lows: Vec<_> = (0..10).map(|n| n.to_string()).collect();
    let mut model = named(&lows.iter().map(|key| (key.as_str(), P::Low)).collect::<Vec<_>>());
    model.turn();
    assert_eq!(model.running.len(), 6, "a quarter of 8 is kept");
    model.apply(Op::Need(50, P::High));
    assert_eq!(model.running.len(), 7);
}

#[test]
fn paced_work_is_one_at_a_time_with_a_pause_after_each_beginning() {
    let mut model = named(&[("a", P::Paced), ("b", P::Paced)]);
    model.turn();
    assert_eq!(model.running.len(), 1);
    model.end(0, Answered::Yes);
    model.turn();
    assert_eq!((model.running.len(), model.scheduler.wake_at(model.now)), (0, Some(model.now + PACE)));
    model.apply(Op::Pass(100));
    assert_eq!(model.running.len(), 1);
}

#[test]
fn one_call_probes_after_a_rate_limit_and_its_answer_lets_all_begin() {
    let keys: Vec<_> = (0..6).map(|n| n.to_string()).collect();
    let mut model = named(&keys.iter().map(|key| (key.as_str(), P::High)).collect::<Vec<_>>());
    model.turn();
    while !model.running.is_empty() {
        model.end(0, Answered::RateLimited(Some(Duration::from_secs(2))));
    }
    model.turn();
    assert_eq!((model.running.len(), model.scheduler.wake_at(model.now)), (0, Some(model.now + Duration::from_secs(2))));
    model.apply(Op::Pass(2000));
    assert_eq!(model.running.len(), 1);
    model.apply(Op::End(0));
    assert_eq!(model.running.len(), 5);
}

#[test]
fn calls_of_before_a_refusal_do_not_keep_the_probe_waiting() {
    let keys: Vec<_> = (0..6).map(|n| n.to_string()).collect();
    let mut model = named(&keys.iter().map(|key| (key.as_str(), P::High)).collect::<Vec<_>>());
    model.turn();
    model.apply(Op::RateLimited(0));
    assert_eq!(model.running.len(), 5);
    model.apply(Op::Pass(1000));
    assert_eq!(model.running.len(), 6, "one probes beside those that began before");
    model.apply(Op::Need(50, P::High));
    assert_eq!(model.running.len(), 6, "and no other begins");
}

#[test]
fn priorities_of_one_pool_share_its_reserved_places() {
    let (mut scheduler, now) = (Scheduler::default(), Instant::now());
    let begun = |scheduler: &mut Scheduler<Pooled>| {
        std::iter::from_fn(|| {
            let (key, priority) = scheduler.next(8, now)?;
            scheduler.begin(&key, priority, now);
            Some(priority)
        })
        .count()
    };
    (0..20).for_each(|n| scheduler.queue(&Key::from(format!("m{n}")), Pooled::Mass));
    assert_eq!(begun(&mut scheduler), 6, "a quarter of 8 is kept");
    scheduler.queue(&Key::from("first"), Pooled::First);
    scheduler.queue(&Key::from("second"), Pooled::Second);
    assert_eq!(begun(&mut scheduler), 2);
}
