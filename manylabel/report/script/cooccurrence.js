// Which labels come together: of the images with the row's label, the share with the column's.
function cooccurrenceChart() {
  const { names, counts } = data.cooccurrence, n = names.length;
  const conditional = (row, column) => (counts[row][row] ? Math.min(1, counts[row][column] / counts[row][row]) : null);
  const longest = Math.max(...names.map(name => widthOf(shorten(name, 18))));
  const left = 10 + longest, top = 18 + 0.75 * longest; // the names above stand at an angle
  chart(place("cooccurrence-chart"), "Share of the images with one label that also have another", width => {
    const side = Math.max(15, Math.min(40, (width - left - 0.7 * top - 4) / n));
    const whole = Math.max(left + n * side + 0.7 * top, 200), height = top + n * side + 34;
    const svg = draw("svg", { width: whole, height, viewBox: `0 0 ${whole} ${height}` });
    svg.style.maxWidth = "none"; // scrolls sideways rather than becoming unreadable
    const title = (name, attributes) => draw("text", attributes, shorten(name, 18), draw("title", {}, name));
    names.forEach((name, k) => {
      const middle = (k + 0.5) * side;
      svg.append(title(name, { x: left - 8, y: top + middle + 4, "text-anchor": "end" }));
      svg.append(title(name, { transform: `translate(${left + middle + 2} ${top - 7}) rotate(-48)` }));
    });
    for (let row = 0; row < n; row++) {
      for (let column = 0; column < n; column++) {
        const value = conditional(row, column), spot = { x: left + column * side + 0.5, y: top + row * side + 0.5, width: side - 1, height: side - 1, rx: 2 };
        svg.append(draw("rect", { class: row === column || value === null ? "same" : "cell-back", ...spot }));
        // The square root lets rare company be seen; the legend is bent in the same way.
        if (row !== column && value) svg.append(draw("rect", { class: "cell", "fill-opacity": Math.sqrt(value).toFixed(3), ...spot }));
      }
    }
    legend(svg, left, top + n * side + 12);
    const box = draw("rect", { class: "frame", width: side, height: side, rx: 3, visibility: "hidden" });
    svg.append(box);
    const find = (x, y) => {
      const column = Math.floor((x - left) / side), row = Math.floor((y - top) / side);
      return column >= 0 && row >= 0 && column < n && row < n ? { row, column } : null;
    };
    hover(svg, find, (hit, event) => {
      box.setAttribute("visibility", hit ? "visible" : "hidden");
      if (!hit) return;
      box.setAttribute("x", left + hit.column * side);
      box.setAttribute("y", top + hit.row * side);
      const a = shorten(names[hit.row], 60), b = shorten(names[hit.column], 60), all = counts[hit.row][hit.row];
      if (hit.row === hit.column) tip(event, a, `in ${images(all)}`);
      else if (!all) tip(event, `${a} → ${b}`, "undefined: no image has the row's label");
      else tip(event, `${a} → ${b}`, `${share(conditional(hit.row, hit.column))}: ${count(counts[hit.row][hit.column])} of ${images(all)} with ${a}`);
    });
    return svg;
  });
}

function legend(svg, x, y) {
  const values = [0, 0.05, 0.25, 0.5, 1];
  values.forEach((value, k) => {
    svg.append(draw("rect", { class: "cell-back", x: x + k * 44, y, width: 42, height: 8, rx: 2 }));
    svg.append(draw("rect", { class: "cell", "fill-opacity": Math.sqrt(value), x: x + k * 44, y, width: 42, height: 8, rx: 2 }));
    svg.append(draw("text", { x: x + k * 44 + 21, y: y + 21, "text-anchor": "middle" }, `${100 * value} %`));
  });
}
