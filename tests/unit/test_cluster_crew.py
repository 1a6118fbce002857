"""Workers with replaced cells, in processes of this machine and on clusters: they die, or refuse."""

from __future__ import annotations

import io
import logging
import sys
import threading
import time
import zipfile
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import cloudpickle
import crew_cells
import pytest
from crew_cells import die, die_once, pass_cell, take_time
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from test_schedule import FakeRun

from qoslab import __version__
from qoslab.errors import MachineError, UserError
from qoslab.plan import Options
from qoslab.results import Cell, CellRecord
from qoslab.run.cluster import dask_cluster as cluster
from qoslab.run.cluster import pool, remote
from qoslab.run.cluster import remote_worker as cluster_worker
from qoslab.run.cluster.crew import ClusterRunner
from qoslab.run.cluster.pool import LOCAL
from qoslab.run.cluster.remote import VersionError, serialise_task
from qoslab.run.task import CellTask, make_task
from qoslab.schema import CellIdentity

TWO_CELLS = Options(only=(("rtt", "10 ms"), ("link", "2 Mb/s")))


@pytest.fixture(autouse=True)
def pickle_module_by_value() -> Iterator[None]:
    """Pickle these functions by value, since workers cannot import them; give a cell one worker."""
    import dask
    import distributed  # noqa: F401 (its defaults must be there before they are changed)

    for module in (crew_cells, sys.modules[__name__]):
        cloudpickle.register_pickle_by_value(module)
    with dask.config.set({"distributed.scheduler.allowed-failures": 0, "distributed.comm.timeouts.connect": "2s"}):
        yield
    for module in (crew_cells, sys.modules[__name__]):
        cloudpickle.unregister_pickle_by_value(module)


def local_cluster(**settings: object) -> Any:
    """Return a cluster of this machine. Dask is imported here, since every process of the tests imports this file."""
    from distributed import LocalCluster

    return LocalCluster(host="127.0.0.1", dashboard_address=None, **settings)


@pytest.fixture
def threads() -> Iterator[Any]:
    """Provide a cluster in this process."""
    with local_cluster(n_workers=1, threads_per_worker=2, processes=False, protocol="tcp") as made:
        yield made


def crew(
    fake: FakeRun,
    address: str,
    monkeypatch: pytest.MonkeyPatch,
    run: Callable[[dict[str, Any]], dict[str, Any]],
    tls: Mapping[str, Path | None] | None = None,
) -> None:
    """Run the cells of a sweep on a cluster."""
    monkeypatch.setattr(cluster_worker, "run_cell", run)
    ClusterRunner(
        address,
        lease=fake.schedule.lease_next,
        finish=fake.schedule.finish,
        interrupted=fake.interrupted,
        folder_of=lambda task: fake.folder.cell_folder(task.identity, task.attempt),
        note=fake.reporter.note,
        workers=1,
        tls=tls,
    ).run(fake.schedule.has_remaining_cells)


def pool_runs(monkeypatch: pytest.MonkeyPatch, function: str) -> None:
    """Make the processes of a pool run a function of `crew_cells` in place of a cell."""
    code = (
        f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r}); import crew_cells; "
        "from qoslab.run.cluster import pool_worker, remote_worker; "
        f"remote_worker.run_cell = crew_cells.{function}; pool_worker.main(int(sys.argv[1]))"
    )
    monkeypatch.setattr(pool, "WORKER", (sys.executable, "-c", code))


