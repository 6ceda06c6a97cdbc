// Cards: a prompt with a field or choices, what was said to the answer, hints and a solution on demand.

function answers(card, place, send) {
  const body = element("div", "wb-learn-answers");
  if (card.kind === "choices") {
    body.setAttribute("role", "group");
    body.setAttribute("aria-label", card.title);
    for (const { value, text } of card.choices) {
      const one = button(text, () => send({ kind: "answer", card: place, value }));
      one.setAttribute("aria-pressed", String(card.chosen === value));
      body.append(one);
    }
  } else if (card.kind === "entry") {
    const entry = element("input");
    entry.type = "text";
    entry.inputMode = "decimal";
    const check = () => send({ kind: "answer", card: place, value: entry.value });
    entry.addEventListener("keydown", (event) => event.key === "Enter" && check());
    body.append(labelled(translate("Your answer"), entry), entry);
    if (card.unit) body.append(element("span", "", card.unit));
    body.append(button(translate("Check"), check));
  }
  return body;
}

function made(card, place, send) {
  const root = element("section", "wb-learn-card");
  root.setAttribute("aria-label", card.title);
  const [title, prompt, said, solution] = [element("h4"), element("p"), element("p", "wb-learn-said"), element("p")];
  said.setAttribute("role", "status");
  const hints = element("ol", "wb-learn-hints");
  const body = answers(card, place, send);
  const help = element("div", "wb-learn-answers");
  const hint = button(translate("Hint"), () => send({ kind: "hint", card: place }));
  const tell = button(translate("Solution"), () => send({ kind: "solution", card: place }));
  if (card.helps) help.append(hint, tell);
  root.append(title, prompt, body, said, hints, help, solution);
  return {
    root,
    kind: `${card.kind} ${card.choices.map(({ text }) => text).join("|")}`,
    update(now) {
      put(title, now.title);
      put(prompt, now.prompt);
      put(said, now.said);
      root.dataset.state = now.state;
      hints.replaceChildren(...now.hints.map((text) => element("li", "", text)));
      hints.hidden = !now.hints.length;
      hint.disabled = !now.more;
      put(solution, now.solution);
      [...body.querySelectorAll("button[aria-pressed]")].forEach((one, at) =>
        one.setAttribute("aria-pressed", String(now.chosen === now.choices[at]?.value)),
      );
    },
  };
}

export default {
  render({ model, el }) {
    const root = frame(el);
    const [heading, holder, score] = [element("h3"), element("div"), element("p", "wb-learn-score")];
    score.setAttribute("role", "status");
    root.append(heading, holder, score);
    let cards = [];
    const draw = () => {
      const shown = model.get("shown");
      put(heading, shown.heading);
      put(score, shown.score);
      cards = shown.cards.map((card, place) => {
        const kind = `${card.kind} ${card.choices.map(({ text }) => text).join("|")}`;
        const kept = cards[place]?.kind === kind ? cards[place] : made(card, place, (message) => model.send(message));
        kept.update(card);
        if (holder.children[place] !== kept.root) holder.insertBefore(kept.root, holder.children[place] ?? null);
        return kept;
      });
      while (holder.childElementCount > cards.length) holder.lastElementChild.remove();
    };
    model.on("change:shown", draw);
    draw();
    return () => model.off("change:shown", draw);
  },
};
