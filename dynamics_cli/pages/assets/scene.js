// @ts-check
"use strict";
// Scenes: pictures of one state of training, drawn from layers of numbers with roles (dynamics_cli/plotting/scene.py).

/** @typedef {{form: string, moves: boolean, right: boolean, rim: boolean, size: number, hollow: boolean, alpha: number, dash: number[], shade: number[],
 *   colors: string[], markers: string[], rows: Stored, counts: Stored, columns: number}} StoredLayer */
/** @typedef {StoredLayer & {numbers: Numbers, first: number[]}} Layer */

/** Pixels of a screen to a point of paper, of lines and of markers, which are looked at from farther away. */
const [POINT, MARKER_POINT] = [4 / 3, 1.8];
const ZERO = 128;
/** Outlines of markers of radius 1; others are circles. @type {{[marker: string]: string}} */
const MARKERS = {
  s: "M-.9-.9h1.8v1.8h-1.8z",
  D: "M0-1.2 1.2 0 0 1.2-1.2 0z",
  "^": "M0-1 1 1-1 1z",
  v: "M0 1 1-1-1-1z",
  "*": "M0-1.2 .29-.4 1.14-.37 .48.15 .71.97 0 .5-.71.97-.48.15-1.14-.37-.29-.4z",
};
const CIRCLE = "M1 0a1 1 0 1 1-2 0a1 1 0 1 1 2 0z";

/** @param {HTMLElement} place @param {Panel} panel @returns {Promise<(k: number) => void>} */
async function setUpScene(place, panel) {
  /** @type {Layer[]} */
  const layers = await Promise.all(
    panel.layers.map(async (/** @type {StoredLayer} */ layer) => {
      const first = [0];
      for (const count of await numbers(layer.counts)) first.push(first[first.length - 1] + count);
      return { ...layer, numbers: await numbers(layer.rows), first };
    }),
  );
  const windows = panel.windows ? await numbers(panel.windows) : null;
  let [now, scaled] = [-1, false];
  const scale = (/** @type {boolean} */ on) => {
    scaled = on;
    draw(now);
  };
  if (windows)
    place.append(make("div", { class: "settings" }, ticker("scale of this state", scaled, scale)));
  const drawing = new Drawing(place, panel.alternative, panel.square ? 1 : 0.72, {
    equal: panel.square,
    right: panel.right,
    rightLabel: panel.right_label,
    x: { label: panel.x },
    y: { label: panel.y },
  });
  place.append(
    make(
      "p",
      { class: "legend" },
      ...panel.legend.map((/** @type {string[]} */ [name, sign, text]) => {
        const key = make("span", { "aria-hidden": "true" }, sign);
        key.style.color = `var(--${name})`;
        return make("span", {}, key, ` ${text}`);
      }),
    ),
  );
  const remark = make("p", { class: "readout" });
  if (panel.remarks.some(Boolean)) place.append(remark);
  const draw = (/** @type {number} */ k) => {
    now = k;
    remark.textContent = panel.remarks[k] || "\u00a0";
    drawing.show(windows && scaled ? [...windows.slice(4 * k, 4 * k + 4)] : panel.window, () => {
      const { ctx, box } = drawing;
      ctx.strokeStyle = color("faint");
      if (panel.zero.includes("y"))
        drawing.line(box.left, drawing.py(0), box.left + box.width, drawing.py(0));
      if (panel.zero.includes("x"))
        drawing.line(drawing.px(0), box.top, drawing.px(0), box.top + box.height);
      for (const layer of layers) {
        ctx.globalAlpha = layer.alpha;
        ctx.lineWidth = layer.size * POINT;
        if (layer.form === "field" || layer.form === "classes") drawPixels(drawing, layer, k);
        else drawRows(drawing, panel, layer, k);
      }
    });
  };
  return draw;
}

/** Draw a line, points or segments of a state. @param {Drawing} drawing @param {Panel} panel @param {Layer} layer @param {number} k */
function drawRows(drawing, panel, layer, k) {
  const { ctx, box } = drawing;
  const state = layer.moves ? k : 0;
  const half = layer.rim ? drawing.window[1] : 1;
  const [low, high] = layer.right ? panel.right : [0, 1];
  const py = (/** @type {number} */ y) =>
    layer.right ? box.top + (1 - (y - low) / (high - low)) * box.height : drawing.py(y * half);
  const px = (/** @type {number} */ x) => drawing.px(x * half);
  const { numbers: rows, columns } = layer;
  ctx.setLineDash(layer.dash);
  layer.colors.forEach((name, role) => {
    ctx.strokeStyle = ctx.fillStyle = color(name);
    ctx.beginPath();
    for (let i = layer.first[state] * columns; i < layer.first[state + 1] * columns; i += columns) {
      if (layer.colors.length > 1 && rows[i + columns - 1] !== role) continue;
      const [x, y] = [px(rows[i]), py(rows[i + 1])];
      if (!Number.isFinite(x + y)) continue;
      if (layer.form === "points") drawMarker(drawing, layer, layer.markers[role], x, y);
      else if (layer.form === "line") ctx.lineTo(x, y);
      else {
        ctx.moveTo(x, y);
        ctx.lineTo(px(rows[i + 2]), py(rows[i + 3]));
      }
    }
    if (layer.form !== "points") ctx.stroke();
  });
  ctx.setLineDash([]);
}

/** Draw a marker in the colours of the moment. @param {Drawing} drawing @param {Layer} layer @param {string} marker @param {number} x @param {number} y */
function drawMarker(drawing, layer, marker, x, y) {
  const { ctx } = drawing;
  const radius = (layer.size * MARKER_POINT) / 2;
  const shape = new Path2D();
  shape.addPath(new Path2D(MARKERS[marker] ?? CIRCLE), new DOMMatrix([radius, 0, 0, radius, x, y]));
  const [stroke, fill] = [ctx.strokeStyle, ctx.fillStyle];
  if (layer.hollow) ctx.fillStyle = color("ground");
  else ctx.strokeStyle = color("ground");
  ctx.fill(shape);
  ctx.lineWidth = layer.hollow ? 1.2 : 0.5;
  if (layer.hollow || (layer.size > 2 && layer.alpha === 1)) ctx.stroke(shape);
  [ctx.strokeStyle, ctx.fillStyle] = [stroke, fill];
}

/** Draw the pixels of a state over the whole window. @param {Drawing} drawing @param {Layer} layer @param {number} k */
function drawPixels(drawing, layer, k) {
  const [width, height] = [layer.columns, layer.first[1]];
  const map = Object.assign(document.createElement("canvas"), { width, height });
  const pixels = /** @type {CanvasRenderingContext2D} */ (map.getContext("2d"));
  const image = pixels.createImageData(width, height);
  const [weak, more] = layer.shade;
  const shades =
    layer.form === "classes"
      ? layer.colors.map((name) => tint(name, weak))
      : Array.from({ length: 256 }, (_, v) =>
          tint(
            layer.colors[v < ZERO ? 1 : 0],
            v === ZERO ? 0 : weak + more * (Math.abs(v - ZERO) / (ZERO - 1)),
          ),
        );
  for (let i = 0, from = k * width * height; i < width * height; i++) {
    const to = 4 * ((height - 1 - Math.floor(i / width)) * width + (i % width));
    image.data.set([...shades[layer.numbers[from + i]], 255], to);
  }
  pixels.putImageData(image, 0, 0);
  const { left, top, width: across, height: down } = drawing.box;
  drawing.ctx.drawImage(map, left, top, across, down);
}
