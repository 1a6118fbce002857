"""Files of other tools as input of `import`, `infer` and `new topology`."""

from __future__ import annotations

import functools
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path

from damage import BYTES, NAMES, PLACES, Bytes
from harness import CaseResult, HostileCase, Make

from hostile_captures import CAPTURES

RECORDED = Path(__file__).parents[1] / "recorded"
CSV = b"time_s,video_kbps,rtt_ms\n" + b"".join(b"%d,%d,%d.5\n" % (n, 800 + n, 10 + n % 7) for n in range(1, 60))
IPERF2_CSV = b"".join(
    b"20260101120%03d,192.0.2.1,5001,192.0.2.2,40000,3,%d.0-%d.0,125000,1000000\n" % (n, n, n + 1) for n in range(9)
)
IPERF2_CSV += b"20260101120009,192.0.2.1,5001,192.0.2.2,40000,3,0.0-9.0,1125000,1000000\n"


def _events(content: bytes) -> bytes:
    document = json.loads(content)
    parts = [("start", document["start"]), *(("interval", each) for each in document["intervals"])]
    lines = [json.dumps({"event": event, "data": data}) for event, data in (*parts, ("end", document["end"]))]
    return "\n".join([*lines, ""]).encode()


def _flent(series: int = 3) -> bytes:
    return json.dumps(
        {
            "metadata": {"NAME": "tcp_download", "SERIES_META": {}, "T0": "2026-01-01T00:00:00.000000Z", "TITLE": "a"},
            "version": 4,
            "x_values": [0.0, 1.0, 2.0],
            "results": {f"series {number}": [1.0, 2.0, 3.0] for number in range(series)},
            "raw_values": {},
        }
    ).encode()


@functools.cache
def files() -> dict[str, bytes]:
    """Return a file of each format, by its name."""
    iperf3 = (RECORDED / "traffic/iperf3-tcp.client.json").read_bytes()
    return {
        "a.csv": CSV,
        "a.flent": _flent(),
        "irtt.json": (RECORDED / "foreign/irtt.json").read_bytes(),
        "iperf3.json": iperf3,
        "events.json": _events(iperf3),
        "iperf3.txt": (RECORDED / "foreign/iperf3-tcp.client.txt").read_bytes(),
        "iperf.txt": (RECORDED / "foreign/iperf-two-streams.client.txt").read_bytes(),
        "iperf.csv": IPERF2_CSV,
        "a.pcapng": (RECORDED / "capture/four-streams.pcapng").read_bytes(),
    }


OF_TEXTS = ("a.csv", "a.flent", "iperf3.json")
"""Files with names that the report shows."""


def write_file(name: str, content: bytes, change: Bytes = bytes) -> Make:
    """Write one file, damaged by `change`."""
    return lambda folder: (folder / name).write_bytes(change(content))


def convert_case(folder: Path, found: CaseResult) -> None:
    """Check that an import is complete or absent."""
    made = folder / "made"
    assert made.exists() == (found.status == 0)
    if found.status == 0:
        record = json.loads((made / "import.json").read_text())
        assert record["files"] and (made / "report.html").stat().st_size < 6_000_000
        page = (made / "report.html").read_text()
        assert "<script>alert(0)" not in page


def import_case(name: str, make: Make, arguments: tuple[str, ...], statuses: tuple[int, ...] = (0, 2)) -> HostileCase:
    """Return the case of an import."""
    words = ("import", "--to", "made", "--", *arguments)
    return HostileCase(name, make, words, statuses, writes=("made", "made/*"), check=convert_case)


