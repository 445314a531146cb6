// Keeps the page up to date, and adds what needs a script: its age, and copying.
"use strict";
(() => {
  const byId = (id) => document.getElementById(id);
  const [main, live, asOf, age, icon] = ["page", "live", "as-of", "age", "icon"].map(byId);
  // A poll that takes longer has failed: the page says so, and asks again.
  const PATIENCE = 5000;
  // What is older is said in red, even while the alerter answers.
  const OLD = 15000;
  // Without a change of its own the text is renewed once a minute: a place on a screen reader is lost with it.
  const RENEWED = 60000;
  let [shown, putAt, freshAt, failed] = ["", performance.now(), performance.now(), false];

  // A selected command must not be lost before it is copied.
  const isSelected = () => {
    const selection = document.getSelection();
    return selection !== null && !selection.isCollapsed && selection.getRangeAt(0).intersectsNode(main);
  };

  const showAge = () => {
    const passed = performance.now() - freshAt;
    const seconds = Math.round(passed / 1000);
    age.textContent = seconds < 120 ? `(${seconds} s ago)` : `(${Math.floor(seconds / 60)} min ago)`;
    for (const one of [asOf, age]) one.classList.toggle("old", failed || passed > OLD);
  };

  const button = (text) => {
    const made = document.createElement("button");
    Object.assign(made, { type: "button", textContent: "Copy", className: "copy" });
    made.dataset.key = `copy ${text}`;
    made.setAttribute("aria-label", `Copy ${text}`);
    return made;
  };
  // What the server sent, with what only a script can do.
  const dress = () => {
    const { title, icon: href } = byId("verdict").dataset;
    document.title = title;
    if (icon.getAttribute("href") !== href) icon.setAttribute("href", href);
    for (const code of document.querySelectorAll(".advice code")) code.after(button(code.textContent));
  };

  // The text without what only the time changes.
  const timeless = (one) => {
    const copy = one.cloneNode(true);
    for (const time of copy.querySelectorAll("time, p.reason")) time.remove();
    return copy.innerHTML;
  };
  const put = (fresh) => {
    const key = document.activeElement?.dataset?.key;
    const scrolled = document.querySelector(".wide")?.scrollLeft ?? 0;
    main.replaceChildren(...fresh.childNodes);
    document.querySelector(".wide")?.scrollTo({ left: scrolled });
    dress();
    if (key) document.querySelector(`[data-key="${CSS.escape(key)}"]`)?.focus({ preventScroll: true });
  };

  const ask = async () => {
    const answer = await fetch("/", { cache: "no-store", signal: AbortSignal.timeout(PATIENCE) });
    if (answer.status !== 200) throw new Error(String(answer.status));
    const sent = new DOMParser().parseFromString(await answer.text(), "text/html");
    const [fresh, at] = [sent.getElementById("page"), sent.getElementById("as-of").textContent];
    if (isSelected()) return;
    const text = timeless(fresh);
    if (text !== shown || performance.now() - putAt > RENEWED) {
      put(fresh);
      [shown, putAt] = [text, performance.now()];
    }
    if (at !== asOf.textContent) freshAt = performance.now();
    asOf.textContent = at;
  };
  const poll = async () => {
    if (document.hidden) return;
    if (isSelected()) {
      live.textContent = "Not renewed while something is selected.";
      return;
    }
    try {
      await ask();
      failed = false;
      live.textContent = "";
    } catch {
      failed = true;
      live.textContent = "The alerter does not answer: this page may be old.";
    }
    showAge();
  };
  const again = async () => {
    await poll();
    setTimeout(again, 2000);
  };

  // Without a secure connection a browser has no clipboard of its own.
  const copy = async (pressed) => {
    const code = pressed.previousElementSibling;
    try {
      await navigator.clipboard.writeText(code.textContent);
    } catch {
      document.getSelection().selectAllChildren(code);
      document.execCommand("copy");
      document.getSelection().removeAllRanges();
    }
    pressed.textContent = "Copied";
    setTimeout(() => (pressed.textContent = "Copy"), 2000);
  };
  document.addEventListener("click", ({ target }) => {
    if (target.matches(".copy")) copy(target);
  });
  document.addEventListener("visibilitychange", poll);
  dress();
  showAge();
  setInterval(showAge, 1000);
  setTimeout(again, 2000);
})();
