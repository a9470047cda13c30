// @ts-check
"use strict";
// The numbers of a page: inflated when they are first asked for, and reduced to what a screen can show.

/** @typedef {{packed: string, type: string, shape: number[], numbers?: Promise<Numbers>}} Stored */
/** @typedef {Float64Array | Float32Array | Uint8Array} Numbers */
/** @typedef {{name: string, color: string, dash: number[], width: number, points: boolean, sign?: string, hollow?: boolean, further?: boolean, partial?: boolean, number?: number}} Look */
/** @typedef {Look & {x: Stored, y: Stored, low?: Stored, high?: Stored, of?: number}} StoredLine */
/** @typedef {{kind: string, title: string, at?: number[], alternative: string, [key: string]: any}} Panel */
/** @typedef {{x: Stored, numbers: {name: string, y: Stored}[]}} StoredStates */

/** @typedef {{panels: Panel[], states: StoredStates | null}} Described */

/** @param {string} id @returns {HTMLElement} */
function element(id) {
  const node = document.getElementById(id);
  if (!node) throw new Error(`the page has no element ${id}`);
  return node;
}

/**
 * Return the numbers of an array, all axes in one row.
 * @param {Stored} stored
 * @returns {Promise<Numbers>}
 */
function numbers(stored) {
  return (stored.numbers ??= inflate(stored));
}

/** @param {Stored} stored @returns {Promise<Numbers>} */
async function inflate({ packed: encoded, type }) {
  const text = atob(encoded);
  const packed = new Uint8Array(text.length);
  for (let k = 0; k < text.length; k++) packed[k] = text.charCodeAt(k);
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  const planes = new Uint8Array(await new Response(stream).arrayBuffer());
  const width = Number(type.slice(1));
  if (width === 1) return planes;
  const count = planes.length / width;
  const bytes = new Uint8Array(planes.length);
  for (let plane = 0; plane < width; plane++) {
    for (let k = 0, from = plane * count; k < count; k++)
      bytes[k * width + plane] = planes[from + k];
  }
  return width === 4 ? new Float32Array(bytes.buffer) : new Float64Array(bytes.buffer);
}

/** A number of few digits; a whole number as it is, unless it is very large. @param {number} value @param {number} [digits] */
function short(value, digits = 3) {
  if (!Number.isFinite(value)) return Number.isNaN(value) ? "–" : String(value);
  const size = Math.abs(value);
  if (Number.isInteger(value) && size < 1e6) return String(value);
  if (size >= 1e6 || size < 1e-4)
    return value
      .toExponential(digits - 1)
      .replace(/\.?0+e/, "e")
      .replace("e+", "e");
  return String(Number(value.toPrecision(digits)));
}

/** A number as tables of the program write it. @param {number} value */
function exact(value) {
  return short(value, 6);
}

/** Numbers beside the ticks of an axis, of so many digits that they differ. @param {number[]} values */
function labels(values) {
  let texts = values.map((value) => short(value));
  for (let digits = 4; digits < 16 && new Set(texts).size < values.length; digits++)
    texts = values.map((value) => short(value, digits));
  return texts;
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

/** @typedef {{x: Numbers, y: Numbers}} Curve */
