"""Files of qoslab, opened by the tools for which they are written."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

import pandas as pd
import pyarrow.parquet as pq
import pytest
from matplotlib.figure import Figure
from other_tools import PACKAGES, TOP, OtherTools, TestedTool, qoslab

from qoslab.exchange.paper import save, set_style
from qoslab.schema.topology import load_topology

EXPERIMENT = TOP / "experiments/cbwfq-classic.yml"
MERMAID = ("12.3.0", "be0684e8d20bfc874df12c0f04927a5c482f57f2200eec54cca52a4583fd4040")
"""Version and SHA-256 of npm's package."""
PAGE = """<!doctype html><meta charset="utf-8"><script src="mermaid.min.js"></script><pre id="text">{text}</pre><script>
mermaid.initialize({{startOnLoad: false, securityLevel: "strict"}});
mermaid.render("drawn", document.getElementById("text").textContent).then(
  ({{svg}}) => document.body.insertAdjacentHTML("beforeend", svg + "<p id='done'></p>"),
  (error) => document.body.insertAdjacentHTML("beforeend", `<p id="failed">${{error}}</p>`));
</script>"""
CACHE_SCRIPT = """
import io, sys
from pathlib import Path
import requests_cache
from requests.adapters import HTTPAdapter
from urllib3 import HTTPResponse

class OfFile(HTTPAdapter):
    def send(self, request, **_):
        body, kind = io.BytesIO(Path(sys.argv[2]).read_bytes()), {"Content-Type": "application/ld+json"}
        return self.build_response(request, HTTPResponse(body, kind, 200, preload_content=False))

session = requests_cache.CachedSession(sys.argv[1], backend="sqlite")
session.mount("https://", OfFile())
session.get("https://w3id.org/ro/crate/1.1/context").raise_for_status()
"""


GUI = """
import json, sys
import flent
from flent import gui

files, show = sys.argv[1:], gui.MainWindow.show

def look(window):
    tabs = [window.viewArea.widget(place) for place in range(window.viewArea.count())]
    blank = [tab for tab in tabs if not tab.canvas]
    if blank:
        window.viewArea.setCurrentWidget(blank[0])  # it draws what is seen
    elif len(tabs) == len(files):
        lines = {tab.title: [each for axes in tab.canvas.figure.axes for each in axes.lines] for tab in tabs}
        print(json.dumps({title: [line.get_ydata().tolist() for line in each] for title, each in lines.items()}))
        gui.QApplication.quit()

def shown(window):
    show(window)
    window.watch = gui.QTimer(window)
    window.watch.timeout.connect(lambda: look(window))
    window.watch.start(100)

gui.MainWindow.show = shown
sys.argv = ["flent-gui", "-p", "upload", *files]
sys.exit(flent.run_flent_gui())
"""
"""Script that runs flent-gui with some files, prints the plotted lines by tab title, and ends it."""


def test_flent_summarises_and_plots_the_export(
    tools: OtherTools, record_tested_tool: TestedTool, run: Path, tmp_path: Path
) -> None:
    """Summary of each cell with the means of the run, and three plots of its test."""
    qoslab("export", run, "--format", "flent", "--to", tmp_path / "out", folder=tmp_path)
    files = sorted((tmp_path / "out").glob("*.flent.gz"))
    assert len(files) == 5
    for file in files:
        summary = tools.run("flent", "-i", file, "-f", "summary")
        found = {name: float(mean) for name, mean in re.findall(r"TCP upload::(\d+)\s+:\s+([0-9.]+)", summary)}
        written = json.loads(subprocess.run(["gzip", "-dc", file], capture_output=True, check=True).stdout)
        assert sorted(found) == sorted(name[-1] for name in written["results"] if "::" in name)
        for stream, mean in found.items():
            values = [point["val"] for point in written["raw_values"][f"TCP upload::{stream}"]]
            assert mean == pytest.approx(sum(values) / len(values), abs=0.006)
        for plot in ("totals", "upload", "upload_box"):
            tools.run("flent", "-i", file, "-p", plot, "-o", tmp_path / f"{file.stem}-{plot}.svg")
            assert "<path" in (tmp_path / f"{file.stem}-{plot}.svg").read_text()
    record_tested_tool("flent out", "flent", tools.version("flent"))


