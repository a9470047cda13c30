// @ts-check
"use strict";
// What happens when a page opens: its parts are set up, and one slider moves all that belongs to a run.

/** Draws that must be done again when the colours change. @type {Set<() => void>} */
const redraws = new Set();

/** Places of a slider over iterations. */
const STEPS = 1000;

/** The states of one run: a slider, and all that it moves. */
class States {
  /** @param {HTMLElement} bar @param {Numbers} x @param {{name: string, values: Numbers}[]} numbers */
  constructor(bar, x, numbers) {
    this.x = x;
    this.numbers = numbers;
    /** @type {HTMLTableCellElement[]} */
    this.cells = [...document.querySelectorAll("table.state td")].map(
      (cell) => /** @type {HTMLTableCellElement} */ (cell),
    );
    /** @type {((k: number) => void)[]} */
    this.movers = [];
    this.now = x.length - 1;
    /** @type {number | undefined} */
    this.playing = undefined;
    /** Whether places of the slider are iterations, not states. */
    this.even = false;
    const button = (
      /** @type {string} */ text,
      /** @type {string} */ said,
      /** @type {() => void} */ act,
    ) => make("button", { type: "button", "aria-label": said, title: said, onclick: act }, text);
    this.button = button("play", "play", () => this.play());
    this.slider = /** @type {HTMLInputElement} */ (
      make("input", {
        type: "range",
        max: x.length - 1,
        "aria-label": bar.ariaLabel,
        autocomplete: "off",
        oninput: () => this.goTo(this.state(Number(this.slider.value))),
      })
    );
    this.output = /** @type {HTMLOutputElement} */ (make("output", {}));
    bar.replaceChildren(
      button("|<", "first state", () => this.goTo(0)),
      button("<", "previous state", () => this.goTo(this.now - 1)),
      this.button,
      button(">", "next state", () => this.goTo(this.now + 1)),
      button(">|", "last state", () => this.goTo(x.length - 1)),
      this.slider,
      this.output,
      ticker("by iteration", false, (on) => {
        this.even = on;
        this.slider.max = String(on ? STEPS : x.length - 1);
        this.goTo(this.now);
      }),
    );
  }

  /** The state at a place of the slider. @param {number} place */
  state(place) {
    const [first, last] = [this.x[0], this.x[this.x.length - 1]];
    return this.even ? nearest(this.x, first + (place / STEPS) * (last - first)) : place;
  }

  /** Show the k-th state in everything. @param {number} k */
  goTo(k) {
    this.now = Math.max(0, Math.min(this.x.length - 1, k));
    const [first, last] = [this.x[0], this.x[this.x.length - 1]];
    if (!this.even || this.state(Number(this.slider.value)) !== this.now)
      this.slider.value = String(
        this.even ? (STEPS * (this.x[this.now] - first)) / (last - first) : this.now,
      );
    const loss = this.numbers.find(({ name }) => name === "loss");
    const text = `iteration ${this.x[this.now]}${loss ? `, loss ${exact(loss.values[this.now])}` : ""}`;
    this.slider.setAttribute("aria-valuetext", text);
    this.output.value = text;
    [this.x, ...this.numbers.map(({ values }) => values)].forEach((values, i) => {
      if (this.cells[i])
        this.cells[i].textContent = i ? exact(values[this.now]) : String(values[this.now]);
    });
    for (const move of this.movers) move(this.now);
  }

  /** Go on by itself, or stop; from the end it begins again. */
  play() {
    if (this.playing !== undefined) {
      clearInterval(this.playing);
      this.playing = undefined;
    } else {
      if (this.now === this.x.length - 1) this.goTo(0);
      const pause = Math.max(30, Math.min(200, 12000 / this.x.length));
      this.playing = window.setInterval(() => {
        if (this.now === this.x.length - 1) return this.play();
        if (this.even)
          this.slider.value = String(Number(this.slider.value) + (STEPS * pause) / 12000);
        this.goTo(this.even ? this.state(Number(this.slider.value)) : this.now + 1);
      }, pause);
    }
    const name = this.playing === undefined ? "play" : "pause";
    for (const attribute of ["aria-label", "title"]) this.button.setAttribute(attribute, name);
    this.button.textContent = name;
  }
}

/** The charts of panels, which later numbers of a live run are sent to. @type {Map<HTMLElement, Chart>} */
const charts = new Map();

/** @param {Panel} panel @param {HTMLElement} place @param {States | null} states */
async function setUp(panel, place, states) {
  if (panel.kind === "sweep") {
    redraws.add(await setUpSweep(place, panel));
    return;
  }
  if (panel.kind === "chart") {
    const lines = await Promise.all(
      panel.lines.map(async (/** @type {StoredLine} */ line) => {
        const curve = async (/** @type {Stored | undefined} */ y) =>
          y && { x: await numbers(line.x), y: await numbers(y) };
        return {
          ...line,
          name: line.name + (line.of ? ` (extremes of ${line.of} points)` : ""),
          curve: await curve(line.y),
          low: await curve(line.low),
          high: await curve(line.high),
        };
      }),
    );
    const former = charts.get(place);
    if (former) return former.update(panel, /** @type {Line[]} */ (lines));
    const chart = new Chart(place, panel, /** @type {Line[]} */ (lines));
    charts.set(place, chart);
    redraws.add(() => chart.plot?.redraw(false));
    if (!states || panel.label !== "iteration") return;
    states.movers.push((k) => chart.move(states.x[k]));
    chart.onpoint = (x) => states.goTo(nearest(states.x, x));
    return;
  }
  const draw = await setUpScene(place, panel);
  let last = -1;
  states?.movers.push((k) => {
    /** The last of the picture's states that is not after the slider's. */
    const drawn = panel.at ? Math.max(0, firstFrom(Float64Array.from(panel.at), k + 0.5) - 1) : k;
    if (drawn !== last) draw((last = drawn));
  });
  redraws.add(() => draw(last));
}

function recolor() {
  colors.clear();
  for (const redraw of redraws) redraw();
}

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", recolor);

/** @param {Described} described */
async function open(described) {
  document.documentElement.classList.add("drawing");
  const bar = /** @type {HTMLElement | null} */ (document.querySelector(".time"));
  let states = null;
  if (bar && described.states) {
    const { x, numbers: named } = described.states;
    const values = await Promise.all(named.map(({ y }) => numbers(y)));
    states = new States(
      bar,
      await numbers(x),
      named.map(({ name }, k) => ({ name, values: values[k] })),
    );
  }
  await Promise.all(
    described.panels.map((panel, k) => setUp(panel, element(`panel-${k}`), states)),
  );
  states?.goTo(states.now);
  document.documentElement.dataset.ready = performance.now().toFixed(0);
}

addEventListener("keydown", ({ key }) => {
  if (key !== "Escape") return;
  for (const menu of document.querySelectorAll(".menu[open]")) menu.removeAttribute("open");
});
addEventListener("message", ({ data }) => open(data));
open(JSON.parse(element("described").textContent || ""));
