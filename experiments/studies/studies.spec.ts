/** Each study on a smaller grid: it is answered in three sentences of figures, and its page in docs/studies has the same figures. */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it, vi } from 'vitest';
import { plotOf } from '../../cli/plot/plot-choice.ts';
import { plotPage } from '../../cli/plot/plot-page.ts';
import { localRunner } from '../../cli/sweep/sweep-engine.ts';
import { rowsOf } from '../../test/extent.ts';
import { checkedSpec, figureKindOf, headerOf, pointsOf, type SweepRow } from '../sweep/index.ts';
import { type Study, StudyFigures, studies } from './index.ts';
import { drawnFigures } from './markdown.ts';

vi.setConfig({ testTimeout: 600_000 });

const pageOf = (name: string): string =>
  readFileSync(fileURLToPath(new URL(`../../docs/studies/${name}.md`, import.meta.url)), 'utf8');

async function answered(study: Study) {
  const points = study.reducedPoints ?? study.spec.points;
  const spec = checkedSpec({
    ...study.spec,
    vary: study.reduced,
    ...(points === undefined ? {} : { points }),
  });
  const chosen = pointsOf(spec);
  await using runner = localRunner(1);
  const rows: SweepRow[] = [];
  for (const { index, hash, axes, order, refusal } of chosen) {
    if (order === undefined) throw new Error(refusal);
    rows.push({ hash, index, axes, figures: {}, ...(await runner.run(order)) });
  }
  return { header: headerOf(spec, chosen), rows };
}

/** These take ten seconds each: only a run of everything asks them. */
const isLong = ({ name }: Study): boolean => ['collisions', 'parameter-server', 'scale'].includes(name);
const asked = rowsOf(
  studies.filter((study) => !isLong(study)),
  studies.filter(isLong),
);

/** A table of figures in a page: rows by the values of the axes, as text. */
function tableOf(page: string): { head: string[]; rows: string[][] } {
  const lines = page.split('\n').filter((line) => line.startsWith('| '));
  const cells = lines.map((line) => line.slice(2, -2).split(' | '));
  return { head: cells[0]!, rows: cells.slice(2) };
}

describe.each(asked.map((study) => [study.name, study] as const))('hca ask %s', (name, study) => {
  it('answers in three sentences, draws its plots, and its page has figures within a quarter of these', async () => {
    const { header, rows } = await answered(study);
    expect(rows.map(({ status, error }) => error ?? status)).toEqual(rows.map(() => 'done'));
    const answer = study.answer(new StudyFigures(rows));
    expect(answer).toHaveLength(3);
    for (const sentence of answer) {
      expect(sentence).toMatch(/\.$/);
      expect(sentence).not.toMatch(/NaN|undefined|Infinity/);
    }
    expect(answer.join(' ')).toMatch(/\d/);
    for (const plot of study.plots)
      expect(plotPage(plotOf({ header, rows }, { ...plot, where: [] })).charts.length).toBeGreaterThan(0);

    const page = pageOf(name);
    expect(page).toContain(`# ${study.question}`);
    expect(page).toContain(`npx hca ask ${name}`);
    const { head, rows: written } = tableOf(page);
    const figures = drawnFigures(study);
    for (const row of rows) {
      const place = header.axes.map((axis) => String(row.axes[axis] ?? '–'));
      const found = written.find((cells) =>
        header.axes.every((axis, at) => cells[head.indexOf(axis)] === place[at]),
      );
      expect(found, `${name}: ${place.join(', ')}`).toBeDefined();
      for (const figure of figures.filter((each) => /PerSecond|Ps$/.test(each))) {
        const { divisor } = figureKindOf(figure);
        const there = Number.parseFloat(found![head.indexOf(figure)]!);
        const here = Number(row.figures[figure]) / divisor;
        expect(here / there, `${figure} at ${place.join(', ')}: ${here}, page ${there}`).toBeGreaterThan(
          0.75,
        );
        expect(here / there, `${figure} at ${place.join(', ')}: ${here}, page ${there}`).toBeLessThan(1.25);
      }
    }
  });
});

describe('studies', () => {
  it('reject an answer without a figure', () => {
    for (const study of studies) expect(() => study.answer(new StudyFigures([]))).toThrow();
  });

  it('divide the cycles of the server by the messages of all QPs', () => {
    // 2 M per second for 400 µs are 800 messages, 200 of each of four QPs; the core worked 800,000 cycles on them.
    const rows = ['read-bw', 'send-bw'].map((test, index) => ({
      ...{ hash: test, index, status: 'done' as const, axes: { test, echo: test === 'send-bw', size: 32 } },
      figures: {
        ...{ messagesPerSecond: 2e6, durationPs: 4e8, iterations: 200 },
        ...(test === 'send-bw' ? { 'cores.1.cycles.poll': 500_000, 'cores.1.cycles.post': 300_000 } : {}),
      },
    }));
    const [, cycles] = studies.find(({ name }) => name === 'sides')!.answer(new StudyFigures(rows));
    expect(cycles).toBe("The server's processor spends 0 cycles a value by READ and 1000 by calls.");
  });

  it('are listed in docs/studies, each with its question', () => {
    const list = pageOf('README');
    for (const { name, question } of studies) expect(list).toContain(`[${question}](${name}.md)`);
  });
});