def test_flent_gui_shows_the_export(
    tools: OtherTools, record_tested_tool: TestedTool, run: Path, tmp_path: Path
) -> None:
    """Window without a screen: it shows all cells, with their titles and one line per stream."""
    qoslab("export", run, "--format", "flent", "--to", tmp_path / "out", folder=tmp_path)
    files = sorted((tmp_path / "out").glob("*.flent.gz"))
    python = tools.path("python")
    probe = subprocess.run([python, "-c", "from qtpy import QtWidgets"], capture_output=True, text=True, timeout=120)
    if "cannot open shared object file" in probe.stderr:
        pytest.skip(f"Qt misses a library here; Debian has those that it needs in {PACKAGES['flent-gui']}")
    alone = ("-u", "QT_API", "QT_QPA_PLATFORM=offscreen", f"HOME={tmp_path}", "timeout", "120", python)
    output = tools.run("env", *alone, "-c", GUI, *files)
    drawn = json.loads(output.splitlines()[-1])
    assert len(drawn) == len(files) == 5
    for file in files:
        written = json.loads(gzip.decompress(file.read_bytes()))
        lines = drawn[f"tcp_nup - {written['metadata']['TITLE']}"]
        streams = [name for name in written["raw_values"] if name.startswith("TCP upload::")]
        assert len(streams) in (2, 4)
        for stream in streams:
            assert [point["val"] for point in written["raw_values"][stream]] in lines
    record_tested_tool("flent out", "flent-gui", tools.version("flent"))


def test_frictionless_accepts_the_csv_export(
    tools: OtherTools, record_tested_tool: TestedTool, run: Path, tmp_path: Path
) -> None:
    """Validation of the package: every row of every table against its declared types."""
    qoslab("export", run, "--format", "csv", "--to", tmp_path / "out", folder=tmp_path)
    report = json.loads(tools.run("frictionless", "validate", "--json", "out/datapackage.json", folder=tmp_path))
    assert report["valid"] and report["stats"]["errors"] == 0
    counted = {task["name"]: task["stats"]["rows"] for task in report["tasks"]}
    files = {file.stem.replace("_", "-"): file for file in (tmp_path / "out").glob("*.csv")}
    assert counted == {name: len(pd.read_csv(file)) for name, file in files.items()} and len(counted) > 5
    record_tested_tool("CSV out", "frictionless", tools.version("frictionless"))


def test_duckdb_reads_the_parquet_export(
    tools: OtherTools, record_tested_tool: TestedTool, run: Path, tmp_path: Path
) -> None:
    """Every table, read by an independent program: rows, names of columns and sums are equal."""
    qoslab("export", run, "--format", "parquet", "--to", tmp_path / "out", folder=tmp_path)
    files = sorted((tmp_path / "out").glob("*.parquet"))
    assert len(files) > 5
    for file in files:
        code = f"import duckdb; duckdb.read_parquet({str(file)!r}).write_csv('read.csv', header=True)"
        tools.run("python", "-c", code, folder=tmp_path)
        theirs, ours = pd.read_csv(tmp_path / "read.csv"), pq.read_table(file).to_pandas()
        assert list(theirs.columns) == list(ours.columns) and len(theirs) == len(ours)
        for name in ours.select_dtypes("number"):
            assert theirs[name].sum() == pytest.approx(float(ours[name].sum()), rel=1e-9), name
    version = tools.run("python", "-c", "import duckdb; print(duckdb.__version__)").strip()
    record_tested_tool("Parquet out", "DuckDB", version)


@pytest.fixture
def crate(run: Path, tmp_path: Path) -> Path:
    file = tmp_path / "run.crate.zip"
    words = ("--licence", "CC-BY-4.0", "--author", "Ada Lovelace <0000-0002-1825-0097>")
    qoslab("export", run, "--format", "ro-crate", "--to", file, *words, folder=tmp_path)
    return file


