"use strict";
(() => {
  // Texts come from models: they only ever become textContent.
  const make = (tag, text = "", name = "") => {
    const one = document.createElement(tag);
    one.textContent = text;
    if (name) one.className = name;
    return one;
  };
  const clamp = (at, count) => Math.min(Math.max(at, 0), Math.max(count - 1, 0));
  const NAMES = ["key", "role", "slot", "turn", "step", "tokens", "finish", "reward", "advantage", "flags", "prompt", "episode", "near", "away", "cut", "text"];
  document.documentElement.classList.add("scripted");

  const decode = (source) => {
    const data = JSON.parse(source.textContent);
    const texts = data.rows.map((row) => {
      const one = Object.fromEntries(NAMES.map((name, index) => [name, row[index]]));
      const [prompt, asked] = data.prompts[one.prompt];
      return Object.assign(one, {
        role: data.roles[one.role], finish: data.finish[one.finish], flags: one.flags.map((flag) => data.flags[flag]),
        prompt, asked, near: data.roles[one.near] || "", cut: data.cuts[one.cut], group: `${one.step}\n${prompt}\n${one.episode}`,
      });
    });
    return { roles: data.roles, finish: data.finish, flags: data.flags, texts };
  };

  const heading = (one) => {
    const parts = [`step ${one.step}`, `${one.role}/${one.slot}`];
    if (one.turn) parts.push(`turn ${one.turn}`);
    if (one.tokens) parts.push(`${one.tokens} tokens`);
    if (one.finish && one.finish !== "unknown") parts.push(`finish: ${one.finish}`);
    parts.push(`reward ${one.reward}`);
    if (one.advantage !== "–") parts.push(`advantage ${one.advantage}`);
    if (one.prompt) parts.push(`prompt ${one.prompt}`);
    if (one.episode) parts.push(`episode ${one.episode}`);
    if (one.near && one.near !== one.role) parts.push(`reads like ${one.near} (+${one.away} nats per word)`);
    return parts.concat(one.flags).join(" · ");
  };

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
    box.append(make("p", heading(one), "head"), marked(one.text, wanted));
    if (one.cut) box.append(make("p", one.cut, "cut"));
    if (one.asked) {
      const details = make("details");
      details.append(make("summary", `prompt, ${one.asked.length} characters`), marked(one.asked, wanted));
      box.append(details);
    }
    return box;
  };

  const browse = (box) => {
    const data = decode(document.getElementById(box.dataset.source));
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
    const lower = data.texts.map((one) => `${one.text}\n${one.asked}\n${one.prompt}\n${one.episode}`.toLowerCase());
    const groups = new Map();
    for (const one of data.texts) groups.set(one.group, (groups.get(one.group) || []).concat(one));
    const height = 46;
    let found = [];
    let at = 0;

    const paint = () => {
      const first = Math.max(Math.floor(rows.scrollTop / height) - 5, 0);
      const last = Math.min(first + Math.ceil(rows.clientHeight / height) + 10, found.length);
      const sizer = make("li", "", "sizer");
      sizer.style.height = `${found.length * height}px`;
      const shown = [sizer];
      for (let index = first; index < last; index += 1) {
        const one = found[index];
        const row = make("li", "", index === at ? "row on" : "row");
        const top = make("div");
        top.append(make("b", `${one.step} ${one.role}/${one.slot}`), make("span", ` · ${one.tokens} · ${one.reward} `), make("em", one.flags.join(" ")));
        row.append(top, make("div", one.text.slice(0, 160).replace(/\s+/g, " ")));
        row.style.top = `${index * height}px`;
        row.style.height = `${height}px`;
        row.addEventListener("click", () => go(index));
        shown.push(row);
      }
      rows.replaceChildren(...shown);
    };
    const read = () => {
      const one = found[at];
      const wanted = field("search").value.toLowerCase();
      where.textContent = one ? `${at + 1} of ${found.length}` : "nothing found";
      reading.replaceChildren();
      if (!one) return;
      if (!field("episode").checked) {
        reading.append(passage(one, wanted, true));
        return;
      }
      const all = one.prompt || one.episode ? groups.get(one.group) : [one];
      const cols = make("div", "", "cols");
      for (const role of data.roles) {
        const its = all.filter((other) => other.role === role).sort((a, b) => a.turn - b.turn || a.slot - b.slot);
        const col = make("div");
        col.append(make("h5", role), ...its.map((other) => passage(other, wanted, other === one)));
        if (!its.length) col.append(make("p", "no text kept", "caption"));
        cols.append(col);
      }
      reading.append(cols);
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
      const value = (name) => field(name).value;
      const chosen = (name, own) => value(name) === "any" || value(name) === String(own);
      const bound = (name, fallback) => (value(name) === "" ? fallback : Number(value(name)));
      const [from, to] = [bound("from", -Infinity), bound("to", Infinity)];
      const [least, most] = [value("least"), value("most")];
      const wanted = value("search").toLowerCase();
      const number = (text) => (text === "–" ? NaN : Number(text.replace(/,/g, "")));
      found = data.texts.filter((one, index) =>
        chosen("role", one.role) && chosen("slot", one.slot) && chosen("finish", one.finish) &&
        (value("flag") === "any" || one.flags.includes(value("flag"))) && one.step >= from && one.step <= to &&
        (least === "" || number(one.reward) >= Number(least)) && (most === "" || number(one.reward) <= Number(most)) &&
        lower[index].includes(wanted));
      const by = {
        step: (one) => one.step, tokens: (one) => -one.tokens,
        advantage: (one) => -(number(one.advantage) || 0), away: (one) => -(one.away || 0),
      }[value("sort")];
      found.sort((a, b) => by(a) - by(b));
      rows.scrollTop = 0;
      go(keep ? found.indexOf(keep) : 0);
    };
    form.addEventListener("input", () => filter(found[at]));
    rows.addEventListener("scroll", paint);
    box.hidden = false;
    filter();
    return {
      box,
      move: (by) => go(at + by),
      step: (by) => {
        const here = found[at];
        let index = at;
        while (found[index] && found[index].step === here.step) index += by;
        if (found[index]) go(index);
      },
      search: () => field("search").focus(),
      episode: () => { field("episode").checked = !field("episode").checked; read(); },
      link: () => (found[at] ? `${box.dataset.run}-text-${found[at].key}` : box.id),
      open: (key) => {
        const one = data.texts.find((other) => other.key === key);
        if (!one) return false;
        for (const input of form.querySelectorAll("input[name]:not([type=checkbox])")) input.value = "";
        for (const select of form.querySelectorAll("select")) select.selectedIndex = 0;
        filter(one);
        return true;
      },
    };
  };

  const view = (box) => {
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
    };
    const choose = (index) => {
      if (!pairings[index]) return;
      [chosen, at] = [index, 0];
      show();
    };
    buttons.forEach((one, index) => one.addEventListener("click", () => choose(index)));
    const usable = pairings.findIndex((one) => one.querySelector(".diff"));
    choose(Math.max(usable, 0));
    return {
      box,
      move: (by) => { at = clamp(at + by, diffs().length); show(); },
      step: (by) => {
        const all = diffs();
        let index = at;
        while (all[index] && all[index].dataset.step === all[at].dataset.step) index += by;
        if (all[index]) { at = index; show(); }
      },
      pairing: (number) => choose(pairings.findIndex((one) => one.dataset.pairing === number)),
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
  };

  const browsers = Array.from(document.querySelectorAll(".browser"), browse);
  const viewers = Array.from(document.querySelectorAll(".viewer"), view);

  const follow = () => {
    const id = decodeURIComponent(window.location.hash.slice(1));
    const text = /^(.*)-text-([0-9a-f]{8})$/.exec(id);
    const target = text
      ? browsers.find((one) => one.box.dataset.run === text[1] && one.open(text[2]))
      : viewers.find((one) => one.open(id));
    if (target) target.box.scrollIntoView();
  };
  window.addEventListener("hashchange", follow);
  follow();

  const near = (all) => all.find(({ box }) => {
    const place = box.getBoundingClientRect();
    return place.top < window.innerHeight * 0.7 && place.bottom > window.innerHeight * 0.2;
  });
  const copy = (one) => {
    window.history.replaceState(null, "", `#${one.link()}`);
    const said = one.box.querySelector(".where");
    const done = () => { said.textContent += " · link copied"; };
    const shown = () => { said.textContent += " · link is in the address bar"; };
    if (navigator.clipboard) navigator.clipboard.writeText(window.location.href).then(done, shown);
    else shown();
  };
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && event.target.matches("input, select")) event.target.blur();
    if (event.target.matches("input, select, textarea") || event.ctrlKey || event.metaKey || event.altKey) return;
    const viewer = near(viewers);
    const browser = near(browsers);
    const here = viewer || browser || browsers[0] || viewers[0];
    if (!here) return;
    const acts = {
      j: () => here.move(1), k: () => here.move(-1), "]": () => here.step(1), "[": () => here.step(-1), y: () => copy(here),
      d: () => { const other = here === viewer ? browser || browsers[0] : viewers[0]; if (other) other.box.scrollIntoView(); },
      "/": () => { const one = browser || browsers[0]; if (one) { one.box.scrollIntoView(); one.search(); } },
      e: () => { const one = browser || browsers[0]; if (one) one.episode(); },
    };
    for (const number of "12345") {
      acts[number] = () => { const one = viewer || viewers[0]; if (one) { one.pairing(number); one.box.scrollIntoView(); } };
    }
    if (!acts[event.key]) return;
    event.preventDefault();
    acts[event.key]();
  });

  const MOODS = ["drift", "watch", "no verdict", "ok"];
  // Tables that say so can be sorted by any column; numbers by their full value, empty cells last.
  for (const table of document.querySelectorAll("table.sortable")) {
    const body = table.tBodies[0];
    [...table.tHead.rows[0].cells].forEach((head, column) => {
      const button = make("button", head.textContent);
      button.type = "button";
      head.replaceChildren(button);
      head.setAttribute("aria-sort", "none");
      button.addEventListener("click", () => {
        const up = head.getAttribute("aria-sort") !== "ascending";
        for (const other of table.tHead.rows[0].cells) other.setAttribute("aria-sort", "none");
        head.setAttribute("aria-sort", up ? "ascending" : "descending");
        const value = (row) => {
          const cell = row.cells[column];
          const mood = cell.querySelector(".chip") ? MOODS.indexOf(cell.textContent.trim()) : -1;
          if (mood >= 0) return mood;
          return cell.dataset.value === undefined ? cell.textContent.trim() : Number(cell.dataset.value);
        };
        const empty = (one) => one === "–" || one === "";
        const order = (a, b) => {
          const [x, y] = [value(a), value(b)];
          if (empty(x) || empty(y)) return empty(x) - empty(y);
          const found = typeof x === "number" && typeof y === "number" ? x - y : String(x).localeCompare(String(y));
          return up ? found : -found;
        };
        body.append(...[...body.rows].sort(order));
      });
    });
  }

  const links = new Map(Array.from(document.querySelectorAll(".rail a"), (link) => [link.hash.slice(1), link]));
  const watcher = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      if (!entry.isIntersecting) continue;
      for (const link of links.values()) { link.classList.remove("here"); link.removeAttribute("aria-current"); }
      const here = links.get(entry.target.id);
      here.classList.add("here");
      here.setAttribute("aria-current", "true");
    }
  }, { rootMargin: "0px 0px -75% 0px" });
  for (const id of links.keys()) {
    const target = id && document.getElementById(id);
    if (target) watcher.observe(target);
  }

  window.addEventListener("beforeprint", () => {
    // Tables of data stay closed: on paper they would be most of the pages.
    for (const details of document.querySelectorAll("details")) details.open = !details.matches(".data") || details.closest(".method") !== null;
  });
})();
