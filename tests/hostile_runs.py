"""Run folders of an attacker, who reseals the changed files.

Each is the sample run of the tests with a change of its first cell, or of its records, the exit status of its report,
and the words of its message.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from qoslab.results.tables import SCHEMAS

CELL = "cells/policed/1"
Change = Callable[[Path], None]


def write_file(name: str, content: str | bytes) -> Change:
    """Return a change that writes a file of the cell."""

    def change(run: Path) -> None:
        path = run / CELL / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())

    return change


def change_manifest(name: str, how: Callable[[Any], object]) -> Change:
    """Return a change of a JSON file of the run."""

    def change(run: Path) -> None:
        path = run / name
        content = json.loads(path.read_text())
        how(content)
        path.write_text(json.dumps(content, indent=2))

    return change


def counter_line(how: Callable[[Any], object]) -> Change:
    """Return a change of each reply of the router's counters."""

    def change(run: Path) -> None:
        path = run / CELL / "counters/R1.jsonl"
        replies = [json.loads(line) for line in path.read_text().splitlines()]
        for reply in replies:
            how(reply)
        path.write_text("".join(json.dumps(reply) + "\n" for reply in replies))

    return change


def interface_counters(reply: Any) -> Any:
    """Return a change of the counters of the interface with the policy."""
    return reply["interfaces"]["FastEthernet0/1"]


def class_counters(reply: Any) -> Any:
    """Return a change of the rows of the class."""
    policy = interface_counters(reply)["policy_output"]
    return policy["classes"][0]


def foreign_object(run: Path) -> None:
    """Add counters of a router outside the topology."""
    write_file("counters/R99.jsonl", (run / CELL / "counters/R1.jsonl").read_bytes())(run)


def mistyped_object(run: Path) -> None:
    """Add show output, of a router without counters, with a parsed value that no parser gives."""
    (run / CELL / "counters/R1.jsonl").unlink()
    write_file("observations/R1/during.show-policy-map-interface.json", '{"FastEthernet0/1": "x"}')(run)


def received_run(how: Callable[[Any], object]) -> Change:
    """Return a change of each interval of each stream in the report of the receiver."""
    return change_manifest(
        f"{CELL}/traffic/transfer.server.json",
        lambda text: [how(stream) for each in text["intervals"] for stream in each["streams"]],
    )


MANIFEST, RECORD, EXPERIMENT = "manifest.json", f"{CELL}/cell.json", f"{CELL}/experiment.json"
SCRIPT = "<script>alert(0)</script>"

