// What makes the page live. Every page works without it: links, forms, tables. Runs under script-src 'self'.
"use strict";
const $ = (one, root = document) => root.querySelector(one);
const all = (many, root = document) => [...root.querySelectorAll(many)];

// Times: the server writes UTC, a reader has a clock of their own.
const local = (root) => all("time[data-form]", root).forEach((one) => {
  const at = new Date(one.dateTime);
  if (Number.isNaN(+at)) return;
  const time = at.toLocaleTimeString("en-GB");
  one.textContent = one.dataset.form === "time" ? time : `${at.toLocaleDateString("en-CA")} ${time}`;
  one.title = at.toString();
  delete one.dataset.form;
});

// Charts read the table beside them. Colours come from CSS, so that a theme change needs a redraw only.
const colour = (cls, name) => {
  const probe = document.createElement("i");
  probe.className = cls;
  probe.hidden = true;
  document.body.append(probe);
  probe.style.color = `var(${name})`;
  const value = getComputedStyle(probe).color;
  probe.remove();
  return value;
};
const units = { int: (v) => v.toLocaleString("en"), ms: (v) => (v >= 1000 ? `${v / 1000} s` : `${v} ms`) };
const charts = new Map();
const draw = (root) => {
  charts.get(root.id)?.destroy();
  const table = $("table", root);
  const heads = [...table.tHead.rows[0].cells].slice(1);
  const rows = [...table.tBodies[0].rows];
  const data = [rows.map((r) => +r.cells[0].dataset.t), ...heads.map((_, k) => rows.map((r) => +r.cells[k + 1].textContent))];
  const stacked = root.dataset.plot === "stack", area = root.dataset.plot === "area";
  const shown = stacked ? data.map((col, k) => (k ? col.map((_, i) => data.slice(1, k + 1).reduce((a, c) => a + c[i], 0)) : col)) : data;
  const order = heads.map((_, k) => k);
  if (stacked) order.reverse(); // tallest sum first, so that the lower ones are drawn over it
  const ink = colour("", "--ink-3"), grid = colour("", "--grid");
  const series = order.map((k) => ({
    label: heads[k].textContent,
    stroke: stacked ? undefined : colour(heads[k].className, "--v-mark"),
    fill: stacked ? colour(heads[k].className, "--v-mark") : area ? colour("", "--plot-1-fill") : undefined,
    width: stacked ? 0 : 1.5,
    points: { show: false },
    paths: stacked ? uPlot.paths.bars({ size: [0.6, 12], gap: 0 }) : undefined,
  }));
  const format = units[root.dataset.fmt] ?? units.int;
  const axis = { stroke: ink, font: `11px ${getComputedStyle(document.body).fontFamily}`, ticks: { show: false }, grid: { stroke: grid, width: 1 } };
  root.classList.add("on");
  const box = $(".canvas", root);
  box.replaceChildren();
  const clock = (s) => new Date(s * 1000).toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit" });
  charts.set(root.id, new uPlot({
    width: box.clientWidth, height: box.clientHeight, legend: { show: false }, padding: [8, 18, 0, 0],
    cursor: { y: false, points: { size: 6 } }, scales: { y: { range: (_, __, max) => [0, max * 1.1 || 1] } },
    axes: [{ ...axis, grid: { show: false }, space: 70, size: 24, values: (_, t) => t.map(clock) },
      { ...axis, size: 48, space: root.classList.contains("low") ? 24 : 34, incrs: root.dataset.fmt === "int" ? [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 5000, 10000] : undefined, values: (_, t) => t.map(format) }],
    series: [{}, ...series],
  }, [shown[0], ...order.map((k) => shown[k + 1])], box));
};
const redraw = () => all("[data-plot]").forEach(draw);

// The word in the bar tells the truth: Live, Paused, Reconnecting.
const bar = $("#live");
let held = [], paused = false, connected = false;
const tell = () => {
  if (!bar) return;
  bar.hidden = false;
  const waits = held.length;
  bar.className = `live soft${!connected ? " lost" : paused || waits ? " paused" : ""}`;
  bar.textContent = !connected ? "Reconnecting" : paused || waits ? `Paused, ${waits} new` : "Live";
};

