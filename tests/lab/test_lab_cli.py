"""`qoslab lab` and `qoslab doctor` on the command line."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from commands import run

from qoslab.virtual_lab import Lab

pytestmark = pytest.mark.lab

TOPOLOGY = """\
nodes:
  a: {platform: host}
  b: {platform: host}
links:
  - name: link
    rate: 10 Mb/s
    ends:
      - {node: a, interface: eth0, address: 10.0.0.1/24}
      - {node: b, interface: eth0, address: 10.0.0.2/24}
"""


def qoslab(*arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    program = "import sys; from qoslab.cli import main; sys.exit(main())"
    return subprocess.run([sys.executable, "-c", program, *arguments], input=stdin, capture_output=True, text=True)


def forked(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the same without its imports, if nothing is typed."""
    return subprocess.CompletedProcess(arguments, *run(Path.cwd(), *arguments))


def test_lab_commands_up_list_exec_shell_and_down_work(name: str, tmp_path: Path) -> None:
    file = tmp_path / "two.yml"
    file.write_text(TOPOLOGY)
    up = qoslab("lab", "up", str(file), "--name", name)
    try:
        assert up.returncode == 0, up.stderr
        assert f"qoslab lab shell --lab {name} a" in up.stdout
        again = forked("lab", "up", str(file), "--name", name)
        assert again.returncode == 2
        assert f"you already have a lab called {name}" in again.stderr
        labs = {each["name"]: each for each in json.loads(forked("lab", "list", "--json").stdout)}
        assert labs[name]["nodes"]["b"]["addresses"] == {"eth0": ["10.0.0.2"]}
        assert labs[name]["failures"] == []
        shown = forked("lab", "exec", "--lab", name, "b", "ip", "-4", "-o", "addr", "show", "dev", "eth0")
        assert "10.0.0.2/24" in shown.stdout
        assert forked("lab", "exec", "--lab", name, "b", "sh", "-c", "exit 9").returncode == 9
        drawn = forked("draw", "--lab", name, "--format", "mermaid")
        titled, of_file = f'title: "{name}"', forked("draw", str(file), "--format", "mermaid").stdout
        assert drawn.returncode == 0 and drawn.stdout == of_file.replace('title: "two"', titled)
        assert titled in drawn.stdout and "10.0.0.2" in drawn.stdout
        shell = qoslab("lab", "shell", "--lab", name, "a", stdin="ip -4 -o addr show dev eth0\nexit 5\n")
        assert "10.0.0.1/24" in shell.stdout
        assert shell.returncode == 5
    finally:
        down = qoslab("lab", "down", name)
    assert down.returncode == 0
    assert name not in [lab.name for lab in Lab.running_labs()]
    assert forked("lab", "down", name).returncode == 2


@pytest.mark.long
def test_exec_and_shell_log_in_to_an_ios_router_without_a_prompt(name: str, tmp_path: Path) -> None:
    file = tmp_path / "router.yml"
    router = TOPOLOGY.replace("b: {platform: host}", 'b: {platform: ios, model: "3725"}')
    file.write_text(router.replace("node: b, interface: eth0", "node: b, interface: FastEthernet0/0"))
    up = qoslab("lab", "up", str(file), "--name", name)
    try:
        assert up.returncode == 0, up.stderr
        version = qoslab("lab", "exec", "--lab", name, "b", "show", "version")
        assert version.returncode == 0 and version.stdout.startswith("Cisco IOS Software, 3700 Software")
        shell = qoslab("lab", "shell", "--lab", name, "b", stdin="show ip interface brief\nexit\n")
        assert "10.0.0.2        YES" in shell.stdout
    finally:
        qoslab("lab", "down", name)


def test_error_of_a_topology_names_its_place(tmp_path: Path) -> None:
    file = tmp_path / "two.yml"
    file.write_text(TOPOLOGY.replace("10 Mb/s", "10"))
    done = qoslab("lab", "up", str(file))
    assert done.returncode == 2
    assert f"{file}:6:11: topology.links.link.rate: " in done.stderr


def test_doctor_finds_no_problem_on_this_machine() -> None:
    done = qoslab("doctor", "--json")
    checks = {each["name"]: each for each in json.loads(done.stdout)["checks"]}
    missing = [name for name, check in checks.items() if check["state"] == "missing"]
    assert (done.returncode, missing) == (0, [])
    assert checks["virtual lab"]["state"] == checks["TCP cubic"]["state"] == "ok"


def test_doctor_names_missing_requirements_and_remedies(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("QOSLAB_QOS_ROUTER", str(tmp_path / "none"))
    done = qoslab("doctor")
    assert done.returncode == 2
    assert f"missing   qos-router: QOSLAB_QOS_ROUTER names {tmp_path}/none, not an executable file" in done.stdout
