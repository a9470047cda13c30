// @ts-check
"use strict";
// The jobs of a sweep: any column over any other, coloured by a third; the numbers and the curve of one job.

/** @typedef {{name: string, at: Stored, words?: string[] | null, log?: boolean, setting: boolean}} StoredColumn */
/** @typedef {{name: string, values: Numbers, words: string[] | null, log: boolean, setting: boolean}} Column */

const PER_PAGE = 20;

/** @param {Numbers} values @param {boolean} log @returns {[number, number]} */
function reach(values, log) {
  let [low, high] = [Infinity, -Infinity];
  for (const value of values) {
    if (Number.isFinite(value) && (!log || value > 0)) [low, high] = [Math.min(low, value), Math.max(high, value)];
  }
  return high >= low ? [low, high] : [1, 2];
}

class Sweep {
  /** @param {HTMLElement} place @param {Panel} panel @param {Column[]} columns @param {{[name: string]: string[]}} texts */
  constructor(place, panel, columns, texts) {
    this.panel = panel;
    this.columns = columns;
    this.texts = texts;
    this.chosen = { x: panel.x, y: panel.y, color: panel.color };
    this.job = -1;
    this.first = 0;
    /** Rows of the table, in its order. @type {number[]} */
    this.rowsShown = Array.from({ length: panel.jobs }, (_, j) => j);
    /** @type {{by: number, up: boolean}} */
    this.sorted = { by: 0, up: true };
    this.wanted = "";
    const settings = make("div", { class: "settings" });
    /** @type {("x" | "y" | "color")[]} */ (["x", "y", "color"]).forEach((what) => {
      const names = columns.map(({ name }) => make("option", { value: name, ...(name === panel[what] ? { selected: "" } : {}) }, name));
      const choice = /** @type {HTMLSelectElement} */ (make("select", { autocomplete: "off", "aria-label": what === "color" ? "colour" : what }, ...names));
      choice.addEventListener("change", () => ((this.chosen[what] = choice.value), this.draw()));
      settings.append(make("label", {}, `${what === "color" ? "colour" : what} `, choice));
      choice.addEventListener("change", () => (log.checked = this.column(this.chosen[what]).log));
      const box = ticker("log", this.column(panel[what]).log, (on) => {
        this.column(this.chosen[what]).log = on && !this.column(this.chosen[what]).words;
        this.draw();
      });
      const log = /** @type {HTMLInputElement} */ (box.querySelector("input"));
      settings.append(box);
    });
    place.append(settings);
    this.drawing = new Drawing(place, panel.alternative, 0.5);
    this.drawing.onresize = () => this.draw();
    const bar = make("div", { class: "settings" });
    this.scale = /** @type {HTMLCanvasElement} */ (make("canvas", { width: 128, height: 10, class: "scale", "aria-hidden": "true" }));
    this.legend = make("span", {});
    bar.append(this.scale, this.legend);
    this.readout = make("p", { class: "readout", "aria-live": "polite" }, "\u00a0");
    this.curve = make("div", {});
    const names = Object.keys(panel.curves ?? {});
    this.measure = /** @type {HTMLSelectElement} */ (make("select", { autocomplete: "off" }, ...names.map((name) => make("option", {}, name))));
    this.measure.addEventListener("change", () => this.trace());
    const curves = make("div", { class: "settings" }, make("label", {}, "curve of the chosen job: ", this.measure));
    curves.hidden = !names.length;
    const filter = /** @type {HTMLInputElement} */ (make("input", { type: "search", autocomplete: "off", placeholder: "words, or seed>2 status=complete" }));
    filter.addEventListener("input", () => this.filter(filter.value));
    const found = make("div", { class: "settings" }, make("label", {}, "find jobs ", filter));
    this.rows = make("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": "jobs" });
    this.pager = make("span", {});
    const turn = (/** @type {number} */ by) => () => {
      this.first = Math.max(0, Math.min(Math.floor((this.rowsShown.length - 1) / PER_PAGE) * PER_PAGE, this.first + by * PER_PAGE));
      this.tabulate();
    };
    const pages = make("div", { class: "settings" }, make("button", { type: "button", onclick: turn(-1) }, "jobs before"), this.pager, make("button", { type: "button", onclick: turn(1) }, "jobs after"));
    place.append(bar, this.readout, curves, this.curve, found, this.rows, pages);
    const { canvas } = this.drawing;
    canvas.addEventListener("mousemove", (event) => this.point(this.under(event)));
    canvas.addEventListener("click", (event) => {
      const job = this.under(event);
      if (job >= 0) this.show(job);
    });
    this.draw();
    this.tabulate();
    this.trace();
  }

  /** @param {string} name @returns {Column} */
  column(name) {
    return this.columns.find((column) => column.name === name) ?? this.columns[0];
  }

  draw() {
    const [x, y, shade] = [this.column(this.chosen.x), this.column(this.chosen.y), this.column(this.chosen.color)];
    const { drawing } = this;
    Object.assign(drawing.look, { x: x.name, y: y.name });
    drawing.log = { x: x.log, y: y.log };
    const cells = x.setting && y.setting && x !== y;
    this.celled = cells;
    const [xs, ys] = [this.places(x), this.places(y)];
    drawing.begin([...this.limits(x, cells ? xs : null), ...this.limits(y, cells ? ys : null)]);
    const middles = cells ? this.middles(x, y, shade, xs, ys) : shade.values;
    const [low, high] = reach(middles, shade.log);
    const share = (/** @type {number} */ v) => (shade.log ? Math.log(Math.max(v, low) / low) / Math.log(high / low) : (v - low) / (high - low));
    const fill = (/** @type {number} */ v) => (Number.isFinite(v) ? `rgb(${viridis(high > low ? share(v) : 0.5)})` : "");
    drawing.inside(() => {
      if (cells) this.cells(x, y, xs, ys, middles, fill);
      else this.dots(x, y, shade, fill);
      this.mark(x, y, cells ? xs : null, ys);
    });
    const wide = x.words ? Math.max(...x.words.map((word) => drawing.ctx.measureText(word.slice(0, 18)).width)) + 8 : 50;
    const at = { x: x.setting ? spaced(xs, (v) => drawing.px(v), wide) : undefined, y: y.setting ? spaced(ys, (v) => drawing.py(v), 20) : undefined };
    drawing.axes(undefined, undefined, { x: x.words, y: y.words }, at);
    const ctx = /** @type {CanvasRenderingContext2D} */ (this.scale.getContext("2d"));
    for (let k = 0; k < 128; k++) {
      ctx.fillStyle = `rgb(${viridis(k / 127)})`;
      ctx.fillRect(k, 0, 1, 10);
    }
    const [from, to] = [low, high].map((v) => shade.words?.[v] ?? short(v));
    const said = `${from} to ${to}${shade.log ? " (log)" : ""}${cells ? ", median over all other settings and seeds; crosses: no number" : ""}`;
    this.legend.replaceChildren(`${shade.name}: ${said}`);
  }

  /** The median of a column in every cell, NaN where there is no number. @param {Column} x @param {Column} y @param {Column} shade @param {Float64Array} xs @param {Float64Array} ys */
  middles(x, y, shade, xs, ys) {
    /** @type {number[][]} */
    const found = Array.from({ length: xs.length * ys.length }, () => []);
    for (let j = 0; j < this.panel.jobs; j++) {
      if (Number.isFinite(shade.values[j])) found[nearest(xs, x.values[j]) * ys.length + nearest(ys, y.values[j])].push(shade.values[j]);
    }
    return Float64Array.from(found, median);
  }

  /** Frame the cell of the chosen job, or its dot. @param {Column} x @param {Column} y @param {Float64Array | null} xs @param {Float64Array} ys */
  mark(x, y, xs, ys) {
    if (this.job < 0) return;
    const { ctx } = this.drawing;
    const [across, up] = [x.values[this.job], y.values[this.job]];
    let [x0, x1, y0, y1] = [this.drawing.px(across) - 6, this.drawing.px(across) + 6, this.drawing.py(up) - 6, this.drawing.py(up) + 6];
    if (xs) {
      const [i, j] = [nearest(xs, across), nearest(ys, up)];
      [x0, x1, y1, y0] = [this.drawing.px(edge(xs, i, x.log)), this.drawing.px(edge(xs, i + 1, x.log)), this.drawing.py(edge(ys, j, y.log)), this.drawing.py(edge(ys, j + 1, y.log))];
    }
    for (const [name, width] of /** @type {[string, number][]} */ ([["ground", 5], ["theory", 2]])) {
      [ctx.strokeStyle, ctx.lineWidth] = [color(name), width];
      ctx.strokeRect(x0 + 2, y0 + 2, x1 - x0 - 4, y1 - y0 - 4);
    }
    ctx.lineWidth = 1;
  }

  /** The different values of a column, in order. @param {Column} column */
  places(column) {
    return Float64Array.from(new Set([...column.values].filter((v) => Number.isFinite(v) && (!column.log || v > 0)))).sort();
  }

  /** The ends of an axis; around cells half of their size. @param {Column} column @param {Float64Array | null} places @returns {number[]} */
  limits(column, places) {
    if (places && places.length > 1) return [edge(places, 0, column.log), edge(places, places.length, column.log)];
    const [low, high] = reach(column.values, column.log);
    if (column.log) return low < high ? [low * (low / high) ** 0.04, high * (high / low) ** 0.04] : [low / 2, high * 2];
    const pad = 0.04 * (high - low) || 0.5;
    return [low - pad, high + pad];
  }

  /** @param {Column} x @param {Column} y @param {Float64Array} xs @param {Float64Array} ys @param {Numbers} middles @param {(v: number) => string} fill */
  cells(x, y, xs, ys, middles, fill) {
    const { ctx } = this.drawing;
    const across = Array.from({ length: xs.length + 1 }, (_, k) => Math.round(this.drawing.px(edge(xs, k, x.log))));
    const up = Array.from({ length: ys.length + 1 }, (_, k) => Math.round(this.drawing.py(edge(ys, k, y.log))));
    ctx.strokeStyle = color("unsigned");
    middles.forEach((middle, at) => {
      const [i, j] = [Math.floor(at / ys.length), at % ys.length];
      ctx.fillStyle = fill(middle) || color("faint");
      ctx.fillRect(across[i], up[j + 1], across[i + 1] - across[i], up[j] - up[j + 1]);
      if (Number.isFinite(middle)) return;
      this.drawing.line(across[i], up[j], across[i + 1], up[j + 1]);
      this.drawing.line(across[i], up[j + 1], across[i + 1], up[j]);
    });
  }

  /** @param {Column} x @param {Column} y @param {Column} shade @param {(v: number) => string} fill */
  dots(x, y, shade, fill) {
    const { drawing } = this;
    const { ctx } = drawing;
    const size = this.panel.jobs > 2000 ? 3 : 6;
    for (let j = 0; j < this.panel.jobs; j++) {
      const [px, py] = [drawing.px(x.values[j]), drawing.py(y.values[j])];
      if (!Number.isFinite(px + py)) continue;
      ctx.fillStyle = fill(shade.values[j]) || color("unsigned");
      ctx.fillRect(px - size / 2, py - size / 2, size, size);
    }
  }

  /** The job that is nearest to the mouse, -1 if none is near. @param {MouseEvent} event */
  under(event) {
    const [x, y] = [this.column(this.chosen.x), this.column(this.chosen.y)];
    let [best, job] = [this.celled ? Infinity : 40 ** 2, -1];
    for (let j = 0; j < this.panel.jobs; j++) {
      const [dx, dy] = [this.drawing.px(x.values[j]) - event.offsetX, this.drawing.py(y.values[j]) - event.offsetY];
      if (dx * dx + dy * dy < best) [best, job] = [dx * dx + dy * dy, j];
    }
    return job;
  }

  /** Say the numbers of a job. @param {number} job */
  point(job) {
    if (job < 0) return;
    const parts = this.columns.map(({ name, values, words }) => `${name} ${words ? words[values[job]] : short(values[job])}`);
    const message = this.texts.message[job] ? `: ${this.texts.message[job]}` : "";
    this.readout.textContent = `${parts.join(", ")}, ${this.texts.status[job]}${message}`;
  }

  /** Choose a job: its numbers, its row, its curve. @param {number} job */
  show(job) {
    this.job = job;
    this.point(job);
    this.first = Math.floor(Math.max(0, this.rowsShown.indexOf(job)) / PER_PAGE) * PER_PAGE;
    this.tabulate();
    this.draw();
    return this.trace();
  }

  /** Draw the curve of the chosen job. */
  async trace() {
    const { panel } = this;
    const [stored, j] = [panel.curves?.[this.measure.value], this.job];
    if (j < 0 || !stored) {
      this.curve.replaceChildren(make("p", {}, panel.without ?? (stored ? "A row of the table, or a place of the picture, chooses a job." : "no curves were recorded")));
      return;
    }
    const [x, y, counts] = await Promise.all([stored.x, stored.y, stored.counts].map(numbers));
    const [start, place, job] = [Array.from(counts).slice(0, j).reduce((a, b) => a + b, 0), make("div", {}), short(this.columns[0].values[j])];
    const settings = this.columns.filter(({ setting }) => setting).map(({ name, values, words }) => `${name.split(".").pop()} ${words ? words[values[j]] : short(values[j])}`);
    this.curve.replaceChildren(make("p", {}, `Job ${job}, in ${this.texts.path[j]}; a page of its own: `, make("code", {}, `dyn page ${panel.name}:${job}`)), place);
    this.chart = undefined;
    if (!counts[j]) {
      place.append("It recorded no such curve.");
      return;
    }
    const curve = { x: x.slice(start, start + counts[j]), y: y.slice(start, start + counts[j]) };
    const chart = { kind: "chart", log: { x: false, y: curve.y.every((value) => !(value < 0)) }, label: "iteration", alternative: `${this.measure.value} of job ${job} over iterations.` };
    this.chart = new Chart(place, chart, [{ name: settings.join(", "), color: "series-0", dash: [], width: 1.3, points: false, curve }]);
  }

  /** What stands in a cell of the table. @param {number} c @param {number} j */
  cell(c, j) {
    if (c >= this.columns.length) return this.texts[["status", "message"][c - this.columns.length]][j];
    const { values, words } = this.columns[c];
    return words ? words[values[j]] : short(values[j]);
  }

  /** Keep the jobs that have all that is wanted: `name<number`, `name=text`, or words in any cell. @param {string} wanted */
  filter(wanted) {
    const names = [...this.columns.map(({ name }) => name), "status", "message"];
    const tests = wanted.trim().split(/\s+/).filter(Boolean).map((word) => {
      const [, name, sign, text] = /^([^<>=]+)([<>]=?|=)(.+)$/.exec(word) ?? [];
      const c = name === undefined ? -1 : names.findIndex((one) => one === name || one.endsWith(`.${name}`));
      if (c < 0) return (/** @type {number} */ j) => names.some((_, k) => this.cell(k, j).toLowerCase().includes(word.toLowerCase()));
      const [number, numeric] = [Number(text), c < this.columns.length && !this.columns[c].words];
      if (sign === "=") return (/** @type {number} */ j) => this.cell(c, j) === text || (numeric && this.columns[c].values[j] === number);
      return (/** @type {number} */ j) => {
        const value = numeric ? this.columns[c].values[j] : NaN;
        return (sign[0] === "<" ? value < number : value > number) || (sign.length > 1 && value === number);
      };
    });
    this.rowsShown = Array.from({ length: this.panel.jobs }, (_, j) => j).filter((j) => tests.every((test) => test(j)));
    this.sort(this.sorted.by, this.sorted.up);
  }

  /** Put the rows into the order of a column; what is no number comes last. @param {number} by @param {boolean} up */
  sort(by, up) {
    this.sorted = { by, up };
    const column = this.columns[by];
    const sign = up ? 1 : -1;
    const compare = column && !column.words
      ? (/** @type {number} */ i, /** @type {number} */ j) => {
        const [a, b] = [column.values[i], column.values[j]];
        return Number.isNaN(a) || Number.isNaN(b) ? Number(Number.isNaN(a)) - Number(Number.isNaN(b)) : sign * (a - b);
      }
      : (/** @type {number} */ i, /** @type {number} */ j) => sign * this.cell(by, i).localeCompare(this.cell(by, j));
    this.rowsShown.sort((i, j) => compare(i, j) || i - j);
    this.first = 0;
    this.tabulate();
  }

  /** Write a part of the table. */
  tabulate() {
    const rows = this.rowsShown;
    const [first, end] = [this.first, Math.min(rows.length, this.first + PER_PAGE)];
    const head = make("tr", {}, ...[...this.columns.map(({ name }) => name), "status", "message"].map((name, c) => {
      const order = this.sorted.by === c ? (this.sorted.up ? "ascending" : "descending") : "none";
      const button = make("button", { type: "button", class: "quiet", onclick: () => this.sort(c, this.sorted.by !== c || !this.sorted.up) }, `${name}${{ ascending: " \u25b2", descending: " \u25bc", none: "" }[order]}`);
      return make("th", { scope: "col", "aria-sort": order }, button);
    }));
    const body = make("tbody", {});
    for (const j of rows.slice(first, end)) {
      const cells = Array.from({ length: this.columns.length + 2 }, (_, c) => make(c ? "td" : "th", c ? {} : { scope: "row" }, this.cell(c, j)));
      const row = make("tr", { class: "job", tabindex: "0", onclick: () => this.show(j) }, ...cells);
      row.addEventListener("keydown", (event) => event.key === "Enter" && this.show(j));
      if (j === this.job) row.setAttribute("aria-current", "true");
      body.append(row);
    }
    this.rows.replaceChildren(make("table", {}, make("thead", {}, head), body));
    const of = rows.length < this.panel.jobs ? ` that are found, of ${this.panel.jobs}` : "";
    this.pager.textContent = rows.length ? `${first + 1} to ${end} of ${rows.length}${of}` : "no job is found";
  }
}

