// @ts-check
"use strict";
// Pictures of one state of training. Each kind is a function that takes what the page knows of a picture, and returns
// what draws the k-th of its states.

/** @typedef {(place: HTMLElement, panel: Panel) => Promise<(k: number) => void>} Kind */

/** @param {Stored | null | undefined} stored @returns {Promise<Numbers>} */
function maybe(stored) {
  return stored ? numbers(stored) : Promise.resolve(new Float64Array(0));
}

/** Colour of what has a sign. @param {number} sign */
function signColor(sign) {
  return color(sign > 0 ? "positive" : sign < 0 ? "negative" : "unsigned");
}

/** @param {HTMLElement} place @param {[string, string, string][]} entries colour, sign, name */
function key(place, entries) {
  const items = entries.map(([name, sign, text]) => make("span", {}, make("span", { class: `key ${name}`, "aria-hidden": "true" }, sign), ` ${text}`));
  place.append(make("p", { class: "legend" }, ...items));
}

/** @type {{[kind: string]: Kind}} */
const KINDS = {
  async function(place, panel) {
    const [grid, values, kinks, data, held] = await Promise.all([panel.grid, panel.values, panel.kinks, panel.data, panel.held].map(maybe));
    const drawing = new Drawing(place, panel.alternative, 0.72, { right: kinks.length > 0, x: "input x", y: "output h(x)" });
    key(place, [["data", "●", "data"], ["function", "—", "function"], ...(held.length ? /** @type {[string, string, string][]} */ ([["data", "○", "held-out data"]]) : []),
      ...(kinks.length ? /** @type {[string, string, string][]} */ ([["neurons", "★", "neurons"]]) : [])]);
    const outside = make("p", { class: "readout" });
    if (kinks.length) place.append(outside);
    const [count, m] = [grid.length, kinks.length ? panel.kinks.shape[2] : 0];
    const draw = (/** @type {number} */ k) => {
      drawing.begin([...panel.window, ...panel.limits]);
      const [low, high] = panel.neuron_limits;
      const { ctx, box } = drawing;
      /** @type {number[][]} */
      const points = [];
      for (let i = 0; i < count; i++) points.push([grid[i], values[k * count + i]]);
      /** @type {number[][]} */
      const stars = [];
      for (let j = 0; j < m; j++) {
        const [x, height, y] = [0, 1, 2].map((part) => kinks[(k * 3 + part) * m + j]);
        if (!Number.isFinite(y)) continue;
        points.push([x, y]);
        stars.push([drawing.px(x), box.top + (1 - (height - low) / (high - low)) * box.height]);
      }
      points.sort((a, b) => a[0] - b[0]);
      drawing.inside(() => {
        ctx.strokeStyle = color("faint");
        drawing.line(box.left, drawing.py(0), box.left + box.width, drawing.py(0));
        ctx.strokeStyle = color("function");
        ctx.lineWidth = 2;
        ctx.beginPath();
        for (const [x, y] of points) if (Number.isFinite(y)) ctx.lineTo(drawing.px(x), drawing.py(y));
        ctx.stroke();
        ctx.fillStyle = color("neurons");
        ctx.globalAlpha = m > 300 ? 0.3 : 1;
        for (const [x, y] of stars) star(ctx, x, y, m > 300 ? 3 : 6);
        ctx.globalAlpha = 1;
        const [n, rings] = [data.length / 2, held.length / 2];
        for (let i = 0; i < rings; i++) drawing.dot(drawing.px(held[i]), drawing.py(held[rings + i]), 3.5, color("ground"), color("data"));
        for (let i = 0; i < n; i++) drawing.dot(drawing.px(data[i]), drawing.py(data[n + i]), 4, color("data"), color("ground"));
      });
      drawing.axes(m ? panel.neuron_limits : undefined, "sign × norm of neurons");
      outside.textContent = m > stars.length ? `${m - stars.length} of ${m} neurons stand outside of the window` : "\u00a0";
    };
    return again(drawing, draw);
  },

  async outputs(place, panel) {
    const [grid, values, data, held] = await Promise.all([panel.grid, panel.values, panel.data, panel.held].map(maybe));
    const [, count, classes] = panel.values.shape;
    const drawing = new Drawing(place, panel.alternative, 0.72, { x: "input x", y: panel.label });
    key(place, [...panel.names.map((/** @type {string} */ name, /** @type {number} */ c) => /** @type {[string, string, string]} */ ([`s${c % 7}`, "—", name])),
      ["data", "●", "data"], ...(held.length ? /** @type {[string, string, string][]} */ ([["data", "○", "held-out data"]]) : [])]);
    return again(drawing, (k) => {
      drawing.begin([grid[0], grid[count - 1], ...panel.limits]);
      drawing.ctx.lineWidth = 2;
      for (let c = 0; c < classes; c++) {
        drawing.ctx.strokeStyle = series(c);
        drawing.ctx.setLineDash([[], [8, 3], [2, 3]][Math.floor(c / 7) % 3]);
        drawing.ctx.beginPath();
        for (let i = 0; i < count; i++) drawing.ctx.lineTo(drawing.px(grid[i]), drawing.py(values[(k * count + i) * classes + c]));
        drawing.ctx.stroke();
      }
      drawing.ctx.setLineDash([]);
      const [n, rings] = [data.length / 3, held.length / 3];
      for (let i = 0; i < rings; i++) drawing.dot(drawing.px(held[i]), drawing.py(held[rings + i]), 3.5, color("ground"), series(held[2 * rings + i]));
      for (let i = 0; i < n; i++) drawing.dot(drawing.px(data[i]), drawing.py(data[n + i]), 4, series(data[2 * n + i]), color("ground"));
      drawing.axes();
    });
  },

  async regions(place, panel) {
    const [levels, segments, counts, data, held] = await Promise.all([panel.levels, panel.segments, panel.counts, panel.data, panel.held].map(maybe));
    const drawing = new Drawing(place, panel.alternative, 1, { equal: true, x: "x₁", y: "x₂" });
    /** Colour of a label. @param {number} label */
    const colour = (label) => (panel.names ? series(label) : signColor(label - panel.middle));
    /** @type {[boolean, string, string, string][]} */
    const entries = panel.names
      ? panel.names.map((/** @type {string} */ name, /** @type {number} */ c) => [levels.indexOf(c) >= 0, `s${c % 7}`, "■", name])
      : [[levels.some((v) => v > 128), "positive", "■", "output above 0"], [levels.some((v) => v < 128), "negative", "■", "below 0"],
        [levels.indexOf(128) >= 0, "text", "□", "exactly 0"], [segments.length > 0, "text", "—", "boundary"]];
    entries.push([data.length > 0, "text", "●", "data"], [held.length > 0, "text", "○", "held-out data"]);
    key(place, entries.filter(([drawn]) => drawn).map(([, ...entry]) => entry));
    const first = [0];
    for (const count of counts) first.push(first[first.length - 1] + count);
    const side = panel.side;
    const map = Object.assign(document.createElement("canvas"), { width: side, height: side });
    const pixels = /** @type {CanvasRenderingContext2D} */ (map.getContext("2d"));
    return again(drawing, (k) => {
      drawing.begin(panel.window);
      const image = pixels.createImageData(side, side);
      const shades = Array.from({ length: 256 }, (_, v) => (panel.names ? tint(`series-${v % 7}`, 0.45)
        : tint(v > 128 ? "positive" : "negative", v === 128 ? 0 : 0.18 + 0.42 * (Math.abs(v - 128) / 127))));
      for (let i = 0; i < side * side; i++) {
        const shade = shades[levels[k * side * side + i]];
        const to = 4 * ((side - 1 - Math.floor(i / side)) * side + (i % side));
        [image.data[to], image.data[to + 1], image.data[to + 2], image.data[to + 3]] = [shade[0], shade[1], shade[2], 255];
      }
      pixels.putImageData(image, 0, 0);
      const { ctx, box } = drawing;
      ctx.drawImage(map, box.left, box.top, box.width, box.height);
      drawing.inside(() => {
        ctx.strokeStyle = color("text");
        ctx.lineWidth = 1.5;
        ctx.beginPath();
        for (let s = first[k]; s < first[k + 1]; s++) {
          ctx.moveTo(drawing.px(segments[4 * s]), drawing.py(segments[4 * s + 1]));
          ctx.lineTo(drawing.px(segments[4 * s + 2]), drawing.py(segments[4 * s + 3]));
        }
        ctx.stroke();
        for (let i = 0; i < held.length; i += 3) drawing.dot(drawing.px(held[i]), drawing.py(held[i + 1]), 3.5, color("ground"), colour(held[i + 2]));
        for (let i = 0; i < data.length; i += 3) drawing.dot(drawing.px(data[i]), drawing.py(data[i + 1]), 3.5, colour(data[i + 2]), color("ground"));
      });
      drawing.axes();
    });
  },

  async samples(place, panel) {
    const [data, samples] = await Promise.all([panel.data, panel.samples].map(maybe));
    const drawing = new Drawing(place, panel.alternative, 1, { equal: true, x: "x₁", y: "x₂" });
    key(place, [["data", "●", "data"], ["s1", "●", "samples"]]);
    const count = 2 * panel.samples.shape[1];
    return again(drawing, (k) => {
      drawing.begin(panel.window);
      drawing.inside(() => {
        const { ctx } = drawing;
        for (const [name, points, from, to] of /** @type {[string, Numbers, number, number][]} */ ([["data", data, 0, data.length], ["series-1", samples, k * count, (k + 1) * count]])) {
          ctx.fillStyle = color(name);
          for (let i = from; i < to; i += 2) ctx.fillRect(drawing.px(points[i]) - 1, drawing.py(points[i + 1]) - 1, 2, 2);
        }
      });
      drawing.axes();
    });
  },

  async plane(place, panel) {
    const [coordinates, signs, rays] = await Promise.all([panel.coordinates, panel.signs, panel.rays].map(maybe));
    const [states, m] = panel.coordinates.shape;
    let [own, paths, now] = [false, m * states <= 60000, 0];
    const settings = make("div", { class: "settings" }, ticker("scale of this state", own, (on) => ((own = on), draw(now))), ticker("paths", paths, (on) => ((paths = on), draw(now))));
    place.append(settings);
    const drawing = new Drawing(place, panel.alternative, 1, { equal: true, x: panel.names[0], y: panel.names[1] });
    const there = /** @type {[number, string, string][]} */ ([[1, "positive", "output weight above 0"], [-1, "negative", "output weight below 0"], [0, "unsigned", "of no one sign"]]);
    key(place, [...there.filter(([sign]) => signs.indexOf(sign) >= 0).map(([, name, text]) => /** @type {[string, string, string]} */ ([name, "●", text])), ...(rays.length ? /** @type {[string, string, string][]} */ ([["data", "—", "directions of the data"]]) : [])]);
    const every = Math.max(1, Math.ceil((m * states) / 30000));
    const draw = (/** @type {number} */ k) => {
      now = k;
      let limit = panel.limit;
      if (own) {
        limit = 0;
        for (let i = 2 * k * m; i < 2 * (k + 1) * m; i++) limit = Math.max(limit, Math.abs(coordinates[i]));
        limit = limit * 1.15 || 1;
      }
      drawing.begin([-limit, limit, -limit, limit]);
      const { ctx } = drawing;
      drawing.inside(() => {
        ctx.strokeStyle = color("faint");
        ctx.lineWidth = 1;
        drawing.line(drawing.px(-limit), drawing.py(0), drawing.px(limit), drawing.py(0));
        drawing.line(drawing.px(0), drawing.py(-limit), drawing.px(0), drawing.py(limit));
        ctx.strokeStyle = color("data");
        ctx.lineWidth = 2;
        for (let i = 0; i < rays.length; i += 3) {
          const size = Math.hypot(rays[i], rays[i + 1]) || 1;
          ctx.setLineDash(rays[i + 2] < 0 ? [6, 4] : []);
          drawing.line(drawing.px(0), drawing.py(0), drawing.px((0.9 * limit * rays[i]) / size), drawing.py((0.9 * limit * rays[i + 1]) / size));
        }
        ctx.setLineDash([]);
        if (paths) {
          ctx.lineWidth = 0.7;
          ctx.globalAlpha = 0.45;
          for (const sign of [1, -1, 0]) {
            ctx.strokeStyle = signColor(sign);
            ctx.beginPath();
            for (let j = 0; j < m; j += every) {
              if (Math.sign(signs[k * m + j]) !== sign) continue;
              let [lastX, lastY] = [NaN, NaN];
              for (let i = 0; i <= k; i++) {
                const [x, y] = [drawing.px(coordinates[2 * (i * m + j)]), drawing.py(coordinates[2 * (i * m + j) + 1])];
                if (i < k && Math.abs(x - lastX) + Math.abs(y - lastY) < 1) continue;
                if (i) ctx.lineTo(x, y);
                else ctx.moveTo(x, y);
                [lastX, lastY] = [x, y];
              }
            }
            ctx.stroke();
          }
          ctx.globalAlpha = 1;
        }
        for (let j = 0; j < m; j++) {
          const i = k * m + j;
          drawing.dot(drawing.px(coordinates[2 * i]), drawing.py(coordinates[2 * i + 1]), m > 300 ? 2 : 3.5, signColor(signs[i]), m > 300 ? undefined : color("ground"));
        }
      });
      drawing.axes();
    };
    return again(drawing, draw);
  },

  async images(place, panel) {
    const [tiles, scales] = await Promise.all([panel.tiles, panel.scales].map(maybe));
    const count = panel.names.length;
    const columns = Math.ceil(Math.sqrt(count));
    const rows = Math.ceil(count / columns);
    const [width, height] = [columns * 29 + 1, rows * 29 + 1];
    const canvas = /** @type {HTMLCanvasElement} */ (make("canvas", { class: "pixels", role: "img", "aria-label": panel.alternative, width, height }));
    const scale = make("p", { class: "readout" });
    place.append(canvas, scale);
    key(place, [["positive", "■", "above 0"], ["negative", "■", "below 0"]]);
    const ctx = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
    const draw = (/** @type {number} */ k) => {
      const image = ctx.createImageData(width, height);
      const shades = Array.from({ length: 256 }, (_, v) => tint(v > 128 ? "positive" : "negative", Math.abs(v - 128) / 127));
      for (let t = 0; t < count; t++) {
        const [left, top] = [1 + 29 * (t % columns), 1 + 29 * Math.floor(t / columns)];
        for (let i = 0; i < 784; i++) {
          const shade = shades[tiles[(k * count + t) * 784 + i]];
          const to = 4 * ((top + Math.floor(i / 28)) * width + left + (i % 28));
          [image.data[to], image.data[to + 1], image.data[to + 2], image.data[to + 3]] = [shade[0], shade[1], shade[2], 255];
        }
      }
      ctx.putImageData(image, 0, 0);
      scale.textContent = `darkest: ${short(scales[k])}`;
    };
    return draw;
  },
};

/** Draw the same state again when the size changes. @param {Drawing} drawing @param {(k: number) => void} draw */
function again(drawing, draw) {
  let now = -1;
  drawing.onresize = () => now >= 0 && draw(now);
  return (/** @type {number} */ k) => draw((now = k));
}

/** @param {CanvasRenderingContext2D} ctx @param {number} x @param {number} y @param {number} radius */
function star(ctx, x, y, radius) {
  ctx.beginPath();
  for (let k = 0; k < 10; k++) {
    const [r, angle] = [k % 2 ? radius * 0.45 : radius, (Math.PI * k) / 5 - Math.PI / 2];
    ctx.lineTo(x + r * Math.cos(angle), y + r * Math.sin(angle));
  }
  ctx.fill();
}
