/** Contracts that every block of the data path keeps; adding a block to the table tests it against them. */
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { CqeSyndrome } from '../../abi/cqe.ts';
import { CqArmCommand } from '../../abi/doorbells.ts';
import { PathMtu } from '../../abi/qpc.ts';
import { WqeOpcode } from '../../abi/wqe-opcodes.ts';
import { listWires, Random } from '../../sim/index.ts';
import type { Carried } from './data-path-parts.ts';
import { dataPathWires, enginesFor } from './data-path-wires.ts';
import { type IbtaBlocks, ibtaRoles } from './ibta/ibta-blocks.ts';
import { ibtaWires } from './ibta/ibta-wires.ts';
import { ControlBench } from './testing/control-bench.ts';
import {
  type BenchOptions,
  type DataPathBench,
  type DataPathNode,
  dataPathBench,
  oneLineCaches,
  tightest,
} from './testing/data-path-bench.ts';
import { Cq, connectedPair, pattern, Region, Srq } from './testing/data-path-verbs.ts';
import { localInvalidate } from './testing/key-verbs.ts';
import { mixedTraffic, runMixedTraffic } from './testing/mixed-traffic.ts';
import { scene, syndromesOf } from './testing/scenario.ts';

/** Lists the wires of the engines and of the transport. */
const wiresOf = (carries: Carried) =>
  listWires((b: Parameters<typeof dataPathWires>[0] & IbtaBlocks) => ({
    ...dataPathWires(b, ibtaRoles(b), carries),
    ...ibtaWires(b, enginesFor(b, carries)),
  }));

const wires = wiresOf('packets');
const frameWires = wiresOf('frames');
const roceWires = wiresOf('both');

describe('the wires of the data path', () => {
  it('lead to blocks that there are', async () => {
    const { dataPath } = (await dataPathBench()).a;
    const places = new Set([...Object.keys(dataPath.blocks), 'eventQueues', 'dataPath']);
    for (const table of [wires, frameWires, roceWires])
      expect(table.filter(({ to }) => !places.has(to.split('.')[0]!))).toEqual([]);
    expect(wires.length).toBeGreaterThan(60);
  });

  it('reach every block but those that all share, those that carry packets and frames, and those that software reaches by a BAR or by commands', async () => {
    const { dataPath } = (await dataPathBench()).a;
    const called = new Set(wires.map(({ to }) => to.split('.')[0]!));
    expect(Object.keys(dataPath.blocks).filter((name) => !called.has(name))).toEqual([
      'loopback',
      'reorder',
      'laneGate',
      'roceLink',
      'translator',
      'qpcCache',
      'cqcCache',
      'srqcCache',
      'frameRequests',
      'outbound',
      'inbound',
      'doorbells',
      'objects',
    ]);
  });
});

describe('the diagrams of README.md', () => {
  const page = readFileSync(new URL('README.md', import.meta.url), 'utf8');
  const missingOf = (blocks: readonly object[]): string[] =>
    blocks.map((block) => block.constructor.name).filter((name) => !new RegExp(`\\b${name}\\b`).test(page));

  it('name each block of the data path', async () => {
    const { dataPath } = (await dataPathBench()).a;
    expect(missingOf(Object.values(dataPath.blocks))).toEqual([]);
  });

  it('name each block of the control side', () => {
    expect(missingOf(Object.values(new ControlBench().control.blocks))).toEqual([]);
  });

  it('lack a block that is not there', () => {
    expect(missingOf([new Map()])).toEqual(['Map']);
  });
});

describe('the wires of the data path of an Ethernet port', () => {
  /** Lists callers other than the blocks of RoCE, which are off. */
  const calledBy = (name: string, table: typeof wires): string[] =>
    table
      .filter(({ to, block }) => to === name && !['roceLink', 'outbound', 'inbound'].includes(block))
      .map(({ block, port }) => `${block}.${port}`);

  it('have the frame transmitter and the frame receiver where others have those of packets', () => {
    expect(calledBy('frameReceiver', frameWires)).toEqual(
      calledBy('receiver', wires).filter((caller) => !/^(loopback|reorder)\./.test(caller)),
    );
    expect(calledBy('frameTransmitter', frameWires)).toEqual([
      'requester.transmitter',
      'objects.transmitter',
    ]);
  });

  it('with RoCE have what stands for both', () => {
    expect(calledBy('inbound', roceWires)).toEqual(calledBy('frameReceiver', frameWires));
    expect(calledBy('outbound', roceWires)).toEqual([
      'requester.transmitter',
      'frameTransmitter.requester',
      'objects.transmitter',
      'transmitter.requester',
    ]);
    for (const name of ['transmitter', 'receiver'])
      expect(calledBy(name, roceWires)).toEqual(
        calledBy(name, wires).filter((caller) =>
          /^(loopback|reorder|responses|notificationPoint)\./.test(caller),
        ),
      );
  });
});

