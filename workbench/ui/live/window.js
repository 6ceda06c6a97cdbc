// The time window of a view: follows the kernel until a person moves it, and moves all charts at once.

const STEP = 0.1; // of the window, for a press of an arrow key
const ZOOM = 1.25; // for a press of + or a notch of the wheel
const SHORTEST_S = 0.02;

class TimeWindow {
  constructor(changed) {
    this.own = null; // [t0, t1] in s, none while following
    this.whole = [0, 1];
    this.changed = changed;
  }

  // The signals to draw with: the kernel's, but for the window where a person chose one.
  apply(signals) {
    if (Number.isFinite(signals.t0) && Number.isFinite(signals.t1)) this.whole = [signals.t0, signals.t1];
    if (this.own && this.own[1] <= this.whole[0]) this.own = null; // what it showed is gone
    return this.own ? { ...signals, t0: this.own[0], t1: this.own[1] } : signals;
  }

  follow() {
    this.own = null;
    this.changed();
  }

  pan(share) {
    const [t0, t1] = this.own ?? this.whole;
    this.set(t0 + share * (t1 - t0), t1 - t0);
  }

  // Around a point at a share of the window, which stays where it is.
  zoom(factor, share = 0.5) {
    const [t0, t1] = this.own ?? this.whole;
    const length = Math.max((t1 - t0) / factor, SHORTEST_S);
    if (length >= this.whole[1] - this.whole[0]) this.follow();
    else this.set(t0 + share * (t1 - t0 - length), length);
  }

  set(t0, length) {
    const [first, last] = this.whole;
    const begin = Math.min(Math.max(t0, first - length / 2), last - length / 2);
    this.own = [begin, begin + length];
    this.changed();
  }

  // Drag, Shift+wheel, double click and keys on one plot.
  listen(plot, signal) {
    const on = (kind, act, more = {}) => plot.holder.addEventListener(kind, act, { signal, ...more });
    let from = null;
    on("pointerdown", (event) => {
      if (event.button !== 0 || !plot.view) return;
      from = event.clientX;
      plot.holder.setPointerCapture(event.pointerId);
    });
    on("pointermove", (event) => {
      if (from === null || !plot.view || event.clientX === from) return;
      this.pan((from - event.clientX) / plot.view.width());
      from = event.clientX;
    });
    for (const kind of ["pointerup", "pointercancel"]) on(kind, () => (from = null));
    on("dblclick", () => this.follow());
    on(
      "wheel",
      (event) => {
        if (!event.shiftKey || !plot.view) return; // a plain wheel scrolls the page
        event.preventDefault();
        const left = plot.canvas.getBoundingClientRect().left + plot.corner[0];
        const share = Math.min(Math.max((event.clientX - left) / plot.view.width(), 0), 1);
        this.zoom((event.deltaY || event.deltaX) < 0 ? ZOOM : 1 / ZOOM, share);
      },
      { passive: false },
    );
    const keys = {
      ArrowLeft: () => this.pan(-STEP),
      ArrowRight: () => this.pan(STEP),
      "+": () => this.zoom(ZOOM),
      "=": () => this.zoom(ZOOM),
      "-": () => this.zoom(1 / ZOOM),
      Home: () => this.follow(),
    };
    on("keydown", (event) => {
      const act = event.ctrlKey || event.metaKey || event.altKey ? null : keys[event.key];
      if (!act) return;
      event.preventDefault();
      event.stopPropagation();
      act();
    });
  }
}
