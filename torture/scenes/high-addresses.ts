/**
 * Regions whose addresses have high bits: across 4 GiB and its multiples, up to the last page of a process (47 bits). Each is written,
 * read and counted in at its ends. A byte in front of it or behind it, or 2^15 to 2^46 away, is not of the region: a request for it
 * ends in REM_ACCESS_ERR, and changes nothing (IBTA 9.7.4.1.5, 10.6.3.1).
 */

import { allAccess, barrier } from '../../experiments/workloads/index.ts';
import type { JsonValue, ProgramContext } from '../../machine/index.ts';
import type { Random } from '../../sim/index.ts';
import {
  deregMr,
  IBV_SEND_SIGNALED,
  IBV_WC_REM_ACCESS_ERR,
  IBV_WC_SUCCESS,
  IBV_WR_ATOMIC_FETCH_AND_ADD,
  IBV_WR_RDMA_READ,
  IBV_WR_RDMA_WRITE,
  type IbvMr,
  regMr,
} from '../../userlib/index.ts';
import {
  askerAndAnswerer,
  completionsOf,
  connectWithPeer,
  lastBytesIn,
  leave,
  post,
  type Side,
  someOrder,
} from './pair.ts';
import { differencesOf, patternOf, type Wrong, wrongOf } from './patterns.ts';
import type { Scene, SceneDraft } from './scene.ts';

interface Args {
  readonly regions: readonly RegionPlan[];
  /** Bytes by which a request misses its region, up or down. */
  readonly misses: readonly {
    readonly region: number;
    readonly byBytes: number;
    readonly isWrite: boolean;
  }[];
}

interface RegionPlan {
  /** Of its first page. */
  readonly address: number;
  readonly pages: number;
  /** From its first page to its first byte. */
  readonly offset: number;
}

const pageBytes = 4096;
/** Of a request that misses its region, by far or by its first or last byte. */
const missBytes = 8;
/** A process's own are between these; what it maps without an address lies at the beginning. */
const userBase = 0x7f00_0000_0000;
const userEnd = 0x7fff_ffff_f000;
const powers = [32, 33, 34, 35, 36, 37, 38, 39];

function draw(random: Random): SceneDraft {
  const order = someOrder(random, powers.length);
  const regions = Array.from({ length: 2 + random.below(4) }, (_, at): RegionPlan => {
    const pages = 2 + random.below(6);
    const isLast = at === 0 && random.chance(0.5);
    const above = userBase + 2 ** powers[order[at]!]!;
    const address = isLast ? userEnd - pages * pageBytes : above - (1 + random.below(pages - 1)) * pageBytes;
    return { address, pages, offset: random.chance(0.5) ? 0 : random.below(pageBytes) };
  });
  const misses = Array.from({ length: 1 + random.below(4) }, () => {
    const region = random.below(regions.length);
    const near = random.chance(0.5)
      ? -(1 + random.below(missBytes))
      : lengthOf(regions[region]!) - missBytes + 1 + random.below(missBytes);
    const far = (random.chance(0.5) ? 1 : -1) * 2 ** (15 + random.below(32));
    return { region, byBytes: random.chance(0.5) ? near : far, isWrite: random.chance(0.5) };
  }).filter(({ region, byBytes }) => {
    const address = startOf(regions[region]!) + byBytes;
    const isOther = regions.some((other, at) => at !== region && Math.abs(other.address - address) < 2 ** 16);
    return address > 0 && !isOther;
  });
  const args: Args = { regions, misses };
  return { args: args as unknown as JsonValue, hasDrawnHardware: random.chance(0.4), climate: 'flawed' };
}

const lengthOf = ({ pages, offset }: RegionPlan): number => pages * pageBytes - offset;
/** Aligned, for atomics. */
const startOf = ({ address, offset }: RegionPlan): number => address + (offset & ~7);

async function register({ endpoint }: Side, plans: readonly RegionPlan[]): Promise<IbvMr[]> {
  const regions: IbvMr[] = [];
  for (const plan of plans) {
    const { memory } = endpoint.program;
    const mapped = memory.mapFixed(plan.address, plan.pages * pageBytes);
    if (typeof mapped !== 'number') throw new Error(`0x${plan.address.toString(16)}: ${mapped}`);
    regions.push(await regMr(endpoint.pd, startOf(plan), lengthOf(plan), allAccess));
  }
  return regions;
}