LARGE: dict[str, tuple[str, bytes]] = {
    "flent: 20,000 series": ("a.flent", _flent(12_000)[:999_999] + b"}"),
    "flent: 10,000 whole series": ("a.flent", _flent(10_000)),
    "csv: 30,000 columns": (
        "a.csv",
        b"time_s," + b",".join(b"c%d_kbps" % n for n in range(30_000)) + (b"\n1" + b",1" * 30_000) * 3 + b"\n",
    ),
    "csv: 100,000 rows": ("a.csv", b"time_s,a_kbps\n" + b"".join(b"%d,1\n" % n for n in range(1, 100_000))),
    "csv: 200 columns of 2,000 rows": (
        "a.csv",
        b"time_s,"
        + b",".join(b"c%d_ms" % n for n in range(200))
        + b"".join(b"\n%d" % n + b",1" * 200 for n in range(2000)),
    ),
    "csv: a quotation mark without end": ("a.csv", b'time_s,a_kbps\n1,"' + b"x\n" * 400_000),
    "csv: one column repeated": ("a.csv", b"time_s" + b",a_kbps" * 100_000 + b"\n"),
    "irtt: 20,000 round trips": (
        "a.json",
        b'{"version": {"irtt": "0.9.0", "json_format": 1}, "round_trips": [' + b"{}," * 300_000 + b"{}]}",
    ),
    "iperf3: 100,000 streams": (
        "a.json",
        b'{"start": {"version": "iperf 3.12", "connected": [' + b"{}," * 300_000 + b'{}]}, "intervals": [], "end": {}}',
    ),
    "iperf3: 100,000 intervals": (
        "a.json",
        b'{"start": {"version": "iperf 3.12", "connected": []}, "intervals": [' + b'{"streams":[]},' * 60_000 + b"{}]}",
    ),
    "iperf3 text: 1.2.3.4 ms": (
        "a.txt",
        (RECORDED / "foreign/iperf3-udp.server.txt").read_bytes().replace(b"0.017 ms", b"1.2.3.4 ms"),
    ),
    "iperf text: many streams": (
        "a.txt",
        b"".join(b"[%3d] local 127.0.0.1 port 5391 connected with 127.0.0.1 port %d\n" % (n, n) for n in range(12_000)),
    ),
}
"""Files of at most 1 MB that are expensive to read."""


def import_cases() -> Iterator[HostileCase]:
    """Yield the cases of `import`."""
    for name, content in files().items():
        yield import_case(f"import {name}: whole", write_file(name, content), (name,), (0,))
        for damage, change in BYTES.items():
            yield import_case(f"import {name}: {damage}", write_file(name, content, change), (name,))
    for name, (given, content) in LARGE.items():
        yield import_case(f"import {name}", write_file(given, content), (given,))
    for name, (content, _) in CAPTURES.items():
        yield import_case(f"import capture: {name}", write_file("a.pcapng", content), ("a.pcapng",))
    for name in OF_TEXTS:
        content = files()[name]
        for place, put in PLACES.items():
            yield import_case(
                f"import in the place of {name}: {place}",
                lambda folder, put=put, name=name, content=content: put(folder / name, content),  # type: ignore[misc]
                (name,),
                (2,),
            )
        for kind, given in NAMES.items():
            full = os.fsdecode(given + Path(name).suffix.encode())
            yield import_case(f"import of a name: {kind}, {name}", write_file(full, content), (full,))
    yield import_case(
        "import of 30 files",
        lambda folder: [(folder / f"{n}.csv").write_bytes(CSV) for n in range(30)],
        tuple(f"{n}.csv" for n in range(30)),
    )
    yield import_case("import of one file 30 times", write_file("a.csv", CSV), ("a.csv",) * 30)


def infer_cases() -> Iterator[HostileCase]:
    """Yield the cases of `infer`; the second capture is intact."""
    whole = files()["a.pcapng"]
    made: dict[str, Bytes] = {name: lambda _, made=made: made for name, (made, _) in CAPTURES.items()}  # type: ignore[misc]
    for name, change in (made | BYTES).items():

        def make(folder: Path, change: Bytes = change) -> None:
            (folder / "before.pcapng").write_bytes(change(whole))
            (folder / "after.pcapng").write_bytes(whole)

        yield HostileCase(f"infer: {name}", make, ("infer", "before.pcapng", "after.pcapng"), (0, 2, 3))


