"use strict";
// Who talks to whom: tunnels, or sites where there are many tunnels, in two columns, and a line between those of one group.

const MOST_DRAWN = 30;
const ROW = 26;
const CHARACTER = 7.2;

const shape = (name, attributes) => {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, String(value));
  return element;
};

const canTalk = (one, other) => one.site !== other.site && one.group === other.group && !one.paused && !other.paused;

// Bytes per second from one tunnel to another. A tunnel sends every packet to each of its peers, unless it says otherwise.
const flowBetween = (one, other, peers) => {
  const own = one.rates[`bytes_to_${other.id}`];
  return own === undefined ? (one.rates.bytes_out || 0) / Math.max(1, peers) : own;
};

const pairsOf = (tunnels) => {
  const peers = new Map(tunnels.map((one) => [one.id, tunnels.filter((other) => canTalk(one, other)).length]));
  const pairs = [];
  tunnels.forEach((one, place) => {
    for (const other of tunnels.slice(place + 1)) {
      if (!canTalk(one, other)) continue;
      pairs.push([one, other, flowBetween(one, other, peers.get(one.id)), flowBetween(other, one, peers.get(other.id))]);
    }
  });
  return pairs;
};

const drawn = (tunnels) => {
  const isFew = tunnels.length <= MOST_DRAWN;
  const key = (tunnel) => (isFew ? tunnel.id : `site ${tunnel.site}`);
  const points = new Map();
  for (const tunnel of tunnels) {
    if (points.has(key(tunnel))) continue;
    points.set(key(tunnel), { label: isFew ? tunnel.name : `site ${tunnel.site}`, isPaused: isFew && tunnel.paused });
  }
  const lines = new Map();
  for (const [one, other, there, back] of pairsOf(tunnels)) {
    const [a, b] = [key(one), key(other)];
    const known = lines.get(`${a}|${b}`) || lines.get(`${b}|${a}`);
    if (known) {
      known.flow += there + back;
    } else {
      lines.set(`${a}|${b}`, { a, b, flow: there + back });
    }
  }
  return [points, [...lines.values()]];
};

const shorten = (text, width) => {
  const most = Math.max(3, Math.floor(width / CHARACTER));
  return text.length <= most ? text : `${text.slice(0, most - 1)}…`;
};

const arrangePoints = (points, width) => {
  const rows = Math.ceil(points.size / 2);
  let number = 0;
  for (const point of points.values()) {
    point.isLeft = number < rows;
    point.x = Math.round(width * (point.isLeft ? 0.3 : 0.7));
    point.y = ROW * ((point.isLeft ? number : number - rows) + 0.5);
    number += 1;
  }
  return ROW * Math.max(1, rows);
};

const pathOf = (a, b) => {
  if (a.isLeft !== b.isLeft) return `M${a.x},${a.y}L${b.x},${b.y}`;
  const bend = (a.isLeft ? 1 : -1) * Math.min(20 + Math.abs(a.y - b.y) / 2, 0.3 * Math.abs(a.x) + 40);
  return `M${a.x},${a.y}Q${a.x + bend},${(a.y + b.y) / 2} ${b.x},${b.y}`;
};

const drawTalk = (box, tunnels) => {
  const width = Math.max(200, box.clientWidth);
  const [points, lines] = drawn(tunnels);
  const height = arrangePoints(points, width);
  const svg = shape("svg", { viewBox: `0 0 ${width} ${height}`, height, role: "img", "aria-label": "who talks to whom" });
  const most = Math.max(1, ...lines.map((line) => line.flow));
  for (const { a, b, flow } of lines) {
    const [one, other] = [points.get(a), points.get(b)];
    const line = svg.appendChild(shape("path", { d: pathOf(one, other) }));
    if (flow > 0) {
      line.setAttribute("class", "flows");
      line.style.strokeWidth = (1 + (4 * flow) / most).toFixed(1);
    }
    line.appendChild(shape("title", {})).textContent = `${one.label}, ${other.label}: ${bitRate(flow)}`;
  }
  for (const point of points.values()) {
    const dot = svg.appendChild(shape("circle", { cx: point.x, cy: point.y, r: 5 }));
    if (point.isPaused) dot.setAttribute("class", "paused");
    const side = point.isLeft ? { x: point.x - 12, "text-anchor": "end" } : { x: point.x + 12, "text-anchor": "start" };
    const text = svg.appendChild(shape("text", { ...side, y: point.y + 4 }));
    text.textContent = shorten(point.label, 0.3 * width - 16);
    text.appendChild(shape("title", {})).textContent = point.label;
  }
  box.replaceChildren(svg);
};
