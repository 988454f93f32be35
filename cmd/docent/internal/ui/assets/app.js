// The page of docent ui. Everything that nodes say is written as text: by textContent and by
// attributes that hold no code.
"use strict";

const views = [["locks", "Locks"], ["waits", "Waits"], ["elections", "Elections"], ["groups", "Groups"],
  ["tree", "Tree"], ["sessions", "Sessions"], ["servers", "Servers"]];
const part = { lock: "locks", session: "sessions" };
const byId = (id) => document.getElementById(id);

// el makes an element. Children are elements or texts.
function el(tag, attrs, ...children) {
  const e = document.createElement(tag);
  for (const [k, v] of Object.entries(attrs || {})) {
    if (k === "click") e.addEventListener("click", v);
    else if (v !== undefined && v !== null && v !== false) e.setAttribute(k, v === true ? "" : v);
  }
  e.append(...children.filter((c) => c !== undefined && c !== null && c !== ""));
  return e;
}

function link(view, at, text, more) {
  return el("a", { href: "#/" + view + (at === undefined ? "" : "?at=" + encodeURIComponent(at)), ...more }, text);
}

// The token of --allow-actions stands behind the # of the address that docent prints, so that no
// server and no other site sees it.
function takeToken() {
  const m = /^#token=([A-Za-z0-9_-]+)$/.exec(location.hash);
  if (!m) return;
  localStorage.setItem("token", m[1]);
  history.replaceState(null, "", "#/locks");
}

// ---- time

let skew = 0; // the clock of docent, less that of the browser
const clock = () => Date.now() + skew;

function ago(ms) {
  const s = Math.max(0, Math.floor(ms / 1000));
  const two = (n) => String(n).padStart(2, "0");
  if (s < 60) return s + "s";
  if (s < 3600) return Math.floor(s / 60) + "m" + two(s % 60) + "s";
  if (s < 172800) return Math.floor(s / 3600) + "h" + two(Math.floor(s / 60) % 60) + "m";
  return Math.floor(s / 86400) + "d" + two(Math.floor(s / 3600) % 24) + "h";
}

// atMost is an upper bound of an age: ago cuts off what is not a whole unit.
const atMost = (ms) => ago(ms + (ms < 3600000 ? 999 : ms < 172800000 ? 59999 : 3599999));

// held is an age with a lower and an upper bound, in a few characters and in words.
function held(from, by, now) {
  if (!by) return ["?", "since when is not known"];
  const least = Math.max(0, now - by), most = from ? now - from : Infinity;
  if (most - least < 1000) return [ago(least), "since " + when(by)];
  if (most - least < 2000 || most - least < least / 20) return [ago(least), "for at least " + ago(least) + " and at most " + atMost(most)];
  if (most === Infinity) return ["≥ " + ago(least), "for at least " + ago(least)];
  if (least < 1000) return ["≤ " + atMost(most), "for at most " + atMost(most)];
  return ["≥ " + ago(least), "for at least " + ago(least) + " and at most " + atMost(most)];
}

// when is a time of today as such, else with its day.
function when(ms) {
  const t = new Date(ms), day = t.toLocaleDateString("sv");
  return (day === new Date(clock()).toLocaleDateString("sv") ? "" : day + " ") + t.toLocaleTimeString("sv");
}

function age(since) {
  return since ? el("span", { "data-since": since, title: "since " + when(since) }) : el("span", { class: "dim" }, "-");
}

function heldAge(span) {
  return el("span", { "data-from": span.from, "data-by": span.by });
}

// tick writes the ages. They go on without a word from docent, unless there is no connection.
function tick() {
  const now = frozen || clock();
  for (const e of document.querySelectorAll("[data-since]")) put(e, ago(now - Number(e.dataset.since)));
  for (const e of document.querySelectorAll("[data-by]")) {
    const [short, long] = held(Number(e.dataset.from), Number(e.dataset.by), now);
    put(e, short);
    e.title = long;
  }
  for (const e of document.querySelectorAll("tr[data-wait]")) {
    e.className = now - Number(e.dataset.wait) < stuckAfter ? "queue" : "stuck";
  }
  const open = source && source.readyState === EventSource.OPEN;
  if (heard && Date.now() - heard > (open ? 4000 : 1500)) sayGone();
}

