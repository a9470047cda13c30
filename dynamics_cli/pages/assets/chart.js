// @ts-check
"use strict";
// Curves over training: linear and log axes, zoom, exact values under the cursor, a mark where the slider is.

/** @type {Map<string, string>} */
const colors = new Map();

/** A colour of the style sheet; `colors` is emptied when it changes. @param {string} name */
function color(name) {
  let value = colors.get(name);
  if (!value)
    colors.set(
      name,
      (value = getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim()),
    );
  return value;
}

/** @param {string} name @param {{[key: string]: any}} attributes @param {...(string | Node)} children @returns {HTMLElement} */
function make(name, attributes, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key === "class") made.className = value;
    else if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else made.setAttribute(key, value);
  }
  made.append(...children);
  return made;
}

/** A box to tick with its label. @param {string} text @param {boolean} ticked @param {(ticked: boolean) => void} then */
function ticker(text, ticked, then) {
  const box = /** @type {HTMLInputElement} */ (
    make("input", { type: "checkbox", autocomplete: "off" })
  );
  box.checked = ticked;
  box.addEventListener("change", () => then(box.checked));
  return make("label", {}, box, text);
}

/** Call back when an element has another width, on paper too. @param {HTMLElement} element @param {() => void} then */
function onWidth(element, then) {
  let width = element.clientWidth;
  const look = () => {
    if (Math.abs(element.clientWidth - width) <= 1) return;
    width = element.clientWidth;
    then();
  };
  new ResizeObserver(look).observe(element);
  matchMedia("print").addEventListener("change", look);
}

/** Let a browser save a file. @param {string} name @param {Blob} contents */
function save(name, contents) {
  const link = /** @type {HTMLAnchorElement} */ (
    make("a", { download: name, href: URL.createObjectURL(contents) })
  );
  link.click();
  URL.revokeObjectURL(link.href);
}

/** @typedef {Look & {curve: Curve, low?: Curve, high?: Curve}} Line */

/** Where a curve has gaps, in pixels: four at least, since a dense curve would be joined across. @param {uPlot} u @param {number} series @param {number} from @param {number} to */
function gapsOf(u, series, from, to) {
  const [xs, ys] = [u.data[0], u.data[series]];
  const found = [];
  for (let i = from, last = from; i <= to; i++) {
    if (ys[i] === null) {
      let next = i + 1;
      while (next < to && typeof ys[next] !== "number") next++;
      const [a, b] = [last, next].map((k) => Math.round(u.valToPos(xs[k], "x", true)));
      found.push(b - a < 4 ? [a - 2, b + 2] : [a, b]);
      i = next - 1;
    } else if (ys[i] !== undefined) last = i;
  }
  return found;
}

/** Curves whose values are said. */
const READ = 8;

/** The name of a curve among others of one look. @param {Line} line */
function nameOf({ name, number }) {
  return [name, number].filter(Boolean).join(" ") || "curve";
}

class Chart {
  /** @param {HTMLElement} place @param {Panel} panel @param {Line[]} lines */
  constructor(place, panel, lines) {
    this.panel = panel;
    this.lines = lines;
    this.log = { ...panel.log };
    this.hidden = new Set();
    /** Every series: lines, and the edges of their bands. @type {{line: Line, k: number, curve: Curve, edge: boolean}[]} */
    this.drawn = [];
    this.at = NaN;
    const name = panel.title
      .trim()
      .toLowerCase()
      .replace(/[^a-z0-9]+/g, "_");
    const button = (/** @type {string} */ text, /** @type {() => void} */ act) =>
      make("button", { type: "button", onclick: act }, text);
    const menu = make(
      "details",
      { class: "menu" },
      make("summary", { "aria-label": "more" }, "\u22ef"),
      make(
        "div",
        { class: "settings" },
        button("zoom in", () => this.zoom(0.5)),
        button("zoom out", () => this.zoom(2)),
        button("all", () => this.zoom(Infinity)),
        button("CSV", () => save(`${name}.csv`, new Blob([this.csv()], { type: "text/csv" }))),
        button("PNG", () => this.picture().toBlob((blob) => blob && save(`${name}.png`, blob))),
      ),
    );
    const settings = make(
      "div",
      { class: "settings" },
      ticker("log x", this.log.x, (on) => this.scale("x", on)),
      ticker("log y", this.log.y, (on) => this.scale("y", on)),
      menu,
    );
    this.drawing = make("div", { class: "chart", role: "img", "aria-label": panel.alternative });
    this.readout = make("p", { class: "readout" }, "\u00a0");
    const legend = make("div", { class: "legend" });
    lines.forEach((line, k) => {
      if (!line.name || line.further) return; // further curves of one look stand and fall with the first
      let end = k + 1;
      while (lines[end]?.further) end++;
      const label = ticker([line.sign, line.name].filter(Boolean).join(" "), true, (on) => this.show(k, end, on));
      const [drawn] = line.dash;
      const swatch = make("span", {
        class: `swatch${drawn ? (drawn > 2 ? " dash" : " dots") : ""}`,
      });
      swatch.style.color = `var(--${line.color})`;
      label.prepend(swatch);
      legend.append(label);
    });
    const marks = new Map(
      (panel.marks ?? []).map((/** @type {any[]} */ [, k, words]) => [k, words]),
    );
    for (const [k, words] of marks) if (k) legend.append(make("span", {}, `${k}: ${words}`));
    place.append(settings, this.drawing, this.readout, legend);
    this.mark = make("div", { class: "mark" });
    this.build();
    onWidth(this.drawing, () => this.plot?.setSize(this.size()));
    /** Told the x of a click. @type {(x: number) => void} */
    this.onpoint = () => {};
  }

