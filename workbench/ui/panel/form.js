// A form: draws the parts that the kernel holds. An element stays as long as its part is there and of one kind, so
// that nothing is replaced under a person's hand.

const PAGE = Math.random().toString(36).slice(2); // names this page in what it sends
let numbers = 0;

function element(tag, name, text) {
  const made = document.createElement(tag);
  if (name) made.className = name;
  if (text !== undefined) made.textContent = text;
  return made;
}

function put(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

function mark(node, name, value) {
  if (value === undefined || value === null || value === "") node.removeAttribute(name);
  else if (node.getAttribute(name) !== String(value)) node.setAttribute(name, value);
}

// A label, a control, and what shows its value. `read` gives its value for the kernel, `write` shows one of the kernel.
function field(part, form, control, { read, write, after = [], box = "wb-field" }) {
  const root = element("div", box);
  const label = element("label", "", part.label);
  control.id = `wb-${PAGE}-${(numbers += 1)}`;
  label.htmlFor = control.id;
  root.append(label, control, ...after);
  let held = false; // a person is at it: what the kernel says waits
  let newest = part;
  const show = () => {
    if (!held && form.hears(newest)) write(newest);
  };
  control.addEventListener("pointerdown", () => (held = true));
  for (const kind of ["pointerup", "pointercancel", "blur"]) {
    control.addEventListener(kind, () => {
      held = false;
      setTimeout(show); // after the change that this may be
    });
  }
  control.addEventListener("change", () => {
    held = false;
    const value = read();
    if (value !== undefined && value !== newest.value) form.send(part.id, value);
  });
  if (control.type === "text" || control.type === "number") control.addEventListener("input", () => (held = true));
  return {
    root,
    control,
    update(now) {
      newest = now;
      control.disabled = Boolean(now.off);
      mark(root, "title", now.hint);
      mark(control, "aria-description", now.hint);
      show();
    },
  };
}

function options(select, texts) {
  if (select.options.length === texts.length && texts.every((text, i) => select.options[i].text === text)) return;
  const made = texts.map((text) => new Option(text));
  select.replaceChildren(...made);
}

const KINDS = {
  section(part) {
    const root = element("section", "wb-section");
    const head = element("h3", "", part.title);
    if (part.hint) head.append(" ", element("small", "", part.hint));
    const body = element("div");
    root.setAttribute("aria-label", part.title);
    root.append(head, body);
    return { root, body, update() {} };
  },

  row(part) {
    const root = element("div", part.look || "wb-bar");
    return { root, body: root, update() {} };
  },

  drawer(part, form) {
    const root = element("div", "wb-drawer");
    const toggle = element("button", "wb-fold");
    const body = element("div", "wb-drawn");
    toggle.type = "button";
    root.append(toggle, body);
    const node = { root, body, folded: !form.opened.has(part.id) };
    toggle.addEventListener("click", () => {
      node.folded = !node.folded;
      if (node.folded) form.opened.delete(part.id);
      else form.opened.add(part.id);
      form.draw();
    });
    node.update = (now) => {
      put(toggle, `${node.folded ? "▸" : "▾"} ${now.title}`);
      mark(toggle, "title", now.hint);
      toggle.setAttribute("aria-expanded", String(!node.folded));
      body.hidden = node.folded;
    };
    return node;
  },

  button(part, form) {
    const root = element("button", `wb-press ${part.look ? `wb-${part.look}` : ""}`);
    root.type = "button";
    root.addEventListener("click", () => form.model.send({ id: part.id }));
    return {
      root,
      update(now) {
        put(root, now.text);
        mark(root, "title", now.hint);
        root.disabled = Boolean(now.off);
      },
    };
  },

  toggle(part, form) {
    const root = element("button", "wb-press", part.label);
    root.type = "button";
    root.addEventListener("click", () => {
      const pressed = root.getAttribute("aria-pressed") !== "true";
      root.setAttribute("aria-pressed", String(pressed));
      form.send(part.id, pressed);
    });
    return {
      root,
      update(now) {
        mark(root, "title", now.hint);
        root.disabled = Boolean(now.off);
        if (form.hears(now)) root.setAttribute("aria-pressed", String(now.value));
      },
    };
  },

  copier(part) {
    const root = element("button", "wb-press", part.text);
    root.type = "button";
    let copies = "";
    root.addEventListener("click", () => {
      const says = (text) => {
        put(root, text);
        setTimeout(() => put(root, part.text), 2000);
      };
      if (!navigator.clipboard) return says("Not allowed here: select the text"); // as on a page without https
      navigator.clipboard.writeText(copies).then(
        () => says("Copied"),
        () => says("Not allowed here: select the text"),
      );
    });
    return {
      root,
      update(now) {
        copies = now.copies;
        mark(root, "title", now.hint);
        root.disabled = !copies;
      },
    };
  },

  slider(part, form) {
    const control = element("input");
    Object.assign(control, { type: "range", min: 0, step: 1 });
    const said = element("output");
    let texts = part.options;
    const say = () => {
      const text = texts[control.value] ?? "";
      put(said, text);
      mark(control, "aria-valuetext", text);
    };
    control.addEventListener("input", say);
    const write = (now) => {
      texts = now.options;
      control.max = texts.length - 1;
      control.value = now.value;
      say();
    };
    return field(part, form, control, { read: () => Number(control.value), write, after: [said] });
  },

  choice(part, form) {
    const control = element("select");
    const write = (now) => {
      options(control, now.options);
      control.selectedIndex = now.value;
    };
    return field(part, form, control, { read: () => control.selectedIndex, write });
  },

  check(part, form) {
    const control = element("input");
    control.type = "checkbox";
    return field(part, form, control, {
      read: () => control.checked,
      write: (now) => (control.checked = now.value),
      box: "wb-field wb-check",
    });
  },

  number(part, form) {
    const control = element("input");
    Object.assign(control, { type: "number", step: "any" });
    mark(control, "min", part.min);
    mark(control, "max", part.max);
    const read = () => {
      const value = control.valueAsNumber;
      const fits = Number.isFinite(value) && value >= (part.min ?? value) && value <= (part.max ?? value);
      if (!fits) control.reportValidity();
      return fits ? value : undefined;
    };
    return field(part, form, control, { read, write: (now) => (control.value = now.value) });
  },

  text(part, form) {
    const control = element("input");
    Object.assign(control, { type: "text", spellcheck: false });
    const after = [];
    if (part.suggestions) {
      const list = element("datalist");
      list.id = `wb-${PAGE}-${(numbers += 1)}`;
      list.append(...part.suggestions.map((text) => new Option(text, text)));
      control.setAttribute("list", list.id);
      after.push(list);
    }
    const write = (now) => Object.assign(control, { value: now.value, placeholder: now.placeholder ?? "" });
    return field(part, form, control, { read: () => control.value, write, after });
  },

  note() {
    const root = element("p", "wb-note");
    return {
      root,
      update(now) {
        put(root, now.text);
        root.hidden = !now.text;
      },
    };
  },

  alert() {
    const root = element("p", "wb-alert");
    root.setAttribute("role", "alert");
    return {
      root,
      update(now) {
        root.hidden = !now.text; // shown before it speaks
        put(root, now.text ? `⚠ ${now.text}` : "");
      },
    };
  },

  pane(part, form) {
    const root = element("div", `wb-pane ${part.look ?? ""}`);
    let asked = 0;
    return {
      root,
      update(now) {
        root.hidden = Boolean(now.empty) || now.version === 0;
        if (now.version === asked) return;
        asked = now.version;
        form.model.send({ id: part.id });
      },
      take(message) {
        const at = root.firstElementChild?.scrollTop ?? 0;
        root.innerHTML = message.markup; // the kernel has escaped what was not its own
        if (root.firstElementChild) root.firstElementChild.scrollTop = at;
      },
    };
  },
};

class FormView {
  constructor(model, el, opened) {
    this.model = model;
    this.opened = opened;
    this.nodes = new Map();
    this.sent = new Map(); // of a part: the change that the kernel has not heard yet
    this.root = element("div", "wb-form");
    this.root.dataset.lmSuppressShortcuts = "true"; // keys are the form's, not the notebook's
    this.root.addEventListener("keydown", (event) => {
      if (!event.ctrlKey && !event.metaKey) event.stopPropagation(); // the notebook would take arrows and Enter
    });
    el.append(this.root);
  }

  send(id, value) {
    const tag = `${PAGE}:${(numbers += 1)}`;
    this.sent.set(id, tag);
    this.model.send({ id, value, tag });
  }

  // Whether what the kernel says of a part is news, and not from before a change that is on its way.
  hears(part) {
    if (this.sent.get(part.id) === part.heard) this.sent.delete(part.id);
    return !this.sent.has(part.id);
  }

  draw() {
    this.arrange(this.root, this.model.get("tree"));
  }

  arrange(holder, parts) {
    const roots = parts.map((part) => {
      let node = this.nodes.get(part.id);
      if (node?.kind !== part.kind) {
        node = Object.assign(KINDS[part.kind](part, this), { kind: part.kind });
        this.nodes.set(part.id, node);
      }
      node.root.hidden = Boolean(part.hidden);
      node.update(part);
      if (part.parts && !node.folded) this.arrange(node.body, part.parts);
      return node.root;
    });
    roots.forEach((root, i) => {
      if (holder.children[i] !== root) holder.insertBefore(root, holder.children[i] ?? null);
    });
    while (holder.childElementCount > roots.length) holder.lastElementChild.remove();
  }
}

export default () => {
  const opened = new Set();
  return {
    render({ model, el }) {
      const view = new FormView(model, el, opened);
      const draw = () => view.draw();
      const take = (message) => view.nodes.get(message.id)?.take?.(message);
      model.on("change:tree", draw);
      model.on("msg:custom", take);
      draw();
      return () => {
        model.off("change:tree", draw);
        model.off("msg:custom", take);
      };
    },
  };
};
