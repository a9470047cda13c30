// @ts-check
"use strict";
// The jobs of a sweep: any column over any other, coloured by a third; the numbers of a job, and a table of them.

/** @typedef {{name: string, words: string[] | null, log: boolean, linear: boolean, setting: boolean}} About of a setting, its places on an axis, and where its cells begin and end */
/** @typedef {About & {at: Stored, places?: Stored, edges?: Stored}} StoredColumn */
/** @typedef {About & {values: Numbers, places: Numbers, edges: Numbers}} Column */

/** Rows of the table that are shown at once. */
const MOST_ROWS = 1000;
/** Pixels of the scale of colours. */
const SCALE = 240;
/** Numbers whose largest is so many times the smallest positive one have a logarithmic colour. */
const LOG_RANGE = 1000;

class Sweep {
  /** @param {HTMLElement} place @param {Panel} panel @param {Column[]} columns @param {Numbers} shades */
  constructor(place, panel, columns, shades) {
    this.panel = panel;
    this.shades = shades;
    this.columns = columns;
    /** The columns along x, along y, and in colour. @type {{[what: string]: Column}} */
    this.chosen = {};
    /** The chosen job. */
    this.job = -1;
    /** Medians of cells, where there are cells. @type {Cells | null} */
    this.cells = null;
    const settings = make("div", { class: "settings" });
    for (const [what, name] of Object.entries(panel.chosen)) {
      const choice = /** @type {HTMLSelectElement} */ (
        make(
          "select",
          { autocomplete: "off", "aria-label": what },
          ...columns.map((column) => make("option", {}, column.name)),
        )
      );
      choice.selectedIndex = columns.findIndex((column) => column.name === name);
      this.chosen[what] = columns[choice.selectedIndex];
      choice.addEventListener("change", () => {
        this.chosen[what] = columns[choice.selectedIndex];
        this.draw();
      });
      settings.append(make("label", {}, `${what} `, choice));
    }
    place.append(settings);
    this.drawing = new Drawing(place, panel.alternative, 0.5);
    this.scale = /** @type {HTMLCanvasElement} */ (
      make("canvas", { width: SCALE + 60, height: 30, class: "scale", "aria-hidden": "true" })
    );
    this.legend = make("span", {});
    this.readout = make(
      "p",
      { class: "readout", "aria-live": "polite" },
      "A place of the picture, or a row of the table, chooses a job.",
    );
    this.head = make(
      "tr",
      {},
      ...columns.map(({ name }, c) =>
        make(
          "th",
          { scope: "col" },
          make("button", { type: "button", onclick: () => this.sort(c) }, name),
        ),
      ),
    );
    this.rows = make("tbody", {});
    /** Jobs in the order of the table. @type {number[]} */
    this.order = [];
    this.filter = /** @type {HTMLInputElement} */ (
      make("input", {
        type: "search",
        placeholder: "words or numbers of a row",
        autocomplete: "off",
        oninput: () => this.list(),
      })
    );
    this.listed = make("span", { "aria-live": "polite" });
    place.append(
      make("div", { class: "legend" }, this.scale, this.legend),
      this.readout,
      make("p", { class: "legend" }, make("label", {}, "filter ", this.filter), this.listed),
      make(
        "div",
        { class: "scroll jobs", tabindex: "0", role: "group", "aria-label": "jobs" },
        make("table", {}, make("thead", {}, this.head), this.rows),
      ),
    );
    this.drawing.place.addEventListener("mousemove", (event) => this.say(this.under(event)));
    this.drawing.place.addEventListener("click", (event) => this.choose(this.under(event)));
    this.draw();
    this.sort(0);
  }

