"""Parameters: expressions, combinations, cells, keys; and every error in a matrix."""

from __future__ import annotations

import contextlib
import json
import time
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from experiment_files import experiment_file, two_links
from qoslab.errors import ExperimentError
from qoslab.model.expressions import ExpressionError, parse_expression, read_value
from qoslab.model.matrix import Parameters, as_texts, as_values, slug
from qoslab.model.units import Duration, Rate, Size
from qoslab.plan import Options, make_plan
from qoslab.schema import CellIdentity, Sweep, load_sweep

GRID = (
    """\
name: grid
title: A grid
"""
    + two_links('engine, model: "3725"', wan="$(link)", delay="$(rtt / 2)")
    + """\
duration: 2 s
matrix:
  link: [2 Mb/s, 10 Mb/s]
  rtt: [10 ms, 50 ms]
  pir: [1 Mb/s, 5 Mb/s]
  connections: [1, 4]
  constraints: [pir <= link]
traffic:
  - {name: transfer, tool: iperf3, from: client, to: server, streams: $(connections)}
arms:
  - name: policed
    configure:
      R1: {template: templates/police.ios.j2, variables: {interface: FastEthernet0/1, cir: $(pir in b/s)}}
"""
)
CALM_GRID = """
  - name: calm
    matrix: {link: [10 Mb/s], rtt: [10 ms], connections: [1]}
"""


@pytest.fixture
def grid(tmp_path: Path) -> Path:
    return experiment_file(tmp_path, "grid.yml", GRID)


VALUES = {name: read_value(text) for name, text in {"pir": "1 Mb/s", "link": "10 Mb/s", "rtt": "50 ms"}.items()}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("pir <= link", True),
        ("pir * rtt", Size(6250)),
        ("max(pir * rtt, 30 kB) in B", 30_000),
        ("if(pir < 2 Mb/s, rtt, 1 s)", Duration(50_000_000)),
        # Only the requested value is computed.
        ("if(pir >= 2 Mb/s, rtt / 0, if(not true, 1, 7))", 7),
        ("rtt / 2", Duration(25_000_000)),
        ("1.44 * pir * rtt", Size(9000)),
        ("6250 B / rtt", Rate(1_000_000)),
        ("6250 B / pir", Duration(50_000_000)),
        ("link / pir", 10),
        ("round(pir / 3)", Rate(333_333)),
        ("rtt in ms", 50),
        ("1 kb/s < pir < link and not rtt == 1 s", True),
        ("28 % * pir", Rate(280_000)),
        ("(2 + 1) * 2 - 1", 5),
        ("arm == 'dynamic' or false", True),
    ],
)
def test_sweep_expressions_have_units(text: str, value: object) -> None:
    found = parse_expression(text).evaluate({**VALUES, "arm": "dynamic"})
    assert found == value and type(found) is type(value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("pir < rtt", "found a rate < a duration, expected two of the same kind"),
        ("pir * link", "which is not defined"),
        ("pir / 3", r"whole base units.*"),
        ("pir - link", "not below zero"),
        ("pir / (link - link)", "division by zero"),
        ("(pir", "expected a closing bracket"),
        ("pir pir", "expected the end"),
        ("__import__('os')", "expected one of min, max, round, floor, ceil, if"),
        ("if(pir, 1, 2)", "found a rate, expected a comparison"),
        ("if(true, 1)", r"found 2 values in if.*expected a condition and two values"),
        ("pir.bps", "expected a value or an operator"),
        ("pir in B", "found a rate in B, expected a size"),
        ("", "expected a value"),
        ("(" * 40 + "1" + ")" * 40, "more than 32 nested brackets"),
    ],
)
def test_invalid_sweep_is_refused(text: str, message: str) -> None:
    with pytest.raises(ExpressionError, match=message):
        parse_expression(text).evaluate(VALUES)


@given(st.text(max_size=40))
def test_any_text_is_accepted_or_a_finding(text: str) -> None:
    with contextlib.suppress(ExpressionError, KeyError):
        parse_expression(text).evaluate(VALUES)


