/**
 * docs/reference/fidelity.md: figures within tolerance, misses with their sizes, and suspected mechanisms. It is
 * generated from the measurements and a run's figures, so that it always agrees with them.
 */
import { paragraph } from '../../explain/text/paragraph.ts';
import { fabricText } from './fabric-rows.ts';
import { isRun, notRunKinds } from './family.ts';
import { fittedParameters } from './fitted.ts';
import { laterText } from './later-rows.ts';
import type { Measurement } from './measurements.ts';
import { mechanismText } from './mechanisms.ts';
import { errorText, markdownTable, percentText, tallyText } from './shown.ts';
import { signatureRows } from './signatures.ts';
import { type SuspicionName, suspicions } from './suspicions.ts';
import {
  type Case,
  casesOf,
  type GroupResult,
  groupsOf,
  groupTitle,
  judged,
  type RowResult,
  type Tally,
  tallyOf,
} from './validation.ts';
import { tolerances } from './verdict.ts';

/** The simulated value, by row. */
export type SimulatedFigures = Readonly<Record<string, number>>;

/** @param crossValidation a section of its own; @param fabrics rows of a section of their own */
export function fidelityPage(
  rows: readonly Measurement[],
  figures: SimulatedFigures,
  crossValidation: string,
  fabrics: readonly Measurement[],
): string {
  const [cases, fabricCases] = [casesOf(rows), casesOf(fabrics)];
  const judgedOf = (one: Case): RowResult => judged(one, figures[one.row.id] ?? Number.NaN);
  const results = cases.map(judgedOf);
  const withoutFigure = cases.filter(({ row, family }) => isRun(family) && figures[row.id] === undefined);
  return `${[
    introduction(groupsOf(results).at(-1)!, ofOtherSources(results)),
    ...staleText(withoutFigure.map(({ row }) => row.id)),
    ...['## By source', '', groupTable(groupsOf(results))],
    ...['', '## By family', '', familyTable(cases, results)],
    ...['', '## Rows found later', '', laterText(cases, results)],
    ...['', '## Fabrics', '', fabricText(fabricCases, fabricCases.map(judgedOf))],
    ...['', '## Signatures', '', signatureTable(rows, figures)],
    ...['', '## What was fitted', '', fittedText()],
    ...['', '## Physics, fits and guesses', '', mechanismText()],
    ...['', crossValidation],
    ...['', '## What is suspected', '', suspicionTable(cases, results)],
    ...['', '## Rows that are missed', '', missTable(cases, results)],
    ...['', '## Rows that are not run', '', notRunTable(cases)],
  ].join('\n')}\n`;
}

/** Rows that have not run with the present profiles. */
const staleText = (ids: readonly string[]): string[] =>
  ids.length === 0
    ? []
    : [
        paragraph(
          `${ids.length} rows have no figure of these profiles yet and count as missed: ${rangesText(ids)}.`,
        ),
        '',
      ];

/** Unseen rows of sources none of whose rows a parameter was fitted to. */
function ofOtherSources(results: readonly RowResult[]): Tally {
  const fitted = new Set(results.filter(({ isGiven }) => isGiven).map(({ source }) => source));
  return tallyOf(results.filter(({ source }) => !fitted.has(source)));
}

