/**
 * Requests one after another, each taken when its own time has passed: from microseconds to hours. The report must agree with the
 * program's clock: how many, the shortest, the longest and the quantiles (nearest rank), where their time went, and how many
 * cycles that were.
 */
import { psPerUs } from '../../base/index.ts';
import { barrier } from '../../experiments/workloads/index.ts';
import type { JsonValue, ProgramContext, Report } from '../../machine/index.ts';
import type { Random } from '../../sim/index.ts';
import {
  IBV_WR_RDMA_READ,
  IBV_WR_RDMA_WRITE,
  IBV_WR_SEND,
  IbvWc,
  pollCq,
  postRecv,
} from '../../userlib/index.ts';
import { askerAndAnswerer, connectWithPeer, leave, post, requestOf } from './pair.ts';
import type { Scene, SceneDraft } from './scene.ts';

interface Args {
  readonly opcode: number;
  readonly lengthBytes: number;
  /** Of each request, from the post to the first look for its end. */
  readonly waitsUs: readonly number[];
}

interface Measured {
  /** From after the post to after the poll that took the end. */
  readonly latencyPs: number;
  /** What the call of the post took. */
  readonly postPs: number;
}

const operationNames: Readonly<Record<number, string>> = {
  [IBV_WR_RDMA_WRITE]: 'WRITE',
  [IBV_WR_RDMA_READ]: 'READ',
  [IBV_WR_SEND]: 'SEND',
};
const secondUs = 1_000_000;
const hourUs = 3600 * secondUs;
/** Of quantiles, as the report promises; numbers beyond 2^53 ps are the nearest ones. */
const quantileError = 0.004;

function draw(random: Random): SceneDraft {
  const count = 2 + random.below(30);
  const growth = 1.05 + 0.4 * random.unit();
  const waitsUs = Array.from({ length: count }, (_, at) => Math.round(50 * growth ** at));
  const longest = random.unit();
  const isFar = longest < 0.45;
  // Some as long as seconds and hours: times beyond an epoch, and beyond what numbers hold to the picosecond.
  if (longest < 0.7)
    for (let left = 1 + random.below(3); left > 0; left--)
      waitsUs[random.below(count)] = isFar
        ? hourUs * (2 + random.below(4)) + random.below(secondUs)
        : secondUs * (1 + random.below(9));
  const args: Args = {
    opcode: [IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ, IBV_WR_SEND][random.below(3)]!,
    lengthBytes: 1 + random.below(random.chance(0.5) ? 64 : 8192),
    waitsUs: waitsUs
      .map((us) => ({ us, place: random.unit() }))
      .toSorted((left, right) => left.place - right.place)
      .map(({ us }) => us),
  };
  return {
    args: args as unknown as JsonValue,
    hasDrawnHardware: random.chance(0.4),
    sleepsSeconds: Math.ceil(waitsUs.reduce((sum, us) => sum + us, 0) / secondUs),
  };
}

/** Asks, waits and takes. */
export async function asker(program: ProgramContext): Promise<JsonValue> {
  const { opcode, lengthBytes, waitsUs } = program.args as unknown as Args;
  const side = await connectWithPeer(program, { areaBytes: 8192 });
  const { cpu } = program;
  const instant = (): bigint => BigInt(cpu.instantPs);
  const wcs = [new IbvWc()];
  const measured: Measured[] = [];
  for (const [id, us] of waitsUs.entries()) {
    await cpu.settle();
    const beforePs = instant();
    post(side.qps[0]!, requestOf(side, id, opcode, { offset: 0, lengthBytes }));
    const postedPs = instant();
    for (let rest = us; rest > 0; rest -= hourUs) await cpu.sleep(Math.min(rest, hourUs) * psPerUs);
    while ((await pollCq(side.cq, 1, wcs)) === 0) await cpu.sleep(psPerUs);
    measured.push({ latencyPs: Number(instant() - postedPs), postPs: Number(postedPs - beforePs) });
  }
  await barrier(program, 'over');
  await leave(side);
  return measured as unknown as JsonValue;
}

/** Has the memory. */
export async function answerer(program: ProgramContext): Promise<JsonValue> {
  const { opcode, waitsUs } = program.args as unknown as Args;
  const side = await connectWithPeer(program, {
    areaBytes: 8192,
    cap: { maxRecvWr: 64 },
    beforeReady: ({ qps, area }) => {
      if (opcode !== IBV_WR_SEND) return;
      const sgList = [{ addr: area.address, length: 8192, lkey: area.region.lkey }];
      for (const wrId of waitsUs.keys()) postRecv(qps[0]!, { wrId, sgList, numSge: 1 });
    },
  });
  await barrier(program, 'over');
  await leave(side);
  return [];
}

export const measuredLatencies: Scene = {
  name: 'measured-latencies',
  about: 'requests that are taken after microseconds or hours, and what the report says of their times',
  module: import.meta.url,
  programs: askerAndAnswerer,
  draw,
  judge({ args, results, report }) {
    const { opcode, lengthBytes } = args as unknown as Args;
    const measured = results[0] as unknown as readonly Measured[];
    const row = report.operations[operationNames[opcode]!];
    if (row === undefined || row.latencyPs === null) return ['the report has no requests'];
    const sorted = measured.map(({ latencyPs }) => latencyPs).toSorted((left, right) => left - right);
    const count = sorted.length;
    // The library notes the time within its calls.
    const callPs = Math.max(...measured.map(({ postPs }) => postPs));
    const found: string[] = [];
    const expect = (what: string, actual: number, due: number, slack: number): void => {
      if (Math.abs(actual - due) > slack)
        found.push(`the report says ${actual} ${what}, the program measured ${due}`);
    };
    const ranked = (percent: number): number => sorted[Math.max(1, Math.ceil((percent / 100) * count)) - 1]!;
    const { min, p50, p99, max } = row.latencyPs;
    expect('requests', row.count, count, 0);
    expect('bytes', row.payloadBytes, count * lengthBytes, 0);
    expect('ps at least', min, sorted[0]!, callPs);
    expect('ps at most', max, sorted.at(-1)!, callPs + 2);
    expect('ps at the median', p50, ranked(50), callPs + quantileError * ranked(50));
    expect('ps at 99 %', p99, ranked(99), callPs + quantileError * ranked(99));
    const totalPs = sorted.reduce((sum, ps) => sum + ps, 0);
    const toldPs = Object.values(row.milestonesPs).reduce((sum, ps) => sum + ps, 0);
    expect('ps in all', toldPs, totalPs, count * (callPs + 2));
    return [...found, ...wrongCyclesOf(report)];
  },
};

/** Every block has as many cycles as its clock in the time that has passed. */
function wrongCyclesOf({ nodes, elapsedPs, config }: Report): string[] {
  const dueCycles = (elapsedPs / psPerUs) * config.hca.coreClockMHz;
  return nodes.flatMap(({ hca }, node) =>
    Object.entries(hca.blocks).flatMap(([name, { elapsedCycles }]) =>
      Math.abs(elapsedCycles - dueCycles) <= 2 + 1e-12 * dueCycles
        ? []
        : [`${name} of node ${node} had ${elapsedCycles} cycles in ${elapsedPs} ps`],
    ),
  );
}
