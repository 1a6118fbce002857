//! Combinations of actions that a class of a policy-map cannot have, as a table.
//!
//! `policy_rules` prints the tables for the IOS command line, which refuses the same combinations, line by line.

use crate::compile::generation::Properties;
use crate::config::policy::PolicyClass;
use crate::config::queueing::{BandwidthConfig, LimitUnit};
use crate::plan::classes::CLASS_DEFAULT;

use Fact::{
    Bandwidth, ClassDefault, FairQueue, Minimum, Priority, PriorityLevel, QueueLimit, QueueLimitUnit, QueueThresholds,
    QueueingChild, RandomDetect, RandomDetectUnit, RemainingRatio, Shape, ShapeBuffers,
};

/// A condition on a class: a key is configured, or has one of several words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "snake_case"))]
pub(crate) enum Fact {
    /// The class is class-default.
    ClassDefault,
    /// A child policy-map of the class has a queue.
    QueueingChild,
    Priority,
    PriorityLevel,
    Bandwidth,
    /// `bandwidth` in kb/s or per cent.
    Minimum,
    RemainingRatio,
    FairQueue,
    Shape,
    ShapeBuffers,
    RandomDetect,
    /// Thresholds in bytes or time.
    RandomDetectUnit,
    QueueLimit,
    /// A limit in bytes or time.
    QueueLimitUnit,
    QueueThresholds,
}

impl Fact {
    /// Returns whether the fact applies to a class.
    pub fn is_true(self, class: &PolicyClass, child_queues: bool) -> bool {
        match self {
            QueueingChild => child_queues,
            _ => self.word(class).is_some_and(|word| self.words().is_empty() || self.words().contains(&word)),
        }
    }

    /// Returns the words of its key, one of which is required; none: any.
    pub fn words(self) -> &'static [&'static str] {
        match self {
            ClassDefault => &[CLASS_DEFAULT],
            Minimum => &["kbps", "percent"],
            RandomDetectUnit | QueueLimitUnit => &["bytes", "ms", "us"],
            _ => &[],
        }
    }

    /// Returns the word of its key: a text, or the name of a choice; empty for other values, `None` without a value.
    pub fn word(self, class: &PolicyClass) -> Option<&str> {
        let given = |is: bool| is.then_some("");
        match self {
            ClassDefault => Some(&class.name),
            QueueingChild => given(class.service_policy.is_some()),
            Priority => given(class.priority.is_some()),
            PriorityLevel => given(class.priority.is_some_and(|priority| priority.level.is_some())),
            Bandwidth | Minimum => class.bandwidth.map(BandwidthConfig::unit),
            RemainingRatio => given(matches!(class.bandwidth, Some(BandwidthConfig::RemainingRatio(_)))),
            FairQueue => given(class.fair_queue.is_some()),
            Shape => given(class.shape.is_some()),
            ShapeBuffers => given(class.shape_buffers.is_some()),
            RandomDetect => given(class.random_detect.is_some()),
            RandomDetectUnit => class.random_detect.as_ref().and_then(|red| red.unit).map(LimitUnit::name),
            QueueLimit | QueueLimitUnit => class.queue_limit.map(|limit| limit.unit().name()),
            QueueThresholds => given(!class.queue_thresholds.is_empty()),
        }
    }

    /// Returns the key of the class that the fact is about.
    pub fn path(self) -> &'static str {
        match self {
            ClassDefault => "name",
            QueueingChild => "service_policy",
            Priority => "priority",
            PriorityLevel => "priority.level",
            Bandwidth | Minimum => "bandwidth",
            RemainingRatio => "bandwidth.remaining_ratio",
            FairQueue => "fair_queue",
            Shape => "shape",
            ShapeBuffers => "shape_buffers",
            RandomDetect => "random_detect",
            RandomDetectUnit => "random_detect.unit",
            QueueLimit | QueueLimitUnit => "queue_limit",
            QueueThresholds => "queue_thresholds",
        }
    }
}

/// Facts of a class with a queue, which can be in an output policy only.
pub(crate) const QUEUEING: &[Fact] =
    &[Bandwidth, Priority, Shape, QueueLimit, QueueThresholds, FairQueue, RandomDetect];

/// Facts that must have the same word in all classes of a policy-map.
pub(crate) const ONE_UNIT: Fact = Bandwidth;

/// Keys of policy-maps that a port and its subinterfaces cannot both have.
pub(crate) const PORT_OR_SUBINTERFACE: [&str; 2] = ["service_policy_input", "service_policy_output"];

/// A property of generations, with its name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Property {
    #[cfg_attr(not(feature = "serde"), allow(dead_code))]
    pub name: &'static str,
    pub has: fn(&Properties) -> bool,
}

#[cfg(feature = "serde")]
impl serde::Serialize for Property {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name)
    }
}

macro_rules! property {
    ($name:ident) => {
        $crate::compile::combinations::Property { name: stringify!($name), has: |of| of.$name }
    };
}
pub(crate) use property;

/// A refused combination: a fact with another one, or without any of several.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub(crate) struct Combination {
    /// The fact with the refused key.
    pub of: Fact,
    pub with: Option<Fact>,
    pub without: &'static [Fact],
    /// Property of the generations that allow it.
    pub unless: Option<Property>,
    #[cfg_attr(feature = "serde", serde(skip))]
    pub message: &'static str,
}