  size() {
    const width = Math.max(200, this.drawing.clientWidth);
    return { width, height: Math.max(170, Math.min(240, width * 0.55)) };
  }

  build() {
    this.plot?.destroy();
    const grid = { stroke: () => color("faint"), width: 1 };
    /** @type {Map<number, string>} */
    const named = new Map(this.panel.ticks ?? []);
    const names = named.size
      ? {
          values: (/** @type {any} */ _, /** @type {number[]} */ at) =>
            at.map((v) => named.get(v) ?? ""),
          splits: () => [...named.keys()],
        }
      : {};
    this.drawn = this.lines.flatMap((line, k) => [
      { line, k, curve: line.curve, edge: false },
      ...(line.low && line.high
        ? [line.high, line.low].map((curve) => ({ line, k, curve, edge: true }))
        : []),
    ]);
    const columns = /** @type {any[]} */ (
      this.drawn.map(({ line, k, curve, edge }) => ({
        label: line.name,
        stroke: () => color(line.color),
        width: edge ? 0 : line.width + 0.2,
        dash: line.dash,
        show: !this.hidden.has(k),
        gaps: gapsOf,
        points: {
          show: !line.sign && (line.points || curve.x.length < 3),
          size: 6,
          fill: () => (line.partial || line.hollow ? color("ground") : color(line.color)),
        },
        ...(line.points || curve.x.length < 3 ? { paths: () => null } : {}),
      }))
    );
    const bands = this.drawn.flatMap(({ line, edge }, at) =>
      edge && this.drawn[at + 1]?.edge && this.drawn[at + 1].line === line
        ? [{ series: [at + 1, at + 2], fill: () => `rgba(${rgb(color(line.color))},0.2)` }]
        : [],
    );
    const options = /** @type {any} */ ({
      ...this.size(),
      legend: { show: false },
      cursor: { drag: { dist: 4 }, points: { show: false } },
      scales: {
        x: {
          time: false,
          distr: this.log.x ? 3 : 1,
          range: (
            /** @type {any} */ _,
            /** @type {number | null} */ from,
            /** @type {number} */ to,
          ) => (from === null ? [1, 10] : [from, to]),
        },
        y: {
          distr: this.log.y ? 3 : 1,
          clamp: (/** @type {any} */ _, /** @type {number} */ __, /** @type {number} */ low) => low,
          range: (
            /** @type {any} */ _,
            /** @type {number | null} */ low,
            /** @type {number | null} */ high,
          ) => this.heights(low, high),
        },
      },
      axes: [
        { ...axis("x", this.log, 80), grid, label: this.panel.label, size: 22, ...names },
        { ...axis("y", this.log, 34), grid, size: roomOf },
      ],
      series: [{}, ...columns],
      bands,
      hooks: {
        setCursor: [(/** @type {uPlot} */ u) => this.read(u)],
        drawAxes: [(/** @type {uPlot} */ u) => this.beside(u)],
      },
    });
    this.plot = new uPlot(options, this.reduced(), this.drawing);
    this.plot.over.append(this.mark);
    this.plot.over.addEventListener(
      "click",
      () => this.pointed !== undefined && this.onpoint(this.pointed),
    );
  }

