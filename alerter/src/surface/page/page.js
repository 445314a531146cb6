// Keeps the page up to date: asks for what changes every two seconds while somebody looks.
"use strict";
(() => {
  const main = document.getElementById("page");
  const live = document.getElementById("live");
  const asOf = document.getElementById("as-of");
  let tag = "";
  // A look that takes longer is none: the page says so, and asks again.
  const PATIENCE = 5000;
  // Whoever copies a command must not lose it.
  const isSelected = () => {
    const selection = document.getSelection();
    return selection !== null && !selection.isCollapsed && selection.getRangeAt(0).intersectsNode(main);
  };
  const ask = async () => {
    const answer = await fetch("/fragment", {
      headers: tag ? { "If-None-Match": tag } : {},
      cache: "no-store",
      signal: AbortSignal.timeout(PATIENCE),
    });
    if (answer.status !== 200 && answer.status !== 304) throw new Error(String(answer.status));
    const text = await answer.text();
    if (isSelected()) return;
    if (answer.status === 200) {
      const fresh = new DOMParser().parseFromString(text, "text/html");
      main.replaceChildren(...fresh.body.childNodes);
      tag = answer.headers.get("ETag") || "";
    }
    asOf.textContent = answer.headers.get("As-Of");
  };
  const look = async () => {
    if (document.hidden) return;
    if (isSelected()) {
      live.textContent = "Not renewed while something is selected.";
      return;
    }
    try {
      await ask();
      live.textContent = "";
      asOf.classList.remove("old");
    } catch {
      live.textContent = "The alerter does not answer: what stands here may be old.";
      asOf.classList.add("old");
    }
  };
  const again = async () => {
    await look();
    setTimeout(again, 2000);
  };
  document.addEventListener("visibilitychange", look);
  setTimeout(again, 2000);
})();
