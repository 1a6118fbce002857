"""`qoslab run` on the command line: valid runs, and every failure; each must leave a clean machine."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import pandas as pd
import pytest
from commands import Command, run
from labs import run_inside

from experiment_files import experiment_file
from levels import long_cases
from qoslab.virtual_lab import Lab
from verdicts import newest_run, reasons_except_lateness, status_of
from waiting import wait_until

pytestmark = pytest.mark.lab

ROOT = Path(__file__).resolve().parents[2]
EXPERIMENT = ROOT / "experiments/policing-vs-shaping.yml"


def variant(folder: Path, change: Callable[[str], str], templates: dict[str, str] | None = None) -> Path:
    """Write the experiment with changes, next to its own templates."""
    text = EXPERIMENT.read_text().replace("../reports/", "")
    file = experiment_file(folder, EXPERIMENT.name, change(text))
    shutil.copytree(ROOT / "reports/published", folder / "published", dirs_exist_ok=True)
    for name, content in (templates or {}).items():
        (folder / "templates" / name).write_text(content)
    return file


def latest(folder: Path) -> Path:
    """Return the newest run."""
    return (folder / "runs/policing-vs-shaping/latest").resolve()


PROBES = """probes:
  - {name: host-to-host, type: udp-jitter, from: client, to: server, port: 5201, frequency: 1 s, timeout: 1 s}
  - {name: host-to-router, type: udp-echo, from: server, to: R1, port: 7000, frequency: 1 s, timeout: 1 s}
  - {name: router-to-host, type: udp-jitter, from: R1, to: client, port: 7001, frequency: 1 s, timeout: 1 s}
  - {name: any-host, type: icmp-jitter, from: client, to: R1, frequency: 1 s, timeout: 1 s, start_after: 1 s}
  - {name: echo, type: icmp-echo, from: R1, to: client, frequency: 1 s, timeout: 1 s}
captures:
"""


@pytest.mark.slow
def test_both_push_methods_configure_the_engine_alike_and_run_all_probes(clean: Path) -> None:
    file = variant(clean, lambda text: text.replace("captures:\n", PROBES))
    engines = {}
    for platform in ("ios", "engine"):
        status, output, errors = run(
            clean,
            "run",
            str(file),
            "--duration",
            "3s",
            "--arm",
            "shaped",
            "--set",
            f"R1.platform={platform}",
            started=True,
        )
        assert status == status_of(newest_run(clean)), errors + output
        cell = latest(clean) / "cells/shaped/1"
        engines[platform] = json.loads((cell / "config/R1.engine.json").read_text())
        record = json.loads((cell / "cell.json").read_text())
        # The lateness of the machine is not checked here.
        assert not reasons_except_lateness(record), errors
        # The counters were read after two thirds of the traffic, regardless of its start within a second.
        zero_ns = min(datetime.fromisoformat(each["started"]).timestamp() for each in record["flows"]) * 1e9
        read = [json.loads(line)["time_ns"] for line in (cell / "counters/R1.jsonl").read_text().splitlines()]
        assert record["lateness"] or min(abs(each - zero_ns - 2e9) for each in read) < 0.02e9, (zero_ns, read)
        # The typed operation is visible for any initiator, and the stamps of each packet are saved.
        probes = pd.read_parquet(latest(clean) / "tables/probes.parquet").set_index("probe")
        jitters = ("host-to-host", "router-to-host", "any-host")
        assert set(probes.index) == {*jitters, "host-to-router", "echo"}
        for name, row in probes.iterrows():
            assert 0 < row["rtt_count"] <= (30 if name in jitters else 3)
            assert row["rtt_min_ms"] <= row["rtt_avg_ms"] <= row["rtt_max_ms"] <= 1000
            assert pd.isna(row["jitter_max_ms"]) == (name not in jitters)
            samples = json.loads((cell / f"probes/{name}.samples.json").read_text())["samples"]
            assert len(samples) >= row["rtt_count"]
            # Two frames of at least 84 bytes at 100 Mb/s, at least one hop: no answer can be faster.
            assert all(each["arrived_ns"] - each["sent_ns"] >= 2 * 6720 for each in samples)
        answered = json.loads((cell / "probes/responder-server.json").read_text())
        assert answered["control_messages"] >= 2 and answered["errors"] == 0
    assert engines["ios"] == engines["engine"]
    assert engines["ios"]["ip_sla"]["responder"] is True


@pytest.mark.long
def test_run_works_with_an_ascii_locale_and_a_read_only_home(clean: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run in a locale without umlauts and with a read-only home: every program of a run writes UTF-8, and none needs a
    home.
    """
    for name, value in {"LC_ALL": "C", "PYTHONUTF8": "0", "HOME": "/proc"}.items():
        monkeypatch.setenv(name, value)
    title, description = "Zürich → 10 µs", " description Zürich → Bern"
    template = f"interface FastEthernet0/0\n{description}\n"
    text = (ROOT / "experiments/templates/police.ios.j2").read_text()
    file = variant(
        clean,
        lambda text: re.sub("(?m)^title:.*", f"title: {title}", text),
        {"police.ios.j2": template + text},
    )
    status, output, errors = run(clean, "run", str(file), "--arm", "policed", "--duration", "2s", started=True)
    # The lateness of the traffic does not matter here.
    assert status == status_of(newest_run(clean)), errors + output
    run_folder = latest(clean)
    assert title in (run_folder / "report.html").read_text(encoding="utf-8")
    assert (run_folder / "experiment.yml").read_bytes() == file.read_bytes()
    (running,) = run_folder.glob("cells/policed/*/config/R1.running.ios")
    assert description in running.read_text(encoding="utf-8").splitlines()


