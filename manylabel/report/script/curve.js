// Precision against recall: one label beside the table, all labels in one picture.
const MOST_LINES = 300; // more thin lines are a grey patch and slow to draw

// Recalls then precisions, 16 bits each, least significant byte first.
function unpack(text) {
  const bytes = Uint8Array.from(atob(text), letter => letter.charCodeAt(0));
  const view = new DataView(bytes.buffer), half = bytes.length / 4, points = [];
  for (let i = 0; i < half; i++) points.push([view.getUint16(2 * i, true) / 65535, view.getUint16(2 * (half + i), true) / 65535]);
  return points;
}
const meanCurve = data.mean ? unpack(data.mean) : [];

function curveFrame(width, height, named) {
  const marks = [0, 0.25, 0.5, 0.75, 1], show = value => `${100 * value}`;
  const made = frame({
    width, height, top: 12, right: 14,
    x: { low: 0, high: 1, marks, show, title: "recall, %" },
    y: { low: 0, high: 1, marks, show, title: "precision, %" },
  });
  for (const f1 of [0.2, 0.4, 0.6, 0.8]) {
    const points = [];
    for (let r = f1 / (2 - f1); r < 1.0001; r += 0.01) points.push([Math.min(r, 1), Math.min(1, (f1 * r) / (2 * r - f1))]);
    made.svg.append(draw("path", { class: "contour", d: path(points, made.X, made.Y) }));
    if (!named) continue;
    const end = made.Y(f1 / (2 - f1));
    made.svg.append(draw("text", { class: "contour-name", x: made.X(1) - 3, y: end - 4, "text-anchor": "end" }, `F1 ${100 * f1}`));
  }
  return made;
}

// What the panel beside the table shows for label i.
function choicePanel(i) {
  const title = el("h3", { dir: "auto", title: labels.name[i] }, labels.name[i]);
  const where = labels.known[i] === null ? images(labels.support[i]) : `${count(labels.support[i])} of ${images(labels.known[i])}`;
  const sub = el("p", { class: "sub" }, `AP ${percent(labels.ap[i])} · in ${where}`);
  if (!data.curves[i]) return [title, sub, el("p", { class: "key" }, `No curve. ${why("ap", i)}.`)];
  const host = el("div", { class: "chart" });
  const points = unpack(data.curves[i]);
  const chosen = labels.recall[i] !== null && labels.precision[i] !== null;
  queueMicrotask(() => chart(host, `Precision against recall of ${labels.name[i]}`, width => {
    const { svg, X, Y } = curveFrame(width, Math.min(width, 360), true);
    svg.append(draw("path", { class: "mean back", d: path(meanCurve, X, Y) }));
    const last = points.length - 1;
    svg.append(draw("path", { class: "area", d: `${path(points, X, Y)}L${X(points[last][0])} ${Y(0)}L${X(points[0][0])} ${Y(0)}Z` }));
    svg.append(draw("path", { class: "line chosen", d: path(points, X, Y) }));
    if (chosen) svg.append(draw("circle", { class: "point", r: 6, cx: X(labels.recall[i] / 100), cy: Y(labels.precision[i] / 100) }));
    hover(svg, x => {
      const near = points.reduce((best, point) => (Math.abs(X(point[0]) - x) < Math.abs(X(best[0]) - x) ? point : best));
      return Math.abs(X(near[0]) - x) < 40 ? near : null;
    }, (near, event) => near && tip(event, `recall ${share(near[0])}`, `precision ${share(near[1])}`));
    return svg;
  }));
  const at = labels.threshold[i] === null ? "" : ` ${labels.threshold[i].toFixed(2)}`;
  const dot = chosen ? `Dot: threshold${at}, precision ${percent(labels.precision[i])}, recall ${percent(labels.recall[i])}.`
    : at ? `No dot: nothing reaches the threshold${at}.` : "No dot: no threshold was fitted.";
  const key = `${dot} Grey: mean of all labels.`;
  return [title, sub, host, el("p", { class: "key" }, key)];
}

// Labels whose curves are drawn: all, or evenly spaced from the lowest AP to the highest.
function drawnCurves() {
  const given = data.curves.map((_, i) => i).filter(i => data.curves[i]).sort((a, b) => labels.ap[a] - labels.ap[b]);
  if (given.length <= MOST_LINES) return given;
  place("curves-note").append(` Drawn: ${MOST_LINES} of ${count(given.length)}, evenly spaced by AP; the mean is of all.`);
  return Array.from({ length: MOST_LINES }, (_, k) => given[Math.round((k * (given.length - 1)) / (MOST_LINES - 1))]);
}

function precisionAt(points, recall) {
  let right = points.findIndex(point => point[0] >= recall);
  if (right <= 0) return right === 0 ? points[0][1] : points[points.length - 1][1];
  const [r0, p0] = points[right - 1], [r1, p1] = points[right];
  return p0 + ((p1 - p0) * (recall - r0)) / (r1 - r0 || 1);
}

function allCurves(choose) {
  const lines = drawnCurves().map(i => ({ i, points: unpack(data.curves[i]) }));
  chart(place("curves-chart"), "Precision against recall of every label, and their mean", width => {
    const { svg, X, Y } = curveFrame(width, Math.min(width, 400), false);
    for (const { points } of lines) svg.append(draw("path", { class: "thin", d: path(points, X, Y) }));
    svg.append(draw("path", { class: "mean", d: path(meanCurve, X, Y) }));
    const lit = draw("path", { class: "lit" });
    svg.append(lit);
    const find = (x, y) => {
      const recall = (x - X(0)) / (X(1) - X(0));
      if (recall < 0 || recall > 1) return null;
      let best = null, least = 24;
      for (const line of lines) {
        const distance = Math.abs(Y(precisionAt(line.points, recall)) - y);
        if (distance < least) [best, least] = [line, distance];
      }
      return best;
    };
    hover(svg, find, (line, event) => {
      lit.setAttribute("d", line ? path(line.points, X, Y) : "");
      svg.style.cursor = line ? "pointer" : "";
      if (line) tip(event, labels.name[line.i], `AP ${percent(labels.ap[line.i])}`);
    }, line => choose(line.i, true));
    return svg;
  });
}
