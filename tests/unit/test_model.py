"""Experiments as values: effective settings of an arm, meaning of an expectation."""

from __future__ import annotations

import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qoslab.model.expectations import Expectation
from qoslab.model.experiment import TCP_PROFILES, Experiment, TcpProfile
from qoslab.model.metrics import METRICS, QUANTITY_BY_UNIT, as_float, format_value
from qoslab.model.units import Duration, Percent, QuantityError, Rate, Size
from qoslab.platforms import host_names, router_names


def experiment(**changes: object) -> Experiment:
    """Return an experiment with two hosts, a router and two arms; the second overrides everything."""
    police = {"template": "police.j2", "variables": {"cir": 1}}
    flow = {"name": "t", "tool": "iperf3", "from": "a", "to": "b"}
    data = {
        "name": "x",
        "title": "X",
        "topology": {
            "nodes": {"a": {"platform": "host"}, "R1": {"platform": "ios", "model": "3725"}, "b": {"platform": "host"}},
            "links": (
                {
                    "name": "l1",
                    "rate": "1 Mb/s",
                    "ends": ({"node": "a", "interface": "e"}, {"node": "R1", "interface": "f"}),
                },
                {
                    "name": "l2",
                    "rate": "1 Mb/s",
                    "ends": ({"node": "R1", "interface": "g"}, {"node": "b", "interface": "e"}),
                },
            ),
        },
        "duration": "10 s",
        "configure": {"R1": {"template": "base.j2"}},
        "traffic": (flow,),
        "arms": (
            {"name": "plain"},
            {"name": "own", "configure": {"R1": police}, "tcp": "legacy-2008", "traffic": (flow | {"name": "u"},)},
        ),
    }
    return Experiment.model_validate(data | changes)


def test_arm_inherits_from_the_experiment() -> None:
    whole = experiment()
    plain, own = whole.arms
    assert [flow.name for flow in whole.arm_flows(plain)] == ["t"]
    assert [flow.name for flow in whole.arm_flows(own)] == ["u"]
    assert whole.arm_tcp_profile(plain) == TCP_PROFILES["modern"] == TcpProfile()
    assert whole.arm_tcp_profile(own).congestion_control == "reno"
    assert [each.template for each in whole.arm_configurations(plain)["R1"]] == ["base.j2"]
    assert [each.template for each in whole.arm_configurations(own)["R1"]] == ["base.j2", "police.j2"]
    assert whole.arm("own") is own
    with pytest.raises(KeyError):
        whole.arm("other")


def test_arm_may_have_no_traffic() -> None:
    whole = experiment(arms=({"name": "quiet", "traffic": ()},))
    assert whole.arm_flows(whole.arms[0]) == ()


def test_nodes_have_their_links() -> None:
    whole = experiment()
    assert router_names(whole.topology) == ("R1",)
    assert host_names(whole.topology) == ("a", "b")
    assert [(link.name, near.interface, far.node) for link, near, far in whole.topology.node_links("R1")] == [
        ("l1", "f", "a"),
        ("l2", "g", "b"),
    ]


def test_experiment_is_immutable_and_strict() -> None:
    whole = experiment()
    with pytest.raises(pydantic.ValidationError, match="frozen"):
        whole.name = "y"
    for wrong in ({"seed": "1"}, {"seed": True}, {"repetitions": 0}, {"colour": "red"}, {"arms": ()}):
        with pytest.raises(pydantic.ValidationError):
            experiment(**wrong)


def test_legacy_profile_follows_the_documents_on_windows_2000() -> None:
    profile = TCP_PROFILES["legacy-2008"]
    assert (profile.congestion_control, profile.sack, profile.timestamps) == ("reno", True, False)
    assert (profile.recovery, profile.early_retrans, profile.frto, profile.initcwnd) == (0, 0, 0, 2)
    assert profile.rto_min == Duration.parse("300 ms")


def expect(metric: str, arm: str = "own", **form: object) -> Expectation:
    return Expectation.model_validate({"metric": metric, "arm": arm} | form)


