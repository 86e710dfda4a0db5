/**
 * The part of the page on the rows of reference/measurements-third.csv: by source and family, with the reasons that the
 * sources themselves suggest for what is missed.
 */
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
    'The slot carries 26.0 Gb/s and the source does not state it; the profile has Gen3 x8. The latencies are almost twice those of the same card elsewhere, on cores whose clock was not fixed.',
  ],
  [
    /lab-baremetal-gpu-cluster/,
    'The profile with a 40 Gb/s port is not a fitted one, and its least latency is that of a slower card.',
  ],
  [
    /HC44rs/,
    'Virtual machines on either side of an unknown number of switches: each latency is 0.6 us above the model. From 16 KiB to 512 KiB the messages of the ping-pong take longer than their bytes. The card sends messages of 4096 bytes at two thirds of the rate that larger ones have; the model sends them at the rate of the cable.',
  ],
  [
    /Kubernetes with a ConnectX-5/,
    'Cores of 1.2 to 2.0 GHz post half as many datagrams as the core of the model; other hosts with such cards post 5 to 6 million. The 99th percentiles contain pauses of the host, which the model does not have.',
  ],
  [/two hosts, cu05/, 'READs of one QP: the card stays 4 % below WRITEs, the model does not.'],
  [
    /containers of two nodes/,
    'A virtual function adds 0.3 us to each message; the model has none. READs of one QP as above.',
  ],
  [
    /^On the Impact of Cluster Configuration/,
    'The hosts are ARM processors. An interrupt costs them 8 to 14 us more than the host of the model. READs of less than 128 bytes are as fast as on the card at FDR, while the profile of RoCE is not a fitted one.',
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
        'These rows were found after parameters were fitted and mechanisms chosen. No parameter was changed for them.',
        sourceTable(own),
        familyTable(ownCases, own),
      ].join('\n\n');
}
