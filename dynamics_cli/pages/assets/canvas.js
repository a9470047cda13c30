// @ts-check
"use strict";
// A canvas with axes: where numbers stand in it, ticks, labels.

/** Round numbers between two numbers, about `count`. @param {number} from @param {number} to @param {number} count */
function ticks(from, to, count) {
  const raw = (to - from) / Math.max(count, 1);
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 2.5, 5, 10].map((m) => m * power).find((s) => s >= raw * 0.999) ?? raw;
  const places = [];
  for (let k = Math.ceil(from / step - 1e-9); k * step <= to + 1e-9 * step; k++) places.push(k * step);
  return places.length < 50 ? places : [];
}

/** Powers of ten between two positive numbers, at most about `count`; where there are too few, their multiples too. @param {number} from @param {number} to @param {number} count */
function powers(from, to, count) {
  const [a, b] = [Math.ceil(Math.log10(from) - 1e-9), Math.floor(Math.log10(to) + 1e-9)];
  const every = Math.max(1, Math.ceil((b - a) / Math.max(count, 1)));
  const places = [];
  for (let k = a; k <= b; k += every) places.push(10 ** k);
  if (places.length > 1) return places;
  const between = [a - 1, a].flatMap((k) => [1, 2, 5].map((m) => m * 10 ** k)).filter((v) => v >= from && v <= to);
  return between.length > 1 ? between : ticks(from, to, count);
}

/** @typedef {{left: number, top: number, width: number, height: number}} Box */

class Drawing {
  /**
   * @param {HTMLElement} place @param {string} alternative @param {number} aspect height over width
   * @param {{equal?: boolean, right?: boolean, x?: string, y?: string}} [look]
   */
  constructor(place, alternative, aspect, look = {}) {
    this.canvas = /** @type {HTMLCanvasElement} */ (make("canvas", { role: "img", "aria-label": alternative }));
    place.append(this.canvas);
    this.ctx = /** @type {CanvasRenderingContext2D} */ (this.canvas.getContext("2d"));
    this.aspect = aspect;
    this.look = look;
    this.window = [0, 1, 0, 1];
    this.width = 0;
    this.height = 0;
    this.ratio = 0;
    this.log = { x: false, y: false };
    /** @type {Box} */
    this.box = { left: 0, top: 0, width: 1, height: 1 };
    /** @type {() => void} */
    this.onresize = () => {};
    this.measure();
    new ResizeObserver(() => this.measure() && this.onresize()).observe(place);
  }

  /** Take the size of the place; whether it has changed. */
  measure() {
    const width = Math.max(200, this.canvas.parentElement?.clientWidth ?? 0);
    if (width === this.width && devicePixelRatio === this.ratio) return false;
    this.width = width;
    this.ratio = devicePixelRatio;
    this.height = Math.round(Math.min(width * this.aspect, 460));
    this.canvas.width = width * this.ratio;
    this.canvas.height = this.height * this.ratio;
    this.canvas.style.width = `${width}px`;
    this.canvas.style.height = `${this.height}px`;
    return true;
  }

  /** Empty the canvas and take the numbers that it shows. @param {number[]} window x from, x to, y from, y to */
  begin(window) {
    this.ctx.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    this.ctx.clearRect(0, 0, this.width, this.height);
    const [left, right, top, bottom] = [54, this.look.right ? 54 : 12, 10, 36];
    this.box = { left, top, width: this.width - left - right, height: this.height - top - bottom };
    if (this.look.equal) {
      const [x0, x1, y0, y1] = window;
      const scale = Math.min(this.box.width / (x1 - x0), this.box.height / (y1 - y0));
      const width = scale * (x1 - x0);
      this.box = { left: left + (this.box.width - width) / 2, top, width, height: scale * (y1 - y0) };
    }
    this.window = window;
    this.ctx.font = "12px sans-serif";
  }

  /** @param {number} v @param {"x" | "y"} axis */
  share(v, axis) {
    const [a, b] = axis === "x" ? this.window : this.window.slice(2);
    return this.log[axis] ? Math.log(v / a) / Math.log(b / a) : (v - a) / (b - a);
  }

  /** @param {number} x */
  px(x) {
    return this.box.left + this.share(x, "x") * this.box.width;
  }

