/** The engines with a transport that no network has: see ../testing/toy-transport.ts; and where the words of IBTA occur. */
import { globSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { CqeSyndrome } from '../../../abi/cqe.ts';
import { QpState } from '../../../abi/qpc.ts';
import { WqeOpcode } from '../../../abi/wqe-opcodes.ts';
import { benchWith } from '../testing/data-path-bench.ts';
import { type Completion, type Cq, connectedPair, pattern, Region } from '../testing/data-path-verbs.ts';
import { TOY_WINDOW, toyCarrier } from '../testing/toy-transport.ts';

const { RDMA_WRITE, SEND } = WqeOpcode;

/** Two connected QPs of one device, between which packets cross its loop. */
async function toyScene() {
  const bench = await benchWith(toyCarrier);
  const node = bench.a;
  const ends = connectedPair(node, node);
  const from = new Region(node, 8192, { pageOffset: 40 });
  const to = new Region(node, 8192, { pageOffset: 3000 });
  from.write(pattern(7, 8192));
  to.fill(0);
  await bench.run(5);
  const { toyLoop, toyRequests, connections } = node.dataPath.blocks;
  const completionsOf = async (cq: Cq, count: number): Promise<string[]> => {
    const found: Completion[] = [];
    await bench.until(() => found.push(...cq.drain()) >= count, 500);
    return found.map(({ wqeCounter, syndrome, byteCount }) => `${wqeCounter}: ${syndrome} ${byteCount}`);
  };
  return { bench, ...ends, from, to, toyLoop, toyRequests, connections, completionsOf };
}

const hex = (value: number): string => value.toString(16);

describe('a toy transport', () => {
  it('moves the bytes of a WRITE, whose packets have its three fields, and completes it', async () => {
    const { bench, a, aCq, from, to, toyLoop, completionsOf } = await toyScene();
    const segments = [from.part(100, 700), from.part(3000, 500)];
    a.send({ opcode: RDMA_WRITE, segments, remote: { address: to.address + 11, key: to.key } });
    expect(await completionsOf(aCq, 1)).toEqual(['0: 0 0']);
    expect(to.read(11, 700)).toEqual(from.read(100, 700));
    expect(to.read(711, 500)).toEqual(from.read(3000, 500));
    // 1,200 bytes in packets of 512.
    const places = [11, 523, 1035].map((offset) => `W ${hex(to.key)} ${hex(to.address + offset)}`);
    expect(toyLoop.log).toEqual([`${places[0]}: 512`, `${places[1]}: 512`, `${places[2]}: 176`]);
    bench.checkBalances();
  });

  it('scatters a SEND over the segments of a receive, and completes both', async () => {
    const { a, b, aCq, bCq, from, to, toyLoop, completionsOf } = await toyScene();
    b.receive([to.part(5000, 600), to.part(0, 2000)]);
    a.send({ opcode: SEND, segments: [from.part(64, 900)] });
    expect([await completionsOf(aCq, 1), await completionsOf(bCq, 1)]).toEqual([['0: 0 0'], ['0: 0 900']]);
    expect(to.read(5000, 600)).toEqual(from.read(64, 600));
    expect(to.read(0, 300)).toEqual(from.read(664, 300));
    expect(toyLoop.log).toEqual(['S: 512', 'S: 388']);
  });

  it('holds requests back while its window is full, and loses none', async () => {
    const { a, aCq, from, to, toyRequests, completionsOf } = await toyScene();
    const count = 3 * TOY_WINDOW;
    for (let index = 0; index < count; index++) {
      const remote = { address: to.address + index * 600, key: to.key };
      a.post({ opcode: RDMA_WRITE, segments: [from.part(index * 600, 600)], remote });
    }
    a.ring();
    expect((await completionsOf(aCq, count)).length).toBe(count);
    expect(to.read(0, count * 600)).toEqual(from.read(0, count * 600));
    expect(toyRequests.refusedCount).toBeGreaterThan(0);
  });

  it('says how long a message may be', async () => {
    const { a, aCq, from, to, completionsOf } = await toyScene();
    a.send({ opcode: RDMA_WRITE, segments: [from.part(0, 2049)], remote: { ...to, address: to.address } });
    expect(await completionsOf(aCq, 1)).toEqual([`0: ${CqeSyndrome.LOCAL_LENGTH_ERR} 0`]);
    expect(a.state).toBe(QpState.ERR);
  });

  it('is told the numbers of a connection when it starts', async () => {
    const { a, b, connections } = await toyScene();
    // PSNs as connectedPair sets them.
    expect(connections.started.toSorted()).toEqual([
      `receive ${a.slot} ${0x00_0777}`,
      `receive ${b.slot} ${0xff_fffd}`,
      `send ${a.slot} ${0xff_fffd}`,
      `send ${b.slot} ${0x00_0777}`,
    ]);
  });
});

describe('the words of the IBTA transport', () => {
  const root = fileURLToPath(new URL('..', import.meta.url));
  const words = /psn|bth|aeth/i;
  it('occur in its room and in the formats of a card alone', () => {
    const files = globSync('**/*.ts', { cwd: root }).filter(
      (file) => !/\.spec\.ts$|^(testing|ibta|connectx3)\//.test(file),
    );
    expect(files.length).toBeGreaterThan(100);
    const users = files.filter((file) => words.test(readFileSync(`${root}/${file}`, 'utf8')));
    expect(users).toEqual([]);
  });

  it.each([
    ['pair.nextPsn', true],
    ['WORD_AETH', true],
    ['bth.fields', true],
    ['in front of the BTH', true],
    ['the packet number', false],
  ])('include those of "%s": %s', (text, isFound) => {
    expect(words.test(text)).toBe(isFound);
  });
});