/** CNPs after one another. */
const limited: BenchOptions = {
  roce: 'v2 over IPv4',
  congestion: { algorithm: 'dcqcn', minTimeBetweenCnpsUs: 1 },
};

/** Marks a tenth of the packets that accept a mark. */
function markSome({ nodes }: DataPathBench, seed: number): void {
  for (const [index, { ethernet }] of nodes.entries()) {
    const chance = { probability: 0.1, random: new Random(seed, `marks ${index}`) };
    ethernet!.port.faults.addRule({ kind: 'congested' }, { chance }, { fired: () => undefined });
  }
}

/** Runs mixed traffic for some time, then does something at an edge of each HCA. */
async function interrupted(
  seed: number,
  act: (node: DataPathNode, cycle: number) => void,
  port: BenchOptions = {},
): Promise<DataPathBench> {
  const random = new Random(seed);
  const bench = await dataPathBench({
    ...port,
    ...(random.chance(0.5) ? { hca: { ...port.hca, ...tightest } } : {}),
    ...(random.chance(0.5) ? { dma: { tagCount: 1 } } : {}),
  });
  if (port.congestion !== undefined) markSome(bench, seed);
  const nodes = random.chance(0.3) ? { a: bench.a, b: bench.a } : bench;
  const traffic = mixedTraffic(nodes, 3, 30, seed, 2);
  const { a } = bench;
  if (random.chance(0.3)) a.port.drops = () => random.chance(0.05);
  if (random.chance(0.3)) a.events.hasRoom = false;
  const stepCount = 3 + random.below(60);
  for (let step = 0; step < stepCount; step++) {
    traffic.step();
    await bench.run(0.5);
  }
  for (const node of bench.nodes) node.act(() => act(node, node.domain.cycle));
  return bench;
}

interface Bottleneck extends BenchOptions {
  readonly isLoopback?: boolean;
}

/** Machines in which the mixture of all operations waits mostly for one thing. */
const bottlenecks: readonly Bottleneck[] = [
  { dma: { tagCount: 1 } },
  { dma: { readIssueCycles: 40, writeIssueCycles: 40, dataPathBytes: 4 } },
  { dma: { writeIssueCycles: 1000 } },
  { dma: { readIssueCycles: 1000 }, hca: { responseBufferPackets: 64 } },
  { hca: tightest },
  { hca: { ...oneLineCaches, cacheMissCycles: 300 } },
  { hca: { wqeLineCount: 1, receiveQueueLineCount: 1 } },
  { isLoopback: true, hca: { loopbackBufferPackets: 1, loopbackBytesPerCycle: 1 } },
];

/**
 * Scenes for cases that the mixture lacks: errors, events, SRQs, small CQs and many queues. Each runs to its end and is
 * checked.
 */
const scenes: readonly (() => Promise<DataPathBench>)[] = [
  errorsWithoutRoomForEvents,
  smallCq,
  manySmallWrites,
  manyReceiveQueues,
  manyReads,
  longReads,
  keyOperations,
];

async function errorsWithoutRoomForEvents(): Promise<DataPathBench> {
  const { bench, a, aCq, local, target } = await scene({ hca: tightest });
  for (const { events } of bench.nodes) events.hasRoom = false;
  aCq.arm(CqArmCommand.NEXT);
  const segments = [local.part(0, 64)];
  a.post({ opcode: WqeOpcode.RDMA_WRITE, segments, remote: target });
  a.post({ opcode: WqeOpcode.RDMA_WRITE, segments, remote: { ...target, key: 0xf_ff00 } });
  for (let index = 0; index < 10; index++) a.post({ opcode: WqeOpcode.RDMA_WRITE, segments, remote: target });
  a.ring();
  await bench.run(100);
  for (const node of bench.nodes) node.act(() => node.events.makeRoom(node.domain.cycle));
  await bench.run(100);
  const flushed = Array.from({ length: 10 }, () => CqeSyndrome.WR_FLUSH_ERR);
  expect(syndromesOf(aCq.drain())).toEqual([0, CqeSyndrome.REMOTE_ACCESS_ERR, ...flushed]);
  expect(bench.nodes.map(({ events }) => events.lines.length)).toEqual([1, 1]);
  return bench;
}

