"""Warnings about settings without effect: found by validate, shown by the run, the report, JUnit and Markdown."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path
from xml.etree import ElementTree

import pytest

from experiment_files import two_links
from qoslab.analysis import analyse
from qoslab.analysis.verdicts import NOT_MEASURED
from qoslab.cli import main
from qoslab.errors import ExitStatus, ExperimentError
from qoslab.model.experiment import Node, Route
from qoslab.report import gate
from qoslab.report.page import build_page, verdict
from qoslab.results import RunFolder
from qoslab.run.cell.flows import unreachable_reason
from qoslab.schema import load_sweep
from qoslab.schema.idle import idle_warnings

FILE = (
    """
name: e
title: t
"""
    + two_links('ios, model: "3725"', wan="100 Mb/s", networks=("10.0.1", "10.0.2"))
    + """\
duration: 2 s
traffic:
  - {name: call, tool: flood, from: client, to: server, protocol: udp, rate: 80 kb/s, size: 200 B, dscp: ef}
"""
)
ARMS = """
arms:
  - {name: plain}
  - {name: policy, configure: {R1: {template: t.j2}}}
"""
POLICY = """
policy-map INSIDE
 class VOICE
  priority 200
 class class-default
  fair-queue
policy-map UPLINK
 class class-default
  shape average 2000000
  service-policy INSIDE
