// What the kernel said, kept in the model, so that a view that comes late draws from here.

const STALE_MS = 2000; // the kernel pushes ten times a second, with or without data
const HERE_MS = 15000; // a tab in the background is let run once a minute
const LATENCIES = 10000; // kept for whoever reads them

let words = {}; // messages in the panel's language, where that is not English

function translate(message, values = {}) {
  return (words[message] ?? message).replace(/{(\w+)}/g, (place, name) => values[name] ?? place);
}

class Store {
  constructor(model) {
    this.model = model;
    this.views = new Set();
    this.epoch = -1;
    this.seq = -1;
    this.charts = [];
    this.rows = {}; // chart → dataset → Map(id → row)
    this.signals = {};
    this.status = {};
    this.stalls = null;
    this.frozen = null; // what a pause shows
    this.lastPush = 0;
    this.asked = 0;
    this.stats = { received: 0, drawn: 0, holes: 0, rowsTaken: 0, rowsLost: 0, latencies: [] };
  }

  ask(what) {
    this.model.send({ kind: "explain", ...what });
  }

  // Somebody looks: a dashboard whose page is gone ends its engine.
  here() {
    if (!this.stale) this.model.send({ kind: "here" });
  }

  hello() {
    this.asked = performance.now();
    this.lastPush ||= this.asked; // a kernel that does not answer is stale too
    this.model.send({ kind: "hello" });
  }

  take(message) {
    if (message.kind === "reset") this.reset(message);
    else if (message.kind === "push") this.push(message);
    else if (message.kind === "explained") return this.views.forEach((view) => view.detail.show(message.detail));
    else return;
    for (const view of this.views) view.changed(message.kind === "push" ? message.sent_ms : null);
  }

  reset(message) {
    this.asked = 0;
    if (message.epoch === this.epoch && message.seq === this.seq) return; // an answer to another page
    const anew = message.epoch !== this.epoch;
    Object.assign(this, { epoch: message.epoch, seq: message.seq, charts: message.charts });
    this.rows = {};
    this.add(message.rows);
    this.stats.rowsTaken = message.rows_sent; // rows that came and went before are no loss of this page
    this.signals = message.signals;
    this.status = message.status;
    this.stalls = message.stalls;
    this.lastPush = performance.now();
    if (this.frozen && anew) this.freeze();
  }

  push(message) {
    this.stats.received += 1;
    if (message.epoch !== this.epoch || message.seq !== this.seq + 1) {
      if (message.epoch === this.epoch && message.seq <= this.seq) return; // in the snapshot already
      if (message.epoch === this.epoch) this.stats.holes += 1;
      if (!this.asked || performance.now() - this.asked > STALE_MS) this.hello();
      return;
    }
    this.seq = message.seq;
    this.lastPush = performance.now();
    for (const [chart, datasets] of Object.entries(message.drop)) {
      for (const [name, ids] of Object.entries(datasets)) {
        for (const id of ids) this.rows[chart]?.[name]?.delete(id);
      }
    }
    this.add(message.add);
    this.stats.rowsLost = message.rows_sent - this.stats.rowsTaken;
    this.signals = message.signals;
    this.status = message.status;
    if (message.stalls !== undefined) this.stalls = message.stalls; // told when they change
  }

  add(charts) {
    for (const [chart, datasets] of Object.entries(charts)) {
      for (const [name, columns] of Object.entries(datasets)) {
        const rows = ((this.rows[chart] ??= {})[name] ??= new Map());
        const fields = Object.keys(columns);
        columns.id.forEach((id, i) => {
          rows.set(id, Object.fromEntries(fields.map((field) => [field, columns[field][i]])));
        });
        this.stats.rowsTaken += columns.id.length;
      }
    }
  }

  freeze() {
    const copy = (datasets) => Object.fromEntries(Object.entries(datasets).map(([name, rows]) => [name, new Map(rows)]));
    const rows = Object.fromEntries(Object.entries(this.rows).map(([chart, datasets]) => [chart, copy(datasets)]));
    this.frozen = { rows, signals: { ...this.signals } };
  }

  pause(paused) {
    if (paused) this.freeze();
    else this.frozen = null;
    for (const view of this.views) view.changed(null);
  }

  get shown() {
    return this.frozen ?? this;
  }

  // Seconds without a push, once that is too many; 0 otherwise.
  get stale() {
    const silent = this.lastPush ? performance.now() - this.lastPush : 0;
    return silent > STALE_MS ? Math.round(silent / 1000) : 0;
  }

  drawn(sent) {
    this.stats.drawn += 1;
    const now = Date.now();
    this.stats.latencies.push(...sent.map((at) => now - at));
    this.stats.latencies.splice(0, this.stats.latencies.length - LATENCIES);
  }
}
