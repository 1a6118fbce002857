"""Reports: their content, independence from other files, and rendering in a browser."""

from __future__ import annotations

import html
import json
import math
import re
import shutil
from base64 import b64decode
from collections.abc import Iterator
from hashlib import sha256
from html.parser import HTMLParser
from importlib.metadata import distribution
from itertools import pairwise
from pathlib import Path

import pandas as pd
import pytest
import sample_run
from hypothesis import given
from hypothesis import strategies as st

from browser import open_browser as chromium
from qoslab.analysis import analyse
from qoslab.analysis.charts import DARK, class_graph, contrasting_ink, overlay_graph, scale_colour
from qoslab.analysis.series import class_rates, flow_throughput, means_until
from qoslab.cli import main
from qoslab.cli.result_table import print_outcome
from qoslab.model.comparison import Trace
from qoslab.model.experiment import Experiment
from qoslab.model.reference_names import unknown_names
from qoslab.report import render, text
from qoslab.report.notes import notes
from qoslab.report.page import build_page, traced_cells
from qoslab.results import CellSummary, RunFolder, tables
from qoslab.results.changes import RouterChanges, write_changes
from qoslab.system.shipped import shipped_path
from verdicts import newest_run, status_of


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    folder = sample_run.make_run(tmp_path_factory.mktemp("runs"))
    render(folder)
    return folder


def page_text(page: str) -> str:
    """Return the text of a page, without scripts and style."""

    class Reader(HTMLParser):
        def __init__(self) -> None:
            super().__init__()
            self.silent = 0
            self.found: list[str] = []

        def handle_starttag(self, tag: str, attrs: object) -> None:
            self.silent += tag in ("script", "style")

        def handle_endtag(self, tag: str) -> None:
            self.silent -= tag in ("script", "style")

        def handle_data(self, data: str) -> None:
            if not self.silent:
                self.found.append(data)

    reader = Reader()
    reader.feed(page)
    return " ".join(" ".join(reader.found).split())


class TestWords:
    @pytest.mark.parametrize(
        ("measured", "published", "unit", "message"),
        [
            (950_000, 1_000_000, "b/s", "−5.0 %"),
            (0.33, 0.32, "fraction", "+1.0 points"),
            (25, 25, "ms", "0"),
            (1, 0, "packets", ""),
            (math.nan, 1, "b/s", ""),
            (1, math.nan, "b/s", ""),
            (1, 0, "flag", ""),
            (100.001, 100, "ratio", "below 0.1 %"),
        ],
    )
    def test_difference_is_formatted_relative_to_published(
        self, measured: float, published: float, unit: str, message: str
    ) -> None:
        assert text.difference(measured, published, unit).replace("\xa0", " ") == message  # type: ignore[arg-type]

    def test_numbers_and_units_stay_on_one_line(self) -> None:
        assert text.bind_unit("93 Mb/s to 95.5 Mb/s") == "93\xa0Mb/s to 95.5\xa0Mb/s"
        assert text.bind_unit("1 to 3") == "1 to 3"
        assert text.value_text(math.nan, "b/s") == "–"
        assert text.value_text(math.inf, "ratio") == "∞"

    def test_counts_and_sizes_are_formatted(self) -> None:
        assert text.count(1234567) == "1\u202f234\u202f567"
        assert text.count(0) == "0"
        assert text.count(None) == "–"
        assert text.size(0) == "0 B"
        assert text.size(626_984).replace("\xa0", " ") == "627 kB"
        assert [text.lateness(value) for value in (0, 999, 21_000, 5e6)] == ["0 ns", "999 ns", "21 µs", "5 ms"]


