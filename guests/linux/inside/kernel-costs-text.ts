/** The costs of a guest's kernel for people, in lines of at most 80 characters, made from the report alone. */
import { countText, shareText, timeText } from '../../../explain/text/format.ts';
import { busyPs, type CostComparison, contextText, type KernelCosts } from '../booted/index.ts';

const lineCharacters = 80;
const contextsShown = 24;

const column = (value: number | string, characters: number): string =>
  (typeof value === 'number' ? countText(Math.round(value)) : value).padStart(characters);
const shortened = (columns: string, text: string): string => {
  const room = lineCharacters - columns.length;
  return columns + (text.length <= room ? text : `${text.slice(0, room - 1)}…`);
};

/** Every context with its part of the time, and the comparison with the simulated host. */
export function kernelCostsText(costs: KernelCosts): string {
  const { name, elapsedPs, instructions, cyclePs } = costs;
  return [
    `Kernel of ${name}: what the processor worked for in ${timeText(elapsedPs)}`,
    ...contextLines(costs),
    `The parts add up: ${countText(instructions)} instructions, ${countText(Math.round(elapsedPs / cyclePs))} cycles.`,
    '',
    ...comparisonLines(costs.comparison),
    ...notes,
  ].join('\n');
}

function contextLines({ contexts, elapsedPs, cyclePs }: KernelCosts): string[] {
  const shown = contexts.slice(0, contextsShown);
  const rest = contexts.slice(contextsShown);
  const idlePs = contexts.reduce((sum, { time }) => sum + time.idlePs, 0);
  const line = (
    ps: number,
    entries: number,
    instructions: number | string,
    accesses: number | string,
    text: string,
  ): string => {
    const each = entries === 0 ? '' : ps / cyclePs / entries;
    const columns =
      `${shareText(ps, elapsedPs).padStart(7)} ${column(entries === 0 ? '' : entries, 8)} ` +
      `${column(instructions, 13)} ${column(each, 9)} ${column(accesses, 7)}  `;
    return shortened(columns, text);
  };
  const sumOf = (what: (each: KernelCosts['contexts'][number]) => number): number =>
    rest.reduce((sum, each) => sum + what(each), 0);
  return [
    `${'time'.padStart(7)} ${'count'.padStart(8)} ${'instructions'.padStart(13)} ${'cyc. each'.padStart(9)} ` +
      `${'MMIO'.padStart(7)}  what`,
    ...shown.map((each) =>
      line(busyPs(each), each.entries, each.instructions, each.loads + each.stores, contextText(each)),
    ),
    ...(rest.length === 0
      ? []
      : [
          line(
            sumOf(busyPs),
            sumOf(({ entries }) => entries),
            sumOf((each) => each.instructions),
            sumOf(({ loads, stores }) => loads + stores),
            `${rest.length} others`,
          ),
        ]),
    line(idlePs, 0, '', '', 'halted'),
  ];
}

function comparisonLines(comparison: readonly CostComparison[]): string[] {
  if (comparison.length === 0) return [];
  return [
    `${'this guest'.padStart(10)} ${'simulated host'.padStart(15)} ${'ratio'.padStart(6)}  cycles of its processor for one`,
    ...comparison.map(({ what, guestCycles, modelCycles }) => {
      const ratio = modelCycles === 0 ? '' : (guestCycles / modelCycles).toFixed(2);
      return shortened(`${column(guestCycles, 10)} ${column(modelCycles, 15)} ${column(ratio, 6)}  `, what);
    }),
  ];
}

const notes = [
  'Counts are exact. Cycles are instructions at a fixed cost, and accesses: caches,',
  'TLBs, pipelines, speculation and further processors are not modelled, so a real',
  'processor needs more cycles for the first pass through code and data, and fewer',
  'for the next.',
];