@pytest.mark.parametrize(
    ("expectation", "bounds", "tolerance"),
    [
        (expect("goodput.sum", between=("93.0 Mb/s", "95.5 Mb/s")), (93e6, 95.5e6), "93 Mb/s to 95.5 Mb/s"),
        (expect("police.exceed_share", between=("28 %", "38 %")), (0.28, 0.38), "28 % to 38 %"),
        (expect("police.bc", equals="31250 B"), (31250, 31250), "31250 B"),
        (expect("shape.interval_ms", equals="25 ms"), (25, 25), "25 ms"),
        (expect("shape.sustain_bits", equals=25000), (25000, 25000), "25000 bit"),
        (expect("shape.active.during", equals=1), (1, 1), "yes"),
        (expect("goodput.spread", at_most=1.1), (None, 1.1), "at most 1.1"),
        (expect("shape.queue_depth.during", at_least=0), (0, None), "at least 0 packets"),
        (expect("goodput.sum", "own/plain", at_least=1.0), (1.0, None), "at least 1"),
    ],
)
def test_bounds_apply_exactly(
    expectation: Expectation, bounds: tuple[float | None, float | None], tolerance: str
) -> None:
    assert expectation.bounds == bounds
    assert expectation.tolerance == tolerance
    for bound, step in zip(bounds, (-1e-6, 1e-6), strict=True):
        if bound is not None:
            assert expectation.is_within_bounds(bound), "bounds are inclusive"
            assert not expectation.is_within_bounds(bound + (step * max(1.0, bound)))


def test_ratio_of_two_arms_has_its_own_unit() -> None:
    assert expect("goodput.sum", "own/plain", at_least=1.0).unit == "ratio"
    assert expect("goodput.sum", "own/plain", at_least=1.0).arms == ("own", "plain")
    assert expect("goodput.sum", at_least="1 kb/s").unit == "b/s"


@pytest.mark.parametrize(
    "expectation",
    [
        expect("goodput.sum", at_least=5.0),
        expect("goodput.sum", at_least="5 %"),
        expect("goodput.sum", "own/plain", at_least="5 kb/s"),
        expect("police.exceeded_packets", at_least="5 B"),
        expect("police.bc", at_least="5 ms"),
    ],
)
def test_bounds_of_another_kind_are_refused(expectation: Expectation) -> None:
    with pytest.raises(QuantityError, match="expected a"):
        _ = expectation.bounds


@pytest.mark.parametrize("arm", ["a/b/c", "/a", "a/", "", "1a", "a b"])
def test_arms_have_short_and_long_forms(arm: str) -> None:
    with pytest.raises(pydantic.ValidationError):
        expect("goodput.sum", arm, at_least=1.0)


@given(st.integers(min_value=0, max_value=2**53))
def test_quantities_are_converted_to_the_unit_of_a_metric(count: int) -> None:
    assert as_float(Rate(count), "b/s") == count
    assert as_float(Size(count), "B") == count
    assert as_float(Duration(count * 10**6), "ms") == count
    assert as_float(Percent(count), "fraction") == count / 10**6
    for unit in ("bit", "packets", "ratio", "index", "flag"):
        assert as_float(count, unit) == count


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (94_512_345.0, "b/s", "94.51 Mb/s"),
        (841_000.0, "b/s", "841 kb/s"),
        (999_970.0, "b/s", "1 Mb/s"),
        (999_940.0, "b/s", "999.9 kb/s"),
        (12.0, "b/s", "12 b/s"),
        (0.0, "b/s", "0 b/s"),
        (0.32559, "fraction", "32.6 %"),
        (31250.0, "B", "31250 B"),
        (1394.0, "packets", "1394 packets"),
        (25.0, "ms", "25 ms"),
        (0.99987, "index", "0.9999"),
        (1.0, "flag", "yes"),
        (0.0, "flag", "no"),
    ],
)
def test_values_are_printed_for_people(value: float, unit: str, text: str) -> None:
    assert format_value(value, unit) == text  # type: ignore[arg-type]


def test_metric_table_is_consistent() -> None:
    for name, metric in METRICS.items():
        assert metric.name == name
        assert metric.description
        assert format_value(1.0, metric.unit)
    assert set(QUANTITY_BY_UNIT) <= {metric.unit for metric in METRICS.values()}