def test_local_pool_replaces_killed_workers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kill the worker at the first attempt of each cell; a new worker replaces it."""
    fake = FakeRun(tmp_path, 1, TWO_CELLS, attempts=2)
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    pool_runs(monkeypatch, "die_once")
    crew(fake, LOCAL, monkeypatch, die_once)
    assert list((tmp_path / "tmp").iterdir()) == []
    summaries = fake.cells.summaries()
    assert len(summaries) == 2 and all(each.valid for each in summaries)
    for each in summaries:
        assert each.folder.endswith("/1.2") and len(each.earlier) == 1
        assert each.earlier[0].reasons == ("the worker process that ran it ended by SIGKILL",)
        assert Cell(fake.folder.path / each.folder, fake.plan.cells[0].identity).files().record().valid
    assert any(" ended by " in note for note in fake.reporter.notes)
    assert not any("pool_worker" in line for line in children()), "the pool ended with the run"


@pytest.mark.long
def test_files_of_a_cell_replace_its_streamed_output(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = FakeRun(tmp_path, 1, TWO_CELLS, attempts=2)
    pool_runs(monkeypatch, "print_output")
    crew(fake, LOCAL, monkeypatch, die_once)
    for each in fake.cells.summaries():
        assert each.valid and each.folder.endswith("/1.2")
        for folder in (each.folder, each.earlier[0].folder):
            assert [file.name for file in (fake.folder.path / folder).iterdir()] == ["cell.json"]


def test_counts_of_a_remote_worker_arrive_in_the_folder_of_the_cell(tmp_path: Path) -> None:
    identity = CellIdentity("one", (), 1)
    here = Cell(tmp_path / "here", identity)
    there = Cell(tmp_path / "there", identity, coming=here.incoming_folder)
    there.append_counters("R1", {"ok": True})
    assert there.coming_counters() == here.coming_counters() == tmp_path / "here" / "coming" / "counters"
    assert (here.coming_counters() / "R1.jsonl").read_bytes() == there.counters("R1").read_bytes()
    there.remove_incoming()
    assert [path.name for path in tmp_path.rglob("*.jsonl")] == ["R1.jsonl"] and there.counters("R1").exists()


def test_abandoned_cell_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = FakeRun(tmp_path, 1, TWO_CELLS)
    pool_runs(monkeypatch, "print_and_wait")
    seen: list[Path] = []

    def interrupt() -> None:
        while not (found := list(fake.folder.path.rglob("coming"))):
            time.sleep(0.05)
        seen.extend(found)
        fake.interrupted.set()

    threading.Thread(target=interrupt, daemon=True).start()
    crew(fake, LOCAL, monkeypatch, pass_cell)
    assert len(seen) == 1 and not seen[0].parent.exists()


def children() -> list[str]:
    """Return the command lines of this process's children."""
    found = []
    for task in Path("/proc/self/task").iterdir():
        for pid in (task / "children").read_text().split():
            try:
                found.append(Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " "))
            except OSError:
                continue
    return found


def test_cell_is_retried_a_limited_number_of_times_if_workers_die(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = FakeRun(tmp_path, 1, Options(only=(*TWO_CELLS.only, ("connections", "1"))), attempts=2)
    pool_runs(monkeypatch, "die")
    crew(fake, LOCAL, monkeypatch, die)
    (summary,) = fake.cells.summaries()
    assert not summary.valid and len(summary.earlier) == 1
    assert "the worker process that ran it ended by" in summary.reasons[0]
    # Another call continues at this point: the cell is still missing.
    assert [cell.name for cell in fake.cells.unfinished_cells] == [fake.plan.cells[0].name]


@pytest.mark.long
def test_cell_fails_if_every_worker_of_a_cluster_dies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kill every worker: Dask restarts its workers, but the cell of the first one is lost."""
    fake = FakeRun(tmp_path, 1, Options(only=(*TWO_CELLS.only, ("connections", "1"))))
    with local_cluster(
        n_workers=1, threads_per_worker=1, worker_dashboard_address=None, silence_logs=logging.CRITICAL
    ) as made:
        crew(fake, made.scheduler_address, monkeypatch, die)
    (summary,) = fake.cells.summaries()
    assert "the workers that ran it died, the last was tcp://" in summary.reasons[0]


def test_closing_a_pool_ends_running_cells(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave a pool: the process sees the end of its connection, like after Ctrl-C, and ends by itself."""
    fake = FakeRun(tmp_path, 1, TWO_CELLS)
    pool_runs(monkeypatch, "wait_for_end")
    threading.Timer(1.0, fake.interrupted.set).start()
    crew(fake, LOCAL, monkeypatch, pass_cell)
    assert len(fake.cells.unfinished_cells) == 2
    assert not any("pool_worker" in line for line in children())


@pytest.mark.sample(3)
@pytest.mark.parametrize("worker", ["send_too_many_files", "send_large_file", "send_no_archive"])
def test_size_of_worker_messages_is_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, worker: str) -> None:
    fake = FakeRun(tmp_path, 1, TWO_CELLS)
    pool_runs(monkeypatch, worker)
    monkeypatch.setattr(remote, "MAX_FILES", 100)
    monkeypatch.setattr(remote, "MAX_BYTES", 10**6)
    crew(fake, LOCAL, monkeypatch, pass_cell)
    for summary in fake.cells.summaries():
        assert not summary.valid and summary.reasons[0].startswith("its worker sent ")
    assert not list(fake.folder.path.rglob("*large*")) and not list(fake.folder.path.rglob(".*.draft"))