RUNS: dict[str, tuple[Change, int, str]] = {
    "the same cell twice": (
        change_manifest(MANIFEST, lambda run: run["cells"].append(run["cells"][0])),
        2,
        r"manifest\.json: cells: .*found the cell policed/1 more than once",
    ),
    "a format of tomorrow": (
        change_manifest(MANIFEST, lambda run: run.update(format=999)),
        2,
        r"manifest\.json: found format 999, expected \d+",
    ),
    "no kind of lab": (
        change_manifest(MANIFEST, lambda run: run.update(lab="nonsense")),
        2,
        r'manifest\.json: lab: found the unknown lab kind "nonsense", expected one of virtual, simulated',
    ),
    "an arm elsewhere": (
        change_manifest(MANIFEST, lambda run: run["cells"][0].update(arm="../../../other", folder="")),
        2,
        r'manifest\.json: cells\.0\.arm: .*found the arm "\.\./\.\./\.\./other", expected a name',
    ),
    "a number below the first": (
        change_manifest(MANIFEST, lambda run: run["cells"][0].update(repetition=-1)),
        3,
        r"policed/-1: ",
    ),
    "a cell of no kind of lab": (
        change_manifest(RECORD, lambda cell: cell.update(lab="nonsense")),
        3,
        r'policed/1: cell\.json: lab: found the unknown lab kind "nonsense"',
    ),
    "the record of another cell": (
        change_manifest(RECORD, lambda cell: cell.update(arm="shaped")),
        3,
        r"policed/1: cell\.json: found the record of shaped/1, expected that of policed/1",
    ),
    "a record of other parameters": (
        change_manifest(RECORD, lambda cell: cell.update(parameters={"p": "9" * 4000})),
        3,
        r"policed/1: cell\.json: found the record of policed/p=9.*expected that of policed/1",
    ),
    "traffic that nobody recorded": (
        change_manifest(RECORD, lambda cell: cell.update(flows=[])),
        3,
        r'policed/1: cell\.json: found no traffic "transfer"',
    ),
    "traffic of another age": (
        change_manifest(RECORD, lambda cell: cell["flows"][0].update(started="0001-01-01T00:00:00Z")),
        3,
        r"policed/1: cell\.json: flows\.0\.started: .*found a time in the year 1, expected a year from 1970 to 2200",
    ),
    "an observation elsewhere": (
        change_manifest(RECORD, lambda cell: cell["observed"][0].update(file="observations/../../../../../secret")),
        3,
        r"policed/1: cell\.json: observed\.0\.file: ",
    ),
    "an experiment of another arm": (
        change_manifest(EXPERIMENT, lambda experiment: experiment["arms"][0].update(name="other")),
        3,
        r'policed/1: experiment\.json: found no arm "policed"',
    ),
    "an experiment without the traffic": (
        change_manifest(EXPERIMENT, lambda experiment: experiment.update(traffic=[])),
        3,
        r'policed/1: experiment\.json: found no traffic "transfer"',
    ),
    "an experiment of three years": (
        change_manifest(EXPERIMENT, lambda experiment: experiment.update(duration="99999999 s")),
        3,
        r"policed/1: experiment\.json: duration: found 99999999 s, expected at most 31622400 s",
    ),
    "an experiment of a year": (
        change_manifest(EXPERIMENT, lambda experiment: experiment.update(duration="31622400 s")),
        3,
        r"policed/1: iperf3 server, .*the test ended after 4\.2 s, expected 31622400 s",
    ),
    "a run of three years": (
        change_manifest(MANIFEST, lambda run: run["experiment"].update(duration="99999999 s")),
        2,
        r"manifest\.json: duration: found 99999999 s, expected at most 31622400 s",
    ),
    "traffic of the far future": (
        change_manifest(RECORD, lambda cell: cell["flows"][0].update(start_after_s=1e30)),
        3,
        r"policed/1: cell\.json: flows\.0\.start_after_s: ",
    ),
    "a link to a node that is not there": (
        change_manifest(MANIFEST, lambda run: run["experiment"]["topology"]["nodes"].pop("R1")),
        2,
        r'manifest\.json: topology\.links\.0\.ends\.1\.node: found "R1", expected a node of the topology',
    ),
    "traffic from a node that is not there": (
        change_manifest(EXPERIMENT, lambda experiment: experiment["traffic"][0].update({"from": "nowhere"})),
        3,
        r'policed/1: experiment\.json: traffic\.0\.from: found "nowhere", expected a node of the topology',
    ),
    "a figure of a metric that is none": (
        change_manifest(MANIFEST, lambda run: run["experiment"]["compare"]["expectations"][0].update(metric="1 s")),
        2,
        r'manifest\.json: compare\.expectations\.0\.metric: found "1 s", expected a metric',
    ),
    "a published figure of a metric that is none": (
        change_manifest(MANIFEST, lambda run: run["published"][0].update(metric="../x")),
        2,
        r'manifest\.json: published\.0\.metric: found "\.\./x", expected a metric',
    ),
    "a figure of a name that is none": (
        change_manifest(MANIFEST, lambda run: run["experiment"]["compare"]["expectations"][0].update(equals="$(x)")),
        2,
        r'found "x", expected one of duration',
    ),
    "an experiment of TCP that nobody knows": (
        change_manifest(EXPERIMENT, lambda experiment: experiment.update(tcp="x")),
        3,
        r'policed/1: experiment\.json: tcp: found "x", expected settings or one of modern, legacy-2008',
    ),
    "a node of a platform that is none": (
        change_manifest(EXPERIMENT, lambda experiment: experiment["topology"]["nodes"]["R1"].update(platform=["ios"])),
        3,
        r"policed/1: experiment\.json: topology\.nodes\.R1\.platform: Input should be 'host' or",
    ),
    "an experiment that is deep": (
        write_file("experiment.json", "[" * 20000),
        3,
        r"policed/1: experiment\.json: .*recursion limit",
    ),
    "an experiment without end": (
        write_file("experiment.json", "{" + " " * 2**24 + "}"),
        3,
        r"policed/1: experiment\.json: found 16777218 bytes, expected at most 16777216",
    ),
    "no experiment": (lambda run: (run / EXPERIMENT).unlink(), 3, r"policed/1: experiment\.json: cannot be read: "),
    "intervals of no length": (
        received_run(lambda stream: stream.update(end=stream["start"])),
        1,
        r"",
    ),
    "intervals of a nanosecond": (
        received_run(lambda stream: stream.update(end=stream["start"] + 1e-9)),
        1,
        r"",
    ),
    "counters that are empty": (write_file("counters/R1.jsonl", ""), 3, r"policed/1: R1 reported no counters"),
    "counters that are refusals": (
        write_file("counters/R1.jsonl", '{"ok": false}\n' * 100_000),
        3,
        r"policed/1: R1 reported no counters",
    ),
    "counters that were cut": (write_file("counters/R1.jsonl", '{"ok": '), 3, r"policed/1: .*R1\.jsonl:1: no JSON"),
    "counters that are deep": (write_file("counters/R1.jsonl", "[" * 20000), 3, r"policed/1: .*R1\.jsonl:1: nested"),
    "counters of many digits": (
        write_file("counters/R1.jsonl", '{"ok": true, "time_ns": ' + "9" * 5000 + "}\n"),
        3,
        r"policed/1: .*R1\.jsonl:1: no JSON: Exceeds the limit",
    ),
    "counters of another age": (
        counter_line(lambda reply: reply.update(time_ns=10**30)),
        3,
        r"policed/1: the counters of R1: found a reading at 1e\+21 s .*, expected -600 to 604 s",
    ),
    "counters of another shape": (
        counter_line(lambda reply: reply.update(interfaces=7)),
        3,
        r"policed/1: the counters of R1 are damaged",
    ),
    "policies of another shape": (
        counter_line(lambda reply: interface_counters(reply).update(policy_input=7.5)),
        3,
        r"policed/1: the counters of R1 are damaged",
    ),
    "counters that are words": (
        counter_line(lambda reply: class_counters(reply).update(packets="many")),
        3,
        r"policed/1: the source data of the table classes is damaged: Could not convert 'many'",
    ),
    "counters below zero": (
        counter_line(lambda reply: class_counters(reply).update(packets=-5)),
        3,
        r"policed/1: the source data of the table classes is damaged: found packets below zero",
    ),
    "counters beyond all": (
        counter_line(lambda reply: class_counters(reply).update(packets=2**63)),
        3,
        r"policed/1: the source data of the table classes is damaged: ",
    ),
    "counters of an interface with a script": (
        counter_line(lambda reply: reply["interfaces"].update({SCRIPT: interface_counters(reply)})),
        3,
        r'policed/1: found counters of the interface "<script>.*, which is not in the topology',
    ),
    "counters of a stranger": (
        foreign_object,
        3,
        r'policed/1: found counters of "R99", which is not in the topology',
    ),
    "readings of another shape": (
        write_file("readings/R1.jsonl", '{"x": 1}\n'),
        3,
        r"policed/1: the readings of R1 are damaged",
    ),
    "hosts that say nothing": (
        write_file("hosts/client.after.txt", "x"),
        3,
        r"policed/1: .*client\.before\.txt: cannot",
    ),
    "bytes below zero": (
        received_run(lambda stream: stream.update(bytes=-5)),
        3,
        r"policed/1: the source data of the table intervals is damaged: found bytes below zero",
    ),
    "bytes without number": (
        received_run(lambda stream: stream.update(bytes=float("nan"))),
        3,
        r"policed/1: iperf3, .*the JSON is not a report of iperf3",
    ),
    "a print that nobody understands": (
        mistyped_object,
        3,
        r'policed/1: the parsed output of "show policy-map interface" of R1 is damaged',
    ),
    "segments of nothing": (
        change_manifest(
            f"{CELL}/traffic/transfer.client.json", lambda document: document["start"].update(tcp_mss_default=0)
        ),
        3,
        r"policed/1: iperf3, .*found segments of 0 bytes, expected at least 1",
    ),
    "a tool's error with keys": (
        change_manifest(
            f"{CELL}/traffic/transfer.server.json", lambda document: document.update(error=f"\x1b[31m{SCRIPT}")
        ),
        3,
        r"policed/1: iperf3 server, .*: \\x1b\[31m<script>",
    ),
    "a name that is no text": (
        lambda run: (run / CELL / "config" / "\udcff.ios").write_text("x") and None,
        2,
        r"found a name with other characters, expected printable text in UTF-8",
    ),
}
"""Faults: the change, the exit status, and a regular expression of the message."""


