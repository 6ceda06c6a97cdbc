// A guess to draw: drag across the columns, or arrow keys; numbers beside it; and what was measured, once it was.

const YOURS = translate("your guess");
const REVEALED = translate("Bars: expected. Line: measured.");
const ONE_AND_OTHER = translate("{one}, {other}");
const STOP = translate(".");
const DRAG = translate("Drag across the chart, or use the arrow keys.");

const [WIDTH, HEIGHT, LEFT, BOTTOM, TOP, RIGHT] = [720, 230, 64, 34, 10, 8];
const SVG = "http://www.w3.org/2000/svg";

function shape(tag, attributes, text) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

const words = (value) => (value >= 100 || Number.isInteger(value) ? Math.round(value).toLocaleString("en") : value.toPrecision(3));

class Plot {
  constructor(told) {
    this.told = told;
    this.at = 0; // the column that the arrow keys are on
    this.root = shape("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, tabindex: 0, role: "slider", class: "wb-learn-plot" });
    this.root.addEventListener("pointerdown", (event) => this.press(event));
    this.root.addEventListener("keydown", (event) => this.key(event));
    this.root.addEventListener("focus", () => this.draw());
    this.root.addEventListener("blur", () => this.draw());
  }

  take({ draw, drawn, measured }) {
    Object.assign(this, { frame: draw, measured });
    if (!this.held) this.values = [...drawn];
    this.at = Math.min(this.at, this.values.length - 1);
    this.draw();
  }

  get count() {
    return Math.max(this.values.length, this.measured.length);
  }

  share(value) {
    const { low, high, log } = this.frame;
    const at = log ? (Math.log(Math.max(value, low)) - Math.log(low)) / (Math.log(high) - Math.log(low)) : (value - low) / (high - low);
    return Math.min(Math.max(at, 0), 1);
  }

  value(share) {
    const { low, high, log } = this.frame;
    const at = Math.min(Math.max(share, 0), 1);
    return log ? low * (high / low) ** at : low + (high - low) * at;
  }

  x(column) {
    return LEFT + ((WIDTH - LEFT - RIGHT) * column) / this.count;
  }

  y(value) {
    return TOP + (HEIGHT - TOP - BOTTOM) * (1 - this.share(value));
  }

  place(column) {
    const { names, seconds } = this.frame;
    return names[column] ?? `${Number(((seconds / this.values.length) * column).toPrecision(3))} s`;
  }

  draw() {
    const { low, high, log, unit, label, names } = this.frame;
    const parts = [];
    const ticks = log
      ? Array.from({ length: 12 }, (_, n) => 10 ** (n - 3)).filter((tick) => tick >= low * 0.999 && tick <= high * 1.001)
      : [0, 1, 2, 3, 4].map((n) => low + ((high - low) * n) / 4);
    for (const tick of ticks) {
      parts.push(shape("line", { x1: LEFT, x2: WIDTH - RIGHT, y1: this.y(tick), y2: this.y(tick), class: "wb-learn-grid" }));
      parts.push(shape("text", { x: LEFT - 6, y: this.y(tick) + 4, "text-anchor": "end" }, words(tick)));
    }
    parts.push(shape("text", { x: 4, y: HEIGHT - BOTTOM + 16 }, unit));
    const floor = HEIGHT - BOTTOM;
    this.values.forEach((value, column) => {
      const y = this.y(value);
      const now = document.activeElement === this.root && column === this.at && !this.measured.length;
      parts.push(shape("rect", { x: this.x(column) + 0.5, width: this.x(column + 1) - this.x(column) - 1, y, height: Math.max(floor - y, 2), class: `wb-learn-bar${now ? " wb-learn-now" : ""}` }));
    });
    const step = names.length ? 1 : Math.ceil(this.count / 10);
    for (let column = 0; column < this.count; column += step) {
      const middle = names.length ? (this.x(column) + this.x(column + 1)) / 2 : this.x(column);
      parts.push(shape("text", { x: middle, y: floor + 16, "text-anchor": "middle" }, this.place(column)));
    }
    this.measured.forEach((value, column) => {
      if (value === null) return;
      const y = this.y(value);
      parts.push(shape("line", { x1: this.x(column), x2: this.x(column + 1), y1: y, y2: y, class: "wb-learn-measured" }));
      const before = this.measured[column - 1];
      if (!names.length && typeof before === "number") {
        parts.push(shape("line", { x1: this.x(column), x2: this.x(column), y1: this.y(before), y2: y, class: "wb-learn-measured" }));
      }
    });
    this.root.replaceChildren(...parts);
    const value = this.values[this.at];
    const state = { "aria-label": `${label}, ${YOURS}`, "aria-valuemin": low, "aria-valuemax": high, "aria-valuenow": value };
    for (const [name, said] of Object.entries(state)) this.root.setAttribute(name, said);
    this.root.setAttribute("aria-valuetext", `${this.place(this.at)}: ${words(value)} ${unit}`);
    this.root.setAttribute("aria-readonly", String(this.measured.length > 0));
  }

  press(event) {
    if (this.measured.length) return;
    event.preventDefault();
    this.root.focus();
    this.held = true;
    this.root.setPointerCapture(event.pointerId);
    let before = null;
    const set = (moved) => {
      const box = this.root.getBoundingClientRect();
      const x = ((moved.clientX - box.left) / box.width) * WIDTH;
      const y = ((moved.clientY - box.top) / box.height) * HEIGHT;
      const column = Math.floor(((x - LEFT) / (WIDTH - LEFT - RIGHT)) * this.values.length);
      this.at = Math.min(Math.max(column, 0), this.values.length - 1);
      const value = this.value(1 - (y - TOP) / (HEIGHT - TOP - BOTTOM));
      for (let at = Math.min(this.at, before ?? this.at); at <= Math.max(this.at, before ?? this.at); at += 1) this.values[at] = value;
      before = this.at;
      this.draw();
    };
    const done = () => {
      this.held = false;
      this.root.removeEventListener("pointermove", set);
      this.told([...this.values]);
    };
    this.root.addEventListener("pointermove", set);
    this.root.addEventListener("pointerup", done, { once: true });
    this.root.addEventListener("pointercancel", done, { once: true });
    set(event);
  }

  key(event) {
    const sideways = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    const upward = { ArrowUp: 0.04, ArrowDown: -0.04, PageUp: 0.2, PageDown: -0.2 }[event.key];
    if ((!sideways && !upward) || this.measured.length) return;
    event.preventDefault();
    if (sideways) this.at = Math.min(Math.max(this.at + sideways, 0), this.values.length - 1);
    else {
      this.values[this.at] = this.value(this.share(this.values[this.at]) + upward);
      this.told([...this.values]);
    }
    this.draw();
  }
}

export default {
  render({ model, el }) {
    const root = frame(el);
    const prompt = element("p");
    const how = element("p", "wb-learn-note");
    const plot = new Plot((values) => model.send({ kind: "draw", values }));
    const fields = element("div", "wb-learn-fields");
    const [error, origin, said] = [element("p", "wb-learn-error"), element("p", "wb-learn-note"), element("ul")];
    error.setAttribute("role", "alert");
    said.setAttribute("role", "status");
    const entries = model.get("shown").numbers.map(({ label, unit }, at) => {
      const entry = element("input");
      entry.type = "number";
      entry.step = "any";
      entry.addEventListener("change", () => model.send({ kind: "say", place: at + 1, value: entry.value }));
      const row = element("div", "wb-learn-field");
      row.append(labelled(label, entry), entry, element("span", "", unit));
      fields.append(row);
      return entry;
    });
    root.append(prompt, how, plot.root, fields, error, said, origin);
    const draw = () => {
      const shown = model.get("shown");
      const over = shown.measured.length > 0;
      put(prompt, shown.prompt);
      const guess = shown.guessed ? translate("Your guess.") : translate("No guess yet: this one stands in.");
      const what = ONE_AND_OTHER.replace("{one}", shown.draw.label).replace("{other}", shown.draw.unit) + STOP;
      put(how, over ? `${what} ${REVEALED}` : `${what} ${guess} ${DRAG}`);
      plot.take(shown);
      entries.forEach((entry, at) => {
        if (entry !== document.activeElement) entry.value = shown.numbers[at].value;
        entry.disabled = over;
      });
      put(error, shown.error ?? "");
      said.replaceChildren(...shown.said.map((text) => element("li", "", text)));
      said.hidden = !over;
      put(origin, shown.origin ? `[${shown.origin}]` : "");
    };
    model.on("change:shown", draw);
    draw();
    return () => model.off("change:shown", draw);
  },
};