/** Writes, counts and reads in the other's regions, from its own at the same addresses; then misses them. */
export async function asker(program: ProgramContext): Promise<JsonValue> {
  const { regions: plans, misses } = program.args as unknown as Args;
  const side = await connectWithPeer(program, { areaBytes: 64, qpCount: 1 + misses.length });
  const regions = await register(side, plans);
  const keys = (await program.exchange.take('keys')) as readonly number[];
  const { memory } = program;
  const wrong: string[] = [];
  const ask = async (
    qp: number,
    opcode: number,
    at: number,
    remoteAddr: number,
    own: number,
    length: number,
  ) => {
    const reach = { remoteAddr, rkey: keys[at]! };
    post(side.qps[qp]!, {
      wrId: at,
      sgList: [{ addr: own, length, lkey: regions[at]!.lkey }],
      numSge: 1,
      opcode,
      sendFlags: IBV_SEND_SIGNALED,
      wr: { rdma: reach, atomic: { ...reach, compareAdd: 1n, swap: 0n } },
    });
    return (await completionsOf(side, 1))[0]?.status;
  };
  for (const [at, plan] of plans.entries()) {
    const [start, length] = [startOf(plan), lengthOf(plan)];
    const what = `region ${at} at 0x${start.toString(16)}`;
    memory.write(start, patternOf(at, length));
    const written = await ask(0, IBV_WR_RDMA_WRITE, at, start, start, length);
    memory.write(start, new Uint8Array(length));
    const read = await ask(0, IBV_WR_RDMA_READ, at, start, start, length);
    wrong.push(...differencesOf(what, memory.read(start, length), patternOf(at, length)));
    const last = start + ((length - 8) & ~7);
    const counted = await ask(0, IBV_WR_ATOMIC_FETCH_AND_ADD, at, last, start, 8);
    wrong.push(
      ...differencesOf(
        `${what}, counted`,
        memory.read(start, 8),
        patternOf(at, length).subarray(last - start, last - start + 8),
      ),
    );
    for (const status of [written, read, counted])
      if (status !== IBV_WC_SUCCESS) wrong.push(`${what}: status ${status}`);
  }
  for (const [number, { region, byBytes, isWrite }] of misses.entries()) {
    const start = startOf(plans[region]!);
    const opcode = isWrite ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_READ;
    // What is remembered of the page that the request before was for opens nothing of it.
    await ask(0, opcode, region, start + missBytes, start + missBytes, missBytes);
    const status = await ask(1 + number, opcode, region, start + byBytes, start, missBytes);
    if (status !== IBV_WC_REM_ACCESS_ERR)
      wrong.push(`${byBytes} bytes from region ${region}: a request ended in status ${status}`);
  }
  return await end(side, regions, wrong);
}

/** Has its regions at the same addresses. */
export async function answerer(program: ProgramContext): Promise<JsonValue> {
  const { regions: plans, misses } = program.args as unknown as Args;
  const side = await connectWithPeer(program, { areaBytes: 64, qpCount: 1 + misses.length });
  const regions = await register(side, plans);
  await program.exchange.put(
    'keys',
    regions.map(({ rkey }) => rkey),
  );
  const wrong: string[] = [];
  return await end(side, regions, wrong, () => {
    for (const [at, plan] of plans.entries()) {
      const expected = patternOf(at, lengthOf(plan));
      // One is added to the last word, whose lowest byte comes first (11.2.2.3: of the host).
      const view = new DataView(expected.buffer);
      const last = (expected.length - 8) & ~7;
      view.setBigUint64(last, BigInt.asUintN(64, view.getBigUint64(last, true) + 1n), true);
      wrong.push(
        ...differencesOf(`own region ${at}`, program.memory.read(startOf(plan), lengthOf(plan)), expected),
      );
    }
  });
}

async function end(
  side: Side,
  regions: readonly IbvMr[],
  wrong: readonly string[],
  look: () => void = () => {},
): Promise<JsonValue> {
  await barrier(side.endpoint.program, 'over');
  await lastBytesIn(side.endpoint.program);
  look();
  for (const region of regions) await deregMr(region);
  await leave(side);
  return { wrong };
}

export const highAddresses: Scene = {
  name: 'high-addresses',
  about:
    'regions across 4 GiB and up to the last page of a process, and requests that miss them by one bit of the address',
  module: import.meta.url,
  programs: askerAndAnswerer,
  draw,
  judge: ({ results }) => wrongOf(results as unknown as readonly Wrong[]),
};
