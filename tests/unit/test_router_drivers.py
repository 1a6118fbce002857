"""Routers are restored by their active configuration, also after a failed push."""

from __future__ import annotations

from pathlib import Path

from qoslab.ios.device_config.interface_names import IDENTITY_NAMES
from qoslab.model.experiment import Topology
from qoslab.results import Cell
from qoslab.run.devices.drivers import SHOW, CommandLineRouter
from qoslab.run.devices.state import RestoreState
from qoslab.schema import CellIdentity

TOPOLOGY = Topology.model_validate_json('{"nodes": {"R1": {"platform": "ios", "model": "3725"}}, "links": []}')
BEFORE = "hostname R1\n!\nend\n"
PUSHED = "policy-map Mine\n class class-default\n  police 64000\n"


def test_unsent_configuration_leaves_the_active_one_known(tmp_path: Path) -> None:
    """Fill the disk when the next router's configuration is to be saved: then no router gets one."""
    state = RestoreState(tmp_path / "before")
    state.make()
    (state.folder / "R1.before.ios").write_text(BEFORE)
    cell = Cell(tmp_path / "cell", CellIdentity("a", (), 1))
    router = CommandLineRouter("R1", TOPOLOGY, IDENTITY_NAMES, state)
    router.write_intent(cell, tmp_path, PUSHED)
    router.record_push()
    router.record_pushed(cell, {SHOW: f"hostname R1\n!\n{PUSHED}!\nend\n"}, restored=False)
    router.record_push()
    undo = tmp_path / "undo"
    undo.mkdir()
    assert router.write_undo(undo).needed
    assert (undo / "R1.restore.ios").read_text() == "no policy-map Mine\n"