def test_line_that_the_device_would_refuse_is_reported(clean: Path) -> None:
    refused = "policy-map Police\n class class-default\n  police cir {{ cir }}\n  polish everything\n"
    refused += "!\ninterface {{ interface }}\n service-policy output Police\n"
    file = variant(clean, lambda text: text, {"police.ios.j2": refused})
    status, _, errors = run(clean, "run", str(file), "--duration", "1s", "--arm", "policed")
    assert status == 2, errors
    assert re.search(r"police\.ios\.j2:4:1: .*polish everything.*% Invalid input detected at '\^' marker\.", errors)
    assert not (clean / "runs").exists()


@pytest.mark.long
def test_flood_starves_a_session(clean: Path) -> None:
    common = "from: client, to: server"
    flows = (
        f"  - {{name: load, tool: flood, {common}, protocol: udp, rate: 3 Mb/s, size: 100 B, background: true}}\n"
        f"  - {{name: noise, tool: flood, {common}, protocol: udp, delay: 5 ms, random: [size, port], streams: 2}}\n"
        f"  - {{name: session, tool: iperf, {common}, streams: 2, start_after: 1 s, may_fail: true}}\n"
    )
    file = variant(clean, lambda text: re.sub(r"(?m)^traffic:\n(?:  .*\n)+", "traffic:\n" + flows, text))
    status, output, errors = run(
        clean,
        "run",
        str(file),
        "--duration",
        "1s",
        "--arm",
        "policed",
        "--set",
        "arms.policed.configure.R1.variables.cir=16000",
    )
    assert status == status_of(newest_run(clean)), errors + output
    cell = json.loads((latest(clean) / "cells/policed/1/cell.json").read_text())
    # The lateness of the machine is not checked here: the following checks hold for late datagrams too.
    assert not reasons_except_lateness(cell)
    flows_table = pd.read_parquet(latest(clean) / "tables/flows.parquet")
    load, noise, session = (flows_table[flows_table["traffic"] == name] for name in ("load", "noise", "session"))
    assert load["lost"].item() > 0 and load["datagrams"].item() > load["lost"].item()
    # Larger packets may find no tokens left over by the load.
    assert len(noise) == 2 and (noise["datagrams"] >= noise["lost"]).all() and (noise["datagrams"] > 0).all()
    # The policer passes its burst of 1500 bytes and 16 kb/s of a thousand datagrams per second.
    assert len(session) == 2 and session["bytes"].sum() < 20_000


