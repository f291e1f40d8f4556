"use strict";
/* The page of one run: rows of bars over time (losses of receivers, rates of kinds of packets) with the replay's cursor. */

const SVG = "http://www.w3.org/2000/svg";

function shape(tag, attributes, ...children) {
  const made = document.createElementNS(SVG, tag);
  for (const [key, value] of Object.entries(attributes || {})) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

const ink = (name) => `var(--${name})`;
const several = (count, one) => `${count.toLocaleString("en")} ${one}${count === 1 ? "" : "s"}`;
const digits = (span) => Math.min(7, Math.max(0, Math.ceil(2.5 - Math.log10(span || 1))));

/* -- rows of bars ------------------------------------------------------------------------------------------------------ */

function ticks(extent, most) {
  const least = extent / most, power = 10 ** Math.floor(Math.log10(least));
  const step = [1, 2, 5, 10].map((n) => n * power).find((n) => n >= least * 0.999);
  const found = [];
  for (let n = 0; n * step <= extent * 1.0001; n += 1) found.push(n * step);
  return found;
}

function axis(extent, label) {
  const marks = ticks(extent, window.innerWidth < 640 ? 4 : 8), places = digits(marks[1] || 1);
  const shown = marks.map((at) => {
    const share = at / extent;
    const text = Number.isInteger(marks[1]) ? at.toLocaleString("en") : at.toFixed(Math.min(places, 6)).replace(/(\.\d*?)0+$/, "$1").replace(/\.$/, "");
    return element("span", { style: `left:${100 * share}%`, class: share > 0.97 ? "last" : null }, text);
  });
  return element("div", { class: "axis" }, ...shown, element("em", {}, label));
}

/* Functions that move the time cursors of a table, by its place. */
const followers = new Map();

/* rows: {name, colour, note, bars: [[column, share of the height], ...], tell(column)}. A click on a column of time moves the replay. */
function drawRows(place, told, rows, grid) {
  const table = element("div", { class: "rows" });
  const cursors = [];
  for (const row of rows) {
    const path = row.bars.map(([column, share]) => `M${column} 1V${(1 - share).toFixed(3)}h${grid.gap}V1z`).join("");
    const lane = shape("svg", { viewBox: `0 0 ${grid.columns} 1`, preserveAspectRatio: "none", height: grid.height, role: "img", "aria-label": `${row.name}: ${row.note}` },
      shape("path", { d: path, fill: ink(row.colour), stroke: ink(row.colour), "vector-effect": "non-scaling-stroke" }));
    const cursor = shape("line", { class: "cursor", x1: 0, x2: 0, y1: 0, y2: 1, "vector-effect": "non-scaling-stroke" });
    if (grid.timed) cursors.push(lane.appendChild(cursor));
    const column = (event) => {
      const box = lane.getBoundingClientRect();
      return Math.min(grid.columns - 1, Math.max(0, Math.floor(((event.clientX - box.left) / box.width) * grid.columns)));
    };
    lane.addEventListener("pointermove", (event) => { told.textContent = row.tell(column(event)); });
    lane.addEventListener("click", (event) => {
      told.textContent = row.tell(column(event));
      if (grid.timed) document.dispatchEvent(new CustomEvent("seek", { detail: (column(event) / grid.columns) * grid.extent }));
    });
    table.append(element("span", { class: "name" }, row.name), lane, element("span", { class: "note" }, row.note));
  }
  table.append(element("span"), axis(grid.extent, grid.label), element("span"));
  place.replaceChildren(table);
  followers.set(place, (time) => cursors.forEach((line) => { for (const end of ["x1", "x2"]) line.setAttribute(end, (time / grid.extent) * grid.columns); }));
}

document.addEventListener("moved", (event) => followers.forEach((follow) => follow(event.detail)));

function span(grid, column, unit) {
  const from = (column / grid.columns) * grid.extent, to = ((column + 1) / grid.columns) * grid.extent;
  if (unit === "s") return `${from.toFixed(digits(to - from))} to ${to.toFixed(digits(to - from))} s`;
  const first = Math.round(from) + 1, last = Math.max(first, Math.round(to));
  return first === last ? `packet ${first}` : `packets ${first} to ${last}`;
}

/* -- losses ------------------------------------------------------------------------------------------------------------ */

let by = "time";
function showLosses() {
  const losses = DATA.losses, grid = losses[by], unit = by === "time" ? "s" : "packets";
  const rows = losses.names.map((name, n) => {
    const cells = new Map(grid.rows[n].map(([column, count, which]) => [column, [count, which]]));
    const offered = (column) => (grid.sent[column] || 0) * losses.sizes[n];
    return {
      name, colour: "red", note: losses.lost[n] ? `${losses.lost[n].toLocaleString("en")} lost` : "none lost",
      bars: [...cells].map(([column, [count]]) => [column, 0.35 + 0.65 * Math.min(1, count / Math.max(1, offered(column)))]),
      tell(column) {
        const [count, which] = cells.get(column) || [0, ""], more = count > which.split(", ").length ? ", ..." : "";
        const of = offered(column) ? ` of ${offered(column).toLocaleString("en")} sent` : "";
        return `${name}, ${span(grid, column, unit)}: ${count ? `lost ${count.toLocaleString("en")}${of}: ${which}${more}` : `nothing lost${of}`}`;
      },
    };
  });
  const label = by === "time" ? "time [s]" : "packets sent to the group, in order";
  byId("losses-told").textContent = "A bar where a receiver lost packets, the taller the larger their share of those sent. Point at it to see which.";
  drawRows(byId("losses-rows"), byId("losses-told"), rows, { ...grid, timed: by === "time", height: 20, gap: 1, label });
}

function choice(value, text) {
  return element("button", { type: "button", "aria-pressed": String(by === value), onclick: () => { by = value; choices(); showLosses(); } }, text);
}

function choices() {
  byId("losses-choice").replaceChildren(choice("time", "over time"), choice("order", "in order of sending"));
}

/* -- rates ------------------------------------------------------------------------------------------------------------- */

function rate(bytes, seconds) {
  const bits = (8 * bytes) / seconds;
  return bits >= 1e6 ? `${(bits / 1e6).toFixed(2)} Mbit/s` : bits >= 1e3 ? `${(bits / 1e3).toFixed(1)} kbit/s` : `${bits.toFixed(0)} bit/s`;
}

function showRates() {
  const { interval, count, kinds } = DATA.rates, grid = { columns: count, extent: count * interval };
  const rows = kinds.map((kind) => {
    const most = Math.max(...kind.bytes, 1);
    return {
      name: kind.name, colour: kind.colour, note: `up to ${rate(Math.max(...kind.bytes), interval)}`,
      bars: kind.bytes.map((bytes, column) => [column, Math.max(bytes / most, 0.04)]).filter(([column]) => kind.packets[column]),
      tell: (column) => `${kind.name}, ${span(grid, column, "s")}: ${rate(kind.bytes[column], interval)} (${several(kind.packets[column], "packet")})`,
    };
  });
  byId("rates-told").textContent = `UDP payload sent by all hosts in intervals of ${Number(interval.toPrecision(3))} s; each row has its own scale. Point at a bar for its value.`;
  drawRows(byId("rates-rows"), byId("rates-told"), rows, { ...grid, timed: true, height: 34, gap: 0.86, label: "time [s]" });
}

function showRows() {
  if (DATA.losses) showLosses();
  showRates();
}

if (DATA.losses) choices();
REDRAW.push(showRows);
