/**
 * The part of the page on the rows of reference/measurements-third.csv: by source and family, with the reasons that the
 * sources themselves suggest for what is missed.
 */
import { paragraph } from '../../explain/text/paragraph.ts';
import { isRun } from './family.ts';
import type { Measurement } from './measurements.ts';
import { errorText, markdownTable, percentText, tallyText } from './shown.ts';
import { type Case, groupsOf, type RowResult } from './validation.ts';

const isLater = ({ role }: Pick<Measurement, 'role'>): boolean => role === 'third';

/** Why rows of a source are missed, by the beginning of its name. */
const reasons: readonly (readonly [source: RegExp, why: string])[] = [
  [
    /^notes on InfiniBand of two hosts node01/,
    'One QP of the card stays 4 % below the port; the model fills it.',
  ],
  [
    /ConnectX-3 Pro pair/,
    'The slot carries 26.0 Gb/s and the source does not state it; the profile has Gen3 x8. The latencies are almost twice those of the same card elsewhere, on cores whose clock was not fixed; the level is fitted to one of them.',
  ],
  [
    /lab-baremetal-gpu-cluster/,
    'A message of this pair is faster by a third than any of a ConnectX-3 on InfiniBand.',
  ],
  [
    /HC44rs/,
    'Virtual machines on either side of an unknown number of switches: the level is fitted to one row. From 16 KiB to 512 KiB the messages of the ping-pong take longer than their bytes. The card sends messages of 4096 bytes at two thirds of the rate that larger ones have; the model sends them at the rate of the cable.',
  ],
  [
    /Kubernetes with a ConnectX-5/,
    'Cores of 1.2 to 2.0 GHz post half as many datagrams as the core of the model; a clock of 0.9 GHz is fitted to one row. Messages of 256 bytes or more are sent at three quarters of the rate of smaller ones, for a reason that is not known. The 99th percentiles contain pauses of the host, which the model does not have.',
  ],
  [/two hosts, cu05/, 'READs of one QP: the card stays 4 % below WRITEs, the model does not.'],
  [
    /containers of two nodes/,
    'The 0.4 us that a virtual function adds to each post are fitted to one row. READs of one QP as above. An atomic takes no longer than a READ on the card, 0.3 us longer on the model, but atomics follow one another more slowly there.',
  ],
  [
    /^On the Impact of Cluster Configuration/,
    'The hosts are ARM processors. The time of an interrupt is fitted to one row; larger messages cost these hosts more. READs of less than 128 bytes are as fast as on the card at FDR; the machine that represents 16 clients holds too few contexts to request them.',
  ],
];
const reasonOf = (source: string): string => reasons.find(([name]) => name.test(source))?.[1] ?? '–';

/** Results with their source as their group. */
const bySource = (results: readonly RowResult[]): RowResult[] =>
  results.map((result) => ({ ...result, group: result.source }));

function sourceTable(results: readonly RowResult[]): string {
  const rows = groupsOf(bySource(results)).map(({ group, rows: count, notRun, unseen }) => [
    group === 'all' ? '**all**' : group,
    `${count}`,
    `${notRun}`,
    tallyText(unseen),
    count === notRun ? '–' : percentText(unseen.medianError),
    reasonOf(group),
  ]);
  return markdownTable(['source', 'rows', 'not run', 'within', 'median error', 'why rows are missed'], rows);
}

function familyTable(cases: readonly Case[], results: readonly RowResult[]): string {
  const found = new Map<string, RowResult[]>();
  for (const [at, { family }] of cases.entries()) {
    const result = results[at]!;
    if (!isRun(family)) continue;
    const key = `${result.source} | ${family.name}`;
    found.set(key, [...(found.get(key) ?? []), result]);
  }
  const rows = [...found].map(([key, own]) => {
    const errors = own.map(({ error }) => error!).toSorted((left, right) => left - right);
    const range = [...new Set([errors[0]!, errors.at(-1)!].map((error) => errorText(1, error)))];
    const within = own.filter(({ verdict }) => verdict === 'holds').length;
    return [key, `${within} of ${own.length}`, range.join(' to ')];
  });
  return markdownTable(['source | family', 'within', 'errors'], rows).replace('| --- |', '| --- | --- |');
}

/** Two tables of the later rows, by source, and by source and family. */
export function laterText(cases: readonly Case[], results: readonly RowResult[]): string {
  const at = cases.flatMap(({ row }, index) => (isLater(row) ? [index] : []));
  const [ownCases, own] = [at.map((index) => cases[index]!), at.map((index) => results[index]!)];
  return own.length === 0
    ? 'None.'
    : [
        paragraph(
          'These rows were found after the parameters of the cards were fitted. Five others of the same sources became given: the level of their hosts is fitted to them (what was fitted).',
        ),
        sourceTable(own),
        familyTable(ownCases, own),
      ].join('\n\n');
}
