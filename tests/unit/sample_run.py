"""Builder of a run folder for tests: real outputs of real tools in their places, with made-up router counters."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from fake_router import interface_counters

from qoslab.model.comparison import PublishedValue
from qoslab.model.drops import DROP_REASONS
from qoslab.model.experiment import Arm, Experiment
from qoslab.results import (
    CaptureRecord,
    Cell,
    CellRecord,
    CellSummary,
    FlowRecord,
    Health,
    Manifest,
    ObservedCommand,
    RunFolder,
    Step,
)
from qoslab.results.sealed_files import add_seal, compute_seal, seals
from qoslab.traffic import find_tool

RECORDED = Path(__file__).parents[1] / "recorded"
STARTED = datetime.fromtimestamp(1795226020, UTC)
"""Second in which the recorded capture begins."""

EXPERIMENT: dict[str, Any] = {
    "name": "policing-vs-shaping",
    "title": "Policing versus shaping",
    "description": "Four parallel TCP streams cross a router that polices or shapes to 1 Mb/s.",
    "topology": {
        "nodes": {
            "client": {"platform": "host"},
            "R1": {"platform": "ios", "model": "3725"},
            "server": {"platform": "host"},
        },
        "links": [
            {
                "name": "lan",
                "rate": "100 Mb/s",
                "ends": [
                    {"node": "client", "interface": "eth0", "address": "192.168.10.2/24"},
                    {"node": "R1", "interface": "FastEthernet0/0", "address": "192.168.10.1/24"},
                ],
            },
            {
                "name": "wan",
                "rate": "100 Mb/s",
                "ends": [
                    {"node": "R1", "interface": "FastEthernet0/1", "address": "192.168.20.1/24"},
                    {"node": "server", "interface": "eth0", "address": "192.168.20.2/24"},
                ],
            },
        ],
    },
    "duration": "4 s",
    "tcp": "legacy-2008",
    "traffic": [
        {"name": "transfer", "tool": "iperf3", "from": "client", "to": "server", "streams": 4, "window": "16 KiB"}
    ],
    "arms": [
        {"name": "policed", "title": "Policed to 1 Mb/s"},
        {"name": "shaped", "title": "Shaped to 1 Mb/s"},
    ],
    "captures": [{"name": "server", "node": "server", "interface": "eth0", "filter": "tcp"}],
    "observe": [
        {"node": "R1", "command": "show policy-map interface", "when": ["before", "during"]},
    ],
    "compare": {
        "article": "Policing versus shaping",
        "published": "published.csv",
        "expectations": [
            {"arm": "policed", "metric": "police.bc", "equals": "31250 B"},
            {"arm": "policed", "metric": "police.exceed_share", "between": ["28 %", "38 %"], "reason": "TCP probes."},
            {"arm": "policed", "metric": "goodput.spread", "at_most": 1.03},
            {"arm": "shaped", "metric": "shape.active.during", "equals": 1},
            {"arm": "shaped/policed", "metric": "goodput.sum", "at_least": 1.0},
        ],
    },
}

AVERAGED: dict[str, Any] = EXPERIMENT | {
    "compare": EXPERIMENT["compare"]
    | {"averages": [{"title": "All transfers", "arm": "policed", "metric": "goodput.sum", "at_least": "2 Mb/s"}]}
}
"""Experiment with an average that fails."""

PUBLISHED = (
    PublishedValue("policed", "goodput.sum", "b/s", 841_000.0, "Iperf, [SUM]"),
    PublishedValue("policed", "police.exceed_share", "fraction", 0.3256, "show policy-map interface"),
    PublishedValue("shaped", "goodput.sum", "b/s", 962_000.0, "Iperf, [SUM]"),
    PublishedValue("shaped/policed", "goodput.sum", "ratio", 1.14, "text"),
)

HEALTH = {
    "received": 4321,
    "transmitted": 4300,
    "lost_input": 0,
    "malformed": 0,
    "unsent": 0,
    "late_arrivals": 0,
    "lateness_ns": {"max": 812_000, "p50": 21_000, "p99": 103_000, "p999": 402_000, "count": 4300},
    "late_over_budget": 0,
    "behind_ns": 0,
    "budget_ns": 5_000_000,
}


def counted_value(packets: int = 0) -> dict[str, int]:
    return {"packets": packets, "bytes": packets * 1514}


def policer_counters(sent: int, exceeded: int) -> dict[str, Any]:
    """Return the counters of a policer of 1 Mb/s that has passed and dropped so many packets."""
    return {
        "form": "cir",
        "cir_bps": 1_000_000,
        "cir_percent": None,
        "bc_bytes": 31_250,
        "pir_bps": None,
        "pir_percent": None,
        "be_bytes": None,
        "conformed": {**counted_value(sent), "rate_bps": 1e6},
        "exceeded": {**counted_value(exceeded), "rate_bps": 5e5},
        "violated": None,
        "tokens_lost": {"bytes": 0, "longest_ns": 0},
        "dynamic": None,
    }


def shaper_counters(sent: int, waiting: int) -> dict[str, Any]:
    """Return the counters of a shaper of 1 Mb/s that has sent and queued so many packets."""
    return {
        "mode": "average",
        "cir_bps": 1_000_000,
        "percent": None,
        "target_bps": 1_000_000,
        "bc_bits": 25_000,
        "be_bits": 25_000,
        "interval_ms": 25,
        "byte_limit": 6250,
        "increment_bytes": 3125,
        "active": waiting > 0,
        "sent": counted_value(sent),
        "delayed": counted_value(sent),
    }


def queue_counters(sent: int, waiting: int) -> dict[str, Any]:
    """Return the counters of a weighted fair queue with so many sent and waiting packets."""
    return {
        "discipline": "weighted_fair",
        "limit_packets": 1000,
        "depth_packets": waiting,
        "depth_bytes": waiting * 1514,
        "in_ring_packets": 0,
        "per_flow_limit": None,
        "flows": 4,
        "max_flows": 256,
        "output": counted_value(sent),
    }


def class_counters(second: float, *, police: bool = False, shape: bool = False) -> dict[str, Any]:
    """Return the counters of a class after some seconds: 125 packets a second offered, a third of them exceeding."""
    offered = round(125 * max(second, 0))
    exceeded = offered // 3 if police else 0
    waiting = min(offered, 40) if shape else 0
    sent = offered - exceeded - waiting
    return {
        "name": "class-default",
        "match": "any",
        "criteria": [{"packets": offered, "bytes": offered * 1514, "rate_bps": 0.0}],
        **counted_value(offered),
        "offered_rate_bps": 1.5e6,
        "drop_rate_bps": 0.0,
        "drops": {name: counted_value(exceeded if name == "police" else 0) for name in DROP_REASONS},
        "set": [],
        "map": [],
        "police": policer_counters(sent, exceeded) if police else None,
        "shape": shaper_counters(sent, waiting) if shape else None,
        "queue": queue_counters(sent, waiting) if shape else None,
        "child": None,
    }


def counters_reply(second: float, policy: str, **kind: bool) -> dict[str, Any]:
    """Return a reply of the control socket, `second` seconds after the traffic's start."""
    port = {"packets": 10, "bytes": 15140, "rate_bps": 1e6, "rate_pps": 83.0, "drops": 0}
    return {
        "ok": True,
        "time_ns": int(STARTED.timestamp() * 1e9) + round(second * 1e9),
        "uptime_ns": 1,
        "interfaces": {
            "FastEthernet0/1": interface_counters(
                input=port,
                output=port,
                policy_output={"policy": policy, "classes": [class_counters(second, **kind)]} if kind else None,
            )
        },
        "access_lists": {},
    }


