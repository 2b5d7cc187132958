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

function short(value) {
  const size = Math.abs(value);
  if (value && (size >= 1e15 || size < 1e-4)) return String(Number(value.toPrecision(6)));
  return value.toLocaleString("en", size >= 1e5 ? { notation: "compact", maximumSignificantDigits: 6 } : { maximumFractionDigits: 10 });
}

// The whole of the values, and the rules that are not so far away that they would flatten the line.
function yRange() {
  const low = Math.min(...chart.least.filter(isThere)), high = Math.max(...chart.most.filter(isThere));
  const near = 2 * (high - low || Math.abs(high) || 1);
  const seen = chart.rules.map(([limit]) => limit).filter((limit) => limit > low - near && limit < high + near);
  return uPlot.rangeNum(Math.min(low, ...seen), Math.max(high, ...seen), 0.1, true);
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

// A rule is a dashed line with its text; those out of sight are texts at the edge, with an arrow.
function drawRules({ ctx, bbox, valToPos }) {
  const size = 12 * devicePixelRatio, right = bbox.left + bbox.width, bottom = bbox.top + bbox.height;
  const place = ([limit, text]) => [Math.round(valToPos(limit, "y", true)), text];
  const texts = (rules) => rules.map(([, text]) => text).join(", ");
  const all = chart.rules.map(place);
  const above = all.filter(([at]) => at < bbox.top), below = all.filter(([at]) => at > bottom);
  const write = (text, at) => ctx.fillText(text, right - 4, Math.max(at, bbox.top + size + 4) - 2);
  ctx.save();
  Object.assign(ctx, { fillStyle: color("--bad"), strokeStyle: color("--bad"), lineWidth: 2 * devicePixelRatio });
  Object.assign(ctx, { font: `600 ${size}px system-ui, sans-serif`, textAlign: "right", textBaseline: "bottom" });
  ctx.setLineDash([6 * devicePixelRatio, 4 * devicePixelRatio]);
  for (const [at, text] of all.filter((one) => !above.includes(one) && !below.includes(one))) {
    ctx.beginPath();
    ctx.moveTo(bbox.left, at);
    ctx.lineTo(right, at);
    ctx.stroke();
    write(text, at);
  }
  if (above.length) write(`↑ ${texts(above)}`, bbox.top);
  if (below.length) write(`↓ ${texts(below)}`, bottom - 4 * devicePixelRatio);
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

function axisWidth(u, labels, axis, turn) {
  if (turn > 1) return u.axes[axis]._size; // else the chart and its axis might widen each other without end
  u.ctx.font = u.axes[axis].font[0];
  return 14 + Math.max(0, ...(labels ?? []).map((label) => u.ctx.measureText(label).width / devicePixelRatio));
}

function options() {
  const axis = { stroke: color("--soft"), grid: { stroke: color("--line"), width: 1 }, ticks: { show: false }, font: "12px system-ui, sans-serif" };
  const edge = { stroke: "transparent", points: { show: false } };
  const points = { filter: (u, series, areAllShown) => (areAllShown ? null : alone) };
  return {
    width: plot.clientWidth,
    height: plot.clientHeight,
    ms: 1,
    padding: [8, 12, 0, 0],
    tzDate: (at) => uPlot.tzDate(new Date(at), chart.zone),
    legend: { show: false },
    cursor: { y: false, drag: { x: false, y: false } },
    scales: { x: { range: () => [chart.since, chart.until] }, y: { range: yRange } },
    axes: [{ ...axis, values: STAMPS }, { ...axis, values: (u, splits) => splits.map(short), size: axisWidth }],
    series: [{}, edge, edge, { stroke: color("--accent"), width: 2, points }],
    bands: [{ series: [1, 2], fill: `${color("--accent")}33` }],
    hooks: { drawAxes: [drawFirings], draw: [drawRules], setCursor: [showTip] },
  };
}

let drawn;

function draw() {
  drawn?.destroy();
  plot.replaceChildren();
  drawn = new uPlot(options(), [times, chart.most, chart.least, chart.means], plot);
  drawn.over.append(tip);
  tip.hidden = true;
}

draw();
document.querySelectorAll(".legend").forEach((one) => { one.hidden = false; });
new ResizeObserver(() => drawn.setSize({ width: plot.clientWidth, height: plot.clientHeight })).observe(plot);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
