"""What `plan --lab INVENTORY` says will be sent to each router."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from qoslab.model.inventory import RouterSettings
from qoslab.plan import Options, make_plan
from qoslab.run.labs.external import worker
from qoslab.run.labs.external.sent import sent_lines
from qoslab.schema import load_sweep
from qoslab.units import Duration

TOP = Path(__file__).parents[2]
GOLDENS = TOP / "tests" / "goldens" / "plan"


@pytest.fixture(autouse=True)
def alice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker.getpass, "getuser", lambda: "alice")
    monkeypatch.setattr(worker.platform, "node", lambda: "box")


def told(name: str, settings: dict[str, RouterSettings], options: Options) -> str:
    plan = make_plan(load_sweep(TOP / "experiments" / f"{name}.yml", {}), options)
    return "\n".join(sent_lines(plan, settings)) + "\n"


def test_every_line_in_order_with_each_way_back(golden: Callable[[Path, str], None]) -> None:
    settings = RouterSettings(interfaces={"FastEthernet0/1": "GigabitEthernet0/2"})
    options = Options(arms=("unrestricted", "policed", "shaped"), lab="external")
    shown = told("policing-vs-shaping", {"R1": settings}, options)
    golden(GOLDENS / "sent-policing-vs-shaping.txt", shown)


def test_one_way_that_was_chosen_and_what_probes_enter(golden: Callable[[Path, str], None]) -> None:
    settings = {
        name: RouterSettings(dead_man=way, dead_man_after=Duration.parse("5 min"))
        for name, way in (("a1", "archive"), ("a2", "none"))
    }
    options = Options(arms=("cbr",), only=(("ring", "2"), ("line", "512 kb/s"), ("repetition", "1")), lab="external")
    golden(GOLDENS / "sent-tx-ring-limit.txt", told("tx-ring-limit", settings, options))
