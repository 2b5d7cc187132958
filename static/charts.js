// Draws a metric's chart with uPlot in place of the server's picture: the mean, the band from min to max, rules and when
// they fired. Whoever points at it reads the value and its exact time, in the account's time zone.
"use strict";

const plot = document.querySelector("[data-chart]");
const chart = JSON.parse(plot.dataset.chart);
const unit = plot.dataset.unit;
const times = chart.times.map((after) => chart.since + after);
const isThere = (value) => value != null; // a gap is null
const alone = [...times.keys()].filter((at) => isThere(chart.means[at]) && !isThere(chart.means[at - 1]) && !isThere(chart.means[at + 1]));

const color = (name) => getComputedStyle(plot).getPropertyValue(name).trim();
const local = (at) => new Date(at).toLocaleString("sv-SE", { timeZone: chart.zone }); // 2026-11-21 10:00:00
local(0); // fails in a browser that does not know the zone: then the server's picture stays

// As the page writes values: five digits, or all those of a large or whole number.
function written(value) {
  if (Math.abs(value) >= 1e15) return value.toExponential(4);
  const isWhole = Number.isInteger(value) || Math.abs(value) >= 1000;
  return isWhole ? value.toLocaleString("en", { maximumFractionDigits: 2 }) : String(Number(value.toPrecision(5)));
}

// The axis's labels: short, and different from each other.
function labels(u, splits) {
  const step = splits[1] - splits[0] || 1, digits = Math.max(0, 1 - Math.floor(Math.log10(step)));
  return splits.map((value) => {
    const isLong = Math.abs(value) >= 1e5 && step >= Math.abs(value) / 1e5;
    return value.toLocaleString("en", isLong ? { notation: "compact", maximumSignificantDigits: 6 } : { maximumFractionDigits: digits });
  });
}

// At most seven round numbers. uPlot's own steps never end for values that differ in their last digits alone.
function ticks(u, axis, low, high) {
  const least = (high - low) / 6, size = 10 ** Math.floor(Math.log10(least));
  const step = size * [1, 2, 2.5, 5, 10].find((it) => it * size >= least), first = Math.ceil(low / step);
  return Array.from({ length: Math.floor(high / step) - first + 1 }, (_, at) => Number(((first + at) * step).toPrecision(12)));
}

// The whole of the values, and the rules that are not so far away that they would flatten the line.
function yRange() {
  const low = Math.min(...chart.least.filter(isThere)), high = Math.max(...chart.most.filter(isThere));
  const near = 2 * (high - low || Math.abs(high) || 1);
  const seen = chart.rules.map(([limit]) => limit).filter((limit) => limit > low - near && limit < high + near);
  const from = Math.min(low, ...seen), until = Math.max(high, ...seen);
  if (from === 0 && until === 0) return [0, 1];
  const room = from < until ? (until - from) / 15 : Math.abs(high) || 1;
  return [from < 0 ? from - room : Math.max(0, from - room), until > 0 ? until + room : Math.min(0, until + room)];
}

function drawFirings({ ctx, bbox, valToPos }) {
  for (const [begin, end] of chart.firings) {
    const from = valToPos(begin, "x", true), width = valToPos(end, "x", true) - from;
    ctx.fillStyle = color("--bad");
    ctx.globalAlpha = 0.15;
    ctx.fillRect(from, bbox.top, width, bbox.height);
    ctx.globalAlpha = 1;
    ctx.fillRect(from, bbox.top + bbox.height - 4 * devicePixelRatio, width, 4 * devicePixelRatio); // not by colour alone
  }
}

// A rule is a dashed line with its text; those out of sight are texts at the other edge, with an arrow.
function drawRules({ ctx, bbox, valToPos }) {
  const scale = devicePixelRatio, size = 12 * scale, right = bbox.left + bbox.width, bottom = bbox.top + bbox.height;
  const all = chart.rules.map(([limit, text]) => [Math.round(valToPos(limit, "y", true)), text]);
  const above = all.filter(([at]) => at < bbox.top), below = all.filter(([at]) => at > bottom);
  const seen = all.filter((one) => !above.includes(one) && !below.includes(one));
  const texts = (rules) => rules.map(([, text]) => text).join(", ");
  const write = (text, align, x, y) => {
    ctx.textAlign = align;
    for (const draw of ["strokeText", "fillText"]) ctx[draw](text, x, Math.max(y - 2 * scale, bbox.top + size + 2 * scale));
  };
  ctx.save();
  Object.assign(ctx, { font: `600 ${size}px system-ui, sans-serif`, textBaseline: "bottom", lineJoin: "round" });
  Object.assign(ctx, { fillStyle: color("--bad"), strokeStyle: color("--bad"), lineWidth: 2 * scale });
  ctx.setLineDash([6 * scale, 4 * scale]);
  ctx.beginPath();
  for (const [at] of seen) {
    ctx.moveTo(bbox.left, at);
    ctx.lineTo(right, at);
  }
  ctx.stroke();
  ctx.setLineDash([]);
  Object.assign(ctx, { strokeStyle: color("--card"), lineWidth: 3 * scale }); // around the texts, to read them over a line
  for (const [at, text] of seen) write(text, "right", right - 4 * scale, at);
  if (above.length) write(`↑ ${texts(above)}`, "left", bbox.left + 4 * scale, bbox.top);
  if (below.length) write(`↓ ${texts(below)}`, "left", bbox.left + 4 * scale, bottom - 4 * scale);
  ctx.restore();
}