@pytest.mark.long
@pytest.mark.parametrize("jobs", [(), ("--jobs", "1")], ids=["side by side", "one by one"])
def test_arms_run_in_parallel_unless_requested_otherwise(clean: Path, jobs: tuple[str, ...]) -> None:
    """Run arms in parallel; with one processor they run one by one in any case."""
    arms = ("--arm", "policed", "--arm", "shaped")
    status, output, errors = run(clean, "run", str(EXPERIMENT), "--duration", "4s", *arms, *jobs)
    assert status == status_of(newest_run(clean)), errors + output
    cells = json.loads((latest(clean) / "manifest.json").read_text())["cells"]
    # The first attempt counts as well, even if its cell was late.
    first = [json.loads((latest(clean) / f"cells/{cell['arm']}/1/cell.json").read_text()) for cell in cells]
    traffic = [next(step for step in record["steps"] if step["name"] == "traffic") for record in first]
    (one, other) = ((step["started"], step["ended"]) for step in traffic)
    together = one[0] < other[1] and other[0] < one[1]
    assert together == (not jobs and len(os.sched_getaffinity(0)) > 1)
    assert ("lab 2: lab up" in errors) == together
    assert [len(cell["earlier"]) <= (2 if together else 0) for cell in cells] == [True, True]
    for record in first:
        assert reasons_except_lateness(record) == [], "what they do to each other is lateness alone"


def test_killed_program_is_reported_by_its_cell(clean: Path) -> None:
    """Kill the server during the traffic of one arm, and the router in the next: each cell names its dead program."""
    victims = {
        "unrestricted": ("iperf3 -4 --server", "iperf3 server"),
        "policed": ("qos-router --lab", "its daemon was killed by SIGKILL"),
    }
    arms = [f"--arm={arm}" for arm in victims]
    command = Command(clean, "run", str(EXPERIMENT), "--duration", "20s", "--jobs", "1", *arms)
    for arm, (victim, _) in victims.items():
        command.wait_for(f"{arm}/1: traffic")
        (lab,) = command.labs()
        time.sleep(1.0)
        kill_inside(lab, victim)
        lab.close()
    status, output, errors = command.end()
    assert status == 3, errors + output
    for arm, (_, text) in victims.items():
        record = json.loads((latest(clean) / f"cells/{arm}/1/cell.json").read_text())
        assert record["valid"] is False
        assert any(text in reason for reason in record["reasons"]), record["reasons"]
        assert text in output


EVERY_PROGRAM = """traffic:
  - {name: transfer, tool: iperf3, from: client, to: server}
  - {name: session, tool: iperf, from: client, to: server}
  - {name: load, tool: flood, from: client, to: server, protocol: udp, rate: 1 Mb/s, size: 500 B}
probes:
  - {name: probe, type: udp-jitter, from: client, to: server, port: 5301, frequency: 1 s, timeout: 1 s}
"""


KILLED = {
    "iperf3 -4 --client": 'iperf3 client, traffic "transfer": was killed by SIGKILL',
    "iperf -c": 'iperf client, traffic "session": was killed by SIGKILL',
    "iperf -s": 'iperf server, traffic "session": was killed by SIGKILL',
    "flood send": 'flood client, traffic "load": was killed by SIGKILL',
    "flood receive": 'flood server, traffic "load": was killed by SIGKILL',
    "sla probe": 'probe "probe": sla was killed by SIGKILL: it gave no reason',
    "sla respond": "the responder on server was killed by SIGKILL: it gave no reason",
    "dumpcap": 'capture "server" at server eth0: dumpcap was killed by SIGKILL',
}
"""Program of a cell, and the message about its end."""


