// Hard instances: the labels that have most of them, and how their share changes with the size of objects.
const SOME_HARD = 20;

// One bar per row, with its name before it, and its share and of how many behind it.
function shareBars(host, name, rows, { all, hint, about }) {
  const told = row => `${share(row.share)} of ${count(row[all])}`;
  const longest = Math.max(...rows.map(row => widthOf(shorten(row.name, 26))));
  const tall = 21, left = 12 + longest, right = 14 + Math.max(...rows.map(row => widthOf(told(row)))), most = Math.max(...rows.map(row => row.share ?? 0), 0.01);
  chart(host, name, width => {
    const height = rows.length * tall + 6, room = Math.max(20, width - left - right);
    const svg = draw("svg", { width, height, viewBox: `0 0 ${width} ${height}` });
    rows.forEach((row, i) => {
      const y = 3 + i * tall, long = (room * (row.share ?? 0)) / most;
      svg.append(draw("text", { x: left - 8, y: y + 14, "text-anchor": "end" }, shorten(row.name, 26), draw("title", {}, row.name)));
      svg.append(draw("rect", { class: "cell-back", x: left, y: y + 4, width: room, height: tall - 9, rx: 3 }));
      if (long) svg.append(draw("rect", { class: "hard-bar", x: left, y: y + 4, width: long.toFixed(1), height: tall - 9, rx: 3 }));
      svg.append(draw("text", { x: left + room + 8, y: y + 14 }, told(row)));
    });
    const find = (x, y) => { const i = Math.floor((y - 3) / tall); return i >= 0 && i < rows.length ? i : null; };
    hover(svg, find, (i, event) => {
      if (i === null) return;
      tip(event, rows[i].name, `${count(rows[i].hard)} of ${count(rows[i][all])} ${about} are hard`, ...hint(rows[i]));
    });
    return svg;
  });
}

function hardLabelsChart() {
  const rows = data.hard.labels.filter(row => row.hard).slice(0, SOME_HARD);
  shareBars(place("hard-labels-chart"), "Share of hard instances of labels", rows, { all: "support", about: "images with it", hint: () => [] });
}

function hardSizesChart() {
  const about = "labels in images with objects of this size";
  shareBars(place("hard-sizes-chart"), "Share of hard instances by object size", data.hard.sizes, { all: "pairs", about, hint: row => [row.area] });
}
