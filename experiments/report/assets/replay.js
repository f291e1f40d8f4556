"use strict";
/* The replay: packets move along the links of the drawn network. What kinds and events there are, and their colours, is data. */

const replay = (() => {
  const R = DATA.replay, stage = byId("stage");
  const SHOWN = 0.3, LINGER = 1.1, STILL = 1.3, MOST_DRAWN = 400, ROUNDED = 2e-6;  // seconds on the page, the same, the same, packets in flight, seconds of the run
  const calm = window.matchMedia("(prefers-reduced-motion: reduce)");
  const state = { time: R.begin, playing: false, speed: R.speed, hidden: new Set(), wanted: "" };
  const speed = () => R.speeds[state.speed];
  const isHost = (node) => node.role === "host" || node.role === "sender";
  const after = (list, time, key) => {
    let low = 0, high = list.length;
    while (low < high) { const mid = (low + high) >> 1; if (key(list[mid]) <= time) low = mid + 1; else high = mid; }
    return low;
  };

  /* -- the way of each copy: legs {a, b, begin, end, lost}, in seconds since the packet was sent -------------------------- */

  function legs(packet) {
    const [, source, , number, , came, lost] = packet, tree = R.trees[number], at = new Map([[source, 0]]), cut = new Map();
    const up = (node) => (tree[node][0] < 0 ? source : tree[node][0]);
    const reach = (node, taken) => {
      const whole = Math.max(tree[node][1], 1e-6);
      taken = Math.max(taken, whole);
      for (let near = node; near !== source; near = up(near)) {
        at.set(near, Math.min(at.get(near) ?? Infinity, near === node ? taken : (taken * tree[near][1]) / whole));
      }
    };
    for (let i = 0; i < came.length; i += 2) reach(came[i], came[i + 1] / 1e6);
    for (let i = 0; i < lost.length; i += 2) {
      if (up(lost[i]) !== source) reach(up(lost[i]), lost[i + 1] / 1e6);
      cut.set(lost[i], lost[i + 1] / 1e6);
    }
    const found = [];
    for (const [node, end] of at) if (node !== source && !cut.has(node)) found.push({ a: up(node), b: node, begin: at.get(up(node)), end, lost: false });
    for (const [node, begin] of cut) found.push({ a: up(node), b: node, begin, end: begin, lost: true });
    packet.last = Math.max(1e-6, ...found.map((leg) => leg.end));
    return found;
  }

  let longest = 1e-6;
  for (const packet of R.packets) { packet.legs = legs(packet); longest = Math.max(longest, packet.last); }

  /* Which hosts a loss concerns: the node itself, or all behind it. */
  const news = R.nodes.map(() => []);
  for (const packet of R.packets) {
    const tree = R.trees[packet[3]];
    for (const leg of packet.legs.filter((each) => each.lost)) {
      R.nodes.forEach((node, n) => {
        let near = n;
        while (near !== leg.b && near !== packet[1] && tree[near][0] >= 0) near = tree[near][0];
        if (near === leg.b && isHost(node) && !node.unknown) news[n].push([packet[0] + leg.begin - ROUNDED, `lost ${packet[4].replace(/^\S+ /, "")}`, "red"]);
      });
    }
  }
  for (const [time, category, node, , short] of R.events) if (node >= 0 && short) news[node].push([time, short, R.categories[category].colour]);
  news.forEach((list) => list.sort((one, other) => one[0] - other[0]));

  /* -- the picture ------------------------------------------------------------------------------------------------------- */

  const lines = shape("svg", { "aria-hidden": "true" }), map = shape("svg", { role: "img", "aria-label": "the network" }), canvas = element("canvas", { "aria-hidden": "true" }), pen = canvas.getContext("2d");
  const scene = element("div", { class: "scene" }, lines, canvas, map);
  let places = [], marks = [], paint = {};

  function layout() {
    const wide = scene.clientWidth;
    const rows = new Set(R.nodes.map((node) => node.y)).size, high = Math.max(210, rows * 30 + 56);
    const beside = R.nodes.map((node, n) => isHost(node) && neighbours(n).every((other) => R.nodes[other].x < node.x - 0.01));
    const names = 10 + 7.6 * Math.max(0, ...R.nodes.filter((_, n) => beside[n]).map((node) => node.name.length)), right = beside.some(Boolean) ? Math.min(names + 190, Math.max(names + 84, wide * 0.3)) : 56;
    scene.style.height = `${high}px`;
    places = R.nodes.map((node) => ({ x: 46 + node.x * (wide - 46 - right), y: 28 + node.y * (high - 76) }));
    canvas.width = wide * devicePixelRatio;
    canvas.height = high * devicePixelRatio;
    pen.setTransform(devicePixelRatio, 0, 0, devicePixelRatio, 0, 0);
    for (const part of [lines, map]) part.setAttribute("viewBox", `0 0 ${wide} ${high}`);
    map.replaceChildren();
    lines.replaceChildren(...R.links.map(([a, b]) => shape("line", { class: "link", x1: places[a].x, y1: places[a].y, x2: places[b].x, y2: places[b].y })));
    const columns = [...new Set(R.nodes.map((node) => node.x))].sort((a, b) => a - b);
    const inner = R.nodes.map((node, n) => [node, places[n]]).filter(([node]) => !isHost(node));
    const tight = inner.some(([node, at]) => inner.some(([other, to]) => node !== other && meet(node, at, other, to)));
    marks = R.nodes.map((node, n) => {
      if (isHost(node)) return drawNode(node, places[n], beside[n], names, wide);
      drawSwitch(node, places[n], tight ? (columns.indexOf(node.x) % 2 ? 20 : -12) : 0);
      return null;
    });
    const style = getComputedStyle(document.documentElement);
    paint = Object.fromEntries([...R.kinds.map((kind) => kind.colour), "red", "card", "soft"].map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
    draw();
  }

  const neighbours = (n) => R.links.filter((link) => link.includes(n)).map(([a, b]) => (a === n ? b : a));

  const half = (name) => Math.max(15, name.length * 3.9 + 6);
  const meet = (node, at, other, to) => Math.abs(at.x - to.x) < half(node.name) + half(other.name) + 4 && Math.abs(at.y - to.y) < 26;

  /* A box around its name or, where boxes would meet, a small one with its name above or below. */
  function drawSwitch(node, { x, y }, aside) {
    const wide = aside ? 6 : half(node.name), high = aside ? 6 : 11;
    map.append(shape("rect", { class: "box", x: x - wide, y: y - high, width: 2 * wide, height: 2 * high, rx: aside ? 2 : 5 }));
    map.append(shape("text", { class: aside ? "small" : "", x, y: y + (aside || 4), "text-anchor": "middle" }, node.name));
  }

  function drawNode(node, { x, y }, beside, names, wide) {
    const wait = shape("circle", { class: "wait", cx: x, cy: y, r: 12, visibility: "hidden" }), ring = shape("circle", { class: "ring", cx: x, cy: y, r: 12, visibility: "hidden" });
    const dot = shape("circle", { class: ["node", node.role, node.unknown ? "unknown" : ""].join(" "), cx: x, cy: y, r: 7 });
    const anchor = beside || x < 70 ? "start" : "middle", left = beside ? x + 17 : x < 70 ? Math.max(4, x - 30) : x;
    const name = shape("text", { x: left, y: beside ? y + 4 : y + 26, "text-anchor": anchor }, node.name);
    const status = shape("text", { class: "status", x: beside ? left + names - 6 : left, y: beside ? y + 4 : y + 40, "text-anchor": anchor });
    map.append(wait, dot, ring, name, status);
    const room = Math.floor((beside ? wide - left - names : 150) / 6.4);
    return { dot, ring, wait, status, room };
  }

  function mark(n, node, time) {
    const { dot, ring, wait, status, room } = marks[n], list = news[n], last = list[after(list, time, (item) => item[0]) - 1];
    const fresh = last && time - last[0] <= LINGER * speed() ? last : null, done = node.done !== undefined && time >= node.done;
    const waiting = R.waits.some(([from, to, who]) => who === n && from <= time && time < to);
    const away = node.there && (time < node.there[0] || (node.there[1] !== null && time >= node.there[1]));
    const text = fresh ? fresh[1] : away ? (time < node.there[0] ? "not joined" : "left") : waiting ? "back-off" : done ? "complete" : node.unknown ? "not captured" : "";
    dot.classList.toggle("done", done && node.role !== "sender");
    wait.setAttribute("visibility", waiting ? "visible" : "hidden");
    ring.setAttribute("visibility", fresh ? "visible" : "hidden");
    ring.style.stroke = fresh ? ink(fresh[2]) : "";
    status.textContent = text.length > room ? `${text.slice(0, Math.max(room - 1, 1))}\u2026` : text;
    status.style.fill = fresh ? ink(fresh[2]) : done ? ink("good") : "";
  }

  const SHAPES = {
    dot(x, y) { pen.arc(x, y, 4, 0, 7); },
    square(x, y) { pen.rect(x - 4.5, y - 4.5, 9, 9); },
    diamond(x, y) { pen.moveTo(x, y - 6.5); pen.lineTo(x + 6.5, y); pen.lineTo(x, y + 6.5); pen.lineTo(x - 6.5, y); pen.closePath(); },
  };

  function cross(x, y) {
    pen.beginPath();
    pen.moveTo(x - 5, y - 5); pen.lineTo(x + 5, y + 5); pen.moveTo(x + 5, y - 5); pen.lineTo(x - 5, y + 5);
    pen.lineWidth = 3; pen.strokeStyle = paint.red; pen.stroke();
  }

  function drawPacket(packet, time) {
    const kind = R.kinds[packet[2]], slow = Math.max(1, (SHOWN * speed()) / packet.last), since = (time - packet[0]) / slow;
    for (const leg of packet.legs) {
      const a = places[leg.a], b = places[leg.b], share = (since - leg.begin) / (leg.end - leg.begin);
      if (leg.lost) {
        // A lost copy gets no further than the first half of its link.
        const gone = time - packet[0] - leg.begin;
        if (gone >= -ROUNDED && gone <= LINGER * speed()) cross(a.x + 0.4 * (b.x - a.x), a.y + 0.4 * (b.y - a.y));
      } else if (share >= 0 && share < 1) {
        const x = a.x + share * (b.x - a.x), y = a.y + share * (b.y - a.y);
        if (calm.matches) { pen.beginPath(); pen.moveTo(a.x, a.y); pen.lineTo(b.x, b.y); pen.strokeStyle = paint[kind.colour]; pen.lineWidth = 3; pen.stroke(); }
        pen.beginPath();
        SHAPES[kind.shape](x, y);
        pen.fillStyle = paint[kind.colour]; pen.fill();
        pen.lineWidth = 1; pen.strokeStyle = paint.card; pen.stroke();
      }
    }
  }

  function inFlight(time) {
    const first = after(R.packets, time - Math.max(longest, (SHOWN + LINGER) * speed()), (packet) => packet[0]);
    return R.packets.slice(first, after(R.packets, time, (packet) => packet[0])).filter((packet) => !state.hidden.has(packet[2]));
  }

  function draw() {
    const time = state.time, flying = inFlight(time), step = Math.ceil(flying.length / MOST_DRAWN);
    pen.clearRect(0, 0, canvas.width, canvas.height);
    flying.forEach((packet, n) => { if (n % step === 0 || R.kinds[packet[2]].shape !== "dot") drawPacket(packet, time); });
    R.nodes.forEach((node, n) => { if (marks[n]) mark(n, node, time); });
    tell();
    document.dispatchEvent(new CustomEvent("moved", { detail: time }));
  }

  /* -- the desk: clock, scrub bar, controls, legend, log ---------------------------------------------------------------------- */

  const clock = element("output", {}), told = element("p", { "aria-live": "polite" }), log = element("ol", { class: "log", "aria-label": "latest events" });
  const scrub = element("input", { type: "range", min: R.begin, max: R.end, step: "any", value: R.begin, "aria-label": "time", oninput: () => { pause(); seek(Number(scrub.value)); } });
  const stepped = () => R.events.filter((event) => (state.wanted === "" ? R.categories[event[1]].notable : event[1] === state.wanted));
  let steps = stepped(), places_ = digits((R.end - R.begin) / 100);

  const stamp = (time) => `${time.toFixed(places_)} s`;
  let logged = -1;
  function tell() {
    clock.textContent = stamp(state.time);
    scrub.value = state.time;
    scrub.setAttribute("aria-valuetext", stamp(state.time));
    const count = after(steps, state.time, (event) => event[0]);
    if (count === logged) return;
    logged = count;
    const latest = steps.slice(Math.max(0, count - 5), count).reverse();
    log.replaceChildren(...latest.map(([time, category, , text]) => element("li", {}, element("time", {}, stamp(time)), element("i", { style: `background:${ink(R.categories[category].colour)}` }), text)));
    told.textContent = !state.playing && latest.length && state.time - latest[0][0] <= LINGER * speed() ? latest[0][3] : "";
  }

  function seek(time) {
    state.time = Math.min(R.end, Math.max(R.begin, time));
    draw();
  }

  function step(way) {
    pause();
    const next = way > 0 ? steps[after(steps, state.time, (event) => event[0])] : steps[after(steps, state.time - 1e-9, (event) => event[0]) - 1];
    if (!next) { told.textContent = way > 0 ? "No later event." : "No earlier event."; return; }
    logged = -1;
    seek(next[0]);
    told.textContent = next[3];
  }

  const ICONS = { play: "M2 1l9 5-9 5z", pause: "M2 1h3v10H2zM7 1h3v10H7z", back: "M10 1L4 6l6 5zM2 1h2v10H2z", next: "M2 1l6 5-6 5zM8 1h2v10H8z" };
  const icon = (name) => shape("svg", { viewBox: "0 0 12 12", "aria-hidden": "true" }, shape("path", { d: ICONS[name] }));
  const playButton = element("button", { type: "button", class: "play", onclick: () => toggle() });

  let frame = 0, before = 0;
  function toggle() { if (state.playing) pause(); else play(); }
  function pause() {
    state.playing = false;
    cancelAnimationFrame(frame);
    playButton.replaceChildren(icon("play"), "Play");
    logged = -1;
    tell();
  }
  function play() {
    if (state.time >= R.end) state.time = R.begin;
    state.playing = true;
    playButton.replaceChildren(icon("pause"), "Pause");
    before = performance.now();
    frame = requestAnimationFrame(tick);
  }

  function tick(now) {
    const passed = Math.min(0.1, (now - before) / 1000);
    if (calm.matches) {
      // Without motion the replay goes from event to event.
      if (now - before < STILL * 1000) { frame = requestAnimationFrame(tick); return; }
      before = now;
      const next = steps[after(steps, state.time, (event) => event[0])];
      seek(next ? next[0] : R.end);
    } else {
      before = now;
      seek(state.time + advance(passed));
    }
    if (state.time >= R.end) pause(); else frame = requestAnimationFrame(tick);
  }

  /* Times at which nothing moves pass quickly. */
  function advance(passed) {
    const usual = passed * speed(), last = R.packets[after(R.packets, state.time, (packet) => packet[0]) - 1];
    const next = R.packets[after(R.packets, state.time, (packet) => packet[0])], until = next ? next[0] : R.end;
    const busy = last && state.time < last[0] + Math.max(longest, (SHOWN + 0.4) * speed());
    const wait = until - state.time - 0.2 * speed();
    return busy || wait <= usual ? usual : Math.max(usual, Math.min(wait, 4 * passed * wait));
  }

  function faster(steps_) {
    state.speed = Math.min(R.speeds.length - 1, Math.max(0, state.speed + steps_));
    speedChoice.value = state.speed;
    draw();
  }

  const engineering = (seconds) => (seconds >= 1 ? `${seconds} s` : seconds >= 1e-3 ? `${Number((seconds * 1e3).toPrecision(3))} ms` : `${Number((seconds * 1e6).toPrecision(3))} \u00b5s`);
  const speedChoice = element("select", { onchange: () => { state.speed = Number(speedChoice.value); draw(); } },
    ...R.speeds.map((each, n) => element("option", { value: n, selected: n === R.speed ? "" : null }, each === 1 ? "real time" : `${engineering(each)} per second`)));
  const stepChoice = element("select", { onchange: () => { state.wanted = stepChoice.value === "" ? "" : Number(stepChoice.value); steps = stepped(); logged = -1; ruler(); tell(); } },
    element("option", { value: "" }, "notable events"), ...R.categories.map((category, n) => element("option", { value: n }, `${category.name} (${category.count.toLocaleString("en")})`)));

  function sample(kind) {
    const figures = { dot: ["circle", { cx: 7, cy: 7, r: 4.5 }], square: ["rect", { x: 2, y: 2, width: 10, height: 10 }], diamond: ["path", { d: "M7 0l7 7-7 7-7-7z" }] };
    const [tag, attributes] = figures[kind.shape];
    return shape("svg", { viewBox: "0 0 14 14", "aria-hidden": "true" }, shape(tag, { ...attributes, fill: ink(kind.colour) }));
  }

  function legend() {
    const entries = R.kinds.map((kind, n) => element("li", {}, element("label", {},
      element("input", { type: "checkbox", checked: "", onchange: (event) => { state.hidden[event.target.checked ? "delete" : "add"](n); draw(); } }),
      sample(kind), kind.name, element("span", {}, kind.count.toLocaleString("en")))));
    const lost = shape("svg", { viewBox: "0 0 14 14", "aria-hidden": "true" }, shape("path", { d: "M2 2l10 10M12 2L2 12", stroke: ink("red"), "stroke-width": 3 }));
    return element("ul", { class: "kinds" }, ...entries, element("li", {}, element("label", {}, lost, "lost")));
  }

  const overview = shape("svg", { viewBox: "0 0 1000 26", preserveAspectRatio: "none", "aria-hidden": "true" });
  function ruler() {
    const paths = new Map();
    for (const [time, category] of steps) {
      const name = R.categories[category].colour, x = (1000 * (time - R.begin)) / (R.end - R.begin || 1);
      paths.set(name, `${paths.get(name) || ""}M${x.toFixed(1)} ${name === "red" ? 2 : 13}v11`);
    }
    overview.replaceChildren(...[...paths].map(([name, d]) => shape("path", { d, stroke: ink(name), "stroke-width": 1.5, "vector-effect": "non-scaling-stroke", fill: "none" })));
  }

  const KEYS = {
    " ": toggle, k: toggle, n: () => step(1), p: () => step(-1), "+": () => faster(1), "=": () => faster(1), "-": () => faster(-1), Home: () => seek(R.begin), End: () => seek(R.end),
    ArrowRight: () => { pause(); seek(state.time + 0.1 * speed()); }, ArrowLeft: () => { pause(); seek(state.time - 0.1 * speed()); },
  };
  stage.addEventListener("keydown", (event) => {
    const own = event.target.closest("button, select, input[type=checkbox]");
    if (event.ctrlKey || event.metaKey || event.altKey || !KEYS[event.key] || (own && (event.key === " " || own.tagName === "SELECT"))) return;
    event.preventDefault();
    KEYS[event.key]();
  });

  const key = (name) => element("kbd", {}, name);
  stage.setAttribute("tabindex", "0");
  stage.setAttribute("role", "group");
  stage.setAttribute("aria-label", "replay");
  stage.append(scene, element("div", { class: "desk" },
    element("div", { class: "now" }, clock, told),
    element("div", { class: "scrub" }, overview, scrub),
    element("div", { class: "controls" },
      element("button", { type: "button", onclick: () => step(-1) }, icon("back"), "Previous"), playButton, element("button", { type: "button", onclick: () => step(1) }, "Next", icon("next")),
      element("label", {}, "step to", stepChoice), element("label", {}, "speed", speedChoice)),
    legend(),
    element("p", { class: "help keyboard" }, key("Space"), " plays, ", key("N"), " and ", key("P"), " step, ", key("\u2190"), " ", key("\u2192"), " move, ", key("+"), " ", key("\u2212"), " change the speed. Times at which nothing moves pass quickly; packets too fast to be seen are drawn slower."),
    log));
  playButton.replaceChildren(icon("play"), "Play");
  REDRAW.push(layout);
  document.addEventListener("seek", (event) => { pause(); seek(event.detail); });
  calm.addEventListener("change", pause);
  ruler();
  return { state, seek, step, play, pause, inFlight };
})();
