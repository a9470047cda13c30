// @ts-check
"use strict";
// Axes of uPlot: ticks, labels, and pictures that are drawn in them.

/** Round numbers between two numbers, about `count`. @param {number} from @param {number} to @param {number} count */
function ticks(from, to, count) {
  const raw = (to - from) / Math.max(count, 1);
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 2.5, 5, 10].map((m) => m * power).find((s) => s >= raw * 0.999) ?? raw;
  const places = [];
  for (let k = Math.ceil(from / step - 1e-9); k * step <= to + 1e-9 * step; k++)
    places.push(k * step);
  return places.length < 50 ? places : [];
}

/** Powers of ten between two positive numbers, at most about `count`; where there are too few, their multiples too. @param {number} from @param {number} to @param {number} count */
function powers(from, to, count) {
  const [a, b] = [Math.ceil(Math.log10(from) - 1e-9), Math.floor(Math.log10(to) + 1e-9)];
  const every = Math.max(1, Math.ceil((b - a) / Math.max(count, 1)));
  const places = [];
  for (let k = a; k <= b; k += every) places.push(10 ** k);
  if (places.length > 1) return places;
  const between = [a - 1, a]
    .flatMap((k) => [1, 2, 5].map((m) => m * 10 ** k))
    .filter((v) => v >= from && v <= to);
  return between.length > 1 ? between : ticks(from, to, count);
}

/** Ends of an axis around two numbers. @param {number} low @param {number} high @param {boolean} log @returns {[number, number]} */
function padded(low, high, log) {
  if (!log) {
    const pad = 0.06 * (high - low) || 0.5 * Math.abs(high) || 1;
    return [low - pad, high + pad];
  }
  if (high < 4 * low) return [low / 2, high * 2];
  return [low * (low / high) ** 0.05, high * (high / low) ** 0.05];
}

/** Ticks and labels of an axis of uPlot, a tick every `room` pixels. @param {"x" | "y"} side @param {{x: boolean, y: boolean}} log @param {number} room */
function axis(side, log, room) {
  return {
    stroke: () => color("theory"),
    ticks: { stroke: () => color("faint"), size: 4 },
    grid: { show: false },
    gap: 2,
    labelSize: 18,
    labelFont: "12px sans-serif",
    filter: (/** @type {any} */ _, /** @type {number[]} */ all) => all,
    incrs: [Number.MAX_VALUE], // else there are no ticks beyond 1e32; `splits` has them all
    splits: (
      /** @type {uPlot} */ u,
      /** @type {number} */ _,
      /** @type {number} */ from,
      /** @type {number} */ to,
    ) =>
      (log[side] ? powers : ticks)(
        from,
        to,
        u.bbox[side === "x" ? "width" : "height"] / devicePixelRatio / room,
      ),
    values: (/** @type {any} */ _, /** @type {number[]} */ at) => labels(at),
  };
}

/** The room of labels beside an axis: long ones take it from the chart. @param {any} _ @param {string[] | null} texts */
function roomOf(_, texts) {
  return 8 + 7 * Math.max(6, ...(texts ?? []).map((text) => text.length));
}

/** @typedef {{equal?: boolean, x?: object, y?: object, right?: number[] | null, rightLabel?: string}} AxesLook options of uPlot's axes; limits of a second y axis */

/** Axes of uPlot, in which anything is drawn. */
class Drawing {
  /** @param {HTMLElement} place @param {string} alternative @param {number} aspect height over width @param {AxesLook} [look] */
  constructor(place, alternative, aspect, look = {}) {
    this.place = make("div", { class: "drawing", role: "img", "aria-label": alternative });
    place.append(this.place);
    this.aspect = aspect;
    this.look = look;
    this.log = { x: false, y: false };
    this.window = [0, 1, 0, 1];
    this.box = { left: 0, top: 0, width: 1, height: 1 };
    this.paint = () => {};
    onWidth(place, () => this.plot && this.build());
  }

  /** Show a window, and in it what `paint` draws in pixels of the page. @param {number[]} window x from, x to, y from, y to @param {() => void} paint @param {AxesLook} [look] where it is another */
  show(window, paint, look) {
    [this.window, this.paint, this.look] = [window, paint, look ?? this.look];
    if (this.plot && !look) this.plot.setData([[]]);
    else this.build();
  }

  build() {
    this.plot?.destroy();
    const { look, log } = this;
    const width = Math.max(200, this.place.clientWidth);
    const height = Math.round(Math.min(width * this.aspect, 460));
    const [across, down] = [46 + 18 + 12, 22 + 18 + 10]; // what the axes take
    const side = Math.min(width - across, height - down);
    const axes = [
      { ...axis("x", log, 70), size: 22, ...look.x },
      { ...axis("y", log, 36), size: look.equal ? 46 : roomOf, ...look.y },
      ...(look.right
        ? [
            {
              ...axis("y", { x: false, y: false }, 36),
              scale: "right",
              side: 1,
              label: look.rightLabel,
              size: roomOf,
              stroke: () => color("neurons"),
            },
          ]
        : []),
    ];
    const scales = {
      x: { time: false, distr: log.x ? 3 : 1, range: () => this.window.slice(0, 2) },
      y: { distr: log.y ? 3 : 1, range: () => this.window.slice(2) },
      right: { range: () => look.right ?? [0, 1] },
    };
    const options = /** @type {any} */ ({
      ...(look.equal ? { width: side + across, height: side + down } : { width, height }),
      axes,
      scales,
      padding: [10, look.right ? 0 : 12, 0, 0],
      legend: { show: false },
      cursor: { show: false },
      series: [{}],
      hooks: { draw: [() => this.draw()] },
    });
    this.plot = new uPlot(options, [[]], this.place);
  }

  draw() {
    const { ctx, bbox } = /** @type {uPlot} */ (this.plot);
    const [left, top, width, height] = [bbox.left, bbox.top, bbox.width, bbox.height].map(
      (pixels) => pixels / devicePixelRatio,
    );
    this.box = { left, top, width, height };
    ctx.save();
    ctx.scale(devicePixelRatio, devicePixelRatio);
    ctx.strokeStyle = color("unsigned");
    ctx.lineWidth = 1;
    ctx.strokeRect(left, top, width, height);
    ctx.beginPath();
    ctx.rect(left, top, width, height);
    ctx.clip();
    ctx.font = "12px sans-serif";
    this.paint();
    ctx.restore();
  }

  get ctx() {
    return /** @type {uPlot} */ (this.plot).ctx;
  }

  /** @param {number} x */
  px(x) {
    return this.box.left + /** @type {uPlot} */ (this.plot).valToPos(x, "x");
  }

  /** @param {number} y */
  py(y) {
    return this.box.top + /** @type {uPlot} */ (this.plot).valToPos(y, "y");
  }

  /** @param {number} x0 @param {number} y0 @param {number} x1 @param {number} y1 */
  line(x0, y0, x1, y1) {
    this.ctx.beginPath();
    this.ctx.moveTo(x0, y0);
    this.ctx.lineTo(x1, y1);
    this.ctx.stroke();
  }
}

/** Red, green and blue of a colour such as #0072b2. @param {string} hex */
function rgb(hex) {
  return [1, 3, 5].map((k) => parseInt(hex.slice(k, k + 2), 16));
}

/** A colour a part of the way from the page's ground to another. @param {string} name @param {number} share */
function tint(name, share) {
  const [ground, full] = [rgb(color("ground")), rgb(color(name))];
  return ground.map((c, k) => Math.round(c + share * (full[k] - c)));
}
