"""Runs in the formats of other tools, and figures for papers."""

from __future__ import annotations

import gzip
import json
import shutil
import zipfile
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pandas as pd
import pyarrow.parquet as pq
import pytest
import sample_run

from levels import every_nth
from qoslab.analysis import analyse
from qoslab.cli import main
from qoslab.cli.export import FORMATS, FORMATS_WITH_LICENCE
from qoslab.cli.importing import FORMS
from qoslab.errors import UserError
from qoslab.exchange import EXPORTS, ExportRequest, write_export
from qoslab.exchange.flent import build_data_file
from qoslab.exchange.readers import FORMS as FORMS_READ
from qoslab.exchange.readers import read_foreign
from qoslab.results import RunFolder, tables
from qoslab.results.verify import verify


@pytest.fixture(scope="module")
def export_request(tmp_path_factory: pytest.TempPathFactory) -> ExportRequest:
    folder = sample_run.make_run(tmp_path_factory.mktemp("runs"))
    return ExportRequest(folder, analyse(folder), "CC-BY-4.0", ("Ada Lovelace <0000-0002-1825-0097>", "A. Nother"))


def test_command_line_knows_all_formats() -> None:
    assert tuple(EXPORTS) == FORMATS
    assert tuple(name for name, export in EXPORTS.items() if export.signed) == FORMATS_WITH_LICENCE
    assert FORMS_READ == FORMS


def test_csv_has_every_row_and_its_units(export_request: ExportRequest, tmp_path: Path) -> None:
    folder = write_export(EXPORTS["csv"], export_request, tmp_path / "out")
    package = json.loads((folder / "datapackage.json").read_text())
    assert package["licenses"] == [{"name": "CC-BY-4.0"}]
    assert package["contributors"] == [
        {"title": "Ada Lovelace", "role": "author", "path": "https://orcid.org/0000-0002-1825-0097"},
        {"title": "A. Nother", "role": "author"},
    ]
    named = {resource["path"]: resource for resource in package["resources"]}
    assert {path.name for path in folder.iterdir()} == {*named, "datapackage.json"}
    flows = pd.read_csv(folder / "flows.csv")
    mine = tables.read_table(export_request.folder, "flows")
    assert flows["bytes"].tolist() == mine["bytes"].tolist()
    fields = {field["name"]: field for field in named["flows.csv"]["schema"]["fields"]}
    assert list(fields) == list(flows.columns)
    assert fields["goodput_bps"] == {"name": "goodput_bps", "type": "number", "unit": "b/s"}
    assert fields["stream"] == {"name": "stream", "type": "integer"}
    assert fields["traffic"] == {"name": "traffic", "type": "string"}
    assert {field["type"] for field in named["interfaces.csv"]["schema"]["fields"] if field["name"] == "enabled"} == {
        "boolean"
    }


def test_parquet_has_units(export_request: ExportRequest, tmp_path: Path) -> None:
    folder = write_export(EXPORTS["parquet"], export_request, tmp_path / "out")
    table = pq.read_table(folder / "flows.parquet")
    assert table.schema.field("goodput_bps").metadata == {b"unit": b"b/s"}
    assert table.num_rows == len(tables.read_table(export_request.folder, "flows"))


def _flent_files(export_request: ExportRequest, to: Path) -> dict[str, dict[str, Any]]:
    folder = write_export(EXPORTS["flent"], export_request, to)
    return {file.name: json.loads(gzip.decompress(file.read_bytes())) for file in folder.iterdir()}