  draw() {
    const { drawing, panel } = this;
    const { x, y, colour } = this.chosen;
    drawing.log = { x: x.log, y: y.log };
    /** Whether there are cells, of all jobs with the same settings; else each job is a dot. */
    this.celled = x.setting && y.setting && x !== y;
    this.cells = this.celled ? medians(x, y, colour) : null;
    const shown = this.cells?.middles ?? colour.values;
    let [low, high] = reach(shown, false);
    const [least, positive] = [low, reach(shown, true)];
    const wide = positive[1] > LOG_RANGE * positive[0];
    const log =
      !colour.words && !colour.linear && low >= 0 && ((colour.setting && colour.log) || wide);
    if (log) [low, high] = positive;
    const share = (/** @type {number} */ v) =>
      log ? Math.log(Math.max(v, low) / low) / Math.log(high / low) : (v - low) / (high - low);
    const paint = () => {
      const { ctx } = drawing;
      for (let j = 0; j < panel.jobs; j++) {
        const [x0, x1, y0, y1] = this.frame(j);
        if (!Number.isFinite(x0 + y0)) continue;
        const finite = Number.isFinite(shown[j]);
        ctx.fillStyle = finite
          ? this.shade(high > low ? share(shown[j]) : 0.5)
          : color(this.celled ? "faint" : "unsigned");
        ctx.fillRect(x0, y0, x1 - x0, y1 - y0);
        if (!this.cells || this.cells.counts[j] === this.cells.jobs[j]) continue;
        drawing.line(x0, y0, x1, y1);
        if (!finite) drawing.line(x0, y1, x1, y0);
      }
      this.mark();
    };
    const look = { x: this.axis("x", 18), y: this.axis("y", 9) };
    drawing.show([...this.limits(x), ...this.limits(y)], paint, look);
    const ctx = /** @type {CanvasRenderingContext2D} */ (this.scale.getContext("2d"));
    ctx.clearRect(0, 0, this.scale.width, this.scale.height);
    for (let k = 0; k < SCALE; k++) {
      ctx.fillStyle = this.shade(k / (SCALE - 1));
      ctx.fillRect(30 + k, 0, 1, 10);
    }
    ctx.fillStyle = color("theory");
    [ctx.font, ctx.textAlign] = ["11px sans-serif", "center"];
    const places = high > low && !colour.words ? (log ? powers : ticks)(low, high, SCALE / 50) : [];
    labels(places).forEach((text, k) => {
      const at = 30 + share(places[k]) * (SCALE - 1);
      ctx.fillRect(at, 10, 1, 4);
      ctx.fillText(text, at, 26);
    });
    const [from, to] = [low, high].map((v) => colour.words?.[v] ?? short(v));
    const below = log && least <= 0 ? "; darkest: 0" : "";
    const cells = this.celled
      ? "; median over all other settings and seeds; stroke: some jobs have no number; cross: fewer than half have one"
      : "";
    const said = `${from} to ${to}${log ? " (log)" : ""}${below}${cells}`;
    this.legend.replaceChildren(`${colour.name}: ${said}`);
  }

  /** A colour of the scale. @param {number} share from 0 to 1 */
  shade(share) {
    const k = 3 * Math.round(255 * Math.min(share, 1));
    return `rgb(${this.shades.slice(k, k + 3)})`;
  }

  /** The label of an axis, ticks at the values of a setting, and words of `most` characters. @param {"x" | "y"} side @param {number} most */
  axis(side, most) {
    const { name, words, setting, places } = this.chosen[side];
    const room =
      side === "y"
        ? 20
        : words
          ? 8 + 7 * Math.max(...words.map((word) => Math.min(word.length, most)))
          : 50;
    return {
      label: name,
      ...(setting
        ? { splits: (/** @type {uPlot} */ u) => spaced(places, (v) => u.valToPos(v, side), room) }
        : {}),
      ...(words
        ? {
            values: (/** @type {any} */ _, /** @type {number[]} */ at) =>
              at.map((v) => (words[v] ?? "").slice(0, most)),
          }
        : {}),
    };
  }