def large_file(run: Path) -> None:
    """Return a configuration that fills a report."""
    write_file("config/R1.ios", "x" * 60_000_000)(run)


def many_lines(run: Path) -> None:
    """Return configurations of unknown routers."""
    for number in range(2000):
        write_file(f"config/D{number}.ios", "x")(run)


TEXTS: dict[str, Change] = {
    "a configuration without end": large_file,
    "many configurations": many_lines,
    "a configuration that is no text": write_file("config/R1.ios", b"\xff\xfe" * 1000),
    "what was in force, and is deep": write_file("config/R1.engine.json", "[" * 20000),
    "an observation with a script": write_file("observations/R1/before.show-policy-map-interface.txt", SCRIPT),
    "a title with keys": change_manifest(MANIFEST, lambda run: run["experiment"].update(title=f"\x1b]0;x\x07{SCRIPT}")),
    "a machine without end": change_manifest(MANIFEST, lambda run: run.update(machine={"kernel": "x" * 5_000_000})),
}
"""Texts that are shown without effect on the verdict: the report is unchanged, and no terminal executes them."""


STEP = {"event": "step", "name": "policed/1", "step": "traffic", "time": "", "seconds": 1}
FIGURE = {"arm": "policed", "metric": "goodput.sum", "measured": 1.5}
BEGIN = {"event": "begin", "format": 1, "title": "", "lab": "", "cells": 1, "done": 0}
LEFT_OUT = r"progress\.jsonl: ignored 1 unknown lines"
NONE_OF_OURS = r"progress\.jsonl: found a line that is not in format 1: "


