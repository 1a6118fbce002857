//! The running state of an attached policy-map: classifies, marks, polices, and counts.

use crate::classify::access_list::AccessList;
use crate::classify::classifier::ClassIndex;
use crate::classify::marking;
use crate::config::classification::MatchMode;
use crate::config::defaults;
use crate::counters::buckets::ClassBuckets;
use crate::counters::count::Count;
use crate::counters::police::{ColourCounters, PoliceCounters};
use crate::counters::policy::{
    ClassCounters, ClassDrops, CriterionCounters, MapCounters, PolicyCounters, PriorityCounters, SetCounters,
};
use crate::frame::descriptor::Descriptor;
use crate::frame::drop_reason::DropReason;
use crate::meter::load_average::LoadAverage;
use crate::meter::policer::Meter;
use crate::meter::token_bucket::TokenBuckets;
use crate::meter::tokens::Colour;
use crate::plan::classes::{ClassPlan, LevelPlan, Matcher, PolicyPlan};
use crate::plan::police::{Algorithm, PolicePlan};
use crate::plan::port::PortPlan;
use crate::queueing::queue_counters;
use crate::queueing::random_detect::RandomDetect;
use crate::queueing::scheduler::{Node, Scheduler};
use crate::time::Time;

/// Returns the displayed values of a stream of packets.
fn colour(stream: &mut LoadAverage, now: Time, load_interval_s: u32) -> ColourCounters {
    let (rate_bps, _) = stream.rates(now, load_interval_s);
    ColourCounters { packets: stream.count.packets, bytes: stream.count.bytes, rate_bps }
}

/// Returns whether packets are counted separately for each statement of a class.
fn distinguishes_colours(matcher: &Matcher) -> bool {
    matcher.combine == MatchMode::Any && matcher.criteria.len() != 1
}

/// Counters of a class.
#[derive(Clone, Debug)]
struct ClassState {
    /// The class around it.
    parent: Option<usize>,
    /// The class whose priority its packets have.
    priority_of: Option<usize>,
    /// The node of the queue that its packets join.
    leaf: usize,
    /// Whether the class neither marks nor polices, and has no child.
    plain: bool,
    offered: LoadAverage,
    /// By statement, if they are counted separately; otherwise each has the values of the class.
    criteria: Vec<LoadAverage>,
    /// Packets that left the class: passed on, or taken from its queue.
    sent: Count,
    /// Waits in a queue.
    queued: Count,
    /// Number of waiting packets when the counters were cleared.
    carried: Count,
    /// Packets that could not go directly to the transmit ring.
    congested: Count,
    drops: ClassDrops,
    dropped: LoadAverage,
    marked: Vec<u64>,
    mapped: Vec<u64>,
    colours: [LoadAverage; 3],
    meter: Option<Meter>,
    /// The conditional policer of a priority class.
    conditional: Option<TokenBuckets>,
}

impl ClassState {
    fn new(plan: &ClassPlan, now: Time) -> ClassState {
        let apart = if distinguishes_colours(&plan.matcher) { plan.matcher.criteria.len() } else { 0 };
        ClassState {
            parent: plan.parent,
            priority_of: plan.priority_of,
            leaf: plan.leaf,
            plain: !plan.marks() && plan.police.is_none() && plan.child.is_none(),
            offered: LoadAverage::new(now),
            criteria: vec![LoadAverage::new(now); apart],
            sent: Count::default(),
            queued: Count::default(),
            carried: Count::default(),
            congested: Count::default(),
            drops: ClassDrops::default(),
            dropped: LoadAverage::new(now),
            marked: vec![0; plan.set.len()],
            mapped: vec![0; plan.map.len()],
            colours: std::array::from_fn(|_| LoadAverage::new(now)),
            meter: plan.police.as_ref().map(|police| Meter::of(police, now)),
            conditional: plan.priority.and_then(|priority| {
                Some(TokenBuckets::single_bucket(priority.kbps? * 1_000, priority.burst_bytes?, now))
            }),
        }
    }

    /// Marks a packet for the class. A separate function, because most classes that police do not mark.
    #[inline(never)]
    fn mark(&mut self, plan: &ClassPlan, descriptor: &mut Descriptor) {
        // A value from another field is the packet's value on arrival at the class.
        let before = (!plan.map.is_empty()).then_some(*descriptor);
        for (set, marked) in plan.set.iter().zip(&mut self.marked) {
            *marked += u64::from(marking::set(descriptor, set.field, set.value));
        }
        for (map, marked) in plan.map.iter().zip(&mut self.mapped) {
            if let Some(value) = before.and_then(|before| marking::mapped(&before, map)) {
                *marked += u64::from(marking::set(descriptor, map.field, value));
            }
        }
    }
}

