// One view of the board: draws at most once a frame, never twice at a time, and not at all while nobody sees it.

const TICK_MS = 500; // how often the stale badge is looked at
const SENT = 100; // stamps kept while no frame comes

function isDark() {
  const lab = document.body.dataset.jpThemeLight;
  return lab === undefined ? matchMedia("(prefers-color-scheme: dark)").matches : lab === "false";
}

class BoardView {
  constructor(store, root) {
    this.store = store;
    this.plots = [];
    this.drawnAs = ""; // epoch and theme of the embedded charts
    this.sent = []; // stamps of the pushes that the next drawing shows
    this.visible = false;
    this.busy = false;
    this.over = new AbortController();
    this.window = new TimeWindow(() => this.schedule());
    this.header = new Header(() => this.window.follow());
    const ask = (what) => store.ask(what);
    this.stalls = new Stalls(ask);
    this.detail = new Detail(ask);
    this.detail.changed = () => this.schedule();
    this.picker = new Picker(ask);
    this.list = element("div", "wb-charts");
    this.root = element("section", "wb-board");
    this.root.setAttribute("aria-label", translate("Live charts"));
    this.root.append(this.header.root, this.stalls.root, this.detail.root, this.list);
    root.append(this.root);
    root.__board = { stats: store.stats, ids: () => this.ids(), rows: () => store.rows }; // for tests and benchmarks
    this.watch();
    store.views.add(this);
  }

  watch() {
    const { signal } = this.over;
    const again = () => this.schedule();
    const seen = new IntersectionObserver((entries) => {
      this.visible = entries.at(-1).isIntersecting;
      again();
    });
    seen.observe(this.root);
    const wide = new ResizeObserver(() => {
      this.arranged = false;
      again();
    });
    wide.observe(this.list);
    const theme = new MutationObserver(again);
    theme.observe(document.body, { attributes: true, attributeFilter: ["data-jp-theme-light"] });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", again, { signal });
    document.addEventListener("visibilitychange", again, { signal });
    const timer = setInterval(() => this.head(), TICK_MS);
    signal.addEventListener("abort", () => {
      for (const observer of [seen, wide, theme]) observer.disconnect();
      clearInterval(timer);
    });
  }

  // Takes when the kernel sent what changed, none for what is not a push.
  changed(sentMs) {
    if (sentMs !== null && this.store.frozen) return this.head();
    if (sentMs !== null && this.shows) this.sent.push(sentMs);
    if (this.sent.length > SENT) this.sent.shift(); // no frames: the window is covered
    this.schedule();
  }

  get shows() {
    return this.visible && !document.hidden && !this.over.signal.aborted;
  }

  schedule() {
    this.dirty = true;
    if (this.busy || this.frame || !this.shows) return;
    this.frame = requestAnimationFrame(async () => {
      this.frame = 0;
      this.busy = true;
      try {
        await this.draw();
      } finally {
        this.busy = false;
        if (this.dirty) this.schedule();
      }
    });
  }

  head() {
    if (!this.shows) return;
    const { status, stale, frozen } = this.store;
    this.header.show(status, { stale, paused: Boolean(frozen), following: !this.window.own });
    this.stalls.show(this.store.stalls);
  }

  async draw() {
    if (!this.shows) return;
    this.dirty = false;
    const sent = this.sent.splice(0);
    const dark = isDark();
    this.root.classList.toggle("wb-dark", dark);
    await this.embed(dark);
    const { rows, signals } = this.store.shown;
    const shown = this.window.apply(signals);
    Object.assign(this.root.dataset, { t0: shown.t0, t1: shown.t1, theme: dark ? "dark" : "light" });
    this.head();
    for (const plot of this.plots) {
      if (this.over.signal.aborted) return;
      const datasets = rows[plot.chart.id] ?? {};
      plot.fill(datasets);
      if (plot.broken || plot.holder.hidden) continue;
      const first = plot.empty;
      await this.try(plot, () => plot.draw(datasets, shown));
      if (first && !plot.empty) this.arranged = false;
    }
    await this.arrange();
    for (const plot of this.plots) this.detail.mark(plot, shown);
    requestAnimationFrame(() => this.store.drawn(sent));
  }

  async embed(dark) {
    const { epoch, charts } = this.store;
    const as = `${epoch} ${dark}`;
    if (as === this.drawnAs) return;
    if (this.epoch !== epoch) {
      this.epoch = epoch;
      this.window.own = null;
      this.detail.show(null); // of another run
      for (const plot of this.plots) plot.finalize();
      this.plots = charts.map((chart) => new Plot(chart, () => this.schedule()));
      for (const plot of this.plots.filter((one) => one.chart.timed !== false)) {
        this.window.listen(plot, this.over.signal);
        this.picker.listen(plot, this, this.over.signal);
      }
      this.list.replaceChildren(...this.plots.map((plot) => plot.root));
    }
    for (const plot of this.plots) await this.try(plot, () => plot.embed(dark, this.width ?? 400));
    this.drawnAs = as;
    this.arranged = false;
    if (this.over.signal.aborted) this.finalize();
  }

  async try(plot, act) {
    try {
      await act();
    } catch (error) {
      console.error(`chart ${plot.chart.id}:`, error);
      plot.fail(error);
    }
  }

  // Give all plots one width and one left edge, whatever room their axes take.
  async arrange() {
    const plots = this.plots.filter((plot) => plot.view && !plot.holder.hidden);
    if (this.arranged || !plots.length || !this.list.clientWidth) return;
    this.arranged = true;
    const margins = plots.map((plot) => plot.margins);
    const left = Math.max(...margins.map(([side]) => side));
    const right = Math.max(...margins.map(([, side]) => side));
    this.width = Math.max(Math.floor(plots[0].holder.clientWidth - left - right), 80);
    for (const [i, plot] of plots.entries()) await this.try(plot, () => plot.size(this.width, left - margins[i][0]));
  }

  // What Vega holds: chart → dataset → ids.
  ids() {
    const of = (plot, name) => plot.view.data(name).map((row) => row.id);
    const all = (plot) => Object.fromEntries(Object.keys(plot.held).map((name) => [name, of(plot, name)]));
    return Object.fromEntries(this.plots.map((plot) => [plot.chart.id, plot.view ? all(plot) : {}]));
  }

  finalize() {
    this.over.abort();
    cancelAnimationFrame(this.frame);
    this.store.views.delete(this);
    for (const plot of this.plots) plot.finalize();
  }
}
