"""Preview of the commands for each router by `plan --lab INVENTORY`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from qoslab.model.inventory import RouterSettings
from qoslab.model.units import Duration
from qoslab.plan import Options, make_plan
from qoslab.run.workers.external import worker
from qoslab.run.workers.external.command_preview import sent_lines
from qoslab.schema import load_sweep

TOP = Path(__file__).parents[2]
GOLDENS = TOP / "tests" / "goldens" / "plan"


@pytest.fixture(autouse=True)
def run_as_alice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker.getpass, "getuser", lambda: "alice")
    monkeypatch.setattr(worker.platform, "node", lambda: "box")


def preview_lines_for(name: str, settings: dict[str, RouterSettings], options: Options) -> str:
    plan = make_plan(load_sweep(TOP / "experiments" / f"{name}.yml", {}), options)
    return "\n".join(sent_lines(plan, settings)) + "\n"


def test_every_line_is_listed_in_order_with_each_rollback(golden: Callable[[Path, str], None]) -> None:
    settings = RouterSettings(interfaces={"FastEthernet0/1": "GigabitEthernet0/2"})
    options = Options(arms=("unrestricted", "policed", "shaped"), lab="external")
    shown = preview_lines_for("policing-vs-shaping", {"R1": settings}, options)
    golden(GOLDENS / "sent-policing-vs-shaping.txt", shown)


def test_preview_has_the_chosen_rollback_method_and_the_probes_commands(
    golden: Callable[[Path, str], None],
) -> None:
    settings = {
        name: RouterSettings(rollback=way, rollback_margin=Duration.parse("5 min"))
        for name, way in (("a1", "archive"), ("a2", "none"))
    }
    options = Options(arms=("cbr",), only=(("ring", "2"), ("line", "512 kb/s"), ("repetition", "1")), lab="external")
    golden(GOLDENS / "sent-tx-ring-limit.txt", preview_lines_for("tx-ring-limit", settings, options))


LONG = """\
name: long
title: Cells of a minute and of three hours, of which one flow takes that long
topology:
  nodes: {client: {platform: host}, R1: {platform: ios, model: "3725"}, server: {platform: host}}
  links:
    - {name: lan, rate: 100 Mb/s, ends: [{node: client, interface: eth0, address: 192.168.10.2/24},
                                         {node: R1, interface: FastEthernet0/0, address: 192.168.10.1/24}]}
    - {name: wan, rate: 100 Mb/s, ends: [{node: R1, interface: FastEthernet0/1, address: 192.168.20.1/24},
                                         {node: server, interface: eth0, address: 192.168.20.2/24}]}
duration: 10 s
traffic:
  - {name: transfer, tool: iperf3, from: client, to: server, duration: $(time)}
matrix: {time: [1 min, 3 h]}
arms:
  - {name: plain, title: Nothing is configured}
"""


def test_each_cell_restarts_its_timer_and_short_methods_are_omitted(tmp_path: Path) -> None:
    file = tmp_path / "long.yml"
    file.write_text(LONG)
    plan = make_plan(load_sweep(file, {}), Options(lab="external"))
    shown = "\n".join(sent_lines(plan, {"R1": RouterSettings()}))
    assert "archive is not used: its maximum is 120 min, but the longest cell needs 210 min" in shown
    assert "configure terminal revert" not in shown
    assert "[reload] reload in 31\n" in shown and "[reload] reload in 210\n" in shown
    alone = "\n".join(sent_lines(plan, {"R1": RouterSettings(rollback="archive")}))
    assert "rollback timer: no method allows enough time, so a run is refused" in alone
