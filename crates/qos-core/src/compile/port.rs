//! Compiler from the configuration of an interface to the plan of its port.

use crate::compile::class_tree::Attachment;
use crate::compile::context::Context;
use crate::compile::range::in_range;
use crate::compile::{
    access_groups, adjust_mss, bandwidth, catalyst, interface_queueing, parameters, policy, rate_limits, subinterfaces,
};
use crate::config::defaults;
use crate::config::interface::InterfaceConfig;
use crate::config::policy::PolicyClass;
use crate::config::queueing::{InterfaceFairQueue, QueueLimit};
use crate::config::wiring::PortConfig;
use crate::counters::port::{ReservedConversations, Strategy};
use crate::error::ConfigError;
use crate::plan::admission::{AdmissionPlan, AdmissionsPlan};
use crate::plan::classes::{ClassPlan, PolicyPlan, CLASS_DEFAULT};
use crate::plan::port::{ConversationPlan, KindPlan, PortPlan, RingPlan, RouterPlan, SustainedPlan};
use crate::plan::queue::QueuePlan;
use crate::plan::tree::{self, BodyPlan, Sharing, SINGLE};
use crate::time::{Duration, Rate};
use crate::wire::framing::{Framing, Medium, CELL};

fn serial(framing: Framing) -> bool {
    framing.medium() == Medium::Serial
}

/// Returns the plan of a port that is not configured.
pub(crate) fn unconfigured(port: &PortConfig) -> PortPlan {
    let config = InterfaceConfig::new(port.link.rate_bps / 1_000);
    assemble(port, &config, None, None, AdmissionsPlan::default())
}

fn assemble(
    port: &PortConfig,
    config: &InterfaceConfig,
    input: Option<PolicyPlan>,
    output: Option<PolicyPlan>,
    admission: AdmissionsPlan,
) -> PortPlan {
    let medium = port.link.framing.medium();
    let (rate, sustained) = rates(port, config);
    PortPlan {
        enabled: config.enabled,
        rate,
        sustained,
        load_interval_s: config.load_interval_s,
        input,
        subinterfaces: subinterfaces::plans(&config.subinterfaces),
        police_in_drop_rate: true,
        kind: KindPlan::Router(Box::new(RouterPlan { admission, ..router(config, medium, rate, output) })),
    }
}

/// Returns the rate of the line, and the sustainable rate of a virtual circuit if it is lower.
fn rates(port: &PortConfig, config: &InterfaceConfig) -> (Rate, Option<SustainedPlan>) {
    let line = config.clock_rate_bps.filter(|_| serial(port.link.framing)).unwrap_or(port.link.rate_bps);
    let Some(circuit) = config.virtual_circuit else { return (Rate(line), None) };
    let peak = line.min(circuit.peak_bps);
    let sustained = circuit.sustainable_bps.filter(|rate| *rate < peak).map(|rate| {
        let burst = u64::from(circuit.burst_cells.unwrap_or(defaults::ATM_MAXIMUM_BURST)) * u64::from(CELL);
        let [slow, fast] = [rate, peak].map(|rate| Rate(rate).time_for_bytes(burst).0);
        SustainedPlan { rate: Rate(rate), tolerance: Duration(slow - fast) }
    });
    (Rate(peak), sustained)
}

