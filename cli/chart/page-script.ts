/**
 * The script of a page of charts, embedded after uPlot and `charts` (html-chart.ts). Axes are logarithmic by default,
 * sizes are formatted for people, and charts are as wide as their place and in the reader's colours. Axis titles stand
 * next to the drawing, where a narrow page can wrap them.
 */
import { marksScript } from './marks-script.ts';
import { pointsScript } from './points-script.ts';

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

// Rounds outward to 1, 2 or 5 times a power of ten.
const roundRange = (low, high) => {
  const steps = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power++)
    for (const digit of [1, 2, 5]) steps.push(digit * 10 ** power);
  const from = steps.findLast((step) => step <= low * 1.0001) ?? low;
  const to = steps.find((step) => step >= high * 0.9999 && step > from) ?? high * 2;
  return [from, to];
};

${marksScript}${pointsScript}
// Returns the width of the longest text of an axis.
const widthOf = (plot, texts, axis) => {
  plot.ctx.font = plot.axes[axis].font[0];
  return Math.max(0, ...(texts ?? []).map((text) => plot.ctx.measureText(text ?? '').width)) / devicePixelRatio;
};
const textBeside = (name, text) => Object.assign(document.createElement('div'), { className: name, textContent: text });

const sizeOf = (place) => {
  const width = place.clientWidth;
  return { width, height: Math.round(Math.min(460, Math.max(260, width * 0.6))) };
};

// Points at either end lie wholly inside the drawing and can be clicked.
const around = (low, high) => (low === high ? [low - 1, high + 1] : [low - (high - low) * 0.03, high + (high - low) * 0.03]);

// Ticks of a logarithmic x axis: powers of two, or 1, 2 and 5 times powers of ten, as many as fit; linear steps if the
// range is too small for them.
const ticksWithin = (steps) => (plot, _axis, low, high) => {
  const round = [];
  for (let power = Math.floor(Math.log(low) / Math.log(steps.base)); steps.base ** power <= high; power++)
    for (const digit of steps.digits) round.push(digit * steps.base ** power);
  const inside = round.filter((tick) => tick >= low && tick <= high);
  const ticks = inside.length > 1 ? inside : [0.1, 0.5, 0.9].map((share) => Number((low + (high - low) * share).toPrecision(3)));
  const stride = Math.ceil((ticks.length * 50) / Math.max(1, plot.over.clientWidth || plot.width));
  return ticks.filter((_tick, at) => at % stride === 0);
};
const byTwo = ticksWithin({ base: 2, digits: [1] });
const byTen = ticksWithin({ base: 10, digits: [1, 2, 5] });

// Words lie side by side if all of them fit; otherwise they stand upright.
const wordsUpright = (words) => {
  const isUpright = (plot) => (widthOf(plot, words, 0) + 12) * words.length > plot.width - 70;
  return {
    rotate: (plot) => (isUpright(plot) ? -90 : 0),
    size: (plot) => (isUpright(plot) ? Math.ceil(widthOf(plot, words, 0)) + 24 : 40),
  };
};

const plots = charts.map((chart, at) => {
  const place = document.getElementById('chart' + at);
  // The label of a cloud also has the name of its figure.
  const unit = chart.yLabel === '' || chart.isScattered ? '' : ' ' + chart.yLabel;
  const value = (_plot, given) => (given == null ? '–' : figureText(given) + unit);
  const isEven = (scale) => scale === 'linear';
  const words = chart.xWords;
  const xText = (x) =>
    words ? (words[x] ?? '') : isEven(chart.xScale) || chart.isScattered ? String(Number(x.toPrecision(6))) : sizeText(x);
  const colours = { stroke: () => styled('--ink'), grid: { stroke: () => styled('--grid') }, ticks: { stroke: () => styled('--grid') } };
  const marks = marksOf(chart.marks);
  const points = pointsOf(chart, xText, (given) => value(undefined, given));
  const options = {
    title: chart.title,
    ...sizeOf(place),
    scales: {
      x: words
        ? { time: false, range: () => [-0.5, words.length - 0.5] }
        : isEven(chart.xScale)
          ? { time: false, range: (_plot, low, high) => around(low ?? 0, high ?? 1) }
          : { time: false, distr: 3, log: chart.isScattered ? 10 : 2, range: (_plot, low, high) => around(Math.log(low ?? 1), Math.log(high ?? 10)).map(Math.exp) },
      y: isEven(chart.yScale)
        ? { range: (_plot, low, high) => uPlot.rangeNum(Math.min(0, low ?? 0), Math.max(0, high ?? 1), 0.1, true) }
        : { distr: 3, log: 10, range: (_plot, low, high) => roundRange(low ?? 1, high ?? 10) },
    },
    axes: [
      {
        ...colours,
        ...(words ? { splits: () => words.map((_word, index) => index), ...wordsUpright(words) } : { size: 40 }),
        ...(words || isEven(chart.xScale) ? {} : { splits: chart.isScattered ? byTen : byTwo, filter: (_plot, ticks) => ticks }),
        values: (_plot, ticks) => ticks.map((tick) => (tick === null ? '' : xText(tick))),
      },
      { size: (plot, texts) => Math.ceil(widthOf(plot, texts, 1)) + 24, ...colours },
    ],
    series: [
      { label: chart.xLabel, value: (_plot, given) => (given == null ? '–' : xText(given)) },
      ...chart.lines.map((line) => ({
        stroke: () => styled('--ink'),
        points: { fill: () => styled('--paper') },
        ...line,
        value,
        ...(line.isScattered ? { paths: () => null } : {}),
      })),
    ],
    // A slight movement during a click selects no range.
    cursor: { drag: { dist: draggedLeast, click: () => {} }, points: { fill: (self, index) => self.series[index].stroke(self, index) } },
    legend: { markers: { dash: (_plot, index) => (index > 0 ? chart.lines[index - 1].marker : 'solid') } },
    hooks: { ready: [points.ready], draw: [marks.draw], setCursor: [points.show] },
  };
  const plot = new uPlot(options, chart.data, (self, ready) => {
    place.append(self.root);
    const drawing = self.root.querySelector('.u-wrap');
    drawing.before(textBeside('upward', chart.yTitle), marks.strip);
    drawing.after(textBeside('across', chart.xLabel));
    ready();
  });
  new ResizeObserver(() => {
    if (place.clientWidth > 0 && place.clientWidth !== plot.width) plot.setSize(sizeOf(place));
  }).observe(place);
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => plot.redraw(false, true));
  return plot;
});
`;
