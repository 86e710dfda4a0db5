import { runInNewContext } from 'node:vm';
import { describe, expect, it } from 'vitest';
import { type Chart, chartPage, shortText, terminalChart } from './index.ts';

const chart: Chart = {
  title: 'Latency <of> one',
  xTitle: 'bytes',
  yTitle: 'µs',
  isLogX: true,
  isLogY: true,
  xText: (x) => `${x} B`,
  lines: [
    {
      name: 'copy',
      points: [
        [64, 1],
        [4096, 10],
      ],
    },
    {
      name: 'pin',
      points: [
        [64, 5],
        [256, 0],
        [4096, 6],
      ],
    },
  ],
};

describe('a chart in the terminal', () => {
  it('tells its lines apart without colour, and names them', () => {
    const text = terminalChart(chart);
    for (const words of ['o copy', '* pin', '64 B', '4096 B', 'Latency <of> one (µs)'])
      expect(text).toContain(words);
    // Two points of either line; the one at 0 is not on a logarithmic axis.
    const drawn = text.slice(0, text.indexOf('└'));
    expect(drawn.match(/o(?= |$)/gm)!.length).toBeGreaterThanOrEqual(2);
    expect(drawn.match(/\*/g)).toHaveLength(2);
  });

  it('is nothing without two points', () => {
    expect(terminalChart({ ...chart, lines: [{ name: 'one', points: [[64, 1]] }] })).toBe('');
  });
});

describe('a page of charts', () => {
  const page = chartPage({
    title: 'A & B',
    intro: ['x < y'],
    charts: [chart],
    tables: [{ title: 'Figures', head: ['by'], rows: [['<b>']] }],
  });

  it('needs nothing else: no address outside of it', () => {
    expect(page).not.toMatch(/(?:src|href)\s*=\s*["']?(?:https?:)?\/\//);
    expect(page).not.toMatch(/@import|url\(/);
    expect(page).toContain('<h1>A &amp; B</h1>');
    expect(page).toContain('<td>&lt;b&gt;</td>');
  });

  it('draws every line over all x, with gaps where it has no point', () => {
    const calls: { data: unknown; labels: string[] }[] = [];
    const scripts = [...page.matchAll(/<script>([\s\S]*?)<\/script>/g)].map(([, code]) => code!);
    class Plot {
      constructor(options: { series: { label: string }[] }, data: unknown) {
        calls.push({ data, labels: options.series.map(({ label }) => label) });
      }
    }
    const place = { getElementById: () => ({ clientWidth: 800 }) };
    runInNewContext(scripts.slice(1).join('\n'), { uPlot: Plot, document: place });
    expect(JSON.parse(JSON.stringify(calls))).toEqual([
      {
        labels: ['bytes', 'copy', 'pin'],
        data: [
          [64, 4096],
          [1, 10],
          [5, 6],
        ],
      },
    ]);
  });
});

it('writes values with three digits', () => {
  expect([1234.5, 0.012345, 7.84, 20, 0].map(shortText)).toEqual(['1235', '0.0123', '7.84', '20', '0']);
});
