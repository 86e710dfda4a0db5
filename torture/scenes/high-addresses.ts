/**
 * Regions whose addresses have high bits: across 4 GiB and its multiples, up to the last page of a process (47 bits). WRITEs, READs and atomics
 * reach their ends. A request for a byte outside, adjacent or 2^15 to 2^46 away, ends in REM_ACCESS_ERR and changes nothing (IBTA
 * 9.7.4.1.5, 10.6.3.1).
 */
import { allAccess } from '../../experiments/workloads/index.ts';
import type { IbvMr } from '../../userlib/index.ts';
import type { ArgsOf, Draft, Draws, Side, Stage } from './language/index.ts';
import { ADD, connect, patternOf, READ, scene, times, topic, WRITE } from './language/index.ts';

const pageBytes = 4096;
/** Bytes of a request that misses its region, by far or by its first or last byte. */
const missBytes = 8;
/** Address range of a process; mappings without an address lie at its beginning. */
const userBase = 0x7f00_0000_0000;
const userEnd = 0x7fff_ffff_f000;
const powers = [32, 33, 34, 35, 36, 37, 38, 39];

interface Plan {
  /** Address of its first page. */
  readonly address: number;
  readonly pages: number;
  /** Offset of its first byte in its first page. */
  readonly offset: number;
}

const lengthOf = ({ pages, offset }: Plan): number => pages * pageBytes - offset;
/** Aligned, for atomics. */
const startOf = ({ address, offset }: Plan): number => address + (offset & ~7);

function draw(random: Draws) {
  const order = random.order(powers.length);
  const regions = times(2 + random.below(4), (at): Plan => {
    const pages = 2 + random.below(6);
    const isLast = at === 0 && random.chance(0.5);
    const above = userBase + 2 ** powers[order[at]!]!;
    const address = isLast ? userEnd - pages * pageBytes : above - (1 + random.below(pages - 1)) * pageBytes;
    return { address, pages, offset: random.chance(0.5) ? 0 : random.below(pageBytes) };
  });
  const misses = times(1 + random.below(4), () => {
    const region = random.below(regions.length);
    const near = random.chance(0.5)
      ? -(1 + random.below(missBytes))
      : lengthOf(regions[region]!) - missBytes + 1 + random.below(missBytes);
    const far = (random.chance(0.5) ? 1 : -1) * 2 ** (15 + random.below(32));
    // Bytes by which a request misses its region, up or down.
    return { region, byBytes: random.chance(0.5) ? near : far, isWrite: random.chance(0.5) };
  }).filter(({ region, byBytes }) => {
    const address = startOf(regions[region]!) + byBytes;
    const isOther = regions.some((other, at) => at !== region && Math.abs(other.address - address) < 2 ** 16);
    return address > 0 && !isOther;
  });
  const hasDrawnHardware = random.chance(0.4);
  return { args: { regions, misses }, hasDrawnHardware, climate: 'flawed' } satisfies Draft<unknown>;
}

type Args = ArgsOf<typeof draw>;

/** Connects, and registers memory at the drawn addresses. */
async function open(stage: Stage<Args>): Promise<{ side: Side; regions: readonly IbvMr[] }> {
  const { regions: plans, misses } = stage.args;
  const side = await connect(stage, { areaBytes: 64, qpCount: 1 + misses.length });
  const regions: IbvMr[] = [];
  for (const plan of plans) {
    const mapped = stage.memory.mapFixed(plan.address, plan.pages * pageBytes);
    if (typeof mapped !== 'number') throw new Error(`0x${plan.address.toString(16)}: ${mapped}`);
    regions.push(await side.device.region(startOf(plan), lengthOf(plan), allAccess));
  }
  return { side, regions };
}

const keysTopic = topic<readonly number[]>('keys');

/** Writes, counts and reads in the peer's regions, from its own at the same addresses; then misses them. */
async function asker(stage: Stage<Args>): Promise<void> {
  const { memory, args } = stage;
  const { side, regions } = await open(stage);
  const keys = await stage.take(keysTopic);
  const ask = async (
    qp: number,
    opcode: number,
    at: number,
    there: number,
    here: number,
    lengthBytes: number,
  ) => {
    const area = { address: here, lengthBytes, region: regions[at]! };
    const peer = { address: there, rkey: keys[at]! };
    side.with({ area, peer }).post(at, opcode, { qp, lengthBytes });
    return (await side.next())?.status;
  };
  for (const [at, plan] of args.regions.entries()) {
    const [start, length] = [startOf(plan), lengthOf(plan)];
    const bytes = patternOf(at, length);
    const what = `region ${at} at 0x${start.toString(16)}`;
    memory.write(start, bytes);
    const written = await ask(0, WRITE, at, start, start, length);
    memory.write(start, new Uint8Array(length));
    const read = await ask(0, READ, at, start, start, length);
    stage.expectAt(what, start, bytes);
    const last = (length - 8) & ~7;
    const counted = await ask(0, ADD, at, start + last, start, 8);
    stage.expectAt(`${what}, counted`, start, bytes.subarray(last, last + 8));
    for (const status of [written, read, counted])
      if (status !== 'SUCCESS') stage.accuse(`${what}: ${status}`);
  }
  for (const [number, { region, byBytes, isWrite }] of args.misses.entries()) {
    const start = startOf(args.regions[region]!);
    const opcode = isWrite ? WRITE : READ;
    // A cached translation from the request before must not help.
    await ask(0, opcode, region, start + missBytes, start + missBytes, missBytes);
    const status = await ask(1 + number, opcode, region, start + byBytes, start, missBytes);
    if (status !== 'REM_ACCESS_ERR')
      stage.accuse(`${byBytes} bytes from region ${region}: a request ended in ${status}`);
  }
  await stage.meet('over');
  await stage.lastBytesIn();
}

/** Has its regions at the same addresses. */
async function answerer(stage: Stage<Args>): Promise<void> {
  const { regions } = await open(stage);
  await stage.put(
    keysTopic,
    regions.map(({ rkey }) => rkey),
  );
  await stage.meet('over');
  await stage.lastBytesIn();
  for (const [at, plan] of stage.args.regions.entries()) {
    const due = patternOf(at, lengthOf(plan));
    // The atomic adds one to the last word, whose lowest byte comes first (11.2.2.3: host byte order).
    const view = new DataView(due.buffer);
    const last = (due.length - 8) & ~7;
    view.setBigUint64(last, BigInt.asUintN(64, view.getBigUint64(last, true) + 1n), true);
    stage.expectAt(`own region ${at}`, startOf(plan), due);
  }
}

export const highAddresses = scene({
  about:
    'regions across 4 GiB and up to the last page of a process, and requests that miss them by one bit of the address',
  draw,
  programs: [asker, answerer],
});
