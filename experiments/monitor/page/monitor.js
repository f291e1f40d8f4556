"use strict";
// Shows a row for each connection of a process, by domain; an event of the server has what has changed within a second.

const LEAST_SILENCE = 3500;
const MOST_EVENTS = 30;
const rows = new Map();
const sections = new Map();
const news = [];
let heardAt = Date.now();
let isPaused = false;
let order = { column: 0, isDown: false };

const NOTHING = [0, [0, 0, null], [0, 0, null], [0, 0, null]];
const flow = (row, name) => row.flows[name] || NOTHING;
const current = (row, name, place) => flow(row, name)[place + 1][0];
const peak = (row, name) => flow(row, name)[1][1];
const has = (row, word) => flow(row, `bytes_${word}`)[0] || flow(row, `messages_${word}`)[0] || flow(row, `packets_${word}`)[0];

const rateCell = (row, word, place) => {
  if (!has(row, word)) return ["", ""];
  const of = place < 3 ? (name) => current(row, name, place) : (name) => peak(row, name);
  return [bitRate(of(`bytes_${word}`)), perSecond(of(`messages_${word}`))];
};

const rateColumns = (word, title) => ["now", "1 min", "5 min", "peak"].map((time, place) => ({
  title: `${title} ${time}`,
  className: "rate",
  text: (row) => rateCell(row, word, place),
  rank: (row) => (place < 3 ? current(row, `bytes_${word}`, place) : peak(row, `bytes_${word}`)),
}));

const many = (count, word, ending) => `${count || "no"} ${word}${count === 1 ? "" : ending}`;

const lagText = (row) => (row.lag ? `lags ${seconds(row.lag)}` : row.queue_peak ? `peak ${row.queue_peak}` : "");
const stateText = (row) => (row.state === "running" ? "" : `${row.state}, `);

const columns = [
  { title: "process", className: "text name", text: (row) => [row.process, `${stateText(row)}${row.place}`], rank: (row) => row.process },
  { title: "connection", className: "text", text: (row) => [row.connection, row.role], rank: (row) => row.connection },
  ...rateColumns("sent", "sent"),
  ...rateColumns("received", "received"),
  { title: "queue", text: (row) => [String(row.queue), lagText(row)], rank: (row) => row.queue, isBad: (row) => row.lag > 0 },
  {
    title: "requests in, out, seen",
    text: (row) => [["in", "out", "seen"].map((each) => row.requests[`requests_${each}`] || 0).join(", "), ""],
    rank: (row) => (row.requests.requests_in || 0) + (row.requests.requests_out || 0),
  },
];

const describe = (cell, [first, second], isBad) => {
  say(cell.children[0], first);
  say(cell.children[1], second);
  cell.children[1].className = isBad ? "bad" : "";
};

// Rows -------------------------------------------------------------------------------------------------------------------

const newRow = (plain) => {
  const element = make("tr", undefined, "row");
  element.tabIndex = 0;
  element.dataset.key = plain.key;
  element.setAttribute("aria-expanded", "false");
  const cells = columns.map(({ title, className }) => {
    const cell = element.appendChild(make("td", undefined, className));
    if (title !== "process") cell.dataset.label = title;
    cell.append(make("b"), make("small"));
    return cell;
  });
  const place = element.appendChild(make("td", undefined, "chart"));
  const chart = place.appendChild(drawing("messages sent and received per second, or bytes", 2));
  const known = { plain, element, cells, chart, points: [], detail: null };
  element.addEventListener("click", () => toggle(known));
  element.addEventListener("keydown", (event) => { if (event.key === "Enter") toggle(known); });
  return known;
};

const fill = (known) => {
  const row = known.plain;
  known.element.classList.toggle("gone", row.state === "gone");
  columns.forEach((column, place) => describe(known.cells[place], column.text(row), column.isBad && column.isBad(row)));
  known.cells[0].children[1].className = row.state === "running" ? "" : "bad";
};

const addPoint = (known) => {
  const row = known.plain;
  const isCounted = flow(row, "messages_sent")[0] || flow(row, "messages_received")[0];
  const unit = isCounted ? "messages" : "bytes";
  known.points.push([current(row, `${unit}_sent`, 0), current(row, `${unit}_received`, 0), row.queue]);
  known.points.splice(0, Math.max(0, known.points.length - POINTS));
};

const drawRow = (known) => draw(known.chart, [0, 1].map((place) => known.points.map((point) => point[place])));

const textOf = (row) => `${row.domain} ${row.process} ${row.place} ${row.connection} ${row.role} ${row.state} ${row.members.join(" ")}`.toLowerCase();

