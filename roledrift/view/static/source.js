"use strict";
// Where the page gets its documents: from the server, or from scripts beside it in a static copy.

const Source = (() => {
  const still = document.documentElement.dataset.source === "static";

  async function ask(path) {
    const answer = await fetch(path, { cache: "no-store" });
    const kind = answer.headers.get("content-type") || "";
    if (!kind.startsWith("application/json")) throw new Error((await answer.text()).trim());
    const body = await answer.json();
    if (body.error) throw new Error(body.error);
    return body;
  }

  const loaded = new Map();
  const waiting = new Map();
  window.roledriftData = (name, body) => loaded.set(name, body);

  function script(name) {
    if (!waiting.has(name)) {
      waiting.set(name, new Promise((done, failed) => {
        const element = document.createElement("script");
        element.src = `data/${name}.js`;
        element.onload = () => done(loaded.get(name));
        element.onerror = () => failed(new Error("A file of this copy is missing."));
        document.head.append(element);
      }));
    }
    return waiting.get(name).then((body) => {
      if (body.error) throw new Error(body.error);
      return body;
    });
  }

  const server = {
    list: () => ask("api/runs"),
    run: (key, statistics, slots, known) => {
      const query = new URLSearchParams(statistics.map((name) => ["s", name]));
      if (slots) query.set("slots", "1");
      if (known) query.set("known", known);
      return ask(`api/runs/${key}?${query}`);
    },
    pairs: (key, incident) => ask(`api/runs/${key}/pairs?${new URLSearchParams({ incident })}`),
    texts: (key, role, step) => ask(`api/runs/${key}/texts?${new URLSearchParams({ role, step })}`),
  };

  const copy = {
    list: () => script("runs"),
    run: (key) => script(key).then((body) => body.run),
    pairs: (key, incident) => script(key).then((body) => body.pairs[incident]),
    texts: async (key, role) => {
      const { texts } = await script(key);
      const found = texts[role] || Object.values(texts)[0];
      const note = "This copy holds the texts around incidents, and those of the last step.";
      return found ? { ...found, note } : { role, texts: [], note: "This run keeps no texts." };
    },
  };

  return { still, ...(still ? copy : server) };
})();