/// Decision of a policy about a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Verdict {
    /// The innermost class.
    pub class: usize,
    /// The queue to join.
    pub leaf: usize,
    /// Whether the packet may pass.
    pub pass: bool,
}

/// The running state of an attached policy-map.
#[derive(Debug)]
pub(crate) struct Policy {
    plan: PolicyPlan,
    /// Class of all packets, if the policy-map has no other.
    sole: Option<usize>,
    /// Counters of the classes of the policy-map, and by class those of its child.
    top: Option<ClassIndex>,
    children: Vec<Option<ClassIndex>>,
    states: Vec<ClassState>,
    load_interval_s: u32,
    police_in_drop_rate: bool,
}

impl Policy {
    pub fn new(plan: PolicyPlan, now: Time, load_interval_s: u32, police_in_drop_rate: bool) -> Policy {
        let states = plan.classes.iter().map(|class| ClassState::new(class, now)).collect();
        let sole = match plan.top.classes[..] {
            [class] => Some(class),
            _ => None,
        };
        Policy { plan, sole, top: None, children: Vec::new(), states, load_interval_s, police_in_drop_rate }
    }

    /// Returns the number of a class's conversation in classic weighted fair queueing, if it has one.
    pub fn conversation(&self, class: usize) -> Option<u32> {
        self.plan.classes.get(class)?.conversation
    }

    /// Returns the input policy of a port.
    pub fn input(plan: &PortPlan, now: Time) -> Option<Policy> {
        let policy = plan.input.clone()?;
        Some(Policy::new(policy, now, plan.load_interval_s, plan.police_in_drop_rate))
    }

    /// Changes the input policy of a port; a policy with an unchanged plan continues.
    pub fn replace_input(policy: &mut Option<Policy>, now: Time, old: &PortPlan, new: &PortPlan) {
        if new.input != old.input || new.police_in_drop_rate != old.police_in_drop_rate {
            *policy = Policy::input(new, now);
        } else if let Some(policy) = policy {
            policy.set_load_interval(new.load_interval_s);
        }
    }

    /// Rebuilds the indexes of classes. Without them every class is tested; after a change of an access list they must
    /// be rebuilt before the next packet.
    pub fn index(&mut self, lists: &[AccessList]) {
        let plan = &self.plan;
        let levels = plan.classes.iter().map(|class| class.child.as_ref()).chain([Some(&plan.top)]);
        let mut indexes: Vec<_> = levels
            .map(|level| {
                let (_, others) = level?.classes.split_last()?;
                ClassIndex::new(others.iter().map(|class| &plan.classes[*class].matcher), lists)
            })
            .collect();
        self.top = indexes.pop().flatten();
        self.children = indexes;
    }

    pub fn set_load_interval(&mut self, load_interval_s: u32) {
        self.load_interval_s = load_interval_s;
    }

    /// Classifies, marks and polices a packet that arrives at `now`, and counts it. A packet that may not pass is
    /// counted as dropped; the caller counts the others by `count_queued`, `count_dropped` or `count_sent`.
    #[inline]
    pub fn apply(&mut self, now: Time, descriptor: &mut Descriptor, lists: &mut [AccessList]) -> Verdict {
        let verdict = self.enter(now, descriptor, lists, None, true);
        if !verdict.pass {
            self.count_dropped(now, verdict.class, descriptor.counted_len, DropReason::Police);
        }
        verdict
    }

    /// Classifies a packet that was marked and policed before, by an earlier policy, and counts it.
    pub fn readmit(&mut self, now: Time, descriptor: &mut Descriptor, lists: &mut [AccessList]) -> Verdict {
        self.enter(now, descriptor, lists, None, false)
    }

    /// Classifies, marks and polices a packet in a child policy-map; `above` is the class that contains it.
    #[inline]
    fn enter(
        &mut self,
        now: Time,
        descriptor: &mut Descriptor,
        lists: &mut [AccessList],
        above: Option<(usize, &Descriptor)>,
        act: bool,
    ) -> Verdict {
        let bytes = descriptor.counted_len;
        let (class, statement) = match (above, self.sole) {
            (None, Some(class)) => (class, 0),
            (above, _) => {
                let came = above.map(|(_, came)| came).filter(|_| !defaults::CHILD_MATCHES_PARENTS_MARK);
                self.classify(came.unwrap_or(descriptor), lists, above.map(|(parent, _)| parent))
            }
        };
        let state = &mut self.states[class];
        state.offered.add(now, bytes, self.load_interval_s);
        if let Some(criterion) = state.criteria.get_mut(statement) {
            criterion.add(now, bytes, self.load_interval_s);
        }
        if state.plain {
            return Verdict { class, leaf: state.leaf, pass: true };
        }
        self.act(now, descriptor, lists, (class, above.map(|(_, came)| came)), act)
    }

