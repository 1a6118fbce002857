"use strict";
// Draws every graph of the report, with check boxes that switch its lines on and off.
(() => {
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
    return `<svg width="26" height="10" aria-hidden="true"><line x1="1" y1="5" x2="25" y2="5" stroke="${trace.line.color}" stroke-width="3" stroke-dasharray="${dash}"/></svg>`;
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
    const source = document.querySelector(`script[data-for="${place.id}"]`);
    const figure = JSON.parse(source.textContent);
    const whole = figure.data.map((trace) => [trace.x, trace.y]);
    figure.layout.showlegend = false;
    figure.layout.margin.t = 32;
    figure.layout.autosize = true;
    const controls = document.createElement("div");
    controls.className = "controls";
    const lines = field("Show");
    figure.data.forEach((trace, index) => {
      lines.append(option("checkbox", "", true, swatch(trace) + escaped(trace.name), (on) =>
        Plotly.restyle(place, { visible: on }, [index])));
    });
    controls.append(lines);
    const settings = { responsive: true, displaylogo: false, modeBarButtons: [BUTTONS] };
    if (place.dataset.binned) {
      const start = Number(place.dataset.binned);
      const bins = field("Bins of");
      bins.className = "bins";
      const choose = (count) => {
        const all = whole.map(([xs, ys]) => joined(xs, ys, count));
        return { x: all.map((pair) => pair[0]), y: all.map((pair) => pair[1]) };
      };
      [1, 5, 10].forEach((count) => {
        bins.append(option("radio", `${place.id}-bins`, count === start, `${count / 10} s`, () =>
          Plotly.restyle(place, choose(count))));
      });
      controls.append(bins);
      const first = choose(start);
      figure.data.forEach((trace, index) => { trace.x = first.x[index]; trace.y = first.y[index]; });
    }
    place.before(controls);
    Plotly.newPlot(place, figure.data, figure.layout, settings);
  }

  document.querySelectorAll(".graph").forEach(draw);
})();
