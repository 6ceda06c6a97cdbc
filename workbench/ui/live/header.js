// The line above the charts: where the numbers come from, the state, the figures.

const SAY_MS = 30000; // between two readings of the figures by a screen reader

class Header {
  constructor(follow) {
    this.root = element("header", "wb-header");
    const line = element("div", "wb-line");
    [this.badge, this.state, this.paused, this.stale, this.dropped] = ["badge", "state", "paused", "stale", "dropped"].map(
      (name) => element("span", `wb-${name}`),
    );
    this.follow = button(translate("Follow"), follow);
    this.follow.title = translate("Back to the newest data (Home, or double-click a chart)");
    line.append(this.badge, this.state, this.paused, this.stale, this.dropped, this.follow);
    this.lacks = element("p", "wb-lacks");
    this.kpis = element("dl", "wb-kpis");
    this.said = element("div", "wb-said");
    this.said.setAttribute("role", "status"); // polite
    this.saidAt = -Infinity;
    this.saidState = null;
    this.root.append(line, this.lacks, this.kpis, this.said);
  }

  show(status, { stale, paused, following }) {
    const put = (node, text) => {
      if (node.textContent !== text) node.textContent = text;
      node.hidden = !text;
    };
    put(this.badge, status.badge ?? "");
    put(this.state, status.state ?? "");
    put(this.paused, paused ? translate("paused") : "");
    put(this.stale, stale ? translate("stale: no data for {stale} s", { stale }) : status.stale ? translate("stale") : "");
    put(this.dropped, status.dropped ? translate("{count} records dropped", { count: status.dropped.toLocaleString("en") }) : "");
    put(this.lacks, status.lacks ?? "");
    this.follow.hidden = following;
    const kpis = status.kpis ?? [];
    while (this.kpis.childElementCount > kpis.length) this.kpis.lastChild.remove();
    while (this.kpis.childElementCount < kpis.length) {
      const pair = element("div");
      pair.append(element("dt"), element("dd"));
      this.kpis.append(pair);
    }
    kpis.forEach(({ label, value, hint }, i) => {
      const pair = this.kpis.children[i];
      const [name, figure] = pair.children;
      if (pair.title !== (hint ?? "")) pair.title = hint ?? "";
      put(name, String(label));
      put(figure, String(value ?? "n/a"));
    });
    this.say(kpis, [status.badge, status.state, this.stale.hidden ? "" : translate("stale"), paused ? translate("paused") : ""].filter(Boolean).join(", "));
  }

  // A change of state at once, the figures now and then; running seconds are no change of state.
  say(kpis, state) {
    const now = performance.now();
    const kind = state.replace(/[\d:.,]+/g, "");
    if (kind === this.saidState && now - this.saidAt < SAY_MS) return;
    this.saidState = kind;
    this.saidAt = now;
    this.said.textContent = [state, ...kpis.map(({ label, value }) => `${label} ${value ?? "n/a"}`)].join("; ");
  }
}
