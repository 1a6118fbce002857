"""Plans in a real kernel, in user mode: applied, read back and measured."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from qoslab.tc.user_mode_linux import Kernel, find

HERE = Path(__file__).parent
GOLDENS = HERE.parent / "goldens" / "tc"
GUEST = (HERE / "tc_guest.py").read_text(encoding="utf-8")

pytestmark = [
    pytest.mark.lab,
    pytest.mark.long,
    pytest.mark.skipif(find() is None, reason="needs the Debian package user-mode-linux or QOSLAB_UML"),
]


def run(*arguments: str, timeout_s: float = 120.0) -> Any:
    """Run an experiment of tc_guest.py in a new kernel."""
    with Kernel(memory="384M") as kernel:
        kernel.run_script(GUEST, *arguments, timeout_s=timeout_s).check()
        return json.loads((kernel.folder / "result.json").read_text(encoding="utf-8"))


def test_each_policy_is_applied_read_back_and_removed() -> None:
    found = run("goldens", str(GOLDENS))
    assert len(found) == len(list(GOLDENS.glob("*.sh"))) - 1  # refused.ios
    assert found == {name: {"again": [], "left": []} for name in found}


def test_change_sends_the_difference_and_foreign_qdiscs_are_refused() -> None:
    found = run("changes")
    # Of the parameters of two classes that share by weight, and of no filter.
    assert all(each.startswith("class change dev eth1 parent 1:10 ") for each in found["weights"]), found["weights"]
    assert 0 < len(found["weights"]) <= 3
    assert [each.split(" limit ")[0] for each in found["fair"]] == [
        "qdisc del dev eth1 parent 1:14",
        "qdisc add dev eth1 parent 1:14 handle 14: sfq",
    ]
    assert "class 1:10: rate: found 375000, expected 250000" in found["differs"]
    assert [each.split(" rate ")[0] for each in found["mended"]] == [
        "class change dev eth1 parent 1:1 classid 1:10 htb"
    ]
    assert found["taken"].startswith("eth1: found the qdiscs htb 1:, ")
    assert found["left"] == []
    assert found["parameter"].startswith("wan.ios.j2:7: GigabitEthernet0/1 output, policy-map CHILD, class ")
    assert found["parameter"].endswith('pfifo: Illegal value for "limit": "-1"')
