"use strict";
// Asks for the page again, and replaces the parts that are live. Everything works
// without it.
(() => {
  const every = 5000;
  const stale = document.getElementById("stale");
  let answered = new Date();

  const replace = (before, after) => {
    if (before.outerHTML === after.outerHTML) return;
    const selection = document.getSelection();
    if (selection && !selection.isCollapsed && selection.containsNode(before, true)) return; // somebody copies a text
    for (const open of before.querySelectorAll("details[open][id]")) {
      const now = after.querySelector("#" + CSS.escape(open.id));
      if (now) now.open = true;
    }
    const scrolled = Array.from(before.querySelectorAll(".scroll"), (e) => e.scrollLeft);
    const focused = before.contains(document.activeElement) ? Array.from(before.querySelectorAll("a, button, summary, [tabindex]")).indexOf(document.activeElement) : -1;
    before.replaceWith(after);
    after.querySelectorAll(".scroll").forEach((e, i) => { e.scrollLeft = scrolled[i] || 0; });
    if (focused >= 0) {
      const now = after.querySelectorAll("a, button, summary, [tabindex]")[focused];
      if (now) now.focus({preventScroll: true});
    }
  };

  const refresh = async () => {
    const response = await fetch(location.href, {headers: {Accept: "application/xhtml+xml,text/html"}, redirect: "error", signal: AbortSignal.timeout(20000)});
    if (response.status === 401) { location.reload(); return; }
    if (!response.ok) throw new Error("status " + response.status);
    const page = new DOMParser().parseFromString(await response.text(), "text/html");
    for (const before of document.querySelectorAll("[data-live][id]")) {
      const after = page.getElementById(before.id);
      if (after) replace(before, document.adoptNode(after));
    }
    answered = new Date();
    stale.hidden = true;
  };

  const loop = async () => {
    if (!document.hidden) {
      try { await refresh(); } catch {
        stale.textContent = "No answer since " + answered.toLocaleTimeString() + ". This page is old.";
        stale.hidden = false;
      }
    }
    setTimeout(loop, every);
  };
  setTimeout(loop, every);
})();
