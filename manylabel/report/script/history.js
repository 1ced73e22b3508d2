// Training: two charts, one above the other, over the same epochs.
function historyChart() {
  const history = data.history, epochs = history.map(point => point.epoch);
  const reach = { low: Math.min(...epochs), high: Math.max(...epochs) };
  if (reach.low === reach.high) { reach.low -= 1; reach.high += 1; }
  const kinds = [{ key: "loss", title: "loss" }, { key: "mAP", title: "mAP, %" }]
    .map(kind => ({ ...kind, points: history.filter(point => point[kind.key] !== null).map(point => [point.epoch, point[kind.key]]) }))
    .filter(kind => kind.points.length);
  const best = history.reduce((a, b) => (b.mAP !== null && (a === null || b.mAP > a.mAP) ? b : a), null);
  chart(place("history-chart"), "Loss and mAP after each epoch", width => {
    const height = Math.min(width, 380) + 76, each = (height - 46) / Math.max(1, kinds.length);
    const svg = draw("svg", { width, height, viewBox: `0 0 ${width} ${height}` });
    const marks = ticks(reach.low, reach.high, 7).filter(Number.isInteger);
    let X = null;
    kinds.forEach(({ key, title, points }, k) => {
      const values = points.map(point => point[1]);
      let low = Math.min(...values), high = Math.max(...values);
      const room = (high - low || Math.abs(high) || 1) * 0.08;
      [low, high] = [Math.max(low - room, low >= 0 ? 0 : -Infinity), key === "mAP" ? Math.min(100, high + room) : high + room];
      const last = k === kinds.length - 1, yMarks = ticks(low, high, 4);
      const digits = Math.max(0, ...yMarks.map(mark => (String(mark).split(".")[1] ?? "").length));
      const made = axes(svg, {
        from: 56, to: width - 14, top: 12 + k * each, base: k * each + each - 12,
        x: { ...reach, marks, show: last ? value => `${value}` : null, title: "epoch" },
        y: { low, high, marks: yMarks, show: value => value.toFixed(Math.min(4, digits)), title },
      });
      X = made.X;
      svg.append(draw("path", { class: "line", d: path(points, made.X, made.Y) }));
      if (points.length <= 40) for (const [x, y] of points) svg.append(draw("circle", { class: "dot", r: 3.5, cx: made.X(x), cy: made.Y(y) }));
      if (key === "mAP" && best) {
        svg.append(draw("circle", { class: "point", r: 6, cx: made.X(best.epoch), cy: made.Y(best.mAP) }));
        const note = `best: ${best.mAP.toFixed(1)} after epoch ${best.epoch}`; // in the corner that a rising curve leaves free
        svg.append(draw("text", { class: "strong", x: width - 16, y: made.Y(low) - 9, "text-anchor": "end" }, note));
      }
    });
    const line = draw("line", { class: "guide", y1: 8, y2: height - 46, visibility: "hidden" });
    svg.append(line);
    const find = x => history.reduce((near, point) => (Math.abs(X(point.epoch) - x) < Math.abs(X(near.epoch) - x) ? point : near));
    if (X) hover(svg, find, (point, event) => {
      line.setAttribute("visibility", point ? "visible" : "hidden");
      if (!point) return;
      line.setAttribute("x1", X(point.epoch));
      line.setAttribute("x2", X(point.epoch));
      const lines = [`loss ${point.loss === null ? "–" : point.loss.toPrecision(4)}`, `mAP ${percent(point.mAP)}`];
      if (point.rate !== null) lines.push(`rate ${point.rate.toPrecision(3)}`);
      if (point.seconds !== null) lines.push(`${point.seconds.toFixed(1)} s`);
      tip(event, `Epoch ${point.epoch}`, ...lines);
    });
    return svg;
  });
}
