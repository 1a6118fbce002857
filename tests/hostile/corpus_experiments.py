"""Malicious experiment files, templates, capture filters and folders."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

from damage import BYTES, NAMES, PLACES, Bytes
from harness import CaseResult, HostileCase, Make

from hostile_files import BASE, TEMPLATED, hostile_experiments

Files = dict[str, str | bytes]
NUMBERS = ", ".join(map(str, range(1, 900)))
FLOW = "  - {{name: f{0}, tool: iperf3, from: client, to: server, start_after: $(p) s, window: $(p) kB}}\n"
CONFIGURE = "- {name: one, configure: {R1: {template: t.j2, variables: {p: $(p)}}}}"


def folder(files: Files, below: str = "", **damaged: Bytes) -> Make:
    """Write files; those in `damaged` (names without suffix) are damaged."""

    def make(place: Path) -> None:
        for name, content in files.items():
            path = place / below / name
            path.parent.mkdir(parents=True, exist_ok=True)
            change = damaged.get(path.stem, bytes)
            path.write_bytes(
                change(content if isinstance(content, bytes) else content.encode("utf-8", "surrogatepass"))
            )

    return make


def quotes_nothing(place: Path, found: CaseResult) -> None:
    """Check that no code ran and no file of the machine is quoted."""
    assert not list(place.rglob("PWNED")) and "root:" not in found.text


def costly_template() -> Iterator[tuple[str, Files]]:
    """Yield small files whose validation takes long if only characters are counted."""
    first, arms = BASE.split("traffic:\n")[0], "arms:\n  - name: one\n"
    many = first + "traffic:\n" + "".join(FLOW.format(number) for number in range(450)) + arms
    yield "450 flows of 899 values", {"e.yml": f"{many}matrix: {{p: [{NUMBERS}]}}\n"}
    shown = BASE.replace("- name: one", CONFIGURE)
    line = "access-list 101 permit udp any any eq {{ p }}\n"
    for number, values in ((1000, 70), (3000, 20), (300, 300)):
        yield (
            f"a template of {number} lines for {values} values",
            {"e.yml": f"{shown}matrix: {{p: {list(range(1, values + 1))}}}\n", "t.j2": line * number},
        )
    names = BASE.replace(
        "    client: {", "".join(f"    n{n}: {{platform: host}}\n" for n in range(3000)) + "    client: {"
    )
    yield "3,000 nodes without links", {"e.yml": names}
    flows = "".join(f"  - {{name: f{n}, tool: iperf3, from: client, to: server}}\n" for n in range(5000))
    yield "5,000 flows", {"e.yml": BASE.replace("arms:", flows + "arms:")}
    yield "5,000 arms", {"e.yml": BASE + "".join(f"  - name: a{n}\n" for n in range(5000))}
    notes = "".join(f'  - {{title: A{n}, text: "{{one goodput.sum}}"}}\n' for n in range(4000))
    yield "4,000 notes", {"e.yml": f"{BASE}notes:\n{notes}"}
    yield "a key 15,000 times", {"e.yml": BASE + "seed: 1\n" * 15_000}
    yield "a comment of 1 MB", {"e.yml": BASE + "# " + "x" * 1_000_000}
    yield "1 MB of line ends", {"e.yml": BASE + "\n" * 1_000_000}
    yield "a text of 60,000 line ends", {"e.yml": BASE.replace("title: One", "title: |\n" + "  x\n" * 60_000)}
    yield "1,000 documents", {"e.yml": BASE + "---\n" * 1000}


FILTERS: dict[str, str] = {
    "4,000 ports": " or ".join(f"port {n}" for n in range(1, 4000)),
    "101 ports": " or ".join(f"port {n}" for n in range(1, 102)),
    "conjunctions of disjunctions": " and ".join(["(port 1 or port 2 or port 3)"] * 60),
    "a host name": "host leak.qoslab-test.example",
    "a bare name": "leak.qoslab-test.example",
    "a network name": "net corp",
    "a name of hexadecimal digits": "host de.ad",
    "a quoted name": "host \\leak",
    "a gateway": "gateway leak.example",
    "an Ethernet name": "ether host leak",
    "a name between brackets": "(host (leak.example))",
    "a name after a colon": "host 10.0.0.1 or leak.example:80",
    "a name in capitals": "HOST LEAK.EXAMPLE",
    "a name with digits": "host 3com.example",
    "a name of Unicode": "host lé.example",
    "an unknown service": "port nosuchservice",
    "brackets": "(" * 900,
    "not": "not " * 400 + "tcp",
    "exclamation marks": "!" * 2000 + "tcp",
    "arithmetic": "len > " + "1 + " * 400 + "1",
    "nested offsets": "ip[" * 300 + "0" + "]" * 300,
    "digits": "port " + "9" * 1900,
    "a NUL": "tcp\\0",
    "line ends": "tcp\\n::error::FORGED\\nFORGED",
    "escape sequences": "tcp \\e[2J",
    "an option": "-D",
    "a shell": "tcp; touch PWNED $(touch PWNED)",
    "protochain": " or ".join(["ip6 protochain 6"] * 60),
    "vlan": " and ".join(["vlan 1"] * 60),
    "byte offsets": " or ".join(f"tcp[{n}:4] & 0xff != {n}" for n in range(60)),
    "portranges": " or ".join(f"portrange {n}-{n + 500}" for n in range(1, 60)),
    "networks": " or ".join(f"net 10.{n}.0.0/16" for n in range(60)),
}
FILES = r"e\.yml|t\.j2|p\.csv|/etc/passwd"
"""Files by name; every message names the file."""
VALID = {"byte offsets", "portranges", "networks", "protochain", "vlan", "arithmetic", "conjunctions of disjunctions"}
"""Filters that may be valid."""
TITLES: dict[str, str] = {
    "workflow commands": "a\n::error file=README.md,line=1::FORGED\n::stop-commands::x\nFORGED",
    "a carriage return": "a\rFORGED",
    "escape sequences": "a\x1b[2J\x1b]52;c;x\x07\x9b31m",
    "order of writing": "a\u202egnp",
    "line separators": "a\u2028FORGED\x85FORGED\x0bFORGED",
    "markup": "[red][/x][link=file:///etc/passwd]x",
    "nothing": "",
    "blanks": "   ",
    "100,000 characters": "x" * 100_000,
}
LISTED: dict[str, str] = {
    "a list": "[]",
    "lists in lists": "[" * 100_000,
    "many values": "[" + "[]," * 300_000 + "[]]",
    "many rows": json.dumps([{"verdict": "within"}] * 30_000),
    "a text": '"x"',
    "NaN": '[{"verdict": "within", "measured": NaN}]',
    "a verdict with line ends": '[{"verdict": "a\\n::error::x\\nFORGED", "metric": "\\u001b[2J"}]',
    "keys": "{" + ",".join(f'"{n}":1' for n in range(90_000)) + "}",
    "digits": "9" * 1_000_000,
    "NUL": "\0" * 100_000,
    "not UTF-8": "\udcff",
}
"""Replacements for a run's `comparison.json` and `manifest.json`."""