def test_flent_export_has_each_cell(export_request: ExportRequest, tmp_path: Path) -> None:
    files = _flent_files(export_request, tmp_path / "out")
    assert set(files) == {"policing-vs-shaping-policed-1.flent.gz", "policing-vs-shaping-shaped-1.flent.gz"}
    policed = files["policing-vs-shaping-policed-1.flent.gz"]
    assert policed["version"] == 4 and policed["metadata"]["NAME"] == "tcp_nup"
    uploads = [name for name in policed["results"] if name.startswith("TCP upload::")]
    assert len(uploads) == 4 == int(policed["metadata"]["TEST_PARAMETERS"]["upload_streams"])
    steps = len(policed["x_values"])
    assert all(len(values) == steps for values in policed["results"].values())
    intervals = tables.read_table(export_request.folder, "intervals")
    first = intervals[(intervals["cell"] == "policed/1") & (intervals["stream"] == 1)]
    assert [point["val"] for point in policed["raw_values"]["TCP upload::1"]] == pytest.approx(
        (first["bps"] / 1e6).tolist(), abs=1e-6
    )
    for place in range(steps):
        known = [policed["results"][name][place] for name in uploads if policed["results"][name][place] is not None]
        if known:
            assert policed["results"]["TCP upload sum"][place] == pytest.approx(sum(known), abs=1e-5)


@pytest.mark.parametrize(
    "given, version", [(([6], None), 6), (([None], None), 4), (([4], [6]), 6), (([4, 6], None), None)]
)
def test_flent_export_has_the_ip_version(
    export_request: ExportRequest, tmp_path: Path, given: tuple[list[int | None], list[int] | None], version: int | None
) -> None:
    run = RunFolder(Path(shutil.copytree(export_request.folder.path, tmp_path / "run")))
    flows = [
        None
        if families is None
        else [
            {**sample_run.EXPERIMENT["traffic"][0], "name": f"t{place}", "family": family}
            for place, family in enumerate(families)
        ]
        for families in given
    ]

    (cell, *_), manifest = sample_run.cells_of(run), run.manifest()
    content = json.loads(cell.experiment_file.read_text())
    content["traffic"], content["arms"][0]["traffic"] = flows
    for place, link in enumerate(content["topology"]["links"]):
        for host, end in enumerate(link["ends"], start=1):
            end["ipv6_address"] = f"2001:db8:{place}::{host}/64"
    cell.experiment_file.write_text(json.dumps(content))
    rows = [
        table[table["cell"] == cell.name]
        for table in (tables.read_table(export_request.folder, name) for name in ("intervals", "flows"))
    ]
    summary = next(each for each in manifest.cells if each.name == cell.name)
    assert build_data_file(manifest, summary, cell.files(), *rows)["metadata"]["IP_VERSION"] == version


def test_export_to_flent_can_be_imported(export_request: ExportRequest, tmp_path: Path) -> None:
    folder = write_export(EXPORTS["flent"], export_request, tmp_path / "out")
    back = read_foreign(folder / "policing-vs-shaping-policed-1.flent.gz")
    assert len(back.rows["flows"]) == 4
    flows = tables.read_table(export_request.folder, "flows")
    sent = flows[flows["cell"] == "policed/1"]["goodput_bps"].sum()
    # At the seconds of a four-second test, without the ends of the series.
    assert sum(float(str(row["goodput_bps"])) for row in back.rows["flows"]) == pytest.approx(sent, rel=0.15)


