// Keeps the page up to date: asks for what changes every two seconds while somebody looks.
"use strict";
(() => {
  const main = document.getElementById("page");
  const live = document.getElementById("live");
  let tag = "";
  const look = async () => {
    if (document.hidden) return;
    try {
      const answer = await fetch("/fragment", { headers: tag ? { "If-None-Match": tag } : {}, cache: "no-store" });
      if (answer.status === 200) {
        tag = answer.headers.get("ETag") || "";
        const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
        main.replaceChildren(...fresh.body.childNodes);
      } else if (answer.status !== 304) {
        throw new Error(String(answer.status));
      }
      live.textContent = "";
    } catch {
      live.textContent = "The alerter does not answer: what stands here may be old.";
    }
  };
  const again = async () => {
    await look();
    setTimeout(again, 2000);
  };
  document.addEventListener("visibilitychange", look);
  setTimeout(again, 2000);
})();