  /** The ends of an axis; around cells half of their size. @param {Column} column @returns {number[]} */
  limits(column) {
    const { places, edges } = column;
    if (this.celled && places.length > 1) return [edges[0], edges[places.length]];
    return padded(...reach(column.values, column.log), column.log);
  }

  /** Where the cell or the dot of a job begins and ends, along x and along y. @param {number} j */
  frame(j) {
    const half = this.panel.jobs > 2000 ? 1.5 : 3;
    return /** @type {("x" | "y")[]} */ (["x", "y"]).flatMap((axis) => {
      const { values, places, edges } = this.chosen[axis];
      const pixel = (/** @type {number} */ v) =>
        axis === "x" ? this.drawing.px(v) : this.drawing.py(v);
      if (!this.celled) return [pixel(values[j]) - half, pixel(values[j]) + half];
      const k = nearest(places, values[j]);
      return [k, k + 1].map((end) => Math.round(pixel(edges[end]))).sort((a, b) => a - b);
    });
  }

  /** Frame the cell or the dot of the chosen job. */
  mark() {
    if (this.job < 0) return;
    const { ctx } = this.drawing;
    const [x0, x1, y0, y1] = this.frame(this.job);
    const room = this.celled ? -2 : 4;
    for (const [name, width] of /** @type {[string, number][]} */ ([
      ["ground", 5],
      ["theory", 2],
    ])) {
      [ctx.strokeStyle, ctx.lineWidth] = [color(name), width];
      ctx.strokeRect(x0 - room, y0 - room, x1 - x0 + 2 * room, y1 - y0 + 2 * room);
    }
    ctx.lineWidth = 1;
  }

  /** The job that is nearest to the mouse, -1 if none is near. @param {MouseEvent} event */
  under(event) {
    const { left, top } = this.drawing.ctx.canvas.getBoundingClientRect();
    let [best, job] = [this.celled ? Infinity : 40 ** 2, -1];
    for (let j = 0; j < this.panel.jobs; j++) {
      const [x0, x1, y0, y1] = this.frame(j);
      const far =
        ((x0 + x1) / 2 - (event.clientX - left)) ** 2 +
        ((y0 + y1) / 2 - (event.clientY - top)) ** 2;
      if (far < best) [best, job] = [far, j];
    }
    return job;
  }

  /** What stands in a column of a job. @param {Column} column @param {number} j */
  text({ values, words }, j) {
    return words ? words[values[j]] : exact(values[j]);
  }

  /** Say the numbers of a job. @param {number} j */
  say(j) {
    if (j < 0) return;
    const of = this.cells
      ? [
          `median of its cell ${exact(this.cells.middles[j])}, ${this.cells.counts[j]} of ${this.cells.jobs[j]} jobs have a number`,
        ]
      : [];
    this.readout.replaceChildren(
      [...this.columns.map((column) => `${column.name} ${this.text(column, j)}`), ...of].join(", "),
    );
  }

  /** Choose a job: its numbers, its place in the picture, its row. @param {number} j */
  choose(j) {
    if (j < 0) return;
    this.job = j;
    this.say(j);
    this.readout.append(
      "; a page of its own: ",
      make("code", {}, `dyn page ${this.panel.name}:${this.text(this.columns[0], j)}`),
    );
    for (const row of this.rows.children)
      row.setAttribute("aria-current", String(row.getAttribute("data-job") === String(j)));
    this.draw();
  }

  /** Put the rows of the table into the order of a column, or turn it round; what is no number comes last. @param {number} c */
  sort(c) {
    const { values } = this.columns[c];
    const up = this.head.children[c].getAttribute("aria-sort") !== "ascending";
    [...this.head.children].forEach((cell, k) =>
      cell.setAttribute("aria-sort", k !== c ? "none" : up ? "ascending" : "descending"),
    );
    this.order = Array.from(values, (_, j) => j).sort(
      (i, j) =>
        Number(Number.isNaN(values[i])) - Number(Number.isNaN(values[j])) ||
        (up ? 1 : -1) * (values[i] - values[j]) ||
        i - j,
    );
    this.list();
  }

