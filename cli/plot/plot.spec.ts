/** `hca plot`: the kind of plot that follows from the given names, and the contents of the page. */
import { Script } from 'node:vm';
import { describe, expect, it, test } from 'vitest';
import { ConfigurationError } from '../../base/assert.ts';
import type { Results } from '../../experiments/sweep/index.ts';
import { chartPage } from '../chart/index.ts';
import { type PlotOptions, plotOf } from './plot-choice.ts';
import { leftOutText, type PlotPage, plotPage } from './plot-page.ts';
import { pointReports } from './point-reports.ts';

const axes = ['hca.mttCacheLines', 'pcie.link.generation', 'wire.speed'];
const lines = [16, 32, 64, 128, 256];
const rows = lines.flatMap((count, at) =>
  ['QDR', 'FDR'].map((speed, side) => ({
    hash: 'h',
    index: at * 2 + side,
    status: 'done' as const,
    axes: { 'hca.mttCacheLines': count, 'pcie.link.generation': 3, 'wire.speed': speed },
    figures: { messagesPerSecond: Math.min(count, 64) * 1e5 + side, typicalPs: 5e6 - count, bound: 'link' },
  })),
);
const failed = { ...rows[0]!, index: 10, status: 'failed' as const, error: 'e', figures: {} };
const results: Results = {
  header: { schema: 'hca-sweep/1', version: '1', sweep: 's', pointCount: 11, axes, spec: {} },
  rows: [...rows, failed],
};
const pageOf = (options: Partial<PlotOptions>): PlotPage =>
  plotPage(plotOf(results, { x: 'mttCacheLines', y: ['messagesPerSecond'], where: [], ...options }));

