// Runs behind the bundled Vega libraries. Without it the page is complete but for hovering and downloads.

const read = (id) => JSON.parse(document.getElementById(id).textContent);

function csv(columns) {
  const names = Object.keys(columns);
  // A cell that a spreadsheet would take for a formula gets a quote in front.
  const safe = (text) => (/^[=+\-@\t\r]/.test(text) ? `'${text}` : text);
  const cell = (value) => {
    if (value === null) return "";
    if (typeof value !== "string") return String(value);
    const text = safe(value);
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  const rows = (columns[names[0]] ?? []).map((_, i) => names.map((name) => cell(columns[name][i])).join(","));
  return [names.map(cell).join(","), ...rows].join("\r\n") + "\r\n";
}

function link(shown, name, make) {
  const a = document.createElement("a");
  a.textContent = shown;
  a.href = "#data";
  a.addEventListener("click", () => {
    if (!a.download) {
      // Made on the first click: a link of this kind has no limit on its size, and the page opens faster.
      a.href = URL.createObjectURL(new Blob([make()], { type: "text/csv" }));
      a.download = name;
    }
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
  entry("Comparison", [link("comparison.csv", "comparison.csv", () => csv(table))]);
  for (const run of report.runs) {
    const slug = run.label.replace(/[^A-Za-z0-9]+/g, "-").replace(/^-|-$/g, "").slice(0, 60) || "run";
    entry(run.label, Object.entries(run.data).map(([name, columns]) => link(`${name}.csv`, `${slug}.${name}.csv`, () => csv(columns))));
  }
}

async function draw(figure) {
  const plot = figure.querySelector(".plot");
  const live = document.createElement("div");
  await vegaEmbed(live, read(`spec-${figure.dataset.chart}`), {
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
  downloads(read("report-data"));
  page.dataset.charts = "drawing";
  for (const figure of document.querySelectorAll("figure[data-chart]")) {
    try {
      await draw(figure);
    } catch (error) {
      console.error(`chart ${figure.dataset.chart} stays static:`, error);
    }
    await new Promise((resume) => setTimeout(resume));
  }
  page.dataset.charts = "live";
}

main();