    /// Marks and polices a packet of a class and in the class's child, unless `act` is false.
    fn act(
        &mut self,
        now: Time,
        descriptor: &mut Descriptor,
        lists: &mut [AccessList],
        (class, came): (usize, Option<&Descriptor>),
        act: bool,
    ) -> Verdict {
        let plan = &self.plan.classes[class];
        let state = &mut self.states[class];
        // Only needed for a child: a copy for each packet is expensive.
        let unmarked = if came.is_none() && plan.child.is_some() { Some(*descriptor) } else { None };
        if act && plan.marks() {
            state.mark(plan, descriptor);
        }
        let mut verdict = Verdict { class, leaf: plan.leaf, pass: true };
        // The child acts before the parent's policer. Unconfirmed for policers in both.
        if let Some(came) = came.or(unmarked.as_ref()).filter(|_| plan.child.is_some()) {
            verdict = self.enter(now, descriptor, lists, Some((class, came)), act);
        }
        if act && verdict.pass {
            verdict.pass = self.police(now, class, descriptor);
        }
        verdict
    }

    /// Returns the first class that matches, and the matching statement.
    fn classify(&self, descriptor: &Descriptor, lists: &mut [AccessList], parent: Option<usize>) -> (usize, usize) {
        let child = parent.and_then(|parent| {
            Some((self.plan.classes[parent].child.as_ref()?, self.children.get(parent).and_then(Option::as_ref)))
        });
        let (level, index) = child.unwrap_or((&self.plan.top, self.top.as_ref()));
        let (last, others) = level.classes.split_last().expect("every policy has class-default");
        let mut ask = |class: usize| Some((class, self.plan.classes[class].matcher.matches(descriptor, lists)?));
        if mistaken!(LastClassWins) {
            return others.iter().rev().find_map(|class| ask(*class)).unwrap_or((*last, 0));
        }
        let found = match index.and_then(|index| index.candidates(descriptor)) {
            Some(mut candidates) => candidates.find_map(|position| ask(others[position])),
            None => others.iter().find_map(|class| ask(*class)),
        };
        found.unwrap_or((*last, 0))
    }

    fn police(&mut self, now: Time, class: usize, descriptor: &mut Descriptor) -> bool {
        let plan = &self.plan.classes[class];
        let state = &mut self.states[class];
        let (Some(police), Some(meter)) = (&plan.police, &mut state.meter) else { return true };
        // Frames that are not IP are classified but not policed: in the published output the class counts a few more
        // packets than its policer.
        if !descriptor.is_ip() {
            return true;
        }
        let bytes = descriptor.counted_len;
        let colour = meter.colour(now, police.account.map_or(bytes, |account| account.length(bytes)));
        state.colours[colour as usize].add(now, bytes, self.load_interval_s);
        marking::police(descriptor, police.actions(colour))
    }

    /// Meters a packet of the class that finds congestion. Returns whether it may wait: a packet of a priority class
    /// above its rate may not (conditional policer).
    #[inline]
    pub fn admit_congested(&mut self, now: Time, class: usize, bytes: u32) -> bool {
        self.each(class, |state| state.congested.add(bytes));
        self.within_rate(now, class, bytes)
    }

    /// Meters a packet by the conditional policer of its priority class, if any. Returns whether it conforms.
    #[inline]
    pub fn within_rate(&mut self, now: Time, class: usize, bytes: u32) -> bool {
        let Some(class) = self.states[class].priority_of else { return true };
        let Some(conditional) = &mut self.states[class].conditional else { return true };
        conditional.colour(now, bytes) == Colour::Conform || mistaken!(PriorityUnlimited)
    }

    /// Returns the levels of the token buckets of each class at `now`.
    pub fn buckets(&self, now: Time) -> Vec<ClassBuckets> {
        let of_class = |class: usize| {
            let mut path: Vec<_> = self.line(class).map(|class| self.plan.classes[class].name.clone()).collect();
            path.reverse();
            let state = &self.states[class];
            ClassBuckets {
                path,
                police: state.meter.as_ref().map(|meter| meter.tokens_at(now)),
                priority: state.conditional.as_ref().map(|conditional| conditional.tokens_at(now)),
            }
        };
        (0..self.states.len()).map(of_class).collect()
    }

