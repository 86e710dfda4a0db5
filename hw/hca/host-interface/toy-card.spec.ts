/** A card that shares no part with the ConnectX-3, on the unchanged engines: see ../testing/toy-card.ts. */
import { describe, expect, it } from 'vitest';
import { CommandStatus } from '../../../abi/command-status.ts';
import { CqeSyndrome } from '../../../abi/cqe.ts';
import { QpState } from '../../../abi/qpc.ts';
import { FLAG_GRH } from '../../../wire/index.ts';
import { type BenchOptions, dataPathBench, oneLineCaches } from '../testing/data-path-bench.ts';
import { pattern } from '../testing/data-path-verbs.ts';
import { type ToyCard, toyCard } from '../testing/toy-card.ts';
import { ToyDriver } from '../testing/toy-driver.ts';
import { ToySoftware } from '../testing/toy-personality.ts';

const LOG_COUNT = 4;
const REGION_PAGES = 4;

/** Two nodes whose drivers have made a region, a CQ and a connected QP by commands. */
async function toyCards(options: BenchOptions & { readonly hasGrh?: boolean } = {}) {
  const cards: ToyCard[] = [];
  const bench = await dataPathBench({
    ...options,
    personality: () => {
      const card = toyCard();
      cards.push(card);
      return card;
    },
  });
  const sides = [];
  for (const [index, node] of bench.nodes.entries()) {
    const driver = new ToyDriver(bench, node, cards[index]!);
    await driver.start();
    const region = await driver.region(REGION_PAGES);
    region.write(pattern(1 + 100 * index, REGION_PAGES * 4096));
    const cq = await driver.cq(6);
    const qp = await driver.qp(cq.cqn, LOG_COUNT);
    sides.push({
      node,
      driver,
      card: cards[index]!,
      region,
      cq,
      qp,
      software: new ToySoftware(node, qp, cq, LOG_COUNT),
    });
  }
  const [a, b] = [sides[0]!, sides[1]!];
  const gidOf = ({ node }: typeof a): Uint8Array | undefined =>
    options.hasGrh === true ? node.address.gids.slice(0, 16) : undefined;
  await a.driver.connect(a.qp.qpn, b.qp.qpn, 100, 900, gidOf(b));
  await b.driver.connect(b.qp.qpn, a.qp.qpn, 900, 100, gidOf(a));
  const target = { address: b.region.address, key: b.region.key };
  const completionsOf = async ({ software }: typeof a, count: number): Promise<string[]> => {
    const found: string[] = [];
    await bench.until(() => found.push(...software.poll()) >= count, 500);
    return found;
  };
  return { bench, a, b, target, completionsOf };
}

describe('a card with a command set, contexts, keys and context memory of its own', () => {
  it('moves the bytes of a WRITE and of a READ by the objects that its commands have made', async () => {
    const { bench, a, b, target, completionsOf } = await toyCards();
    a.software.send({
      letter: 'W',
      pieces: [a.region.part(100, 6000), a.region.part(9000, 500)],
      remote: target,
    });
    a.software.send({
      letter: 'R',
      pieces: [a.region.part(0, 90)],
      remote: { ...target, address: target.address + 10_000 },
    });
    expect(await completionsOf(a, 2)).toEqual(['s 0: 0', 's 1: 90']);
    const sent = pattern(1, REGION_PAGES * 4096);
    expect(b.region.read(0, 6000)).toEqual(sent.subarray(100, 6100));
    expect(b.region.read(6000, 500)).toEqual(sent.subarray(9000, 9500));
    expect(a.region.read(0, 90)).toEqual(pattern(101, REGION_PAGES * 4096).subarray(10_000, 10_090));
    bench.checkBalances();
  });

  it('scatters a SEND over a receive, with a GRH by the path of its own contexts', async () => {
    const { a, b, completionsOf } = await toyCards({ hasGrh: true });
    b.software.receive([b.region.part(50, 200), b.region.part(5000, 3000)]);
    a.software.send({ letter: 'S', pieces: [a.region.part(7, 1200)] });
    expect([await completionsOf(a, 1), await completionsOf(b, 1)]).toEqual([['s 0: 0'], ['r 0: 1200']]);
    expect(b.node.port.packets.map(({ flags }) => flags & FLAG_GRH)).toEqual([FLAG_GRH, FLAG_GRH]);
    const sent = pattern(1, 2000);
    expect(b.region.read(50, 200)).toEqual(sent.subarray(7, 207));
    expect(b.region.read(5000, 1000)).toEqual(sent.subarray(207, 1207));
  });

  it('writes evicted contexts in its own form to the pages that its firmware arranges', async () => {
    const { bench, a, target, completionsOf } = await toyCards({ hca: oneLineCaches });
    const cq = await a.driver.cq(4);
    const other = await a.driver.qp(cq.cqn, LOG_COUNT);
    for (let round = 1; round <= 3; round++) {
      a.software.send({ letter: 'W', pieces: [a.region.part(0, 64)], remote: target });
      await completionsOf(a, 1);
    }
    // Another QP, for which software posts nothing that can be sent, needs the only line of the cache.
    await a.driver.connect(other.qpn, 5, 0, 0);
    new ToySoftware(a.node, other, cq, LOG_COUNT).send({ letter: '?', pieces: [] });
    await bench.run(20);
    const at = a.card.contextMemory.contextAddress('qpc', a.qp.qpn);
    const { view } = a.node;
    expect([view.getUint8(at), view.getUint32(at + 4, true), view.getUint32(at + 56, true)]).toEqual([
      QpState.RTS,
      a.qp.qpn,
      103,
    ]);
  });

  it('invalidates a key in its own form, after which accesses by it are refused', async () => {
    const { a, b, target, completionsOf } = await toyCards();
    b.software.send({ letter: 'I', pieces: [], remote: target });
    expect(await completionsOf(b, 1)).toEqual(['s 0: 0']);
    const entry = b.card.contextMemory.keyAddress(b.region.key >>> 8);
    expect([b.node.view.getUint8(entry), b.node.view.getUint32(entry + 4, true)]).toEqual([5, b.region.key]);
    a.software.send({ letter: 'W', pieces: [a.region.part(0, 8)], remote: target });
    expect(await completionsOf(a, 1)).toEqual([`x 0: ${CqeSyndrome.REMOTE_ACCESS_ERR}`]);
  });

  it('destroys a QP when nothing of it is under way', async () => {
    const { bench, a, target } = await toyCards();
    for (let count = 0; count < 5; count++)
      a.software.send({ letter: 'R', pieces: [a.region.part(0, 4000)], remote: target });
    expect(await a.driver.must('D', a.qp.qpn, new Uint8Array(8))).toBe(a.qp.qpn);
    const before = a.region.read(0, 4000);
    await bench.run(50);
    expect(a.region.read(0, 4000)).toEqual(before);
    expect(a.node.dataPath.parts.qps.liveCount).toBe(0);
  });

  it('answers rejected commands in their entries', async () => {
    const { a } = await toyCards();
    const { BAD_OP, BAD_RESOURCE, BAD_QP_STATE } = CommandStatus;
    expect((await a.driver.command('?', 0, new Uint8Array(8))).status).toBe(BAD_OP);
    expect((await a.driver.command('Q', 0, new Uint8Array(32))).status).toBe(BAD_RESOURCE);
    expect((await a.driver.command('D', 7, new Uint8Array(8))).status).toBe(BAD_QP_STATE);
  });
});
