/**
 * Requests one after another, each polled after a time of its own, from microseconds to hours. The report must agree with the program's clock:
 * count, minimum, maximum and quantiles (nearest rank) of latencies, the stages of their time, and the cycles of all blocks.
 */

import type { Report } from '../../machine/index.ts';
import type { ArgsOf, Draft, Draws, Played, Stage } from './language/index.ts';
import { connect, present, psPerUs, READ, SEND, scene, sumOf, times, WRITE } from './language/index.ts';

const operationNames: Readonly<Record<number, string>> = { [WRITE]: 'WRITE', [READ]: 'READ', [SEND]: 'SEND' };
const secondUs = 1_000_000;
const hourUs = 3600 * secondUs;
/** Relative error of quantiles, as the report promises; numbers beyond 2^53 ps are the nearest ones. */
const quantileError = 0.004;

function draw(random: Draws) {
  const count = 2 + random.below(30);
  const growth = 1.05 + 0.4 * random.unit();
  const waits = times(count, (at) => Math.round(50 * growth ** at));
  const longest = random.unit();
  // Some last seconds and hours: times beyond an epoch, and beyond the exact range of numbers in picoseconds.
  const long = (): number =>
    longest < 0.45
      ? hourUs * (2 + random.below(4)) + random.below(secondUs)
      : secondUs * (1 + random.below(9));
  if (longest < 0.7)
    for (let left = 1 + random.below(3); left > 0; left--) waits[random.below(count)] = long();
  const args = {
    opcode: random.oneOf([WRITE, READ, SEND]),
    lengthBytes: 1 + random.below(random.chance(0.5) ? 64 : 8192),
    // Waits of each request, from the post to the first poll for its end.
    waitsUs: waits
      .map((us) => ({ us, place: random.unit() }))
      .toSorted((left, right) => left.place - right.place)
      .map(({ us }) => us),
  };
  const sleepsSeconds = Math.ceil(sumOf(waits) / secondUs);
  return { args, hasDrawnHardware: random.chance(0.4), sleepsSeconds } satisfies Draft<unknown>;
}

type Args = ArgsOf<typeof draw>;

/** Time from after the post to after the poll of its completion, and time of the post call. */
interface Measured {
  readonly latencyPs: number;
  readonly postPs: number;
}

async function asker(stage: Stage<Args>): Promise<Measured[]> {
  const { opcode, lengthBytes, waitsUs } = stage.args;
  const side = await connect(stage, { areaBytes: 8192 });
  const instant = (): bigint => BigInt(stage.cpu.instantPs);
  const measured: Measured[] = [];
  for (const [id, us] of waitsUs.entries()) {
    await stage.cpu.settle();
    const beforePs = instant();
    side.post(id, opcode, { lengthBytes });
    const postedPs = instant();
    for (let rest = us; rest > 0; rest -= hourUs) await stage.sleepUs(Math.min(rest, hourUs));
    while ((await stage.poll(side.cq, 1)).length === 0) await stage.sleepUs(1);
    measured.push({ latencyPs: Number(instant() - postedPs), postPs: Number(postedPs - beforePs) });
  }
  await stage.meet('over');
  return measured;
}

const answerer = present<Args>(({ opcode, waitsUs }) => ({
  ...{ areaBytes: 8192, cap: { maxRecvWr: 64 } },
  beforeReady: (side) => {
    for (const id of opcode === SEND ? waitsUs.keys() : []) side.receive(id, { lengthBytes: 8192 });
  },
}));

function judge({ args, told, report }: Played<Args, readonly [readonly Measured[], unknown]>): string[] {
  const [measured] = told;
  const row = report.operations[operationNames[args.opcode]!];
  if (row === undefined || row.latencyPs === null) return ['the report has no requests'];
  const sorted = measured.map(({ latencyPs }) => latencyPs).toSorted((left, right) => left - right);
  const count = sorted.length;
  // The library notes the time within its calls.
  const callPs = Math.max(...measured.map(({ postPs }) => postPs));
  const ranked = (percent: number): number => sorted[Math.max(1, Math.ceil((percent / 100) * count)) - 1]!;
  const { min, p50, p99, max } = row.latencyPs;
  const toldPs = sumOf(Object.values(row.milestonesPs));
  const rows: readonly (readonly [what: string, told: number, due: number, slack: number])[] = [
    ['requests', row.count, count, 0],
    ['bytes', row.payloadBytes, count * args.lengthBytes, 0],
    ['ps at least', min, sorted[0]!, callPs],
    ['ps at most', max, sorted.at(-1)!, callPs + 2],
    ['ps at the median', p50, ranked(50), callPs + quantileError * ranked(50)],
    ['ps at 99 %', p99, ranked(99), callPs + quantileError * ranked(99)],
    ['ps in all', toldPs, sumOf(sorted), count * (callPs + 2)],
  ];
  const found = rows.flatMap(([what, told, due, slack]) =>
    Math.abs(told - due) <= slack ? [] : [`the report says ${told} ${what}, the program measured ${due}`],
  );
  return [...found, ...wrongCyclesIn(report)];
}

/** Every block has as many cycles as its clock in the time that has passed. */
function wrongCyclesIn({ nodes, elapsedPs, config }: Report): string[] {
  const due = (elapsedPs / psPerUs) * config.hca.coreClockMHz;
  return nodes.flatMap(({ hca }, node) =>
    Object.entries(hca.blocks).flatMap(([name, { elapsedCycles }]) =>
      Math.abs(elapsedCycles - due) <= 2 + 1e-12 * due
        ? []
        : [`${name} of node ${node} had ${elapsedCycles} cycles in ${elapsedPs} ps`],
    ),
  );
}

export const measuredLatencies = scene({
  about: 'requests that are taken after microseconds or hours, and what the report says of their times',
  draw,
  programs: [asker, answerer],
  judge,
});
