"use strict";
(() => {
  // Texts come from models: they only ever become textContent.
  const make = (tag, text = "", name = "") => {
    const one = document.createElement(tag);
    one.textContent = text;
    if (name) one.className = name;
    return one;
  };
  const press = (text, name, act, title = "") => {
    const one = make("button", text, name);
    one.type = "button";
    one.title = title;
    one.addEventListener("click", act);
    return one;
  };
  const clamp = (at, count) => Math.min(Math.max(at, 0), Math.max(count - 1, 0));
  const NAMES = ["key", "role", "slot", "turn", "step", "tokens", "finish", "reward", "advantage", "flags", "prompt", "episode", "group", "near", "away", "cut", "text"];
  document.documentElement.classList.add("scripted");

  const told = make("p", "", "told");
  told.setAttribute("role", "status");
  document.body.append(told);
  let silence = 0;
  const say = (text, stays = false) => {
    window.clearTimeout(silence);
    told.textContent = text;
    if (!stays) silence = window.setTimeout(() => { told.textContent = ""; }, 2500);
  };
  told.addEventListener("click", () => say(""));

  // Many texts come compressed, as one string in letters; the browser itself unpacks them.
  const unpack = async (letters) => {
    const raw = window.atob(letters);
    const bytes = new Uint8Array(raw.length);
    for (let at = 0; at < raw.length; at += 1) bytes[at] = raw.charCodeAt(at);
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return JSON.parse(await new Response(stream).text());
  };
  const number = (text) => (text === "–" ? NaN : Number(text.replace(/,/g, "").replace("∞", "Infinity")));
  const understand = (data) => {
    const prompts = data.prompts.map(([name, asked]) => ({ name, asked, low: `${name}\n${asked}`.toLowerCase() }));
    const texts = data.rows.map((row) => {
      const one = Object.fromEntries(NAMES.map((name, index) => [name, row[index]]));
      const prompt = prompts[one.prompt];
      return Object.assign(one, {
        tone: one.role % 6, role: data.roles[one.role], finish: data.finish[one.finish], flags: one.flags.map((flag) => data.flags[flag]),
        about: prompt, prompt: prompt.name, asked: prompt.asked, near: data.roles[one.near] || "", cut: data.cuts[one.cut],
        low: `${one.text}\n${one.episode}`.toLowerCase(), earned: number(one.reward), gained: number(one.advantage),
      });
    });
    const groups = new Map();
    for (const one of texts) {
      if (!groups.has(one.group)) groups.set(one.group, []);
      groups.get(one.group).push(one);
    }
    return { roles: data.roles, finish: data.finish, flags: data.flags, prompts, texts, groups };
  };

  const named = (one) => make("b", `${one.role}/${one.slot}`, `role tone-${one.tone}`);
  const known = (one) => {
    const parts = [`step ${one.step}`];
    if (one.turn) parts.push(`turn ${one.turn}`);
    if (one.reward !== "–") parts.push(`reward ${one.reward}`);
    if (one.advantage !== "–") parts.push(`advantage ${one.advantage}`);
    if (one.tokens) parts.push(`${one.tokens} tokens`);
    if (one.finish && one.finish !== "unknown") parts.push(`finish: ${one.finish}`);
    if (one.near && one.near !== one.role) parts.push(`reads like ${one.near} (+${one.away} nats per word)`);
    return ` ${parts.join(" · ")} `;
  };
  const flagged = (one) => one.flags.flatMap((flag) => [make("em", flag, "flag"), " "]);

  // Matches are marked with elements of our own making around pieces of text, never with markup.
  const marked = (text, wanted) => {
    const box = make("pre");
    box.dir = "ltr";
    const low = text.toLowerCase();
    let at = 0;
    for (let hit = 0; wanted && low.length === text.length && hit < 200; hit += 1) {
      const next = low.indexOf(wanted, at);
      if (next < 0) break;
      box.append(text.slice(at, next), make("mark", text.slice(next, next + wanted.length)));
      at = next + wanted.length;
    }
    box.append(text.slice(at));
    return box;
  };

  const passage = (one, wanted, current) => {
    const box = make("div", "", current ? "excerpt current" : "excerpt");
    const head = make("p", "", "head");
    head.append(named(one), known(one), ...flagged(one));
    box.append(head, marked(one.text, wanted));
    if (one.cut) box.append(make("p", one.cut, "cut"));
    if (one.asked) {
      const details = make("details");
      details.append(make("summary", `prompt, ${one.asked.length.toLocaleString("en")} characters`), marked(one.asked, wanted));
      box.append(details);
    }
    return box;
  };

  // Roles are columns, turns are rows.
  const stage = (all, roles, wanted, current) => {
    const cols = make("div", "", "cols");
    cols.style.setProperty("--roles", roles.length);
    roles.forEach((role, index) => cols.append(make("h5", role, `role tone-${index % 6}`)));
    for (const turn of [...new Set(all.map((one) => one.turn))].sort((a, b) => a - b)) {
      for (const role of roles) {
        const its = all.filter((one) => one.role === role && one.turn === turn).sort((a, b) => a.slot - b.slot);
        const cell = make("div");
        cell.append(...its.map((one) => passage(one, wanted, one === current)));
        if (!all.some((one) => one.role === role) && !turn) cell.append(make("p", "no text kept", "caption"));
        cols.append(cell);
      }
    }
    return cols;
  };

  const browse = (box, data, moved) => {
    const form = box.querySelector("fieldset");
    const field = (name) => form.elements.namedItem(name);
    const where = box.querySelector(".where");
    const rows = box.querySelector(".rows");
    const reading = box.querySelector(".reading");
    const options = (name, values) => field(name).append(...["any", ...values].map((value) => make("option", value)));
    options("role", data.roles);
    options("slot", [...new Set(data.texts.map((one) => one.slot))].sort((a, b) => a - b));
    options("finish", data.finish);
    options("flag", [...data.flags].sort());
    const fields = [...form.elements].filter((one) => one.name);
    const standard = new Map(fields.map((one) => [one, one.type === "checkbox" ? "" : one.value]));
    const value = (one) => (one.type === "checkbox" ? (one.checked ? "on" : "") : one.value);
    const height = 46;
    let found = [];
    let at = 0;

    const paint = () => {
      const first = Math.max(Math.floor(rows.scrollTop / height) - 5, 0);
      const last = Math.min(first + Math.ceil(rows.clientHeight / height) + 10, found.length);
      const sizer = make("li", "", "sizer");
      sizer.setAttribute("role", "presentation");
      sizer.style.height = `${found.length * height}px`;
      const shown = [sizer];
      for (let index = first; index < last; index += 1) {
        const one = found[index];
        const row = make("li", "", index === at ? "row on" : "row");
        const top = make("div");
        const facts = [`step ${one.step}`, `${one.tokens} tokens`].concat(one.reward === "–" ? [] : [`reward ${one.reward}`]);
        top.append(named(one), make("span", ` ${facts.join(" · ")} `), ...flagged(one));
        row.append(top, make("div", one.text.slice(0, 160).replace(/\s+/g, " ")));
        row.id = `${box.id}-row-${index}`;
        row.setAttribute("role", "option");
        row.setAttribute("aria-selected", String(index === at));
        row.setAttribute("aria-setsize", found.length);
        row.setAttribute("aria-posinset", index + 1);
        row.style.top = `${index * height}px`;
        row.style.height = `${height}px`;
        row.addEventListener("click", () => { go(index); moved(controls); });
        shown.push(row);
      }
      rows.replaceChildren(...shown);
      if (found.length) rows.setAttribute("aria-activedescendant", `${box.id}-row-${at}`);
      else rows.removeAttribute("aria-activedescendant");
    };
    const only = (label, wanted) => press(label, "plain", () => {
      restore(new URLSearchParams({ search: wanted, episode: value(field("episode")) }));
      filter(found[at]);
      moved(controls);
    }, "show only what holds this name");
    const read = () => {
      const one = found[at];
      const wanted = field("search").value.toLowerCase();
      where.textContent = one ? `${(at + 1).toLocaleString("en")} of ${found.length.toLocaleString("en")}` : "nothing found";
      reading.replaceChildren();
      if (!one) return;
      const head = make("p", "", "actions");
      if (one.prompt) head.append(only(`prompt ${one.prompt}`, one.prompt), " ");
      if (one.episode) head.append(only(`episode ${one.episode}`, one.episode), " ");
      head.append(press("copy link", "", () => copy(controls)));
      reading.append(head);
      if (field("episode").checked) reading.append(stage(data.groups.get(one.group), data.roles, wanted, one));
      else reading.append(passage(one, wanted, true));
    };
    const go = (index) => {
      at = clamp(index, found.length);
      const top = at * height;
      if (top < rows.scrollTop) rows.scrollTop = top;
      if (top + height > rows.scrollTop + rows.clientHeight) rows.scrollTop = top + height - rows.clientHeight;
      paint();
      read();
    };
    const filter = (keep) => {
      const said = Object.fromEntries(fields.map((one) => [one.name, one.value]));
      const chosen = (name, own) => said[name] === "any" || said[name] === String(own);
      const bound = (name, fallback) => (said[name] === "" ? fallback : Number(said[name]));
      const [from, to, least, most] = [bound("from", -Infinity), bound("to", Infinity), bound("least", NaN), bound("most", NaN)];
      const wanted = said.search.toLowerCase();
      const asked = new Set(wanted ? data.prompts.filter((one) => one.low.includes(wanted)) : []);
      found = data.texts.filter((one) =>
        chosen("role", one.role) && chosen("slot", one.slot) && chosen("finish", one.finish) &&
        (said.flag === "any" || one.flags.includes(said.flag)) && one.step >= from && one.step <= to &&
        (said.least === "" || one.earned >= least) && (said.most === "" || one.earned <= most) &&
        (!wanted || asked.has(one.about) || one.low.includes(wanted)));
      const last = (one) => (Number.isNaN(one) ? Infinity : one);
      const by = {
        step: null, tokens: (one) => -one.tokens,
        advantage: (one) => last(-one.gained), away: (one) => -(one.away || 0),
      }[said.sort];
      if (by) found.sort((a, b) => by(a) - by(b) || 0);
      all.hidden = ![...state().keys()].some((name) => name !== "sort" && name !== "episode");
      rows.scrollTop = 0;
      go(keep ? found.indexOf(keep) : 0);
    };
    const state = () => new URLSearchParams(fields.filter((one) => value(one) !== standard.get(one)).map((one) => [one.name, value(one)]));
    const restore = (wanted) => {
      const unknown = [];
      for (const one of fields) {
        const to = wanted.has(one.name) ? wanted.get(one.name) : standard.get(one);
        if (one.type === "checkbox") one.checked = to === "on";
        else one.value = to;
        if (one.type !== "checkbox" && one.value !== to) {
          one.value = standard.get(one);
          unknown.push(`${one.name} ${to}`);
        }
      }
      return unknown;
    };
    form.addEventListener("input", () => { filter(found[at]); moved(controls); });
    rows.addEventListener("scroll", paint);
    rows.addEventListener("keydown", (event) => {
      const page = Math.floor(rows.clientHeight / height);
      const to = { ArrowDown: at + 1, ArrowUp: at - 1, PageDown: at + page, PageUp: at - page, Home: 0, End: found.length - 1 }[event.key];
      if (to === undefined) return;
      event.preventDefault();
      go(to);
      moved(controls);
    });
    const controls = {
      box,
      paint,
      move: (by) => go(at + by),
      step: (by) => {
        const here = found[at];
        let index = at;
        while (found[index] && found[index].step === here.step) index += by;
        if (found[index]) go(index);
      },
      search: () => { field("search").focus(); field("search").select(); },
      episode: () => { field("episode").checked = !field("episode").checked; filter(found[at]); },
      link: () => {
        const name = found[at] ? `${box.dataset.run}-text-${found[at].key}` : box.id;
        const wanted = String(state());
        return wanted ? `${name}?${wanted}` : name;
      },
      open: (key, wanted) => {
        const one = data.texts.find((other) => other.key === key);
        if (key && !one) return false;
        const unknown = restore(wanted);
        filter(one);
        if (unknown.length) say(`This page has no ${unknown.join(", ").slice(0, 200)}: that part of the link is left out.`, true);
        if (one && found[at] !== one) {
          restore(new URLSearchParams());
          filter(one);
          say("The filters of this link do not show its text, so they are left out.", true);
        }
        return true;
      },
    };
    const all = press("show all", "", () => { restore(new URLSearchParams({ episode: value(field("episode")) })); filter(found[at]); moved(controls); });
    where.after(all);
    filter();
    return controls;
  };

  const view = (box, moved) => {
    const where = box.querySelector(".where");
    const buttons = [...box.querySelectorAll(".tabs button")];
    const pairings = [...box.querySelectorAll(".pairing")];
    let chosen = 0;
    let at = 0;
    const diffs = () => [...pairings[chosen].querySelectorAll(".diff")];
    const show = () => {
      buttons.forEach((one, index) => {
        one.classList.toggle("on", index === chosen);
        one.setAttribute("aria-selected", String(index === chosen));
      });
      pairings.forEach((one, index) => { one.hidden = index !== chosen; });
      const all = diffs();
      all.forEach((one, index) => { one.hidden = index !== at; });
      where.textContent = all.length ? `${at + 1} of ${all.length}` : "";
      link.hidden = !all.length;
    };
    const choose = (index) => {
      if (!pairings[index]) return;
      [chosen, at] = [index, 0];
      show();
    };
    const place = (wanted) => pairings.findIndex((one) => one.dataset.pairing === wanted);
    const controls = {
      box,
      move: (by) => { at = clamp(at + by, diffs().length); show(); },
      step: (by) => {
        const all = diffs();
        let index = at;
        while (all[index] && all[index].dataset.step === all[at].dataset.step) index += by;
        if (all[index]) { at = index; show(); }
      },
      pairing: (wanted) => choose(place(wanted)),
      link: () => (diffs()[at] ? diffs()[at].id : box.id),
      open: (id) => {
        const index = pairings.findIndex((one) => one.querySelector(`[id="${CSS.escape(id)}"]`));
        if (index < 0) return false;
        chosen = index;
        at = diffs().findIndex((one) => one.id === id);
        show();
        return true;
      },
    };
    const link = press("copy link", "link", () => copy(controls));
    where.after(link);
    buttons.forEach((one, index) => one.addEventListener("click", () => { choose(index); moved(controls); }));
    choose(Math.max(pairings.findIndex((one) => one.querySelector(".diff")), 0));
    return controls;
  };

  // The address bar follows what is looked at, a little later: browsers allow few changes a second.
  let latest = null;
  let waiting = 0;
  const address = (name) => {
    // A page inside a frame may not be allowed to.
    try { window.history.replaceState(null, "", `#${name}`); } catch { return false; }
    return true;
  };
  const moved = (one) => {
    latest = one;
    window.clearTimeout(waiting);
    waiting = window.setTimeout(() => address(one.link()), 300);
  };
  const copy = (one) => {
    latest = one;
    window.clearTimeout(waiting);
    const shown = address(one.link());
    const done = () => say("Link copied.");
    const failed = () => say(shown ? "The link is in the address bar: this browser does not let the page copy it." : "This browser does not let the page copy a link.", true);
    if (navigator.clipboard) navigator.clipboard.writeText(`${window.location.href.split("#")[0]}#${one.link()}`).then(done, failed);
    else failed();
  };

  // What is in a closed section has to be opened before it can be shown.
  const reveal = (node) => {
    for (let one = node && node.closest("details"); one; one = one.parentElement.closest("details")) one.open = true;
    return node;
  };
  const show = (node) => reveal(node).scrollIntoView();

  const viewers = Array.from(document.querySelectorAll(".viewer"), (box) => view(box, moved));
  const browsers = [];
  const bring = async (box) => {
    box.hidden = false;
    const data = JSON.parse(document.getElementById(box.dataset.source).textContent);
    if (typeof data !== "string") {
      browsers.push(browse(box, understand(data), moved));
      return;
    }
    try {
      browsers.push(browse(box, understand(await unpack(data)), moved));
    } catch {
      box.querySelector(".where").textContent = "";
      box.querySelector(".reading").append(make("p", "This browser cannot unpack the texts: that takes Chrome 80, Firefox 113, Safari 16.4 or newer. report.json holds them too.", "note"));
    }
  };

  const follow = () => {
    let id = window.location.hash.slice(1);
    say("");
    if (!id) return;
    // A link that was cut short may hold half an escape.
    try { id = decodeURIComponent(id.split("?")[0]); } catch { id = id.split("?")[0]; }
    const wanted = new URLSearchParams(window.location.hash.split("?").slice(1).join("?"));
    const text = /^(.*)-text-([0-9a-f]{8})$/.exec(id);
    const target = text
      ? browsers.find((one) => one.box.dataset.run === text[1] && one.open(text[2], wanted))
      : viewers.find((one) => one.open(id)) || browsers.find((one) => one.box.id === id && one.open("", wanted));
    if (target) {
      latest = target;
      show(target.box);
    } else if (text) {
      const box = browsers.find((one) => one.box.dataset.run === text[1])?.box;
      if (box) show(box);
      say(`This page does not hold text ${text[2]}: it is of another run, or was left out to keep the page small. The run directory holds all texts.`, true);
    } else if (document.getElementById(id)) {
      show(document.getElementById(id));
    } else {
      say(`This page has nothing called “${id.slice(0, 80)}”: it was made from other runs, or from fewer steps.`, true);
    }
  };
  document.addEventListener("toggle", (event) => {
    // Lists are painted to their height, which a closed section does not have.
    if (event.target.open) for (const one of browsers) if (event.target.contains(one.box)) one.paint();
  }, true);
  document.addEventListener("click", (event) => {
    // The same link again is no change of the address, so nothing else would happen.
    const link = event.target.closest('a[href^="#"]');
    if (link && link.hash === window.location.hash) follow();
  });
  Promise.all(Array.from(document.querySelectorAll(".browser"), bring)).then(() => {
    browsers.sort((a, b) => (a.box.compareDocumentPosition(b.box) & Node.DOCUMENT_POSITION_FOLLOWING ? -1 : 1));
    window.addEventListener("hashchange", follow);
    follow();
  });

  const KEYS = [
    ["j  k", "next, previous"], ["[  ]", "previous, next step"], ["/", "search; Escape leaves the field"],
    ["e", "episode view: what all roles wrote"], ["d", "from the texts to the pairs, and back"], ["1 … 5", "choose a pairing"],
    ["y", "copy a link to what is shown, with its filters"], ["↑ ↓ Page Home End", "in the list of texts"], ["?", "show these keys; Escape closes"],
  ];
  const help = make("dialog", "", "keys");
  const listed = make("dl");
  for (const [key, does] of KEYS) listed.append(make("dt", key), make("dd", does));
  help.append(make("h3", "Keys"), listed, press("close", "", () => help.close()));
  document.body.append(help);
  for (const one of document.querySelectorAll(".keys-button")) one.addEventListener("click", () => help.showModal());

  const seen = ({ box }) => {
    if (box.closest("details:not([open])")) return 0;
    const place = box.getBoundingClientRect();
    return Math.min(place.bottom, window.innerHeight) - Math.max(place.top, 0);
  };
  const most = (all) => [...all].sort((a, b) => seen(b) - seen(a))[0];
  for (const kind of ["pointerdown", "focusin"]) {
    document.addEventListener(kind, (event) => {
      latest = [...viewers, ...browsers].find((one) => one.box.contains(event.target)) || latest;
    });
  }
  document.addEventListener("keydown", (event) => {
    const typing = event.target.matches("select, textarea, input:not([type=checkbox])");
    if (event.key === "Escape") {
      // A search field would also empty itself.
      if (typing) { event.preventDefault(); event.target.blur(); } else say("");
    }
    if (typing || help.open || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "?" && viewers.length + browsers.length) help.showModal();
    const near = most([...viewers, ...browsers]);
    // What was used last, while it is well in sight; else what fills most of the window.
    const here = latest && seen(latest) > window.innerHeight * 0.2 ? latest : near;
    if (!here) return;
    const browser = browsers.includes(here) ? here : most(browsers);
    const viewer = viewers.includes(here) ? here : most(viewers);
    const on = (one, act) => () => {
      if (!one) return;
      if (one !== here || seen(one) <= 0) show(one.box);
      act(one);
      moved(one);
    };
    const acts = {
      j: on(here, (one) => one.move(1)), k: on(here, (one) => one.move(-1)), "]": on(here, (one) => one.step(1)), "[": on(here, (one) => one.step(-1)),
      "/": on(browser, (one) => one.search()), e: on(browser, (one) => one.episode()),
      d: on(here === viewer ? browser : viewer, () => {}), y: () => copy(here),
    };
    for (const wanted of "12345") {
      acts[wanted] = on(viewer, () => viewer.pairing(wanted));
    }
    if (!acts[event.key]) return;
    event.preventDefault();
    acts[event.key]();
  });
})();
