/**
 * The script of a page of charts, put into it behind uPlot and `charts` (html-chart.ts): both axes logarithmic, sizes as people
 * write them, marks as lines with a word.
 */
export const pageScript = `
const sizeText = (bytes) => {
  for (const [unit, value] of [
    ['M', 2 ** 20],
    ['K', 2 ** 10],
  ])
    if (bytes >= value && bytes % value === 0) return bytes / value + unit;
  return String(bytes);
};
const figureText = (value) => (value >= 1000 ? Math.round(value).toLocaleString('en') : value.toPrecision(3));

// To the next 1, 2 or 5 times a power of ten on either side.
const roundRange = (low, high) => {
  const steps = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power++)
    for (const digit of [1, 2, 5]) steps.push(digit * 10 ** power);
  const from = steps.findLast((step) => step <= low * 1.0001) ?? low;
  const to = steps.find((step) => step >= high * 0.9999 && step > from) ?? high * 2;
  return [from, to];
};

const drawMarks = (marks) => (plot) => {
  const { ctx, bbox } = plot;
  const ratio = devicePixelRatio;
  ctx.save();
  ctx.strokeStyle = ctx.fillStyle = '#444';
  ctx.lineWidth = ratio;
  ctx.setLineDash([3 * ratio, 3 * ratio]);
  ctx.font = 12 * ratio + 'px system-ui, sans-serif';
  for (const [index, { x, text }] of marks.entries()) {
    const at = plot.valToPos(x, 'x', true);
    if (at < bbox.left || at > bbox.left + bbox.width) continue;
    ctx.beginPath();
    ctx.moveTo(at, bbox.top);
    ctx.lineTo(at, bbox.top + bbox.height);
    ctx.stroke();
    const isLeft = at < bbox.left + bbox.width / 2;
    ctx.textAlign = isLeft ? 'left' : 'right';
    ctx.fillText(text, at + (isLeft ? 6 : -6) * ratio, bbox.top + (16 + 16 * index) * ratio);
  }
  ctx.restore();
};

charts.forEach((chart, at) => {
  const value = (_plot, given) => (given == null ? '–' : figureText(given) + ' ' + chart.yLabel);
  const options = {
    title: chart.title,
    width: 940,
    height: 460,
    scales: {
      x: { time: false, distr: 3, log: 2 },
      y: { distr: 3, log: 10, range: (_plot, low, high) => roundRange(low ?? 1, high ?? 10) },
    },
    axes: [
      { label: chart.xLabel, values: (_plot, ticks) => ticks.map((tick) => (tick === null ? '' : sizeText(tick))) },
      { label: chart.yLabel, size: 70 },
    ],
    series: [
      { label: chart.xLabel, value: (_plot, given) => (given == null ? '–' : sizeText(given)) },
      ...chart.lines.map((line) => ({ ...line, value })),
    ],
    legend: { markers: { dash: (_plot, index) => (index > 0 && chart.lines[index - 1].dash ? 'dashed' : 'solid') } },
    hooks: { draw: [drawMarks(chart.marks)] },
  };
  new uPlot(options, chart.data, document.getElementById('chart' + at));
});
`;
