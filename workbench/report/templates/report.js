// Runs behind the bundled Vega libraries. Without it the page is complete but for hovering and downloads.

const read = (id) => JSON.parse(document.getElementById(id).textContent);

/** Base64 of gzipped JSON, as packed.py wrote it. */
async function unpack(text) {
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const opened = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(opened).text());
}

/** The columns of a table: whole numbers as they are, as steps, or apart from another column; texts by their codes. */
async function columns(packed) {
  const whole = {};
  const out = {};
  for (const [name, column] of Object.entries((await unpack(packed)).columns)) {
    if (column.texts) {
      out[name] = column.codes.map((code) => (code === null ? null : column.texts[code]));
      continue;
    }
    let last = 0;
    if (column.values) whole[name] = column.values;
    else if (column.steps) whole[name] = column.steps.map((n) => (n === null ? null : (last += n)));
    else whole[name] = column.apart.map((n, i) => (n === null ? null : n + (whole[column.from][i] ?? 0)));
    const by = 10 ** column.digits;
    out[name] = whole[name].map((n) => (n === null ? null : n / by));
  }
  return out;
}

function csv(table) {
  const names = Object.keys(table);
  // A cell that a spreadsheet would take for a formula gets a quote in front.
  const safe = (text) => (/^[=+\-@\t\r]/.test(text) ? `'${text}` : text);
  const cell = (value) => {
    if (value === null) return "";
    if (typeof value !== "string") return String(value);
    const text = safe(value);
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  const rows = (table[names[0]] ?? []).map((_, i) => names.map((name) => cell(table[name][i])).join(","));
  return [names.map(cell).join(","), ...rows].join("\r\n") + "\r\n";
}

function link(shown, name, make) {
  const a = document.createElement("a");
  a.textContent = shown;
  a.href = "#data";
  a.addEventListener("click", async (click) => {
    if (a.download) return;
    // Made on the first click: a link of this kind has no limit on its size, and the page opens faster.
    click.preventDefault();
    a.href = URL.createObjectURL(new Blob([await make()], { type: "text/csv" }));
    a.download = name;
    a.click();
  });
  return a;
}

function downloads(report) {
  const list = document.getElementById("downloads");
  const entry = (label, links) => {
    const item = document.createElement("li");
    const name = document.createElement("span");
    name.className = "label";
    name.textContent = label;
    item.append(name, ...links);
    list.append(item);
  };
  const table = { setting: report.runs.map((run) => run.label) };
  for (const key of report.columns) table[key] = report.rows.map((row) => row[key] ?? null);
  entry(list.dataset.comparison, [link("comparison.csv", "comparison.csv", () => csv(table))]);
  for (const run of report.runs) {
    const slug = run.label.replace(/[^A-Za-z0-9]+/g, "-").replace(/^-|-$/g, "").slice(0, 60) || "run";
    const links = Object.entries(run.data).map(([name, { data }]) =>
      link(`${name}.csv`, `${slug}.${name}.csv`, async () => csv(await columns(data))));
    entry(run.label, links);
  }
}

async function draw(figure, spec) {
  const plot = figure.querySelector(".plot");
  const live = document.createElement("div");
  await vegaEmbed(live, spec, {
    mode: "vega-lite",
    renderer: "svg",
    actions: false,
    ast: true, // no code is made from strings, which the page's policy forbids
    tooltip: { theme: "wb" },
  });
  plot.replaceChildren(live);
}

async function main() {
  const page = document.documentElement;
  if (location.hash === "#static") return; // printed as it was drawn when it was written
  downloads(read("report-data"));
  page.dataset.charts = "drawing";
  const specs = await unpack(document.getElementById("specs").textContent);
  for (const figure of document.querySelectorAll("figure[data-chart]")) {
    try {
      await draw(figure, specs[figure.dataset.chart]);
    } catch (error) {
      console.error(`chart ${figure.dataset.chart} stays static:`, error);
    }
    await new Promise((resume) => setTimeout(resume));
  }
  page.dataset.charts = "live";
}

main();