def filter_cases() -> Iterator[HostileCase]:
    """Yield the cases of capture filters; `run` compiles them before it starts a lab."""
    simulated = ("run", "e.yml", "--lab", "simulated", "--duration", "1s")
    for name, text in FILTERS.items():
        capture = f'captures:\n  - {{name: wire, node: server, interface: eth0, filter: "{text}"}}\n'
        make = folder({"e.yml": BASE + capture})
        yield HostileCase(f"validate a filter: {name}", make, ("validate", "e.yml"), (0, 2))
        if name in VALID:
            yield HostileCase(f"simulate a filter: {name}", make, simulated, (0, 2, 3), writes=("runs", "runs/*"))
        else:
            yield HostileCase(f"run a filter: {name}", make, ("run", "e.yml"), (2,), "found")


def list_cases() -> Iterator[HostileCase]:
    """Yield the cases of `list`, which must list the other experiments and runs."""
    good: Files = {"experiments/good.yml": BASE.replace("name: e", "name: good")}
    listed = r"experiments/good\.yml  One  \(one\)"

    def case(name: str, make: Make, says: str = listed) -> HostileCase:
        return HostileCase(f"list {name}", make, ("list",), (0,), says)

    for name, title in TITLES.items():
        text = BASE.replace("title: One", f"title: {json.dumps(title)}")
        yield case(f"a title: {name}", folder({**good, "experiments/e.yml": text}))
    for name, change in BYTES.items():
        yield case(f"an experiment: {name}", folder({**good, "experiments/e.yml": BASE}, e=change))
    for name, text in LISTED.items():
        content = text.encode("utf-8", "surrogateescape")
        run = "runs/e/20260101T000000Z"
        made: Files = {**good, f"{run}/comparison.json": content, f"{run}/manifest.json": content}
        yield case(f"a run: {name}", folder(made), listed + r"[\s\S]*runs/e/")
    for kind, put in PLACES.items():

        def place(here: Path, put=put) -> None:  # type: ignore[no-untyped-def]
            folder(good)(here)
            put(here / "experiments/e.yml", BASE.encode())
            run = here / "runs/e/20260101T000000Z"
            run.mkdir(parents=True)
            put(run / "comparison.json", b"[]")

        yield case(f"in the place of a file: {kind}", place)
    for kind, given in NAMES.items():
        name = os.fsdecode(given)
        made = {**good, f"experiments/{name}.yml": BASE, f"runs/{name}/20260101T000000Z/comparison.json": "[]"}
        yield case(f"a name: {kind}", folder(made))


