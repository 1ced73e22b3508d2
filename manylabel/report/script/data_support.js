// Labels by the number of images that have them: a bar each, sorted and filtered. More come as one scrolls.
const SOME = 200;
const RARE = 10; // images below which a label cannot be judged
const splits = Object.keys(labels.splits);

function supportBars() {
  const list = place("support-list"), most = labels.support.reduce((a, b) => Math.max(a, b), 1);
  const plainNames = labels.name.map(name => name.normalize("NFKC").toLocaleLowerCase());
  const collator = new Intl.Collator("en", { numeric: true }), rows = [];
  const state = { words: "", order: "frequent", found: [], limit: 0 };
  // The logarithm lets rare labels be seen beside frequent ones; within a bar the splits have their true shares.
  const length = value => (value ? 4 + (96 * Math.log10(value)) / Math.max(Math.log10(most), 0.3) : 0);

  const row = i => rows[i] ??= (() => {
    const bar = el("span", { class: "track" }), total = labels.support[i];
    const parts = splits.length ? splits.map(split => labels.splits[split][i]) : [total];
    parts.forEach((part, k) => {
      const piece = el("i", { class: `part part-${k % 3}` });
      piece.style.width = `${(length(total) * part) / Math.max(1, total)}%`;
      bar.append(piece);
    });
    const where = splits.map((split, k) => `${count(parts[k])} ${split}`).join(", ");
    const known = data.complete ? "" : `; known of ${images(labels.known[i])}`;
    const made = el("li", { class: total < RARE ? "rare" : null, title: `${labels.name[i]}: ${images(total)}${where && ` (${where})`}${known}` });
    made.append(el("bdi", { class: "name" }, shorten(labels.name[i], 120)), bar, el("span", { class: "number" }, count(total)));
    if (!data.complete) made.append(el("span", { class: "number known" }, count(labels.known[i])));
    made.dataset.label = i;
    return made;
  })();

  function compare(a, b) {
    if (state.order === "name") return collator.compare(labels.name[a], labels.name[b]);
    return (state.order === "rare" ? 1 : -1) * (labels.support[a] - labels.support[b]);
  }

  function grow(more) {
    const from = state.limit, all = state.found.length;
    state.limit = Math.min(all, from + more);
    list.append(...state.found.slice(from, state.limit).map(row));
    const of = state.words ? ` of ${count(labels.name.length)}` : "";
    place("labels-count").textContent = `${count(all)}${of} ${labels.name.length === 1 ? "label" : "labels"}${state.limit < all ? `, the first ${count(state.limit)} shown; scroll for more` : ""}.`;
  }

  function show() {
    state.found = plainNames.map((_, i) => i).filter(i => plainNames[i].includes(state.words)).sort((a, b) => compare(a, b) || a - b);
    list.replaceChildren();
    list.parentNode.scrollTop = state.limit = 0;
    grow(SOME);
  }

  place("filter").addEventListener("input", event => { state.words = event.target.value.normalize("NFKC").toLocaleLowerCase().trim(); show(); });
  for (const button of place("support-order").children) {
    button.addEventListener("click", () => {
      for (const other of place("support-order").children) other.setAttribute("aria-pressed", String(other === button));
      state.order = button.dataset.order;
      show();
    });
  }
  list.parentNode.addEventListener("scroll", ({ target }) => {
    if (target.scrollTop + 2 * target.clientHeight > target.scrollHeight && state.limit < state.found.length) grow(SOME);
  });
  list.classList.toggle("partial", !data.complete);
  show();
}