@given(st.integers(1, 10**10), st.integers(1, 10**12))
def test_arithmetic_is_exact(bps: int, ns: int) -> None:
    exact = Fraction(bps * ns, 8 * 10**9)
    values: Parameters = {"r": Rate(bps), "t": Duration(ns)}
    if exact.denominator == 1:
        assert parse_expression("r * t").evaluate(values) == Size(int(exact))
        assert parse_expression("(r * t) / r").evaluate(values) == Duration(ns)
    else:
        assert parse_expression("round(r * t)").evaluate(values) == Size(round(exact))


def cells(sweep: Sweep) -> list[CellIdentity]:
    return [cell.identity for cell in make_plan(sweep).cells]


def test_grid_becomes_cells(grid: Path) -> None:
    sweep = load_sweep(grid)
    assert sweep.parameters == ("link", "rtt", "pir", "connections")
    found = cells(sweep)
    assert len(found) == 12 and len({cell.folder for cell in found}) == 12
    assert found[0].folder == "policed/link=2Mbps,rtt=10ms,pir=1Mbps,connections=1/1"
    last = sweep.resolve(found[-1])
    assert last.topology.links[1].rate == Rate(10**7) and last.topology.links[1].delay == Duration(25_000_000)
    assert last.traffic[0].streams == 4
    assert last.arms[0].configure["R1"].variables["cir"] == 5_000_000
    assert last.matrix is None and last.compare is None


def test_include_exclude_and_separate_arms_define_cells(grid: Path) -> None:
    sets = {
        "matrix.exclude": "[{rtt: 50 ms, connections: [1, 4]}]",
        "matrix.include": "[{link: 50 Mb/s, rtt: [1 ms, 2 ms], pir: 1 Mb/s, connections: 2}]",
    }
    grid.write_text(GRID + CALM_GRID)
    sweep = load_sweep(grid, sets)
    assert len(sweep.combinations("policed")) == 6 + 2
    assert list(sweep.combinations("calm")) == [
        {"link": read_value("10 Mb/s"), "rtt": read_value("10 ms"), "connections": 1}
    ]


@pytest.mark.parametrize(
    ("sets", "message"),
    [
        ({"matrix.pir": "[20 Mb/s]"}, 'found no cell of arm "policed": exclude and constraints leave none of 8'),
        ({"matrix.pri": "[1 Mb/s]"}, r'found the unused parameter "pri"'),
        ({"matrix.pir": "[1 mb/s]"}, 'did you mean "1 Mb/s"'),
        ({"matrix.pir": "[1 Mb/s, 3]"}, "found 3, a number, expected a rate like the values before it"),
        ({"matrix.pir": "[1 Mb/s, 1000 kb/s]"}, "found 1 Mb/s a second time"),
        ({"matrix.pir": "[]"}, "expected at least one value"),
        ({"matrix.pir": "1 Mb/s"}, "expected a list"),
        ({"matrix.arm": "[1]"}, "a reserved word"),
        ({"matrix": "5"}, "expected a mapping"),
        ({"matrix.exclude": "[{rt: 5 ms}]"}, 'did you mean "rtt"'),
        ({"matrix.include": "[{pir: 1 Mb/s}]"}, "found no value of link, rtt, connections"),
        ({"matrix.include": "[{link: 2 Mb/s, rtt: 10 ms, pir: 1 Mb/s, connections: 1}]"}, "a second time"),
        ({"matrix.include": "[{link: 2 Mb/s, rtt: 10 ms, pir: 3 Mb/s, connections: 1}]"}, "excluded by pir <= link"),
        ({"matrix.constraints": "[pir < rtt]"}, "found a rate < a duration"),
        ({"matrix.constraints": "[pir]"}, "expected a comparison"),
        ({"matrix.constraints": "[pir < lnk]"}, 'did you mean "link"'),
        ({"traffic.transfer.streams": "$(conections)"}, 'unused parameter.*did you mean "conections"'),
        ({"traffic.transfer.streams": "$(4"}, "expected a closing bracket"),
        ({"matrix.connections": "[0, 4]"}, r"found 0, expected at least 1 \(with .*connections = 0\)"),
        ({"arms.policed.configure.R1.variables.cir": "$(pir)"}, r"write \$\(pir in b/s\)"),
        ({"name": "$(pir)"}, "the same for all cells"),
        (
            {"arms.policed.configure.R1.variables.interface": "$(pir in b/s)", "traffic.transfer.streams": "1"},
            'found the unused parameter "connections"',
        ),
    ],
)
def test_invalid_matrix_is_refused(grid: Path, sets: dict[str, str], message: str) -> None:
    with pytest.raises(ExperimentError, match=message):
        load_sweep(grid, sets)


