"""Values of classes at a time or at the value of a counter."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest
from analysis_tables import columns, metrics

from qoslab.analysis.at_instant import moment_s, readings_until
from qoslab.analysis.missing import Missing
from qoslab.errors import ExperimentError
from qoslab.model.metrics import CounterTrigger, Reference
from qoslab.results import tables
from qoslab.schema import load_experiment

ERRORS = Path(__file__).parents[1] / "goldens" / "errors"


def readings(*rows: tuple[float, int, int]) -> pd.DataFrame:
    """Return time, conformed packets of 1000 bytes and exceeded ones of a policed class."""
    return tables.frame(
        "classes",
        [
            {
                "arm": "policed",
                "repetition": 1,
                "cell": "policed/1",
                "device": "R1",
                "interface": "Serial0",
                "direction": "output",
                "policy": "Police",
                "class": "class-default",
                "police_cir_bps": 1e6,
                "time_s": at,
                "packets": conformed + exceeded,
                "bytes": (conformed + exceeded) * 1000,
                "police_conformed_packets": conformed,
                "police_conformed_bytes": conformed * 1000,
                "police_exceeded_packets": exceeded,
                "police_exceeded_bytes": exceeded * 1000,
            }
            for at, conformed, exceeded in rows
        ],
    )


CELL = readings((-1.0, 0, 0), (1.0, 100, 0), (2.0, 200, 50), (3.0, 300, 60))


SHOWN = readings((0.0, 0, 0), (20.0, 2000, 500), (30.0, 3000, 600))
"""Output of a router with only show commands: before, during and after the traffic."""


def metric_values(*names: str, cell: pd.DataFrame = CELL) -> dict[str, object]:
    found = metrics({"classes": cell}, 3.0, map(Reference.parse, names))
    chosen = found[found["metric"].isin(names)]
    values = zip(chosen["metric"], chosen["value"], chosen["missing"], strict=True)
    return {name: missing if pd.isna(value) else value for name, value, missing in values}


def test_counters_are_taken_at_the_trigger() -> None:
    counted = "police.exceeded_packets @ conformed_bytes 150000 B"
    share = "police.exceed_share(class-default) @ conformed_bytes 200 kB"
    timed = "police.conformed_packets @ time 2.5 s"
    assert metric_values(counted, share, timed) == {
        counted: pytest.approx(25),
        share: pytest.approx(0.2),
        timed: pytest.approx(250),
    }


def test_rates_during_traffic_are_taken_at_the_trigger() -> None:
    """Compute rates at a trigger, also at two thirds of the traffic, the default time of `during`."""
    depths = CELL.assign(queue_depth_packets=[0, 10, 20, 40], queue_discipline="fifo")
    early, late, plain = (f"class.queue_depth.during{at}" for at in (" @ time 1.5 s", " @ time 2.5 s", ""))
    assert metric_values(early, late, plain, cell=depths) == {early: 15, late: 30, plain: 20}


def test_trigger_that_never_fires_is_reported() -> None:
    late, much = "police.exceed_share @ time 10 s", "police.exceed_share @ conformed_bytes 1 MB"
    assert metric_values(late, much) == {
        late: "time 10 s was not reached: the last reading is at 3.0 s",
        much: "conformed_bytes 1 MB was not reached: 300000 B at the end",
    }


def test_values_between_distant_readings_are_missing() -> None:
    timed, counted = "police.exceed_share @ time 6 s", "police.exceeded_packets @ conformed_bytes 2500 kB"
    read, reached = "police.exceeded_packets @ time 20 s", "police.exceeded_packets @ conformed_bytes 2000 kB"
    assert metric_values(timed, counted, read, reached, cell=SHOWN) == {
        timed: "time 6 s is not known: the readings around it are at 0.0 s and 20.0 s",
        counted: "conformed_bytes 2500 kB is not known: the readings around it are at 20.0 s and 30.0 s",
        read: 500,
        reached: 500,
    }


def known_times(*names: str, cell: pd.DataFrame) -> dict[str, tuple[float | None, float | None, str | None]]:
    """Value, error and what is missing of figures."""
    found = metrics({"classes": cell}, 3.0, map(Reference.parse, names))
    found = found[found["metric"].isin(names)].astype(object).where(lambda each: each.notna(), None)
    rows = zip(found["metric"], found["value"], found["error"], found["missing"], strict=True)
    return {name: (value, error, missing) for name, value, error, missing in rows}


@pytest.mark.long
def test_reading_at_an_unknown_time_makes_a_value_uncertain() -> None:
    """Compute the error of a class with 100 packets a second until 2 s, then 50, read by show commands that took 20, 40
    and 20 ms.
    """
    output = readings((1.0, 100, 0), (2.0, 200, 0), (3.0, 250, 0)).assign(time_error_s=[0.01, 0.02, 0.01])
    early, at, late = (f"police.conformed_packets @ time {seconds} s" for seconds in ("1.5", "2", "2.5"))
    counted, cir = "police.conformed_packets @ conformed_bytes 150 kB", "police.bc @ time 1.5 s"
    assert known_times(early, at, late, counted, cir, cell=output.assign(police_bc_bytes=31250)) == {
        # The worse of the two readings around it counts.
        early: (pytest.approx(150), pytest.approx(2), None),
        at: (pytest.approx(200), pytest.approx(2), None),
        late: (pytest.approx(225), pytest.approx(1), None),
        # All counters of a reading have one instant; configured values do not depend on time.
        counted: (pytest.approx(150), None, None),
        cir: (31250, None, None),
    }
    # A data plane reports the time at which it counted.
    assert known_times(early, cell=output.assign(time_error_s=float("nan")))[early] == (pytest.approx(150), None, None)


def test_reading_time_lies_within_the_error_of_a_value() -> None:
    """Move the time at which the router counted, between request and answer, at 100 packets a second."""
    name, error_s = "police.conformed_packets @ time 5.7 s", 0.05
    for late in (-1.0, -0.4, 0.0, 0.7, 1.0):
        counts = ((at, round(100 * (at + late * error_s)), 0) for at in (5.2, 6.2))
        value, error, _ = known_times(name, cell=readings(*counts).assign(time_error_s=error_s))[name]
        assert value is not None and error is not None and abs(value - 570) <= error + 1e-9 and error < 5.1


def test_value_of_a_single_reading_is_taken_at_its_time() -> None:
    """Read a class once: values shortly before and after are unknown, so the error is unbounded."""
    output = readings((1.0, 100, 0), (2.0, 200, 0), (3.0, 300, 0)).assign(time_error_s=0.01)
    name = "class.packets @ time 2 s"
    once = output.assign(packets=[float("nan"), 200, float("nan")])
    assert known_times(name, cell=once)[name] == (200, None, None)


def test_value_with_an_uncertain_time_is_missing() -> None:
    slow = readings((0.0, 0, 0), (1.0, 100, 0), (2.0, 300, 0)).assign(time_error_s=0.1)
    timed, named = (f"police.conformed_packets{of} @ time 1 s" for of in ("", "(class-default)"))
    output = "@ time 1 s: the readings only show a value between 80 and 120"
    assert known_times(timed, named, cell=slow) == {
        timed: (None, None, f"the class counters {output}"),
        named: (None, None, f"class-default {output}"),
    }


def trigger_time(cell: pd.DataFrame, moment: str) -> float | Missing:
    return moment_s(columns(cell), CounterTrigger.parse(moment))


def test_time_of_a_trigger_is_found() -> None:
    assert trigger_time(CELL, "time 3 s") == 3.0
    assert trigger_time(CELL, "conformed_bytes 150000 B") == pytest.approx(1.5)
    # The value was reached before the first reading, and exactly at a reading.
    assert trigger_time(readings((2.0, 100, 0), (3.0, 200, 0)), "conformed_bytes 90 kB") == 2.0
    assert trigger_time(CELL, "conformed_bytes 200 kB") == 2.0
    # Between readings that are just close enough to each other.
    assert trigger_time(readings((0.0, 0, 0), (2.5, 100, 0)), "time 2 s") == 2.0
    of_two = pd.concat([CELL, CELL.assign(**{"class": "A"})], ignore_index=True)
    assert trigger_time(of_two, "bytes 500 kB") == 2.0


def test_unknown_time_of_a_trigger_has_a_reason() -> None:
    assert trigger_time(CELL.iloc[:0], "time 1 s") == Missing("there are no counters over time")
    untold = CELL.assign(police_conformed_bytes=pd.NA)
    assert trigger_time(untold, "conformed_bytes 1 B") == Missing(
        "conformed_bytes 1 B was not reached: no counter recorded it"
    )
    apart = Missing("time 2 s is not known: the readings around it are at 0.0 s and 2.6 s")
    assert trigger_time(readings((0.0, 0, 0), (2.6, 100, 0)), "time 2 s") == apart


def test_readings_up_to_a_trigger_are_selected() -> None:
    half = readings((-1.0, 0, 0), (1.0, 100, 0), (1.5, 200, 50), (2.0, 300, 60))
    later = readings((2.5, 7, 0), (3.0, 8, 0)).assign(**{"class": "A"})
    over = readings((0.5, 1, 0), (1.0, 2, 0)).assign(**{"class": "B"})
    found = readings_until(columns(pd.concat([later, over, half], ignore_index=True)), 1.75)
    assert list(zip(found["class"], found["time_s"], found["police_conformed_packets"], strict=True)) == [
        ("B", 0.5, 1),
        ("B", 1.0, 2),
        ("class-default", -1.0, 0),
        ("class-default", 1.0, 100),
        ("class-default", 1.5, 200),
        ("class-default", 1.75, 250),
    ]
    assert len(found) == 6
    # A reading at the same time is not a second one.
    assert list(readings_until(columns(half), 1.5)["time_s"]) == [-1.0, 1.0, 1.5]
    assert not len(readings_until(columns(later), 1.0))


@pytest.mark.parametrize("text", ["time 6 s", "conformed_bytes 1992832 B", "bytes 715690 B"])
def test_formatted_trigger_parses_to_the_same_trigger(text: str) -> None:
    assert str(CounterTrigger.parse(text)) == text
    whole = f"police.exceed_share(R1 class-default) @ {text}"
    assert str(Reference.parse(whole)) == whole


@pytest.mark.parametrize(
    ("metric", "message"),
    [
        ("police.exceed_share @ conformed_bytes 6 s", "expected an instant: time "),
        ("police.exceed_share @ packets 6", "conformed_bytes "),
        ("goodput.sum @ time 6 s", "of a metric of classes"),
    ],
)
def test_invalid_trigger_is_refused(metric: str, message: str, tmp_path: Path) -> None:
    text = (ERRORS / "expectation-quantity.yml").read_text(encoding="utf-8")
    wanted = {"expectations": [{"arm": "policed", "metric": metric, "at_least": 1}]}
    file = tmp_path / "small.yml"
    file.write_text(text[: text.index("compare:")] + f"compare: {json.dumps(wanted)}\n", encoding="utf-8")
    with pytest.raises(ExperimentError, match=message):
        load_experiment(file)