async function smallCq(): Promise<DataPathBench> {
  const bench = await dataPathBench();
  const cq = new Cq(bench.a, 2);
  const { a } = connectedPair(bench.a, bench.b, { a: { sendCq: cq } });
  const to = new Region(bench.b, 64);
  await bench.run(4);
  for (let index = 0; index < 20; index++) {
    a.send({
      opcode: WqeOpcode.RDMA_WRITE,
      inline: pattern(index, 8),
      remote: { address: to.address, key: to.key },
    });
    await bench.until(() => cq.takenCount() === index + 1, 50);
  }
  expect(to.read(0, 8)).toEqual(pattern(19, 8));
  return bench;
}

async function manySmallWrites(): Promise<DataPathBench> {
  const bench = await dataPathBench({ dma: { writeIssueCycles: 1000 } });
  const cq = new Cq(bench.a, 8);
  const pairs = Array.from({ length: 8 }, () => connectedPair(bench.a, bench.b, { a: { sendCq: cq } }));
  const to = new Region(bench.b, 64);
  await bench.run(4);
  for (let index = 0; index < 6; index++)
    for (const { a } of pairs)
      a.send({ opcode: WqeOpcode.RDMA_WRITE, segments: [], remote: { address: to.address, key: to.key } });
  await bench.until(() => cq.takenCount() === 48, 1000);
  return bench;
}

async function manyReads(): Promise<DataPathBench> {
  const bench = await dataPathBench({ dma: { readIssueCycles: 1000 }, hca: { responseBufferPackets: 64 } });
  const cq = new Cq(bench.a, 8);
  const pairs = Array.from({ length: 12 }, () => connectedPair(bench.a, bench.b, { a: { sendCq: cq } }));
  const [from, to] = [new Region(bench.b, 12 * 4096), new Region(bench.a, 12 * 4096)];
  from.fill(9);
  await bench.run(4);
  for (const [index, { a }] of pairs.entries()) {
    const remote = { address: from.address + index * 4096, key: from.key };
    a.send({ opcode: WqeOpcode.RDMA_READ, segments: [to.part(index * 4096, 4096)], remote });
  }
  await bench.until(() => cq.takenCount() === 12, 2000);
  expect(to.read()).toEqual(from.read());
  return bench;
}

/** A lost READ of nearly 2 GiB in packets of 256 bytes uses all PSNs but one: the next READ, of two, waits. */
async function longReads(): Promise<DataPathBench> {
  const fields = { pathMtu: PathMtu.MTU_256, logMaxMessage: 31 };
  const { bench, a, b, aCq, local, target, checkBystanders } = await scene({ a: { fields }, b: { fields } });
  bench.b.port.drops = ({ qpn }) => qpn === b.qpn;
  const part = { ...local.part(0, 8), bytes: 2 ** 30 };
  const last = { ...part, bytes: 2 ** 30 - 512 };
  a.post({ opcode: WqeOpcode.RDMA_READ, segments: [part, last], remote: target });
  a.post({ opcode: WqeOpcode.RDMA_READ, segments: [local.part(0, 512)], remote: target });
  a.ring();
  await bench.run(10);
  a.toError();
  await bench.run(10);
  expect(syndromesOf(aCq.drain())).toEqual([CqeSyndrome.WR_FLUSH_ERR, CqeSyndrome.WR_FLUSH_ERR]);
  await checkBystanders();
  return bench;
}

/**
 * A command claims the MPT; then a SEND, and a request of the other side, each invalidate a key while payload is read
 * slowly.
 */
async function keyOperations(): Promise<DataPathBench> {
  const s = await scene({ dma: { readIssueCycles: 1000 } });
  const { bench, a, b, aCq, bCq, local, remote } = s;
  const [first, second] = [new Region(bench.b, 4096), new Region(bench.b, 4096)];
  const other = connectedPair(bench.a, bench.b);
  b.receive([remote.part(0, 64)]);
  const { keys } = bench.b.dataPath.blocks;
  bench.b.act(() => keys.claim());
  b.sendBytes(localInvalidate(first.key));
  await bench.run(20);
  expect(bCq.drain()).toEqual([]);
  bench.b.act(() => keys.release());
  await bench.until(() => bCq.takenCount() === 1);
  for (let index = 0; index < 4; index++)
    other.b.send({
      opcode: WqeOpcode.RDMA_WRITE,
      segments: [remote.part(0, 4096)],
      remote: { address: local.address, key: local.key },
    });
  a.send({ opcode: WqeOpcode.SEND_INVAL, segments: [local.part(0, 64)], immediate: second.key });
  await bench.until(() => bCq.takenCount() === 2);
  const syndromes: number[] = [];
  await bench.until(() => syndromes.push(...syndromesOf(aCq.drain())) === 1);
  expect(syndromes).toEqual([0]);
  return bench;
}

