"use strict";

document.documentElement.classList.add("js");
const chartSource = document.currentScript.dataset.chartSource;

/* Forms that need no button. */
document.addEventListener("change", (event) => {
  if (event.target.matches("[data-submit]")) event.target.form.requestSubmit();
});

/* Keys: rows are walked with j and k, opened with Enter. */
const pages = { o: "/", c: "/clusters", m: "/models", p: "/ops", w: "/workloads", s: "/sweeps" };
let pending = "";
let at = -1;

function walk(step) {
  const rows = [...document.querySelectorAll("main table.data tbody tr")].filter((row) => row.querySelector("a"));
  if (!rows.length) return;
  rows[at]?.classList.remove("at");
  at = Math.max(0, Math.min(rows.length - 1, at + step));
  rows[at].classList.add("at");
  rows[at].querySelector("a").focus({ preventScroll: true });
  rows[at].scrollIntoView({ block: "nearest" });
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.matches("input, select, textarea")) {
    if (event.key === "Escape") event.target.blur();
    return;
  }
  if (pending === "g" && pages[event.key]) {
    const sweep = new URLSearchParams(location.search).get("sweep");
    location.href = pages[event.key] + (sweep ? "?sweep=" + encodeURIComponent(sweep) : "");
    return;
  }
  pending = event.key;
  if (event.key === "/") {
    event.preventDefault();
    (document.querySelector(".filter input[type=search]") || document.getElementById("search"))?.focus();
  } else if (event.key === "j") walk(1);
  else if (event.key === "k") walk(-1);
  else if (event.key === "?") document.getElementById("help").showModal();
});

/* A sweep that has ended is shown anew, with its rates. */
document.addEventListener("htmx:sseClose", (event) => {
  if (event.detail.type === "message") location.reload();
});

/* Plots: drawn from what the page carries, in the page's own colours. */
function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

function dataset(series, kind) {
  const looks = {
    device: { borderColor: colour("--device"), borderWidth: 2 },
    cpu: { borderColor: colour("--cpu"), borderWidth: 2, borderDash: [5, 4] },
    low: { borderColor: colour("--pass"), borderWidth: 1.5 },
    high: { borderColor: colour("--open"), borderWidth: 1.5, fill: "-1", backgroundColor: colour("--open-soft") },
    pass: { borderColor: colour("--pass"), borderWidth: 2, backgroundColor: colour("--pass") },
    fail: { borderColor: colour("--fail"), backgroundColor: colour("--fail") },
    plain: { borderColor: colour("--accent"), borderWidth: 2, backgroundColor: colour("--accent") },
  };
  const common = kind === "line" ? { pointRadius: 2.5, tension: 0, spanGaps: false } : { borderWidth: 0, maxBarThickness: 26, grouped: false };
  return { label: series.name, data: series.values, ...looks[series.look], ...common };
}

function axes(spec) {
  const text = { color: colour("--muted") };
  const grid = { color: colour("--line") };
  const along = { title: { display: true, text: spec.x, ...text }, ticks: { ...text }, grid: { display: false } };
  const up = { title: { display: spec.kind !== "bars", text: spec.y, ...text }, ticks: { ...text }, grid };
  const shares = spec.kind === "bars" ? along : up;
  if (spec.percent) shares.ticks.callback = (value) => (value * 100).toLocaleString("en", { maximumFractionDigits: 1 }) + " %";
  if (spec.kind !== "line") (spec.kind === "bars" ? along : up).beginAtZero = true;
  if (spec.logarithmic) up.type = "logarithmic";
  return { x: along, y: up };
}

function draw(canvas) {
  const spec = JSON.parse(canvas.dataset.chart);
  const bars = spec.kind !== "line";
  const chart = new Chart(canvas, {
    type: bars ? "bar" : "line",
    data: { labels: spec.labels, datasets: spec.series.map((one) => dataset(one, spec.kind)) },
    options: {
      animation: false,
      maintainAspectRatio: false,
      indexAxis: spec.kind === "bars" ? "y" : "x",
      interaction: { mode: "index", intersect: false },
      scales: axes(spec),
      plugins: { legend: { display: spec.series.length > 1, labels: { color: colour("--ink"), boxHeight: 2, boxWidth: 18 } } },
      onClick: (_event, found) => {
        if (found.length && spec.links[found[0].index]) location.href = spec.links[found[0].index];
      },
    },
  });
  canvas.chart = chart;
}

function drawAll() {
  for (const canvas of document.querySelectorAll("canvas[data-chart]")) {
    canvas.chart?.destroy();
    draw(canvas);
  }
}

if (document.querySelector("canvas[data-chart]")) {
  const script = document.createElement("script");
  script.src = chartSource;
  script.onload = drawAll;
  document.head.append(script);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
}