const introduction = ({ rows, notRun, given, unseen }: GroupResult, others: Tally): string => {
  const toleranceNames = Object.values(tolerances).map(({ name }) => name);
  return [
    '# Fidelity',
    paragraph(
      `How far the model can be trusted: [measurements of real hardware](../../reference/measurements.md) next to the model's figures for the same workload. **Of the rows that nothing was fitted to, ${tallyText(unseen)}, are within tolerance**; of those that were known when parameters were fitted, ${tallyText(given)}. The first share is the one to expect of a figure that was never measured, if a figure of the same hosts was: of sources none of whose rows a parameter was fitted to, ${tallyText(others)}, are. ${notRun} of ${rows} rows are not run. The tolerances are those of the measurements' page: ${toleranceNames.join(', ')}.`,
    ),
    paragraph(
      '[measurements.csv](../../reference/measurements.csv) has the given rows, [measurements-second.csv](../../reference/measurements-second.csv) those that were kept back, and [measurements-third.csv](../../reference/measurements-third.csv) those that were found after that: they are unseen unless their role says that a parameter was fitted to them since. `npx hca validate --rows-file FILE` runs measurements of your own: a file with the columns id, nic, link, workload, params, metric, value and unit, of which [validate](../how-to/validate.md) says more.',
    ),
    paragraph(
      '`npx hca validate` runs all rows, `npx hca validate --rows D-030,C-074..C-083` some of them, and `npx hca validate --list` lists how each is run. `npm run docs` makes this page of the figures in `docs/reference/fidelity.json`. They come from runs of all rows (`npx hca validate --json validate.json` and the same with `--fabric`, then `npx node build/pages/fidelity.ts validate.json`).',
    ),
    paragraph(
      'Profiles: groups A, F and I use `connectx3-qdr-fitted`, B to E `connectx3-fdr-fitted`, H `connectx2-gen2` and, by RoCE, `connectx2-10gbe`, J `connectx5-100gbe`; in groups G and T the columns nic, link and pcie decide. The fitted profiles, `connectx3-pro-40gbe` among them, are one set of card parameters; the default `connectx3-qdr` is the same card without them. A ConnectX-2 and a ConnectX-5 share three of these values: the times of a read of host memory and of the answer to a READ, and the order of reads, and with each other the time of an atomic. The others of a ConnectX-2 are its own. A ConnectX-5 has one more, the cycles of a packet of a READ response; its path to the port is the narrowest that carries 100 Gb/s.',
    ),
    paragraph(
      "Some parameters belong to a source: the switch and the core clock of the Apt cluster (C to E), whose library posts single requests by BlueFlame whatever they carry and whose processors put completions of 128 bytes together (D-073); the times of group I's measuring device; the level of some sources' hosts (below). If many machines send to one, a single machine represents them, with a faster slot (except RFP's clients, which wait for each READ) and a requester without intervals of its own. A switch outside the Apt cluster is an estimate. RFP's threads belong to one process and pass a section in turn; those of the other sources are processes of their own. No parameter is set for a row, except the number of cores, the size of memory and, for H-264, frames that hold packets of the MTU that it names.",
    ),
    paragraph(
      'Rows by RoCE: two of a ConnectX-2, three of a ConnectX-5, the READs of Storm over many connections, which the model misses, and those of group T. The latencies of `connectx3-pro-40gbe` rest on the rows of the card on InfiniBand and on the bytes of frames.',
    ),
    '',
  ].join('\n\n');
};

/** Shapes formed by several rows. */
function signatureTable(rows: readonly Measurement[], figures: SimulatedFigures): string {
  const byId = new Map(rows.map(({ id, value }) => [id, value]));
  const shapes = signatureRows(
    (id) => byId.get(id) ?? Number.NaN,
    (id) => figures[id] ?? Number.NaN,
  );
  return markdownTable(['shape', 'measured', 'simulated'], shapes);
}

function fittedText(): string {
  const fitted = fittedParameters();
  const head = paragraph(
    `${fitted.length} parameters are fitted, each of one mechanism; the other rows are predictions. Every other parameter comes from a standard, from a statement of a source (post_send, system calls and registration among them) or is an estimate for which no row was used (\`npx hca profiles\`).`,
  );
  const rows = fitted.map(({ of, name, value, rows: from }) => [of, `\`${name}\``, value, from]);
  return `${head}\n\n${markdownTable(['of', 'parameter', 'value', 'fitted to'], rows)}`;
}

const groupTable = (groups: readonly GroupResult[]): string =>
  markdownTable(
    ['source', 'rows', 'not run', 'given rows within', 'median error', 'unseen rows within', 'median error'],
    groups.map(({ group, rows, notRun, given, unseen }) => [
      group === 'all' ? '**all**' : `${group}: ${groupTitle(group)}`,
      `${rows}`,
      `${notRun}`,
      ...[given, unseen].flatMap((tally) => [tallyText(tally), medianText(tally)]),
    ]),
  );

const medianText = ({ rows, notRun, medianError }: Tally): string =>
  rows === notRun ? '–' : percentText(medianError);

