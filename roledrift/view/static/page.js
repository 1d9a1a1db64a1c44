"use strict";
// The page: asks for the list every few seconds, and for the shown runs when they have changed.

(() => {
  const EVERY = 2000;
  const TONES = 6;
  const MOST_RUNS = 6;
  const CHARTS = 6;
  const USUAL = ["val_accuracy", "accuracy", "reward", "length", "entropy", "update.k3", "gradient_norm"];
  const DASHES = [undefined, [8, 3], [2, 3], [9, 3, 2, 3], [5, 2], [12, 3, 2, 2]];
  const EVERYBODY = "all roles";
  const $ = (id) => document.getElementById(id);
  const { make } = Texts;

  const state = {
    listing: { runs: [], problems: [] }, focus: "", chosen: [], hidden: new Set([EVERYBODY]),
    statistics: null, extra: new Set(), removed: new Set(), smoothing: 0, logs: false, slots: false,
  };
  const runs = new Map(); // key -> { doc, version, asked }
  const charts = new Map(); // statistic -> Chart

  const row = (key) => state.listing.runs.find((one) => one.key === key);
  const shownKeys = () => [...new Set([state.focus, ...state.chosen])].filter(Boolean);
  const named = (role) => (role === "*" ? EVERYBODY : role);

  function moodClass(word) {
    return ["failing", "input problem", "suspicious", "clean"].includes(word) ? word.replace(" ", "-") : "quiet";
  }

  function ago(seconds) {
    if (seconds < 90) return `${Math.max(0, Math.round(seconds))} s ago`;
    if (seconds < 5400) return `${Math.round(seconds / 60)} min ago`;
    return seconds < 172800 ? `${Math.round(seconds / 3600)} h ago` : `${Math.round(seconds / 86400)} days ago`;
  }

  function age(one) {
    if (one.state === "unreadable") return "";
    const step = one.last_step === null ? "no step yet" : `step ${one.last_step}`;
    if (Source.still || one.state !== "open" || one.time === null) return `${step}, ${one.state}`;
    return `${step}, ${one.state}, ${ago(Date.now() / 1000 - one.time)}`;
  }

  // ---- the list of runs

  function listRuns() {
    const wanted = $("filter").value.toLowerCase();
    const list = $("runs");
    const known = new Map([...list.children].map((item) => [item.dataset.key, item]));
    const items = state.listing.runs
      .filter((one) => `${one.name} ${one.run} ${one.workflow} ${one.outcome} ${one.finding}`.toLowerCase().includes(wanted))
      .map((one) => item(one, known.get(one.key)));
    // Only what has moved is moved, so that a focused button keeps the focus.
    items.forEach((element, at) => {
      if (list.children[at] !== element) list.insertBefore(element, list.children[at] || null);
    });
    while (list.children.length > items.length) list.lastChild.remove();
    $("problems").replaceChildren(...state.listing.problems.map((text) => make("li", text)));
    const count = state.listing.runs.length;
    $("folder").textContent = `${state.listing.folder || ""} · ${count} run${count === 1 ? "" : "s"}`;
  }

  function item(one, old) {
    const element = old || make("li", "");
    const signature = JSON.stringify([one, state.focus === one.key, state.chosen.includes(one.key), age(one)]);
    if (element.dataset.signature === signature) return element;
    element.dataset.signature = signature;
    element.dataset.key = one.key;
    if (!old) {
      const check = make("input", "");
      check.type = "checkbox";
      check.addEventListener("change", () => overlay(one.key, check.checked));
      const button = make("button", "");
      button.type = "button";
      button.addEventListener("click", () => focus(one.key));
      for (const name of ["badge", "name", "facts", "sentence"]) button.append(make("span", "", name));
      element.append(check, button);
    }
    const [check, button] = element.children;
    check.checked = state.focus === one.key || state.chosen.includes(one.key);
    check.disabled = state.focus === one.key;
    check.setAttribute("aria-label", `Overlay ${one.name}`);
    button.setAttribute("aria-current", String(state.focus === one.key));
    const [badge, name, facts, sentence] = button.children;
    badge.textContent = one.outcome || "…";
    badge.className = `badge ${moodClass(one.outcome)}`;
    name.textContent = one.name;
    facts.textContent = [one.workflow, age(one)].filter(Boolean).join(", ");
    sentence.textContent = one.sentence;
    return element;
  }

  function overlay(key, on) {
    state.chosen = state.chosen.filter((one) => one !== key);
    if (on) state.chosen = [...state.chosen, key].slice(-(MOST_RUNS - 1));
    listRuns();
    load();
  }

  function focus(key) {
    if (state.focus === key) return;
    state.focus = key;
    state.removed = new Set();
    history.replaceState(null, "", `#${key}`);
    Texts.none("", "");
    listRuns();
    draw();
    load();
  }

  // ---- documents of runs

  function wantedStatistics() {
    return [...new Set([...USUAL, ...state.extra])];
  }

  async function loadOne(key) {
    const one = row(key);
    const asked = `${wantedStatistics()} ${state.slots}`;
    const known = runs.get(key);
    if (!one || (known && known.version === one.version && known.asked === asked && !known.error)) return false;
    const from = known && known.doc && known.asked === asked ? known.doc.known : "";
    try {
      const doc = await Source.run(key, wantedStatistics(), state.slots, from);
      runs.set(key, { doc: joined(known && known.doc, doc), version: one.version, asked });
    } catch (error) {
      runs.set(key, { doc: known && known.doc, version: one.version, asked, error: error.message });
    }
    return true;
  }

  function joined(before, doc) {
    if (!before || !doc.from) return doc;
    const name = (one) => JSON.stringify([one.scope, one.role, one.slot, one.statistic]);
    const old = new Map(before.series.map((one) => [name(one), one.values]));
    const gap = new Array(doc.from).fill(null);
    const series = doc.series.map((one) => ({ ...one, values: (old.get(name(one)) || gap).slice(0, doc.from).concat(one.values) }));
    return { ...doc, series, steps: before.steps.slice(0, doc.from).concat(doc.steps) };
  }

  async function load() {
    const changed = await Promise.all(shownKeys().map(loadOne));
    if (changed.some(Boolean)) draw();
  }

  // ---- the stage

  function draw() {
    const one = row(state.focus);
    const found = runs.get(state.focus);
    headline(one, found);
    const doc = found && found.doc;
    $("controls").hidden = $("legend").hidden = !doc;
    $("incidents").hidden = !doc || !doc.incidents.length;
    if (!doc) {
      drawCharts([]);
      Texts.none(state.focus, "");
      return;
    }
    chooseCharts(doc);
    legend(doc);
    incidents(doc);
    if (doc.incidents.length) Texts.pairs(state.focus, doc.incidents[0]);
    else Texts.none(state.focus, doc.text_steps.length ? "Click a curve to read the texts of that step." : "This run keeps no texts.");
  }

  function headline(one, found) {
    const parts = [];
    if (!one) {
      const gone = state.focus ? "This run is no longer there." : state.listing.problems[0] || "No run is here yet. One appears when it starts.";
      parts.push(make("p", gone, "quiet"));
    } else {
      const head = make("p", "", "which");
      head.append(make("span", one.outcome || "not judged yet", `badge ${moodClass(one.outcome)}`), make("b", one.name),
        make("span", [one.workflow, one.routing, age(one)].filter(Boolean).join(", "), "facts"));
      parts.push(head, make("h1", one.sentence));
      const doc = found && found.doc;
      const worst = doc && doc.incidents[0];
      if (worst && worst.advice.length) {
        const plan = make("p", "", "advice");
        plan.append(make("b", "Do next: "), document.createTextNode(worst.advice[0]));
        if (worst.checkpoint && !worst.advice[0].includes(worst.checkpoint.path)) plan.append(document.createTextNode(` Last checkpoint from before: ${worst.checkpoint.path} (step ${worst.checkpoint.step}).`));
        parts.push(plan);
      }
      for (const text of [found && found.error, ...((doc && doc.problems) || [])].filter(Boolean)) parts.push(make("p", text, "trouble"));
      if (!found && one.outcome !== "unreadable") parts.push(make("p", "Reading its steps …", "quiet"));
    }
    const place = $("headline");
    const said = parts.map((part) => part.textContent).join("\n");
    if (place.dataset.said !== said) {
      place.dataset.said = said;
      place.replaceChildren(...parts);
    }
  }

  function chooseCharts(doc) {
    const there = new Set();
    for (const key of shownKeys()) {
      const its = runs.get(key);
      for (const one of (its && its.doc ? its.doc.series : [])) {
        if (one.values.some((value) => value !== null)) there.add(one.statistic);
      }
    }
    const cause = doc.incidents.flatMap((one) => one.statistics).find((name) => there.has(name));
    const usual = [cause, ...USUAL].filter((name) => name && there.has(name));
    const first = [...new Set(usual)].slice(0, CHARTS);
    const names = [...new Set([...first, ...state.extra])].filter((name) => there.has(name) && !state.removed.has(name));
    const known = new Map(doc.statistics.map((one) => [one.name, one]));
    const more = $("more");
    const free = doc.statistics.filter((one) => !names.includes(one.name));
    const signature = free.map((one) => one.name).join("\n");
    if (more.dataset.signature !== signature) {
      more.dataset.signature = signature;
      more.replaceChildren(new Option("…", ""), ...free.map((one) => new Option(one.title === one.name ? one.title : `${one.title} (${one.name})`, one.name)));
    }
    drawCharts(names.map((name) => known.get(name) || { name, title: name, unit: "", log: false }));
  }

  function linesOf(statistic) {
    const several = shownKeys().length > 1;
    return shownKeys().flatMap((key, place) => {
      const its = runs.get(key);
      if (!its || !its.doc) return [];
      const { doc } = its;
      const series = doc.series.filter((one) => one.statistic === statistic);
      const byRole = series.some((one) => one.scope === "role");
      return series.flatMap((one) => {
        const wide = one.scope === "step" || one.scope === EVERYBODY;
        if (wide && byRole && state.hidden.has(EVERYBODY)) return [];
        if (one.scope === "step" && series.some((other) => other.scope === EVERYBODY)) return [];
        if (!wide && state.hidden.has(one.role)) return [];
        const at = doc.roles.indexOf(one.role);
        const role = one.slot === null ? named(one.role) : `${one.role} slot ${one.slot}`;
        const tone = several ? place : at;
        const color = tone < 0 ? Charts.ink("ink") : Charts.ink(`tone-${tone % TONES}`);
        const label = several ? `${row(key) ? row(key).name : doc.name}, ${role}` : role;
        const order = several ? (wide ? 0 : at) : Math.max(at, 0);
        return [{ key, role: one.role, label, color, dash: DASHES[order % DASHES.length], width: one.slot === null ? 1.8 : 1, steps: doc.steps, values: one.values }];
      });
    });
  }

  function marks() {
    const several = shownKeys().length > 1;
    return shownKeys().flatMap((key, place) => {
      const its = runs.get(key);
      return ((its && its.doc && its.doc.incidents) || []).slice(0, 3).map((one) => ({
        step: one.onset,
        label: several ? `${row(key) ? row(key).name : ""} ${one.finding}` : `${named(one.role)}: ${one.finding}`,
        color: several ? Charts.ink(`tone-${place % TONES}`) : Charts.ink(moodClass(one.outcome) === "quiet" ? "soft" : moodClass(one.outcome)),
      }));
    });
  }

  function drawCharts(wanted) {
    for (const [name, chart] of charts) {
      if (!wanted.some((one) => one.name === name)) {
        chart.close();
        charts.delete(name);
      }
    }
    const at = marks();
    wanted.forEach((statistic, order) => {
      if (!charts.has(statistic.name)) {
        charts.set(statistic.name, new Charts.Chart($("charts"), statistic, { remove: removeChart, pick }));
      }
      const chart = charts.get(statistic.name);
      if ($("charts").children[order] !== chart.box) $("charts").insertBefore(chart.box, $("charts").children[order] || null);
      chart.show(linesOf(statistic.name), at, state);
    });
  }

  function removeChart(chart) {
    state.extra.delete(chart.statistic.name);
    state.removed.add(chart.statistic.name);
    draw();
  }

  function pick(step, line) {
    Texts.near(line ? line.key : state.focus, line ? line.role : "*", step);
  }

  function legend(doc) {
    const several = shownKeys().length > 1;
    const parts = [];
    if (several) {
      shownKeys().forEach((key, place) => {
        const one = make("span", "", "run");
        const dot = make("i", "");
        dot.style.background = Charts.ink(`tone-${place % TONES}`);
        one.append(dot, make("span", row(key) ? row(key).name : key));
        parts.push(one);
      });
    }
    [...doc.roles, EVERYBODY].forEach((role, at) => {
      const chip = make("button", "");
      chip.type = "button";
      chip.setAttribute("aria-pressed", String(!state.hidden.has(role)));
      chip.title = `Show or hide ${role}`;
      const dash = make("i", "", "dash");
      const canvas = make("canvas", "");
      stroke(canvas, several || at === doc.roles.length ? Charts.ink("ink") : Charts.ink(`tone-${at % TONES}`), DASHES[(at === doc.roles.length ? 0 : at) % DASHES.length]);
      dash.append(canvas);
      chip.append(dash, make("span", role));
      chip.addEventListener("click", () => {
        if (!state.hidden.delete(role)) state.hidden.add(role);
        draw();
      });
      parts.push(chip);
    });
    const signature = JSON.stringify([several, shownKeys(), doc.roles, [...state.hidden], Charts.ink("ink"), shownKeys().map((key) => row(key) && row(key).name)]);
    if ($("legend").dataset.signature !== signature) {
      $("legend").dataset.signature = signature;
      $("legend").replaceChildren(...parts);
    }
  }

  function stroke(canvas, color, dash) {
    canvas.width = 52;
    canvas.height = 8;
    const pen = canvas.getContext("2d");
    pen.strokeStyle = color;
    pen.lineWidth = 3.6;
    pen.setLineDash((dash || []).map((length) => length * 2));
    pen.beginPath();
    pen.moveTo(0, 4);
    pen.lineTo(52, 4);
    pen.stroke();
  }

  function incidents(doc) {
    const place = $("incidents").querySelector(".rows");
    const signature = JSON.stringify([state.focus, doc.incidents]);
    if (place.dataset.signature === signature) return;
    place.dataset.signature = signature;
    place.replaceChildren(...doc.incidents.map((one, at) => {
      const box = make("article", "");
      const head = make("h3", "");
      const since = `${named(one.role)}: ${one.finding}, since step ${one.onset}, reported at step ${one.reported}`;
      head.append(make("span", one.state === "closed" ? "closed" : one.outcome, `badge ${moodClass(one.outcome)}`), make("span", at ? one.sentence : since));
      box.append(head);
      const facts = make("dl", "");
      const lines = [["Evidence", one.evidence], ["Damage", one.damage],
        ...one.consequences.map((next) => [`step ${next.onset}`, `${next.text}.`]), ...one.advice.map((text, order) => [order ? "" : "Do next", text])];
      for (const [name, text] of lines.filter((line) => line[1])) facts.append(make("dt", name), make("dd", text));
      box.append(facts);
      return box;
    }));
  }

  // ---- the clock

  async function tick() {
    const begun = performance.now();
    try {
      const listing = await Source.list();
      state.listing = listing;
      if (!state.focus) {
        const asked = location.hash.slice(1);
        const first = listing.runs.find((one) => one.key === asked) || listing.runs[0];
        if (first) state.focus = first.key;
      }
      state.chosen = state.chosen.filter((key) => row(key));
      listRuns();
      if (!row(state.focus)) draw();
      await load();
      headline(row(state.focus), runs.get(state.focus));
      $("pulse").textContent = Source.still ? "A static copy." : "";
      $("pulse").className = "";
    } catch (error) {
      const silent = error instanceof TypeError;
      $("pulse").textContent = silent ? "The server does not answer. The page goes on when it does." : error.message;
      $("pulse").className = "trouble";
    }
    document.documentElement.dataset.updates = String(Number(document.documentElement.dataset.updates || 0) + 1);
    document.documentElement.dataset.tookMs = (performance.now() - begun).toFixed(1);
    if (!Source.still) setTimeout(tick, document.hidden ? EVERY * 5 : EVERY);
  }

  $("filter").addEventListener("input", listRuns);
  $("controls").addEventListener("submit", (event) => event.preventDefault());
  $("smoothing").addEventListener("input", () => {
    state.smoothing = Number($("smoothing").value);
    $("smoothed").textContent = state.smoothing ? state.smoothing.toFixed(2) : "off";
    draw();
  });
  $("logs").addEventListener("change", () => {
    state.logs = $("logs").checked;
    for (const chart of charts.values()) chart.log = null;
    draw();
  });
  $("slots").addEventListener("change", () => {
    state.slots = $("slots").checked;
    load();
  });
  $("more").addEventListener("change", () => {
    const name = $("more").value;
    if (!name) return;
    state.extra.add(name);
    state.removed.delete(name);
    $("more").value = "";
    draw();
    load();
  });
  $("reset").addEventListener("click", () => charts.forEach((chart) => chart.reset()));
  Texts.pane.addEventListener("back", draw);
  addEventListener("hashchange", () => {
    const key = location.hash.slice(1);
    if (row(key)) focus(key);
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  tick();
})();
