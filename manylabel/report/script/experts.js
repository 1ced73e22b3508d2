// How much each label's gate uses each expert, as logarithms, with the mean over labels as the last row (HSQ, Fig. 5).
function expertsChart() {
  const { experts, gates, layers, allowed, entropies } = data.experts;
  let chosen = 0;
  const buttons = [...document.querySelectorAll("#expert-layers button")];
  const names = [...gates, "mean of all"], rows = names.length, columns = experts.length;
  const longest = Math.max(...names.map(name => widthOf(shorten(name, 22))));
  const left = 10 + longest, top = 66;
  const mean = layer => experts.map((_, k) => layer.reduce((sum, row) => sum + row[k], 0) / layer.length);
  const low = 1e-3; // everything below is drawn alike
  const strength = value => Math.max(0, 1 - Math.log(Math.max(value, low)) / Math.log(low));
  function paint() {
    const values = [...layers[chosen], mean(layers[chosen])];
    place("experts-chart").replaceChildren();
    chart(place("experts-chart"), "Mean weight of every expert for every label", width => {
      const side = Math.max(9, Math.min(44, (width - left - 8) / columns)), tall = Math.max(11, Math.min(side, 18));
      const whole = Math.max(left + columns * side + 8, 220), height = top + rows * tall + 44;
      const svg = draw("svg", { width: whole, height, viewBox: `0 0 ${whole} ${height}` });
      svg.style.maxWidth = "none";
      experts.forEach((name, k) => {
        svg.append(draw("text", { transform: `translate(${left + (k + 0.5) * side + 4} ${top - 7}) rotate(-60)` }, name));
      });
      const at = row => top + row * tall + (row === rows - 1 ? 6 : 0);
      values.forEach((line, row) => {
        svg.append(draw("text", { x: left - 8, y: at(row) + tall / 2 + 4, "text-anchor": "end" }, shorten(names[row], 22), draw("title", {}, names[row])));
        line.forEach((value, k) => {
          const spot = { x: left + k * side + 0.5, y: at(row) + 0.5, width: side - 1, height: tall - 1 };
          svg.append(draw("rect", { class: "cell-back", ...spot }));
          svg.append(draw("rect", { class: "cell", "fill-opacity": strength(value).toFixed(3), ...spot }));
        });
      });
      [0.001, 0.01, 0.1, 1].forEach((value, k) => {
        const spot = { x: left + k * 48, y: height - 26, width: 46, height: 8 };
        svg.append(draw("rect", { class: "cell-back", ...spot }));
        svg.append(draw("rect", { class: "cell", "fill-opacity": strength(value), ...spot }));
        svg.append(draw("text", { x: spot.x + 23, y: spot.y + 21, "text-anchor": "middle" }, `${100 * value} %`));
      });
      const find = (x, y) => {
        const k = Math.floor((x - left) / side);
        const row = y >= at(rows - 1) ? rows - 1 : Math.floor((y - top) / tall);
        return k >= 0 && row >= 0 && k < columns && row < rows && y < at(rows - 1) + tall ? { row, k } : null;
      };
      hover(svg, find, (hit, event) => {
        if (!hit) return;
        const may = allowed && hit.row < gates.length ? `; may use ${allowed[hit.row]} shared experts` : "";
        const even = entropies.length && hit.row < gates.length ? `; entropy ${share(entropies[chosen][hit.row])}` : "";
        tip(event, shorten(names[hit.row], 60), `${experts[hit.k]}: ${share(values[hit.row][hit.k])}${may}${even}`);
      });
      return svg;
    });
  }
  buttons.forEach((button, k) => button.addEventListener("click", () => {
    chosen = k;
    buttons.forEach((other, i) => other.setAttribute("aria-pressed", String(i === k)));
    paint();
  }));
  paint();
}