/** The page as a browser receives it: its scripts are valid, and it loads nothing. */
function htmlOf(page: PlotPage): string {
  const head = { title: page.title, command: 'hca plot', version: '1' };
  const html = chartPage(head, { ...page, reports: pointReports(results) });
  const scripts = [...html.matchAll(/<script>([\s\S]*?)<\/script>/g)].map(([, source]) => source!);
  for (const source of scripts) expect(() => new Script(source)).not.toThrow();
  expect(html).not.toMatch(/(src|href)\s*=\s*["']?(https?:)?\/\//);
  return html;
}

/** The points' reports in the page, each with its title. */
const reportsIn = (shown: Results, first?: Results['rows']): string[] =>
  pointReports(shown, first).reports.map(({ title, section }) => `${title}\n${section.text}`);

it('each point has a report, with all its figures or the reason why it has none', () => {
  expect(pointReports(results).title).toBe('Reports of all points');
  const reports = reportsIn(results);
  expect(reports).toHaveLength(results.rows.length);
  expect(reports[0]).toMatch(/^MTT cache lines: 16, PCIe link generation: 3, wire speed: QDR\n/);
  for (const figure of ['messagesPerSecond', 'typicalPs', 'bound']) expect(reports[0]).toContain(figure);
  expect(reports.at(-1)).toContain('failed');
});

it('of more points than a page may contain, the drawn ones have theirs first, and the page says so', () => {
  const many = { ...results, rows: Array.from({ length: 1500 }, (_, index) => ({ ...rows[0]!, index })) };
  const { title, reports } = pointReports(many, many.rows.slice(1400));
  expect(title).toBe('Reports of 500 of 1,500 points');
  const numbers = reports.map(({ number }) => number);
  expect(numbers).toEqual([...Array.from({ length: 100 }, (_, at) => 1400 + at), ...Array(400).keys()]);
});

describe('lines', () => {
  it('are one for each combination of the other axes, with their knees in words and as marks', () => {
    const { charts, text } = pageOf({});
    expect(charts.map(({ title }) => title)).toEqual(['Message rate over MTT cache lines']);
    expect(charts[0]!.lines.map(({ name }) => name)).toEqual(['wire speed: QDR', 'wire speed: FDR']);
    expect(charts[0]!.lines[0]!.points).toEqual(lines.map((count) => [count, Math.min(count, 64) / 10]));
    expect(charts[0]!.lines[0]!.reports).toEqual([0, 2, 4, 6, 8]);
    expect(charts[0]!.marks).toEqual([{ x: 64, text: 'knee 64', reports: [4, 5] }]);
    expect(text).toEqual([
      'Message rate has its knee at MTT cache lines 64, of wire speed: QDR; wire speed: FDR.',
    ]);
    expect([charts[0]!.xScale, charts[0]!.yScale, charts[0]!.yLabel]).toEqual([
      'logarithmic',
      'linear',
      'Mmsg/s',
    ]);
  });

  it('are several charts for several figures, and their figures are in tables', () => {
    const page = pageOf({ y: ['messagesPerSecond', 'typicalPs'], where: ['speed=QDR'] });
    expect(page.charts).toHaveLength(2);
    const html = htmlOf(page);
    expect(html).toContain('aria-label="Message rate over MTT cache lines"');
    expect(html).toMatch(
      /<th scope="row">64<\/th><td><a class="opens" href="#report-4"[^>]*>6\.4<\/a><\/td>/,
    );
    expect(html).toContain('prefers-color-scheme: dark');
    expect(html).toContain('width=device-width');
  });

  it('over words are at fixed places', () => {
    const { charts } = pageOf({ x: 'speed', where: ['mttCacheLines=64'] });
    expect(charts[0]!.xWords).toEqual(['QDR', 'FDR']);
    expect(charts[0]!.lines[0]!.points).toEqual([
      [0, 6.4],
      [1, 6.400001],
    ]);
    expect(htmlOf(pageOf({ x: 'speed' }))).toContain('FDR</t');
  });
});

describe('points that are not drawn', () => {
  const at = (pointCount: number, rest: Results['rows']): Results => ({
    header: { ...results.header, pointCount },
    rows: [...rows, ...rest],
  });

  it('are counted by outcome, and not mentioned if there are none', () => {
    expect(leftOutText(at(10, []))).toEqual([]);
    const refused = { ...failed, index: 11, status: 'refused' as const };
    expect(leftOutText(at(20, [failed, refused, { ...refused, index: 12 }]))).toEqual([
      'Of 20 points 10 are done. What is not drawn: 1 failed, 2 cannot be, 7 have no row yet.',
    ]);
  });
});

describe('a heat map', () => {
  it('is a table with the figures in its coloured cells', () => {
    const page = pageOf({ y: ['speed'], z: 'messagesPerSecond' });
    expect(page.heatMaps[0]).toMatchObject({ xs: ['16', '32', '64', '128', '256'], ys: ['QDR', 'FDR'] });
    expect(page.text[0]).toContain(
      'From 1.6 Mmsg/s at mttCacheLines=16, generation=3, speed=QDR to 6.4 Mmsg/s',
    );
    expect(page.heatMaps[0]!.reports).toEqual([
      [0, 2, 4, 6, 8],
      [1, 3, 5, 7, 9],
    ]);
    const shown = htmlOf(page);
    const place = 'MTT cache lines=16, Wire speed=QDR: 1.6';
    const cell = `<td style="background:rgb(68 1 84);color:#fff" title="${place}">`;
    expect(shown).toContain(
      `<th scope="row">QDR<wbr></th>${cell}<a class="opens" href="#report-0" title="${place}, opens its report"><span>1.6</span></a></td>`,
    );
  });
});

describe('a large heat map', () => {
  it('shows as many points as a sweep may have', () => {
    const side = Array.from({ length: 500 }, (_, at) => at);
    const cells = side.map((y) => side.map((x) => x + y));
    const names = side.map(String);
    const map = { title: 't', xLabel: 'x', xs: names, yLabel: 'y', ys: names, label: 'z', cells };
    const html = chartPage({ title: 't', command: 'c', version: '1' }, { charts: [], heatMaps: [map] });
    expect(html).toContain(
      '<td style="background:rgb(253 231 37);color:#000" title="x=499, y=499: 998"><span>998</span></td>',
    );
  });
});

describe('a Pareto front', () => {
  it('shows as many points as a sweep may have', () => {
    const many = Array.from({ length: 200_000 }, (_, index) => ({ ...rows[0]!, index }));
    const options: PlotOptions = { x: 'messagesPerSecond', y: ['typicalPs'], where: [] };
    expect(plotPage(plotOf({ ...results, rows: many }, options)).tables[1]!.rows).toHaveLength(200_000);
  });

  it('shows all points, which are also listed', () => {
    const page = pageOf({ x: 'typicalPs', by: 'speed' });
    expect(page.charts[0]!.lines.map(({ name }) => name)).toEqual([
      'wire speed: QDR',
      'wire speed: FDR',
      'Pareto front',
    ]);
    // Beyond 64 lines only the latency falls: for each rate, the point with the lowest latency is on the front.
    expect(page.tables.map(({ title, rows: listed }) => [title, listed.length])).toEqual([
      ['The Pareto front', 1],
      ['All points', 10],
    ]);
    const html = htmlOf(page);
    expect(html).toContain('"isScattered":true');
    expect(html).toContain('FDR</t');
  });
});

describe('rejects with a reason what cannot be drawn:', () => {
  test.each<[Partial<PlotOptions>, string]>([
    [{ x: 'mttCacheLine' }, 'did you mean'],
    [{ y: ['messagesPerSec'] }, 'did you mean messagesPerSecond?'],
    [{ y: ['bound'] }, 'a figure that is a number'],
    [{ by: 'mttCacheLines' }, 'one of pcie.link.generation, wire.speed'],
    [{ where: ['speed'] }, 'axis=value'],
    [{ where: ['speed=EDR'] }, 'wire.speed with one of QDR, FDR'],
    [{ y: ['speed'] }, 'a figure to colour with'],
    [{ y: ['speed'], z: 'bound' }, 'a figure that is a number'],
    [{ z: 'typicalPs' }, 'left out unless --x and --y are two axes'],
    [{ y: ['speed'], z: 'typicalPs', by: 'generation' }, 'left out of a heat map'],
    [{ x: 'typicalPs', y: ['typicalPs'] }, 'one figure, and another than --x'],
  ])('%j', (options, words) => {
    expect(() => pageOf(options)).toThrow(ConfigurationError);
    expect(() => pageOf(options)).toThrow(words);
  });

  it('also results without a finished point', () => {
    expect(() => plotOf({ ...results, rows: [failed] }, { x: 'a', y: ['b'], where: [] })).toThrow(
      'figures to draw',
    );
  });
});
