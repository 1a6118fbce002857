"""OpenMetrics of a watched run, for Prometheus and other scrapers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.openmetrics.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.registry import Collector, CollectorRegistry

from qoslab.live.counter_rates import ClassKey
from qoslab.live.watched_run import RUNNING, WatchedCell, WatchedRun

CONTENT_TYPE = CONTENT_TYPE_LATEST
_CLASS = ("cell", "router", "interface", "direction", "policy", "class")
_INTERFACE = ("cell", "router", "interface")
_Value = float | int | None


def metrics_exposition(run: WatchedRun) -> bytes:
    """Return the OpenMetrics text. Values that were not counted are omitted, never 0."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Run(run))
    text: bytes = generate_latest(registry)  # type: ignore[no-untyped-call]
    return text


class _Run(Collector):
    def __init__(self, run: WatchedRun) -> None:
        self._run = run

    def collect(self) -> Iterable[Metric]:
        run = self._run
        labels = ("experiment", "run", "lab")
        up = GaugeMetricFamily("qoslab_run_going_on", "1 while the run is in progress, otherwise 0.", labels=labels)
        up.add_metric([run.folder.path.parent.name, run.folder.path.name, run.lab], float(run.state == RUNNING))
        yield up
        cells = GaugeMetricFamily("qoslab_run_cells", "Cells of the run.", labels=("state",))
        for state, count in (
            ("planned", run.planned),
            ("done", count_finished_cells(run)),
            ("invalid", len(run.invalid)),
        ):
            cells.add_metric([state], count)
        yield cells
        shown = run.shown_cells()
        yield from _class_values(shown)
        yield from _interface_values(shown)


def count_finished_cells(run: WatchedRun) -> int:
    """Return the number of finished cells, from this call and earlier ones."""
    return run.before + len(run.finished)


def _class_values(cells: Iterable[WatchedCell]) -> Iterator[Metric]:
    points = [(cell.name, key, found[-1]) for cell in cells for key, found in cell.rates.classes.items()]

    def values(family: Metric, value: str) -> Metric:
        for cell, key, point in points:
            _add(family, _cell_labels(cell, key), getattr(point, value))
        return family

    for name, what in (("offered", "Offered"), ("sent", "Sent"), ("dropped", "Dropped")):
        text = (
            f"{what} rate of the class between the last two readings, in bits of IP packets with their layer-2 header."
        )
        yield values(GaugeMetricFamily(f"qoslab_class_{name}_bits_per_second", text, labels=_CLASS), f"{name}_bps")
    family = GaugeMetricFamily("qoslab_class_queue_packets", "Packets in the queue of the class.", labels=_CLASS)
    yield values(family, "queue_packets")
    family = GaugeMetricFamily(
        "qoslab_class_wait_seconds",
        "Waiting time: bytes in the queue of the class divided by its sending rate.",
        labels=_CLASS,
    )
    for cell, key, point in points:
        _add(family, _cell_labels(cell, key), None if point.wait_ms is None else point.wait_ms / 1e3)
    yield family
    for name, what in (("offered", "Offered"), ("dropped", "Dropped")):
        yield values(
            CounterMetricFamily(
                f"qoslab_class_{name}_bytes", f"{what} bytes of the class since the start of the cell.", labels=_CLASS
            ),
            f"{name}_bytes",
        )


def _interface_values(cells: Iterable[WatchedCell]) -> Iterator[Metric]:
    points = [(cell.name, *key, found[-1]) for cell in cells for key, found in cell.rates.interfaces.items()]

    def values(family: Metric, value: str) -> Metric:
        for *labels, point in points:
            _add(family, list(map(str, labels)), getattr(point, value))
        return family

    for way in ("input", "output"):
        text = (
            f"{way.capitalize()} rate between the last two readings, in bits of IP packets with their layer-2 header."
        )
        yield values(
            GaugeMetricFamily(f"qoslab_interface_{way}_bits_per_second", text, labels=_INTERFACE), f"{way}_bps"
        )
    family = GaugeMetricFamily(
        "qoslab_interface_queue_packets", "Packets in the output queue of the interface.", labels=_INTERFACE
    )
    yield values(family, "queue_packets")
    family = GaugeMetricFamily(
        "qoslab_interface_queueing_delay_seconds",
        "Mean queueing delay of the packets that were sent since the previous reading.",
        labels=_INTERFACE,
    )
    for cell, router, interface, point in points:
        _add(family, [cell, router, interface], None if point.delay_ms is None else point.delay_ms / 1e3)
    yield family
    yield values(
        CounterMetricFamily(
            "qoslab_interface_drops", "Output drops of the interface since the start of the cell.", labels=_INTERFACE
        ),
        "drops",
    )
    for way in ("input", "output"):
        yield values(
            CounterMetricFamily(
                f"qoslab_interface_{way}_bytes",
                f"{way.capitalize()} bytes of the interface since the start of the cell.",
                labels=_INTERFACE,
            ),
            f"{way}_bytes",
        )


def _cell_labels(cell: str, key: ClassKey) -> list[str]:
    return [cell, key.router, key.interface, key.direction, key.policy, key.name]


def _add(family: Metric, labels: list[str], value: _Value) -> None:
    if value is not None:
        family.add_metric(labels, value)  # type: ignore[attr-defined]
