"""Lines that lead from one running configuration back to another."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn
from ios_strategies import devices

from qoslab.ios.device import Device, Generation
from qoslab.ios.diff import undo_lines
from qoslab.ios.parse import apply
from qoslab.ios.running_config import render


@st.composite
def pairs(draw: DrawFn) -> tuple[Device, Device]:
    generation: Generation = draw(st.sampled_from(("classic", "hqf")))  # type: ignore[assignment]
    return draw(devices(generation)), draw(devices(generation))


@given(pairs())
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
def test_the_lines_lead_back(pair: tuple[Device, Device]) -> None:
    before, after = pair
    lines = undo_lines(render(before), render(after), before.hardware)
    device = after.copy()
    apply(device, "\n".join(lines))
    assert device == before
    assert bool(lines) == (before != after)
