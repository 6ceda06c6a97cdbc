// What a person picked on a chart, explained by the kernel: a box, and a mark on all charts. And the list of stalls.

const NEAR_PX = 8; // between a click and a point
const STILL_PX = 4; // a pointer that moved less has clicked, not dragged

// Which point of a chart a click or a key means: a gap of a stream, or a time.
class Picker {
  constructor(ask) {
    this.ask = ask;
  }

  listen(plot, view, signal) {
    const on = (kind, act) => plot.holder.addEventListener(kind, act, { signal });
    let from = null;
    on("pointerdown", (event) => (from = event.button === 0 ? [event.clientX, event.clientY] : null));
    on("pointerup", (event) => {
      const still = from && Math.hypot(event.clientX - from[0], event.clientY - from[1]) < STILL_PX;
      from = null;
      if (still && plot.view) this.at(plot, view, event);
    });
    on("keydown", (event) => {
      if (event.key !== "Enter" || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      event.stopPropagation();
      this.largest(plot, view);
    });
  }

  at(plot, view, event) {
    const box = plot.canvas.getBoundingClientRect();
    const [left, top] = plot.corner;
    const { t0, t1 } = view.window.apply(view.store.shown.signals);
    const x = event.clientX - box.left - left;
    const y = event.clientY - box.top - top;
    const perS = plot.view.width() / (t1 - t0);
    if (x < 0 || x > plot.view.width()) return;
    const gap = plot.chart.id === "gaps" ? this.gapNear(view, (row) => (row.t - t0) * perS - x, plot, y) : null;
    this.ask(gap ? { t: gap.t, stream: gap.stream } : { t: t0 + x / perS });
  }

  // The gap nearest to the pointer; above an empty place, the longest one that ended there: the spike.
  gapNear(view, far, plot, y) {
    const near = gapsOf(view).filter((row) => Math.abs(far(row)) <= NEAR_PX);
    const scale = safeScale(plot.view, "y");
    const off = (row) => Math.hypot(far(row), scale ? scale(row.gap) - y : 0);
    near.sort((a, b) => off(a) - off(b));
    if (scale && near.length && off(near[0]) > NEAR_PX) near.sort((a, b) => b.gap - a.gap);
    return near[0];
  }

  largest(plot, view) {
    const { t0, t1 } = view.window.apply(view.store.shown.signals);
    const seen = (row) => row.t >= t0 && row.t <= t1;
    if (plot.chart.id === "gaps") {
      const rows = gapsOf(view).filter(seen);
      const top = rows.reduce((most, row) => (most && most.gap >= row.gap ? most : row), null);
      if (top) this.ask({ t: top.t, stream: top.stream });
      return;
    }
    const bars = [...(view.store.shown.rows.steps?.bars?.values() ?? [])].filter(seen);
    const top = bars.reduce((most, row) => (most && most.ms >= row.ms ? most : row), null);
    if (top) this.ask({ t: top.t, step: top.step });
  }
}

function gapsOf(view) {
  const held = view.store.shown.rows.gaps ?? {};
  return [...(held.stalls?.values() ?? []), ...(held.gaps?.values() ?? [])];
}

function safeScale(view, name) {
  try {
    return view.scale(name);
  } catch {
    return null; // a chart without one of that name
  }
}

class Detail {
  constructor(ask) {
    this.ask = ask;
    this.shown = null;
    this.root = element("section", "wb-detail");
    this.root.setAttribute("aria-label", translate("What stands behind a point"));
    this.root.hidden = true;
    const bar = element("div", "wb-line");
    this.title = element("h3");
    this.before = button(translate("◂ Step before"), () => this.walk(-1));
    this.after = button(translate("Step after ▸"), () => this.walk(1));
    bar.append(this.title, this.before, this.after, button(translate("Close"), () => this.show(null)));
    this.facts = element("dl");
    this.said = element("div");
    this.said.setAttribute("role", "status");
    this.said.append(this.facts);
    this.root.append(bar, this.said);
  }

  show(detail) {
    this.shown = detail;
    this.root.hidden = !detail;
    if (!detail) return this.changed?.();
    this.title.textContent = detail.title;
    this.facts.replaceChildren(
      ...detail.facts.flatMap(([label, text]) => [element("dt", "", label), element("dd", "", text)]),
    );
    for (const one of [this.before, this.after]) one.hidden = detail.step === null;
    this.changed?.();
  }

  walk(steps) {
    this.ask({ t: this.shown.t0 ?? 0, step: this.shown.step + steps });
  }

  // Where it is on a chart: a band over the plot.
  mark(plot, window) {
    const box = (plot.band ??= plot.holder.appendChild(element("div", "wb-band")));
    const { t0, t1 } = this.shown ?? {};
    const there = plot.view && plot.chart.timed !== false && Number.isFinite(t0) && t1 >= window.t0 && t0 <= window.t1;
    box.hidden = !there;
    if (!there) return;
    const perS = plot.view.width() / (window.t1 - window.t0);
    const [left, top] = plot.corner;
    const begin = Math.max(t0 - window.t0, 0) * perS;
    const end = Math.min(t1 - window.t0, window.t1 - window.t0) * perS;
    const indent = Number.parseFloat(plot.canvas.style.marginLeft) || 0;
    Object.assign(box.style, {
      left: `${indent + left + begin}px`,
      width: `${Math.max(end - begin, 2)}px`,
      top: `${top}px`,
      height: `${plot.view.height()}px`,
    });
  }
}

// Stalls by cause with the share that is explained; opened, the longest with a button each.
class Stalls {
  constructor(ask) {
    this.ask = ask;
    this.known = "";
    this.root = element("div", "wb-stalls");
    this.toggle = button("", () => {
      this.list.hidden = !this.list.hidden;
      this.toggle.setAttribute("aria-expanded", String(!this.list.hidden));
    });
    this.toggle.setAttribute("aria-expanded", "false");
    this.list = element("div", "wb-table");
    this.list.hidden = true;
    this.list.tabIndex = 0;
    this.root.append(this.toggle, this.list);
    this.root.hidden = true;
  }

  show(stalls) {
    this.root.hidden = !stalls?.rows;
    const now = JSON.stringify(stalls);
    if (this.root.hidden || now === this.known) return;
    this.known = now;
    this.toggle.textContent = stalls.text;
    this.toggle.title = stalls.hint;
    if (this.list.contains(document.activeElement) && document.activeElement !== this.list) return; // a person is in it
    const table = element("table");
    table.append(element("caption", "", stalls.caption));
    const head = table.createTHead().insertRow();
    const names = [translate("ended, s"), translate("stream"), translate("gap, ms"), translate("cause"), translate("what"), ""];
    for (const name of names) {
      const cell = head.appendChild(element("th", "", name));
      cell.scope = "col";
    }
    const body = table.createTBody();
    for (const [at, stream, gap, cause, what] of stalls.rows) {
      const line = body.insertRow();
      for (const text of [at.toFixed(2), stream, Math.round(gap).toLocaleString("en"), cause, what]) {
        line.insertCell().textContent = text;
      }
      const why = button(translate("Why"), () => this.ask({ t: at, stream }));
      why.setAttribute("aria-label", translate("Why {stream} stood still until {at} s", { stream, at: at.toFixed(2) }));
      line.insertCell().append(why);
    }
    const top = this.list.scrollTop;
    this.list.replaceChildren(table);
    this.list.scrollTop = top;
  }
}