def cases() -> Iterator[HostileCase]:
    """Yield all cases of this module."""
    for number, (name, files) in enumerate(hostile_experiments()):
        make = folder(files)
        yield HostileCase(f"validate {name}", make, ("validate", "e.yml"), (2,), FILES, check=quotes_nothing)
        if number % 4 == 0:
            yield HostileCase(f"plan {name}", make, ("plan", "e.yml"), (2,), FILES, check=quotes_nothing)
    for name, files in costly_template():
        for words in (("validate", "e.yml"), ("list",)):
            make = folder(files, "experiments" if words == ("list",) else "")
            yield HostileCase(f"{words[0]} {name}", make, words, (0, 2))
    for name, change in BYTES.items():
        yield HostileCase(f"validate damage: {name}", folder({"e.yml": BASE}, e=change), ("validate", "e.yml"), (0, 2))
        files = {"e.yml": TEMPLATED, "t.j2": 'hostname R1\naccess-list 101 remark "a" 1\n'}
        yield HostileCase(
            f"validate a damaged template: {name}", folder(files, t=change), ("validate", "e.yml"), (0, 2)
        )
    for kind, put in PLACES.items():
        for words in (("validate", "e.yml"), ("plan", "e.yml"), ("run", "e.yml", "--dry-run")):
            yield HostileCase(
                f"{words[0]} in the place of the file: {kind}",
                lambda here, put=put: put(here / "e.yml", BASE.encode()),  # type: ignore[misc]
                words,
            )

        def template(here: Path, put=put) -> None:  # type: ignore[no-untyped-def]
            folder({"e.yml": TEMPLATED})(here)
            put(here / "t.j2", b"hostname R1\n")

        yield HostileCase(f"validate in the place of a template: {kind}", template, ("validate", "e.yml"))
    for kind, given in NAMES.items():
        name = os.fsdecode(given) + ".yml"
        words = ("validate", "--", name)
        yield HostileCase(f"validate a name: {kind}", folder({name: BASE}), words, (0, 2))
        yield HostileCase(f"validate an absent name: {kind}", lambda here: None, words)
    yield from filter_cases()
    yield from list_cases()