const isShown = (row) => document.getElementById("filter").value.toLowerCase().split(/\s+/).every((word) => textOf(row).includes(word));

// Sections ---------------------------------------------------------------------------------------------------------------

const sortBy = (column) => {
  order = { column, isDown: order.column === column ? !order.isDown : typeof columns[column].rank(emptyRow) === "number" };
  document.getElementById("sort").value = String(column);
  arrange();
};

const emptyRow = { process: "", connection: "", flows: {}, requests: {}, queue: 0 };

const newSection = (domain) => {
  const element = document.getElementById("domains").appendChild(make("section"));
  const title = element.appendChild(make("h2", domain));
  const body = make("tbody");
  const own = element.appendChild(make("table", undefined, "rows"));
  const head = own.appendChild(make("thead")).appendChild(make("tr"));
  columns.forEach(({ title: text, className }, place) => {
    const cell = head.appendChild(make("th", undefined, className));
    cell.scope = "col";
    const button = cell.appendChild(make("button", text));
    button.type = "button";
    button.addEventListener("click", () => sortBy(place));
  });
  head.appendChild(make("th", "sent, received", "chart")).scope = "col";
  own.appendChild(body);
  return { element, title, body, head };
};

const compared = (one, other) => {
  const { rank } = columns[order.column];
  const [a, b] = [rank(one.plain), rank(other.plain)];
  const sign = order.isDown ? -1 : 1;
  if (a < b) return -sign;
  if (a > b) return sign;
  return one.plain.key < other.plain.key ? -1 : 1;
};

const arrange = () => {
  const groups = new Map();
  for (const known of rows.values()) {
    if (!groups.has(known.plain.domain)) groups.set(known.plain.domain, []);
    groups.get(known.plain.domain).push(known);
  }
  for (const [domain, section] of sections) {
    if (groups.has(domain)) continue;
    section.element.remove();
    sections.delete(domain);
  }
  for (const [domain, members] of groups) {
    if (!sections.has(domain)) sections.set(domain, newSection(domain));
    const section = sections.get(domain);
    const shown = members.filter((known) => isShown(known.plain)).sort(compared);
    say(section.title, `${domain}: ${many(new Set(members.map((known) => known.plain.owner)).size, "process", "es")}, ${many(shown.length, "connection", "s")}`);
    const wanted = shown.flatMap((known) => (known.detail ? [known.element, known.detail.element] : [known.element]));
    for (const child of [...section.body.children]) if (!wanted.includes(child)) child.remove();
    wanted.forEach((element, place) => {
      if (section.body.children[place] !== element) section.body.insertBefore(element, section.body.children[place] || null);
    });
    [...section.head.children].forEach((cell, place) => {
      cell.setAttribute("aria-sort", place !== order.column ? "none" : order.isDown ? "descending" : "ascending");
    });
  }
};

// Details ----------------------------------------------------------------------------------------------------------------

const toggle = (known) => {
  if (known.detail) {
    known.detail.element.remove();
    known.detail = null;
  } else {
    const element = make("tr", undefined, "detail");
    const cell = element.appendChild(make("td"));
    cell.colSpan = columns.length + 1;
    known.detail = { element, box: cell.appendChild(make("div", undefined, "box")), full: null };
    showDetail(known);
  }
  known.element.setAttribute("aria-expanded", String(Boolean(known.detail)));
  arrange();
};

const figure = (title, values, last) => {
  const element = make("figure");
  const caption = element.appendChild(make("figcaption"));
  caption.append(make("span", title), make("b", last));
  draw(element.appendChild(drawing(title, 1)), [values]);
  return element;
};

const flowRow = (name, row) => {
  const [total, ...rates] = flow(row, name);
  const isBytes = name.startsWith("bytes");
  const text = isBytes ? bitRate : perSecond;
  return [words(name), isBytes ? scaled(total, "B") : String(total), ...rates.flatMap(([now, most, at]) => [text(now), at ? `${text(most)} at ${at.slice(-12)}` : "-"])];
};

const showDetail = (known) => {
  const { plain: row, points, detail } = known;
  const charts = make("div", undefined, "charts");
  const last = points[points.length - 1] || [0, 0, 0];
  const unit = flow(row, "messages_sent")[0] || flow(row, "messages_received")[0] ? "messages" : "bytes";
  const text = unit === "bytes" ? bitRate : perSecond;
  ["sent", "received"].forEach((word, place) => {
    if (has(row, word)) charts.append(figure(`${unit} ${word}`, points.map((point) => point[place]), text(last[place])));
  });
  charts.append(figure("queue", points.map((point) => point[2]), String(last[2])));
  const about = [row.started && `since ${row.started}`, many(row.publishers, "publisher", "s"), many(row.subscribers, "subscriber", "s"), many(row.subscriptions, "subscription", "s")];
  const heads = ["counter", "total", "now", "peak", "1 min", "peak", "5 min", "peak"];
  const pieces = [make("p", about.filter(Boolean).join(", ")), charts, table(heads, Object.keys(row.flows).map((name) => flowRow(name, row)))];
  if (row.members.length) {
    const list = make("ul");
    for (const member of row.members) list.appendChild(make("li", member));
    pieces.push(make("h3", "members and subscriptions"), list);
  }
  if (detail.full) pieces.push(...fullTables(detail.full));
  detail.box.replaceChildren(...pieces);
  if (row.session && row.state !== "gone" && !detail.isAsking) askFor(known);
};

