// Elements and words. Text from the data only ever becomes text nodes and attributes, never markup.
const data = JSON.parse(document.getElementById("data").textContent);
const labels = data.labels;
const DRAWING = document.getElementById("mark").namespaceURI;
const place = id => document.getElementById(id);

function fill(node, attributes, children) {
  for (const [key, value] of Object.entries(attributes)) if (value !== null) node.setAttribute(key, value);
  node.append(...children);
  return node;
}
const el = (tag, attributes = {}, ...children) => fill(document.createElement(tag), attributes, children);
const draw = (tag, attributes = {}, ...children) => fill(document.createElementNS(DRAWING, tag), attributes, children);

const percent = value => (value === null ? "–" : `${value.toFixed(1)}\u00a0%`);
const share = value => (value === null ? "–" : percent(100 * value));
const count = value => (value === null ? "–" : Math.round(value).toLocaleString("en-GB"));
const images = value => `${count(value)} ${value === 1 ? "image" : "images"}`;
const brief = value => (value >= 1e6 ? `${value / 1e6}M` : value >= 1e3 ? `${value / 1e3}k` : `${value}`);

// By code points, so that no emoji is cut in half.
function shorten(name, most) {
  const letters = Array.from(name);
  return letters.length > most ? `${letters.slice(0, most - 1).join("")}…` : name;
}

function why(column, i) {
  if (labels.support[i] === 0) return "undefined: no image is known to have this label";
  if (labels.known[i] !== null && labels.support[i] === labels.known[i] && column.startsWith("ap")) {
    return "undefined: every image has this label";
  }
  if (column === "threshold") return "no threshold was fitted for this label";
  return "undefined: nothing reaches this label's threshold, or there is nothing to find";
}
