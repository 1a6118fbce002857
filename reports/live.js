"use strict";
// Shows a run while it goes on: asks once a second what is new, and draws it as the report does.
(() => {
  const EVERY_MS = 1000;
  const darkness = window.matchMedia("(prefers-color-scheme: dark)");
  const byId = (id) => document.getElementById(id);
  let lost = 0;

  function element(name, text, parent, attributes) {
    const made = document.createElement(name);
    made.textContent = text;
    Object.entries(attributes ?? {}).forEach(([key, value]) => made.setAttribute(key, value));
    parent?.append(made);
    return made;
  }

  function list(place, texts) {
    place.replaceChildren(...texts.map((text) => element("li", text)));
  }

  // Headings are pairs of a key and what people read; the first column is the rows' heading.
  function table(caption, headings, rows) {
    const made = document.createElement("table");
    made.createCaption().textContent = caption;
    const head = made.createTHead().insertRow();
    headings.forEach(([key, text], index) => element("th", text, head, { scope: "col", ...(index ? { class: "number" } : {}) }));
    const body = made.createTBody();
    rows.forEach((row) => {
      const line = body.insertRow();
      headings.forEach(([key], index) => {
        if (index) element("td", row[key], line, { class: "number" });
        else element("th", row[key], line, { scope: "row" });
      });
    });
    return made;
  }

  const CLASSES = [["title", "Class"], ["offered", "offered"], ["sent", "sent"], ["dropped", "dropped"], ["queue", "queue, packets"], ["wait", "waiting time"]];
  const INTERFACES = [["title", "Interface"], ["input", "input"], ["output", "output"], ["queue", "queue, packets"], ["drops", "drops so far"], ["delay", "queueing delay"]];
  const FIGURES = [["arm", "Arm"], ["metric", "metric"], ["where", "where"], ["measured", "measured"], ["unit", "unit"], ["tolerance", "expected within"], ["verdict", "verdict"]];

  // A figure in the colours of the page. Plotly reads some HTML in names and titles; those of others are text.
  function coloured(figure, dark) {
    return JSON.parse(JSON.stringify(figure), (key, value) => {
      if (typeof value !== "string") return value;
      if (darkness.matches && /color$/.test(key)) return dark[value] ?? value;
      return value.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
    });
  }

  function graph(place, id, figure, dark) {
    let node = byId(id);
    if (!node) {
      const holder = element("figure", "", place, { class: "live" });
      element("h3", figure.title, holder);
      node = element("div", "", holder, { id, class: "graph", role: "img", "aria-label": figure.title });
    }
    const { data, layout } = coloured(figure, dark);
    Plotly.react(node, data, { ...layout, autosize: true, uirevision: "kept" }, { responsive: true, displaylogo: false });
  }

  function cell(shown, index, dark) {
    const id = `cell-${shown.name}`;
    let section = byId(id);
    if (!section) {
      section = element("section", "", byId("now"), { id });
      element("h2", "", section);
      element("div", "", section, { class: "tables scroll" });
      element("div", "", section, { class: "graphs" });
    }
    const [heading, tables, graphs] = section.children;
    const time = shown.classes[0]?.time ?? shown.interfaces[0]?.time ?? "";
    heading.textContent = `${shown.name}${time ? `, after ${time}` : ""}${shown.over ? " (ended)" : ""}`;
    tables.replaceChildren(
      table("Classes now", CLASSES, shown.classes), table("Interfaces now", INTERFACES, shown.interfaces));
    if (shown.undrawn) element("p", `${shown.undrawn} more classes are not drawn.`, tables);
    if (shown.damaged) element("p", "Some counters could not be read.", tables);
    shown.graphs.forEach((each, number) => graph(graphs, `${id}-graph-${number}`, each, dark));
  }

  function number(value) {
    return value === null ? "–" : Number(value).toPrecision(4).replace(/\.?0+$/, "");
  }

  function show(page) {
    document.title = `${page.done}/${page.planned} ${page.title}`;
    byId("title").textContent = page.title;
    byId("run").textContent = [page.run, page.lab].filter(Boolean).join(", ");
    byId("word").textContent = page.going_on ? "running" : page.state;
    byId("state").className = `verdict ${page.going_on ? "informative" : page.state === "finished" ? "within" : "invalid"}`;
    const parts = [`${page.done} of ${page.planned} cells done`];
    if (page.invalid_count) parts.push(`${page.invalid_count} of them invalid`);
    if (page.report) parts.push(`report: ${page.report}`);
    if (page.error) parts.push(page.error);
    byId("sentence").textContent = `${parts.join("; ")}.`;
    list(byId("doing"), [
      ...page.doing.map((each) => `${each.name}: ${each.step}${each.seconds >= 1 ? ` (${Math.round(each.seconds)} s)` : ""}`),
      ...page.invalid.map((each) => `${each.name} is invalid: ${each.reasons.join("; ")}`)]);
    const names = new Set(page.cells.map((each) => `cell-${each.name}`));
    [...byId("now").children].filter((node) => !names.has(node.id)).forEach((node) => node.remove());
    page.cells.forEach((each, index) => cell(each, index, page.dark));
    byId("figures").hidden = !page.figures.length;
    byId("figures").lastElementChild.replaceChildren(table("Measured so far", FIGURES,
      page.figures.map((row) => ({ ...row, measured: number(row.measured) }))));
    byId("notes").hidden = !page.notes.length;
    list(byId("notes").lastElementChild, page.notes);
  }

  async function ask() {
    let again = true;
    try {
      const reply = await fetch("data.json", { cache: "no-store" });
      if (!reply.ok) throw new Error(reply.statusText);
      const page = await reply.json();
      lost = 0;
      show(page);
      again = page.going_on || !page.report;
    } catch {
      lost += 1;
      if (lost === 3) {
        byId("word").textContent = "connection lost";
        byId("sentence").textContent =
          "qoslab has ended, or was interrupted. The page shows the last received values.";
      }
    }
    if (again) setTimeout(ask, lost > 3 ? 5 * EVERY_MS : EVERY_MS);
  }
  ask();
})();