@pytest.mark.long
@pytest.mark.slow
def test_killed_program_of_a_cell_is_reported(clean: Path) -> None:
    file = variant(clean, lambda text: re.sub(r"(?m)^traffic:\n(?:  .*\n)+", EVERY_PROGRAM, text, count=1))
    cells = ("--arm", "unrestricted", "--repetitions", str(len(KILLED)), "--attempts", "1", "--jobs", "1")
    command = Command(clean, "run", str(file), "--duration", "3s", *cells)
    began = time.monotonic()
    for number, victim in enumerate(KILLED, 1):
        command.wait_for(f"unrestricted/{number}: traffic")
        assert time.monotonic() - began < 60, command.stderr
        (lab,) = command.labs()
        time.sleep(1.0)
        began = time.monotonic()
        kill_inside(lab, victim)
        lab.close()
    status, output, errors = command.end()
    assert time.monotonic() - began < 60, errors
    assert status == 3, errors + output
    assert "Traceback" not in errors
    for number, answer in enumerate(KILLED.values(), 1):
        record = json.loads((latest(clean) / f"cells/unrestricted/{number}/cell.json").read_text())
        assert record["valid"] is False
        reasons = [reason.partition(" (")[0] for reason in record["reasons"]]
        assert answer in reasons and not set(KILLED.values()) - {answer} & set(reasons), reasons
        assert answer in output


def kill_inside(lab: Lab, victim: str) -> None:
    """Kill the first process of a lab whose command line begins with these words, once it runs."""

    def found() -> int:
        for pid in run_inside(lab):
            program, _, words = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode().partition(" ")
            if f"{Path(program).name} {words}".startswith(victim):
                return pid
        return 0

    os.kill(wait_until(found, f"{victim} runs in the lab"), signal.SIGKILL)


@pytest.mark.parametrize(
    "moment", ["configure the routers", *long_cases("lab up", "capture on", "traffic", "observe after the traffic")]
)
def test_ctrl_c_at_any_time_leaves_nothing(clean: Path, moment: str) -> None:
    """Press Ctrl-C at a random time, also during the imports, so the command is started, not forked."""
    command = Command(clean, "run", str(EXPERIMENT), "--duration", "4s", "--arm", "policed", started=True)
    command.wait_for(moment)
    os.kill(command.process.pid, signal.SIGINT)
    status, output, errors = command.end()
    assert status == 130, errors + output
    assert "Traceback" not in errors


@pytest.mark.long
@pytest.mark.slow
def test_two_runs_of_one_experiment_can_run_at_once(clean: Path) -> None:
    both = [Command(clean, "run", str(EXPERIMENT), "--duration", "2s", "--arm", "shaped") for _ in range(2)]
    ends = [command.end() for command in both]
    folders = [path for path in (clean / "runs/policing-vs-shaping").iterdir() if not path.is_symlink()]
    assert len(folders) == 2
    assert sorted(status for status, _, _ in ends) == sorted(map(status_of, folders)), ends
    assert all((path / "report.html").exists() for path in folders)


@pytest.mark.long
def test_full_disk_in_the_run_folder_is_reported(clean: Path) -> None:
    (clean / "runs").mkdir()
    small = (
        "unshare",
        "--user",
        "--map-root-user",
        "--mount",
        "sh",
        "-c",
        'mount -t tmpfs -o size=256k tmpfs runs && exec "$@"',
        "sh",
    )
    command = Command(clean, "run", str(EXPERIMENT), "--duration", "3s", "--arm", "unrestricted", prefix=small)
    status, output, errors = command.end()
    assert status == 2, errors + output
    assert "cannot be written, the disk is full" in errors
    assert "Traceback" not in errors


@pytest.mark.parametrize(
    ("change", "templates", "message"),
    [
        (lambda text: text.replace("duration:", "duraton:", 1), {}, "did you mean"),
        (lambda text: text.replace("templates/police.ios.j2", "templates/none.ios.j2"), {}, "none.ios.j2"),
        (lambda text: text, {"police.ios.j2": "policy-map {{ undefined_name }}\n"}, "undefined_name"),
        (
            lambda text: text.replace("interface: FastEthernet0/1, address", "interface: FastEthernet0/7, address"),
            {},
            "FastEthernet0/7",
        ),
    ],
    ids=["misspelt key", "missing template", "undefined variable", "unknown interface"],
)
def test_mistake_in_the_experiment_starts_nothing(
    clean: Path, change: Callable[[str], str], templates: dict[str, str], message: str
) -> None:
    file = variant(clean, change, templates)
    status, output, errors = run(clean, "run", str(file))
    assert status == 2
    assert output == ""
    assert message in errors
    assert not (clean / "runs").exists()