impl Combination {
    const fn any(of: Fact, message: &'static str) -> Combination {
        Combination { of, with: None, without: &[], unless: None, message }
    }

    const fn with(of: Fact, with: Fact, message: &'static str) -> Combination {
        Combination { with: Some(with), ..Combination::any(of, message) }
    }

    const fn without(of: Fact, without: &'static [Fact], message: &'static str) -> Combination {
        Combination { without, ..Combination::any(of, message) }
    }

    const fn unless(self, property: Property) -> Combination {
        Combination { unless: Some(property), ..self }
    }

    /// Returns whether a class has the fact.
    pub fn found(&self, class: &PolicyClass, child_queues: bool, properties: &Properties) -> bool {
        let holds = |fact: &Fact| fact.is_true(class, child_queues);
        holds(&self.of)
            && self.with.as_ref().is_none_or(holds)
            && !self.without.iter().any(holds)
            && !self.unless.is_some_and(|property| (property.has)(properties))
    }
}

const ONE_OF_BOTH: &str = "cannot be combined with priority in the same class: remove one of the two";
const IN_CHILD: &str = "the queues are in the child policy of the class: set this in its classes";
const UNSHAPED: &str =
    "and a subinterface has no physical line: attach a policy-map that shapes, with this one as the child";
const IN_PACKETS: &str = "only a first-in-first-out queue of the HQF generation supports it: use packets";

/// Refused combinations in the order of evaluation; those with the queues of a child are last.
pub(crate) const IMPOSSIBLE: &[Combination] = &[
    Combination::with(Priority, ClassDefault, "class-default cannot have priority: use null"),
    Combination::with(Bandwidth, Priority, ONE_OF_BOTH),
    Combination::with(FairQueue, Priority, ONE_OF_BOTH),
    Combination::with(Shape, Priority, ONE_OF_BOTH),
    Combination::with(RandomDetect, Priority, ONE_OF_BOTH),
    Combination::any(PriorityLevel, "the classic generation has only one level: use null")
        .unless(property!(priority_levels)),
    Combination::without(FairQueue, &[ClassDefault], "the classic generation has fair-queue in class-default only")
        .unless(property!(fair_queue_in_any_class)),
    Combination::with(
        FairQueue,
        Bandwidth,
        "in the classic generation fair-queue weights its flows itself: use either bandwidth or fair_queue",
    )
    .unless(property!(fair_queue_with_bandwidth)),
    Combination::any(QueueThresholds, IN_PACKETS).unless(property!(queue_limit_units)),
    Combination::any(QueueLimitUnit, IN_PACKETS).unless(property!(queue_limit_units)),
    Combination::with(QueueThresholds, Priority, IN_PACKETS),
    Combination::with(QueueThresholds, FairQueue, IN_PACKETS),
    Combination::with(QueueLimitUnit, FairQueue, IN_PACKETS),
    Combination::without(
        QueueLimit,
        &[ClassDefault, Bandwidth, Shape, Priority],
        "IOS-XE requires bandwidth, shape or priority in the class",
    )
    .unless(property!(queue_limit_alone)),
    Combination::any(RandomDetectUnit, IN_PACKETS).unless(property!(random_detect_in_bytes)),
    Combination::with(RandomDetectUnit, FairQueue, IN_PACKETS),
    Combination::without(RandomDetect, &[ClassDefault, Bandwidth, Shape], "needs bandwidth or shape in the class"),
    Combination::any(ShapeBuffers, "only a shaper of the classic generation without a queueing child has this setting")
        .unless(property!(shape_has_buffers)),
    Combination::without(
        ShapeBuffers,
        &[Shape],
        "only a shaper of the classic generation without a queueing child has this setting",
    ),
    Combination::any(RemainingRatio, "the classic generation does not have this setting")
        .unless(property!(remaining_ratio)),
    Combination::with(QueueingChild, Priority, "a priority class has one queue: its child cannot queue"),
    Combination::with(ShapeBuffers, QueueingChild, IN_CHILD),
    Combination::with(FairQueue, QueueingChild, IN_CHILD),
    Combination::with(QueueThresholds, QueueingChild, IN_CHILD),
    Combination::with(RandomDetect, QueueingChild, IN_CHILD),
    Combination::with(QueueLimitUnit, QueueingChild, IN_PACKETS),
    Combination::with(
        Minimum,
        QueueingChild,
        "on IOS-XE a class with a queueing child cannot have it: use shape or bandwidth remaining",
    )
    .unless(property!(bandwidth_above_queues)),
    Combination::without(
        QueueingChild,
        &[Shape],
        "in the classic generation a queueing child needs a shaper in the parent class: add shape",
    )
    .unless(property!(queueing_child_without_shape)),
];

/// Refused combinations in the policy-map of a subinterface, in addition to the others.
pub(crate) const ON_SUBINTERFACE: &[Combination] = &[
    Combination::any(Minimum, UNSHAPED),
    Combination::any(Priority, UNSHAPED),
    Combination::any(FairQueue, UNSHAPED),
    Combination::any(RandomDetect, UNSHAPED),
    Combination::without(Bandwidth, &[Shape], UNSHAPED),
    Combination::without(QueueLimit, &[Shape], UNSHAPED),
    Combination::without(QueueThresholds, &[Shape], UNSHAPED),
    Combination::without(QueueingChild, &[Shape], UNSHAPED),
];