def counter_file_line(event: dict[str, Any], value: str, **more: object) -> str:
    """Return a line of progress in which `$` is a value that `json.dumps` does not write."""
    return json.dumps(event | more).replace('"$"', value)


LINES: dict[str, tuple[str, int, str]] = {
    "cells beyond all": (counter_file_line(BEGIN, "1e999", cells="$"), 3, LEFT_OUT),
    "cells of many digits": (counter_file_line(BEGIN, "9" * 4300, cells="$"), 3, LEFT_OUT),
    "cells of many digits in a text": (counter_file_line(BEGIN, "", cells="9" * 4300), 2, NONE_OF_OURS),
    "cells that are none": (counter_file_line(BEGIN, "", cells=1.5), 2, NONE_OF_OURS),
    "seconds beyond all": (counter_file_line(STEP, "-1e999", seconds="$"), 3, LEFT_OUT),
    "seconds that are no number": (counter_file_line(STEP, "NaN", seconds="$"), 3, LEFT_OUT),
    "seconds that are no number in a text": (counter_file_line(STEP, "", seconds="nan"), 2, NONE_OF_OURS),
    "a folder without end": (
        counter_file_line({"event": "cell", "name": "a", "folder": "x" * 70_000}, ""),
        3,
        "",
    ),
    "a folder with a null": (counter_file_line({"event": "cell", "name": "a", "folder": "a\0b"}, ""), 2, NONE_OF_OURS),
    "a figure that is a word": (
        counter_file_line({"event": "figures", "rows": [FIGURE | {"measured": SCRIPT}]}, ""),
        2,
        NONE_OF_OURS,
    ),
    "a figure beyond all": (
        counter_file_line({"event": "figures", "rows": [FIGURE | {"measured": "$"}]}, "1e999"),
        3,
        LEFT_OUT,
    ),
    "figures that are numbers": (counter_file_line({"event": "figures", "rows": [1]}, ""), 2, NONE_OF_OURS),
    "a figure with keys": (counter_file_line({"event": "figures", "rows": [FIGURE | {"arm": "\x1b[31m"}]}, ""), 3, ""),
    "an end with keys": (counter_file_line({"event": "end", "how": "\x1b]0;x\x07"}, ""), 3, ""),
}
"""Faulty lines of `progress.jsonl`, each with the exit status of `watch` and the message."""


