// How the labels' average precisions are spread: a histogram under the mean, and against the labels' support.
const scored = labels.name.map((_, i) => i).filter(i => labels.ap[i] !== null);

function histogram() {
  const bins = 20, counts = new Array(bins).fill(0);
  for (const i of scored) counts[Math.min(bins - 1, Math.floor((labels.ap[i] / 100) * bins))]++;
  const most = Math.max(...counts);
  chart(place("histogram"), "How many labels have which average precision", width => {
    const height = 92, base = 66, svg = draw("svg", { width, height, viewBox: `0 0 ${width} ${height}` });
    const X = scale({ low: 0, high: 100 }, 0, width);
    counts.forEach((n, k) => {
      const tall = n ? Math.max(3, (n / most) * 58) : 1;
      const bar = draw("rect", { class: n ? "column" : "cell-back", x: X(k * 5) + 1, width: width / bins - 2, y: base - tall, height: tall, rx: 2 });
      svg.append(bar);
    });
    if (data.mAP !== null) svg.append(draw("line", { class: "gap", x1: X(data.mAP), x2: X(data.mAP), y1: 2, y2: base + 4 }));
    for (const [value, anchor] of [[0, "start"], [50, "middle"], [100, "end"]]) {
      svg.append(draw("text", { x: X(value), y: base + 18, "text-anchor": anchor }, value === 50 ? "labels by AP, %" : `${value}`));
    }
    hover(svg, x => Math.max(0, Math.min(bins - 1, Math.floor((x / width) * bins))), (k, event) => {
      if (k !== null) tip(event, `AP ${5 * k}–${5 * k + 5} %`, `${count(counts[k])} ${counts[k] === 1 ? "label" : "labels"}`);
    });
    return svg;
  });
}

// Names beside the dots that stand out, as far as there is room for them.
function nameDots(svg, dots, right) {
  const taken = dots.map(({ x, y }) => [x - 5, y - 5, x + 5, y + 5]);
  const middle = data.mAP ?? 50;
  const order = [...dots].sort((a, b) => Math.abs(labels.ap[b.i] - middle) - Math.abs(labels.ap[a.i] - middle));
  let named = 0;
  for (const { i, x, y } of order) {
    if (named === 14) break;
    const words = shorten(labels.name[i], 16), width = widthOf(words);
    const from = x + 8 + width > right ? x - 8 - width : x + 8;
    const box = [from, y - 8, from + width, y + 8];
    if (taken.some(([a, b, c, d]) => box[0] < c && box[2] > a && box[1] < d && box[3] > b)) continue;
    taken.push(box);
    named++;
    svg.append(draw("text", { x: from === x + 8 ? from : x - 8, y: y + 4, "text-anchor": from === x + 8 ? "start" : "end" }, words));
  }
}

function spreadChart(choose) {
  const drawn = scored.filter(i => labels.support[i] > 0);
  const values = drawn.map(i => labels.support[i]);
  let low = values.reduce((a, b) => Math.min(a, b)), high = values.reduce((a, b) => Math.max(a, b));
  [low, high] = [Math.max(0.7, low / 1.25), high * 1.25];
  chart(place("spread-chart"), "Average precision of each label against the number of images that have it", width => {
    const { svg, X, Y } = frame({
      width, height: Math.min(width, 400), top: 12, right: 14,
      x: { low, high, log: true, marks: decades(low, high), show: brief, title: "images with the label" },
      y: { low: 0, high: 100, marks: [0, 25, 50, 75, 100], show: value => `${value}`, title: "AP, %" },
    });
    if (data.mAP !== null) {
      svg.append(draw("line", { class: "guide", x1: X(low), x2: X(high), y1: Y(data.mAP), y2: Y(data.mAP) }));
      svg.append(draw("text", { x: X(high), y: Y(data.mAP) - 5, "text-anchor": "end" }, `mAP ${data.mAP.toFixed(1)}`));
    }
    const radius = drawn.length > 1000 ? 2.5 : drawn.length > 150 ? 3.5 : 5;
    const dots = drawn.map(i => ({ i, x: X(labels.support[i]), y: Y(labels.ap[i]) }));
    for (const { x, y } of dots) svg.append(draw("circle", { class: "dot", r: radius, cx: x.toFixed(1), cy: y.toFixed(1) }));
    if (drawn.length <= 400) nameDots(svg, dots, width);
    const lit = draw("circle", { class: "dot lit", r: 0 });
    svg.append(lit);
    const find = (x, y) => {
      let best = null, least = 16 ** 2;
      for (const dot of dots) {
        const distance = (dot.x - x) ** 2 + (dot.y - y) ** 2;
        if (distance < least) [best, least] = [dot, distance];
      }
      return best;
    };
    hover(svg, find, (dot, event) => {
      lit.setAttribute("r", dot ? radius + 2 : 0);
      svg.style.cursor = dot ? "pointer" : "";
      if (!dot) return;
      lit.setAttribute("cx", dot.x);
      lit.setAttribute("cy", dot.y);
      tip(event, labels.name[dot.i], `AP ${percent(labels.ap[dot.i])}`, `in ${images(labels.support[dot.i])}`);
    }, dot => choose(dot.i, true));
    return svg;
  });
}