"""
VOICE = "class-map match-all VOICE\n match dscp ef\n"
ELSEWHERE = {"prefix": IPv4Network("10.9.0.0/16"), "via": IPv4Address("10.0.2.1")}
OUT = "interface FastEthernet0/1\n service-policy output UPLINK\n"


def write_experiment(tmp_path: Path, template: str, rest: str = "") -> Path:
    file = tmp_path / "e.yml"
    file.write_text(FILE + ARMS + rest)
    (tmp_path / "t.j2").write_text(template)
    return file


def warnings_for_file(file: Path) -> list[str]:
    return [each.message for each in idle_warnings(load_sweep(file))]


def test_policy_with_traffic_has_no_warning(tmp_path: Path) -> None:
    assert warnings_for_file(write_experiment(tmp_path, VOICE + POLICY + OUT)) == []


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("class-map match-all VOICE\n" + POLICY + OUT, "VOICE of R1 can match no packet: it has no match statement"),
        (
            "class-map match-all VOICE\n match dscp ef\n match dscp af41\n" + POLICY + OUT,
            'no packet matches both "match dscp ef" and "match dscp af41"',
        ),
        (
            VOICE + POLICY + OUT.replace("0/1", "0/0"),
            "service-policy output UPLINK on FastEthernet0/0 of R1: no declared traffic leaves there; output traffic "
            "of R1 leaves by FastEthernet0/1",
        ),
        (
            VOICE
            + "policy-map IN\n class VOICE\n  police 1000000\ninterface FastEthernet0/1\n service-policy input IN",
            "no declared traffic enters there; input traffic of R1 enters by FastEthernet0/0",
        ),
        (
            VOICE
            + "class-map match-any ALL\n match any\npolicy-map P\n class ALL\n  bandwidth 100\n class VOICE\n"
            + "  bandwidth 200\ninterface FastEthernet0/1\n service-policy output P",
            "class VOICE of policy-map P of R1 can match no packet: classes above it match all of its packets",
        ),
        (
            VOICE
            + "class-map match-all VIDEO\n match dscp af41\npolicy-map C\n class VIDEO\n  police 64000\npolicy-map P\n"
            + " class VOICE\n  bandwidth 100\n  service-policy C\ninterface FastEthernet0/1\n service-policy output P",
            "class VOICE/VIDEO of policy-map P of R1 can match no packet: no packet of class VOICE matches it",
        ),
    ],
)
def test_ineffective_configuration_is_found_before_the_run(tmp_path: Path, template: str, expected: str) -> None:
    (found,) = warnings_for_file(write_experiment(tmp_path, template))
    assert expected in found


def test_warning_is_at_the_line_of_the_template(tmp_path: Path) -> None:
    file = write_experiment(tmp_path, "! comment\nclass-map match-all VOICE\n" + POLICY + OUT.replace("0/1", "0/0"))
    places = [(Path(each.file).name, each.line) for each in idle_warnings(load_sweep(file))]
    assert places == [("t.j2", 2), ("t.j2", 14)]


def test_policy_that_only_acknowledgements_pass_is_reported(tmp_path: Path) -> None:
    back = VOICE + POLICY + OUT.replace("0/1", "0/0")
    file = write_experiment(tmp_path, back)
    assert len(warnings_for_file(file)) == 1
    text = file.read_text()
    file.write_text(
        text.replace(
            "duration: 2 s\ntraffic:", "duration: 2 s\ntraffic:\n  - {name: t, tool: iperf3, from: client, to: server}"
        )
    )
    (found,) = warnings_for_file(file)
    assert "FastEthernet0/0 of R1: only acknowledgements of declared traffic leave there" in found
    assert "output traffic of R1 leaves by FastEthernet0/1" in found
    traffic = "duration: 2 s\ntraffic:\n  - {name: t, tool: iperf3, from: server, to: client}"
    file.write_text(text.replace("duration: 2 s\ntraffic:", traffic))
    assert warnings_for_file(file) == []


def test_allow_idle_silences_by_name(tmp_path: Path) -> None:
    template = "class-map match-all VOICE\n" + POLICY + OUT.replace("0/1", "0/0")
    assert len(warnings_for_file(write_experiment(tmp_path, template))) == 2
    assert len(warnings_for_file(write_experiment(tmp_path, template, "allow_idle: [VOICE]\n"))) == 1
    assert warnings_for_file(write_experiment(tmp_path, template, "allow_idle: [VOICE, UPLINK]\n")) == []


def test_allow_idle_of_an_unknown_class_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ExperimentError) as error:
        load_sweep(write_experiment(tmp_path, VOICE + POLICY + OUT, "allow_idle: [VOIC]\n"))
    (finding,) = error.value.findings
    assert finding.path == "allow_idle[0]" and finding.hint == 'did you mean "VOICE"?'


def test_validate_shows_warnings_and_passes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = write_experiment(tmp_path, "class-map match-all VOICE\n" + POLICY + OUT)
    assert main(["validate", str(file)]) == ExitStatus.WITHIN
    output = capsys.readouterr().err
    assert (
        "t.j2:1:1: arms.policy.configure.R1: warning: class-map match-all VOICE" in output and "; 1 warning" in output
    )
    assert main(["validate", str(file), "--json"]) == ExitStatus.WITHIN
    (found,) = json.loads(capsys.readouterr().out)["warnings"]
    assert found["line"] == 1


def simulate_experiment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, template: str, rest: str = "") -> RunFolder:
    file = write_experiment(tmp_path, template, rest)
    monkeypatch.chdir(tmp_path)
    assert main(["run", str(file), "--lab", "simulated", "--jobs", "1"]) == ExitStatus.WITHIN
    return RunFolder((tmp_path / "runs" / "e" / "latest").resolve())


EMPTY = 'no packet matches both "match dscp ef" and "match dscp af41"'
IDLE = f"arm policy: R1 FastEthernet0/1 output: class class-default/VOICE matched 0 of 100 packets ({EMPTY})"


def test_run_warns_everywhere_of_a_class_without_packets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    template = "class-map match-all VOICE\n match dscp ef\n match dscp af41\n" + POLICY + OUT
    run = simulate_experiment(tmp_path, monkeypatch, template)
    output = capsys.readouterr().out
    assert f"Warning: {IDLE}\n" in output
    # No expectations: values without a verdict.
    assert "It has no expectations, so there is no verdict." in output and "datagrams.loss(call)" in output
    outcome = analyse(run)
    assert outcome.warnings == (IDLE,)
    page = build_page(run, outcome)
    assert page.warnings == [IDLE] and page.verdict.word == "No verdict"
    suite = ElementTree.fromstring(gate.junit(outcome, run.manifest()))[0]
    (skipped,) = suite.iter("skipped")
    assert skipped.get("message") == IDLE and suite.get("skipped") == "1"
    assert [note.level for note in gate.failure_annotations(outcome, "")] == ["warning"]


def test_run_warns_of_a_policy_without_packets_and_of_output_without_values(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    observe = "observe:\n  - {node: R1, command: show policy-map interface FastEthernet0/1, when: after}\n"
    run = simulate_experiment(tmp_path, monkeypatch, VOICE + POLICY + OUT.replace("0/1", "0/0"), observe)
    idle, unparsed = analyse(run).warnings
    assert idle.startswith(
        "arm policy: R1 FastEthernet0/0 output: policy-map UPLINK received no packets (no declared traffic"
    )
    assert unparsed.startswith(
        'R1 "show policy-map interface FastEthernet0/1": nothing was parsed from any of 2 outputs'
    )


@pytest.mark.long
def test_only_a_written_class_default_without_packets_causes_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    template = VOICE + POLICY + OUT
    run = simulate_experiment(tmp_path, monkeypatch, template)
    assert [each.partition(": class ")[2] for each in analyse(run).warnings] == [
        "class-default/class-default matched 0 of 100 packets"
    ]
    folder = tmp_path / "implied"
    folder.mkdir()
    run = simulate_experiment(folder, monkeypatch, template.replace(" class class-default\n  fair-queue\n", ""))
    assert analyse(run).warnings == ()


EXPECTED = """
compare:
  expectations:
    - {arm: policy, metric: class.packets(class-default/VOICE) @ time 1 s, at_least: 45, reason: There is a call.}
    - {arm: policy, metric: class.packets(class-default/VOICE) @ time 1800 ms, at_least: 80, reason: It goes on.}
