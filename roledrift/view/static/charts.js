"use strict";
// Curves over steps, drawn by uPlot: hover, zoom (drag; double-click goes back), log scale.

const Charts = (() => {
  const sync = uPlot.sync("steps");
  const HEIGHT = 230;
  let pointed = null; // the chart under the pointer: the others show where it is, without a box

  const scheme = matchMedia("(prefers-color-scheme: dark)");
  const inks = new Map();
  scheme.addEventListener("change", () => inks.clear());

  function ink(name) {
    if (!inks.has(name)) {
      inks.set(name, getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim());
    }
    return inks.get(name);
  }

  function number(value) {
    if (value === null || value === undefined) return "–";
    const size = Math.abs(value);
    if (size !== 0 && (size < 1e-3 || size >= 1e6)) return value.toExponential(2).replace(/\.?0+e/, "e");
    return String(Number(value.toPrecision(4)));
  }

  // Exponential moving average without the pull to zero of its start, as TensorBoard has it.
  function smooth(values, weight) {
    let sum = 0;
    let count = 0;
    return values.map((value) => {
      if (value === null) return null;
      sum = sum * weight + (1 - weight) * value;
      count += 1;
      return sum / (1 - weight ** count);
    });
  }

  // One table of all lines. Lines of one run share their steps: only runs have to be joined.
  function together(lines) {
    const tables = [];
    for (const line of lines) {
      const last = tables[tables.length - 1];
      if (last && last[0] === line.steps) last.push(line.values);
      else tables.push([line.steps, line.values]);
    }
    if (!tables.length) return [[], []];
    return tables.length === 1 ? tables[0] : uPlot.join(tables);
  }

  // Powers of ten, at most about six of them; within one decade, its ends and two between.
  function decades(_plot, _axis, min, max) {
    const low = Math.floor(Math.log10(min));
    const high = Math.ceil(Math.log10(max));
    if (high - low <= 1) return [1, 2, 5, 10].map((part) => part * 10 ** low);
    const every = Math.ceil((high - low) / 6);
    const found = [];
    for (let power = low; power <= high; power += every) found.push(10 ** power);
    return found;
  }

  const hex = (share) => Math.round(share * 255).toString(16).padStart(2, "0");

  class Chart {
    constructor(parent, statistic, { remove, pick }) {
      this.statistic = statistic;
      this.pick = pick;
      this.log = null;
      this.plot = null;
      this.shape = "";
      this.box = document.createElement("figure");
      this.box.className = "chart";
      const head = document.createElement("figcaption");
      const title = document.createElement("b");
      title.textContent = statistic.title;
      const unit = document.createElement("span");
      unit.textContent = unit.title = statistic.unit;
      this.logs = document.createElement("button");
      this.logs.type = "button";
      this.logs.textContent = "log";
      this.logs.title = "Switch the log scale of this chart";
      this.logs.addEventListener("click", () => {
        this.log = !this.isLog;
        this.draw();
      });
      const gone = document.createElement("button");
      gone.type = "button";
      gone.textContent = "×";
      gone.setAttribute("aria-label", `Remove the chart ${statistic.title}`);
      gone.addEventListener("click", () => remove(this));
      head.append(title, unit, this.logs, gone);
      this.body = document.createElement("div");
      this.body.addEventListener("mousemove", () => { pointed = this; }, true);
      this.note = document.createElement("p");
      this.note.className = "quiet";
      this.box.append(head, this.body, this.note);
      parent.append(this.box);
      this.resized = new ResizeObserver(() => {
        const width = this.body.clientWidth;
        if (this.plot && width > 0 && width !== this.plot.width) this.plot.setSize({ width, height: HEIGHT });
      });
      this.resized.observe(this.body);
    }

    show(lines, marks, { smoothing, logs }) {
      Object.assign(this, { lines, marks, smoothing, allLogs: logs });
      this.draw();
    }

    draw() {
      const wanted = this.log ?? (this.allLogs || this.statistic.log);
      const positive = this.lines.some((line) => line.values.some((value) => value > 0));
      this.isLog = wanted && positive;
      this.logs.setAttribute("aria-pressed", String(this.isLog));
      const shown = [];
      let hidden = 0;
      for (const line of this.lines) {
        const kept = this.isLog
          ? line.values.map((value) => (value > 0 ? value : ((hidden += value !== null), null)))
          : line.values;
        const raw = { ...line, values: kept, raw: this.smoothing > 0 };
        shown.push(raw);
        if (this.smoothing > 0) shown.push({ ...line, values: smooth(kept, this.smoothing), raw: false });
      }
      this.shown = shown;
      this.note.textContent = hidden ? `${hidden} values at or below 0 are not on the log scale.` : "";
      if (wanted && !positive && this.lines.length) this.note.textContent = "No value is above 0: no log scale.";
      const data = together(shown);
      const shape = JSON.stringify([
        this.isLog, ink("ink"), shown.map((line) => [line.label, line.color, line.dash, line.raw]),
      ]);
      if (shape === this.shape && this.plot) this.refill(data);
      else this.build(data, shape);
    }

    refill(data) {
      const { min, max } = this.plot.scales.x;
      const before = this.plot.data[0];
      const zoomed = before.length && (min > before[0] || max < before[before.length - 1]);
      this.plot.setData(data, !zoomed);
      if (zoomed) this.plot.setScale("x", { min, max });
    }

    build(data, shape) {
      const zoom = this.plot && this.plot.data[0].length ? { ...this.plot.scales.x } : null;
      const before = this.plot ? this.plot.data[0] : [];
      this.drop();
      this.shape = shape;
      const axis = { stroke: ink("soft"), grid: { stroke: ink("rule"), width: 1 }, ticks: { stroke: ink("rule"), width: 1 }, font: "12px system-ui, sans-serif" };
      const ticks = (_u, splits) => splits.map((value) => (value === null ? "" : number(value)));
      const options = {
        width: Math.max(this.body.clientWidth, 200),
        height: HEIGHT,
        legend: { show: false },
        scales: { x: { time: false }, y: this.isLog ? { distr: 3 } : {} },
        axes: [
          { ...axis, size: 30, space: 60, incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 50000, 100000, 1000000] },
          { ...axis, size: 64, values: ticks, ...(this.isLog ? { splits: decades } : {}) },
        ],
        cursor: {
          sync: { key: sync.key, scales: ["x", null] },
          drag: { x: true, y: false, dist: 6 },
          focus: { prox: 40 },
          points: { size: 6 },
        },
        series: [
          {},
          ...(this.shown.length ? this.shown : [{ label: "" }]).map((line) => ({
            label: line.label,
            stroke: line.raw ? `${line.color}${hex(0.25)}` : line.color,
            dash: line.raw ? undefined : line.dash,
            width: line.raw ? 1 : line.width || 1.8,
            spanGaps: true,
            points: { size: 4 },
          })),
        ],
        hooks: {
          draw: [(plot) => this.mark(plot)],
          setCursor: [(plot) => this.hover(plot)],
        },
      };
      this.plot = new uPlot(options, data, this.body);
      this.tip = document.createElement("div");
      this.tip.className = "tip";
      this.tip.hidden = true;
      this.body.append(this.tip);
      this.plot.over.addEventListener("click", () => this.clicked());
      if (zoom && before.length && (zoom.min > before[0] || zoom.max < before[before.length - 1])) {
        this.plot.setScale("x", { min: zoom.min, max: zoom.max });
      }
    }

    // Onsets of incidents, as lines with a word.
    mark(plot) {
      const { ctx, bbox } = plot;
      const rows = [];
      ctx.save();
      ctx.beginPath();
      ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
      ctx.clip();
      ctx.textAlign = "left";
      ctx.textBaseline = "alphabetic";
      ctx.font = `${11 * devicePixelRatio}px system-ui, sans-serif`;
      for (const one of this.marks) {
        const at = Math.round(plot.valToPos(one.step, "x", true));
        if (at < bbox.left || at > bbox.left + bbox.width) continue;
        ctx.strokeStyle = ctx.fillStyle = one.color;
        ctx.lineWidth = 1.5 * devicePixelRatio;
        ctx.setLineDash([4 * devicePixelRatio, 3 * devicePixelRatio]);
        ctx.beginPath();
        ctx.moveTo(at, bbox.top);
        ctx.lineTo(at, bbox.top + bbox.height);
        ctx.stroke();
        const wide = ctx.measureText(one.label).width;
        const gap = 4 * devicePixelRatio;
        const right = at + gap + wide <= bbox.left + bbox.width;
        const from = right ? at + gap : Math.max(bbox.left + gap, at - gap - wide);
        let row = 0;
        while (rows[row] !== undefined && rows[row].some(([a, b]) => from < b && from + wide > a)) row += 1;
        (rows[row] = rows[row] || []).push([from, from + wide]);
        const base = bbox.top + (12 + 13 * row) * devicePixelRatio;
        ctx.setLineDash([]);
        ctx.lineWidth = 4 * devicePixelRatio;
        ctx.strokeStyle = ink("page");
        ctx.strokeText(one.label, from, base);
        ctx.fillText(one.label, from, base);
      }
      ctx.restore();
    }

    hover(plot) {
      const { idx, left } = plot.cursor;
      if (pointed !== this || idx === null || idx === undefined || left < 0 || !this.shown.length) {
        this.tip.hidden = true;
        return;
      }
      const step = plot.data[0][idx];
      const rows = [];
      this.shown.forEach((line, at) => {
        let value = plot.data[at + 1][idx];
        for (let back = idx; value == null && back >= 0; back -= 1) value = plot.data[at + 1][back];
        if (!line.raw && value != null) rows.push({ line, value, raw: this.smoothing > 0 });
      });
      rows.sort((a, b) => b.value - a.value);
      this.tip.replaceChildren();
      const head = document.createElement("b");
      head.textContent = `step ${step}`;
      this.tip.append(head);
      for (const { line, value } of rows.slice(0, 14)) {
        const row = document.createElement("span");
        const dot = document.createElement("i");
        dot.style.background = line.color;
        const text = document.createElement("span");
        text.textContent = line.label;
        const shown = document.createElement("b");
        shown.textContent = number(value);
        row.append(dot, text, shown);
        this.tip.append(row);
      }
      this.tip.hidden = false;
      const right = left > plot.over.clientWidth / 2;
      const edge = plot.over.offsetLeft;
      this.tip.style.left = right ? "" : `${edge + left + 14}px`;
      this.tip.style.right = right ? `${this.body.clientWidth - edge - left + 14}px` : "";
    }

    clicked() {
      const { idx, top } = this.plot.cursor;
      if (idx === null || idx === undefined) return;
      let best = null;
      this.shown.forEach((line, at) => {
        const value = this.plot.data[at + 1][idx];
        if (value == null) return;
        const away = Math.abs(this.plot.valToPos(value, "y") - top);
        if (best === null || away < best.away) best = { away, line };
      });
      this.pick(this.plot.data[0][idx], best && best.line);
    }

    reset() {
      if (this.plot) this.plot.setData(this.plot.data, true);
    }

    drop() {
      if (this.plot) this.plot.destroy();
      if (this.tip) this.tip.remove();
      this.plot = null;
    }

    close() {
      this.drop();
      this.resized.disconnect();
      this.box.remove();
    }
  }

  return { Chart, ink, number };
})();
