"use strict";
/* The page: theme, the explorer, the tables with their filters, and figures drawn again when theme or width change. */

const DATA = JSON.parse(document.getElementById("data").textContent);
const byId = (id) => document.getElementById(id);

function element(tag, attributes, ...children) {
  const made = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (value !== false && value !== null) made.setAttribute(key, value);
  }
  made.append(...children);
  return made;
}

/* -- theme ------------------------------------------------------------------------------------------------------------- */

function remembered() {
  try { return localStorage.getItem("mcastlab-theme"); } catch { return null; }
}

function setTheme(name, keep) {
  document.documentElement.dataset.theme = name;
  byId("theme").textContent = name === "dark" ? "Light" : "Dark";
  if (keep) { try { localStorage.setItem("mcastlab-theme", name); } catch { /* a file may have no storage */ } }
}

const DARK = window.matchMedia("(prefers-color-scheme: dark)");
setTheme(remembered() || (DARK.matches ? "dark" : "light"), false);
DARK.addEventListener("change", (event) => { if (!remembered()) { setTheme(event.matches ? "dark" : "light", false); redraw(); } });
byId("theme").addEventListener("click", () => { setTheme(theme() === "dark" ? "light" : "dark", true); redraw(); });

/* -- figures ----------------------------------------------------------------------------------------------------------- */

function redraw() {
  for (const figure of DATA.figures) show(byId("plot-" + figure.name), figure);
  if (DATA.axes.length && DATA.points.length) explore();
}

let width = window.innerWidth, waiting = 0;
window.addEventListener("resize", () => {
  if (window.innerWidth === width) return;
  width = window.innerWidth;
  clearTimeout(waiting);
  waiting = setTimeout(redraw, 200);
});
let before = null;
window.addEventListener("beforeprint", () => { before = theme(); setTheme("light", false); redraw(); });
window.addEventListener("afterprint", () => { setTheme(before, false); redraw(); });

/* -- explorer ---------------------------------------------------------------------------------------------------------- */

const NONE = "-";
const picked = { metric: 0, x: 0, lines: -1, held: {}, logx: false, logy: false, spread: false };

function choice(label, values, chosen, change) {
  const select = element("select", { onchange: (event) => { change(Number(event.target.value)); controls(); explore(); }, "aria-label": label });
  values.forEach(([value, text]) => select.append(element("option", { value, selected: value === chosen }, text)));
  return element("label", {}, label, select);
}

function check(label, key) {
  const box = element("input", { type: "checkbox", onchange: (event) => { picked[key] = event.target.checked; explore(); } });
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
    place.append(choice(axis.label, axis.values.map((value, i) => [i, String(value)]), picked.held[n], (i) => { picked.held[n] = i; }));
  });
  place.append(check("log x", "logx"), check("log y", "logy"), check("5th to 95th percentile", "spread"));
}

function explore() {
  const x = DATA.axes[picked.x], lines = picked.lines < 0 ? null : DATA.axes[picked.lines], metric = DATA.metrics[picked.metric];
  const rows = DATA.points.filter((row) => row.metric === picked.metric && DATA.axes.every((axis, n) => !axis.leading || n === picked.x || n === picked.lines || row.keys[n] === picked.held[n]));
  const marks = [];
  (lines ? lines.values.map((_, i) => i) : [null]).forEach((value, number) => {
    const mine = rows.filter((row) => value === null || row.keys[picked.lines] === value).sort((a, b) => a.keys[picked.x] - b.keys[picked.x]);
    if (!mine.length) return;
    const label = lines ? `${lines.label} ${lines.values[value]}` : "";
    const at = mine.map((row) => x.values[row.keys[picked.x]]);
    marks.push({
      label, colour: number, theory: false, x: at, y: mine.map((row) => row.mean),
      low: mine.map((row) => (picked.spread ? row.p5 : row.low)), high: mine.map((row) => (picked.spread ? row.p95 : row.high)),
    });
    const known = mine.filter((row) => row.theory !== null);
    if (known.length) {
      marks.push({ label: `${label} (theory)`, colour: number, theory: true, x: known.map((row) => x.values[row.keys[picked.x]]), y: known.map((row) => row.theory) });
    }
  });
  const categories = x.numeric ? null : x.values;
  show(byId("plot-explore"), {
    name: "explore", kind: "lines", x: { label: x.label, log: picked.logx && x.numeric, categories }, y: { label: metric.label, log: picked.logy, categories: null },
    panels: [{ title: "", marks }], legend: [],
  });
  byId("explained").textContent = marks.length ? metric.help : "No point has these values.";
}