def test_ro_crate_is_a_run_and_its_damage_is_detected(export_request: ExportRequest, tmp_path: Path) -> None:
    notes = export_request.folder.path / "my notes: 100 % ä?#.txt"
    notes.write_text("none\n")
    lock = export_request.folder.path / ".lock"
    lock.touch()
    file = write_export(EXPORTS["ro-crate"], export_request, tmp_path / "run.crate.zip")
    notes.unlink()
    lock.unlink()
    with zipfile.ZipFile(file) as archive:
        whole = json.loads(archive.read("ro-crate-metadata.json"))
        archive.extractall(tmp_path / "unpacked")
    # The context of RO-Crate 1.1 has no sha256.
    assert whole["@context"] == ["https://w3id.org/ro/crate/1.1/context", {"sha256": "https://schema.org/sha256"}]
    graph = {each["@id"]: each for each in whole["@graph"]}
    about = graph["./"]
    assert about["license"]["@id"] in graph and about["mentions"] == {"@id": "#run"} and ".lock" not in graph
    assert about["license"] == {"@id": "https://spdx.org/licenses/CC-BY-4.0"}
    assert [each["@id"] for each in about["author"]] == ["https://orcid.org/0000-0002-1825-0097", "#A.-Nother"]
    assert graph["ro-crate-metadata.json"]["conformsTo"] == {"@id": "https://w3id.org/ro/crate/1.1"}
    parts = {each["@id"] for each in about["hasPart"]}
    files = {
        path.relative_to(tmp_path / "unpacked").as_posix()
        for path in (tmp_path / "unpacked").rglob("*")
        if path.is_file()
    }
    assert {unquote(part) for part in parts} == files - {"ro-crate-metadata.json"} and parts <= graph.keys()
    # Identifiers are URIs, in which no character has another meaning.
    assert "my%20notes%3A%20100%20%25%20%C3%A4%3F%23.txt" in parts
    assert {each["@id"] for each in graph["#run"]["instrument"]} <= graph.keys()
    unpacked = RunFolder(tmp_path / "unpacked")
    # The artificial run has no run.json; nothing else is missing.
    assert [damage.partition(":")[2] for damage in verify(unpacked).damage] == [" found no run.json, expected a run"]
    (tmp_path / "unpacked" / "comparison.csv").write_text("nothing\n")
    reported = verify(unpacked).damage
    (tmp_path / "unpacked" / notes.name).write_text("some\n")
    assert [each for each in verify(unpacked).damage if notes.name in each]
    assert len(reported) == 2 and "comparison.csv" in reported[1] and "found 1 line (8 bytes)" in reported[1]
    for added in ("extra.txt", "restore/extra.txt", "report.html"):
        (tmp_path / "unpacked" / added).parent.mkdir(exist_ok=True)
        (tmp_path / "unpacked" / added).write_text("nobody's\n")
    named = [each for each in verify(unpacked).damage if "is not in ro-crate-metadata.json" in each]
    # A report can be computed from it once it is unpacked.
    assert [each.split()[0] for each in named] == ["extra.txt", "restore/extra.txt"]


def test_export_of_the_same_run_is_identical(export_request: ExportRequest, tmp_path: Path) -> None:
    first, second = (
        write_export(EXPORTS["ro-crate"], export_request, tmp_path / name) for name in ("one.zip", "two.zip")
    )
    assert first.read_bytes() == second.read_bytes()
    assert _flent_files(export_request, tmp_path / "one") == _flent_files(export_request, tmp_path / "two")


@pytest.mark.parametrize("form", FORMATS)
def test_export_overwrites_nothing_and_leaves_no_partial_file(
    export_request: ExportRequest, tmp_path: Path, form: str
) -> None:
    (tmp_path / "there").write_text("mine")
    with pytest.raises(UserError, match="found an existing file"):
        write_export(EXPORTS[form], export_request, tmp_path / "there")
    assert (tmp_path / "there").read_text() == "mine" and len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize("form", FORMATS)
def test_invalid_licence_or_author_is_refused(export_request: ExportRequest, tmp_path: Path, form: str) -> None:
    for bad, text in (
        (
            ExportRequest(export_request.folder, export_request.outcome, "do what you like"),
            "expected an SPDX identifier",
        ),
        (
            ExportRequest(export_request.folder, export_request.outcome, "", ("Ada <ada@example.org>",)),
            'expected "NAME"',
        ),
    ):
        with pytest.raises(UserError, match=text):
            write_export(EXPORTS[form], bad, tmp_path / "bad.zip")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("words", [("--licence", "do what you like"), ("--author", "Ada <ada@example.org>")])
