"""No mutated value of an experiment, a foreign topology or a run's record causes an internal error."""

from __future__ import annotations

import contextlib
import io
import json
import shutil
from itertools import islice
from pathlib import Path

import pytest
import sample_run
from ruamel.yaml import YAML
from test_foreign_topologies import CONTAINERLAB, NETLAB

from json_mutations import mutated_documents
from qoslab.cli import main
from qoslab.errors import UserError
from qoslab.exchange.topologies.convert import ConversionOptions, import_topology
from qoslab.plan import make_plan
from qoslab.schema import load_sweep

EXPERIMENTS = Path(__file__).parents[2] / "experiments"
OF_AN_EXPERIMENT, OF_A_TOPOLOGY = 16001, 97
"""Share of the tried changes, one of so many: primes, so that each kind of change has its turn."""
CELLS = 3
"""Number of cells of a plan."""


@pytest.fixture(scope="module")
def experiments(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(shutil.copytree(EXPERIMENTS, tmp_path_factory.mktemp("copy") / "experiments"))


@pytest.mark.sample(6)
@pytest.mark.parametrize("name", sorted(path.stem for path in EXPERIMENTS.glob("*.yml")))
def test_mutated_experiment_causes_no_traceback(experiments: Path, name: str) -> None:
    file = experiments / "mistaken.yml"
    plain = YAML(typ="safe").load((experiments / f"{name}.yml").read_text())
    tried = 0
    for reported, text in mutated_documents(json.dumps(plain), OF_AN_EXPERIMENT):
        file.write_text(text)
        tried += 1
        try:
            assert all(cell.name for cell in islice(make_plan(load_sweep(file)).cells, CELLS))
        except UserError as error:
            assert getattr(error, "findings", ()) or str(file) in error.message, reported
        except Exception as error:
            raise AssertionError(reported) from error
    assert tried


@pytest.mark.parametrize("text", [CONTAINERLAB, NETLAB], ids=["containerlab", "netlab"])
def test_mutated_foreign_topology_causes_no_traceback(tmp_path: Path, text: str) -> None:
    file, made = tmp_path / "theirs.yml", tmp_path / "made.yml"
    tried = 0
    for reported, changed in mutated_documents(json.dumps(YAML(typ="safe").load(text)), OF_A_TOPOLOGY):
        file.write_text(changed)
        made.unlink(missing_ok=True)
        tried += 1
        try:
            import_topology(file, made, ConversionOptions())
        except UserError:
            assert not made.exists(), reported
        except Exception as error:
            raise AssertionError(reported) from error
    assert tried


RECORDS = {
    "manifest.json": 8009,
    "cell.json": 4001,
    "experiment.json": 4001,
    "transfer.server.json": 20011,
    "R1.jsonl": 6007,
}
"""Names of files, and the share of tried changes, one of so many."""


@pytest.mark.parametrize("name", RECORDS)
def test_no_mutation_of_a_saved_value_causes_a_traceback(tmp_path: Path, name: str) -> None:
    run = sample_run.make_run_of_one_arm(tmp_path).path
    (file,) = run.rglob(name)
    before = {path: path.read_bytes() for path in (*run.rglob("cell.json"), run / "manifest.json")}
    content, rest = file.read_text(), ""
    if name.endswith(".jsonl"):
        content, _, rest = content.partition("\n")
    tried = 0
    for reported, text in mutated_documents(content, RECORDS[name]):
        for path, kept in before.items():
            path.write_bytes(kept)
        file.write_text(f"{text}\n{rest}")
        if file in before:
            sample_run.change_json(file, lambda _: None)
        sample_run.reseal(run)
        tried += 1
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()) as answer:
            status = main(["report", str(run)])
        assert status in (0, 1, 2, 3), f"{reported}\n{answer.getvalue()}"
    assert tried