def values_file(rows: int, **columns: pa.Array) -> pa.Table:
    """Return a change of the table `metrics` to so many empty rows with these columns; None removes the column."""
    own = {field.name: columns.get(field.name, pa.nulls(rows, field.type)) for field in SCHEMAS["metrics"]}
    return pa.table({name: column for name, column in (own | columns).items() if column is not None})


def write_table(content: Callable[[], pa.Table], times: int = 1) -> Change:
    """Return a change that replaces the table `metrics` by so many copies of a table."""

    def change(run: Path) -> None:
        made = content()
        with pq.ParquetWriter(run / "tables/metrics.parquet", made.schema, compression="zstd") as writer:
            for _ in range(times):
                writer.write_table(made)

    return change


def remove_table(run: Path) -> None:
    """Write a text in place of a table."""
    (run / "tables/metrics.parquet").write_text("x")


def sparse_file(run: Path) -> None:
    """Write a table of five gigabytes, a sparse file with a valid end."""
    path = run / "tables/metrics.parquet"
    content = path.read_bytes()
    with path.open("r+b") as file:
        file.seek(5 * 2**30)
        file.write(content)


MANY = 2**20
ONE_TEXT = pa.DictionaryArray.from_arrays(pa.repeat(pa.scalar(0, pa.int32()), MANY), pa.array(["x" * MANY]))

TABLES: dict[str, tuple[Change, str]] = {
    "no table": (remove_table, "cannot be read: "),
    "a table with a hole": (sparse_file, "found 53687[0-9]* bytes, expected at most 4294967296"),
    "a column is missing": (
        write_table(lambda: values_file(1, value=None)),
        "found nothing for the column value, expected double",
    ),
    "a column of another kind": (
        write_table(lambda: values_file(1, value=pa.array(["x"]))),
        "found string for the column value, expected double",
    ),
    "a column that none of ours is": (
        write_table(lambda: values_file(1, mine=pa.array([1]))),
        "found int64 for the column mine, expected a column of this format",
    ),
    "a parameter of another kind": (
        write_table(lambda: values_file(1, **{"matrix.p": pa.array([[1]])})),
        r"found list<.*> for the column matrix\.p, expected a column of this format",
    ),
    "rows without end": (write_table(lambda: values_file(MANY), 65), "found 68157440 rows, expected at most 67108864"),
    "texts without end": (
        write_table(lambda: values_file(MANY, arm=ONE_TEXT)),
        r"found \d{11,} bytes of text, expected at most",
    ),
}
"""Faults of a table: the change, and the message."""

