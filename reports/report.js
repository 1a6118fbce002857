"use strict";
// Draws every graph of the report, with check boxes that switch its lines on and off and a table of what is drawn.
(() => {
  const DARK = JSON.parse(document.getElementById("dark-colours")?.textContent ?? "{}");
  // Paper is white, however dark the screen is.
  const darkness = window.matchMedia("screen and (prefers-color-scheme: dark)");
  const PRINTED_WIDTH = 690;
  const BUTTONS = ["zoom2d", "pan2d", "zoomIn2d", "zoomOut2d", "resetScale2d", "toImage"];
  const SHAPES = { solid: "", dash: "6 3", dot: "2 3", dashdot: "6 3 2 3" };

  // Means of `count` bins each, aligned to time 0, so that a bin's edges do not depend on where the capture began.
  function joined(xs, ys, count) {
    if (count === 1 || xs.length < 2) return [xs, ys];
    const width = (xs[xs.length - 1] - xs[0]) / (xs.length - 1);
    const outX = [], outY = [];
    let bin = null, sum = 0, held = 0;
    const close = () => {
      // A bin that the capture covers only in part would look like a drop.
      if (held === count) { outX.push(Number((bin * count * width).toFixed(3))); outY.push(sum / count); }
    };
    xs.forEach((x, index) => {
      const here = Math.floor(Math.round(x / width) / count);
      if (here !== bin) { close(); bin = here; sum = 0; held = 0; }
      sum += ys[index];
      held += 1;
    });
    close();
    return [outX, outY];
  }

  function swatch(trace) {
    const dash = SHAPES[trace.line.dash || "solid"];
    return `<svg width="26" height="10" aria-hidden="true"><line x1="1" y1="5" x2="25" y2="5" stroke-width="3" stroke-dasharray="${dash}"/></svg>`;
  }

  // A figure as it was written, in the colours of the page.
  function read(source) {
    const dark = darkness.matches;
    const found = JSON.parse(source, (key, value) =>
      dark && typeof value === "string" && /color$/.test(key) ? DARK[value] ?? value : value);
    // A line at the same places as an earlier one has that one's number for them.
    found.data.forEach((trace) => { if (typeof trace.x === "number") trace.x = found.data[trace.x].x; });
    return found;
  }

  // Plotly reads some HTML in names and titles; those of imported files are text.
  function plain(part) {
    return JSON.parse(JSON.stringify(part), (key, value) =>
      typeof value === "string" ? value.replaceAll("&", "&amp;").replaceAll("<", "&lt;") : value);
  }

  // What is drawn, as a table: a row for each place on the x axis.
  function table(figure, title) {
    const shown = figure.data.filter((trace) => trace.visible !== false);
    const rows = new Map();
    shown.forEach((trace, column) => trace.x.forEach((x, index) => {
      if (!rows.has(x)) rows.set(x, new Array(shown.length).fill(""));
      rows.get(x)[column] = trace.y[index] ?? "";
    }));
    const made = document.createElement("table");
    made.className = "plain";
    made.createCaption().textContent = title;
    const head = made.createTHead().insertRow();
    const axis = (name) => figure.layout[name]?.title?.text ?? "";
    const heading = (place, text, scope) => {
      const cell = document.createElement("th");
      cell.scope = scope;
      cell.textContent = text;
      place.append(cell);
    };
    heading(head, axis("xaxis") || axis("xaxis2"), "col");
    shown.forEach((trace) => heading(head, `${trace.name}, ${axis(trace.yaxis === "y2" ? "yaxis2" : "yaxis")}`, "col"));
    const body = made.createTBody();
    const number = (a, b) => (typeof a === "number" && typeof b === "number" ? a - b : 0);
    [...rows.keys()].sort(number).forEach((x) => {
      const row = body.insertRow();
      heading(row, x, "row");
      rows.get(x).forEach((value) => { row.insertCell().textContent = value; });
    });
    return made;
  }

  function field(title) {
    const set = document.createElement("fieldset");
    const legend = document.createElement("legend");
    legend.textContent = title;
    set.append(legend);
    return set;
  }

  function option(kind, name, checked, content, change) {
    const label = document.createElement("label");
    const input = document.createElement("input");
    input.type = kind;
    input.checked = checked;
    if (name) input.name = name;
    input.addEventListener("change", () => change(input.checked));
    label.append(input);
    label.insertAdjacentHTML("beforeend", content);
    return label;
  }

  function escaped(text) {
    const node = document.createElement("span");
    node.textContent = text;
    return node.outerHTML;
  }

  function draw(place) {
    const source = document.querySelector(`script[data-for="${place.id}"]`).textContent;
    const title = place.dataset.title;
    const start = Number(place.dataset.binned) || 1;
    const hidden = new Set();
    let count = start;
    let printed = false;

    const figure = () => {
      const found = read(source);
      found.data.forEach((trace, index) => {
        trace.visible = !hidden.has(index);
        if (place.dataset.binned) [trace.x, trace.y] = joined(trace.x, trace.y, count);
      });
      // What was zoomed into stays so when lines appear and disappear.
      Object.assign(found.layout, { showlegend: false, autosize: !printed, uirevision: "kept" });
      if (printed) found.layout.width = PRINTED_WIDTH;
      found.layout.margin.t = 32;
      return found;
    };
    const controls = document.createElement("div");
    controls.className = "controls";
    const values = document.createElement("details");
    values.className = "values";
    values.innerHTML = '<summary>Values as a table</summary><div class="scroll" role="region" tabindex="0"></div>';
    values.lastChild.setAttribute("aria-label", `${title}: values`);

    const show = () => {
      const found = figure();
      controls.querySelectorAll("svg line").forEach((line, index) => {
        line.setAttribute("stroke", found.data[index].line.color);
      });
      if (values.open) values.lastChild.replaceChildren(table(found, title));
      return Plotly.react(place, plain(found.data), plain(found.layout), { responsive: true, displaylogo: false, modeBarButtons: [BUTTONS] });
    };
    values.addEventListener("toggle", show);
    const lines = field("Show");
    lines.setAttribute("aria-label", `Lines of ${title}`);
    read(source).data.forEach((trace, index) => {
      lines.append(option("checkbox", "", true, swatch(trace) + escaped(trace.name), (on) => {
        if (on) hidden.delete(index); else hidden.add(index);
        show();
      }));
    });
    controls.append(lines);
    if (place.dataset.binned) {
      const bins = field("Bins of");
      bins.setAttribute("aria-label", `Bins of ${title}`);
      bins.className = "bins";
      [1, 5, 10].forEach((each) => {
        bins.append(option("radio", `${place.id}-bins`, each === start, `${each / 10} s`, () => {
          count = each;
          show();
        }));
      });
      controls.append(bins);
    }
    place.before(controls);
    place.parentElement.append(values);
    // Plotly cannot tell the size of a graph inside a closed part.
    const part = place.closest("details");
    part?.addEventListener("toggle", () => { if (part.open) show(); });
    if (!part || part.open) show();
    darkness.addEventListener("change", show);
    window.addEventListener("beforeprint", () => { printed = true; show(); });
    window.addEventListener("afterprint", () => { printed = false; show(); });
  }

  // Says below a map what one of its figures has beside it: for those who touch it, or come by the arrow keys.
  function tell(map) {
    const place = map.closest(".map").querySelector(".touched");
    const rows = [...map.tBodies[0].rows].map((row) => [...row.querySelectorAll("td")]);
    const cells = rows.flat().filter((cell) => cell.title);
    if (!place || !cells.length) return;
    cells.forEach((cell) => { cell.tabIndex = -1; });
    cells[0].tabIndex = 0;
    map.addEventListener("focusin", ({ target }) => {
      cells.forEach((cell) => { cell.tabIndex = cell === target ? 0 : -1; });
      place.textContent = target.title;
    });
    const STEPS = { ArrowLeft: [0, -1], ArrowUp: [-1, 0], ArrowRight: [0, 1], ArrowDown: [1, 0] };
    map.addEventListener("keydown", (event) => {
      const step = STEPS[event.key];
      if (!step) return;
      event.preventDefault();
      let row = rows.findIndex((each) => each.includes(event.target));
      let column = rows[row].indexOf(event.target);
      // Over the gaps of what was left out.
      do { row += step[0]; column += step[1]; } while (rows[row]?.[column] && !rows[row][column].title);
      rows[row]?.[column]?.focus();
    });
  }

  // An arm is opened by a link to it, and by a printer.
  const parts = [...document.querySelectorAll("details.whole, details.passed")];
  const reveal = () => {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    target?.querySelector(":scope > details.whole")?.setAttribute("open", "");
  };
  let closed = [];
  window.addEventListener("beforeprint", () => {
    closed = parts.filter((each) => !each.open);
    closed.forEach((each) => { each.open = true; });
  });
  window.addEventListener("afterprint", () => closed.forEach((each) => { each.open = false; }));
  window.addEventListener("hashchange", reveal);
  reveal();
  document.querySelectorAll(".graph").forEach(draw);
  document.querySelectorAll(".heat").forEach(tell);
})();
