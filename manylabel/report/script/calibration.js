// Reliability: where a score leads and how often it comes true, over how many pairs of image and label.
function calibrationChart() {
  const { edges, score, observed, count: counts } = data.calibration;
  const bins = counts.map((n, k) => ({ k, n, x: score[k], y: observed[k] })).filter(({ n, x, y }) => n && x !== null && y !== null);
  const short = edge => Number((100 * edge).toPrecision(4));
  const most = Math.max(...counts);
  chart(place("calibration-chart"), "Share of scores that come true against the score", width => {
    const tall = Math.min(width, 380), strip = 76, marks = [0, 0.25, 0.5, 0.75, 1], show = value => `${100 * value}`;
    const svg = draw("svg", { width, height: tall + strip, viewBox: `0 0 ${width} ${tall + strip}` });
    const sides = { from: 46, to: width - 14 };
    const { X, Y } = axes(svg, { ...sides, top: 12, base: tall - 16, x: { low: 0, high: 1, marks }, y: { low: 0, high: 1, marks, show, title: "comes true, %" } });
    const log = axes(svg, { ...sides, top: tall, base: tall + strip - 40, x: { low: 0, high: 1, marks, show, title: "score, % (bars: how many pairs, logarithmic)" }, y: { low: 0, high: 1, marks: [] } });
    svg.append(draw("line", { class: "guide", x1: X(0), y1: Y(0), x2: X(1), y2: Y(1) }));
    for (const { x, y } of bins) svg.append(draw("line", { class: "gap", x1: X(x), x2: X(x), y1: Y(x), y2: Y(y) }));
    svg.append(draw("path", { class: "line", d: path(bins.map(({ x, y }) => [x, y]), X, Y) }));
    const size = n => 2.5 + (4 * Math.log1p(n)) / Math.log1p(most);
    for (const { n, x, y } of bins) svg.append(draw("circle", { class: "dot", r: size(n), cx: X(x), cy: Y(y) }));
    counts.forEach((n, k) => {
      const height = n ? Math.max(2, (32 * Math.log1p(n)) / Math.log1p(most)) : 0;
      svg.append(draw("rect", { class: "column", x: X(edges[k]) + 1, width: Math.max(1, X(edges[k + 1]) - X(edges[k]) - 2), y: log.Y(0) - height, height, rx: 1 }));
    });
    const find = x => {
      const near = bins.reduce((best, bin) => (best === null || Math.abs(X(bin.x) - x) < Math.abs(X(best.x) - x) ? bin : best), null);
      return near && Math.abs(X(near.x) - x) < 40 ? near : null;
    };
    hover(svg, find, (bin, event) => bin && tip(event, `scores ${short(edges[bin.k])}–${short(edges[bin.k + 1])} %`,
      `mean score ${share(bin.x)}`, `comes true ${share(bin.y)}`, `${count(bin.n)} pairs of image and label`));
    return svg;
  });
}
