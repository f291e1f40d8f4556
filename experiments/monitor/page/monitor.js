"use strict";
// Shows the sessions of each event. All text goes through textContent, since names come from the network.

const POINTS = 120;
const LEAST_SILENCE = 3500;
const cards = new Map();
const histories = new Map();
const meanings = new Map();
const counter = ["counter", "", ""];
let heardAt = Date.now();

const make = (tag, text, className) => {
  const element = document.createElement(tag);
  if (text !== undefined) element.textContent = text;
  if (className) element.className = className;
  return element;
};

const scaled = (value, unit) => {
  const prefixes = ["", "k", "M", "G", "T"];
  let place = 0;
  while (Math.abs(value) >= 999.5 && place < prefixes.length - 1) {
    value /= 1000;
    place += 1;
  }
  return `${Number(value.toPrecision(4))} ${prefixes[place]}${unit}`.trim();
};

const words = (name) => name.replaceAll("_", " ").replace(/\b(n?acks)\b/g, (word) => word === "nacks" ? "NACKs" : "ACKs")
  .replace(/\b(grtt|rtt|clr)\b/g, (word) => word.toUpperCase());

const valueText = (value, [, unit]) => {
  if (unit === "bytes") return scaled(value, "B");
  if (unit === "bytes/s") return scaled(value * 8, "bit/s");
  if (unit === "ratio") return `${Number((value * 100).toPrecision(3))} %`;
  if (unit === "seconds") return value >= 1 || value === 0 ? `${Number(value.toPrecision(4))} s` : `${Number((value * 1000).toPrecision(4))} ms`;
  return String(Number(value.toPrecision(10)));
};

const rateText = (rate, [, unit]) => (unit === "bytes" ? scaled(rate * 8, "bit/s") : `${Number(rate.toPrecision(4))}/s`);

const table = (heads, rows) => {
  const box = make("div", undefined, "scroll");
  const element = box.appendChild(make("table"));
  const head = element.appendChild(make("thead")).appendChild(make("tr"));
  for (const text of heads) head.appendChild(make("th", text)).scope = "col";
  const body = element.appendChild(make("tbody"));
  for (const cells of rows) {
    const row = body.appendChild(make("tr"));
    for (const text of cells) row.appendChild(make("td", text));
  }
  return box;
};

const chart = (name, points, measure) => {
  const figure = make("figure");
  const caption = figure.appendChild(make("figcaption"));
  caption.append(make("span", words(name)), make("b", points.length ? rateText(points[points.length - 1], measure) : "-"));
  const svg = figure.appendChild(document.createElementNS("http://www.w3.org/2000/svg", "svg"));
  svg.setAttribute("viewBox", `0 0 ${POINTS - 1} 100`);
  svg.setAttribute("preserveAspectRatio", "none");
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", `${words(name)}, the last ${POINTS} seconds`);
  const most = Math.max(...points, 1e-9);
  const line = document.createElementNS("http://www.w3.org/2000/svg", "polyline");
  const begin = POINTS - points.length;
  line.setAttribute("points", points.map((value, at) => `${begin + at},${(98 - (96 * value) / most).toFixed(2)}`).join(" "));
  svg.appendChild(line);
  return figure;
};

const meaning = (session, name) => meanings.get(session.id)[name] || counter;

const partsOf = (snapshot, kind, found = []) => {
  if (snapshot.part === kind) found.push(snapshot);
  for (const part of snapshot.parts || []) partsOf(part, kind, found);
  return found;
};

const sameShape = (snapshot, rates, kind) => {
  const all = partsOf(rates, kind);
  return partsOf(snapshot, kind).map((part, at) => [part, all[at] || {}]);
};

const partTables = (session, measures) => {
  const found = [];
  const kinds = [...new Set((session.parts || []).map((part) => part.part))];
  for (const kind of kinds) {
    const parts = session.parts.filter((part) => part.part === kind);
    const states = [...new Set(parts.flatMap((part) => Object.keys(part.states || {})))];
    const names = [...new Set(parts.flatMap((part) => Object.keys(part.values || {}).filter((name) => part.values[name])))];
    if (!states.length && !names.length) continue;
    const rows = parts.map((part) => [
      part.name || "-",
      ...states.map((name) => (part.states || {})[name] || ""),
      ...names.map((name) => (name in (part.values || {}) ? valueText(part.values[name], measures[name] || counter) : "")),
    ]);
    found.push(make("h3", kind), table([kind, ...states, ...names.map(words)], rows));
    for (const part of parts) {
      if ((part.parts || []).length) found.push(...inner(part, measures));
    }
  }
  return found;
};

const inner = (part, measures) => {
  const [title, ...rest] = partTables(part, measures);
  if (title) title.textContent = `${title.textContent} of ${part.part} ${part.name || ""}`;
  return title ? [title, ...rest] : [];
};

const fill = (card, session) => {
  const history = histories.get(session.id);
  const pieces = [make("h2", `${session.command || "session"} (process ${session.pid})`)];
  const names = Object.keys(session.charted);
  const charts = make("div", undefined, "charts");
  for (const name of names) {
    charts.appendChild(chart(name, history.map((point) => point[name] || 0), meaning(session, name)));
  }
  for (const [snapshot, rates] of sameShape(session.statistics, session.rates, "session")) {
    const about = [snapshot.name, ...Object.values(snapshot.states || {})].filter(Boolean).join(", ");
    pieces.push(make("p", `${about}, ${Number(session.time.toFixed(1))} s`, "about"));
    if (charts.children.length && !charts.parentNode) pieces.push(charts);
    const rows = Object.entries(snapshot.values || {}).filter(([, value]) => value).map(([name, value]) => {
      const rate = (rates.values || {})[name];
      return [words(name), rate === undefined ? "" : rateText(rate, meaning(session, name)), valueText(value, meaning(session, name))];
    });
    pieces.push(make("h3", "session"), table(["measure", "now", "total"], rows), ...partTables(snapshot, meanings.get(session.id)));
  }
  card.replaceChildren(...pieces);
};

const show = (sessions) => {
  const main = document.getElementById("sessions");
  for (const session of sessions) {
    const known = histories.get(session.id) || [];
    if (session.measures) meanings.set(session.id, session.measures);
    if (session.history) known.splice(0, known.length, ...session.history.map(([, rates]) => rates));
    else known.push(session.charted);
    known.splice(0, Math.max(0, known.length - POINTS));
    histories.set(session.id, known);
    if (!cards.has(session.id)) cards.set(session.id, main.appendChild(make("article")));
    fill(cards.get(session.id), session);
  }
  const present = new Set(sessions.map((session) => session.id));
  for (const [id, card] of cards) {
    if (present.has(id)) continue;
    card.remove();
    cards.delete(id);
    histories.delete(id);
    meanings.delete(id);
  }
};

const tell = (text, isGone) => {
  const status = document.getElementById("status");
  if (status.textContent !== text) status.textContent = text;
  status.className = isGone ? "gone" : "";
};

const events = new EventSource("/events");
events.onmessage = (event) => {
  heardAt = Date.now();
  const { sessions } = JSON.parse(event.data);
  show(sessions);
  tell(sessions.length === 1 ? "1 session" : `${sessions.length || "no"} sessions`, false);
  document.documentElement.dataset.ready = "yes";
};
events.onerror = () => tell("the monitor does not answer", true);
setInterval(() => { if (Date.now() - heardAt > LEAST_SILENCE) tell("the monitor does not answer", true); }, 1000);
