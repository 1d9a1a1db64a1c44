"use strict";
// Texts beside the incidents: before the onset and after it, and whatever a click on a curve asks for.

const Texts = (() => {
  const pane = document.getElementById("texts");
  const body = pane.querySelector(".body");
  let asked = "";

  function make(tag, text, name = "") {
    const element = document.createElement(tag);
    element.textContent = text;
    if (name) element.className = name;
    return element;
  }

  function card(head, text, remark = "") {
    const box = make("article", "");
    box.append(make("h4", head), make("pre", text));
    if (remark) box.append(make("p", remark, "quiet"));
    return box;
  }

  function empty(note) {
    body.replaceChildren(make("p", note, "quiet"));
  }

  async function load(name, ask, show) {
    asked = name;
    pane.hidden = false;
    empty("Reading the texts …");
    try {
      const found = await ask();
      if (asked === name) show(found);
    } catch (error) {
      if (asked === name) empty(error.message);
    }
  }

  // The texts of an incident; drawn once per incident, so that reading is not disturbed.
  function pairs(key, incident) {
    const name = `pairs ${key} ${incident.id}`;
    if (asked === name || (asked.startsWith(`near ${key} `))) return;
    load(name, () => Source.pairs(key, incident.id), (found) => {
      if (!found || !found.pairs.length) {
        empty(found ? found.note : "No texts are in this copy.");
        return;
      }
      const who = found.role === "*" ? "all roles" : found.role;
      body.replaceChildren(make("h3", `${who}, before and after step ${incident.onset}`));
      for (const one of found.pairs) {
        const row = make("div", "", "pair");
        const same = one.prompt ? `, problem ${one.prompt}` : "";
        row.append(card(`step ${one.before_step}${same}`, one.before), card(`step ${one.after_step}${same}`, one.after));
        body.append(row);
      }
    });
  }

  function near(key, role, step) {
    load(`near ${key} ${role} ${step}`, () => Source.texts(key, role, step), (found) => {
      if (!found.texts.length) {
        empty(found.note);
        return;
      }
      const who = found.role === "*" ? "all roles" : found.role;
      const head = make("h3", `${who}, step ${found.step}`);
      const back = make("button", "Back to the incident");
      back.type = "button";
      back.addEventListener("click", () => {
        asked = "";
        pane.dispatchEvent(new CustomEvent("back"));
      });
      body.replaceChildren(head, back, make("p", found.note, "quiet"));
      for (const one of found.texts) {
        const facts = [`slot ${one.slot}`, one.prompt && `problem ${one.prompt}`, `${one.tokens} tokens`,
          one.reward !== null && `reward ${Charts.number(one.reward)}`, one.finish === "length" && "truncated"];
        body.append(card(facts.filter(Boolean).join(", "), one.text, one.remark));
      }
      pane.scrollIntoView({ behavior: "smooth", block: "nearest" });
    });
  }

  function none(key, note) {
    if (asked.startsWith(`near ${key} `)) return;
    asked = "";
    pane.hidden = !note;
    empty(note);
  }

  return { pane, pairs, near, none, make };
})();