@pytest.mark.parametrize("name", ["../outside", "/{}/outside", "inside/../../outside"])
def test_worker_cannot_write_outside_its_cell(tmp_path: Path, name: str) -> None:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr("inside/file", "kept with the rest, or not at all")
        archive.writestr(name.format(tmp_path), "of the worker")
    cell = Cell(tmp_path / "cells" / "one" / "1", CellIdentity("one", (), 1), 1)
    record = CellRecord(arm="one", repetition=1, valid=True)
    with pytest.raises(remote.ArchiveError, match="a path outside its cell"):
        remote.store(content.getvalue(), record, cell)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_failed_worker_of_this_machine_leaves_no_draft(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Worker:
        def run(self, task: CellTask, cell: Cell) -> CellRecord:
            cell.write_experiment(task.experiment)
            assert cell.path.exists()
            raise UserError("the disk is full")

    monkeypatch.setattr(cluster_worker, "_thread_worker", lambda lab: (Worker(), tmp_path))
    fake = FakeRun(tmp_path, 1, TWO_CELLS)
    task = make_task(fake.plan.cells[0], {})
    cell = fake.folder.cell_folder(task.identity, 1)
    assert "the disk is full" in cluster_worker.run_cell(serialise_task(task, cell))["error"]
    assert not cell.draft.exists()


def test_lost_scheduler_ends_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, threads: Any) -> None:
    fake = FakeRun(tmp_path, 1, TWO_CELLS)
    lost = threading.Timer(0.5, lambda: threads.scheduler.loop.add_callback(threads.scheduler.close))
    lost.start()
    with pytest.raises(UserError, match="is gone") as caught:
        crew(fake, threads.scheduler_address, monkeypatch, take_time)
    assert "--resume" in caught.value.hint
    assert len(fake.cells.unfinished_cells) == 2


def test_worker_of_another_version_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, threads: Any) -> None:
    fake = FakeRun(tmp_path, 1, TWO_CELLS)
    monkeypatch.setattr(cluster_worker, "worker_version", lambda: "0.0.9")
    with pytest.raises(VersionError, match=f"has qoslab 0.0.9, this is qoslab {__version__}"):
        crew(fake, threads.scheduler_address, monkeypatch, pass_cell)
    assert len(fake.cells.unfinished_cells) == 2


def test_worker_of_another_version_is_refused_during_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, threads: Any
) -> None:
    """Start a worker during the run: only the first one's version was checked before; with a cell a worker also reports
    its version.
    """
    fake = FakeRun(tmp_path, 1, TWO_CELLS)
    with pytest.raises(VersionError, match=f"has qoslab 0.0.9, this is qoslab {__version__}"):
        crew(fake, threads.scheduler_address, monkeypatch, lambda task: {"version": "0.0.9"})


def test_failing_worker_reports_an_error_for_the_user_to_fix(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, threads: Any
) -> None:
    fake = FakeRun(tmp_path, 1, TWO_CELLS)
    crew(fake, threads.scheduler_address, monkeypatch, lambda task: {"failure": "the lab did not come up"})
    assert {each.reasons for each in fake.cells.summaries()} == {("the lab did not come up",)}
    again = FakeRun(tmp_path / "again", 1, TWO_CELLS)
    with pytest.raises(UserError, match="no iperf3"):
        crew(again, threads.scheduler_address, monkeypatch, lambda task: {"error": ["no iperf3", "install it"]})


