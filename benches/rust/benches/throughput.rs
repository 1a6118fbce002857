//! Time per packet, cache misses included. Only as good as the machine is quiet.
#![allow(missing_docs)]

mod load;

use criterion::{criterion_group, criterion_main, BenchmarkId, Criterion, Throughput};
use load::switch::SwitchLoad;
use load::{Kind, Load, PACKETS};

fn ports(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("port");
    group.throughput(Throughput::Elements(PACKETS as u64)).sample_size(10);
    for kind in [Kind::Fifo, Kind::Policer, Kind::ClassicShaper, Kind::HqfShaper, Kind::FairQueue, Kind::WeightedFair] {
        for flows in [1, 1_000, 100_000] {
            let mut load = Load::new(kind, flows);
            group.bench_function(BenchmarkId::new(format!("{kind:?}"), flows), |bencher| bencher.iter(|| load.pass()));
        }
    }
}

fn scheduler(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("scheduler");
    group.throughput(Throughput::Elements(PACKETS as u64)).sample_size(10);
    for classes in [1, 10, 100, 1_000] {
        for (name, kind) in [
            ("hqf", Kind::Hqf(classes)),
            ("classic", Kind::Classic(classes)),
            ("hqf_access_lists", Kind::HqfAccessLists(classes)),
        ] {
            let mut load = Load::new(kind, 1);
            group.bench_function(BenchmarkId::new(name, classes), |bencher| bencher.iter(|| load.pass()));
        }
    }
}

fn switch(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("switch");
    group.throughput(Throughput::Elements(PACKETS as u64)).sample_size(10);
    for ports in [1, 8, 24, 48] {
        for (name, short) in [("srr", false), ("short_memory", true)] {
            let mut load = SwitchLoad::new(ports, short);
            group.bench_function(BenchmarkId::new(name, ports), |bencher| bencher.iter(|| load.pass()));
        }
    }
}

criterion_group!(benches, ports, scheduler, switch);
criterion_main!(benches);
