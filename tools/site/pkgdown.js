// Search in the pages, and the table of contents that follows the reader. Takes
// the place of pkgdown's script of this name (see from-disk.R).
(function () {
  "use strict";

  // Entries of the index that hold all words of a query: those first that have
  // them in their heading, the shorter the better.
  function search(index, query, limit) {
    const words = query.toLowerCase().split(/\s+/).filter((word) => word !== "");
    if (words.length === 0) return [];
    const found = [];
    for (const entry of index) {
      const heading = (entry.what + " " + entry.title).toLowerCase();
      const all = heading + " " + (entry.text + " " + entry.code).toLowerCase();
      if (!words.every((word) => all.includes(word))) continue;
      const inHeading = words.filter((word) => heading.includes(word)).length;
      const inTitle = words.filter(
        (word) => entry.title.toLowerCase().startsWith(word)
      ).length;
      found.push({ entry, score: 1000 * (inHeading + inTitle) - heading.length });
    }
    found.sort((a, b) => b.score - a.score);
    return found.slice(0, limit).map((one) => one.entry);
  }

  function describe(entry) {
    const parts = [entry.dir, entry.title];
    if (entry.previous_headings) parts.push(entry.previous_headings);
    if (entry.what !== entry.title) parts.push(entry.what);
    return parts.filter((part) => part).join(" > ");
  }

  if (typeof module !== "undefined") {
    module.exports = { search, describe };
    return;
  }

  function startSearch(input) {
    const root = input.dataset.searchIndex.replace(/search\.json$/, "");
    const box = document.createElement("div");
    const list = document.createElement("div");
    // The names that pkgdown's style sheet has.
    box.className = "algolia-autocomplete";
    box.style.position = "relative";
    list.className = "aa-dropdown-menu";
    list.style.position = "absolute";
    list.style.right = "0";
    list.style.zIndex = "1050";
    list.hidden = true;
    input.parentNode.appendChild(box);
    box.appendChild(list);
    let chosen = -1;

    // The index is a script, read when it is first wanted.
    function withIndex(then) {
      if (window.searchIndex) {
        then(window.searchIndex);
        return;
      }
      const script = document.createElement("script");
      script.src = root + "search-index.js";
      script.onload = () => then(window.searchIndex);
      document.head.appendChild(script);
    }

    function choose(number) {
      const items = list.querySelectorAll("a");
      if (items.length === 0) return;
      chosen = (number + items.length) % items.length;
      items.forEach((item, at) => item.classList.toggle("aa-cursor", at === chosen));
      items[chosen].scrollIntoView({ block: "nearest" });
    }

    function show(index) {
      list.replaceChildren();
      chosen = -1;
      list.hidden = input.value.trim().length < 2;
      if (list.hidden) return;
      const entries = search(index, input.value, 20);
      for (const entry of entries) {
        const item = document.createElement("a");
        item.className = "aa-suggestion d-block text-decoration-none";
        item.href = root + entry.path + (entry.id ? "#" + entry.id : "");
        item.textContent = describe(entry);
        list.appendChild(item);
      }
      if (entries.length === 0) {
        const nothing = document.createElement("div");
        nothing.className = "aa-suggestion";
        nothing.textContent = "Nothing found.";
        list.appendChild(nothing);
      } else {
        choose(0);
      }
    }

    input.addEventListener("input", () => withIndex(show));
    input.addEventListener("focus", () => withIndex(() => {}));
    input.addEventListener("keydown", (event) => {
      const items = list.querySelectorAll("a");
      if (event.key === "ArrowDown") {
        choose(chosen + 1);
      } else if (event.key === "ArrowUp") {
        choose(chosen - 1);
      } else if (event.key === "Escape") {
        list.hidden = true;
      } else if (event.key === "Enter") {
        if (items[chosen]) window.location.href = items[chosen].href;
      } else {
        return;
      }
      event.preventDefault();
    });
    list.addEventListener("click", () => { list.hidden = true; });
    document.addEventListener("click", (event) => {
      if (!box.contains(event.target) && event.target !== input) list.hidden = true;
    });
  }

  document.addEventListener("DOMContentLoaded", () => {
    const input = document.getElementById("search-input");
    if (input) startSearch(input);
    const bootstrap = window.bootstrap;
    if (!bootstrap) return;
    const bar = document.querySelector("nav.navbar");
    if (document.getElementById("toc")) {
      new bootstrap.ScrollSpy(document.body, {
        target: "#toc", offset: (bar ? bar.offsetHeight : 0) + 1
      });
    }
    for (const element of document.querySelectorAll('[data-bs-toggle="tooltip"]')) {
      new bootstrap.Tooltip(element);
    }
    for (const element of document.querySelectorAll('[data-bs-toggle="popover"]')) {
      new bootstrap.Popover(element, {
        container: "body", html: true, trigger: "focus", placement: "top",
        sanitize: false
      });
    }
  });
})();