def test_exported_crate_is_valid_ro_crate(
    tools: OtherTools, record_tested_tool: TestedTool, crate: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """All requirements and recommendations of RO-Crate 1.1 except affiliation and publisher."""
    words: list[str | Path] = [
        "-y",
        "--disable-color",
        "validate",
        "-l",
        "recommended",
        "-f",
        "json",
        "-o",
        "said.json",
    ]
    context = request.config.getoption("--crate-context")
    if context is not None:
        tools.run("python", "-c", CACHE_SCRIPT, tmp_path / "cache", context.absolute())
        words += ["--offline", "--cache-path", tmp_path / "cache"]
    with_all = tmp_path / "unpacked"
    shutil.unpack_archive(crate, with_all)
    argv = [tools.path("rocrate-validator"), *map(str, words), str(with_all)]
    done = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    # The tool wraps its messages.
    if "Name or service not known" in " ".join((done.stdout + done.stderr).split()):
        pytest.skip("w3id.org is not in reach: give --crate-context FILE")
    issues = json.loads((tmp_path / "said.json").read_text())["issues"]
    reported = [f"{each['severity']}: {each['violatingEntity']}: {each['message']}" for each in issues]
    assert [each for each in reported if "affiliation" not in each and "`publisher`" not in each] == []
    record_tested_tool("RO-Crate out", "rocrate-validator", tools.version("rocrate-validator"))


def test_exported_crate_is_readable_by_rocrate(tools: OtherTools, record_tested_tool: TestedTool, crate: Path) -> None:
    """Contents of the crate: licence, author, and each file with its size."""
    code = (
        "import json, sys; from rocrate.rocrate import ROCrate; crate = ROCrate(sys.argv[1]);"
        "files = {e.id: e['contentSize'] for e in crate.data_entities if e.type == 'File'};"
        "root = crate.root_dataset;"
        "print(json.dumps([root['license']['name'], root['author']['name'], files]))"
    )
    licence, author, files = json.loads(tools.run("python", "-c", code, crate))
    assert (licence, author) == ("CC-BY-4.0", "Ada Lovelace")
    with zipfile.ZipFile(crate) as archive:
        sizes = {each.filename: str(each.file_size) for each in archive.infolist()}
    assert sizes.pop("ro-crate-metadata.json") and {unquote(name): size for name, size in files.items()} == sizes
    version = tools.run("python", "-c", "import importlib.metadata as m; print(m.version('rocrate'))").strip()
    record_tested_tool("RO-Crate out", "rocrate", version)


WORDS = ("Policed to 1 Mb/s", "Shaped to 1 Mb/s", "goodput.sum")


def figure(run: Path, folder: Path, form: str) -> Path:
    to = folder / f"box.{form}"
    qoslab("figure", run, "goodput.sum", "--kind", "box", "--to", to, "--width", "88", folder=folder)
    return to


def test_rsvg_draws_the_svg_figure(
    tools: OtherTools, record_tested_tool: TestedTool, run: Path, tmp_path: Path
) -> None:
    """Drawing of the SVG at its width of 88 mm."""
    file = figure(run, tmp_path, "svg")
    tools.run("rsvg-convert", "-d", "254", "-p", "254", "-o", "box.png", file.name, folder=tmp_path)
    drawn = (tmp_path / "box.png").read_bytes()
    assert int.from_bytes(drawn[16:20]) == pytest.approx(880, abs=2) and len(drawn) > 3000
    record_tested_tool("figures out", "rsvg-convert", tools.version("rsvg-convert"))


def test_pdftotext_reads_the_pdf_figure(
    tools: OtherTools, record_tested_tool: TestedTool, run: Path, tmp_path: Path
) -> None:
    """Words of the PDF as text; poppler's pdfinfo reports its width, 88 mm."""
    file = figure(run, tmp_path, "pdf")
    output = " ".join(tools.run("pdftotext", file.name, "-", folder=tmp_path).split())
    assert [word for word in WORDS if word not in output] == []
    width = re.search(r"Page size:\s+([0-9.]+)", tools.run("pdfinfo", file.name, folder=tmp_path))
    assert width is not None and float(width[1]) * 25.4 / 72 == pytest.approx(88, abs=0.2)
    record_tested_tool("figures out", "pdftotext", tools.version("pdftotext", "-v"))


def test_chromium_shows_the_png_figure(
    tools: OtherTools, record_tested_tool: TestedTool, run: Path, tmp_path: Path
) -> None:
    """Page with the PNG, whose size is 88 mm at 300 dots per inch."""
    file = figure(run, tmp_path, "png")
    page = f'<img src="{file.name}" onload="document.title = this.naturalWidth">'
    text = render_in_chromium(tools, tmp_path, page)
    found = re.search(r"<title>(\d+)</title>", text)
    assert found is not None and int(found[1]) == pytest.approx(88 / 25.4 * 300, abs=2), text
    record_tested_tool("figures out", "Chromium", tools.version("chromium"))


def test_pdftex_typesets_the_pgf_figure(
    tools: OtherTools, record_tested_tool: TestedTool, run: Path, tmp_path: Path
) -> None:
    """PGF typeset with no package except pgf; the PDF has all words, including special characters of TeX."""
    tools.path("pdflatex")
    file = figure(run, tmp_path, "pgf")
    set_style()
    signs = Figure(figsize=(3, 2))
    signs.subplots().set_xlabel("100 % of_it & more #1 ^2")
    save(signs, tmp_path / "signs.pgf")
    text = r"\documentclass{article}\usepackage{pgf}\begin{document}\input{%s}\input{signs.pgf}\end{document}"
    (tmp_path / "paper.tex").write_text(text % file.name)
    tools.run("pdflatex", "-interaction=batchmode", "-halt-on-error", "paper.tex", folder=tmp_path)
    output = " ".join(tools.run("pdftotext", "paper.pdf", "-", folder=tmp_path).split())
    assert [word for word in (*WORDS, "100 % of", "it & more #1") if word not in output] == [], output
    record_tested_tool("figures out", "pdfTeX", tools.version("pdflatex"))


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Path]:
    """Yield the inventory of a running virtual lab."""
    name, file = f"interchange-{os.getpid()}", tmp_path / "lab.yml"
    qoslab("lab", "up", "policing-vs-shaping", "--name", name, "--expose", file, folder=tmp_path)
    yield file
    qoslab("lab", "down", name, folder=tmp_path)