def test_licence_is_refused_for_formats_without_one(
    export_request: ExportRequest,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    form: str,
    words: tuple[str, str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["export", str(export_request.folder.path), "--format", form, *words]) == 2
    output = capsys.readouterr().err
    if form in FORMATS_WITH_LICENCE:
        assert f'{words[0]}: found "{words[1]}", expected ' in output
    else:
        assert f"found {words[0]} with --format {form}, expected a format with such a field: csv, ro-crate" in output
    assert list(tmp_path.iterdir()) == []


@pytest.mark.long
def test_figures_are_drawn_in_all_formats(
    export_request: ExportRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    run = str(export_request.folder.path)
    assert main(["figure", run, "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert "goodput.sum" in listed["metrics"]
    name = next(iter(listed["graphs"]))
    assert main(["figure", run, name]) == 0
    drawn = (tmp_path / f"{name}.svg").read_text()
    assert drawn.startswith("<?xml") and "seconds since" in drawn
    for kind, form, magic in (("ecdf", "pdf", b"%PDF"), ("box", "png", b"\x89PNG"), ("bar", "svg", b"<?xml"))[
        :: every_nth(2)
    ]:
        file = tmp_path / f"{kind}.{form}"
        assert main(["figure", run, "goodput.sum", "--kind", kind, "--to", str(file)]) == 0
        assert file.read_bytes().startswith(magic)
    again = (tmp_path / "bar.svg").read_bytes()
    assert main(["figure", run, "goodput.sum", "--kind", "bar", "--to", "bar.svg"]) == 0
    before = sorted(tmp_path.iterdir())
    for words, text in (
        ([name, "--kind", "box"], f"found --kind box with {name}, expected a metric"),
        (["--kind", "box"], "found --kind, --format or --to without NAME"),
        (["--to", "none.svg"], "found --kind, --format or --to without NAME"),
    ):
        assert main(["figure", run, *words]) == 2
        assert text in capsys.readouterr().err and sorted(tmp_path.iterdir()) == before
    assert (tmp_path / "bar.svg").read_bytes() == again
    assert b"published" in again and b"Policed to 1 Mb/s" in again


@pytest.mark.sample(8)
@pytest.mark.parametrize(
    "words, message",
    [
        (["goodput.summ"], 'found figure "goodput.summ", expected a graph of the report, a metric or'),
        (["goodput.summ"], 'did you mean "goodput.sum"? `qoslab figure /'),
        (["io-policd-server"], 'did you mean "io-policed-server"? `qoslab figure /'),
        (["nothing-like-it"], "\n  `qoslab figure /"),
        (["goodput.sum", "--to", "a.gif"], 'found the extension ".gif", expected one of .svg, .pdf, .png, .pgf'),
        (["goodput.sum", "--to", "a.pdf", "--format", "svg"], "expected the extension .svg"),
    ],
)
def test_impossible_figures_are_refused(
    export_request: ExportRequest,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: list[str],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["figure", str(export_request.folder.path), *words]) == 2
    assert message in capsys.readouterr().err and list(tmp_path.iterdir()) == []


@pytest.mark.long
@pytest.mark.skipif(shutil.which("pdflatex") is not None, reason="there is LaTeX here")
def test_pgf_needs_latex(
    export_request: ExportRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["figure", str(export_request.folder.path), "goodput.sum", "--format", "pgf"]) == 2
    assert "found no pdflatex" in capsys.readouterr().err


BROKEN_LATEX = """\
#!/bin/sh
echo "! LaTeX Error: File \\`pgf.sty' not found."
cat > /dev/null
exit 1
"""


@pytest.mark.long
def test_latex_that_lacks_a_package_is_reported(
    export_request: ExportRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bin").mkdir()
    latex = tmp_path / "bin/pdflatex"
    latex.write_text(BROKEN_LATEX)
    latex.chmod(0o755)
    monkeypatch.setenv("PATH", f"{latex.parent}:/usr/bin:/bin")
    assert main(["figure", str(export_request.folder.path), "goodput.sum", "--kind", "box", "--format", "pgf"]) == 2
    output = capsys.readouterr().err
    assert "ended with an error: ! LaTeX Error: File `pgf.sty' not found." in output and "texlive-pictures" in output
    assert [path.name for path in tmp_path.iterdir()] == ["bin"]
