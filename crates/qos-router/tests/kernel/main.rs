//! Forwarding against a real kernel in a network namespace: what leaves by which interface with which bytes, and that
//! the mirror stays what the kernel has.
//!
//! Needs user namespaces: each test runs itself again in new ones. Where the machine forbids them it says so and ends.

mod bench;

use std::cell::{Cell, RefCell};
use std::net::IpAddr;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use qos_router::forwarding::kernel::Way;
use qos_router::forwarding::mirror::Mirror;
use qos_router::forwarding::packet::{rewrite, Packet};

use bench::{inside, packets, routes, Bench, PacketSpec, RouteSpec, PORTS};

/// Decision of the mirror on a frame: the interface by which it leaves, and its bytes there.
fn forwarded_frames(mirror: &mut Mirror, bench: &Bench, spec: &PacketSpec, frame: &[u8]) -> Option<(usize, Vec<u8>)> {
    let packet = Packet::of(frame)?;
    let way = mirror.kernel().expect("the mirror is up to date").way(bench.links[spec.input], &packet)?;
    if packet.length > way.mtu {
        return None;
    }
    let mut bytes = frame.to_vec();
    let length = rewrite(&mut bytes, &packet, &way.header);
    bytes.truncate(length);
    let output = bench.links.iter().position(|link| *link == way.link).expect("it leaves by a port");
    Some((output, bytes))
}

#[test]
fn packets_leave_by_the_same_port_with_the_same_bytes() {
    if !inside("packets_leave_by_the_same_port_with_the_same_bytes") {
        return;
    }
    let bench = Bench::new();
    let mirror = RefCell::new(bench.mirror());
    let (by_us, by_kernel) = (Cell::new(0), Cell::new(0));
    let mut runner = TestRunner::new(Config { cases: 120, failure_persistence: None, ..Config::default() });
    let strategy = (routes(), prop::collection::vec(packets(), 40), 0..3u8);
    let result = runner.run(&strategy, |(routes, specs, rp_filter)| {
        bench.set("net/ipv4/conf/all/rp_filter", &rp_filter.to_string());
        bench.replace_routes(&routes);
        let mut mirror = mirror.borrow_mut();
        mirror.follow();
        let frames: Vec<_> = (0..).zip(&specs).map(|(mark, spec)| bench.frame(spec, mark)).collect();
        let ours: Vec<_> =
            specs.iter().zip(&frames).map(|(spec, frame)| forwarded_frames(&mut mirror, &bench, spec, frame)).collect();
        let theirs = bench.through_kernel(&specs, &frames, ours.iter().flatten().count());
        for ((spec, ours), theirs) in specs.iter().zip(ours).zip(theirs) {
            by_kernel.set(by_kernel.get() + usize::from(!theirs.is_empty()));
            if let Some(ours) = ours {
                by_us.set(by_us.get() + 1);
                prop_assert_eq!(vec![ours], theirs, "{:?}", spec);
            }
        }
        Ok(())
    });
    if let Err(error) = result {
        panic!("{error}");
    }
    let (by_us, by_kernel) = (by_us.get(), by_kernel.get());
    // Otherwise the comparison would prove nothing.
    assert!(by_us > 200 && by_us * 3 > by_kernel, "{by_us} forwarded here, {by_kernel} by the kernel");
}

/// Ways from each port to each of many destinations.
fn forwarding_ways(mirror: &mut Mirror, bench: &Bench) -> Vec<Option<Way>> {
    let kernel = mirror.kernel().expect("the mirror is up to date");
    let mut ways = Vec::new();
    for input in 0..PORTS {
        for (source, destination) in bench.pairs(input) {
            let packet = Packet { to: bench.macs[input], source, destination, length: 100 };
            // The kernel may probe a neighbour that has been used.
            kernel.way(bench.links[input], &packet);
            ways.push(kernel.way(bench.links[input], &packet));
        }
    }
    ways
}

#[test]
fn followed_changes_equal_a_dump() {
    if !inside("followed_changes_equal_a_dump") {
        return;
    }
    let bench = Bench::new();
    let mirror = RefCell::new(bench.mirror());
    let mut runner = TestRunner::new(Config { cases: 60, failure_persistence: None, ..Config::default() });
    let found = Cell::new(0);
    let changes = prop::collection::vec((prop::sample::select(&["add", "replace", "append", "del"][..]), routes()), 3);
    let result = runner.run(&changes, |changes| {
        let mut mirror = mirror.borrow_mut();
        for (verb, routes) in changes {
            bench.change_routes(verb, &routes);
            mirror.follow();
        }
        let followed = forwarding_ways(&mut mirror, &bench);
        found.set(found.get() + followed.iter().flatten().count());
        prop_assert_eq!(followed, forwarding_ways(&mut bench.mirror(), &bench));
        Ok(())
    });
    if let Err(error) = result {
        panic!("{error}");
    }
    assert!(found.get() > 1000, "{}", found.get());
    assert_eq!(mirror.into_inner().overruns(), 0);
}