def own_crate(name: str) -> str:
    """Return a program of the test environment: qoslab's extras install Ansible and pyATS."""
    return str(Path(sys.executable).with_name(name))


def test_ansible_logs_in_by_the_inventory(tools: OtherTools, record_tested_tool: TestedTool, lab: Path) -> None:
    """Nodes of a virtual lab, and a login to each host by SSH with the values of the inventory."""
    listed = json.loads(tools.run(own_crate("ansible-inventory"), "-i", lab, "--list"))["_meta"]["hostvars"]
    assert sorted(listed) == ["R1", "client", "server"]
    output = tools.run(own_crate("ansible"), "-i", lab, "client:server", "-m", "raw", "-a", "ip -br addr show eth0")
    assert re.findall(r"^(\w+) \| CHANGED", output, re.MULTILINE) and output.count("192.168.") == 2
    record_tested_tool("inventory out", "Ansible", tools.version(own_crate("ansible")))


def test_pyats_accepts_the_testbed(
    tools: OtherTools, record_tested_tool: TestedTool, lab: Path, tmp_path: Path
) -> None:
    """Validation of the testbed that `qoslab testbed` makes from that inventory."""
    qoslab("testbed", "--lab", lab, "--experiment", "policing-vs-shaping", "-o", "bed.yml", folder=tmp_path)
    output = tools.run(own_crate("pyats"), "validate", "testbed", tmp_path / "bed.yml")
    assert "YAML Lint Messages" in output and "ERROR" not in output.upper().replace("0 ERROR", "")
    record_tested_tool("inventory out", "pyATS", tools.version(own_crate("pyats"), "version", "check"))


def render_in_chromium(tools: OtherTools, folder: Path, page: str) -> str:
    """Return the document after Chromium has run the scripts of a page."""
    (folder / "page.html").write_text(page, encoding="utf-8")
    words = ("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking")
    profile = f"--user-data-dir={folder / 'profile'}"
    about = (folder / "page.html").as_uri()
    return tools.run("chromium", *words, profile, "--virtual-time-budget=20000", "--dump-dom", about, folder=folder)


def labels() -> list[str]:
    """Return the texts of a drawing of the topology: nodes and addresses."""
    _, topology = load_topology(EXPERIMENT)
    return [*topology.nodes, *(str(end.address) for link in topology.links for end in link.ends)]


def test_rsvg_draws_the_topology(tools: OtherTools, record_tested_tool: TestedTool, tmp_path: Path) -> None:
    """Drawing of the SVG, with a text for each node and address."""
    qoslab("draw", EXPERIMENT, "--to", "lab.svg", folder=tmp_path)
    tools.run("rsvg-convert", "-f", "pdf", "-o", "lab.pdf", "lab.svg", folder=tmp_path)
    output = tools.run("pdftotext", "lab.pdf", "-", folder=tmp_path)
    assert [word for word in labels() if word not in output] == []
    record_tested_tool("drawings out", "rsvg-convert", tools.version("rsvg-convert"))


def test_mermaid_draws_the_topology(tools: OtherTools, record_tested_tool: TestedTool, tmp_path: Path) -> None:
    """Flowchart in Chromium, with a text for each node and address."""
    version, checksum = MERMAID
    tools.path("chromium")
    packed = tools.run("npm", "pack", "--silent", f"mermaid@{version}", folder=tmp_path).split()[-1]
    assert hashlib.sha256((tmp_path / packed).read_bytes()).hexdigest() == checksum
    with tarfile.open(tmp_path / packed) as archive:
        script = archive.extractfile("package/dist/mermaid.min.js")
        assert script is not None
        (tmp_path / "mermaid.min.js").write_bytes(script.read())
    text = qoslab("draw", EXPERIMENT, "--format", "mermaid", folder=tmp_path)
    drawn = render_in_chromium(tools, tmp_path, PAGE.format(text=text.replace("&", "&amp;").replace("<", "&lt;")))
    # After the script, which contains the same words.
    svg = drawn.rpartition("</script>")[2]
    assert svg.startswith("<svg") and 'id="done"' in svg, svg[:2000]
    assert [word for word in labels() if word not in svg] == []
    record_tested_tool("drawings out", "Mermaid", version)
