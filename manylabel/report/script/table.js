// The table of labels: sorted by any column, filtered by name; a row opens its label's curve.
const SOME_ROWS = 200; // more come as one scrolls: ten thousand at once take seconds to lay out
const COLUMNS = [
  { key: "name", title: "Label", help: "name of the label" },
  { key: "ap", title: "AP, %", help: "average precision" },
  { key: "ap_interpolated", title: "AP int.", help: "average precision, interpolated, %" },
  { key: "support", title: "Images", help: "images that have the label" },
  { key: "known", title: "Known", help: "images where it is known whether they have the label" },
  { key: "threshold", title: "Thresh.", help: "score from which the label counts as predicted" },
  { key: "precision", title: "Prec.", help: "share of the predictions that are right, at the threshold, %" },
  { key: "recall", title: "Recall", help: "share of the images with the label that are found, at the threshold, %" },
  { key: "f1", title: "F1", help: "harmonic mean of precision and recall, at the threshold, %" },
  { key: "alpha", title: "Alpha", help: "mean share that images with the label take from earlier stages" },
];

// A column without any value, or one that says the same for every label, tells nothing.
function worthShowing({ key }) {
  const values = labels[key];
  if (key === "known") return values.some(value => value !== values[0]);
  return key === "name" || key === "ap" || key === "support" || values.some(value => value !== null);
}

function cell(column, i) {
  const value = labels[column][i];
  if (value === null) return el("td", {}, el("abbr", { class: "none", title: why(column, i) }, "–"));
  if (column === "support" || column === "known") return el("td", {}, count(value));
  if (column === "threshold") return el("td", {}, value.toFixed(2));
  if (column === "alpha") return el("td", {}, value && value < 0.01 ? value.toExponential(0) : value.toFixed(2));
  if (column !== "ap") return el("td", {}, value.toFixed(1));
  const length = el("b");
  length.style.width = `${value}%`;
  return el("td", {}, el("div", { class: "bar" }, el("i", {}, length), el("span", {}, value.toFixed(1))));
}

function labelTable() {
  const table = place("label-table"), head = table.tHead, body = table.tBodies[0];
  const columns = COLUMNS.filter(worthShowing), rows = [], total = labels.name.length;
  const plainNames = labels.name.map(name => name.normalize("NFKC").toLocaleLowerCase());
  const collator = new Intl.Collator("en", { numeric: true });
  const state = { key: "ap", down: true, words: "", found: [], limit: SOME_ROWS, chosen: null };
  const panel = place("choice"), narrow = matchMedia("(max-width: 1000px)");
  table.classList.toggle("choosable", !!panel);
  place("undefined-note").hidden = !columns.some(({ key }) => labels[key].includes(null));

  const row = i => rows[i] ??= (() => {
    const name = el(panel ? "button" : "span", { class: "name", title: labels.name[i], type: panel ? "button" : null }, shorten(labels.name[i], 120));
    const made = el("tr", {}, el("th", { scope: "row" }, name), ...columns.slice(1).map(({ key }) => cell(key, i)));
    made.dataset.label = i;
    return made;
  })();

  function compare(a, b) {
    if (state.key === "name") return (state.down ? -1 : 1) * collator.compare(labels.name[a], labels.name[b]);
    const x = labels[state.key][a], y = labels[state.key][b];
    if (x === null || y === null) return (x === null) - (y === null); // undefined comes last either way
    return state.down ? y - x : x - y;
  }

  // Sort and filter anew, from the first rows on.
  function show() {
    state.found = plainNames.map((_, i) => i).filter(i => plainNames[i].includes(state.words)).sort((a, b) => compare(a, b) || a - b);
    for (const th of head.rows[0].cells) {
      if (th.dataset.key === state.key) th.setAttribute("aria-sort", state.down ? "descending" : "ascending");
      else th.removeAttribute("aria-sort");
    }
    body.replaceChildren();
    table.parentNode.scrollTop = state.limit = 0;
    grow(SOME_ROWS);
    settle();
  }

  function grow(more) {
    const from = state.limit, all = state.found.length;
    state.limit = Math.min(all, from + more);
    body.append(...state.found.slice(from, state.limit).map(row));
    const some = state.limit < all ? `, the first ${count(state.limit)} shown` : "";
    const of = state.words ? ` of ${count(total)}` : "";
    const call = panel && all ? " Choose one to see its curve." : "";
    place("labels-count").textContent = `${count(all)}${of} ${total === 1 ? "label" : "labels"}${some}.${call}`;
    place("show-all").hidden = state.limit === all;
    place("show-all").textContent = `Show all ${count(all)}`;
  }

  // Beside the table where there is room, else inside it under the chosen row.
  function settle() {
    body.querySelector(".open")?.remove();
    const chosen = state.chosen === null ? null : rows[state.chosen];
    if (!panel || !chosen) return;
    if (!narrow.matches) { place("choice-place").append(panel); return; }
    if (!chosen.isConnected) return;
    chosen.after(el("tr", { class: "open" }, el("td", { colspan: columns.length }, panel)));
  }

  function choose(i, reveal = false) {
    if (!panel) return;
    if (reveal && !row(i).isConnected) { // far down, or filtered out: its name finds it
      place("filter").value = labels.name[i];
      state.words = plainNames[i].trim();
      show();
    }
    rows[state.chosen]?.removeAttribute("aria-current");
    state.chosen = narrow.matches && !reveal && state.chosen === i ? null : i;
    if (state.chosen !== null) {
      row(i).setAttribute("aria-current", "true");
      panel.replaceChildren(...choicePanel(i));
    }
    settle();
    if (reveal) row(i).scrollIntoView({ block: "center" });
  }

  head.append(el("tr", {}, ...columns.map(({ key, title, help }) => {
    const button = el("button", { type: "button", title: `${help}; sort by it` }, title);
    button.addEventListener("click", () => {
      state.down = state.key === key ? !state.down : key !== "name";
      state.key = key;
      show();
    });
    const th = el("th", { scope: "col" }, button);
    th.dataset.key = key;
    if (key === "ap") th.style.width = "20%";
    return th;
  })));
  body.addEventListener("click", event => {
    const hit = event.target.closest("tr[data-label]");
    if (hit) choose(Number(hit.dataset.label));
  });
  body.addEventListener("keydown", event => {
    const step = { ArrowDown: "nextElementSibling", ArrowUp: "previousElementSibling" }[event.key];
    let next = step && event.target.closest("tr")?.[step];
    if (next?.className === "open") next = next[step];
    if (!next) return;
    event.preventDefault();
    next.querySelector(".name").focus();
    if (!narrow.matches) choose(Number(next.dataset.label));
  });
  place("filter").addEventListener("input", event => { state.words = event.target.value.normalize("NFKC").toLocaleLowerCase().trim(); show(); });
  place("show-all").addEventListener("click", () => grow(state.found.length));
  table.parentNode.addEventListener("scroll", ({ target }) => {
    if (target.scrollTop + 2 * target.clientHeight > target.scrollHeight && state.limit < state.found.length) grow(SOME_ROWS);
  });
  narrow.addEventListener("change", settle);
  show();
  if (state.found.length && !narrow.matches) choose(state.found[0]);
  return choose;
}