const stuckAfter = 60000; // a lock on which somebody waits for so long is marked

function put(e, text) {
  if (e.textContent !== text) e.textContent = text;
}

// ---- the stream

let source = null, heard = 0, frozen = 0, route = null, status = null, picture = null, drawn = "", busy = false;

function parse() {
  const [name, rest] = location.hash.replace(/^#\/?/, "").split(/\?(.*)/s);
  const params = new URLSearchParams(rest || "");
  const view = views.some(([v]) => v === name) || part[name] ? name : "locks";
  return { view, at: params.get("at") || "", q: params.get("q") || "" };
}

function go() {
  takeToken();
  route = parse();
  if (source) source.close();
  picture = null;
  drawn = "";
  if (document.activeElement !== byId("search")) byId("search").value = route.q;
  byId("view").replaceChildren(el("p", { class: "dim" }, "Nothing is read yet."));
  drawNav();
  const params = new URLSearchParams({ view: route.view });
  if (route.at) params.set("at", route.at);
  if (route.q) params.set("q", route.q);
  source = new EventSource("events?" + params);
  source.addEventListener("picture", (e) => { picture = JSON.parse(e.data); heard = Date.now(); draw(); });
  source.addEventListener("status", (e) => { heard = Date.now(); say(JSON.parse(e.data)); });
  source.addEventListener("error", () => {
    if (!heard) heard = Date.now() - 3000;
    if (source.readyState === EventSource.CLOSED) { // it was refused: try again
      const mine = source;
      setTimeout(() => { if (source === mine) go(); }, 2000);
    }
  });
}

function drawNav() {
  const here = part[route.view] || route.view;
  byId("nav").replaceChildren(...views.map(([v, name]) =>
    link(v, undefined, name, { "aria-current": v === here ? "page" : undefined })));
  document.title = (route.at || here) + " – docent";
}

function banner(level, text) {
  const p = byId("state");
  p.className = level;
  put(p, text);
  byId("view").classList.toggle("old", level === "bad");
}

function sayGone() {
  if (!frozen) frozen = clock();
  banner("bad", "docent ui does not answer since " + when(heard) + ". What follows is old. This page tries again.");
}

function say(s) {
  status = s;
  skew = s.now - Date.now();
  const old = s.asof ? " What follows was seen at " + when(s.asof) + "." : "";
  frozen = s.state === "lost" || s.state === "late" || s.state === "connecting" ? s.asof || s.now : 0;
  const after = s.since ? " for " + ago(s.now - s.since) : "";
  switch (s.state) {
    case "connecting":
      if (!s.since || s.now - s.since < 2000) { banner("", "Connecting…" + old); break; }
      banner("bad", "No connection to ZooKeeper yet" + after + "." + old + (s.detail ? " " + s.detail : ""));
      break;
    case "lost":
      banner("bad", "No connection to ZooKeeper since " + when(s.since) + "," + after + "." + old + (s.detail ? " (" + s.detail + ")" : ""));
      break;
    case "late":
      banner("bad", s.server + " has not answered" + after + "." + old);
      break;
    case "reading":
      banner("warn", "Reading: " + s.nodes + " nodes so far, " + s.left + " to go.");
      break;
    default:
      banner(s.full ? "warn" : "", (s.full ? "There are more nodes than docent ui reads: start it for a directory below. " : "") +
        "Live · " + s.server + " · " + s.product + " · " + s.locks + (s.locks === 1 ? " lock, " : " locks, ") + s.nodes + " nodes below " + s.top +
        " · " + s.requests + " requests" + (s.actions ? " · actions allowed" : ""));
  }
  draw();
  tick();
}

// ---- tables

// table makes a table. A column is [heading, cell, class].
function table(columns, rows, attrs) {
  return el("table", {}, el("thead", {}, el("tr", {}, ...columns.map(([h]) => el("th", { scope: "col" }, h)))),
    el("tbody", {}, ...rows.map((r) => el("tr", attrs ? attrs(r) : {},
      ...columns.map(([h, cell, cls]) => el("td", { class: cls, "data-th": h }, cell(r)))))));
}

function more(n, hint) {
  return n > 0 ? el("p", { class: "dim" }, "and " + n + " more" + (hint ? ": " + hint : "")) : "";
}

const nothing = (text) => el("p", { class: "dim" }, text);

function who(c) {
  if (!c) return "";
  const at = c.hostname ? c.hostname + (c.host ? " (" + c.host + ")" : "") : c.host;
  const name = [c.id || c.client, at ? (c.id || c.client ? "on " : "") + at : "", c.pid ? "pid " + c.pid : ""].filter(Boolean).join(" ");
  if (name) return name;
  return c.unread ? "…" : c.hidden ? "may not be read" : c.session ? "session " + c.session : c.node;
}

// ---- views

function drawLocks(p) {
  const elections = p.view === "elections";
  const columns = [
    [elections ? "Election" : "Lock", (l) => link("lock", l.path, l.show), "path"],
    elections ? ["Leader", (l) => who(l.holder), "long"] : ["Holder", (l) => who(l.holder) + (l.holders > 1 ? " and " + (l.holders - 1) + " more" : ""), "long"],
    [elections ? "Leads for" : "Held for", (l) => l.holder ? heldAge(l.holder.held) : "", "num"],
    ...(elections
      ? [["Term", (l) => l.holder && l.holder.token !== "0" ? l.holder.token : "", "num"], ["Candidates", (l) => String(l.waiters), "num"]]
      : [["Waiters", (l) => l.waiters ? String(l.waiters) : "", "num"], ["Longest wait", (l) => l.wait ? age(l.wait) : "", "num wait"], ["Kind", (l) => l.kind, "dim"]]),
  ];
  return [
    el("h1", {}, (elections ? "Elections" : "Locks") + " (" + p.total + ")"),
    p.locks ? table(columns, p.locks, (l) => !elections && l.wait ? { "data-wait": l.wait } : { class: l.holders ? "holds" : "waits" }) : nothing(route.q ? "Nothing has “" + route.q + "”." : "There are none."),
    more(p.more, "search for a path, a client, a host or a session"),
  ];
}

const words = {
  watched: (h) => "first seen" + (h.n ? ", with " + h.n + " waiting" : ""),
  queued: (h) => "stands in line", holds: (h) => "holds" + (h.token !== "0" ? ", token " + h.token : ""),
  left: (h) => "left after it had held: released, lost or evicted", ended: (h) => "left with all " + h.n + " nodes of its session: the session ended, or everything was released at once",
  evicted: () => "evicted from a page", "gave up": () => "gave up its place, or lost it", asked: () => "was asked to release",
  passed: (h) => h.n + " came and went", vanished: () => "nobody is there any more",
};

function drawLock(p) {
  const acts = status && status.actions && localStorage.getItem("token");
  const election = p.kind === "latch";
  const columns = [
    ["", (c) => c.state === "holds" ? (election ? "leads" : "holds") : "waits"],
    ["Who", (c) => who(c), "long"],
    ["Held for", (c) => c.state === "holds" ? heldAge(c.held) : "", "num"],
    ["In line for", (c) => age(c.since), "num"],
    ["Mode", (c) => c.mode + (c.asked ? ", asked to release" : "") + (c.library && c.library !== "Docent" ? ", " + c.library : "")],
    ["Session", (c) => c.session ? link("session", c.session, c.session) : c.unread || c.hidden ? "" : "none: it stays", "num mono"],
    ["Token", (c) => c.token === "0" ? "" : c.token, "num"],
    ["Node", (c) => el("span", { title: c.library && "made by " + c.library }, c.node), "path"],
  ];
  if (acts) columns.push(["", (c) => el("span", {},
    election ? "" : el("button", { type: "button", click: () => confirmAct("ask", c) }, "Ask"), " ",
    el("button", { type: "button", class: "danger", click: () => confirmAct("evict", c) }, "Evict"))]);
  const past = (p.past || []).map((h) => el("tr", {},
    el("td", { class: "num", "data-th": "When", title: h.from && h.by - h.from > 1500 ? "between " + when(h.from) + " and " + when(h.by) : when(h.by) },
      (h.from && h.by - h.from > 1500 || !h.from && h.what !== "watched" ? "by " : "") + when(h.by)),
    el("td", { "data-th": "Who", class: "long" }, h.who),
    el("td", { "data-th": "What", class: "long" }, (words[h.what] || String)(h) + (h.n && !["watched", "ended", "passed"].includes(h.what) ? ", and " + h.n + " more did" : "")),
    el("td", { "data-th": "Session", class: "path" }, h.session ? link("session", h.session, h.session) : "")));
  return [
    el("h1", { class: "mono" }, p.show, " ", el("span", { class: "tag" }, p.kind || "no contender")),
    p.exists ? "" : nothing("Nobody holds this lock or waits for it, or no lock is there. "),
    p.exists ? "" : el("p", {}, link("tree", p.at, "Its node")),
    p.queue ? table(columns, p.queue, (c) => ({ class: c.state })) : "",
    more(p.more),
    status && status.actions && !acts ? nothing("To ask or to evict, open the address that docent ui has printed: it has the token.") : "",
    el("h2", {}, election ? "Terms and candidates" : "Timeline"),
    past.length ? el("table", {}, el("thead", {}, el("tr", {}, ...["When", "Who", "What", "Session"].map((h) => el("th", { scope: "col" }, h)))), el("tbody", {}, ...past))
      : nothing("Nothing has happened since docent ui looks. It looks while a page is open."),
  ];
}

function drawWaits(p) {
  const label = Object.fromEntries((p.parties || []).map((x) => [x.id, x.label]));
  const party = (id) => id.startsWith("0x") ? link("session", id, label[id] || id) : label[id] || id;
  return [
    el("h1", {}, "Who waits for whom, over several locks"),
    p.circles ? el("p", { class: "bad" }, p.circles + (p.circles === 1 ? " wait is" : " waits are") + " part of a circle. It is a deadlock if the same waits stay.")
      : nothing(p.total ? "No circle: no deadlock between sessions." : "No session that waits stands in several locks, so there is no deadlock between sessions. A lock shows its own line."),
    p.cut ? el("p", { class: "warn" }, "There are too many contenders to compare all: circles may be missing. docent deadlocks compares all.") : "",
    p.waits ? el("div", { class: "graph" }, graph(p, label)) : "",
    p.waits ? table([
      ["Waiter", (w) => party(w.waiter), "long"], ["waits for", (w) => party(w.holder), "long"],
      ["on", (w) => w.lock ? link("lock", w.lock, w.show) : "its command", "path"],
      ["for", (w) => age(w.since), "num"], ["", (w) => w.circle ? "circle" : ""],
    ], p.waits, (w) => ({ class: w.circle ? "stuck" : "waits" })) : "",
    more(p.more, "search for a lock or a session"),
  ];
}

// graph draws the waits in columns: whoever waits stands to the left of whom it waits for.
function graph(p, label) {
  const ids = (p.parties || []).map((x) => x.id), column = Object.fromEntries(ids.map((id) => [id, 0]));
  for (let round = 0, moved = true; moved && round < 12; round++) {
    moved = false;
    for (const w of p.waits) {
      if (column[w.holder] < column[w.waiter] + 1 && column[w.waiter] < 5 && !w.circle) { column[w.holder] = column[w.waiter] + 1; moved = true; }
    }
  }
  const circle = [...new Set(p.waits.filter((w) => w.circle).flatMap((w) => [w.waiter, w.holder]))];
  circle.forEach((id, i) => { if (i % 2) column[id] += 1; });
  const W = 210, H = 26, dx = 400, dy = 64, left = 90, rows = {}, at = {};
  for (const id of ids) {
    const c = column[id], r = rows[c] || 0;
    rows[c] = r + 1;
    at[id] = [left + c * dx, 20 + r * dy + (c % 2) * dy / 2];
  }
  const svg = (tag, attrs, text) => {
    const e = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [k, v] of Object.entries(attrs)) e.setAttribute(k, v);
    if (text !== undefined) e.textContent = text;
    return e;
  };
  const cut = (s, n) => [...s].length > n ? [...s].slice(0, n - 1).join("") + "…" : s;
  const width = left + 30 + W + dx * Math.max(0, ...Object.values(column)), height = 20 + dy * Math.max(1, ...Object.values(rows)) + dy / 2;
  const root = svg("svg", { class: "waits", width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": "Graph of waits; the table below has the same" });
  const told = {};
  for (const w of p.waits) {
    const [x1, y1] = at[w.waiter], [x2, y2] = at[w.holder], cls = w.circle ? "circle" : "";
    const key = [w.waiter, w.holder].sort().join(" "), n = told[key] = (told[key] || 0) + 1;
    const back = x2 <= x1, sx = back ? x1 : x1 + W, ex = back && x2 < x1 ? x2 + W : x2;
    const sy = y1 + H / 2 + (back ? 7 : -4), ey = y2 + H / 2 + (back ? 7 : -4), bend = Math.max(40, Math.abs(ex - sx) / 2);
    const c1 = back ? sx - bend : sx + bend, c2 = back && x2 < x1 ? ex + bend : ex - bend;
    root.append(svg("path", { d: `M${sx} ${sy} C${c1} ${sy} ${c2} ${ey} ${ex} ${ey}`, class: cls }));
    const tip = c2 > ex ? 7 : -7;
    root.append(svg("path", { d: `M${ex} ${ey} l${tip} -4 v8 z`, class: "head " + cls }));
    // The label stands near the waiter, where the curves of several waits are apart.
    const x = 0.579 * sx + 0.311 * c1 + 0.09 * c2 + 0.02 * ex, y = 0.89 * sy + 0.11 * ey;
    root.append(svg("text", { x, y: y + (back ? 13 : -5) + 11 * Math.floor((n - 1) / 2), "text-anchor": "middle", class: "on" }, cut(w.show || "its command", 26)));
  }
  for (const id of ids) {
    const [x, y] = at[id];
    root.append(svg("rect", { x, y, width: W, height: H, rx: 4 }));
    root.append(svg("text", { x: x + 8, y: y + 17 }, cut(label[id] || id, 28)));
  }
  return root;
}

function drawGroups(p) {
  return [el("h1", {}, "Groups and services (" + p.total + ")"),
    p.groups ? table([
      ["Directory", (g) => link("tree", g.path, g.show), "path"], ["Members", (g) => String(g.members), "num"],
      ["Names", (g) => g.names.join(", ") + (g.members > g.names.length ? ", and " + (g.members - g.names.length) + " more" : ""), "long"],
    ], p.groups) : nothing("No directory has nodes of sessions, beside locks."), more(p.more)];
}

function drawTree(p) {
  const crumbs = [];
  let at = "";
  for (const name of p.at.split("/").slice(1)) {
    if (!name) continue;
    at += "/" + name;
    crumbs.push("/", link("tree", at, name));
  }
  const n = p.node;
  return [el("h1", { class: "mono" }, link("tree", "/", "⌂"), " ", ...crumbs),
    !n ? nothing("This node does not exist, or docent ui does not read it.") : el("p", { class: "dim" },
      p.total + " children · " + n.size + " bytes" + (n.session ? " · of session " : ""), n.session ? link("session", n.session, n.session) : "",
      n.modified ? " · changed " + when(n.modified) : "", n.hidden ? " · may not be read" : ""),
    n && n.kind ? el("p", {}, link("lock", p.at, "The " + n.kind + " here")) : "",
    n && n.size ? el("pre", {}, p.data) : "",
    p.base64 ? el("p", { class: "dim" }, "in base64: it is no text") : "", p.cut ? el("p", { class: "dim" }, "The data is longer; this is its beginning.") : "",
    p.nodes ? table([
      ["Name", (c) => link("tree", c.path, c.name), "path"], ["Children", (c) => c.children ? String(c.children) : "", "num"],
      ["Bytes", (c) => c.size ? String(c.size) : "", "num"], ["Lock", (c) => c.kind ? link("lock", c.path, c.kind) : ""],
      ["Session", (c) => c.session ? link("session", c.session, c.session) : "", "path"],
      ["Changed", (c) => age(c.modified), "num"],
    ], p.nodes) : "", more(p.more)];
}

function drawSessions(p) {
  return [el("h1", {}, "Sessions with nodes (" + p.total + ")"),
    p.parties ? table([
      ["Session", (s) => link("session", s.id, s.id), "path"], ["Who", (s) => s.label, "long"], ["Holds", (s) => String(s.holds || ""), "num"],
      ["Waits", (s) => String(s.waits || ""), "num"], ["Longest wait", (s) => s.wait ? age(s.wait) : "", "num"], ["Nodes", (s) => String(s.nodes), "num"],
    ], p.parties) : nothing("There are none."), more(p.more)];
}

function drawSession(p) {
  return [el("h1", {}, "Session " + p.show),
    p.exists ? "" : nothing("It has no nodes: it has ended, or holds nothing."),
    p.locks ? table([
      ["", (l) => l.holder.state], ["Lock", (l) => link("lock", l.path, l.show), "path"], ["Kind", (l) => l.kind],
      ["Held for", (l) => l.holder.state === "holds" ? heldAge(l.holder.held) : "", "num"], ["In line for", (l) => age(l.holder.since), "num"],
      ["Others wait", (l) => l.waiters ? String(l.waiters) : "", "num"],
    ], p.locks, (l) => ({ class: l.holder.state })) : "",
    p.nodes ? el("h2", {}, "Other nodes") : "",
    p.nodes ? table([["Path", (n) => link("tree", n.path, n.show), "path"], ["Bytes", (n) => String(n.size), "num"]], p.nodes) : "", more(p.more)];
}

function drawServers(p) {
  return [el("h1", {}, "Servers"),
    p.servers ? table([
      ["Address", (s) => s.address, "path"],
      ["", (s) => status && s.address === status.server ? "docent ui reads from it" : ""],
      ["Mode", (s) => s.mode], ["Says", (s) => s.says || el("span", { class: "bad" }, "no answer to srvr"), "long"],
    ], p.servers) : nothing("Asking the servers…")];
}

const draws = {
  locks: drawLocks, elections: drawLocks, lock: drawLock, waits: drawWaits, groups: drawGroups, tree: drawTree,
  sessions: drawSessions, session: drawSession, servers: drawServers,
};

// unread tells a picture without anything from one of which nothing was read.
function unread() {
  return picture.view !== "servers" && (!status || !status.asof || status.state === "reading" && !picture.total && !picture.exists);
}

// draw draws the picture again if it is another one. While a button or a link is pressed, it waits.
function draw() {
  if (!picture || busy || unread()) return;
  const key = JSON.stringify(picture) + (status ? [status.actions, status.server] : "");
  if (key === drawn) return;
  drawn = key;
  byId("view").replaceChildren(...draws[picture.view](picture).filter((e) => e !== ""));
  tick();
}

// ---- actions

function confirmAct(what, c) {
  const lock = picture.at, box = byId("confirm"), said = el("p", { class: "bad" });
  const typed = el("input", { type: "text", "aria-label": "Type yes", autocomplete: "off", size: "6" });
  const done = () => { box.close(); };
  const run = el("button", { type: "button", class: what === "evict" ? "danger" : "" }, what === "evict" ? "Delete this node" : "Write the request");
  const allowed = () => { run.disabled = what === "evict" && typed.value !== "yes"; };
  typed.addEventListener("input", allowed);
  allowed();
  run.addEventListener("click", async () => {
    run.disabled = true;
    try {
      const r = await fetch("act", {
        method: "POST", headers: { "Content-Type": "application/json", "X-Docent-Token": localStorage.getItem("token") || "" },
        body: JSON.stringify({ do: what, lock, path: c.path, token: c.token, holds: c.state === "holds" }),
      });
      const text = (await r.text()).trim();
      if (r.ok) { box.replaceChildren(el("p", {}, text), el("div", { class: "row" }, el("button", { type: "button", click: done }, "Close"))); return; }
      put(said, text);
    } catch (e) {
      put(said, "docent ui does not answer: " + e.message);
    }
    allowed();
  });
  const row = (name, value) => [el("dt", { class: "dim" }, name), el("dd", { class: name === "Node" || name === "Lock" ? "mono" : "" }, value)];
  box.replaceChildren(el("h1", {}, what === "evict" ? "Delete this node?" : "Ask to release?"),
    el("dl", {}, ...row("Lock", picture.show), ...row("Node", c.node), ...row("Who", who(c)), ...row("State", c.state), ...row("Session", c.session || "none")),
    what === "ask" ? el("p", {}, "The request takes the place of the node's data. The holder decides; nothing is taken from it.")
      : c.state !== "holds" ? el("p", {}, "Its owner loses its place in line.")
        : el("p", { class: "warn" }, "It and the next holder may work at the same time. Ask first, or stop its process: then its node goes by itself." +
          (c.library && c.library !== "Docent" ? " A holder of " + c.library + " is not told at all." : "")),
    what === "evict" ? el("p", {}, "Type yes: ", typed) : "",
    said, el("div", { class: "row" }, el("button", { type: "button", click: done }, "Cancel"), run));
  box.showModal();
}

// ---- begin

const themes = ["", "dark", "light"];
function theme(t) {
  if (t) document.documentElement.dataset.theme = t; else delete document.documentElement.dataset.theme;
  localStorage.setItem("theme", t);
}

let typing = 0;
byId("search").addEventListener("input", (e) => {
  clearTimeout(typing);
  typing = setTimeout(() => {
    const view = part[route.view] || route.view, q = e.target.value.trim();
    const at = route.view === "tree" && route.at ? "at=" + encodeURIComponent(route.at) + "&" : "";
    location.replace("#/" + view + "?" + at + (q ? "q=" + encodeURIComponent(q) : ""));
  }, 250);
});
byId("theme").addEventListener("click", () => theme(themes[(themes.indexOf(document.documentElement.dataset.theme || "") + 1) % 3]));
addEventListener("keydown", (e) => {
  if (e.key === "/" && e.target.tagName !== "INPUT") { e.preventDefault(); byId("search").focus(); }
});
addEventListener("pointerdown", () => { busy = true; });
for (const up of ["pointerup", "pointercancel"]) addEventListener(up, () => { setTimeout(() => { busy = false; draw(); }, 50); });
addEventListener("hashchange", go);
addEventListener("pagehide", () => { if (source) source.close(); });
addEventListener("pageshow", (e) => { if (e.persisted) go(); });
theme(localStorage.getItem("theme") || "");
setInterval(tick, 500);
go();