def write_traffic(cell: Cell, model: Experiment, arm: Arm, *, traffic: Path | None, capture: Path | None) -> None:
    """Write the output of the tools, from the folder `traffic` or recorded, and a capture."""
    for flow in model.arm_flows(arm):
        suffix = find_tool(flow.tool).suffix
        for side in ("client", "server"):
            recorded = RECORDED / "traffic" / f"{flow.tool}-{flow.protocol}.{side}.{suffix}"
            file = traffic / f"{side}.{suffix}" if traffic else recorded
            cell.write(cell.traffic(flow.name, side, suffix), file.read_text())
    shutil.copyfile(capture or RECORDED / "capture" / "four-streams.pcapng", cell.capture("server"))


def write_router(cell: Cell, arm: Arm, seconds: float, begun: datetime) -> None:
    """Write counters for each half second from before the traffic until after it, and the router's configuration."""
    kind = {word: True for word in ("police", "shape") if word in arm.name}
    late = (begun - STARTED).total_seconds()
    for half in range(-2, int(seconds * 2) + 3):
        reply = counters_reply(half / 2, next(iter(kind), "").capitalize(), **kind)
        reply["time_ns"] += round(late * 1e9)
        cell.append_counters("R1", reply)
    policy = "shape average 1000000" if "shape" in kind else "police cir 1000000"
    if kind:
        cell.write(
            cell.configuration("R1.ios"),
            f"policy-map Policy\n class class-default\n  {policy}\n!\n"
            "interface FastEthernet0/1\n service-policy output Policy\n",
        )
    cell.write(cell.configuration("R1.before.ios"), "hostname R1\n!\nend\n")


def write_observations(cell: Cell) -> tuple[ObservedCommand, ...]:
    """Write the output of the router before and during the traffic."""
    observed = []
    for moment in ("before", "during"):
        base = cell.observation("R1", moment, "show policy-map interface")  # type: ignore[arg-type]
        cell.write(base.with_name(base.name + ".txt"), f" FastEthernet0/1\n\n  Service-policy output: <{moment}>\n")
        observed.append(
            ObservedCommand(
                device="R1",
                moment=moment,  # type: ignore[arg-type]
                command="show policy-map interface",
                file=base.relative_to(cell.path).as_posix(),
            )
        )
    return tuple(observed)