fn router(config: &InterfaceConfig, medium: Medium, rate: Rate, output: Option<PolicyPlan>) -> RouterPlan {
    let default = medium == Medium::Serial && config.bandwidth_kbps <= defaults::WEIGHTED_FAIR_UP_TO_KBPS;
    let weighted = config.fair_queue.map_or(default, |fair| fair.enabled);
    let asked = config.fair_queue.filter(|fair| fair.enabled);
    let threshold = asked.and_then(|fair| fair.discard_threshold).unwrap_or(defaults::CONGESTIVE_DISCARD_THRESHOLD);
    let class_nodes = output.as_ref().map_or(&[][..], |policy| &policy.nodes);
    let hold_queue = |default: u32| config.hold_queue_out.unwrap_or(default);
    let (strategy, nodes, hold_queue, flows) = if !class_nodes.is_empty() {
        // Flow queues are counted in the classic generation only.
        let flows = output.as_ref().and_then(|policy| policy.flow_queues);
        (Strategy::ClassBased, class_nodes.to_vec(), hold_queue(defaults::FAIR_HOLD_QUEUE), flows)
    } else if weighted {
        let flows = asked.and_then(|fair| fair.dynamic_queues);
        let flows = flows.unwrap_or_else(|| defaults::dynamic_queues(config.bandwidth_kbps));
        let queue = QueuePlan::WeightedFair { flows, threshold, total: None };
        let nodes = tree::single(queue, Sharing::Sequence);
        (Strategy::WeightedFair, nodes, hold_queue(defaults::FAIR_HOLD_QUEUE), Some(flows))
    } else {
        let limit = hold_queue(defaults::FIFO_HOLD_QUEUE);
        (Strategy::Fifo, tree::single(QueuePlan::Fifo { limit }, Sharing::Weighted), limit, None)
    };
    let classes = output.as_ref().map_or(&[][..], |policy| &policy.classes);
    let conversations = flows.map(|most| conversations(config, classes, most, threshold));
    RouterPlan {
        ring: ring(config, medium, rate, strategy != Strategy::Fifo),
        strategy,
        hold_queue,
        nodes,
        hold: conversations.map(|_| hold_queue),
        conversations,
        output,
        queueing: None,
        admission: AdmissionsPlan::default(),
    }
}

/// Returns the transmit ring of a port with queueing, or with one FIFO.
fn ring(config: &InterfaceConfig, medium: Medium, rate: Rate, queues: bool) -> RingPlan {
    let default = match medium {
        Medium::Serial if queues => defaults::SERIAL_TX_RING_FAIR,
        Medium::Serial => defaults::SERIAL_TX_RING_FIFO,
        Medium::Ethernet if rate.0 > defaults::ETHERNET_FAST_ABOVE_BPS => defaults::ETHERNET_TX_RING_FAST,
        Medium::Ethernet => defaults::ETHERNET_TX_RING,
        Medium::Atm => defaults::ATM_TX_RING,
    };
    RingPlan { limit: config.tx_ring_limit.unwrap_or(default), particles: medium == Medium::Atm }
}

fn conversations(config: &InterfaceConfig, classes: &[ClassPlan], most: u32, threshold: u32) -> ConversationPlan {
    // The bandwidth of class-default is not checked against the reservable bandwidth, but counts as reserved.
    let top = || classes.iter().filter(|class| class.parent.is_none());
    let guaranteed = top().filter_map(|class| {
        class.bandwidth.and_then(|bandwidth| bandwidth.kbps).or(class.priority.and_then(|priority| priority.kbps))
    });
    let reserved = top().filter(|class| class.bandwidth.is_some()).count() as u32;
    let percent = config.max_reserved_percent.unwrap_or(defaults::CLASSIC_RESERVABLE_PERCENT);
    ConversationPlan {
        most,
        threshold,
        reserved: ReservedConversations { allocated: reserved, max: reserved },
        available_kbps: (config.bandwidth_kbps * u64::from(percent) / 100).saturating_sub(guaranteed.sum()),
    }
}

/// Returns the plan of a port of a configured router or switch; `config` is `None` for a port without configuration.
pub(crate) fn configured(
    name: &str,
    port: &PortConfig,
    config: Option<&InterfaceConfig>,
    context: &Context<'_>,
) -> Result<PortPlan, ConfigError> {
    let mut plan = match config {
        Some(config) => configured_router(name, port, config, context)?,
        None => unconfigured(port),
    };
    if let (Some(ring), KindPlan::Router(router)) = (context.properties.tx_ring, &mut plan.kind) {
        if config.is_none_or(|config| config.tx_ring_limit.is_none()) {
            router.ring.limit = ring;
        }
        if router.strategy != Strategy::ClassBased && router.queueing.is_none() {
            let limit = context.properties.queue_limit.packets(Some(plan.rate.0));
            router.strategy = Strategy::Fifo;
            router.nodes = tree::single(QueuePlan::Fifo { limit }, context.properties.sharing);
            router.hold = None;
            router.conversations = None;
        }
    }
    if let (Some(config), KindPlan::Router(router)) = (config, &mut plan.kind) {
        detect(config, router, plan.rate, context).map_err(|error| error.under(&format!("interfaces.{name}")))?;
    }
    if let Some(switch) = &context.config.switch {
        let (catalyst, input) = catalyst::port(name, port, config, (switch, context), plan.input.take())?;
        plan.rate = catalyst.egress.speed;
        plan.input = input;
        plan.kind = KindPlan::Catalyst(Box::new(catalyst));
    } else if config.is_some_and(|config| config.switch.is_some()) {
        let message = "only a switch has this key: use null, or add the top-level key switch";
        return Err(ConfigError::new(format!("interfaces.{name}.switch"), message));
    }
    Ok(plan)
}

