"use strict";
/* The report of a sweep: its figures, and the explorer, whose choices are in the address. */

/* -- figures --------------------------------------------------------------------------------------------------------------- */

REDRAW.push(() => { for (const figure of DATA.figures) show(byId("plot-" + figure.name), figure); });

/* -- explorer ---------------------------------------------------------------------------------------------------------- */

const NONE = "-", EXPLORED = "#explore?";
/* What the address ends with when it has the choices of the explorer. */
const SWITCHES = ["logx", "logy", "spread"];
const picked = { metric: 0, x: 0, lines: -1, held: {}, logx: false, logy: false, spread: false };

function choice(label, values, chosen, change) {
  const select = element("select", { onchange: (event) => { change(Number(event.target.value)); controls(); explore(); remember(); }, "aria-label": label });
  values.forEach(([value, text]) => select.append(element("option", { value, selected: value === chosen }, text)));
  return element("label", {}, label, select);
}

function check(label, key) {
  const box = element("input", { type: "checkbox", onchange: (event) => { picked[key] = event.target.checked; explore(); remember(); } });
  box.checked = picked[key];
  return element("label", { class: "check" }, box, label);
}

function controls() {
  const place = byId("controls");
  const axes = DATA.axes.map((axis, n) => [n, axis.name]).filter(([n]) => DATA.axes[n].leading);
  if (picked.lines === picked.x) picked.lines = -1;
  place.replaceChildren(
    choice("metric", DATA.metrics.map((metric, n) => [n, metric.label]), picked.metric, (n) => { picked.metric = n; }),
    choice("along x", axes, picked.x, (n) => { picked.x = n; picked.logx = DATA.axes[n].log; }),
    choice("lines by", [[-1, NONE], ...axes.filter(([n]) => n !== picked.x)], picked.lines, (n) => { picked.lines = n; }),
  );
  DATA.axes.forEach((axis, n) => {
    if (!axis.leading || n === picked.x || n === picked.lines) return;
    if (picked.held[n] === undefined) picked.held[n] = Math.floor(axis.values.length / 2);
    place.append(choice(axis.name, axis.texts.map((text, i) => [i, text]), picked.held[n], (i) => { picked.held[n] = i; }));
  });
  place.append(element("div", { class: "switches" }, check("log x", "logx"), check("log y", "logy"), check("5th to 95th percentile", "spread"),
    element("button", { type: "button", class: "link", onclick: (event) => copy(event.target, location.href.split("#")[0] + choices()) }, "Copy link")));
}

/* The choices as they stand in the address: names of metric and axes, so that a report made again understands them. */
function choices() {
  const params = new URLSearchParams({ metric: DATA.metrics[picked.metric].name, x: DATA.axes[picked.x].key });
  params.set("lines", picked.lines < 0 ? NONE : DATA.axes[picked.lines].key);
  DATA.axes.forEach((axis, n) => {
    if (axis.leading && n !== picked.x && n !== picked.lines) params.set(`at.${axis.key}`, axis.values[picked.held[n]]);
  });
  for (const key of SWITCHES) params.set(key, picked[key] ? "1" : "0");
  return EXPLORED + params;
}

function remember() {
  history.replaceState(null, "", choices());
}

/* Take the choices of the address, as far as this report has their names and values; tell whether there were any. */
function recall() {
  if (!location.hash.startsWith(EXPLORED)) return false;
  const params = new URLSearchParams(location.hash.slice(EXPLORED.length));
  const place = (list, key) => list.findIndex((item) => item === key);
  const keys = DATA.axes.map((axis) => (axis.leading ? axis.key : null));
  const metric = place(DATA.metrics.map((item) => item.name), params.get("metric")), x = place(keys, params.get("x"));
  if (metric >= 0) picked.metric = metric;
  if (x >= 0) { picked.x = x; picked.logx = DATA.axes[x].log; }
  if (params.has("lines")) picked.lines = place(keys, params.get("lines"));
  DATA.axes.forEach((axis, n) => {
    const value = place(axis.values.map(String), params.get(`at.${axis.key}`));
    if (value >= 0) picked.held[n] = value;
  });
  for (const key of SWITCHES) if (params.has(key)) picked[key] = params.get(key) === "1";
  return true;
}

function explore() {
  const x = DATA.axes[picked.x], lines = picked.lines < 0 ? null : DATA.axes[picked.lines], metric = DATA.metrics[picked.metric];
  const rows = DATA.points.filter((row) => row.metric === picked.metric && DATA.axes.every((axis, n) => !axis.leading || n === picked.x || n === picked.lines || row.keys[n] === picked.held[n]));
  const marks = [];
  (lines ? lines.values.map((_, i) => i) : [null]).forEach((value, number) => {
    const mine = rows.filter((row) => value === null || row.keys[picked.lines] === value).sort((a, b) => a.keys[picked.x] - b.keys[picked.x]);
    if (!mine.length) return;
    const label = lines ? (lines.numeric ? `${lines.name} ${lines.texts[value]}` : lines.texts[value]) : "";
    const at = mine.map((row) => x.values[row.keys[picked.x]]);
    marks.push({
      label, colour: number, theory: false, x: at, y: mine.map((row) => row.mean),
      low: mine.map((row) => (picked.spread ? row.p5 : row.low)), high: mine.map((row) => (picked.spread ? row.p95 : row.high)),
      hollow: mine.map((row) => row.hollow),
    });
    const known = mine.filter((row) => row.theory !== null);
    const formulas = [...new Set(known.map((row) => row.formula))];
    if (known.length) {
      marks.push({ label: [label, `theory ${formulas.join(", ")}`].filter(Boolean).join(", "), colour: number, theory: true, x: known.map((row) => x.values[row.keys[picked.x]]), y: known.map((row) => row.theory) });
    }
  });
  const categories = x.numeric ? null : x.values;
  show(byId("plot-explore"), {
    name: "explore", kind: "lines", x: { label: x.label, log: picked.logx && x.numeric, categories, ticks: picked.logx && x.log && x.values.length <= 12 ? x.values : [] }, y: { label: metric.label, log: picked.logy, categories: null },
    panels: [{ title: "", marks }], legend: [],
  });
  byId("explained").textContent = marks.length ? metric.help[0].toUpperCase() + metric.help.slice(1) + "." : "No point has these values.";
}

/* -- start of the explorer ------------------------------------------------------------------------------------------------- */

if (DATA.axes.length && DATA.points.length) {
  Object.assign(picked, DATA.start);
  picked.logx = DATA.axes[picked.x].log;
  const follow = () => { const found = recall(); controls(); if (found) byId("explore").scrollIntoView(); return found; };
  follow();
  window.addEventListener("hashchange", () => { if (follow()) explore(); });
  REDRAW.push(explore);
}