def cell_record(
    arm: Arm, seconds: float, begun: datetime, reasons: tuple[str, ...], observed: tuple[ObservedCommand, ...]
) -> CellRecord:
    """Return the record of one punctual flow."""
    flow = {"traffic": "transfer", "source": "192.168.10.2", "destination": "192.168.20.2", "port": 5201}
    return CellRecord(
        arm=arm.name,
        repetition=1,
        valid=not reasons,
        reasons=reasons,
        steps=(
            Step(name="apply", started=begun - timedelta(seconds=3), ended=begun - timedelta(seconds=1)),
            Step(name="traffic", started=begun, ended=begun + timedelta(seconds=seconds)),
        ),
        flows=(FlowRecord.model_validate({**flow, "started": begun}),),
        observed=observed,
        captures={"server": CaptureRecord(received=628, dropped=0)},
        health={"R1": Health.model_validate(HEALTH)},
    )


def make_run(
    root: Path,
    *,
    experiment: Mapping[str, Any] = EXPERIMENT,
    valid: bool = True,
    traffic: Mapping[str, Path] | None = None,
    captures: Mapping[str, Path] | None = None,
    started: Mapping[str, datetime] | None = None,
    published: tuple[PublishedValue, ...] = PUBLISHED,
) -> RunFolder:
    """Make a run of two (or more) arms.

    Each arm has a folder with client.json and server.json, a pcapng, and the traffic's start.
    """
    model = Experiment.model_validate_json(json.dumps(experiment))
    run = RunFolder.create(root, model.name, STARTED)
    run.write_experiment(json.dumps(experiment, indent=1))
    summaries = []
    for arm in model.arms:
        cell = run.cell(arm.name)
        begun = (started or {}).get(arm.name, STARTED)
        write_traffic(cell, model, arm, traffic=(traffic or {}).get(arm.name), capture=(captures or {}).get(arm.name))
        cell.write_experiment(model.model_copy(update={"arms": (arm,), "compare": None}))
        write_router(cell, arm, model.duration.seconds, begun)
        reasons = () if valid or arm is not model.arms[0] else ("R1: the kernel dropped 7 frames",)
        cell.write_record(cell_record(arm, model.duration.seconds, begun, reasons, write_observations(cell)))
        summaries.append(
            CellSummary(arm=arm.name, repetition=1, record=cell.files().seal, valid=not reasons, reasons=reasons)
        )
    run.write_manifest(
        Manifest(
            experiment=model,
            published=published,
            started=STARTED,
            ended=STARTED + timedelta(seconds=60),
            versions={"qoslab": "0.1.0", "iperf3": "iperf 3.12"},
            commit="0123456789ab",
            machine={"kernel": "6.1.0", "cpus": 2},
            sysctls={"client": {"net.ipv4.tcp_sack": "0"}},
            offloads={"client:eth0": {"tso": False}},
            seeds={"experiment": 1},
            configurations={"policed/R1": "ab" * 32},
            cells=tuple(summaries),
        )
    )
    run.publish()
    return run


def make_run_of_one_arm(root: Path) -> RunFolder:
    """Make a run of one arm, for tests that read a run repeatedly."""
    compare = EXPERIMENT["compare"]
    expected = [each for each in compare["expectations"] if each["arm"] == "policed"]
    experiment = EXPERIMENT | {"arms": EXPERIMENT["arms"][:1], "compare": compare | {"expectations": expected}}
    return make_run(root, experiment=experiment, published=tuple(each for each in PUBLISHED if each.arm == "policed"))


def cells_of(run: RunFolder) -> list[Cell]:
    """Folders of the cells, for tests that write to them."""
    return [Cell(run.path / each.place, each.identity, 1) for each in run.manifest().cells]


def change_json(path: Path, change: Callable[[Any], None]) -> None:
    """Change a record and reseal it, like a forger."""
    content = json.loads(path.read_text())
    content.pop("seal", None)
    change(content)
    path.write_bytes(add_seal((json.dumps(content, indent=2) + "\n").encode()))


def reseal(run: Path) -> None:
    """Reseal a changed run: its cells, and its manifest if it can be read."""
    records = {}
    for path in run.glob("cells/**/cell.json"):
        files = {name: seal.model_dump() for name, seal in seals(path.parent).items()}
        with suppress(OSError, ValueError, LookupError, AttributeError, TypeError, RecursionError):
            change_json(path, lambda record, files=files: record.update(files=files))  # type: ignore[misc]
        records[path.parent.relative_to(run).as_posix()] = compute_seal(path).model_dump()

    def change(manifest: Any) -> None:
        for cell in manifest["cells"]:
            if cell.get("record") is not None:
                cell["record"] = records.get(cell.get("folder") or f"cells/{cell['arm']}/{cell['repetition']}")

    with suppress(OSError, ValueError, LookupError, AttributeError, TypeError, RecursionError):
        change_json(run / "manifest.json", change)
