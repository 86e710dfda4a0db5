/**
 * The script of a page of charts, put into it behind uPlot and `charts` (html-chart.ts): axes logarithmic unless a chart says
 * otherwise, sizes as people write them, marks as lines with a word, charts as wide as their place and in the reader's colours.
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

const styled = (name) => getComputedStyle(document.documentElement).getPropertyValue(name);

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
  ctx.strokeStyle = ctx.fillStyle = styled('--dim');
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

const sizeOf = (place) => {
  const width = place.clientWidth;
  return { width, height: Math.round(Math.min(460, Math.max(260, width * 0.6))) };
};

charts.forEach((chart, at) => {
  const place = document.getElementById('chart' + at);
  const unit = chart.yLabel === '' ? '' : ' ' + chart.yLabel;
  const value = (_plot, given) => (given == null ? '–' : figureText(given) + unit);
  const isEven = (scale) => scale === 'linear';
  const words = chart.xWords;
  const xText = (x) => (words ? (words[x] ?? '') : isEven(chart.xScale) ? String(Number(x.toPrecision(6))) : sizeText(x));
  const colours = { stroke: () => styled('--ink'), grid: { stroke: () => styled('--grid') }, ticks: { stroke: () => styled('--grid') } };
  const options = {
    title: chart.title,
    ...sizeOf(place),
    scales: {
      x: words
        ? { time: false, range: () => [-0.5, words.length - 0.5] }
        : { time: false, ...(isEven(chart.xScale) ? {} : { distr: 3, log: 2 }) },
      y: isEven(chart.yScale)
        ? { range: (_plot, low, high) => uPlot.rangeNum(Math.min(0, low ?? 0), Math.max(0, high ?? 1), 0.1, true) }
        : { distr: 3, log: 10, range: (_plot, low, high) => roundRange(low ?? 1, high ?? 10) },
    },
    axes: [
      {
        label: chart.xLabel,
        ...colours,
        ...(words ? { splits: () => words.map((_word, index) => index) } : {}),
        values: (_plot, ticks) => ticks.map((tick) => (tick === null ? '' : xText(tick))),
      },
      { label: chart.yLabel, size: 70, ...colours },
    ],
    series: [
      { label: chart.xLabel, value: (_plot, given) => (given == null ? '–' : xText(given)) },
      ...chart.lines.map((line) => ({
        stroke: () => styled('--ink'),
        ...line,
        value,
        ...(line.isScattered ? { paths: () => null } : {}),
      })),
    ],
    legend: { markers: { dash: (_plot, index) => (index > 0 ? chart.lines[index - 1].marker : 'solid') } },
    hooks: { draw: [drawMarks(chart.marks)] },
  };
  const plot = new uPlot(options, chart.data, place);
  new ResizeObserver(() => {
    if (place.clientWidth > 0 && place.clientWidth !== plot.width) plot.setSize(sizeOf(place));
  }).observe(place);
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => plot.redraw(false, true));
});
`;