  /** @param {number} y */
  py(y) {
    return this.box.top + (1 - this.share(y, "y")) * this.box.height;
  }

  /** Draw only inside of the axes. @param {() => void} draw */
  inside(draw) {
    const { left, top, width, height } = this.box;
    this.ctx.save();
    this.ctx.beginPath();
    this.ctx.rect(left, top, width, height);
    this.ctx.clip();
    draw();
    this.ctx.restore();
  }

  /**
   * Draw frame, ticks and labels; `words` are names of places on an axis, `places` where its ticks stand.
   * @param {number[]} [right] limits of a second axis on the right @param {string} [label] of that axis
   * @param {{x?: string[] | null, y?: string[] | null}} [words] @param {{x?: number[], y?: number[]}} [places]
   */
  axes(right, label, words = {}, places = {}) {
    const { ctx, box } = this;
    const [x0, x1, y0, y1] = this.window;
    ctx.strokeStyle = color("unsigned");
    ctx.lineWidth = 1;
    ctx.strokeRect(box.left, box.top, box.width, box.height);
    ctx.fillStyle = color("theory");
    ctx.textAlign = "center";
    ctx.textBaseline = "top";
    const across = places.x ?? (this.log.x ? powers(x0, x1, box.width / 70) : ticks(x0, x1, box.width / 70));
    labels(across).forEach((label, k) => {
      const [v, text] = [across[k], words.x ? (words.x[across[k]] ?? "") : label];
      this.line(this.px(v), box.top + box.height, this.px(v), box.top + box.height + 4);
      const beside = this.width - ctx.measureText(text.slice(0, 18)).width / 2; // else the last label leaves the canvas
      ctx.fillText(text.slice(0, 18), Math.min(this.px(v), beside), box.top + box.height + 6);
    });
    ctx.fillText(this.look.x ?? "", box.left + box.width / 2, box.top + box.height + 21, box.width);
    ctx.textBaseline = "middle";
    ctx.textAlign = "right";
    const up = places.y ?? (this.log.y ? powers(y0, y1, box.height / 36) : ticks(y0, y1, box.height / 36));
    labels(up).forEach((label, k) => {
      const [v, text] = [up[k], words.y ? (words.y[up[k]] ?? "") : label];
      this.line(box.left - 4, this.py(v), box.left, this.py(v));
      ctx.fillText(text.slice(0, 9), box.left - 6, this.py(v), 34); // so narrow that the label has its place
    });
    this.turned(this.look.y ?? "", box.left - 46);
    if (!right) return;
    ctx.textAlign = "left";
    ctx.fillStyle = color("neurons");
    for (const v of ticks(right[0], right[1], box.height / 36)) {
      const y = box.top + (1 - (v - right[0]) / (right[1] - right[0])) * box.height;
      ctx.fillText(short(v), box.left + box.width + 4, y);
    }
    this.turned(label ?? "", box.left + box.width + 48);
  }

  /** Write upwards along the middle of the height. @param {string} text @param {number} x */
  turned(text, x) {
    const { ctx, box } = this;
    ctx.save();
    ctx.translate(x, box.top + box.height / 2);
    ctx.rotate(-Math.PI / 2);
    ctx.textAlign = "center";
    ctx.fillText(text, 0, 0, box.height);
    ctx.restore();
  }

  /** @param {number} x0 @param {number} y0 @param {number} x1 @param {number} y1 */
  line(x0, y0, x1, y1) {
    this.ctx.beginPath();
    this.ctx.moveTo(x0, y0);
    this.ctx.lineTo(x1, y1);
    this.ctx.stroke();
  }
}

/** Viridis (van der Walt and Smith 2015) at nine places, between which colours are mixed. */
const VIRIDIS = [[68, 1, 84], [71, 44, 122], [59, 81, 139], [44, 113, 142], [33, 144, 141], [39, 173, 129], [92, 200, 99], [170, 220, 50], [253, 231, 37]];

/** @param {number} share from 0 to 1 @returns {number[]} */
function viridis(share) {
  const at = Math.max(0, Math.min(1, share)) * (VIRIDIS.length - 1);
  const k = Math.min(VIRIDIS.length - 2, Math.floor(at));
  return VIRIDIS[k].map((c, i) => Math.round(c + (at - k) * (VIRIDIS[k + 1][i] - c)));
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