/// Adds early detection to an interface's own queue, which is then a FIFO.
fn detect(
    config: &InterfaceConfig,
    router: &mut RouterPlan,
    rate: Rate,
    context: &Context<'_>,
) -> Result<(), ConfigError> {
    let Some(asked) = &config.random_detect else { return Ok(()) };
    let limit = config.hold_queue_out.unwrap_or_else(|| match router.nodes.get(SINGLE).map(|node| &node.body) {
        Some(BodyPlan::Leaf { queue: QueuePlan::Fifo { limit }, .. }) => *limit,
        _ => defaults::FIFO_HOLD_QUEUE,
    });
    let mut class = PolicyClass::new(CLASS_DEFAULT);
    class.queue_limit = Some(QueueLimit::Packets(limit));
    class.random_detect = Some(asked.clone());
    let random_detect = bandwidth::random_detect(&class, context.properties, Some(rate.0))?;
    if router.strategy == Strategy::ClassBased || router.queueing.is_some() {
        return Ok(());
    }
    router.strategy = Strategy::Fifo;
    router.hold_queue = limit;
    router.nodes = tree::single(QueuePlan::Fifo { limit }, Sharing::Weighted);
    if let Some(BodyPlan::Leaf { random_detect: own, .. }) = router.nodes.get_mut(SINGLE).map(|node| &mut node.body) {
        *own = random_detect;
    }
    router.hold = None;
    router.conversations = None;
    Ok(())
}

fn configured_router(
    name: &str,
    port: &PortConfig,
    config: &InterfaceConfig,
    context: &Context<'_>,
) -> Result<PortPlan, ConfigError> {
    check_router(name, port, config)?;
    let path = |field: &str| format!("interfaces.{name}.{field}");
    let attached = |field: &str, policy: &Option<String>, output: bool| match policy {
        None => Ok(None),
        Some(name) => {
            let to = Attachment {
                bandwidth_kbps: config.bandwidth_kbps,
                max_reserved_percent: config.max_reserved_percent.unwrap_or(defaults::CLASSIC_RESERVABLE_PERCENT),
                output,
            };
            policy::attached(context, name, &path(field), to).map(Some)
        }
    };
    let input = attached("service_policy_input", &config.service_policy_input, false)?;
    let output = attached("service_policy_output", &config.service_policy_output, true)?;
    subinterfaces::check(name, port, config, context)?;
    let own = format!("interfaces.{name}");
    adjust_mss::check(config, &own)?;
    let admission = |output: bool| {
        let groups = access_groups::plan(context, config, output, &own)?;
        Ok::<_, ConfigError>(AdmissionPlan { groups, limits: rate_limits::plans(context, config, output, &own)? })
    };
    let admission = AdmissionsPlan { input: admission(false)?, output: admission(true)? };
    let input = subinterfaces::attached(context, name, config, false)?.or(input);
    let output = subinterfaces::attached(context, name, config, true)?.or(output);
    let mut plan = assemble(port, config, input, output, admission);
    if let (Some(queueing), KindPlan::Router(router)) = (&config.queueing, &mut plan.kind) {
        let ring = ring(config, port.link.framing.medium(), plan.rate, true);
        let base = RouterPlan { ring, ..(**router).clone() };
        **router = interface_queueing::over(context, queueing, &path("queueing"), base, plan.rate)?;
    }
    plan.police_in_drop_rate = context.properties.drop_rate_counts_police;
    Ok(plan)
}

