// Keeps the page up to date, and adds what needs a script: its age, copying, filter and sort.
"use strict";
(() => {
  const byId = (id) => document.getElementById(id);
  const [main, live, asOf, age, icon] = ["page", "live", "as-of", "age", "icon"].map(byId);
  const [tools, filter, state, rows] = ["tools", "filter", "state", "rows"].map(byId);
  const PARTS = ["top", "rest"];
  // A poll that takes longer has failed: the page says so, and asks again.
  const PATIENCE = 5000;
  // What is older is said in red, even while the alerter answers.
  const OLD = 15000;
  const SETTLED = ["acknowledged", "dismissed", "cancelled"];
  let [tag, freshAt, failed] = ["", performance.now(), false];
  let sorted = { column: -1, isDown: false };

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

  const body = () => byId("marks")?.tBodies[0];
  const value = (row) => {
    const cell = row.cells[sorted.column];
    return cell ? (cell.dataset.value ?? cell.textContent.trim()) : "";
  };
  const sort = () => {
    const heads = byId("marks")?.tHead.rows[0].cells ?? [];
    [...heads].forEach((head, column) => {
      const order = sorted.isDown ? "descending" : "ascending";
      if (column === sorted.column) head.setAttribute("aria-sort", order);
      else head.removeAttribute("aria-sort");
    });
    if (!body() || sorted.column < 0) return;
    const compare = (one, other) => value(one).localeCompare(value(other), "en", { numeric: true });
    const all = [...body().rows].sort(compare);
    body().append(...(sorted.isDown ? all.reverse() : all));
  };

  const isWanted = (row) => {
    const { state: has } = row.dataset;
    const isState = !state.value || (state.value === "open" ? !SETTLED.includes(has) : state.value === has);
    return isState && row.textContent.toLowerCase().includes(filter.value.trim().toLowerCase());
  };
  const sift = () => {
    const all = [...(body()?.rows ?? [])];
    for (const row of all) row.hidden = !isWanted(row);
    rows.textContent = `${all.filter((row) => !row.hidden).length} of ${all.length} rows`;
    tools.hidden = all.length === 0;
  };

  const button = (text, key, label) => {
    const made = document.createElement("button");
    Object.assign(made, { type: "button", textContent: text });
    made.dataset.key = key;
    if (label) made.setAttribute("aria-label", label);
    return made;
  };
  // What the server sent, with what only a script can do.
  const dress = () => {
    const { title, icon: href } = byId("verdict").dataset;
    document.title = title;
    if (icon.getAttribute("href") !== href) icon.setAttribute("href", href);
    for (const code of document.querySelectorAll(".advice code")) {
      const copy = button("Copy", `copy ${code.textContent}`, `Copy ${code.textContent}`);
      copy.className = "copy";
      code.after(copy);
    }
    for (const head of document.querySelectorAll("th[data-sort]")) {
      const text = head.textContent;
      head.replaceChildren(button(text, `sort ${text}`));
    }
    sort();
    sift();
  };

  const put = (text) => {
    const fresh = new DOMParser().parseFromString(text, "text/html");
    const key = document.activeElement?.dataset?.key;
    const opened = [...document.querySelectorAll("details[open]")].map((one) => one.id);
    const scrolled = [...document.querySelectorAll(".wide")].map((one) => one.scrollLeft);
    for (const id of PARTS) byId(id).replaceWith(fresh.getElementById(id));
    for (const id of opened) byId(id)?.setAttribute("open", "");
    document.querySelectorAll(".wide").forEach((one, at) => (one.scrollLeft = scrolled[at] ?? 0));
    dress();
    if (key) document.querySelector(`[data-key="${CSS.escape(key)}"]`)?.focus({ preventScroll: true });
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
      put(text);
      tag = answer.headers.get("ETag") || "";
    }
    const at = answer.headers.get("As-Of");
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
    const head = target.closest("th[data-sort]");
    if (!head || !target.matches("button")) return;
    const column = head.cellIndex;
    sorted = { column, isDown: sorted.column === column && !sorted.isDown };
    sort();
  });
  tools.addEventListener("submit", (event) => event.preventDefault());
  tools.addEventListener("input", sift);
  document.addEventListener("visibilitychange", poll);
  dress();
  showAge();
  setInterval(showAge, 1000);
  setTimeout(again, 2000);
})();
