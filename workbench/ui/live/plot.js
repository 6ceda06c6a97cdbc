// One chart of a view: its heading, its Vega view, and its data as a table.

const TABLE_ROWS = 200;
const TABLE_MS = 1000; // between two fillings of a table: a person reads it
const EMBED = {
  renderer: "canvas",
  actions: false,
  logLevel: 1, // errors; an empty dataset is no reason for a warning
  tooltip: { theme: "custom" },
};

function element(tag, name, text) {
  const made = document.createElement(tag);
  if (name) made.className = name;
  if (text !== undefined) made.textContent = text;
  return made;
}

function button(text, act) {
  const made = element("button", "wb-button", text);
  made.type = "button";
  made.addEventListener("click", act);
  return made;
}

class Plot {
  constructor(chart, changed) {
    this.chart = chart;
    this.held = {}; // dataset → Map(id → Vega's tuple)
    this.empty = true;
    this.filled = 0;
    this.root = element("figure", "wb-chart");
    this.root.dataset.chart = chart.id;
    const head = element("figcaption");
    this.toggle = button(translate("Table"), () => {
      this.table.hidden = !this.table.hidden;
      this.holder.hidden = !this.table.hidden;
      this.toggle.setAttribute("aria-pressed", String(!this.table.hidden));
      this.filled = 0;
      changed();
    });
    this.toggle.setAttribute("aria-pressed", "false");
    this.toggle.setAttribute("aria-label", translate("Table of {chart}", { chart: chart.title }));
    this.subtitle = element("p");
    head.append(element("h3", "", chart.title), this.subtitle, this.toggle);
    this.holder = element("div", "wb-plot");
    this.holder.tabIndex = 0;
    this.holder.setAttribute("role", "img");
    this.holder.setAttribute("aria-label", `${chart.title}. ${chart.description}`);
    const keys = translate(
      "Arrow keys move, plus and minus zoom, Home follows, Enter explains the longest in sight; so does a click on a point.",
    );
    this.holder.setAttribute("aria-description", keys);
    this.holder.dataset.lmSuppressShortcuts = "true"; // arrow keys are ours, not the notebook's
    this.canvas = element("div");
    this.holder.append(this.canvas);
    this.table = element("div", "wb-table");
    this.table.hidden = true;
    this.table.tabIndex = 0; // it scrolls
    this.root.append(head, this.holder, this.table);
  }

  // As wide as it is told, not as its container: axes differ in width and the plots must not. The heading is the page's.
  async embed(dark, width) {
    this.finalize();
    this.broken = false;
    const { autosize, title, ...spec } = dark ? this.chart.dark : this.chart.light;
    this.subtitle.textContent = this.chart.note || [title?.subtitle ?? []].flat().join(" · ");
    const fresh = element("div");
    const mode = spec.$schema?.includes("/vega/") ? "vega" : "vega-lite"; // compiled by the kernel, or not
    const result = await vegaEmbed(fresh, { ...spec, width, background: "transparent" }, { ...EMBED, mode });
    this.result = result;
    this.view = result.view;
    this.names = new Set(result.vgSpec.signals.map((signal) => signal.name));
    this.held = {};
    this.empty = true;
    this.canvas.replaceChildren(fresh);
  }

  // Make the Vega view show these rows: one changeset a dataset, with the difference to what it holds.
  async draw(datasets, signals) {
    for (const [name, value] of Object.entries(signals)) {
      if (this.names.has(name) && value !== null) this.view.signal(name, value);
    }
    // Also what is held and not shown any more: a snapshot leaves out datasets that are empty.
    for (const name of new Set([...Object.keys(this.held), ...Object.keys(datasets)])) {
      const rows = datasets[name] ?? new Map();
      const held = (this.held[name] ??= new Map());
      const gone = [];
      const come = [];
      for (const [id, tuple] of held) {
        if (rows.has(id)) continue;
        gone.push(tuple);
        held.delete(id);
      }
      for (const [id, row] of rows) {
        if (held.has(id)) continue;
        const tuple = { ...row }; // Vega writes into it
        held.set(id, tuple);
        come.push(tuple);
      }
      if (gone.length || come.length) this.view.change(name, this.view.changeset().remove(gone).insert(come));
      if (come.length && this.empty) {
        this.empty = false;
        this.view.resize(); // axes and legends now have their room
      }
    }
    await this.view.runAsync();
  }

  // Where the plot begins in its canvas, px.
  get corner() {
    const [left, top] = this.view.origin(); // without the padding
    const pad = this.view.padding();
    return [left + (pad.left ?? pad), top + (pad.top ?? pad)];
  }

  get margins() {
    const [left] = this.view.origin();
    return [left, this.canvas.firstChild.querySelector("canvas").clientWidth - left - this.view.width()];
  }

  async size(width, indent) {
    this.canvas.style.marginLeft = `${indent}px`;
    if (Math.abs(this.view.width() - width) < 1) return;
    await this.view.width(width).resize().runAsync();
  }

  fill(datasets) {
    const now = performance.now();
    if (this.table.hidden || now - this.filled < TABLE_MS) return;
    this.filled = now;
    const at = this.table.scrollTop;
    this.table.replaceChildren(...Object.entries(datasets).map(([name, rows]) => tableOf(this.chart.title, name, rows)));
    if (!this.table.childElementCount) this.table.append(element("p", "", translate("No data yet.")));
    this.table.scrollTop = at;
  }

  fail(error) {
    this.finalize();
    const said = element("p", "wb-error", translate("This chart cannot be drawn: {error}", { error: error.message }));
    said.setAttribute("role", "alert");
    this.canvas.replaceChildren(said);
    this.broken = true;
  }

  finalize() {
    this.result?.finalize();
    this.result = this.view = null;
    this.held = {};
  }
}

function tableOf(title, name, rows) {
  const newest = [...rows.values()].slice(-TABLE_ROWS).reverse();
  const fields = [...new Set(newest.flatMap(Object.keys))].filter((field) => field !== "id");
  const table = element("table");
  const of = rows.size > newest.length ? `the newest ${newest.length} of ${rows.size} rows` : `${rows.size} rows`;
  table.append(element("caption", "", `${title}, ${name}: ${of}, newest first`));
  const head = table.createTHead().insertRow();
  for (const field of fields) {
    const cell = element("th", "", field);
    cell.scope = "col";
    head.append(cell);
  }
  const body = table.createTBody();
  for (const row of newest) {
    const line = body.insertRow();
    for (const field of fields) {
      const value = row[field] ?? null;
      const cell = line.insertCell();
      cell.textContent = typeof value === "number" ? String(Number(value.toPrecision(6))) : (value ?? "n/a");
      if (typeof value === "number") cell.className = "wb-number";
    }
  }
  return table;
}
