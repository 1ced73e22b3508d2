// A frame with axes, drawn as wide as its place and again when that changes.
function chart(host, name, paint) {
  let width = 0;
  const redraw = () => {
    const room = host.clientWidth;
    if (!room || room === width) return;
    width = room;
    host.replaceChildren(paint(room));
    host.firstChild.setAttribute("role", "img");
    host.firstChild.setAttribute("aria-label", name);
  };
  redraw();
  new ResizeObserver(redraw).observe(host);
}

// How wide words are in a chart: fonts differ too much between systems to guess.
const ruler = document.createElement("canvas").getContext("2d");
ruler.font = `12px ${getComputedStyle(document.body).fontFamily}`;
const widthOf = words => ruler.measureText(words).width;

function ticks(low, high, about) {
  const rough = (high - low || 1) / about;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 5, 10].find(size => size * power >= rough * 0.999);
  const marks = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + step * 1e-9; k++) marks.push(Number((k * step).toPrecision(12)));
  return marks;
}

function decades(low, high) {
  const marks = [];
  const sizes = high / low < 300 ? [1, 2, 5] : [1];
  for (let power = 10 ** Math.floor(Math.log10(low)); power <= high; power *= 10) {
    for (const size of sizes) if (size * power >= low * 0.999 && size * power <= high * 1.001) marks.push(size * power);
  }
  return marks.length > 1 ? marks : ticks(low, high, 4);
}

// axis: {low, high, marks, show, title, log}
function scale(axis, from, to) {
  const bend = axis.log ? Math.log : value => value;
  const low = bend(axis.low), span = bend(axis.high) - low || 1;
  return value => from + ((bend(value) - low) / span) * (to - from);
}

function frame({ width, height, x, y, left = 46, right = 10, top = 10, bottom = 40 }) {
  const svg = draw("svg", { width, height, viewBox: `0 0 ${width} ${height}` });
  return { svg, ...axes(svg, { from: left, to: width - right, top, base: height - bottom, x, y }) };
}

function axes(svg, { from, to, top, base, x, y }) {
  const X = scale(x, from, to), Y = scale(y, base, top);
  for (const mark of y.marks) {
    svg.append(draw("line", { class: "grid", x1: from, x2: to, y1: Y(mark), y2: Y(mark) }));
    svg.append(draw("text", { x: from - 8, y: Y(mark) + 4, "text-anchor": "end" }, y.show(mark)));
  }
  svg.append(draw("line", { class: "axis", x1: from, x2: to, y1: base, y2: base }));
  if (x.show) {
    for (const mark of x.marks) svg.append(draw("text", { x: X(mark), y: base + 17, "text-anchor": "middle" }, x.show(mark)));
    if (x.title) svg.append(draw("text", { class: "title", x: (from + to) / 2, y: base + 35, "text-anchor": "middle" }, x.title));
  }
  if (y.title) {
    const middle = (top + base) / 2;
    svg.append(draw("text", { class: "title", transform: `translate(${from - 36} ${middle}) rotate(-90)`, "text-anchor": "middle" }, y.title));
  }
  return { X, Y };
}

const path = (points, X, Y) => points.map(([a, b], i) => `${i ? "L" : "M"}${X(a).toFixed(1)} ${Y(b).toFixed(1)}`).join("");

function tip(event, title, ...lines) {
  const box = place("tip");
  if (!event) { box.hidden = true; return; }
  box.replaceChildren(el("b", {}, shorten(title, 120)), ...lines.map(line => el("div", {}, line)));
  box.hidden = false;
  const { width, height } = box.getBoundingClientRect();
  const x = event.clientX + 14 + width > innerWidth ? event.clientX - width - 10 : event.clientX + 14;
  const y = event.clientY + 16 + height > innerHeight ? event.clientY - height - 10 : event.clientY + 16;
  box.style.transform = `translate(${Math.max(4, x)}px, ${Math.max(4, y)}px)`;
}

// One listener for a whole drawing: `find` says what is under the pointer (or null), `show` and `pick` act on it.
function hover(svg, find, show, pick) {
  const at = event => {
    const box = svg.getBoundingClientRect();
    const zoom = svg.viewBox.baseVal.width / box.width || 1;
    return find((event.clientX - box.left) * zoom, (event.clientY - box.top) * zoom);
  };
  svg.addEventListener("pointermove", event => {
    const hit = at(event);
    if (hit === null) tip(null);
    show(hit, event);
  });
  svg.addEventListener("pointerleave", event => { tip(null); show(null, event); });
  if (pick) svg.addEventListener("click", event => { const hit = at(event); if (hit !== null) pick(hit); });
}