/// Checks the settings of an interface that do not depend on its policies.
fn check_router(name: &str, port: &PortConfig, config: &InterfaceConfig) -> Result<(), ConfigError> {
    let path = |field: &str| format!("interfaces.{name}.{field}");
    let wrong = |field: &str, message: String| Err(ConfigError::new(path(field), message));
    let out_of_range = |field: &str, message: String| Err(ConfigError::out_of_range(path(field), message));
    let serial = serial(port.link.framing);
    if config.bandwidth_kbps == 0 {
        return out_of_range("bandwidth_kbps", "0 kb/s: expected at least 1".to_owned());
    }
    if config.clock_rate_bps == Some(0) {
        return out_of_range("clock_rate_bps", "0 b/s: set a rate, or null for the rate of the link".to_owned());
    }
    if config.clock_rate_bps.is_some() && !serial {
        return wrong("clock_rate_bps", "only a serial link has a clock rate: use null".to_owned());
    }
    if let Some(encapsulation) = config.encapsulation {
        if !encapsulation.carries_encapsulation(port.link.framing) {
            let message = format!("{encapsulation:?} does not fit the port's {:?} link", port.link.framing);
            return wrong("encapsulation", message);
        }
    }
    check_circuit(port, config).map_err(|error| error.under(&format!("interfaces.{name}")))?;
    if !(30..=600).contains(&config.load_interval_s) || config.load_interval_s % 30 != 0 {
        return out_of_range(
            "load_interval_s",
            format!("{} s: expected a multiple of 30 from 30 to 600", config.load_interval_s),
        );
    }
    for (field, value) in [("tx_ring_limit", config.tx_ring_limit), ("hold_queue_out", config.hold_queue_out)] {
        if value == Some(0) {
            return out_of_range(field, "0 packets: expected at least 1, or null for the default".to_owned());
        }
    }
    if let Some(fair) = &config.fair_queue {
        check_fair_queue(fair).map_err(|error| error.under(&format!("interfaces.{name}")))?;
    }
    if let Some(percent) = config.max_reserved_percent {
        in_range(&path("max_reserved_percent"), u64::from(percent), &(1..=100), "per cent")?;
    }
    Ok(())
}

fn check_circuit(port: &PortConfig, config: &InterfaceConfig) -> Result<(), ConfigError> {
    let Some(circuit) = config.virtual_circuit else { return Ok(()) };
    if port.link.framing.medium() != Medium::Atm {
        let message = "only an ATM link has a virtual circuit: use null";
        return Err(ConfigError::new("virtual_circuit", message));
    }
    in_range("virtual_circuit.peak_bps", circuit.peak_bps, &(1..=u64::MAX), "b/s")?;
    if let Some(rate) = circuit.sustainable_bps {
        in_range("virtual_circuit.sustainable_bps", rate, &(1..=circuit.peak_bps), "b/s")?;
    }
    if let Some(cells) = circuit.burst_cells {
        in_range("virtual_circuit.burst_cells", u64::from(cells), &(1..=65_535), "cells")?;
    }
    Ok(())
}

