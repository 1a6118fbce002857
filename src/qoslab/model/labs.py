"""The kinds of labs that an experiment can be run in. `qoslab.run.labs.worker` says how each runs a cell."""

from __future__ import annotations

VIRTUAL = "virtual"
"""Namespaces of this machine: real TCP, real time."""
SIMULATED = "simulated"
"""Virtual time: the routers' engine with modelled hosts and modelled TCP."""
LABS = (VIRTUAL, SIMULATED)
"""The words of `--lab`; the first is the default."""

TITLES = {VIRTUAL: "the virtual lab", SIMULATED: "simulation"}
"""For sentences: run in …"""

FOUND = {VIRTUAL: "measured", SIMULATED: "simulated"}
"""What its figures are called beside published ones."""

REMARKS = {
    SIMULATED: "Simulated: these figures are computed in virtual time, with modelled hosts and modelled TCP; "
    "no packet was sent. Routers are the same engine as in the virtual lab."
}
"""What whoever reads figures of such a lab must know first."""