CONTAINERLAB = """\
name: three
topology:
  nodes:
    r1: {kind: linux, image: frr}
    r2: {kind: cisco_iol, image: "iol:17"}
    PC1: {kind: linux, image: multitool}
  links:
    - endpoints: ["r1:eth1", "r2:Ethernet0/1"]
    - endpoints: ["PC1:eth1", "r1:eth2"]
"""
NETLAB = """\
defaults.device: iosv
nodes: [r-1, r-2]
links:
- r-1:
  r-2:
  bandwidth: 2000
  prefix: 10.42.42.0/30
"""
ALIASES = "a0: &a0 [1,1,1,1,1,1,1,1]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 8)}]\n" for n in range(1, 20)
)
TOPOLOGIES: dict[str, str] = {
    "containerlab: aliases": CONTAINERLAB + ALIASES,
    "containerlab: an alias of itself": CONTAINERLAB + "x: &x [*x]\n",
    "containerlab: a tag": CONTAINERLAB + "x: !!python/object/apply:os.system ['touch PWNED']\n",
    "containerlab: a link to itself": CONTAINERLAB.replace('"r2:Ethernet0/1"', '"r1:eth1"'),
    "containerlab: a name with a line end": CONTAINERLAB.replace("r2", '"r\\nFORGED"'),
    "containerlab: a kind with a line end": CONTAINERLAB.replace("cisco_iol", '"x\\n::error::x\\nFORGED"'),
    "containerlab: a kind with escape sequences": CONTAINERLAB.replace("cisco_iol", '"x\\e[2J"'),
    "containerlab: a startup configuration elsewhere": CONTAINERLAB.replace(
        "kind: cisco_iol", "kind: cisco_iol, startup-config: /etc/passwd"
    ),
    "containerlab: 20,000 nodes": CONTAINERLAB.replace(
        "  links:", "".join(f"    n{n}: {{kind: linux}}\n" for n in range(20_000)) + "  links:"
    ),
    "containerlab: 5,000 links": CONTAINERLAB + '    - endpoints: ["r1:eth1", "r2:Ethernet0/1"]\n' * 5_000,
    "containerlab: nodes that are a list": re.sub("nodes:.*links", "nodes: [1, 2]\n  links", CONTAINERLAB, flags=re.S),
    "containerlab: links that are text": CONTAINERLAB[: CONTAINERLAB.index("    - end")] + "    x\n",
    "containerlab: an endpoint that is a number": CONTAINERLAB.replace('"PC1:eth1"', "7"),
    "containerlab: an endpoint without interface": CONTAINERLAB.replace('"PC1:eth1"', '"PC1"'),
    "containerlab: an interface of many digits": CONTAINERLAB.replace("eth2", "eth" + "9" * 5000),
    "containerlab: a rate of many digits": CONTAINERLAB + "      mtu: " + "9" * 5000 + "\n",
    "netlab: a bandwidth of many digits": NETLAB.replace("2000", "9" * 5000),
    "netlab: a bandwidth that is a list": NETLAB.replace("2000", "[1]"),
    "netlab: a bandwidth below zero": NETLAB.replace("2000", "-1"),
    "netlab: a bandwidth that is not a number": NETLAB.replace("2000", ".nan"),
    "netlab: a prefix without end": NETLAB.replace("10.42.42.0/30", "10." * 9000),
    "netlab: aliases": NETLAB + ALIASES,
    "netlab: an include": NETLAB + "includes: [/etc/passwd]\n",
    "netlab: a node of no text": NETLAB.replace("r-1", "[1]"),
    "netlab: a node with a line end": NETLAB.replace("r-2", '"r\\nFORGED"'),
    "netlab: a group in itself": NETLAB + "groups:\n  g: {members: [g, r-1]}\n",
    "netlab: 20,000 nodes": NETLAB.replace("r-2]", "r-2, " + ", ".join(f"n{n}" for n in range(20_000)) + "]"),
    "netlab: 5,000 links": NETLAB + "- [r-1, r-2]\n" * 5_000,
}


def topology_cases() -> Iterator[HostileCase]:
    """Yield the cases of `new topology`."""
    words = ("new", "topology", "a.clab.yml", "--to", "made.yml")

    def case(name: str, make: Make, statuses: tuple[int, ...] = (0, 2)) -> HostileCase:
        return HostileCase(f"topology of {name}", make, words, statuses, writes=("made.yml",))

    for kind, text in (("containerlab", CONTAINERLAB), ("netlab", NETLAB)):
        yield case(f"{kind}: whole", write_file("a.clab.yml", text.encode()), (0,))
        for damage, change in BYTES.items():
            yield case(f"{kind}: {damage}", write_file("a.clab.yml", text.encode(), change))
    for name, text in TOPOLOGIES.items():
        yield case(name, write_file("a.clab.yml", text.encode()))
    for name, put in PLACES.items():
        yield case(name, lambda folder, put=put: put(folder / "a.clab.yml", NETLAB.encode()), (2,))  # type: ignore[misc]


def cases() -> Iterator[HostileCase]:
    """Yield all cases of this module."""
    yield from import_cases()
    yield from infer_cases()
    yield from topology_cases()