// Live rows. They wait while somebody points at, focuses or has scrolled the table.
const rows = $("#rows");
const busy = () => paused || rows.matches(":hover") || rows.contains(document.activeElement) || rows.closest(".scroll").scrollTop > 0;
const put = (row) => {
  const old = document.getElementById(row.id);
  if (old) old.replaceWith(row); else rows.prepend(row);
  local(row);
  setTimeout(() => row.classList.remove("fresh"), 2000);
};
const flush = () => {
  if (!rows || busy()) return;
  held.forEach(put);
  held = [];
  while (rows.rows.length > 200) rows.lastElementChild.remove();
  $("#none-yet")?.remove();
  tell();
};
if (rows?.dataset.live) {
  document.addEventListener("rows", (event) => {
    const box = document.createElement("template");
    box.innerHTML = `<table><tbody>${event.detail.data}</tbody></table>`;
    const fresh = all("tr", box.content);
    const ids = new Set(fresh.map((row) => row.id));
    held = [...held.filter((row) => !ids.has(row.id)), ...fresh].slice(-200);
    flush();
    tell();
  });
  // htmx looks through the page as soon as it is there, and its part for streams may come later: on a slow
  // line it would not know this attribute yet. Timers come in their order, so this one is after that look.
  setTimeout(() => { rows.setAttribute("hx-sse:connect", rows.dataset.live); htmx.process(rows); });
  document.addEventListener("htmx:sse:after:connection", () => { connected = true; tell(); });
  ["htmx:sse:error", "htmx:sse:close", "htmx:sse:before:connection"].forEach((name) => document.addEventListener(name, () => { connected = false; tell(); }));
  setInterval(flush, 500);
  const button = $("#pause");
  button.hidden = false;
  button.addEventListener("click", () => {
    paused = !paused;
    button.setAttribute("aria-pressed", paused);
    flush();
    tell();
  });
}

// Panels that are read again from time to time; never in a hidden tab, never under an open menu or a selection.
// What had the focus has it again: it is known by its address, its label or its words.
const panel = $("[data-refresh]");
const known = (one) => [one.tagName, one.id || one.getAttribute("href") || one.ariaLabel || one.textContent].join(" ");
const focused = () => (panel.contains(document.activeElement) ? known(document.activeElement) : "");
const refocus = (name) => { if (name) all("a, button, summary, [tabindex]", panel).find((one) => known(one) === name)?.focus({ preventScroll: true }); };
const again = async () => {
  if (document.hidden || paused || panel.contains(document.activeElement) && document.activeElement.matches("input, textarea, select")) return;
  try {
    const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
    if (!answer.ok || answer.redirected) throw new Error(answer.status);
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const fresh = page.getElementById(panel.id);
    if (!fresh) return location.reload(); // there is something else to see now
    const open = new Set(all("details[open]", panel).map((one) => one.id).filter(Boolean));
    const focus = focused();
    panel.replaceChildren(...fresh.childNodes);
    open.forEach((id) => document.getElementById(id)?.setAttribute("open", ""));
    refocus(focus);
    htmx.process(panel);
    local(panel);
    charts.clear();
    redraw();
    connected = true;
  } catch { connected = false; }
  tell();
};
if (panel) {
  connected = true;
  tell();
  setInterval(again, 1000 * +panel.dataset.refresh);
}

// Filters answer at once.
const filters = $("#filters");
filters?.addEventListener("change", (event) => { if (event.target.matches("input[type=radio], select")) filters.requestSubmit(); });

// The theme is a cookie that the server reads: no flash at the next page.
$("[data-theme-form]")?.addEventListener("submit", (event) => {
  event.preventDefault();
  const root = document.documentElement, form = event.currentTarget;
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
  const body = new URLSearchParams(new FormData(form));
  body.set("theme", root.dataset.theme);
  fetch(form.action, { method: "POST", body, redirect: "manual" });
  redraw();
});

// Keys. Single letters only outside of fields, and not if they were switched off in Settings.
const places = { o: "/", c: "/calls", t: "/tasks", a: "/approvals", n: "/agents", l: "/tools", s: "/servers", p: "/policy", u: "/audit" };
const links = () => all("main .list tbody a.open, main .queue a");
const step = (by) => {
  const found = links(), at = found.indexOf(document.activeElement);
  found[Math.max(0, Math.min(found.length - 1, at < 0 ? 0 : at + by))]?.focus();
};
const off = document.cookie.split("; ").includes("openfang_keys=off");
let going = false;
const acts = {
  "/": () => $("#jump")?.focus(),
  "?": () => $("#keys-help").showModal(),
  j: () => step(1),
  k: () => step(-1),
  f: () => $("#filters input[type=search], [data-filter]")?.focus(),
  p: () => $("#pause")?.click(),
  a: () => { const go = $("[data-answer=allow]"); if (go) go.dataset.careful ? go.focus() : go.click(); },
  d: () => $("[data-answer=deny]")?.click(),
  "[": () => $("[data-chain=before]")?.click(),
  "]": () => $("[data-chain=after]")?.click(),
};
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") { $("[data-stop]")?.click(); if (document.activeElement?.matches("input, textarea")) document.activeElement.blur(); return; }
  if (off || event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, textarea, select, dialog[open]")) return;
  if (going) {
    going = false;
    if (places[event.key]) { event.preventDefault(); location.assign(places[event.key]); }
    return;
  }
  if (event.key === "g") { going = true; setTimeout(() => { going = false; }, 1500); return; }
  const act = acts[event.key];
  if (act) { event.preventDefault(); act(); }
});

