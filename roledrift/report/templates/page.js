"use strict";
(() => {
  const MOODS = ["failing", "input problem", "suspicious", "watch", "no verdict", "closed", "ok", "clean"];
  // Tables that say so can be sorted by any column; numbers by their full value, empty cells last.
  for (const table of document.querySelectorAll("table.sortable")) {
    const body = table.tBodies[0];
    [...table.tHead.rows[0].cells].forEach((head, column) => {
      const button = document.createElement("button");
      button.textContent = head.textContent;
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
})();
