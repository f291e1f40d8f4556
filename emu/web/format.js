"use strict";
// Numbers as text, and elements. All text goes through textContent, since names come from the network.

const make = (tag, text, className) => {
  const element = document.createElement(tag);
  if (text !== undefined) element.textContent = text;
  if (className) element.className = className;
  return element;
};

const say = (element, text) => {
  if (element.textContent !== text) element.textContent = text;
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

const seconds = (value) => value >= 1 || value === 0 ? `${Number(value.toPrecision(4))} s` : `${Number((value * 1000).toPrecision(4))} ms`;

const valueText = (value, [, unit]) => {
  if (unit === "bytes") return scaled(value, "B");
  if (unit === "bytes/s") return scaled(value * 8, "bit/s");
  if (unit === "ratio") return `${Number((value * 100).toPrecision(3))} %`;
  if (unit === "seconds") return seconds(value);
  return String(Number(value.toPrecision(10)));
};

const bitRate = (value) => scaled(value * 8, "bit/s");
const perSecond = (value) => `${scaled(value, "")}/s`;

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

// A chart of one or two series over the last POINTS looks.
const POINTS = 120;

const drawing = (label, count) => {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("viewBox", `0 0 ${POINTS - 1} 100`);
  svg.setAttribute("preserveAspectRatio", "none");
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", `${label}, the last ${POINTS} seconds`);
  for (let place = 0; place < count; place += 1) {
    const line = svg.appendChild(document.createElementNS("http://www.w3.org/2000/svg", "polyline"));
    if (place) line.setAttribute("class", "received");
  }
  return svg;
};

const draw = (svg, series) => {
  const most = Math.max(1e-9, ...series.flat());
  series.forEach((values, place) => {
    const begin = POINTS - values.length;
    const points = values.map((value, at) => `${begin + at},${(98 - (96 * value) / most).toFixed(1)}`).join(" ");
    svg.children[place].setAttribute("points", points);
  });
};