async function manyReceiveQueues(): Promise<DataPathBench> {
  const bench = await dataPathBench({
    dma: { readIssueCycles: 1000 },
    hca: { receiveQueueLineCount: 2, srqcCacheEntries: 1, srqcCacheWays: 1, cacheMissCycles: 100 },
  });
  const srqs = [new Srq(bench.b), new Srq(bench.b)];
  const from = new Region(bench.a, 4096);
  const to = new Region(bench.b, 4096);
  from.fill(3);
  const receiveCq = new Cq(bench.b, 8);
  const pairs = Array.from({ length: 14 }, (_, index) => {
    const srq = srqs[index];
    return connectedPair(bench.a, bench.b, { b: { receiveCq, ...(srq === undefined ? {} : { srq }) } });
  });
  await bench.run(4);
  for (const [index, { a, b }] of pairs.entries()) {
    const part = [to.part(index * 64, 64)];
    if (srqs[index] === undefined) b.receive(part);
    else srqs[index].post(part);
    a.send({ opcode: WqeOpcode.SEND, segments: [from.part(index * 64, 64)] });
  }
  await bench.until(() => receiveCq.takenCount() === 14, 2000);
  expect(to.read(0, 14 * 64)).toEqual(from.read(0, 14 * 64));
  return bench;
}

const ports: [string, BenchOptions][] = [
  ['', {}],
  [', on Ethernet with RoCE', { roce: 'v2 over IPv4' }],
  [', with congestion control', limited],
  [', with selective repeat', { hca: { lossRecovery: 'selective-repeat' } }],
];

describe('every block of the data path', () => {
  it('shows its state, if a reset clears it', async () => {
    const { dataPath } = (await dataPathBench()).a;
    for (const [name, block] of Object.entries(dataPath.blocks))
      expect('inspect' in block, name).toBe('reset' in block);
  });

  it.each(ports)(
    'sheet 2.3: leaves nothing behind when it is reset, in whatever state%s',
    async (_, port) => {
      const fresh = JSON.stringify((await dataPathBench(port)).a.dataPath.inspect(), null, 1);
      for (let seed = 1; seed <= (port.roce === undefined ? 40 : 15); seed++) {
        const before: string[] = [];
        const after: string[] = [];
        await interrupted(
          seed,
          ({ dataPath, reads, writes }, cycle) => {
            before.push(JSON.stringify(dataPath.inspect(), null, 1));
            reads.reset(cycle);
            writes.reset(cycle);
            dataPath.reset();
            const { qps, cqs } = dataPath.parts;
            for (const slot of qps.liveSlots()) qps.free(slot);
            for (const slot of cqs.liveSlots()) cqs.free(slot);
            after.push(JSON.stringify(dataPath.inspect(), null, 1));
          },
          port,
        ).then((bench) => bench.run(20));
        expect(before[0], `seed ${seed}`).not.toBe(fresh);
        expect(after, `seed ${seed}`).toEqual([fresh, fresh]);
      }
    },
  );

  it.each(ports)(
    'accounts for each of its cycles once, at whatever instant it is asked%s',
    async (_, port) => {
      for (let seed = 50; seed < 60; seed++) {
        const checked: number[] = [];
        await interrupted(
          seed,
          ({ dataPath, domain, lp }) => {
            const elapsed = domain.clock.cyclesElapsed(lp.nowPs);
            for (const account of dataPath.accounts) {
              const { name, busyCycles, idleCycles, stalledCycles, overlapCount } = account.closedAt(elapsed);
              const stalled = stalledCycles.reduce((sum, cycles) => sum + cycles, 0);
              expect([name, busyCycles + idleCycles + stalled, overlapCount]).toEqual([name, elapsed, 0]);
              checked.push(elapsed);
            }
          },
          port,
        ).then((bench) => bench.run(1));
        // With RoCE there are two transmitters, and one pipeline of receivers.
        expect(checked.length).toBe(port.roce === undefined ? 22 : 24);
      }
    },
  );

  it('stalls for each of the reasons that it declares, and loses nothing', async () => {
    const declared = new Set<string>();
    const counted = new Set<string>();
    const look = ({ nodes }: DataPathBench): void => {
      for (const { dataPath } of nodes)
        for (const { name, stallReasons, stalledCycles } of dataPath.accounts)
          for (const [index, reason] of stallReasons.entries()) {
            declared.add(`${name}: ${reason}`);
            if (stalledCycles[index]! > 0) counted.add(`${name}: ${reason}`);
          }
    };
    for (const { isLoopback, ...options } of bottlenecks) {
      const bench = await dataPathBench(options);
      const nodes = isLoopback === true ? { a: bench.a, b: bench.a } : bench;
      await runMixedTraffic(bench, 3, 24, 7, 0, nodes);
      look(bench);
    }
    for (const play of scenes) look(await play());
    expect([...declared].filter((reason) => !counted.has(reason))).toEqual([]);
  });
});