def test_parameter_unused_by_one_arm_gives_no_cells_there(grid: Path) -> None:
    grid.write_text(GRID + "  - {name: free}\n")
    with pytest.raises(ExperimentError, match=r'found pir, unused in arm "free".*its own matrix'):
        load_sweep(grid)


OWN = """
  - name: calm
    matrix: {link: [10 Mb/s], rtt: [10 ms, 50 ms]}
    traffic:
      - {name: transfer, tool: iperf3, from: client, to: server, duration: 1 s}
"""


@pytest.mark.parametrize("first", [False, True], ids=["behind", "first"])
def test_arm_with_its_own_traffic_does_not_need_parameters_of_other_arms(tmp_path: Path, first: bool) -> None:
    text = GRID.replace("arms:\n", "arms:" + OWN) if first else GRID + OWN.lstrip("\n")
    sweep = load_sweep(experiment_file(tmp_path, "grid.yml", text))
    cells = {cell.name: sweep.resolve(cell.identity) for cell in make_plan(sweep).cells}
    calm = [each for name, each in cells.items() if name.startswith("calm/")]
    assert len(calm) == 2 and len(cells) == 14
    for each in calm:
        (flow,) = each.arm_flows(each.arms[0])
        assert (flow.streams, flow.duration) == (1, Duration(10**9))
    streams = {each.traffic[0].streams for name, each in cells.items() if name.startswith("policed/")}
    assert streams == {1, 4}
    digests = {sweep.digest(cell.identity) for cell in make_plan(sweep).cells}
    assert len(digests) == len(cells)


def test_parameter_of_replaced_traffic_is_refused(tmp_path: Path) -> None:
    text = GRID.partition("arms:")[0] + "arms:" + OWN
    file = experiment_file(tmp_path, "grid.yml", text.replace("  connections: [1, 4]\n", ""))
    with pytest.raises(ExperimentError, match=r'traffic\.transfer\.streams: found "connections", expected a parameter'):
        load_sweep(file)


def test_option_only_selects_cells(grid: Path) -> None:
    sweep = load_sweep(grid)

    def selected_cell_count(*only: tuple[str, str]) -> int:
        return len(make_plan(sweep, Options(only=only)).cells)

    assert selected_cell_count(("pir", "1 Mb/s")) == 8
    assert selected_cell_count(("pir", "1Mb/s"), ("rtt", "10 ms"), ("rtt", "50 ms"), ("connections", "4")) == 4
    assert selected_cell_count(("arm", "policed"), ("repetition", "1")) == 12
    for only, text in (
        ((("pri", "1"),), "found --only pri=1, expected one of arm, repetition, link, rtt, pir"),
        ((("pir", "9 Mb/s"),), "expected a value of pir: 1 Mb/s, 5 Mb/s"),
        ((("pir", "5 Mb/s"), ("link", "2 Mb/s")), "found no cell with"),
    ):
        with pytest.raises(ExperimentError, match=text):
            selected_cell_count(*only)


def test_order_depends_on_the_seed(grid: Path) -> None:
    sweep = load_sweep(grid)
    plans = {
        order: [cell.name for cell in make_plan(sweep, Options(order=order, repetitions=3)).cells]  # type: ignore[arg-type]
        for order in ("as written", "random", "blocked")
    }
    assert len({tuple(names) for names in plans.values()}) == 3
    assert len({tuple(sorted(names)) for names in plans.values()}) == 1
    assert [name[-1] for name in plans["blocked"]] == ["1"] * 12 + ["2"] * 12 + ["3"] * 12
    fewer = [cell.name for cell in make_plan(sweep, Options(order="random", repetitions=2)).cells]
    assert [name for name in plans["random"] if name in fewer] == fewer
    other = load_sweep(grid, {"seed": "2", "order": "random", "repetitions": "3"})
    assert [cell.name for cell in make_plan(other).cells] != plans["random"]


def digests(file: Path, sets: dict[str, str] | None = None) -> dict[str, str]:
    sweep = load_sweep(file, sets)
    return {cell.folder: sweep.digest(cell) for cell in cells(sweep)}