const askFor = async (known) => {
  const { detail } = known;
  detail.isAsking = true;
  try {
    const answer = await fetch(`/api/session?name=${encodeURIComponent(known.plain.session)}`);
    if (answer.ok) detail.full = (await answer.json()) || detail.full;
  } catch (error) {
    detail.full = null;
  }
  detail.isAsking = false;
};

const fullTables = ({ statistics, measures }) => {
  const all = [statistics];
  for (const part of all) all.push(...(part.parts || []));
  const found = [];
  for (const kind of new Set(all.map((part) => part.part))) {
    const parts = all.filter((part) => part.part === kind);
    const states = [...new Set(parts.flatMap((part) => Object.keys(part.states || {})))];
    const names = [...new Set(parts.flatMap((part) => Object.keys(part.values || {}).filter((name) => part.values[name])))];
    if (!states.length && !names.length) continue;
    const value = (part, name) => (name in (part.values || {}) ? valueText(part.values[name], measures[name] || ["counter", ""]) : "");
    const cells = parts.map((part) => [part.name || "-", ...states.map((name) => (part.states || {})[name] || ""), ...names.map((name) => value(part, name))]);
    found.push(make("h3", kind), table([kind, ...states, ...names.map(words)], cells));
  }
  return found;
};

// Events -----------------------------------------------------------------------------------------------------------------

const addNews = (events) => {
  for (const [at, subject, text] of events) news.unshift(`${new Date(at * 1000).toLocaleTimeString()} ${subject} ${text}`);
  news.splice(MOST_EVENTS);
  document.getElementById("news").hidden = !news.length;
  document.getElementById("events").replaceChildren(...news.map((text) => make("li", text)));
};

const take = (told) => {
  if (told.whole) {
    for (const known of rows.values()) if (!told.rows.some((row) => row.key === known.plain.key)) rows.delete(known.plain.key);
    news.length = 0;
  }
  for (const row of told.rows) {
    if (!rows.has(row.key)) rows.set(row.key, newRow(row));
    const known = rows.get(row.key);
    known.plain = row;
    if (row.points) known.points = row.points;
    fill(known);
  }
  if (!told.whole || told.events.length) addNews(told.events);
  for (const key of told.removed || []) rows.delete(key);
  for (const known of rows.values()) {
    if (!told.whole) addPoint(known);
    drawRow(known);
    if (known.detail) showDetail(known);
  }
  arrange();
};

const tell = (text, isGone) => {
  const status = document.getElementById("status");
  say(status, text);
  status.className = isGone ? "gone" : "";
};

const receive = (told) => {
  take(told);
  const count = new Set([...rows.values()].map((known) => known.plain.owner)).size;
  tell(`${many(count, "process", "es")}, ${many(rows.size, "connection", "s")}`, false);
};

const pause = async (button) => {
  isPaused = !isPaused;
  button.setAttribute("aria-pressed", String(isPaused));
  say(button, isPaused ? "Go on" : "Pause");
  if (isPaused) tell("paused", false);
  else receive({ whole: true, ...(await (await fetch("/api/domain")).json()) });
};

columns.forEach(({ title }, place) => document.getElementById("sort").appendChild(make("option", title)).setAttribute("value", String(place)));
document.getElementById("sort").addEventListener("change", (event) => sortBy(Number(event.target.value)));
document.getElementById("filter").addEventListener("input", arrange);
document.getElementById("controls").addEventListener("submit", (event) => event.preventDefault());
document.getElementById("pause").addEventListener("click", (event) => pause(event.target));

const events = new EventSource("/events");
events.onmessage = (event) => {
  heardAt = Date.now();
  const told = JSON.parse(event.data);
  if (!isPaused) receive(told);
  document.documentElement.dataset.ready = "yes";
};
events.onerror = () => tell("the monitor does not answer", true);
setInterval(() => { if (Date.now() - heardAt > LEAST_SILENCE) tell("the monitor does not answer", true); }, 1000);