/** The middle of some numbers, which are put in order; NaN of none. @param {number[]} values */
function median(values) {
  values.sort((a, b) => a - b);
  return (values[(values.length - 1) >> 1] + values[values.length >> 1]) / 2;
}

/** Places from the first on that are so many pixels apart at least. @param {Float64Array} places @param {(v: number) => number} pixel @param {number} room */
function spaced(places, pixel, room) {
  /** @type {number[]} */
  const kept = [];
  for (const v of places) if (!kept.length || Math.abs(pixel(v) - pixel(kept[kept.length - 1])) >= room) kept.push(v);
  return kept;
}

/** Where the k-th cell begins: half-way to its neighbour. @param {Float64Array} places @param {number} k @param {boolean} log */
function edge(places, k, log) {
  const [f, g] = log ? [Math.log, Math.exp] : [(/** @type {number} */ v) => v, (/** @type {number} */ v) => v];
  const n = places.length;
  if (n < 2) return places[0] + k - 0.5;
  if (k === 0) return g(1.5 * f(places[0]) - 0.5 * f(places[1]));
  if (k === n) return g(1.5 * f(places[n - 1]) - 0.5 * f(places[n - 2]));
  return g((f(places[k - 1]) + f(places[k])) / 2);
}

/** @param {HTMLElement} place @param {Panel} panel @returns {Promise<() => void>} */
async function setUpSweep(place, panel) {
  const columns = await Promise.all(panel.columns.map(async (/** @type {StoredColumn} */ column) => (
    { name: column.name, values: await numbers(column.at), words: column.words ?? null, log: !!column.log, setting: column.setting })));
  /** @type {{[name: string]: string[]}} */
  const texts = {};
  for (const name of ["status", "path", "message"]) texts[name] = new TextDecoder().decode(await numbers(panel[name])).split("\n");
  const sweep = new Sweep(place, panel, columns, texts);
  return () => {
    sweep.draw();
    sweep.chart?.redraw();
  };
}