"""


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    ("options", "status", "message"),
    [
        ((), ExitStatus.WITHIN, "The run is valid; all values are within their tolerance."),
        (("--duration", "1200ms"), ExitStatus.WITHIN, "; 1 not measured because the traffic was shortened"),
        (("--duration", "1200ms", "--strict"), ExitStatus.OUTSIDE, "expected values is out of tolerance."),
        (("--set", "duration=1200ms"), ExitStatus.WITHIN, "; 1 not measured because the traffic was shortened"),
    ],
)
def test_shortened_run_does_not_fail_for_unreached_values(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    options: tuple[str, ...],
    status: ExitStatus,
    message: str,
) -> None:
    file = write_experiment(tmp_path, VOICE + POLICY + OUT, EXPECTED)
    monkeypatch.chdir(tmp_path)
    assert main(["run", str(file), "--lab", "simulated", "--jobs", "1", *options]) == status
    assert message in capsys.readouterr().out


def test_value_of_an_idle_class_fails_in_a_shortened_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    later = EXPECTED.replace("time 1800 ms", "bytes 1 MB")
    file = write_experiment(tmp_path, "class-map match-all VOICE\n" + POLICY + OUT, later)
    monkeypatch.chdir(tmp_path)
    assert main(["run", str(file), "--lab", "simulated", "--jobs", "1", "--duration", "1200ms"]) == ExitStatus.OUTSIDE
    run = RunFolder((tmp_path / "runs" / "e" / "latest").resolve())
    outcome = analyse(run)
    assert (outcome.outside, outcome.not_measured) == (2, 0)
    assert NOT_MEASURED not in set(outcome.comparison["verdict"])
    assert verdict(outcome, run.manifest().experiment).kind == "outside"


def test_traffic_to_an_unreachable_host_names_the_missing_route(tmp_path: Path) -> None:
    routed = load_sweep(write_experiment(tmp_path, VOICE + POLICY + OUT)).experiment
    nodes = routed.topology.nodes | {"server": Node(platform="host", routes=(Route.model_validate(ELSEWHERE),))}
    experiment = routed.model_copy(update={"topology": routed.topology.model_copy(update={"nodes": nodes})})
    cell = RunFolder.create(tmp_path / "runs", "e", datetime(2026, 1, 1, tzinfo=UTC)).cell("policy")
    cell.write_experiment(experiment)
    (flow,) = experiment.traffic
    assert unreachable_reason(cell, flow) == "no route from server to 10.0.1.2"