#[test]
fn a_route_that_a_dump_left_out_is_there_when_the_other_goes() {
    if !inside("a_route_that_a_dump_left_out_is_there_when_the_other_goes") {
        return;
    }
    let bench = Bench::new();
    for last in ["replace 2001:db8:d0::/64 via 2001:db8:0:2::4 dev p2", "del 2001:db8:d0::/64 via 2001:db8:0:2::6"] {
        bench.ip(&[
            "route add 2001:db8:d0::/64 via 2001:db8:0:2::6 dev p2",
            "route append blackhole 2001:db8:d0::/64",
            "route append 2001:db8:d0::/64 via 2001:db8:0:1::4 dev p1",
        ]);
        let mut mirror = bench.mirror();
        bench.ip(&[format!("route {last}")]);
        mirror.follow();
        assert_eq!(forwarding_ways(&mut mirror, &bench), forwarding_ways(&mut bench.mirror(), &bench), "{last}");
        bench.run("ip -6 route flush 2001:db8:d0::/64");
    }
}

fn frame_to(destination: &str, bench: &Bench) -> Packet {
    let source = IpAddr::from([10, 0, 0, 2]);
    Packet { to: bench.macs[0], source, destination: destination.parse().unwrap(), length: 100 }
}

#[test]
fn netlink_overrun_is_counted_and_resynchronised() {
    if !inside("an_overrun_is_counted_and_made_up_for") {
        return;
    }
    let bench = Bench::new();
    let mut mirror = Mirror::with_buffer(&bench.namespace, 4096).unwrap();
    mirror.follow();
    let many: Vec<_> = (0..3000).map(|n| format!("route add 10.77.{}.{}/32 via 10.0.1.2", n / 250, n % 250)).collect();
    bench.ip(&many);
    while mirror.overruns() == 0 || mirror.kernel().is_none() {
        mirror.follow();
    }
    let way = mirror.kernel().unwrap().way(bench.links[0], &frame_to("10.77.11.249", &bench));
    assert_eq!(way.map(|way| way.link), Some(bench.links[1]));
}

#[test]
fn changes_of_a_neighbour_are_followed() {
    if !inside("a_neighbour_that_goes_and_comes_is_followed") {
        return;
    }
    let bench = Bench::new();
    let mut mirror = bench.mirror();
    let mut way = || {
        mirror.follow();
        mirror.kernel().unwrap().way(bench.links[0], &frame_to("10.0.1.2", &bench)).map(|way| way.header[..6].to_vec())
    };
    assert!(way().is_some());
    bench.ip(&["neigh del 10.0.1.2 dev p1"]);
    assert_eq!(way(), None);
    bench.ip(&["neigh replace 10.0.1.2 lladdr 02:aa:00:00:00:07 nud stale dev p1"]);
    assert_eq!(way(), None, "the kernel sees the first packet to a neighbour that it is not sure of");
    assert_eq!(way(), Some(vec![2, 0xaa, 0, 0, 0, 7]));
    bench.ip(&["neigh replace 10.0.1.2 lladdr 02:aa:00:00:00:08 nud reachable dev p1"]);
    assert_eq!(way(), Some(vec![2, 0xaa, 0, 0, 0, 8]));
}

#[test]
fn changes_of_an_interface_state_are_followed() {
    if !inside("an_interface_that_goes_down_and_up_is_followed") {
        return;
    }
    let bench = Bench::new();
    let mut mirror = bench.mirror();
    bench.ip(&["route add 10.77.0.0/16 via 10.0.1.2", "route add 10.0.0.0/8 via 10.0.2.2"]);
    let mut link = || {
        mirror.follow();
        let way = mirror.kernel().unwrap().way(bench.links[0], &frame_to("10.77.0.1", &bench))?;
        bench.links.iter().position(|link| *link == way.link)
    };
    assert_eq!(link(), Some(1));
    bench.ip(&["link set p1 down"]);
    // The kernel does not report the removal of the route.
    assert_eq!(link(), Some(2));
    bench.ip(&[
        "link set p1 up",
        "neigh replace 10.0.1.2 lladdr 02:aa:00:00:00:07 nud permanent dev p1",
        "route add 10.77.0.0/16 via 10.0.1.2",
    ]);
    assert_eq!(link(), Some(1));
    bench.ip(&["address del 10.0.1.1/24 dev p1"]);
    assert_eq!(link(), Some(2));
}

#[test]
fn unknown_state_is_reported() {
    if !inside("unknown_state_is_reported") {
        return;
    }
    let bench = Bench::new();
    let mut mirror = bench.mirror();
    let mut unknown = || {
        mirror.follow();
        mirror.kernel().unwrap().unknown(bench.links)
    };
    assert_eq!(unknown(), None);
    bench.ip(&["rule add from 10.0.0.2 table 100"]);
    assert_eq!(unknown().as_deref(), Some("policy routing rules"));
    bench.ip(&["rule del from 10.0.0.2 table 100"]);
    bench.run("ip -6 rule add tos 8 table main");
    assert_eq!(unknown().as_deref(), Some("policy routing rules"));
    bench.run("ip -6 rule del tos 8 table main");
    assert_eq!(unknown(), None);
    bench.run("tc qdisc add dev p2 root pfifo limit 10");
    assert_eq!(unknown().as_deref(), Some("traffic control (pfifo) at p2"));
    bench.run("tc qdisc del dev p2 root");
    assert_eq!(unknown(), None);
}

/// A route of the tests: see [`bench`].
#[test]
fn ip_reads_the_specifications() {
    let spec = RouteSpec { prefix: "10.64.0.0/12".into(), way: "via 10.0.1.2 dev p1".into(), more: "metric 5".into() };
    assert_eq!(spec.words("add"), "route add 10.64.0.0/12 via 10.0.1.2 dev p1 metric 5");
}