local(document);
redraw();
addEventListener("resize", () => requestAnimationFrame(redraw));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);

// A talk with an agent: words and calls as they come. Without a script the form waits for the whole answer.
const composer = $("#composer"), talk = $("#talk");
const make = (tag, cls, text) => {
  const one = document.createElement(tag);
  if (cls) one.className = cls;
  if (text !== undefined) one.textContent = text;
  return one;
};
const mark = (kind) => {
  const box = document.createElementNS("http://www.w3.org/2000/svg", "svg"), use = document.createElementNS("http://www.w3.org/2000/svg", "use");
  box.setAttribute("class", "i");
  box.setAttribute("viewBox", "0 0 16 16");
  box.setAttribute("aria-hidden", "true");
  use.setAttribute("href", `#i-v-${kind}`);
  box.append(use);
  return box;
};
const verdict = (kind, word) => {
  const one = make("span", `v ${kind} flat`);
  one.append(mark(kind), word);
  return one;
};
const turn = (who, bot) => {
  const one = make("div", "turn"), face = make("span", bot ? "who bot" : "who", who.slice(0, 2)), head = make("header");
  face.setAttribute("aria-hidden", "true");
  head.append(make("b", bot ? "mono" : "", who));
  one.append(face, head);
  talk.append(one);
  return one;
};
const ends = { ok: ["allow", "Allowed"], denied: ["deny", "Denied"], refused: ["deny", "Denied"], waits: ["ask", "Waiting"], parked: ["ask", "Waiting"] };
const listen = async (body, heard) => {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let left = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const blocks = (left + value).split("\n\n");
    left = blocks.pop();
    for (const block of blocks) {
      const name = /^event: (.*)$/m.exec(block), data = /^data: (.*)$/m.exec(block);
      if (name && data) heard(name[1], JSON.parse(data[1]));
    }
  }
};
if (composer) {
  const field = $("textarea", composer), stop = $("[data-stop]", composer), send = $(".go", composer);
  field.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) { event.preventDefault(); composer.requestSubmit(); }
  });
  composer.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (send.disabled || !field.value.trim()) return;
    const body = new URLSearchParams(new FormData(composer)), ending = new AbortController();
    $("#no-turns")?.remove();
    turn("you", false).append(make("div", "say pre", field.value));
    field.value = "";
    const answer = turn(composer.action.split("/").pop(), true), calls = new Map();
    let say = null;
    const busy = (on) => {
      talk.setAttribute("aria-busy", on);
      $("#answering").hidden = !on;
      stop.hidden = !on;
      send.disabled = on;
    };
    const note = (kind, text, href) => {
      const one = make("div", `note ${kind}`), words = make("div", "", text);
      one.setAttribute("role", "alert");
      one.append(mark(kind), words);
      if (href) { const link = make("a", "btn", "Look and answer"); link.href = href; one.append(link); }
      answer.append(one);
    };
    const heard = (name, told) => {
      if (name === "words") {
        if (!say) { say = make("div", "say pre"); answer.append(say); }
        say.textContent += told.text;
      } else if (name === "wanted") {
        say = null;
        const box = make("div", "tool run"), more = make("details"), line = make("summary"), inside = make("div");
        line.append(verdict("run", "Running"), make("code", "grow cut", told.tool));
        inside.append(make("pre", "hash", JSON.stringify(told.arguments, null, 2)));
        more.append(line, inside);
        box.append(more);
        answer.append(box);
        calls.set(told.id, box);
      } else if (name === "made") {
        const box = calls.get(told.id), [kind, word] = ends[told.outcome] ?? ["failed", "Failed"];
        if (!box) return;
        box.className = `tool ${kind}`;
        $(".v", box).replaceWith(verdict(kind, word));
        $("details > div", box).append(make("pre", "hash", told.text));
        $("details", box).open = kind !== "allow";
        if (told.audit) { const link = make("a", "mono", `#${told.audit.start.toLocaleString("en")}`); link.href = `/audit?record=${told.audit.start}`; box.append(link); }
      } else if (name === "result" && !answer.querySelector(".say")) {
        answer.append(make("div", "say pre", told.response));
      } else if (name === "problem") {
        note(told.approval ? "ask" : "deny", told.detail, told.approval && `/approvals/${told.approval}`);
      }
      scrollTo(0, document.body.scrollHeight);
    };
    stop.onclick = () => ending.abort();
    busy(true);
    try {
      const reply = await fetch(composer.dataset.stream, { method: "POST", body, signal: ending.signal, headers: { Accept: "text/html" } });
      if (!reply.ok) throw new Error(`The node answered with ${reply.status}.`);
      await listen(reply.body, heard);
    } catch (error) { note("failed", error.name === "AbortError" ? "Stopped." : error.message); }
    busy(false);
    field.focus();
  });
}