def test_digest_of_a_cell_changes_with_its_definition(grid: Path) -> None:
    grid.write_text(GRID + CALM_GRID)
    before = digests(grid)
    assert len(set(before.values())) == len(before) == 13
    assert digests(grid) == before
    for same in (
        {"title": "Another", "description": "text"},
        {"repetitions": "1", "order": "random"},
        {"topology.links.wan.delay": "$(0.5 * rtt)"},
    ):
        assert digests(grid, same) == before
    wider = digests(grid, {"matrix.pir": "[1 Mb/s, 2 Mb/s, 5 Mb/s]"})
    assert {name: wider[name] for name in before} == before and len(wider) > len(before)
    for other in ({"duration": "3 s"}, {"seed": "2"}, {"tcp": "legacy-2008"}, {"topology.links.lan.rate": "10 Mb/s"}):
        assert not set(digests(grid, other).values()) & set(before.values())
    template = grid.parent / "templates/police.ios.j2"
    template.write_text(template.read_text() + "!\n")
    touched = digests(grid)
    calm = [name for name in before if name.startswith("calm")]
    assert [name for name in before if touched[name] == before[name]] == calm


def test_digest_with_an_override_equals_that_of_the_file(grid: Path) -> None:
    sweep = load_sweep(grid)
    shorter = make_plan(sweep, Options(duration=Duration(3 * 10**9))).sweep
    other = load_sweep(grid, {"duration": "3 s"})
    for cell in cells(sweep):
        assert shorter.digest(cell) == other.digest(cell) != sweep.digest(cell)


@given(
    st.dictionaries(
        st.from_regex(r"[a-z][a-z0-9_]{0,9}", fullmatch=True),
        st.one_of(
            st.integers(0, 10**12).map(Rate),
            st.integers(0, 10**12).map(Duration),
            st.integers(0, 10**9),
            st.booleans(),
            st.text("abc/ .=,é", max_size=8),
        ),
        max_size=6,
    )
)
def test_parameters_survive_a_record_and_name_a_folder(parameters: Parameters) -> None:
    texts = as_texts(parameters)
    assert json.loads(json.dumps(texts)) == texts
    assert as_values(texts) == parameters
    name = slug(parameters)
    assert len(name) < 200 and "/" not in name and name not in (".", "..")


@given(st.text("ab/ =,_", max_size=6), st.text("ab/ =,_", max_size=6))
def test_folders_of_different_cells_differ(one: str, other: str) -> None:
    assert (slug({"a": one}) == slug({"a": other})) == (one == other)


@given(st.floats(0, 10**12), st.floats(0, 10**12))
@example(0.1234567, 0.1234568)
@example(1234567.5, 1234567.25)
def test_folders_of_cells_with_different_numbers_differ(one: float, other: float) -> None:
    assert (slug({"a": one}) == slug({"a": other})) == (one == other)


@pytest.mark.long
def test_cost_of_bookkeeping_grows_linearly_with_cells(grid: Path) -> None:
    """Plan ten thousand cells in a dry run; the benchmark measures its duration."""
    values = ", ".join(f"{number} Mb/s" for number in range(1, 51))
    many = ", ".join(map(str, range(1, 51)))
    sweep = load_sweep(
        grid,
        {
            "matrix.link": "[50 Mb/s]",
            "matrix.rtt": "[10 ms, 20 ms, 30 ms, 40 ms]",
            "matrix.pir": f"[{values}]",
            "matrix.connections": f"[{many}]",
        },
    )
    began = time.monotonic()
    plan = make_plan(sweep)
    assert len(plan.cells) == 10_000
    assert plan.seconds > 20_000
    assert time.monotonic() - began < 60


def test_option_replaces_a_duration_that_is_a_parameter(tmp_path: Path) -> None:
    text = GRID.replace("duration: 2 s", "duration: $(2 * rtt * 100)")
    sweep = load_sweep(experiment_file(tmp_path, "grid.yml", text))
    whole = make_plan(sweep, Options())
    times = {whole.sweep.resolve(cell.identity).duration for cell in whole.cells}
    assert times == {Duration.parse("2 s"), Duration.parse("10 s")}
    short = make_plan(sweep, Options(duration=Duration.parse("1 s")))
    assert {short.sweep.resolve(cell.identity).duration for cell in short.cells} == {Duration.parse("1 s")}