/* -- tables ------------------------------------------------------------------------------------------------------------ */

const MOST = 500;

function accepts(text) {
  const said = text.trim();
  if (!said) return () => true;
  const compared = said.match(/^(<=|>=|<|>|=)\s*(-?[\d.]+(?:e[+-]?\d+)?)$/i);
  if (compared) {
    const bound = Number(compared[2]);
    const test = { "<": (v) => v < bound, ">": (v) => v > bound, "<=": (v) => v <= bound, ">=": (v) => v >= bound, "=": (v) => v === bound }[compared[1]];
    return (value) => typeof value === "number" && test(value);
  }
  const range = said.match(/^(-?[\d.e+-]+)\s*\.\.\s*(-?[\d.e+-]+)$/i);
  if (range) return (value) => typeof value === "number" && value >= Number(range[1]) && value <= Number(range[2]);
  return (value) => short(value).toLowerCase().includes(said.toLowerCase());
}

function quoted(value) {
  const text = value === null ? "" : String(value);
  return /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

function tableOf(table) {
  const place = byId("table-" + table.name);
  const filters = table.columns.map(() => "");
  let sorted = null, up = true;
  const body = element("tbody"), count = element("span", { class: "count" });
  const words = table.columns.map((_, n) => table.rows.some((row) => typeof row[n] === "string"));
  const matching = () => {
    const tests = filters.map(accepts);
    const rows = table.rows.filter((row) => tests.every((test, n) => test(row[n])));
    if (sorted !== null) rows.sort((a, b) => (up ? 1 : -1) * (a[sorted] === b[sorted] ? 0 : a[sorted] === null ? 1 : b[sorted] === null ? -1 : a[sorted] < b[sorted] ? -1 : 1));
    return rows;
  };
  const fill = () => {
    const rows = matching();
    const kind = (n) => (words[n] ? (table.long || []).includes(table.columns[n]) ? "long" : "words" : "");
    body.replaceChildren(...rows.slice(0, MOST).map((row) => element("tr", {}, ...row.map((value, n) => element("td", { class: kind(n) }, short(value))))));
    count.textContent = `${rows.length} of ${table.rows.length} rows` + (rows.length > MOST ? `, the first ${MOST} shown` : "");
  };
  const heads = table.columns.map((name, n) => element("th", { class: words[n] ? "words" : "" },
    element("button", { title: "sort", onclick: () => { up = sorted === n ? !up : true; sorted = n; fill(); } }, name),
    element("input", { placeholder: words[n] ? "contains" : "> 1, 1..5", "aria-label": "filter " + name, oninput: (event) => { filters[n] = event.target.value; fill(); } })));
  const save = () => {
    const text = [table.columns, ...matching()].map((row) => row.map(quoted).join(",")).join("\n");
    const link = element("a", { href: URL.createObjectURL(new Blob([text], { type: "text/csv" })), download: `${table.name}.csv` });
    link.click();
    URL.revokeObjectURL(link.href);
  };
  place.append(element("div", { class: "bar" }, count, element("button", { onclick: save }, "CSV of these rows")),
    element("div", { class: "scroll" }, element("table", {}, element("thead", {}, element("tr", {}, ...heads)), body)));
  fill();
}

/* -- start ------------------------------------------------------------------------------------------------------------- */

for (const button of document.querySelectorAll(".command button")) {
  button.addEventListener("click", async () => {
    try { await navigator.clipboard.writeText(button.previousElementSibling.textContent); button.textContent = "copied"; } catch { button.textContent = "select it"; }
    setTimeout(() => { button.textContent = "copy"; }, 1500);
  });
}
DATA.tables.forEach(tableOf);
if (DATA.axes.length && DATA.points.length) {
  Object.assign(picked, DATA.start);
  picked.logx = DATA.axes[picked.x].log;
  controls();
}
redraw();
document.documentElement.dataset.ready = "yes";