  /**
   * The curves as uPlot takes them: every x, and values that are null in gaps, undefined where another curve has its x.
   * What a log axis cannot show is at its lower edge.
   */
  reduced() {
    const seen = (/** @type {number} */ x) => !this.log.x || x > 0;
    const curves = this.drawn.map(({ curve: { x, y } }) => [
      Array.from(x).filter(seen),
      Array.from(y, (value) => (Number.isFinite(value) ? value : null)).filter((_, i) =>
        seen(x[i]),
      ),
    ]);
    const reach = (this.panel.reach_x ?? []).filter(seen);
    return /** @type {any} */ (uPlot).join([...curves, [reach, reach]]).slice(0, -1);
  }

  /** The ends of the y axis, around all that is shown. @param {(number | null)[]} shown @returns {[number, number]} */
  heights(...shown) {
    const least =
      this.log.y && shown.some((value) => value !== null && value <= 0) ? [this.panel.least] : [];
    const values = /** @type {number[]} */ (
      [...shown, ...least, ...(this.panel.reach ?? [])].filter(
        (value) => value !== null && (!this.log.y || value > 0),
      )
    );
    const [low, high] = [Math.min(...values), Math.max(...values)];
    if (!(high >= low)) return this.log.y ? [0.1, 1] : [0, 1];
    return padded(low, high, this.log.y);
  }

  /** Draw other numbers. @param {Panel} panel @param {Line[]} lines */
  update(panel, lines) {
    for (const side of /** @type {("x" | "y")[]} */ (["x", "y"]))
      if (panel.log[side] !== this.panel.log[side]) this.log[side] = panel.log[side];
    Object.assign(this, { panel, lines });
    this.build();
  }

  /** @param {"x" | "y"} axis @param {boolean} on */
  scale(axis, on) {
    this.log[axis] = on;
    this.build();
  }

  /** Show or hide lines. @param {number} from @param {number} to @param {boolean} on */
  show(from, to, on) {
    this.drawn.forEach(({ k }, at) => {
      if (k < from || k >= to) return;
      this.hidden[on ? "delete" : "add"](k);
      this.plot?.setSeries(at + 1, { show: on });
    });
  }

  /** Zoom about the slider's state, or else the middle. @param {number} factor */
  zoom(factor) {
    const u = /** @type {uPlot} */ (this.plot);
    const width = u.over.clientWidth;
    const at = u.valToPos(this.at, "x");
    const middle = at > 0 && at < width ? at : width / 2;
    const [from, to] = [0, width].map((end) => u.posToVal(middle + (end - middle) * factor, "x"));
    const xs = u.data[0];
    const [min, max] = [Math.max(from, xs[0]), Math.min(to, xs[xs.length - 1])];
    if (min < max && (min > xs[0] || max < xs[xs.length - 1])) u.setScale("x", { min, max });
    else u.setData(u.data);
  }

  /** @param {uPlot} u */
  read(u) {
    const left = u.cursor.left ?? -1;
    if (left < 0) return;
    const x = u.posToVal(left, "x");
    const found = this.lines.flatMap((line, at) => {
      const { curve } = line;
      if (this.hidden.has(at) || line.partial) return [];
      const k = nearest(curve.x, x);
      const next = this.lines[at + 1];
      const value = Number.isNaN(curve.y[k]) && next?.partial ? next.curve.y[k] : curve.y[k];
      const far = Math.abs(u.valToPos(value, "y") - (u.cursor.top ?? 0));
      const said = `${nameOf(line)} ${exact(value)} at ${exact(curve.x[k])}`;
      return [{ far: Number.isFinite(far) ? far : Infinity, said }];
    });
    found.sort((a, b) => (a.far === b.far ? 0 : a.far - b.far)); // the nearest curve comes first
    const parts = found.slice(0, READ).map(({ said }) => said);
    this.readout.textContent = parts.join("; ");
    this.pointed = x;
  }