  /** List the jobs whose rows have all words of the filter. */
  list() {
    const words = this.filter.value.split(/\s+/).filter(Boolean);
    const found = this.order.filter((j) => {
      const cells = this.columns.map((column) => this.text(column, j));
      return words.every((word) => cells.some((cell) => matches(cell, word)));
    });
    const cut = found.length > MOST_ROWS ? `the first ${MOST_ROWS} of ` : "";
    const of = found.length < this.panel.jobs ? ` of ${this.panel.jobs}` : "";
    this.listed.textContent = `${cut}${found.length}${of} jobs`;
    this.rows.replaceChildren(
      ...found.slice(0, MOST_ROWS).map((j) => {
        const row = make(
          "tr",
          {
            tabindex: "0",
            "data-job": j,
            "aria-current": j === this.job,
            onclick: () => this.choose(j),
          },
          ...this.columns.map((column) => make("td", {}, this.text(column, j))),
        );
        row.addEventListener("keydown", (event) => event.key === "Enter" && this.choose(j));
        return row;
      }),
    );
  }
}

/** Whether a cell is a number, or has a word. @param {string} cell @param {string} word */
function matches(cell, word) {
  return Number.isNaN(Number(word)) ? cell.includes(word) : Number(cell) === Number(word);
}

/** @param {Numbers} values @param {boolean} log @returns {[number, number]} */
function reach(values, log) {
  let [low, high] = [Infinity, -Infinity];
  for (const value of values) {
    if (Number.isFinite(value) && (!log || value > 0))
      [low, high] = [Math.min(low, value), Math.max(high, value)];
  }
  return high >= low ? [low, high] : [1, 2];
}

/** @typedef {{middles: Float64Array, counts: Float64Array, jobs: Float64Array}} Cells */

/**
 * For each job, the median of a column over all jobs of its cell, NaN where fewer than half have a number; how many have one,
 * and how many there are.
 * @param {Column} x @param {Column} y @param {Column} colour @returns {Cells}
 */
function medians(x, y, colour) {
  /** @type {Map<string, number[]>} */
  const cells = new Map();
  const keys = Array.from(x.values, (v, j) => `${v} ${y.values[j]}`);
  for (const key of keys) cells.set(key, []);
  keys.forEach((key, j) => cells.get(key)?.push(colour.values[j]));
  const found = new Map(
    [...cells].map(([key, all]) => {
      const sorted = all.filter(Number.isFinite).sort((a, b) => a - b);
      const middle = (sorted[(sorted.length - 1) >> 1] + sorted[sorted.length >> 1]) / 2;
      return [key, [2 * sorted.length < all.length ? NaN : middle, sorted.length, all.length]];
    }),
  );
  const [middles, counts, jobs] = [0, 1, 2].map((k) =>
    Float64Array.from(keys, (key) => (found.get(key) ?? [])[k]),
  );
  return { middles, counts, jobs };
}

/** Places from the first on that are so many pixels apart at least. @param {Numbers} places @param {(v: number) => number} pixel @param {number} room */
function spaced(places, pixel, room) {
  /** @type {number[]} */
  const kept = [];
  for (const v of places)
    if (!kept.length || Math.abs(pixel(v) - pixel(kept[kept.length - 1])) >= room) kept.push(v);
  return kept;
}

/** @param {HTMLElement} place @param {Panel} panel @returns {Promise<() => void>} */
async function setUpSweep(place, panel) {
  const columns = await Promise.all(
    panel.columns.map(async (/** @type {StoredColumn} */ { at, places, edges, ...about }) => ({
      ...about,
      values: await numbers(at),
      places: places ? await numbers(places) : new Float64Array(),
      edges: edges ? await numbers(edges) : new Float64Array(),
    })),
  );
  const sweep = new Sweep(place, panel, columns, await numbers(panel.shades));
  return () => sweep.draw();
}