// What one part of the chart has: its one value, or the mean of several, with the times from which to which they are.
function told(at) {
  const value = (it) => `${written(it)} ${unit}`.trim();
  if (chart.counts[at] === 1) return `${value(chart.means[at])}\n${local(times[at])}`;
  const begin = chart.since + Math.floor(chart.times[at] / chart.width) * chart.width;
  const end = Math.min(begin + chart.width, chart.until);
  const from = local(begin).slice(0, 16), until = local(end).slice(local(end).startsWith(from.slice(0, 10)) ? 11 : 0, 16);
  const extremes = `min ${written(chart.least[at])} · max ${value(chart.most[at])}`;
  return `mean ${value(chart.means[at])}\n${extremes}\n${chart.counts[at].toLocaleString("en")} values\n${from} – ${until}`;
}

const tip = document.createElement("div");
tip.className = "tip";

// Beside the line of the cursor, and at the end of it where the values are not.
function showTip({ cursor: { idx, left }, over, valToPos }) {
  tip.hidden = left < 0 || !isThere(chart.means[idx]);
  if (tip.hidden) return;
  tip.textContent = told(idx);
  const x = valToPos(times[idx], "x"), { offsetWidth: width, offsetHeight: height } = tip;
  const beside = x + 12 + width > over.clientWidth ? x - 12 - width : x + 12;
  const isHigh = valToPos(chart.means[idx], "y") < over.clientHeight / 2;
  tip.style.left = `${Math.max(0, Math.min(beside, over.clientWidth - width))}px`;
  tip.style.top = `${isHigh ? over.clientHeight - height - 8 : 0}px`;
}

const DAY_S = 86400;
const STAMPS = [ // for steps of so many seconds: what a label says, and what is added where a year, a month or a day begins
  [365 * DAY_S, "{YYYY}", null, null, null, null, null, null, 1],
  [28 * DAY_S, "{MMM}", "\n{YYYY}", null, null, null, null, null, 1],
  [DAY_S, "{D} {MMM}", "\n{YYYY}", null, null, null, null, null, 1],
  [1, "{HH}:{mm}", "\n{D} {MMM}", null, "\n{D} {MMM}", null, null, null, 1],
].map(([seconds, ...texts]) => [seconds * 1000, ...texts]);

function axisWidth(u, texts, axis, turn) {
  if (turn > 1) return u.axes[axis]._size; // else the chart and its axis might widen each other without end
  u.ctx.font = u.axes[axis].font[0];
  return 14 + Math.max(0, ...(texts ?? []).map((text) => u.ctx.measureText(text).width / devicePixelRatio));
}

function options() {
  const axis = { stroke: color("--soft"), grid: { stroke: color("--line"), width: 1 }, ticks: { show: false }, font: "12px system-ui, sans-serif" };
  const edge = { stroke: "transparent", points: { show: false } };
  const points = { fill: color("--accent"), filter: (u, series, areAllShown) => (areAllShown ? null : alone) };
  return {
    width: plot.clientWidth,
    height: plot.clientHeight,
    ms: 1,
    padding: [8, 12, 0, 0],
    tzDate: (at) => uPlot.tzDate(new Date(at), chart.zone),
    legend: { show: false },
    cursor: { y: false, drag: { x: false, y: false } },
    scales: { x: { range: () => [chart.since, chart.until] }, y: { range: yRange } },
    axes: [{ ...axis, values: STAMPS }, { ...axis, splits: ticks, values: labels, size: axisWidth }],
    series: [{}, edge, edge, { stroke: color("--accent"), width: 2, points }],
    bands: [{ series: [1, 2], fill: `${color("--accent")}33` }],
    hooks: { drawAxes: [drawFirings], draw: [drawRules], setCursor: [showTip] },
  };
}

let drawn;

function draw() {
  const former = [...plot.childNodes];
  drawn?.destroy();
  drawn = new uPlot(options(), [times, chart.most, chart.least, chart.means], plot); // or the server's picture stays
  for (const one of former) one.remove();
  drawn.over.append(tip);
  tip.hidden = true;
}

draw();
document.querySelectorAll(".legend").forEach((one) => { one.hidden = false; });
new ResizeObserver(() => drawn.setSize({ width: plot.clientWidth, height: plot.clientHeight })).observe(plot);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