  /** Draw what stands beside the curves: plateaus, and levels such as 2 / lr. @param {uPlot} u */
  beside(u) {
    this.move(this.at); // the room of the labels is known only now
    const { ctx } = u;
    const { left, top, width, height } = u.bbox;
    ctx.save();
    ctx.beginPath();
    ctx.rect(left, top, width, height);
    ctx.clip();
    ctx.strokeStyle = ctx.fillStyle = color("unsigned");
    ctx.lineWidth = devicePixelRatio;
    ctx.font = `${11 * devicePixelRatio}px sans-serif`;
    ctx.textAlign = "left";
    // from the top; a level just below another has its label beside the other's, which no line crosses
    const levels = [...(this.panel.levels ?? [])].sort((a, b) => b[1] - a[1]);
    let [before, line, end] = [-Infinity, 0, left];
    for (const [name, value, role] of levels) {
      ctx.strokeStyle = ctx.fillStyle = role === "theory" ? color("unsigned") : color(role);
      const y = u.valToPos(value, "y", true);
      ctx.setLineDash([8, 5]);
      ctx.strokeRect(left - 2, y, width + 4, 0);
      if (y - before > 16 * devicePixelRatio)
        [line, end] = [y < top + 16 * devicePixelRatio ? y + 14 * devicePixelRatio : y - 5, left];
      ctx.fillText(name, end + 6, line);
      end += 6 + ctx.measureText(name).width;
      before = y;
    }
    ctx.setLineDash([]);
    ctx.fillStyle = ctx.strokeStyle = color("unsigned");
    for (const [at, number] of this.panel.marks ?? []) {
      const x = u.valToPos(at, "x", true);
      ctx.strokeRect(x, top - 2, 0, height + 4);
      const room = x > left + 0.97 * width ? -12 : 4;
      ctx.fillText(number ?? "", x + room * devicePixelRatio, top + 13 * devicePixelRatio);
    }
    ctx.textAlign = "center";
    for (const { line, k, edge } of this.drawn) {
      if (!line.sign || line.further || edge || this.hidden.has(k)) continue;
      ctx.fillStyle = color(line.color);
      let before = -Infinity;
      line.curve.x.forEach((/** @type {number} */ at, /** @type {number} */ i) => {
        const [x, y] = [u.valToPos(at, "x", true), u.valToPos(line.curve.y[i], "y", true)];
        if (!line.points && !(x > before + 50 * devicePixelRatio)) return;
        before = x;
        ctx.fillText(line.sign, x, y + 4 * devicePixelRatio);
      });
    }
    ctx.textAlign = "left";
    ctx.fillStyle = color("unsigned");
    ctx.strokeStyle = color("highlight");
    ctx.lineWidth = 6 * devicePixelRatio;
    for (const [value, first, last] of this.panel.plateaus ?? []) {
      const [a, b, y] = [
        u.valToPos(Math.max(first, u.scales.x.min ?? first), "x", true),
        u.valToPos(last, "x", true),
        u.valToPos(value, "y", true),
      ];
      ctx.globalAlpha = 0.55;
      ctx.strokeRect(a, y, b - a, 0);
      ctx.globalAlpha = 1;
      if (b - a > 60)
        ctx.fillText(short(value), a + 4 * devicePixelRatio, y + 15 * devicePixelRatio);
    }
    ctx.restore();
  }

  /** Put the mark at an iteration. @param {number} x */
  move(x) {
    this.at = x;
    const { min = NaN, max = NaN } = this.plot?.scales.x ?? {};
    this.mark.hidden = !(x >= min && x <= max);
    if (!this.mark.hidden && this.plot)
      this.mark.style.transform = `translateX(${this.plot.valToPos(x, "x")}px)`;
  }

  /** All values of the curves that are shown, as they were recorded. */
  csv() {
    const quoted = (/** @type {string} */ text) =>
      /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
    const rows = this.lines.flatMap((line, k) =>
      this.hidden.has(k)
        ? []
        : Array.from(line.curve.x, (x, i) => `${quoted(nameOf(line))},${x},${line.curve.y[i]}`),
    );
    return [`curve,${quoted(this.panel.label)},value`, ...rows, ""].join("\n");
  }

  /** The chart as it is drawn, on the ground of the page, with its title, the page and its legend. */
  picture() {
    const drawn = /** @type {HTMLCanvasElement} */ (this.drawing.querySelector("canvas"));
    const shown = this.lines.filter((line, k) => line.name && !line.further && !this.hidden.has(k));
    const row = 18 * devicePixelRatio;
    /** @type {[string, string][]} A colour, and words that stand in a row of their own. */
    const words = [
      [color("theory"), this.panel.title],
      [color("unsigned"), document.title],
      .../** @type {[string, string][]} */ (
        shown.map(({ name, color: role, dash }) => [
          color(role),
          `${dash.length ? "┅" : "━"} ${name}`,
        ])
      ),
    ];
    const above = row * (words.length + 0.5);
    const canvas = /** @type {HTMLCanvasElement} */ (
      make("canvas", { width: drawn.width, height: drawn.height + above })
    );
    const ctx = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
    ctx.fillStyle = color("ground");
    ctx.fillRect(0, 0, canvas.width, canvas.height);
    ctx.font = `${0.7 * row}px sans-serif`;
    words.forEach(([fill, text], k) => {
      ctx.fillStyle = fill;
      ctx.fillText(text, row / 2, row * (k + 1), canvas.width - row);
    });
    ctx.drawImage(drawn, 0, above);
    return canvas;
  }
}
