/** A study as a page of docs/studies: the question, its command, the answer, and every drawn figure. */

import { paragraph } from '../../explain/text/paragraph.ts';
import { figureText, type Results, type SweepRow } from '../sweep/index.ts';
import type { Study } from './study.ts';

/** Figures that a study draws, each once, without axes. */
export const drawnFigures = ({ plots, spec }: Study): string[] =>
  [...new Set(plots.flatMap(({ x, y, z }) => [x, ...y, ...(z === undefined ? [] : [z])]))].filter(
    (name) => ![spec.vary, ...(spec.points ?? [])].some((axes) => Object.hasOwn(axes, name)),
  );

export function studyMarkdown(study: Study, { header, rows }: Results, answer: readonly string[]): string {
  const figures = drawnFigures(study);
  const head = [...header.axes, ...figures];
  const line = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`;
  return [
    `# ${study.question}`,
    '',
    '```',
    `npx hca ask ${study.name}`,
    '```',
    ...answer.map((sentence) => paragraph(sentence, '- ')),
    '',
    paragraph(
      `\`${study.spec.workload}\` on \`${JSON.stringify(study.spec.machine ?? {})}\`; written by \`npm run studies\`, held to the model by \`npx vitest run experiments/studies\`.`,
    ),
    '',
    line(head),
    line(head.map(() => '---')),
    ...rows.map((row) =>
      line([...header.axes.map((axis) => String(row.axes[axis] ?? '–')), ...cellsOf(row, figures)]),
    ),
    '',
  ].join('\n');
}

const cellsOf = (row: SweepRow, figures: readonly string[]): string[] =>
  figures.map((name) => {
    const value = row.figures[name];
    return typeof value === 'number' ? figureText(name, value) : '–';
  });
