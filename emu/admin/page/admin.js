"use strict";
// The page of a registry. Names come from the network, so all text goes through textContent.

const MOST_EVENTS = 100;
const LEAST_SILENCE = 4000;

const tunnels = new Map();
const sites = new Map();
const news = [];
let lease = 10;
let heardAt = Date.now();

const byteRate = (row, name) => bitRate(row.rates[name] || 0);
const count = (row, name) => row.counters[name] || 0;
const age = (row) => row.age + (Date.now() - row.toldAt) / 1000;
const silence = (row) => row.silence + (Date.now() - row.toldAt) / 1000;

const span = (value) => {
  if (value < 60) return `${Math.floor(value)} s`;
  if (value < 3600) return `${Math.floor(value / 60)} min`;
  return value < 86400 ? `${Math.floor(value / 3600)} h` : `${Math.floor(value / 86400)} d`;
};

const stateOf = (row) => {
  if (row.paused) return ["paused", false];
  return silence(row) > 0.6 * lease ? [`silent for ${span(silence(row))}`, true] : ["running", false];
};

// A column: its title, and what a cell says in its first and in its second line.
const columns = [
  { title: "tunnel", isText: true, text: (row) => [row.name, `${row.address}:${row.port}, group ${row.group}`] },
  { title: "state", text: (row) => [stateOf(row)[0], `for ${span(age(row))}`], isBad: (row) => stateOf(row)[1] },
  { title: "out", text: (row) => [byteRate(row, "bytes_out"), scaled(count(row, "bytes_out"), "B")] },
  { title: "in", text: (row) => [byteRate(row, "bytes_in"), scaled(count(row, "bytes_in"), "B")] },
  { title: "packets", text: (row) => [perSecond(row.rates.carried || 0), `${perSecond(row.rates.received || 0)} in`] },
  { title: "ring", isRing: true, text: (row) => [count(row, "ring_size") ? `${count(row, "ring_used")} of ${count(row, "ring_size")}` : "-", ""] },
  { title: "dropped", text: (row) => [String(count(row, "dropped")), perSecond(row.rates.dropped || 0)], isBad: (row) => row.rates.dropped > 0 },
  { title: "processor", text: (row) => [`${Number((100 * row.load).toPrecision(2))} %`, row.memory ? scaled(row.memory, "B") : "-"] },
];

const newRow = (plain) => {
  const element = make("tr", undefined, "tunnel");
  const cells = columns.map((column) => {
    const cell = element.appendChild(make("td", undefined, column.isText ? "text" : ""));
    if (!column.isText) cell.dataset.label = column.title;
    cell.append(make("b"), make("small"));
    if (column.isRing) cell.append(make("meter"));
    return cell;
  });
  const button = element.appendChild(make("td")).appendChild(make("button"));
  button.type = "button";
  const known = { plain, element, cells, button };
  button.addEventListener("click", () => pause(known));
  return known;
};

const fill = ({ plain: row, element, cells, button }) => {
  columns.forEach((column, place) => {
    const [first, second] = column.text(row);
    const [upper, lower, meter] = cells[place].children;
    say(upper, first);
    say(lower, second);
    upper.className = column.isBad && column.isBad(row) ? "bad" : "";
    if (meter) {
      meter.max = Math.max(1, count(row, "ring_size"));
      meter.value = count(row, "ring_used");
      meter.title = "share of the ring in use";
    }
  });
  element.classList.toggle("paused", row.paused);
  say(button, row.paused ? "Resume" : "Pause");
  button.setAttribute("aria-label", `${row.paused ? "Resume" : "Pause"} ${row.name}`);
};

const pause = async ({ plain: row, button }) => {
  button.disabled = true;
  try {
    const options = { method: "PUT", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ paused: !row.paused }) };
    const answer = await fetch(`/nodes/${row.id}/paused`, options);
    if (!answer.ok) tell(`the registry refuses: ${(await answer.json()).detail}`, true);
  } catch (error) {
    tell("the registry does not answer", true);
  }
  button.disabled = false;
};

const newSite = (number) => {
  const element = document.getElementById("sites").appendChild(make("section"));
  element.appendChild(make("h2", `Site ${number}`));
  const table = element.appendChild(make("table"));
  const head = table.appendChild(make("thead")).appendChild(make("tr"));
  for (const { title, isText } of columns) head.appendChild(make("th", title, isText ? "text" : "")).scope = "col";
  head.appendChild(make("th", "action")).scope = "col";
  return { element, body: table.appendChild(make("tbody")) };
};

const arrange = () => {
  const wanted = new Map();
  for (const known of [...tunnels.values()].sort((a, b) => a.plain.site - b.plain.site || a.plain.id - b.plain.id)) {
    if (!wanted.has(known.plain.site)) wanted.set(known.plain.site, []);
    wanted.get(known.plain.site).push(known.element);
  }
  for (const [number, site] of sites) {
    if (wanted.has(number)) continue;
    site.element.remove();
    sites.delete(number);
  }
  for (const [number, rows] of wanted) {
    if (!sites.has(number)) sites.set(number, newSite(number));
    const { element, body } = sites.get(number);
    document.getElementById("sites").append(element);
    for (const child of [...body.children]) if (!rows.includes(child)) child.remove();
    rows.forEach((row, place) => {
      if (body.children[place] !== row) body.insertBefore(row, body.children[place] || null);
    });
  }
};

const drawAll = () => {
  document.getElementById("talk").hidden = !tunnels.size;
  if (tunnels.size) drawTalk(document.getElementById("drawing"), [...tunnels.values()].map((known) => known.plain));
};

const tell = (text, isGone) => {
  const status = document.getElementById("status");
  say(status, text);
  status.className = isGone ? "gone" : "";
};

const addNews = (events) => {
  for (const [at, name, text] of events) news.unshift(`${new Date(at * 1000).toLocaleTimeString()} ${name} ${text}`);
  news.splice(MOST_EVENTS);
  document.getElementById("news").hidden = !news.length;
  document.getElementById("events").replaceChildren(...news.map((text) => make("li", text)));
};

const take = (told) => {
  lease = told.lease;
  if (told.whole) {
    tunnels.clear();
    news.length = 0;
  }
  for (const number of told.removed) tunnels.delete(number);
  for (const plain of told.nodes) {
    plain.toldAt = Date.now();
    if (!tunnels.has(plain.id)) tunnels.set(plain.id, newRow(plain));
    tunnels.get(plain.id).plain = plain;
  }
  for (const known of tunnels.values()) fill(known);
  if (told.whole || told.events.length) addNews(told.events);
  if (told.whole || told.nodes.length || told.removed.length) {
    arrange();
    drawAll();
  }
  const many = (number, noun) => `${number} ${noun}${number === 1 ? "" : "s"}`;
  tell(`${many(tunnels.size, "tunnel")}, ${many(sites.size, "site")}`, false);
};

const events = new EventSource("/events");
events.onmessage = (event) => {
  heardAt = Date.now();
  take(JSON.parse(event.data));
  document.documentElement.dataset.ready = "yes";
};
events.onerror = () => tell("the registry does not answer", true);
setInterval(() => { if (Date.now() - heardAt > LEAST_SILENCE) tell("the registry does not answer", true); }, 1000);
window.addEventListener("resize", drawAll);
