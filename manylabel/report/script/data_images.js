// Labels per image, and the sizes of the images.
function perImageChart() {
  const pairs = data.per_image, last = Math.max(...pairs.map(([k]) => k)), most = Math.max(...pairs.map(([, n]) => n));
  const wide = Math.max(1, Math.ceil((last + 1) / 40)), bins = new Array(Math.floor(last / wide) + 1).fill(0); // at most some 40 columns
  for (const [k, n] of pairs) bins[Math.floor(k / wide)] += n;
  const top = Math.max(...bins, most);
  chart(place("per-image-chart"), "How many images have how many labels", width => {
    const { svg, X, Y } = frame({
      width, height: 320,
      x: { low: -0.5, high: bins.length - 0.5, marks: ticks(0, bins.length - 1, Math.min(12, bins.length)).filter(Number.isInteger), show: k => `${k * wide}`, title: "labels of an image" },
      y: { low: 0, high: top, marks: ticks(0, top, 4), show: brief },
    });
    const room = X(1) - X(0);
    bins.forEach((n, k) => svg.append(draw("rect", { class: "column", x: X(k - 0.5) + room * 0.08, width: room * 0.84, y: Y(n), height: Y(0) - Y(n), rx: Math.min(3, room / 4) })));
    const find = x => { const k = Math.floor((x - X(-0.5)) / room); return k >= 0 && k < bins.length ? k : null; };
    hover(svg, find, (k, event) => {
      if (k === null) return;
      const name = wide > 1 ? `${k * wide} to ${k * wide + wide - 1} labels` : `${k} ${k === 1 ? "label" : "labels"}`;
      tip(event, name, images(bins[k]));
    });
    return svg;
  });
}

function sizeChart() {
  const dots = data.sizes, sides = dots.flatMap(([w, h]) => [w, h]);
  const low = Math.max(1, Math.min(...sides) / 1.3), high = Math.max(...sides) * 1.3, most = Math.max(...dots.map(([, , n]) => n));
  chart(place("size-chart"), "Width and height of the images in pixels", width => {
    const side = Math.min(width, 420);
    const axis = title => ({ low, high, log: true, marks: decades(low, high), show: brief, title });
    const { svg, X, Y } = frame({ width: side, height: side, left: 56, x: axis("width, pixels"), y: axis("height, pixels") });
    svg.append(draw("line", { class: "guide", x1: X(low), y1: Y(low), x2: X(high), y2: Y(high) }));
    const drawn = dots.map(([w, h, n]) => ({ w, h, n, x: X(w), y: Y(h), r: 2.5 + 7 * Math.sqrt(n / most) }));
    for (const { x, y, r } of drawn) svg.append(draw("circle", { class: "dot", cx: x.toFixed(1), cy: y.toFixed(1), r: r.toFixed(1) }));
    const find = (x, y) => {
      let best = null, least = Infinity;
      for (const dot of drawn) {
        const distance = Math.hypot(dot.x - x, dot.y - y) - dot.r;
        if (distance < Math.min(least, 8)) [best, least] = [dot, distance];
      }
      return best;
    };
    hover(svg, find, (dot, event) => { if (dot) tip(event, `${dot.w} × ${dot.h} pixels`, images(dot.n)); });
    return svg;
  });
}