class TestPage:
    def test_report_starts_with_the_verdict(self, run: RunFolder) -> None:
        output = page_text(run.report.read_text())
        assert "1 of 4 expected values is out of tolerance" not in output
        assert output.index("Outside tolerance") < output.index("Measured vs. published")
        assert "1 of 5 expected values is out of tolerance." in output

    def test_measured_and_published_values_are_shown(self, run: RunFolder) -> None:
        output = page_text(run.report.read_text()).replace("\xa0", " ")
        assert re.search(
            r"police\.exceed_share TCP probes\. – 32\.6 % 33\.3 % \+0\.7 points 28 % to 38 % within as predicted",
            output,
        )
        assert re.search(r"police\.bc 31250 B – 31250 B 31250 B within", output)
        assert "Shaped to 1 Mb/s over Policed to 1 Mb/s" in output

    def test_report_has_streams_counters_output_and_configuration(self, run: RunFolder) -> None:
        output = page_text(run.report.read_text())
        assert "Jain's fairness index" in output
        assert "class class-default" in output
        assert "Service-policy output: <during>" in output
        assert "police cir 1000000" in output and "shape average 1000000" in output
        assert "0123456789ab" in output and "iperf 3.12" in output

    @pytest.mark.long
    def test_passing_run_has_a_passing_verdict(self, tmp_path: Path) -> None:
        experiment = json.loads(json.dumps(sample_run.EXPERIMENT))
        del experiment["compare"]["expectations"][2]
        folder = sample_run.make_run(tmp_path, experiment=experiment)
        page = build_page(folder, analyse(folder))
        assert page.verdict.kind == "within"
        assert page.verdict.sentence == "All 4 expected values are within tolerance."

    def test_invalid_run_has_reasons_and_graphs(self, tmp_path: Path) -> None:
        folder = sample_run.make_run(tmp_path, valid=False)
        page = build_page(folder, analyse(folder))
        assert page.verdict.kind == "invalid"
        assert page.verdict.details == ["policed/1: R1: the kernel dropped 7 frames"]
        assert page.arms[0].problems == ["R1: the kernel dropped 7 frames"]
        assert page.trust.sentence.startswith("No: ")
        assert {row.verdict for row in page.figures[0].rows} == {"not valid"}
        assert "not valid" not in {row.verdict for row in page.figures[1].rows}
        assert len(page.arms[0].graphs) == 2

    def test_notes_have_measured_values(self, tmp_path: Path) -> None:
        experiment = json.loads(json.dumps(sample_run.EXPERIMENT))
        arms = [arm["name"] for arm in experiment["arms"]]
        experiment["notes"] = [
            {
                "title": "In words",
                "text": f"The sum is\n{{{arms[0]} goodput.sum}}.\n\nNobody measured {{{arms[1]} police.bc}}.",
                "table": {"arms": arms, "metrics": ["goodput.sum", "fairness.jain"]},
            }
        ]
        folder = sample_run.make_run(tmp_path, experiment=experiment)
        outcome = analyse(folder)
        (note,) = build_page(folder, outcome).notes
        metrics = tables.read_table(folder, "metrics")
        sums = [metrics[(metrics["arm"] == arm) & (metrics["metric"] == "goodput.sum")]["value"].mean() for arm in arms]
        assert note.paragraphs == [f"The sum is {text.rate(sums[0])}.", "Nobody measured –."]
        assert note.columns == ["goodput.sum", "fairness.jain"]
        assert [values[0] for _, values in note.rows] == [text.rate(each) for each in sums]
        assert "In words" in page_text(render(folder).read_text())
        (shorter,) = notes(folder.manifest().experiment, metrics[metrics["arm"] == arms[0]])
        assert len(shorter.paragraphs) == len(shorter.rows) == 1
        assert notes(folder.manifest().experiment, metrics[metrics["arm"] == "another"]) == []

    @pytest.mark.sample(3)
    @pytest.mark.parametrize(
        ("left", "why", "sentence", "headings"),
        [
            ((), "", "It is in the state before the run.", ["Policed to 1 Mb/s"]),
            (
                ("-hostname R1", "+hostname <elsewhere>"),
                "",
                "All changes of the run were rolled back; these lines differ from the state before it:",
                ["After the run", "Policed to 1 Mb/s"],
            ),
            (
                None,
                "R1 cannot be reached: Connection refused",
                "It may differ from the state before the run: R1 cannot be reached: Connection refused",
                ["Policed to 1 Mb/s"],
            ),
        ],
    )
    def test_remaining_changes_on_a_router_are_reported(
        self, tmp_path: Path, left: tuple[str, ...] | None, why: str, sentence: str, headings: list[str]
    ) -> None:
        folder = sample_run.make_run(tmp_path)
        arms = {"policed": ("+policy-map Police", "+ class class-default")}
        write_changes(folder.path / "restore/1", {"R1": RouterChanges(arms=arms, left=left, why=why)})
        (change,) = build_page(folder, analyse(folder)).changes
        assert (change.router, change.sentence) == ("R1", sentence)
        assert [heading for heading, _ in change.differences] == headings
        assert change.differences[-1][1] == "+policy-map Police\n+ class class-default"
        output = page_text(render(folder).read_text())
        assert sentence in output and "+policy-map Police + class class-default" in output
        # Any output of a router is text on the page.
        assert ("-hostname R1 +hostname <elsewhere>" in output) is bool(left)

    @pytest.mark.long
    def test_run_without_comparison_captures_and_counters_is_reported(self, tmp_path: Path) -> None:
        experiment = json.loads(json.dumps(sample_run.EXPERIMENT))
        del experiment["compare"]
        del experiment["captures"]
        folder = sample_run.make_run(tmp_path, experiment=experiment, published=())
        for cell in sample_run.cells_of(folder):
            cell.counters("R1").unlink()
        sample_run.reseal(folder.path)
        page = build_page(folder, analyse(folder))
        assert page.verdict.kind == "informative"
        assert [graph.id for graph in page.graphs] == ["lead", "io-policed-reported", "io-shaped-reported"]
        assert "No expectations were set; the values are below." in page_text(render(folder).read_text())

    @pytest.mark.sample(2)
    @pytest.mark.parametrize(
        ("traffic", "message"),
        [
            (
                {"tool": "iperf3", "protocol": "udp", "streams": 2, "rate": "1 Mb/s", "size": "500 B", "dscp": 46},
                ["2 streams of UDP at 1 Mb/s each of 500 B with DSCP 46", "Lost", r"\d+ of \d"],
            ),
            ({"tool": "iperf", "streams": 4, "window": "16 KiB"}, ["with socket buffers of 16 KiB", "Retransmitted"]),
        ],
    )
    def test_other_tools_and_protocols_are_reported(
        self, tmp_path: Path, traffic: dict[str, object], message: list[str]
    ) -> None:
        experiment = json.loads(json.dumps(sample_run.EXPERIMENT))
        udp = traffic.get("protocol") == "udp"
        experiment["duration"] = "3 s" if udp else "4 s"
        # The recorded one belongs to other streams, and would contradict these.
        experiment["captures"] = []
        experiment["traffic"] = [{"name": "transfer", "from": "client", "to": "server"} | traffic]
        folder = sample_run.make_run(tmp_path, experiment=experiment)
        outcome = analyse(folder)
        assert outcome.valid, outcome.reasons
        page = page_text(render(folder, outcome).read_text()).replace("\xa0", " ")
        for each in message:
            assert re.search(each, page)

    @pytest.mark.long
    def test_without_a_capture_the_receivers_reports_are_drawn(self, tmp_path: Path) -> None:
        other = sample_run.make_run(tmp_path / "other", experiment=sample_run.EXPERIMENT | {"captures": []})
        page = build_page(other, analyse(other))
        graph = page.arms[0].io_graphs[0]
        assert graph.id == "io-policed-reported" and graph.summary.startswith("Payload of all flows, ")
        lines = graph.figure["data"]
        assert [line["name"] for line in lines] == ["all flows", *(f"stream {number}" for number in range(1, 5))]
        sums = [sum(values) for values in zip(*(line["y"] for line in lines[1:]), strict=True)]
        assert sums == pytest.approx(lines[0]["y"], abs=0.01)

    def test_dynamic_bucket_is_drawn_below_the_rates(self) -> None:
        rows: list[dict[str, object]] = [
            {
                "time_s": float(second),
                "bytes": 1000 * second,
                "packets": second,
                "police_dynamic_bucket_bytes": 15000 + second,
                "police_dynamic_level_bytes": second,
            }
            for second in range(6)
        ]
        value = class_graph(class_rates(tables.frame("classes", rows)))
        names = {line["name"]: line for line in value["data"]}
        assert names["bucket"]["y"] == [15001, 15002, 15003, 15004, 15005] and names["bucket"]["yaxis"] == "y2"
        assert names["level"]["y"] == [1, 2, 3, 4, 5] and value["layout"]["yaxis2"]["title"]["text"] == "B"

    def test_selected_cells_are_shown_completely(self) -> None:
        cells = [
            CellSummary(arm="grid", parameters={"rtt": rtt, "pir": pir}, repetition=repetition, valid=pir != "2 Mb/s")
            for rtt in ("10 ms", "50 ms")
            for pir in ("1 Mb/s", "2 Mb/s", "5 Mb/s")
            for repetition in (1, 2)
        ]
        found = traced_cells([Trace(title="T", arm="grid", where={"rtt": "50 ms"})], cells)
        assert found == {"grid/rtt=50ms,pir=1Mbps/1": "T", "grid/rtt=50ms,pir=5Mbps/1": "T"}

    @pytest.mark.long
    def test_repetitions_have_a_section_each(self, tmp_path: Path) -> None:
        experiment = json.loads(json.dumps(sample_run.EXPERIMENT)) | {"repetitions": 2}
        folder = sample_run.make_run(tmp_path, experiment=experiment)
        shutil.copytree(folder.cell("policed").path, folder.cell("policed", 2).path)
        file = folder.cell("policed", 2).path / "cell.json"
        file.write_text(json.dumps(json.loads(file.read_text()) | {"repetition": 2}))
        manifest = json.loads((folder.path / "manifest.json").read_text())
        manifest["cells"].append({"arm": "policed", "repetition": 2, "valid": True})
        (folder.path / "manifest.json").write_text(json.dumps(manifest))
        sample_run.reseal(folder.path)
        page = build_page(folder, analyse(folder))
        assert [(arm.anchor, arm.subtitle) for arm in page.arms] == [
            ("policed", "repetition 1"),
            ("policed-2", "repetition 2"),
            ("shaped", "repetition 1"),
        ]
        assert len({graph.id for graph in page.graphs}) == len(page.graphs)

    def test_device_output_cannot_become_markup(self, tmp_path: Path) -> None:
        folder = sample_run.make_run(tmp_path)
        evil = "</pre></script><script>alert('1')</script>"
        base = folder.cell("policed").observation("R1", "during", "show policy-map interface")
        base.with_name(base.name + ".txt").write_text(evil)
        sample_run.reseal(folder.path)
        page = render(folder).read_text()
        assert evil not in page
        assert html.escape(evil, quote=False) in page

    def test_report_needs_no_network(self, run: RunFolder) -> None:
        page = run.report.read_text()
        markup = re.sub(r"<script\b.*?</script>", "", page, flags=re.DOTALL)
        assert not re.search(r"""(?:src|href)=["'](?!#|data:)""", markup)
        assert "@import" not in markup and "url(" not in markup
        assert "default-src 'none'" in markup

    def test_report_has_a_drawing_of_the_topology(self, run: RunFolder) -> None:
        page = run.report.read_text()
        (drawn,) = re.findall(r'<img class="drawn" src="data:image/svg\+xml;base64,([^"]+)"', page)
        topology = run.manifest().experiment.topology
        words = set(re.findall(r">([^<>]+)</tspan>", b64decode(drawn).decode()))
        ends = [end for link in topology.links for end in link.ends]
        assert {*topology.nodes, *(str(address) for end in ends for address in end.addresses)} <= words
        assert '<a href="#topology">' in page and '<section id="topology">' in page

    @pytest.mark.long
    def test_rendering_is_reproducible(self, run: RunFolder) -> None:
        before = run.report.read_bytes()
        assert render(run).read_bytes() == before


