// @ts-check
"use strict";
// The numbers of a page: inflated when they are first asked for, and reduced to what a screen can show.

/** @typedef {{id?: number, type?: string, first?: number, step?: number, shape: number[]}} Stored */
/** @typedef {Float64Array | Float32Array | Uint8Array} Numbers */
/** @typedef {{name: string, color: string, dash: number[], width: number, points: boolean, further?: boolean}} Look */
/** @typedef {Look & {x: Stored, y: Stored, low?: Stored, high?: Stored, of?: number}} StoredLine */
/** @typedef {{kind: string, group?: number, at?: number[], alternative: string, [key: string]: any}} Panel */
/** @typedef {{x: Stored, numbers: {name: string, y: Stored}[]}} StoredGroup */

/** @type {{panels: Panel[], groups: StoredGroup[], live: number}} */
const described = JSON.parse(element("described").textContent || "");

/** @param {string} id @returns {HTMLElement} */
function element(id) {
  const found = document.getElementById(id);
  if (!found) throw new Error(`the page has no element ${id}`);
  return found;
}

/** @type {Map<number, Promise<Numbers>>} */
const inflated = new Map();

/**
 * Return the numbers of an array, all axes in one row.
 * @param {Stored} stored
 * @returns {Promise<Numbers>}
 */
function numbers(stored) {
  if (stored.id === undefined) {
    const count = stored.shape.reduce((a, b) => a * b, 1);
    return Promise.resolve(Float64Array.from({ length: count }, (_, k) => (stored.first ?? 0) + k * (stored.step ?? 0)));
  }
  let found = inflated.get(stored.id);
  if (!found) inflated.set(stored.id, (found = inflate(`a${stored.id}`, stored.type ?? "f8")));
  return found;
}

/** @param {string} id @param {string} type @returns {Promise<Numbers>} */
async function inflate(id, type) {
  const text = atob(element(id).textContent || "");
  const packed = new Uint8Array(text.length);
  for (let k = 0; k < text.length; k++) packed[k] = text.charCodeAt(k);
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  const planes = new Uint8Array(await new Response(stream).arrayBuffer());
  const width = Number(type.slice(1));
  if (width === 1) return planes;
  const count = planes.length / width;
  const bytes = new Uint8Array(planes.length);
  for (let plane = 0; plane < width; plane++) {
    for (let k = 0, from = plane * count; k < count; k++) bytes[k * width + plane] = planes[from + k];
  }
  return width === 4 ? new Float32Array(bytes.buffer) : new Float64Array(bytes.buffer);
}

/** A number of few digits; a whole number as it is, unless it is very large. @param {number} value @param {number} [digits] */
function short(value, digits = 3) {
  if (!Number.isFinite(value)) return Number.isNaN(value) ? "–" : String(value);
  const size = Math.abs(value);
  if (Number.isInteger(value) && size < 1e6) return String(value);
  if (size >= 1e6 || size < 1e-3) return value.toExponential(digits - 1).replace(/\.?0+e/, "e").replace("e+", "e");
  return String(Number(value.toPrecision(digits)));
}

/** Numbers beside the ticks of an axis, of so many digits that they differ. @param {number[]} values */
function labels(values) {
  let found = values.map((value) => short(value));
  for (let digits = 4; digits < 16 && new Set(found).size < values.length; digits++) found = values.map((value) => short(value, digits));
  return found;
}

/** Index of the first number that is not below `value`. @param {Numbers} sorted @param {number} value */
function firstFrom(sorted, value) {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle] < value) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Index of the number that is nearest to `value`. @param {Numbers} sorted @param {number} value */
function nearest(sorted, value) {
  const k = firstFrom(sorted, value);
  if (k === 0) return 0;
  return k < sorted.length && sorted[k] - value < value - sorted[k - 1] ? k : k - 1;
}

/** A curve with the places of the least and the largest value of every 2, 4, 8, ... neighbours. */
class Curve {
  /** @param {Numbers} x @param {Numbers} y */
  constructor(x, y) {
    this.x = x;
    this.y = y;
    /** @type {{low: Int32Array, high: Int32Array}[]} */
    this.levels = [];
    let low = new Int32Array(y.length);
    for (let k = 0; k < y.length; k++) low[k] = k;
    let high = low;
    while (low.length > 1) {
      const half = (low.length + 1) >> 1;
      const [lower, higher] = [new Int32Array(half), new Int32Array(half)];
      for (let k = 0; k < half; k++) {
        const other = Math.min(2 * k + 1, low.length - 1);
        lower[k] = this.better(low[2 * k], low[other], -1);
        higher[k] = this.better(high[2 * k], high[other], 1);
      }
      this.levels.push({ low: lower, high: higher });
      [low, high] = [lower, higher];
    }
  }

  /** The index of the larger (`sign` 1) or smaller value; one that is not finite never wins. @param {number} a @param {number} b @param {number} sign */
  better(a, b, sign) {
    if (!Number.isFinite(this.y[b])) return a;
    return !Number.isFinite(this.y[a]) || sign * this.y[b] > sign * this.y[a] ? b : a;
  }

  /** Indices of the least and the largest value from index `from` up to before `to`. @param {number} from @param {number} to */
  extremes(from, to) {
    let low = from;
    let high = from;
    let k = from;
    while (k < to) {
      let level = 0;
      while (level < this.levels.length && k % (2 << level) === 0 && k + (2 << level) <= to) level++;
      const at = k >> level;
      const found = level ? this.levels[level - 1] : null;
      low = this.better(low, found ? found.low[at] : k, -1);
      high = this.better(high, found ? found.high[at] : k, 1);
      k += 1 << level;
    }
    return { low, high };
  }

  /**
   * Indices of the points that can be seen between two places of x in so many columns of pixels: the first, the last,
   * the lowest and the highest of each.
   * @param {number} from @param {number} to @param {number} columns @param {boolean} log
   */
  visible(from, to, columns, log) {
    const first = Math.max(log ? firstFrom(this.x, Number.MIN_VALUE) : 0, firstFrom(this.x, from) - 1);
    const end = Math.min(this.x.length, firstFrom(this.x, to) + 2);
    /** @type {number[]} */
    const kept = [];
    if (end - first <= 4 * columns) {
      for (let k = first; k < end; k++) kept.push(k);
      return kept;
    }
    const [a, b] = log ? [Math.log(from), Math.log(to)] : [from, to];
    for (let column = 0, k = first; column <= columns && k < end; column++) {
      const edge = a + ((b - a) * (column + 1)) / columns;
      const next = column === columns ? end : Math.min(end, firstFrom(this.x, log ? Math.exp(edge) : edge));
      if (next <= k) continue;
      const { low, high } = this.extremes(k, next);
      for (const index of [k, Math.min(low, high), Math.max(low, high), next - 1]) {
        if (index > (kept.length ? kept[kept.length - 1] : -1)) kept.push(index);
      }
      k = next;
    }
    return kept;
  }
}
