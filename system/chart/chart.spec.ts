import { runInNewContext } from 'node:vm';
import { describe, expect, it } from 'vitest';
import { type Chart, htmlPage, terminalChart } from './index.ts';

const chart: Chart = {
  title: 'Latency <of> one',
  xLabel: 'bytes',
  yLabel: 'µs',
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
        [256, 5],
        [4096, 6],
      ],
    },
  ],
};

describe('a chart in the terminal', () => {
  it('tells its lines apart without colour, and names them', () => {
    const text = terminalChart(chart, { width: 60, height: 12 });
    for (const words of ['● copy', '○ pin', '64', '4K', 'Latency <of> one (µs)'])
      expect(text).toContain(words);
    const drawn = text.slice(0, text.indexOf('└'));
    expect(drawn.match(/●/g)!.length).toBeGreaterThan(10);
    expect(drawn.match(/○/g)!.length).toBeGreaterThan(10);
  });
});

describe('a page of charts', () => {
  const page = htmlPage({
    title: 'A & B',
    text: ['x < y'],
    charts: [chart],
    tables: [{ title: 'Figures', head: ['by'], rows: [['<b>']] }],
  });

  it('needs nothing else: no address outside of it', () => {
    expect(page).not.toMatch(/(?:src|href)\s*=\s*["']?(?:https?:)?\/\//);
    expect(page).not.toMatch(/@import|url\(/);
    for (const text of ['<h1>A &amp; B</h1>', '<p>x &lt; y</p>', '<td>&lt;b&gt;</td>'])
      expect(page).toContain(text);
  });

  it('draws every line over all x, with gaps where it has no point', () => {
    const calls: { data: unknown; labels: string[] }[] = [];
    const scripts = [...page.matchAll(/<script>([\s\S]*?)<\/script>/g)].map(([, code]) => code!);
    class Plot {
      constructor(options: { series: { label: string }[] }, data: unknown) {
        calls.push({ data, labels: options.series.map(({ label }) => label) });
      }
    }
    runInNewContext(scripts.at(-1)!, { uPlot: Plot, document: { getElementById: () => ({}) } });
    expect(JSON.parse(JSON.stringify(calls))).toEqual([
      {
        labels: ['bytes', 'copy', 'pin'],
        data: [
          [64, 256, 4096],
          [1, null, 10],
          [null, 5, 6],
        ],
      },
    ]);
  });
});
