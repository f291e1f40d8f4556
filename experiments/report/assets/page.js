"use strict";
/* What every report has: light and dark, buttons that copy, tables with filters. Other scripts add to REDRAW what they draw. */

const DATA = JSON.parse(document.getElementById("data").textContent);
const REDRAW = [];
/* Functions that draw something again when theme or width have changed. */
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

function theme() {
  return document.documentElement.dataset.theme === "dark" ? "dark" : "light";
}

function redraw() {
  REDRAW.forEach((draw) => draw());
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

/* -- tables ------------------------------------------------------------------------------------------------------------ */

const MOST = 500;

/* A number as the page writes it, with four digits. */
function short(value) {
  return value === null || value === undefined ? "-" : typeof value === "number" ? Number(value.toPrecision(4)).toString() : String(value);
}

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

/* Copy a text, and say so on the button. */
async function copy(button, text) {
  const before = button.textContent;
  try { await navigator.clipboard.writeText(text); button.textContent = "copied"; } catch { button.textContent = "select it"; }
  setTimeout(() => { button.textContent = before; }, 1500);
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
    body.replaceChildren(...rows.slice(0, MOST).map((row) => element("tr", {}, ...row.map((value, n) => element("td", { class: kind(n), "data-name": table.columns[n] }, short(value))))));
    count.textContent = `${rows.length} of ${table.rows.length} rows` + (rows.length > MOST ? `, the first ${MOST} shown` : "");
  };
  const heads = table.columns.map((name, n) => element("th", { class: words[n] ? "words" : "" },
    element("button", { type: "button", title: "sort", onclick: () => { up = sorted === n ? !up : true; sorted = n; fill(); } }, name),
    element("input", { placeholder: words[n] ? "contains" : "> 1, 1..5", "aria-label": "filter " + name, oninput: (event) => { filters[n] = event.target.value; fill(); } })));
  const save = () => {
    const text = [table.columns, ...matching()].map((row) => row.map(quoted).join(",")).join("\n");
    const link = element("a", { href: URL.createObjectURL(new Blob([text], { type: "text/csv" })), download: `${table.name}.csv` });
    link.click();
    URL.revokeObjectURL(link.href);
  };
  // On a phone a row is a block, and the heads with their filters are shown on demand.
  const shown = element("button", { type: "button", class: "heads", "aria-expanded": "false", onclick: (event) => {
    event.target.setAttribute("aria-expanded", String(place.classList.toggle("open")));
  } }, "Sort, filter");
  place.append(element("div", { class: "bar" }, count, shown, element("button", { type: "button", title: "save these rows as a CSV file", onclick: save }, "Save CSV")),
    element("div", { class: "scroll" }, element("table", {}, element("thead", {}, element("tr", {}, ...heads)), body)));
  fill();
}

/* -- start ----------------------------------------------------------------------------------------------------------------- */

for (const button of document.querySelectorAll(".command button")) {
  button.addEventListener("click", () => copy(button, button.previousElementSibling.textContent));
}
(DATA.tables || []).forEach(tableOf);
// The scripts that follow have added what they draw when the page is complete.
document.addEventListener("DOMContentLoaded", () => { redraw(); document.documentElement.dataset.ready = "yes"; });