@pytest.fixture(scope="module")
def dom(run: RunFolder, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Return the page after a browser has drawn it, with a line switched off and longer bins."""
    change = """(() => {
      const place = document.querySelector('.graph[data-binned]');
      const controls = place.previousElementSibling;
      const points = () => place.data[0].x.length;
      const before = points();
      controls.querySelectorAll('input[type=checkbox]')[1].click();
      controls.querySelectorAll('input[type=radio]')[1].click();
      place.parentElement.querySelector('details.values').open = true;
      const result = {before, after: points(), visible: place.data.map((line) => line.visible !== false)};
      document.body.insertAdjacentHTML('beforeend', `<p id="probe">${JSON.stringify(result)}</p>`);
    })()"""
    with chromium(tmp_path_factory.mktemp("browser")) as tab:
        tab.open(run.report.as_uri())
        assert tab.tell("document.querySelectorAll('details.whole[open]').length") == 0
        tab.tell("document.querySelectorAll('details.whole').forEach((each) => { each.open = true; })")
        tab.wait("document.querySelectorAll('.graph:not(.js-plotly-plot)').length === 0")
        tab.tell(change)
        tab.settle()
        yield tab.tell("document.documentElement.outerHTML")


class TestBrowser:
    def test_every_graph_is_drawn(self, run: RunFolder, dom: str) -> None:
        page = build_page(run, analyse(run))
        assert len(page.graphs) == 5
        for graph in page.graphs:
            start = dom.index(f'id="{graph.id}"')
            drawn = dom[start : dom.find("</figure>", start)]
            lines = len(graph.figure["data"])
            # One line of the first graph of an arm was switched off.
            assert drawn.count('class="trace scatter') == lines - (graph is page.arms[0].graphs[0]), graph.id
            assert len(re.findall(r'class="js-line" d="M', drawn)) >= lines - 1, graph.id

    def test_each_line_has_a_check_box(self, run: RunFolder, dom: str) -> None:
        lines = sum(len(graph.figure["data"]) for graph in build_page(run, analyse(run)).graphs)
        assert dom.count('<input type="checkbox">') == lines

    def test_lines_can_be_switched_off_and_bins_joined(self, dom: str) -> None:
        probe = json.loads(html.unescape(re.findall(r'<p id="probe">(.*?)</p>', dom)[-1]))
        assert probe["visible"][:3] == [True, False, True]
        assert probe["after"] == pytest.approx(probe["before"] / 5, abs=1)

    def test_graph_values_are_available_as_a_table(self, dom: str) -> None:
        table = dom[dom.index('<details class="values" open') :].partition("</table>")[0]
        heads = re.findall(r'<th scope="col">(.*?)</th>', table)
        assert heads[:2] == ["seconds since the traffic started", "all flows, frames, kb/s"]
        assert "stream 1, frames, kb/s" not in heads and "stream 2, frames, kb/s" in heads  # the first was switched off
        probe = json.loads(html.unescape(re.findall(r'<p id="probe">(.*?)</p>', dom)[-1]))
        assert table.count('<th scope="row">') == probe["after"]


class TestReaders:
    """Tests of readers with a keyboard, a screen reader, a phone or dark mode."""

    def test_tables_have_captions_and_scrolling_parts_have_focus(self, run: RunFolder) -> None:
        page = re.sub(r"<script\b.*?</script>", "", run.report.read_text(encoding="utf-8"), flags=re.DOTALL)
        tables_of = re.findall(r"<table.*?</table>", page, flags=re.DOTALL)
        assert len(tables_of) > 8
        assert [table[:200] for table in tables_of if not re.search(r"<caption[^>]*>\s*\S", table)] == []
        scrolling = re.findall(r'<div class="scroll"[^>]*>', page)
        assert scrolling
        assert all(re.search(r'role="region" aria-label="[^"]+" tabindex="0"', each) for each in scrolling)

    def test_graphs_are_named_and_described(self, run: RunFolder) -> None:
        page = run.report.read_text(encoding="utf-8")
        ids = set(re.findall(r'\bid="([^"]+)"', page))
        graphs = re.findall(r'<div class="graph"[^>]*>', page)
        assert len(graphs) == 5
        for graph in graphs:
            named = re.findall(r'aria-(?:labelledby|describedby)="([^"]+)"', graph)
            assert len(named) == 2 and ids.issuperset(named)

    def test_report_headings_skip_no_level(self, run: RunFolder) -> None:
        levels = [int(each) for each in re.findall(r"<h([1-6])", run.report.read_text(encoding="utf-8"))]
        assert levels[0] == 1 and levels.count(1) == 1
        assert all(after - before <= 1 for before, after in pairwise(levels))

    def test_every_graph_colour_has_a_variant_for_dark_mode(self, run: RunFolder) -> None:
        page = run.report.read_text(encoding="utf-8")
        drawn = "".join(re.findall(r'data-for="[^"]+">(.*?)</script>', page))
        colours = set(re.findall(r'"[a-z_]*color":"([^"]+)"', drawn))
        assert len(colours) > 6
        light_in_both = {"#56b4e9"}
        assert colours <= DARK.keys() | light_in_both

    @given(st.floats(0, 1))
    def test_heat_map_values_have_enough_contrast(self, share: float) -> None:
        """Compare the contrast with the minimum of WCAG 2, level AA."""

        def luminance(colour: str) -> float:
            parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
            red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
            return 0.2126 * red + 0.7152 * green + 0.0722 * blue

        colour = scale_colour(share)
        darker, lighter = sorted((luminance(colour), luminance(contrasting_ink(colour))))
        assert (lighter + 0.05) / (darker + 0.05) >= 4.5


class TestSize:
    def test_report_size_is_limited(self, run: RunFolder) -> None:
        assert run.report.stat().st_size < 1_400_000

    @pytest.mark.long
    def test_report_size_of_four_long_arms_is_limited(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)
        arms = [word for arm in ("unrestricted", "policed", "shaped", "policed-cubic") for word in ("--arm", arm)]
        status = main(["run", "policing-vs-shaping", "--lab", "simulated", "--duration", "30s", *arms])
        run = newest_run(tmp_path)
        assert status == status_of(run) in (0, 1)
        assert (run / "report.html").stat().st_size < 1_500_000

    def test_chart_library_equals_the_published_one(self) -> None:
        folder = shipped_path("reports/plotly")
        bundle = (folder / "plotly-basic.min.js").read_bytes()
        assert sha256(bundle).hexdigest() in (folder / "README.md").read_text(encoding="utf-8")
        whole = Path(str(distribution("plotly").locate_file("plotly/package_data/plotly.min.js"))).read_text("utf-8")
        version = re.compile(r"plotly\.js (?:\(basic - minified\) )?v([\d.]+)")
        ours, theirs = (version.search(text[:300]) for text in (bundle.decode(), whole))
        assert ours is not None and theirs is not None and ours[1] == theirs[1]


def test_without_a_publication_there_are_no_columns_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    expectations = sample_run.EXPERIMENT["compare"]["expectations"]
    experiment = {**sample_run.EXPERIMENT, "compare": {"expectations": expectations}}
    folder = sample_run.make_run(tmp_path, experiment=experiment, published=())
    render(folder)
    output = page_text(folder.report.read_text(encoding="utf-8"))
    assert "Measured vs. expected" in output
    assert "Metric Predicted Measured Tolerance Verdict" in output
    assert "ublished" not in output.split("Averages over cells")[0]
    print_outcome(analyse(folder), folder, as_json=False)
    heads = next(line for line in capsys.readouterr().out.splitlines() if "metric" in line)
    assert heads.split() == ["metric", "measured", "expected", "verdict", "predicted"]


NARROW = ["metric", "measured", "expected", "verdict"]


@pytest.mark.parametrize(
    ("columns", "verbose", "heads"),
    [
        ("80", False, NARROW),
        ("120", False, [*NARROW, "published", "difference"]),
        ("140", True, [*NARROW, "published", "difference", "predicted", "reproduction"]),
    ],
)
def test_narrow_terminal_shows_the_verdict_and_verbose_shows_all(
    run: RunFolder,
    columns: str,
    verbose: bool,
    heads: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    print_outcome(analyse(run), run, as_json=False, verbose=verbose)
    lines = capsys.readouterr().out.splitlines()
    table = [line for line in lines if line.startswith(" ")]
    assert max(map(len, table)) <= int(columns)
    assert table[1].split() == heads
    row = next(line for line in table if "police.bc" in line)
    assert "31250 B" in row and "within" in row


def test_narrow_table_truncates_no_verdict(
    run: RunFolder, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    outcome = analyse(run)
    names = ["arm", "n", "metric", "where", "tolerance", "verdict"]
    long = ["shaped/policed", 1, "class.offered.during", "time 5.7 s", "1.787 kb/s to 22.251 kb/s", "loose bounds"]
    outcome.comparison.loc[0, names] = long
    print_outcome(outcome, run, as_json=False)
    row = next(line for line in capsys.readouterr().out.splitlines() if "class.offered" in line)
    assert "1.787 to 22.251 kb/s" in row and "loose bounds" in row


def test_expectation_of_an_invalid_run_is_printed_without_a_verdict(
    run: RunFolder, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    outcome = analyse(run)
    outcome.comparison["verdict"] = "informative"
    print_outcome(outcome, run, as_json=False)
    lines = capsys.readouterr().out.splitlines()
    assert next(line for line in lines if "metric" in line).split() == NARROW
    row = next(line for line in lines if "police.bc" in line)
    assert "31250 B" in row and "not valid" in row


def test_mean_over_the_cells_of_a_sweep_is_named(run: RunFolder, capsys: pytest.CaptureFixture[str]) -> None:
    outcome = analyse(run)
    outcome.comparison.loc[0, ["low", "high", "n", "over"]] = [0.5, 2.5, 4, "cells"]
    print_outcome(outcome, run, as_json=False)
    assert capsys.readouterr().out.count("(mean of 4 cells)") == 1


class TestLead:
    """Tests of the picture before the tables."""

    def test_first_graph_shows_all_arms_before_the_values(self, run: RunFolder) -> None:
        page = run.report.read_text(encoding="utf-8")
        assert page.index('id="lead"') < page.index('id="figures"')
        data = re.search(r'<script type="application/json" data-for="lead">(.*?)</script>', page)
        assert data is not None
        drawn = json.loads(data[1])
        titles = [arm["title"] for arm in sample_run.EXPERIMENT["arms"]]
        assert [line["name"] for line in drawn["data"]] == titles
        assert drawn["layout"]["yaxis"]["rangemode"] == "tozero"

    def test_common_graph_points_are_stored_once(self, run: RunFolder) -> None:
        (graph, *_) = build_page(run, analyse(run)).arms[0].io_graphs
        data = re.search(f'data-for="{re.escape(graph.id)}">(.*?)</script>', run.report.read_text(encoding="utf-8"))
        assert data is not None
        lines, whole = json.loads(data[1])["data"], graph.figure["data"]
        assert [line["x"] for line in lines] == [whole[0]["x"], *(0 for _ in whole[1:])]
        assert [line["y"] for line in lines] == [line["y"] for line in whole] and ".0," not in data[1]

    def test_arms_far_apart_share_a_logarithmic_axis(self) -> None:
        drawn = overlay_graph({"unrestricted": pd.Series([94e6, 95e6]), "policed": pd.Series([8e5, 9e5])})
        assert drawn["layout"]["yaxis"]["type"] == "log"

    def test_single_arm_has_no_first_graph(self, tmp_path: Path) -> None:
        arms = sample_run.EXPERIMENT["arms"][:1]
        experiment = {**sample_run.EXPERIMENT, "arms": arms, "compare": None}
        folder = sample_run.make_run(tmp_path, experiment=experiment, published=())
        render(folder)
        assert 'id="lead"' not in folder.report.read_text(encoding="utf-8")


class TestAnswer:
    """Tests of the answer to the title's question, at the top."""

    ANSWER = {  # noqa: RUF012
        "text": "Policed streams got {policed goodput.sum}, shaped ones {shaped goodput.sum}.",
        "streams": ["policed", "shaped"],
        "bars": "goodput.sum",
    }

    def test_answer_has_values_stream_graphs_and_bars(self, tmp_path: Path) -> None:
        run = sample_run.make_run(tmp_path, experiment=sample_run.EXPERIMENT | {"answer": self.ANSWER})
        outcome = analyse(run)
        page = build_page(run, outcome)
        assert page.answer is not None and page.lead is None
        rows = outcome.comparison[outcome.comparison["metric"] == "goodput.sum"].set_index("arm")
        policed, shaped = (text.rate(float(rows["measured"][arm])) for arm in ("policed", "shaped"))
        assert page.answer.paragraphs == [f"Policed streams got {policed}, shaped ones {shaped}."]
        assert [graph.id for graph in page.answer.graphs] == ["answer-policed", "answer-shaped"]
        for graph, arm in zip(page.answer.graphs, ("policed", "shaped"), strict=True):
            assert graph.figure["layout"]["yaxis"]["rangemode"] == "tozero"
            assert text.rate(float(rows["measured"][arm])) in graph.summary
        (bar, *_) = page.answer.bars
        assert [kind for kind, _, _ in bar.values] == ["published", "measured"] and bar.values[1][1] == policed
        assert max(share for each in page.answer.bars for _, _, share in each.values) == 100
        assert page.answer.heading == "Total goodput"
        html = render(run, outcome).read_text(encoding="utf-8")
        assert html.index("Policed streams got") < html.index('id="figures"')

    def test_bars_of_several_metrics_show_predictions_and_selectors(self, tmp_path: Path) -> None:
        expected = [
            {"arm": "policed", "metric": "goodput.sum(transfer)", "predicted": "1 Mb/s", "within": "50 %"},
            {"arm": "policed", "metric": "goodput.flow.max", "between": ["0 b/s", "10 Mb/s"]},
        ]
        answer = self.ANSWER | {"streams": [], "bars": [each["metric"] for each in expected]}
        experiment = sample_run.EXPERIMENT | {"answer": answer, "compare": {"expectations": expected}}
        run = sample_run.make_run(tmp_path, experiment=experiment, published=())
        page = build_page(run, analyse(run))
        assert page.answer is not None
        assert next(bar.title for bar in page.answer.bars) == "transfer"
        kinds = [[kind for kind, _, _ in bar.values] for bar in page.answer.bars]
        assert kinds == [["predicted", "measured"], ["measured"]]

    def test_report_without_the_answered_arms_has_the_usual_chart(self, tmp_path: Path) -> None:
        arms = sample_run.EXPERIMENT["arms"][:1]
        answer = self.ANSWER | {"streams": []}
        experiment = {**sample_run.EXPERIMENT, "arms": arms, "compare": None, "answer": answer}
        run = sample_run.make_run(tmp_path, experiment=experiment, published=())
        assert build_page(run, analyse(run)).answer is None

    def test_record_with_unknown_metrics_is_refused(self) -> None:
        answer = self.ANSWER | {"text": "{policed goodput.summ}", "bars": "goodput.sun"}
        found = Experiment.model_validate_json(json.dumps(sample_run.EXPERIMENT | {"answer": answer}))
        assert list(unknown_names(found)) == [
            (("answer", "bars"), 'found "goodput.sun", expected a metric'),
            (("answer", "text"), 'found "goodput.summ", expected a metric'),
        ]


def test_rows_that_pass_are_folded(run: RunFolder) -> None:
    page = build_page(run, analyse(run))
    html = run.report.read_text(encoding="utf-8")
    values = html[html.index('id="figures"') : html.index('id="topology"')]
    folded = "".join(re.findall(r'<details class="passed".*?</details>', values, re.DOTALL))
    rows = [row for group in page.figures for row in group.rows]
    assert {row.passed for row in rows} == {True, False}
    for row in rows:
        assert folded.count(f'class="badge {row.verdict}"') == (
            sum(each.verdict == row.verdict for each in rows) if row.passed else 0
        )


def test_mean_is_over_the_traffic_of_its_arm(tmp_path: Path) -> None:
    arms = [dict(each) for each in sample_run.EXPERIMENT["arms"]]
    arms[0]["traffic"] = [sample_run.EXPERIMENT["traffic"][0] | {"duration": "2 s"}]
    run = sample_run.make_run(tmp_path, experiment=sample_run.EXPERIMENT | {"arms": arms})
    page = build_page(run, analyse(run))
    assert page.when.endswith("; 2 s to 4 s of traffic, by the arm.")
    packets, flows = (tables.read_table(run, name) for name in ("packets_io", "flows"))
    notes = []
    for arm, seconds in zip(page.arms, (2, 4), strict=True):
        record = run.cell(arm.anchor).files().record()
        own = (table[table["cell"] == arm.anchor + "/1"] for table in (packets, flows))
        means = means_until(flow_throughput(*own, record.flows), seconds)
        notes.append(f"all flows {text.rate(means['all'])};")
        assert notes[-1] in arm.io_graphs[0].summary
    assert len(set(notes)) == 2, "the same packets, of another time"