COMPARED = "arm,where,metric,unit,measured,low,high,published,tolerance,verdict\n"
AVERAGED = "title,arm,each,metric,unit,statistic,value,low,high,lowest,lowest_cell,verdict\n"
COMPUTED: dict[str, tuple[str, str]] = {
    "a figure beyond all": ("comparison.csv", COMPARED + "policed,,goodput.sum,b/s,1e999,-1e999,nan,,,within\n"),
    "a figure that is a word": ("comparison.csv", COMPARED + f"policed,,goodput.sum,b/s,{SCRIPT},,,,,within\n"),
    "a row that was cut": ("comparison.csv", COMPARED + "policed,,goodput.sum"),
    "a text without end": ("comparison.csv", COMPARED + "x" * 1_000_000),
    "no columns": ("comparison.csv", "\0\n\0\n"),
    "a verdict with keys": ("comparison.csv", COMPARED + "\x1b[31m,,x,b/s,1,,,,,\x1b]0;x\x07\n"),
    "an average beyond all": ("averages.csv", AVERAGED + "a,policed,,x,B,mean,1e999,,,1e999,c,within\n"),
    "an average of no unit": ("averages.csv", AVERAGED + "a,policed,,x,furlong,mean,1,,,nan,c,within\n"),
    "a score beyond all": (
        "scores.csv",
        "title,arm,metric,parameter,first,second,won,equal,lost\na,b,c,d,e,f,1e999,1,1\n",
    ),
}
"""Faulty computed tables that `qoslab compare` reads: file and text."""


def requested_run(**changes: Any) -> str:
    """Return a recorded run with one change."""
    options = {"format": 3, "file": "e.yml", "sets": [], "arms": [], "only": [], "duration": None, "lab": "simulated"}
    return json.dumps({**options, **changes}, indent=2)


OPTIONS: dict[str, tuple[str, str]] = {
    "only a format": ('{\n  "format": 3\n}', r"run\.json: file: Field required"),
    "a format of tomorrow": (requested_run(format=999), r"run\.json: found format 999, expected 3"),
    "no file": (requested_run(file=""), r"run\.json: file: String should have at least 1 character"),
    "a file that is a number": (requested_run(file=7), r"run\.json: file: Input should be a valid string"),
    "a file that is deep": ('{\n  "format": 3, "file": ' + "[" * 20000, r"run\.json: found no format version"),
    "a file with a null character": (requested_run(file="a\0b"), r"run\.json: file: .*found a null character"),
    "a file that is no text": (requested_run(file="\udcff"), r"run\.json: : Invalid JSON: "),
    "a file without end": (requested_run(file="x" * 9000), '"x+…": File name too long'),
    "a file with keys": (requested_run(file="\x1b[31m"), r"\\x1b\[31m: no such file"),
    "a folder for a file": (requested_run(file="/tmp"), "/tmp: Is a directory"),
    "a device for a file": (requested_run(file="/dev/zero"), "/dev/zero: it is not a regular file"),
    "values that are one text": (
        requested_run(sets="R1.platform=engine"),
        r"run\.json: sets: Input should be a valid array",
    ),
    "a value that is a number": (requested_run(sets=[7]), r"run\.json: sets\.0: Input should be a valid string"),
    "a value without a path": (requested_run(sets=["x"]), 'found "x", expected PATH=VALUE'),
    "arms that are nothing": (requested_run(arms=None), r"run\.json: arms: "),
    "a choice that is a mapping": (requested_run(only={"a": 1}), r"run\.json: only: "),
    "a duration that is none": (
        requested_run(duration="soon"),
        r'run\.json: duration: .*found "soon", expected a duration',
    ),
    "a duration of many digits": (
        requested_run(duration="9" * 5000 + " s"),
        r"run\.json: duration: .*of 5002 characters",
    ),
    "no repetitions": (
        requested_run(repetitions=0),
        r"run\.json: repetitions: Input should be greater than or equal to 1",
    ),
    "repetitions without end": (
        requested_run(repetitions=float("inf")),
        r"run\.json: repetitions: Input should be a finite",
    ),
    "another order": (requested_run(order="backwards"), r"run\.json: order: Input should be 'as written'"),
    "a lab that is a list": (requested_run(lab=[]), r"run\.json: lab: Input should be a valid string"),
    "a key of nobody": (requested_run(shell="touch PWNED"), r"run\.json: shell: Extra inputs are not permitted"),
}
"""Faulty texts of `run.json`, each with a regular expression of the message of `--resume`."""
