"""Clusters on which cells are run that are no cells: workers and schedulers that die, others that will not do."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import cloudpickle
import dask
import distributed
import pytest
from test_schedule import Fake

from qoslab import __version__
from qoslab.errors import MachineError, UserError
from qoslab.plan import Options
from qoslab.results import Cell
from qoslab.run.cluster import crew as cluster
from qoslab.run.cluster import worker as cluster_worker
from qoslab.run.cluster.crew import ClusterCrew, VersionError

TWO_CELLS = Options(only=(("rtt", "10 ms"), ("link", "2 Mb/s")))


def passes(task: dict[str, Any]) -> dict[str, Any]:
    """In place of `cluster_worker.run_cell`: a cell that is over at once, with a file of its own."""
    import io
    import json
    import zipfile

    record = {name: task[name] for name in ("arm", "parameters", "repetition", "attempt", "key")} | {"valid": True}
    text = json.dumps(record)
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr("cell.json", text)
    return {"record": text, "files": content.getvalue()}


def dies(task: dict[str, Any]) -> dict[str, Any]:
    """A cell that takes its worker with it."""
    os.kill(os.getpid(), signal.SIGKILL)
    return {}


def dies_once(task: dict[str, Any]) -> dict[str, Any]:
    """A cell whose first attempt takes its worker with it."""
    return dies(task) if task["attempt"] == 1 else passes(task)


def takes_its_time(task: dict[str, Any]) -> dict[str, Any]:
    """A cell that is not over when its scheduler ends."""
    time.sleep(2)
    return passes(task)


@pytest.fixture(autouse=True)
def sent_by_value() -> Iterator[None]:
    """Workers cannot import this file. Nor is a cell worth four workers here."""
    module = sys.modules[__name__]
    cloudpickle.register_pickle_by_value(module)
    with dask.config.set({"distributed.scheduler.allowed-failures": 0, "distributed.comm.timeouts.connect": "2s"}):
        yield
    cloudpickle.unregister_pickle_by_value(module)


@pytest.fixture
def threads() -> Iterator[Any]:
    """A cluster in this process."""
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=2, processes=False, protocol="tcp", host="127.0.0.1", dashboard_address=None
    ) as made:
        yield made


def crew(
    fake: Fake, address: str, monkeypatch: pytest.MonkeyPatch, run: Callable[[dict[str, Any]], dict[str, Any]]
) -> None:
    """Run the cells of a sweep on a cluster."""
    monkeypatch.setattr(cluster_worker, "run_cell", run)
    ClusterCrew(
        address, lease=fake.schedule.lease_now, finish=fake.schedule.finish, interrupted=fake.interrupted,
        folder_of=lambda task: fake.folder.cell_of(task.identity, task.attempt), note=fake.said.note, workers=1,
    ).run(fake.schedule.more)  # fmt: skip


def test_a_cluster_of_this_machine_is_there_for_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first attempt at each cell kills its worker, which is started again."""
    fake = Fake(tmp_path, 1, TWO_CELLS, attempts=2)
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    crew(fake, cluster.LOCAL, monkeypatch, dies_once)
    assert list((tmp_path / "tmp").iterdir()) == []
    summaries = fake.ledger.summaries()
    assert len(summaries) == 2 and all(each.valid for each in summaries)
    for each in summaries:
        assert each.folder.endswith("/1.2") and len(each.earlier) == 1
        assert "the workers that ran it died" in each.earlier[0].reasons[0]
        assert Cell(fake.folder.path / each.folder, fake.plan.cells[0].identity).record().valid
    assert any("has left" in note for note in fake.said.notes)
    assert not any("distributed" in line for line in children()), "the cluster ended with the run"


def children() -> list[str]:
    """Command lines of this process's children."""
    found = []
    for task in Path("/proc/self/task").iterdir():
        for pid in (task / "children").read_text().split():
            try:
                found.append(Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " "))
            except OSError:
                continue
    return found


def test_where_every_worker_dies_a_cell_is_tried_so_often(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = Fake(tmp_path, 1, Options(only=(*TWO_CELLS.only, ("connections", "1"))), attempts=2)
    crew(fake, cluster.LOCAL, monkeypatch, dies)
    (summary,) = fake.ledger.summaries()
    assert not summary.valid and len(summary.earlier) == 1
    assert "the workers that ran it died" in summary.reasons[0]
    # Another call goes on where this one was: the cell is still missing.
    assert [cell.name for cell in fake.ledger.missing] == [fake.plan.cells[0].name]


def test_a_scheduler_that_is_lost_ends_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, threads: Any) -> None:
    fake = Fake(tmp_path, 1, TWO_CELLS)
    lost = threading.Timer(0.5, lambda: threads.scheduler.loop.add_callback(threads.scheduler.close))
    lost.start()
    with pytest.raises(UserError, match="is gone") as caught:
        crew(fake, threads.scheduler_address, monkeypatch, takes_its_time)
    assert "--resume" in caught.value.hint
    assert len(fake.ledger.missing) == 2


def test_a_worker_of_another_version_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, threads: Any) -> None:
    fake = Fake(tmp_path, 1, TWO_CELLS)
    monkeypatch.setattr(cluster_worker, "version", lambda: "0.0.9")
    with pytest.raises(VersionError, match=f"has qoslab 0.0.9, this is qoslab {__version__}"):
        crew(fake, threads.scheduler_address, monkeypatch, passes)
    assert len(fake.ledger.missing) == 2


def test_one_that_comes_in_mid_run_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, threads: Any) -> None:
    """The version of the first was looked at before; a cell that it is given tells as well."""
    fake = Fake(tmp_path, 1, TWO_CELLS)
    with pytest.raises(VersionError, match=f"has qoslab 0.0.9, this is qoslab {__version__}"):
        crew(fake, threads.scheduler_address, monkeypatch, lambda task: {"version": "0.0.9"})


def test_a_worker_that_fails_and_what_the_user_has_to_mend(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, threads: Any
) -> None:
    fake = Fake(tmp_path, 1, TWO_CELLS)
    crew(fake, threads.scheduler_address, monkeypatch, lambda task: {"failure": "the lab did not come up"})
    assert {each.reasons for each in fake.ledger.summaries()} == {("the lab did not come up",)}
    again = Fake(tmp_path / "again", 1, TWO_CELLS)
    with pytest.raises(UserError, match="no iperf3"):
        crew(again, threads.scheduler_address, monkeypatch, lambda task: {"error": ["no iperf3", "install it"]})


def test_no_worker_for_too_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "WORKERS_S", 1.0)
    monkeypatch.setattr(cluster, "LOOK_S", 0.2)
    with (
        distributed.LocalCluster(n_workers=0, processes=False, protocol="tcp", host="127.0.0.1",
                                 dashboard_address=None) as made,
        pytest.raises(UserError, match="has had no worker for 1 s"),
    ):  # fmt: skip
        crew(Fake(tmp_path, 1, TWO_CELLS), made.scheduler_address, monkeypatch, passes)


def test_no_scheduler_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "CONNECT_S", 1)
    with pytest.raises(MachineError, match=r"the Dask scheduler at tcp://127\.0\.0\.1:9 cannot be reached"):
        crew(Fake(tmp_path, 1, TWO_CELLS), "tcp://127.0.0.1:9", monkeypatch, passes)
