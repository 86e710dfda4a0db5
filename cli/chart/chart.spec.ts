/** Charts as text and as a page: every line appears, and no text of a name escapes its place. */
import { Script } from 'node:vm';
import { describe, expect, it } from 'vitest';
import { chartPage, sizeText, terminalChart } from './index.ts';

const chart = {
  title: 'Latency',
  xLabel: 'bytes',
  yLabel: 'µs',
  lines: [
    { name: 'copy </script><b>', points: [64, 1024, 16_384].map((x) => [x, x / 64] as const) },
    { name: 'cached', points: [64, 1024, 16_384].map((x) => [x, 100] as const) },
  ],
};

const head = { title: 'a & b', command: 'hca x < y', version: '1' };

describe('a chart in the terminal', () => {
  const text = terminalChart(chart, { width: 40, height: 10 });

  it('shows each line by its own character, with a legend', () => {
    expect(text).toContain('● copy </script><b>    ○ cached');
    const rows = text.split('\n').filter((row) => row.includes('┤'));
    // One line rises over all rows, the other stays in its own row.
    expect(rows.filter((row) => row.includes('●')).length).toBeGreaterThan(5);
    expect(rows.filter((row) => row.includes('○'))).toHaveLength(1);
  });

  it('names powers of two below', () => {
    expect(text).toMatch(/64 +256 +1K +4K +16K/);
  });
});

describe('a line that is compared with another', () => {
  const formula = { name: 'copy, formula', besides: 'copy', points: [[64, 2] as const] };
  const held = {
    ...chart,
    lines: [{ name: 'copy', points: [[64, 1] as const] }, formula],
    marks: [{ x: 100, text: 'even at 100' }],
  };

  it('is not drawn in the terminal, and dashed on a page, including at marks', () => {
    expect(terminalChart(held, { width: 40, height: 10 })).not.toContain('formula');
    const page = chartPage(head, { charts: [held] });
    expect(page).toMatch(/"label":"copy, formula"[^}]*"dash":/);
    expect(page).not.toMatch(/"label":"copy"[^}]*"dash":/);
    expect(page).toContain('"marks":[{"x":100,"text":"even at 100","reports":[]}]');
    expect(page).toContain('<th scope="col">copy, formula (µs)</th>');
  });
});

describe('many lines on a page', () => {
  const lines = Array.from({ length: 24 }, (_, at) => ({
    name: `line ${at}`,
    points: [[64, at + 1] as const],
  }));
  const drawnOf = (isScattered: boolean): Record<string, unknown>[] => {
    const page = chartPage(head, { charts: [{ ...chart, lines, isScattered }] });
    const text = /const charts = (\[.*\]);\n/.exec(page)![1]!;
    return (JSON.parse(text) as { lines: Record<string, unknown>[] }[])[0]!.lines;
  };

  it.each([false, true])('are told apart, in the legend as well (points alone: %s)', (isScattered) => {
    const drawn = drawnOf(isScattered);
    const seen = drawn.map(({ stroke, dash, points }) => JSON.stringify([stroke, dash, points]));
    expect(new Set(seen).size).toBe(24);
    expect(new Set(drawn.map(({ stroke, marker }) => `${stroke} ${marker}`)).size).toBe(24);
  });
});

describe('a page', () => {
  const page = chartPage(head, { charts: [chart] });

  it('contains its library, its figures and a table, and loads nothing', () => {
    expect(page).not.toMatch(/(src|href)\s*=\s*["']?(https?:)?\/\//);
    expect(page).toContain('<td>256</td>');
    expect(page.length).toBeGreaterThan(50_000);
  });

  it('escapes its input, so that scripts end where they should', () => {
    expect(page).toContain('<h1>a &amp; b</h1>');
    expect(page).not.toContain('copy </script>');
    const scripts = [...page.matchAll(/<script>([\s\S]*?)<\/script>/g)].map(([, source]) => source!);
    expect(scripts).toHaveLength(2);
    for (const source of scripts) expect(() => new Script(source)).not.toThrow();
  });
});

describe('a size', () => {
  it('is formatted for people', () => {
    expect([1, 64, 1000, 1024, 1536, 65_536, 2 ** 20].map(sizeText)).toEqual([
      '1',
      '64',
      '1000',
      '1K',
      '1536',
      '64K',
      '1M',
    ]);
  });
});
