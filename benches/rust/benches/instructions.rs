//! Instructions per packet (divide by 20 000), which do not depend on how busy the machine is. Needs valgrind and
//! `gungraun-runner` of the version in `Cargo.toml`.
#![allow(missing_docs)]
// The harness prints.
#![allow(clippy::disallowed_macros)]

mod load;

use gungraun::{library_benchmark, library_benchmark_group, main};
use load::switch::SwitchLoad;
use load::{Kind, Load};
use qos_core::wire::Framing;
use std::hint::black_box;

fn fifo(flows: u32) -> Load {
    Load::new(Kind::Fifo, flows)
}
fn policer(flows: u32) -> Load {
    Load::new(Kind::Policer, flows)
}
fn classic_shaper(flows: u32) -> Load {
    Load::new(Kind::ClassicShaper, flows)
}
fn hqf_shaper(flows: u32) -> Load {
    Load::new(Kind::HqfShaper, flows)
}
fn fair_queue(flows: u32) -> Load {
    Load::new(Kind::FairQueue, flows)
}
fn weighted_fair(flows: u32) -> Load {
    Load::new(Kind::WeightedFair, flows)
}

#[library_benchmark]
#[benches::fifo(args = [1, 1_000, 100_000], setup = fifo)]
#[benches::policer(args = [1, 1_000, 100_000], setup = policer)]
#[benches::classic_shaper(args = [1, 1_000, 100_000], setup = classic_shaper)]
#[benches::hqf_shaper(args = [1, 1_000, 100_000], setup = hqf_shaper)]
#[benches::fair_queue(args = [1, 1_000, 100_000], setup = fair_queue)]
#[benches::weighted_fair(args = [1, 1_000, 100_000], setup = weighted_fair)]
fn port(mut load: Load) -> (usize, Load) {
    (load.pass(), load)
}

fn hqf(classes: u16, flows: u32) -> Load {
    Load::new(Kind::Hqf(classes), flows)
}
fn classic(classes: u16, flows: u32) -> Load {
    Load::new(Kind::Classic(classes), flows)
}
fn access_lists(classes: u16) -> Load {
    Load::new(Kind::HqfAccessLists(classes), 1)
}

// Classes, and flows (of which there is at least one in each class).
#[library_benchmark]
#[benches::hqf(args = [
    (1, 1), (1, 1_000), (1, 100_000), (10, 1), (10, 1_000), (10, 100_000),
    (100, 1), (100, 1_000), (100, 100_000), (1_000, 1), (1_000, 1_000), (1_000, 100_000),
], setup = hqf)]
#[benches::classic(args = [
    (1, 1), (1, 1_000), (1, 100_000), (10, 1), (10, 1_000), (10, 100_000),
    (100, 1), (100, 1_000), (100, 100_000), (1_000, 1), (1_000, 1_000), (1_000, 100_000),
], setup = classic)]
#[benches::hqf_access_lists(args = [1, 10, 100, 1_000], setup = access_lists)]
fn scheduler(mut load: Load) -> (usize, Load) {
    (load.pass(), load)
}

fn srr(ports: usize) -> SwitchLoad {
    SwitchLoad::new(ports, false)
}
fn short_memory(ports: usize) -> SwitchLoad {
    SwitchLoad::new(ports, true)
}

#[library_benchmark]
#[benches::srr(args = [1, 8, 24, 48], setup = srr)]
#[benches::short_memory(args = [1, 8, 24, 48], setup = short_memory)]
fn switch(mut load: SwitchLoad) -> (usize, SwitchLoad) {
    (load.pass(), load)
}

fn frames(flows: u32) -> Vec<Vec<u8>> {
    (0..flows).map(|flow| load::frame(flow, 64)).collect()
}

#[library_benchmark]
#[bench::short(frames(20_000))]
fn parse(frames: Vec<Vec<u8>>) -> (u64, Vec<Vec<u8>>) {
    let key =
        frames.iter().fold(0, |key, frame| key ^ black_box(qos_core::frame::parse(frame, Framing::Ethernet)).flow);
    (key, frames)
}

library_benchmark_group!(name = engine; benchmarks = port, scheduler, switch, parse);
main!(library_benchmark_groups = engine);
