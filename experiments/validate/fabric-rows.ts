/**
 * The part of the page on the rows of reference/fabric-measurements.csv: those that run, by family, with the reason of
 * misses, and the others by what they lack. They count in no share of the page's other parts.
 */
import { paragraph } from '../../explain/text/paragraph.ts';
import { isRun, notRunKinds } from './family.ts';
import { errorText, markdownTable, percentText, tallyText } from './shown.ts';
import { type Case, groupsOf, type RowResult } from './validation.ts';

/** Why rows of a family are missed. Figures are those of rows and sources; figures of the model are in the table. */
const reasons: Readonly<Record<string, string>> = {
  'fabric: HERD of ten clients':
    'Ten clients with 4 requests each wait 3.3 us for an answer (X-088), which are 12 Mops; the source needs 36 clients for 26 Mops. The figure contradicts its text.',
  'fabric: FaRM as HERD emulates it':
    'All of the Apt cluster hold. On Susitna the slot is Gen2: there the model carries more payload than the host, as in group H.',
  'fabric: HERD':
    'The slot of the server fills before that of the hosts: at Gen2 an answer of 128 bytes, a WQE of four lines, takes several times its WQE towards the card. Answers that are not inlined (256 bytes and more) take less time at Gen2 than on the host, as all payload does there.',
  'fabric: HERD, one thread of the server':
    'The core spends 150 ns on each post (C-161); the rate allows 159 ns for a whole request. Posts overlap on the host.',
  'fabric: a round trip through a switch of Ethernet':
    'The switch is the SX6030 of the rows, which cuts through, with the delay that was published for its chip (profile sx1036). The length of the cables and the rate of the ports are not stated (2 m and 40 Gb/s here).',
  'fabric: two switches more':
    'Links are HDR100 with their error correction. The rows name no switch: it has the delay of a SX6036 here. The length of cables between leaf and spine is not stated (2 m here).',
  'fabric: READ of 16 hosts by RoCE at 10 Gb/s':
    'The frames of these rates do not fit a port of 10 Gb/s: 14.0 million answers of 32 bytes a second, of 118 bytes on the cable each, are 13.2 Gb/s, and their requests 11.0. The model is bound by the port to the server, which sends for most of the time and is paused by the card for the rest.',
  'fabric: READ of 16 hosts by RoCE, 90th percentile':
    'Up to 32 bytes the cause is the rate: see the row above. From 512 bytes on the mean agrees, as it must with the rate; times spread here over the eight QPs of a client, while in the source the 90th percentile is the mean.',
};

export function fabricText(cases: readonly Case[], results: readonly RowResult[]): string {
  const { rows, notRun, given, unseen } = groupsOf(results).at(-1)!;
  const head = paragraph(
    `[fabric-measurements.csv](../../reference/fabric-measurements.csv) has ${rows} figures of more than two hosts. \`npx hca validate --fabric\` runs ${rows - notRun} of them, in a minute and a half of processor time: every host and every switch is a node of its own. Of the unseen ones ${tallyText(unseen)}, are within tolerance, with a median error of ${percentText(unseen.medianError)}; of those that repeat a given row, ${tallyText(given)}. Nothing was fitted to them, and the shares above do not count them. No row on congestion control runs: the cards of the sources are FPGAs, or simulated in fabrics of 320 hosts.`,
  );
  return [
    head,
    '',
    ranTable(cases, results),
    '',
    paragraph('A figure that is missed has no value set for it. Rows that are not run lack one of these:'),
    '',
    leftTable(cases, results),
  ].join('\n');
}

function ranTable(cases: readonly Case[], results: readonly RowResult[]): string {
  const rows = [...grouped(cases, results)].flatMap(([family, own]) => {
    if (!isRun(family)) return [];
    const errors = own.map(({ error }) => error!).toSorted((left, right) => left - right);
    const held = own.filter(({ verdict }) => verdict === 'holds').length;
    const span = [errors[0]!, errors.at(-1)!].map((error) => errorText(1, error)).join(' to ');
    return [
      [
        family.name.replace('fabric: ', ''),
        `${held} of ${own.length}`,
        span,
        held === own.length ? '–' : (reasons[family.name] ?? '–'),
      ],
    ];
  });
  return markdownTable(['family', 'within', 'errors', 'why rows are missed'], rows);
}

function leftTable(cases: readonly Case[], results: readonly RowResult[]): string {
  const left = [...grouped(cases, results)].flatMap(([family, own]) =>
    isRun(family) ? [] : [{ ...family.notRun, name: family.name.replace('fabric: ', ''), count: own.length }],
  );
  const rows = notRunKinds.flatMap((kind) => {
    const own = left.filter((one) => one.kind === kind);
    const count = own.reduce((sum, one) => sum + one.count, 0);
    return count === 0
      ? []
      : [[kind, `${count}`, own.map(({ name, count: each, why }) => `${name} (${each}): ${why}`).join('; ')]];
  });
  return markdownTable(['for want of', 'rows', 'which, and why'], rows);
}

/** Results by family, in the order of the rows. */
function grouped(cases: readonly Case[], results: readonly RowResult[]): Map<Case['family'], RowResult[]> {
  const found = new Map<Case['family'], RowResult[]>();
  for (const [at, { family }] of cases.entries())
    found.set(family, [...(found.get(family) ?? []), results[at]!]);
  return found;
}
