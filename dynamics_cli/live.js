// @ts-check
// Curves of a run while it is recorded, drawn as SVG: the widget of dynamics_cli/live.py.

/** @typedef {{label: string, y: (number | null)[]}} Curve */
/** @typedef {{title: string, log: boolean, x: number[], curves: Curve[]}} Chart */
/** @typedef {{get: (trait: string) => any, on: Function, off: Function}} Model */
/** A place on an axis: from a value to pixels. @typedef {(value: number) => number} Place */

const WIDTH = 360;
const HEIGHT = 200;
const LEFT = 62;
const RIGHT = 14;
const TOP = 8;
const BOTTOM = 38;
/** Ticks of an axis, about. */
const TICKS = 4;
const FONT = "11px sans-serif";

/** @param {string} name @param {{[name: string]: string | number}} attributes @param {(Node | string)[]} children */
function svg(name, attributes, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, String(value));
  element.append(...children);
  return element;
}

/** @param {string} name @param {string} style @param {(Node | string)[]} children */
function html(name, style, ...children) {
  const element = document.createElement(name);
  element.style.cssText = style;
  element.append(...children);
  return element;
}

/** @param {number} value @param {number} digits */
function text(value, digits = 4) {
  const size = Math.abs(value);
  const rounded = Number(value.toPrecision(digits));
  if (value === 0 || (size >= 1e-3 && size < 1e6)) return String(rounded);
  return rounded.toExponential().replace("e+", "e");
}

/** Texts of ticks, which have the digits that tell them apart. @param {number[]} values */
function texts(values) {
  const largest = Math.max(...values.map(Math.abs));
  const step = values.length > 1 ? values[1] - values[0] : largest;
  const digits = Math.min(15, Math.max(4, 2 + Math.ceil(Math.log10(largest / step))));
  return values.map((value) => text(value, digits));
}

/** Round numbers between two. @param {number} low @param {number} high */
function ticks(low, high) {
  const rough = (high - low) / TICKS;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * ([1, 2, 5].find((factor) => factor * power >= rough) ?? 10);
  const found = [];
  for (let k = Math.ceil(low / step); k * step <= high; k++) found.push(k * step);
  return found;
}

/** Powers of ten between two numbers. @param {number} low @param {number} high */
function powers(low, high) {
  const first = Math.ceil(Math.log10(low));
  const last = Math.floor(Math.log10(high));
  const step = Math.max(1, Math.ceil((last - first) / TICKS));
  const found = [];
  for (let k = first; k <= last; k += step) found.push(10 ** k);
  return found;
}

/** The ends of values, apart from each other. @param {number[]} values */
function ends(values) {
  const low = values.reduce((a, b) => Math.min(a, b), Infinity);
  const high = values.reduce((a, b) => Math.max(a, b), -Infinity);
  if (low < high) return [low, high];
  const around = Math.abs(low) / 10 || 1;
  return [low - around, high + around];
}

/** Points of a curve between numbers that are missing. @param {Curve} curve @param {number[]} x @param {Place} across @param {Place} down */
function pieces(curve, x, across, down) {
  /** @type {string[][]} */
  const found = [[]];
  curve.y.forEach((y, k) => {
    if (y === null) found.push([]);
    else found[found.length - 1].push(`${across(x[k]).toFixed(1)},${down(y).toFixed(1)}`);
  });
  return found.filter((piece) => piece.length);
}

/** @param {string[]} piece @param {string} color */
function line(piece, color) {
  if (piece.length === 1) {
    const [cx, cy] = piece[0].split(",");
    return svg("circle", { cx, cy, r: 1.5, fill: color });
  }
  return svg("polyline", {
    points: piece.join(" "),
    fill: "none",
    stroke: color,
    "stroke-width": 1.5,
    "stroke-linejoin": "round",
  });
}

/** @param {Chart} chart @param {string[]} colors */
function picture(chart, colors) {
  const values = chart.curves.flatMap(({ y }) => y.filter((one) => one !== null));
  const title = values.length ? chart.title : `${chart.title}: no finite number yet`;
  const drawing = svg("svg", {
    viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
    width: WIDTH,
    height: HEIGHT,
    role: "img",
    style: "overflow: visible",
    "aria-label": `${title}, up to iteration ${chart.x[chart.x.length - 1]}`,
  });
  const legend = html("figcaption", `font: 13px sans-serif; padding-left: ${LEFT}px;`, title);
  const figure = html("figure", `margin: 0; width: ${WIDTH}px;`, legend, drawing);
  if (!values.length) return figure;

  const left = chart.x[0];
  const right = Math.max(chart.x[chart.x.length - 1], left + 1);
  const [low, high] = ends(values);
  const scale = chart.log ? Math.log10 : (/** @type {number} */ value) => value;
  const across = (/** @type {number} */ x) =>
    LEFT + ((WIDTH - LEFT - RIGHT) * (x - left)) / (right - left);
  const down = (/** @type {number} */ y) => {
    const share = (scale(y) - scale(low)) / (scale(high) - scale(low));
    return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * share;
  };

  const axes = svg("g", { stroke: "currentColor", fill: "none", "stroke-opacity": 0.5 });
  const numbers = svg("g", { fill: "currentColor", style: `font: ${FONT}` });
  const bottom = HEIGHT - BOTTOM;
  axes.append(svg("path", { d: `M${LEFT} ${TOP}V${bottom}H${WIDTH - RIGHT}` }));
  const iterations = ticks(left, right).filter(Number.isInteger);
  texts(iterations).forEach((said, k) => {
    const x = across(iterations[k]);
    axes.append(svg("path", { d: `M${x} ${bottom}v4` }));
    numbers.append(svg("text", { x, y: bottom + 16, "text-anchor": "middle" }, said));
  });
  const heights = chart.log ? powers(low, high) : ticks(low, high);
  texts(heights).forEach((said, k) => {
    const y = down(heights[k]);
    axes.append(svg("path", { d: `M${LEFT} ${y}h-4` }));
    numbers.append(svg("text", { x: LEFT - 7, y: y + 4, "text-anchor": "end" }, said));
  });
  const middle = { x: (LEFT + WIDTH - RIGHT) / 2, y: HEIGHT - 6, "text-anchor": "middle" };
  numbers.append(svg("text", middle, "iteration"));
  drawing.append(axes, numbers);

  chart.curves.forEach((curve, k) => {
    const color = colors[k % colors.length];
    for (const piece of pieces(curve, chart.x, across, down)) drawing.append(line(piece, color));
    const last = curve.y[curve.y.length - 1];
    const said = last === null ? "not finite" : text(last);
    const sign = html("span", `color: ${color}; padding-left: 0.8em;`, "■ ");
    const label = curve.label ? `${curve.label}: ${said}` : said;
    legend.append(html("span", "display: inline-block;", sign, label));
  });
  return figure;
}

/** @param {{model: Model, el: HTMLElement}} widget */
function render({ model, el }) {
  const draw = () => {
    const figures = model
      .get("charts")
      .map((/** @type {Chart} */ chart) => picture(chart, model.get("colors")));
    const title = html(
      "div",
      "font: bold 13px sans-serif; padding-bottom: 6px;",
      model.get("name"),
    );
    const row = html("div", "display: flex; flex-wrap: wrap; gap: 12px;", ...figures);
    el.replaceChildren(title, row);
  };
  model.on("change:charts", draw);
  draw();
  return () => model.off("change:charts", draw);
}

export default { render };