fn check_fair_queue(fair: &InterfaceFairQueue) -> Result<(), ConfigError> {
    if let Some(threshold) = fair.discard_threshold {
        in_range("fair_queue.discard_threshold", u64::from(threshold), &(1..=4_096), "packets")?;
    }
    if let Some(queues) = fair.dynamic_queues {
        parameters::flow_queues("fair_queue.dynamic_queues", queues)?;
    }
    if let Some(queues) = fair.reserved_queues {
        in_range("fair_queue.reserved_queues", u64::from(queues), &(0..=1_000), "queues")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::router::RouterConfig;
    use crate::plan::tree::Rank;
    use serde_json::{json, Value};
    use std::collections::BTreeMap;

    fn port(rate_bps: u64, framing: &str) -> PortConfig {
        let link = json!({"rate_bps": rate_bps, "framing": framing});
        serde_json::from_value(json!({"inside": "a", "wire": "b", "link": link, "paced_by_peer": false})).unwrap()
    }

    fn router_of(plan: PortPlan) -> RouterPlan {
        let KindPlan::Router(router) = plan.kind else { panic!("a router's") };
        *router
    }

    /// Returns a serial port of 64 kb/s, with a FIFO if it is not asked for anything else.
    fn serial_port(more: &Value) -> RouterPlan {
        let mut out = json!({"enabled": true, "bandwidth_kbps": 64, "fair_queue": {"enabled": false}});
        out.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let config = json!({"format": 1, "router": "R1", "generation": "classic", "interfaces": {"Out": out}});
        let config = RouterConfig::from_json(&config.to_string()).unwrap();
        let (ports, lists) = (BTreeMap::new(), BTreeMap::new());
        let context = Context::new(&config, &ports, &lists);
        router_of(configured("Out", &port(64_000, "hdlc"), Some(&config.interfaces["Out"]), &context).unwrap())
    }

    fn queue(plan: &RouterPlan, node: usize) -> &QueuePlan {
        let BodyPlan::Leaf { queue, .. } = &plan.nodes[node].body else { panic!("a queue") };
        queue
    }

    /// An unconfigured port has the bandwidth of its link, by which serial ones queue.
    #[test]
    fn default_bandwidth_is_that_of_the_link() {
        let slow = router_of(unconfigured(&port(1_000_000, "hdlc")));
        let flows = defaults::dynamic_queues(1_000);
        let threshold = defaults::CONGESTIVE_DISCARD_THRESHOLD;
        assert_eq!(*queue(&slow, SINGLE), QueuePlan::WeightedFair { flows, threshold, total: None });
        assert_eq!(slow.conversations.unwrap().available_kbps, 750);
        assert_eq!(router_of(unconfigured(&port(8_000_000, "hdlc"))).strategy, Strategy::Fifo);
    }

    /// A sustainable rate is one below the peak.
    #[test]
    fn a_circuit_sustains_less_than_its_peak() {
        let cells = port(10_000_000, "aal5snap");
        let sustained = |bps: u64| {
            let circuit = json!({"peak_bps": 1_000_000, "sustainable_bps": bps, "burst_cells": 100});
            let config = json!({"enabled": true, "bandwidth_kbps": 1_000, "virtual_circuit": circuit});
            rates(&cells, &serde_json::from_value(config).unwrap())
        };
        assert_eq!(sustained(1_000_000), (Rate(1_000_000), None));
        // A burst of 100 cells of 53 bytes takes twice as long at half the rate.
        let tolerance = Duration(100 * 53 * 8 * 1_000);
        let half = SustainedPlan { rate: Rate(500_000), tolerance };
        assert_eq!(sustained(500_000), (Rate(1_000_000), Some(half)));
    }

    /// A port with its own queues has the ring of a queueing port.
    #[test]
    fn the_ring_follows_the_queueing() {
        let ring = |more: Value| serial_port(&more).ring;
        let limited = |limit| RingPlan { limit, particles: false };
        assert_eq!(ring(json!({})), limited(defaults::SERIAL_TX_RING_FIFO));
        assert_eq!(ring(json!({"fair_queue": {"enabled": true}})), limited(defaults::SERIAL_TX_RING_FAIR));
        let priority = json!({"type": "priority", "rules": [], "limits": [20, 40, 60, 80]});
        assert_eq!(ring(json!({"queueing": priority})), limited(defaults::SERIAL_TX_RING_FAIR));
    }

    /// Shapers next to a FIFO have their rates as weights, and the FIFO has the rest of the line, at least a hundredth;
    /// packets released by shapers next to weighted fair queueing join it.
    #[test]
    fn shapers_of_an_interface_have_their_rates_ahead_of_the_rest() {
        let shaped = |rates: &[u64], fair: bool| {
            let shaper = |bps: &u64| json!({"shape": {"mode": "average", "rate": {"bps": bps}}, "buffers": 1_000});
            let shapers: Vec<_> = rates.iter().map(shaper).collect();
            serial_port(&json!({"queueing": {"type": "shaped", "shapers": shapers}, "fair_queue": {"enabled": fair}}))
        };
        let ranks = |plan: &RouterPlan| plan.nodes.iter().skip(1).map(|node| node.rank).collect::<Vec<_>>();
        let two = shaped(&[16_000, 32_000], false);
        assert_eq!(ranks(&two), [Rank::Weight(16_000), Rank::Weight(16_000), Rank::Weight(32_000)]);
        assert_eq!(ranks(&shaped(&[64_000], false)), [Rank::Weight(640), Rank::Weight(64_000)]);
        let adjacent = shaped(&[16_000], true);
        assert!(!matches!(adjacent.nodes[SINGLE].rank, Rank::Weight(_)));
        assert_eq!(adjacent.nodes[2].rank, Rank::Released(SINGLE));
    }
}
