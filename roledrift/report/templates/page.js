"use strict";
(() => {
  // Texts come from models: they only ever become textContent.
  const start = (box) => {
    const source = document.getElementById(box.dataset.source);
    const texts = JSON.parse(source.textContent);
    const choice = box.querySelector("select");
    const search = box.querySelector("input");
    const where = box.querySelector(".where");
    const [head, body, cut, details] = [".head", ".excerpt > pre", ".cut", "details"].map((one) => box.querySelector(one));
    const roles = ["all", ...new Set(texts.map((one) => one.role))];
    for (const role of roles) {
      const option = document.createElement("option");
      option.textContent = role;
      choice.append(option);
    }
    let found = [];
    let at = 0;
    const show = () => {
      const one = found[at];
      where.textContent = found.length ? `${at + 1} of ${found.length}` : "nothing found";
      head.textContent = one ? `${one.role} · ${one.head}` : "";
      body.textContent = one ? one.text : "";
      cut.textContent = one ? one.cut : "";
      details.hidden = !(one && one.prompt);
      details.querySelector("pre").textContent = one ? one.prompt : "";
    };
    const filter = () => {
      const wanted = search.value.toLowerCase();
      found = texts.filter((one) =>
        (choice.value === "all" || one.role === choice.value) && one.text.toLowerCase().includes(wanted));
      at = 0;
      show();
    };
    const move = (by) => {
      at = Math.min(Math.max(at + by, 0), Math.max(found.length - 1, 0));
      show();
    };
    choice.addEventListener("change", filter);
    search.addEventListener("input", filter);
    for (const button of box.querySelectorAll("button")) {
      button.addEventListener("click", () => move(Number(button.dataset.move)));
    }
    box.hidden = false;
    filter();
    return { box, move };
  };
  const browsers = Array.from(document.querySelectorAll(".browser"), start);

  const inView = ({ box }) => {
    const place = box.getBoundingClientRect();
    return place.top < window.innerHeight && place.bottom > 0;
  };
  document.addEventListener("keydown", (event) => {
    if (event.target.matches("input, select") || event.ctrlKey || event.metaKey || event.altKey) return;
    const by = { j: 1, k: -1 }[event.key];
    const browser = by && browsers.find(inView);
    if (browser) browser.move(by);
  });

  const links = new Map(Array.from(document.querySelectorAll(".rail a"), (link) => [link.hash.slice(1), link]));
  const watcher = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      if (!entry.isIntersecting) continue;
      for (const link of links.values()) link.classList.remove("here");
      links.get(entry.target.id).classList.add("here");
    }
  }, { rootMargin: "0px 0px -75% 0px" });
  for (const id of links.keys()) {
    const target = document.getElementById(id);
    if (target) watcher.observe(target);
  }

  window.addEventListener("beforeprint", () => {
    for (const details of document.querySelectorAll("details")) details.open = true;
  });
})();
