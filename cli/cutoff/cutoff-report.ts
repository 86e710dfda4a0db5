/** Results of `hca cutoff` as table, plot, sentences, JSON and a page. */

import Table from 'cli-table3';
import type { WaitingBy, Way } from '../../experiments/model/index.ts';
import type { PageHead } from '../../explain/page/index.ts';
import { type Chart, chartPage, sizeText, terminalChart } from '../chart/index.ts';

export const ways = ['eager', 'onTheFly', 'cached'] as const satisfies readonly Way[];

export const wayNames: Readonly<Record<Way, string>> = {
  eager: 'copy',
  onTheFly: 'register',
  cached: 'cached',
};

/** Two ways, and the size from which on the second is cheaper; undefined: nowhere in the range. */
export interface Crossing {
  readonly from: Way;
  readonly to: Way;
  readonly simulatedBytes: number | undefined;
  readonly formulaBytes: number | undefined;
  /** This text replaces the result if the curves do not cross. */
  readonly note?: string;
}

interface CutoffLatencies {
  readonly simulatedPs: Readonly<Record<Way, readonly number[]>>;
  readonly formulaPs: Readonly<Record<Way, readonly number[]>>;
}

export interface CutoffResult extends CutoffLatencies {
  readonly waiting: WaitingBy;
  readonly crossings: readonly Crossing[];
  /** The cut-off that a channel uses: messaging.cutoffBytes, or a computed value if that is 0. */
  readonly cutoffBytes: number;
}

const usec = (ps: number): string => (ps / 1e6).toFixed(2);

/** Deviation of the formula's crossing from the simulated one, in percent of the latter; undefined if either is missing. */
function differencePercent({ simulatedBytes, formulaBytes }: Crossing): number | undefined {
  if (simulatedBytes === undefined || formulaBytes === undefined) return undefined;
  return (formulaBytes / simulatedBytes - 1) * 100;
}

export function resultText(sizes: readonly number[], result: CutoffResult): string {
  const table = new Table({
    head: ['bytes', ...ways.flatMap((way) => [`${wayNames[way]} µs`, 'formula'])],
    style: { head: [], border: [], compact: true },
    colAligns: ['right', ...ways.flatMap(() => ['right', 'right'] as const)],
  });
  for (const [at, size] of sizes.entries()) {
    const cells = ways.flatMap((way) => [
      usec(result.simulatedPs[way][at]!),
      usec(result.formulaPs[way][at]!),
    ]);
    table.push([sizeText(size), ...cells]);
  }
  const lines = [...result.crossings.map(crossingText), `cut-off of a channel: ${result.cutoffBytes} bytes`];
  const chart = terminalChart(chartOf(sizes, result), { width: 72, height: 18 });
  return `waiting by ${result.waiting}\n${table.toString()}\n\n${chart}\n${lines.join('\n')}\n`;
}

function crossingText(crossing: Crossing): string {
  const { from, to, simulatedBytes, formulaBytes, note } = crossing;
  const names = `${wayNames[from]} → ${wayNames[to]}:`;
  if (note !== undefined) return `${names} ${note}`;
  const difference = differencePercent(crossing);
  const parts = [
    `${wayNames[to]} is cheaper from ${bytesText(simulatedBytes)} on (simulated)`,
    `${bytesText(formulaBytes)} (formula)`,
    ...(difference === undefined ? [] : [`difference ${difference.toFixed(1)} %`]),
  ];
  return `${names} ${parts.join(', ')}`;
}

const bytesText = (bytes: number | undefined): string =>
  bytes === undefined ? 'no size in the range' : `${bytes} bytes`;

function chartOf(sizes: readonly number[], result: CutoffResult): Chart {
  const { waiting, simulatedPs, formulaPs, crossings } = result;
  const pointsOf = (figuresPs: readonly number[]) =>
    sizes.map((size, at) => [size, figuresPs[at]! / 1e6] as const);
  const marks = crossings.flatMap(({ from, to, simulatedBytes, note }) =>
    simulatedBytes === undefined || note !== undefined
      ? []
      : [{ x: simulatedBytes, text: `${wayNames[from]} → ${wayNames[to]}: ${simulatedBytes} bytes` }],
  );
  return {
    title: `One way of a message, waiting by ${waiting}`,
    xLabel: 'Message size (B)',
    yLabel: 'µs',
    yTitle: 'Latency of one way (µs)',
    lines: ways.flatMap((way) => [
      { name: wayNames[way], points: pointsOf(simulatedPs[way]) },
      { name: `${wayNames[way]}, formula`, besides: wayNames[way], points: pointsOf(formulaPs[way]) },
    ]),
    marks,
  };
}

/** First sentences of the page. */
export const resultSentences = (results: readonly CutoffResult[]): string[] =>
  results.flatMap(({ waiting, crossings, cutoffBytes }) => [
    ...crossings.map((crossing) => `Waiting by ${waiting}, ${crossingText(crossing)}.`),
    `Waiting by ${waiting}, a channel goes by a cut-off of ${cutoffBytes} bytes.`,
  ]);

/** Over iWARP the formula is only near the simulation. */
export const iwarpFormulaSentence =
  'The formula is of InfiniBand and RoCE. Over iWARP it leaves out the time in the TCP engines: the simulated figures count.';

export const resultPage = (
  head: PageHead,
  sizes: readonly number[],
  results: readonly CutoffResult[],
): string => chartPage(head, { charts: results.map((result) => chartOf(sizes, result)) });