    /// Returns the class and those that contain it.
    fn line(&self, class: usize) -> impl Iterator<Item = usize> + '_ {
        std::iter::successors(Some(class), |class| self.plan.classes[*class].parent)
    }

    #[inline]
    fn each(&mut self, class: usize, mut change: impl FnMut(&mut ClassState)) {
        let mut state = &mut self.states[class];
        change(state);
        while let Some(class) = state.parent {
            state = &mut self.states[class];
            change(state);
        }
    }

    /// Counts a packet of the class that passed without waiting in a queue.
    #[inline]
    pub fn count_sent(&mut self, class: usize, bytes: u32) {
        self.each(class, |state| state.sent.add(bytes));
    }

    /// Counts a packet of the class that joins a queue.
    #[inline]
    pub fn count_queued(&mut self, class: usize, bytes: u32) {
        self.each(class, |state| state.queued.add(bytes));
    }

    /// Counts a packet of the class that no longer waits in a queue.
    pub fn count_unqueued(&mut self, class: usize, bytes: u32) {
        self.each(class, |state| state.queued.remove(bytes));
    }

    /// Counts a packet of the class that left its queue towards the line.
    #[inline]
    pub fn count_departed(&mut self, class: usize, bytes: u32) {
        self.each(class, |state| {
            state.queued.remove(bytes);
            state.sent.add(bytes);
        });
    }

    /// Counts a dropped packet of the class.
    pub fn count_dropped(&mut self, now: Time, class: usize, bytes: u32, reason: DropReason) {
        let in_rate = reason != DropReason::Police || self.police_in_drop_rate;
        let load_interval_s = self.load_interval_s;
        self.each(class, |state| {
            match reason {
                DropReason::Police => state.drops.police.add(bytes),
                DropReason::Tail | DropReason::Overrun => state.drops.tail.add(bytes),
                DropReason::Flow => state.drops.flow.add(bytes),
                DropReason::Priority => state.drops.priority.add(bytes),
                DropReason::Random => state.drops.random.add(bytes),
                DropReason::RandomTail => state.drops.random_tail.add(bytes),
                // The queue belongs to the interface's tree, below a policy without queues.
                DropReason::Aqm => state.drops.aqm.add(bytes),
                // Access lists deny packets before the classes see them.
                DropReason::Denied | DropReason::Disabled | DropReason::Lost => state.drops.purged.add(bytes),
            }
            if in_rate {
                state.dropped.add(now, bytes, load_interval_s);
            }
        });
    }

    /// Zeroes the counters; the token buckets stay.
    pub fn clear(&mut self, now: Time) {
        for (plan, state) in self.plan.classes.iter().zip(&mut self.states) {
            let mut cleared = ClassState::new(plan, now);
            cleared.meter = state.meter.take().map(|meter| meter.cleared(now));
            cleared.conditional = state.conditional.take();
            cleared.queued = state.queued;
            cleared.carried = state.queued;
            *state = cleared;
        }
    }

    /// Returns the counters of the policy; `scheduler` has the queues of the classes (none for an input policy),
    /// `in_ring` the classes of the packets in the transmit ring.
    pub fn counters<P>(
        &mut self,
        now: Time,
        scheduler: Option<&Scheduler<P>>,
        in_ring: impl Iterator<Item = usize>,
    ) -> PolicyCounters {
        let mut sent = vec![0; self.states.len()];
        in_ring.flat_map(|class| self.line(class)).for_each(|class| sent[class] += 1);
        self.level(now, self.plan.top.clone(), (scheduler, &sent))
    }

    /// Returns the counters of a policy-map, with the queues of its classes and their packets in the transmit ring, by
    /// class.
    fn level<P>(&mut self, now: Time, level: LevelPlan, below: (Option<&Scheduler<P>>, &[u64])) -> PolicyCounters {
        let (scheduler, _) = below;
        let queues = level.priority_queues.iter();
        PolicyCounters {
            priority_queues: scheduler.map_or_else(Vec::new, |scheduler| {
                queues.map(|(level, node)| queue_counters::priority(*level, &scheduler.node(*node))).collect()
            }),
            classes: level.classes.iter().map(|class| self.class_counters(now, *class, below)).collect(),
            policy: level.name,
        }
    }

    fn class_counters<P>(&mut self, now: Time, class: usize, below: (Option<&Scheduler<P>>, &[u64])) -> ClassCounters {
        let child = self.plan.classes[class].child.clone();
        let child = child.map(|level| self.level(now, level, below));
        let (scheduler, in_ring) = below;
        let load_interval_s = self.load_interval_s;
        let plan = &self.plan.classes[class];
        let state = &mut self.states[class];
        let node = scheduler.zip(plan.own).map(|(scheduler, own)| scheduler.node(own));
        let criteria = (0..plan.matcher.criteria.len()).map(|statement| {
            let stream = state.criteria.get_mut(statement).unwrap_or(&mut state.offered);
            let ColourCounters { packets, bytes, rate_bps } = colour(stream, now, load_interval_s);
            CriterionCounters { packets, bytes, rate_bps }
        });
        let criteria = criteria.collect();
        let set = plan.set.iter().zip(&state.marked);
        let map = plan.map.iter().zip(&state.mapped);
        ClassCounters {
            name: plan.name.clone(),
            combine: plan.matcher.combine,
            criteria,
            packets: state.offered.count.packets,
            bytes: state.offered.count.bytes,
            offered_rate_bps: state.offered.rates(now, load_interval_s).0,
            drop_rate_bps: state.dropped.rates(now, load_interval_s).0,
            drops: state.drops,
            set: set
                .map(|(set, packets)| SetCounters { field: set.field, value: set.value, packets: *packets })
                .collect(),
            map: map
                .map(|(map, packets)| MapCounters { field: map.field, source: map.source, packets: *packets })
                .collect(),
            police: plan.police.as_ref().map(|police| police_counters(police, state, now, load_interval_s)),
            shape: node.as_ref().and_then(queue_counters::shape),
            queue: node.as_ref().map(|node| {
                let in_ring = if plan.parent.is_none() { in_ring[class] } else { 0 };
                queue_counters::class(node, plan.conversation, state.congested, in_ring)
            }),
            bandwidth: plan.bandwidth,
            priority: plan.priority.map(|priority| PriorityCounters {
                unit: priority.unit,
                kbps: priority.kbps,
                percent: priority.percent,
                burst_bytes: priority.burst_bytes,
                level: priority.level,
                conversation: plan.conversation,
                exceed_drops: state.drops.priority,
            }),
            random_detect: node.as_ref().and_then(Node::random_detect).map(RandomDetect::counters),
            child,
        }
    }

    /// Checks that every class's packets are accounted for; `queued` are the packets in queues, by class.
    pub fn audit(&self, queued: impl Iterator<Item = (usize, u32)>) -> Result<(), String> {
        let mut found = vec![Count::default(); self.states.len()];
        for (class, bytes) in queued {
            self.line(class).for_each(|class| found[class].add(bytes));
        }
        for ((plan, state), found) in self.plan.classes.iter().zip(&self.states).zip(found) {
            let fail =
                |what: &str| Err(format!("policy {}, class {}: {what}: {state:?}", self.plan.top.name, plan.name));
            if found != state.queued {
                return fail(&format!("{found:?} are in queues, another number is counted"));
            }
            let ClassDrops { police, tail, flow, purged, priority, random, random_tail, aqm } = state.drops;
            let dropped = [police, tail, flow, purged, priority, random, random_tail, aqm].into_iter();
            let gone = dropped.fold(state.sent.plus(state.queued), Count::plus);
            if state.offered.count.plus(state.carried) != gone {
                return fail("offered is not sent + dropped + queued");
            }
            let matched = state.criteria.iter().fold(Count::default(), |sum, c| sum.plus(c.count));
            if distinguishes_colours(&plan.matcher) && matched != state.offered.count {
                return fail("the match statements do not add up");
            }
        }
        Ok(())
    }
}

fn police_counters(police: &PolicePlan, state: &mut ClassState, now: Time, load_interval_s: u32) -> PoliceCounters {
    let [conformed, exceeded, violated] = &mut state.colours;
    let two_buckets = police.algorithm != Algorithm::SingleBucket;
    let meter = state.meter.as_ref();
    let dynamic = meter.and_then(|meter| meter.dynamic(now));
    PoliceCounters {
        form: police.form,
        cir_bps: police.cir_bps,
        cir_percent: police.cir_percent,
        bc_bytes: dynamic.as_ref().map_or(police.bc_bytes, |dynamic| dynamic.bucket_bytes),
        pir_bps: match police.algorithm {
            Algorithm::TwoRate { pir_bps } => Some(pir_bps),
            _ => None,
        },
        pir_percent: police.pir_percent,
        be_bytes: two_buckets.then_some(police.be_bytes),
        conformed: colour(conformed, now, load_interval_s),
        exceeded: colour(exceeded, now, load_interval_s),
        violated: two_buckets.then(|| colour(violated, now, load_interval_s)),
        tokens_lost: meter.map(Meter::tokens_lost).unwrap_or_default(),
        dynamic,
    }
}
