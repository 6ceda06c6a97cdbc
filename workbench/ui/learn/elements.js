// What the learning parts share: elements, and keys that stay theirs.

let numbers = 0;
const PAGE = Math.random().toString(36).slice(2);

function element(tag, name, text) {
  const made = document.createElement(tag);
  if (name) made.className = name;
  if (text !== undefined) made.textContent = text;
  return made;
}

function button(text, pressed) {
  const made = element("button", "", text);
  made.type = "button";
  made.addEventListener("click", pressed);
  return made;
}

function put(node, text) {
  if (node.textContent !== text) node.textContent = text;
  node.hidden = !text;
}

function labelled(text, control) {
  const label = element("label", "", text);
  control.id = `wb-learn-${PAGE}-${(numbers += 1)}`;
  label.htmlFor = control.id;
  return label;
}

function frame(el) {
  const root = element("div", "wb-learn");
  root.dataset.lmSuppressShortcuts = "true"; // keys are ours, not the notebook's
  root.addEventListener("keydown", (event) => {
    if (!event.ctrlKey && !event.metaKey) event.stopPropagation();
  });
  el.append(root);
  return root;
}