/** Rows by family, in the order of the measurements. */
function byFamily(cases: readonly Case[], results: readonly RowResult[]): Map<Case['family'], RowResult[]> {
  const found = new Map<Case['family'], RowResult[]>();
  for (const [at, { family }] of cases.entries()) {
    const rows = found.get(family) ?? [];
    rows.push(results[at]!);
    found.set(family, rows);
  }
  return found;
}

function familyTable(cases: readonly Case[], results: readonly RowResult[]): string {
  const rows = [...byFamily(cases, results)].flatMap(([family, own]) => {
    if (!isRun(family)) return [];
    const errors = own.map(({ error }) => error!).toSorted((left, right) => left - right);
    const zero = own.every(({ measured }) => measured === 0);
    const range = [errors[0]!, errors.at(-1)!].map((error) => errorText(zero ? 0 : 1, error));
    const span = range[0] === range[1] ? range[0]! : range.join(' to ');
    const groups = [...new Set(own.map(({ group }) => group))].join(', ');
    const within = [true, false].map((isGiven) => withinText(own.filter((row) => row.isGiven === isGiven)));
    return [[groups, family.name, family.workload, ...within, span]];
  });
  return markdownTable(['', 'family', 'workload', 'given', 'unseen', 'errors'], rows);
}

const withinText = (rows: readonly RowResult[]): string =>
  rows.length === 0 ? '–' : `${rows.filter(({ verdict }) => verdict === 'holds').length} of ${rows.length}`;

function suspicionTable(cases: readonly Case[], results: readonly RowResult[]): string {
  const names = Object.keys(suspicions) as SuspicionName[];
  const rows = names.flatMap((name) => {
    const missed = results.filter((result, at) => {
      const { family } = cases[at]!;
      return result.verdict === 'misses' && isRun(family) && family.suspects?.includes(name) === true;
    });
    return missed.length === 0
      ? []
      : [[suspicions[name], `${missed.length}`, rangesText(missed.map(({ id }) => id))]];
  });
  return markdownTable(['mechanism', 'missed rows', 'which'], rows);
}

/** Ids of a group that follow one another as ranges. */
function rangesText(ids: readonly string[]): string {
  const ranges: [string, string][] = [];
  for (const id of ids) {
    const last = ranges.at(-1);
    if (last !== undefined && follows(last[1], id)) last[1] = id;
    else ranges.push([id, id]);
  }
  return ranges.map(([from, to]) => (from === to ? from : `${from}…${to}`)).join(', ');
}

const follows = (before: string, id: string): boolean =>
  before[0] === id[0] && Number.parseInt(id.slice(2), 10) - Number.parseInt(before.slice(2), 10) <= 1;

/** The families with misses, and the median of their absolute errors. */
function missTable(cases: readonly Case[], results: readonly RowResult[]): string {
  const rows = [...byFamily(cases, results)].flatMap(([family, own]) => {
    const missed = own.filter(({ verdict }) => verdict === 'misses');
    if (!isRun(family) || missed.length === 0) return [];
    const errors = missed.map(({ error }) => Math.abs(error!)).toSorted((left, right) => left - right);
    const median = percentText(errors[errors.length >> 1]!);
    return [
      [family.name, `${missed.length} of ${own.length}`, median, rangesText(missed.map(({ id }) => id))],
    ];
  });
  return markdownTable(['family', 'missed', 'median error of these', 'which'], rows);
}

function notRunTable(cases: readonly Case[]): string {
  const left = [
    ...byFamily(
      cases,
      cases.map((one) => judged(one, Number.NaN)),
    ),
  ].flatMap(([family, own]) => (isRun(family) ? [] : [{ family, own }]));
  const rows = notRunKinds.flatMap((kind) =>
    left
      .filter(({ family }) => family.notRun.kind === kind)
      .map(({ family, own }) => [
        kind,
        family.name,
        `${own.length}`,
        rangesText(own.map(({ id }) => id)),
        family.notRun.why,
      ]),
  );
  return markdownTable(['for want of', 'family', 'rows', 'which', 'why'], rows);
}
