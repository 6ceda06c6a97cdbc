// The widget: a store in the model, drawn by any number of views. The files beside this one stand above it in the bundle.

function show(text) {
  const dialog = element("dialog", "wb-copy");
  dialog.dataset.lmSuppressShortcuts = "true";
  const said = element("p", "", translate("Press Ctrl+C to copy."));
  said.setAttribute("role", "status");
  const area = element("textarea");
  Object.assign(area, { value: text, readOnly: true, rows: Math.min(Math.max(text.split("\n").length, 3), 20) });
  area.setAttribute("aria-label", translate("Text to copy"));
  dialog.append(said, area, button(translate("Close"), () => dialog.close()));
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal(); // Esc closes it
  area.select();
  navigator.clipboard?.writeText(text).then(
    () => (said.textContent = translate("Copied to the clipboard.")),
    () => {}, // not allowed here: the text is selected
  );
}

export default () => {
  let store;
  return {
    initialize({ model }) {
      words = model.get("words") ?? {};
      store = new Store(model);
      if (model.get("paused")) store.freeze();
      model.on("msg:custom", (message) => (message.kind === "copy" ? show(message.text) : store.take(message)));
      model.on("change:paused", () => store.pause(model.get("paused")));
      const first = model.get("first"); // empty in the page that saw the board made
      if (first?.kind) store.take(first);
      else store.hello();
      const timers = [
        setInterval(() => store.here(), HERE_MS),
        setInterval(() => drawAgain(model.widget_manager), HEAL_MS),
      ];
      return () => timers.forEach(clearInterval);
    },
    render({ el }) {
      const view = new BoardView(store, el);
      return () => view.finalize();
    },
  };
};