def authority(folder: Path) -> dict[str, Path]:
    """Provide an authority and its signed certificate, shared by all members of a cluster."""
    folder.mkdir()
    now = datetime.now(UTC)
    keys = {name: ec.generate_private_key(ec.SECP256R1()) for name in ("ca", "cluster")}
    names = {name: x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]) for name in keys}
    for name, key in keys.items():
        made = (
            x509.CertificateBuilder()
            .subject_name(names[name])
            .issuer_name(names["ca"])
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(hours=1))
            .not_valid_after(now + timedelta(hours=1))
            .add_extension(x509.BasicConstraints(ca=name == "ca", path_length=None), critical=True)
            .sign(keys["ca"], hashes.SHA256())
        )
        (folder / f"{name}.pem").write_bytes(made.public_bytes(serialization.Encoding.PEM))
    (folder / "cluster.key").write_bytes(
        keys["cluster"].private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
    return {"ca_file": folder / "ca.pem", "cert": folder / "cluster.pem", "key": folder / "cluster.key"}


def test_cluster_with_certificates_accepts_only_its_members(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Use a cluster with certificates: only holders of a certificate of its authority have access."""
    from distributed import Security

    tls, others = authority(tmp_path / "ours"), authority(tmp_path / "others")
    security = Security(
        require_encryption=True,
        tls_ca_file=str(tls["ca_file"]),
        **{
            f"tls_{role}_{what}": str(tls[what])
            for role in ("scheduler", "worker", "client")
            for what in ("cert", "key")
        },
    )
    monkeypatch.setattr(cluster, "CONNECT_S", 2)
    with local_cluster(n_workers=1, threads_per_worker=2, processes=False, protocol="tls", security=security) as made:
        address = made.scheduler_address
        assert address.startswith("tls://")
        fake = FakeRun(tmp_path / "a", 1, TWO_CELLS)
        crew(fake, address, monkeypatch, pass_cell, tls)
        assert all(each.valid for each in fake.cells.summaries())
        assert not any("encrypted" in note for note in fake.reporter.notes)
        with pytest.raises(MachineError, match="cannot be reached"):
            crew(FakeRun(tmp_path / "b", 1, TWO_CELLS), address, monkeypatch, pass_cell, others)
        with pytest.raises(MachineError, match="cannot be reached"):
            crew(FakeRun(tmp_path / "c", 1, TWO_CELLS), address.replace("tls:", "tcp:"), monkeypatch, pass_cell)
        with pytest.raises(UserError, match="found no certificates for tls://") as caught:
            crew(FakeRun(tmp_path / "d", 1, TWO_CELLS), address, monkeypatch, pass_cell)
        assert "--tls-ca-file, --tls-cert, --tls-key" in caught.value.hint
        with pytest.raises(UserError, match=r"--tls-cert: .*No such file"):
            crew(
                FakeRun(tmp_path / "e", 1, TWO_CELLS),
                address,
                monkeypatch,
                pass_cell,
                tls | {"cert": tmp_path / "none"},
            )


def test_cluster_without_certificates_causes_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, threads: Any
) -> None:
    fake = FakeRun(tmp_path, 1, TWO_CELLS)
    crew(fake, threads.scheduler_address, monkeypatch, pass_cell)
    assert any("is neither encrypted nor authenticated" in note for note in fake.reporter.notes)
    with pytest.raises(UserError, match="expected an address that begins with tls://"):
        crew(
            FakeRun(tmp_path / "again", 1, TWO_CELLS),
            threads.scheduler_address,
            monkeypatch,
            pass_cell,
            authority(tmp_path / "ours"),
        )


def test_cluster_without_workers_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "WORKERS_S", 1.0)
    monkeypatch.setattr(cluster, "CHECK_INTERVAL_S", 0.2)
    with (
        local_cluster(n_workers=0, processes=False, protocol="tcp") as made,
        pytest.raises(UserError, match="has had no worker for 1 s"),
    ):
        crew(FakeRun(tmp_path, 1, TWO_CELLS), made.scheduler_address, monkeypatch, pass_cell)


def test_missing_scheduler_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "CONNECT_S", 1)
    with pytest.raises(MachineError, match=r"the Dask scheduler at tcp://127\.0\.0\.1:9 cannot be reached"):
        crew(FakeRun(tmp_path, 1, TWO_CELLS), "tcp://127.0.0.1:9", monkeypatch, pass_cell)
