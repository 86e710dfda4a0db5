/** The engines with a host interface that no card has: see ../testing/toy-personality.ts. */
import { globSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { CqeSyndrome } from '../../../abi/cqe.ts';
import { EventType } from '../../../abi/eqe.ts';
import { QpState } from '../../../abi/qpc.ts';
import { WqeOpcode } from '../../../abi/wqe-opcodes.ts';
import { broughtUp, bufferAddress, createEq } from '../testing/bring-up.ts';
import { EQN, pattern } from '../testing/data-path-verbs.ts';
import { packetsTo, scene } from '../testing/scenario.ts';
import { ToySoftware, toyEvents, toyFormats } from '../testing/toy-personality.ts';

const LOG_COUNT = 4;
const rings = { sqLogCount: LOG_COUNT, sqLogStride16: 2, rqLogCount: LOG_COUNT, rqLogStride16: 2 };

async function toyScene() {
  const made = await scene({ personality: toyFormats, a: rings, b: rings });
  const { bench, a, b, aCq, bCq } = made;
  const here = new ToySoftware(bench.a, a, aCq, LOG_COUNT);
  const there = new ToySoftware(bench.b, b, bCq, LOG_COUNT);
  /** Runs until `side` has that many completions. */
  const completionsOf = async (side: ToySoftware, count: number): Promise<string[]> => {
    const found: string[] = [];
    await bench.until(() => found.push(...side.poll()) >= count, 500);
    return found;
  };
  return { ...made, here, there, completionsOf };
}

describe('a toy host interface', () => {
  it('moves the bytes of a WRITE from two pieces, and completes in its own format', async () => {
    const { bench, here, local, remote, target, completionsOf } = await toyScene();
    here.send({ letter: 'W', pieces: [local.part(100, 3000), local.part(7000, 500)], remote: target });
    // A WRITE's CQE has no byte count, as on any card.
    expect(await completionsOf(here, 1)).toEqual(['s 0: 0']);
    expect(remote.read(0, 3000)).toEqual(local.read(100, 3000));
    expect(remote.read(3000, 500)).toEqual(local.read(7000, 500));
    bench.checkBalances();
  });

  it('moves the bytes of a READ, and holds a fenced request back for them', async () => {
    const { a, here, local, remote, target, completionsOf } = await toyScene();
    here.send({ letter: 'R', pieces: [local.part(0, 2500)], remote: target });
    here.send({
      letter: 'W',
      pieces: [local.part(0, 2500)],
      remote: { ...target, address: target.address + 4000 },
      isFenced: true,
    });
    expect(await completionsOf(here, 2)).toEqual(['s 0: 2500', 's 1: 0']);
    // The fenced WRITE has sent the data of the READ.
    expect(local.read(0, 2500)).toEqual(pattern(101, 16_384).subarray(0, 2500));
    expect(remote.read(4000, 2500)).toEqual(local.read(0, 2500));
    expect(a.state).toBe(QpState.RTS);
  });

  it('scatters a SEND over the pieces of a receive', async () => {
    const { here, there, local, remote, completionsOf } = await toyScene();
    there.receive([remote.part(9000, 600), remote.part(200, 4000)]);
    here.send({ letter: 'S', pieces: [local.part(50, 1500)] });
    expect([await completionsOf(here, 1), await completionsOf(there, 1)]).toEqual([
      ['s 0: 0'],
      ['r 0: 1500'],
    ]);
    expect(remote.read(9000, 600)).toEqual(local.read(50, 600));
    expect(remote.read(200, 900)).toEqual(local.read(650, 900));
  });

  it('gets the event that its own doorbell arms', async () => {
    const { bench, here, local, target, aCq, completionsOf } = await toyScene();
    here.arm();
    here.send({ letter: 'W', pieces: [local.part(0, 8)], remote: target });
    await completionsOf(here, 1);
    await bench.run(5);
    expect(bench.a.events.lines).toEqual([`comp 0x${aCq.cqn.toString(16)} eq ${EQN}`]);
    const { sendCount, armCount } = bench.a.dataPath.blocks.doorbells;
    expect([sendCount, armCount]).toEqual([1, 1]);
  });

  it('goes round its rings and its CQ', async () => {
    const { bench, here, there, local, remote, completionsOf } = await toyScene();
    const rounds = 9;
    for (let round = 0; round < rounds; round++) {
      for (let each = 0; each < 12; each++) there.receive([remote.part(each * 8, 8)]);
      for (let each = 0; each < 12; each++)
        here.send({ letter: 'S', pieces: [local.part(each * 8 + round, 8)] });
      const counters = Array.from({ length: 12 }, (_, each) => round * 12 + each);
      expect(await completionsOf(here, 12)).toEqual(counters.map((counter) => `s ${counter}: 0`));
      expect(await completionsOf(there, 12)).toEqual(counters.map((counter) => `r ${counter}: 8`));
      expect(remote.read(0, 96)).toEqual(local.read(round, 96));
    }
    bench.checkBalances();
  });

  it('completes a letter that it does not have with an error, and flushes what follows', async () => {
    const { a, here, local, target, completionsOf } = await toyScene();
    here.send({ letter: '?', pieces: [] });
    here.send({ letter: 'W', pieces: [local.part(0, 8)], remote: target });
    const { LOCAL_QP_OP_ERR, WR_FLUSH_ERR } = CqeSyndrome;
    expect(await completionsOf(here, 2)).toEqual([`x 0: ${LOCAL_QP_OP_ERR}`, `x 1: ${WR_FLUSH_ERR}`]);
    expect(a.state).toBe(QpState.ERR);
  });

  it('puts the same packets on the cable as the ConnectX-3 for the same requests', async () => {
    const toy = await toyScene();
    toy.here.send({ letter: 'W', pieces: [toy.local.part(0, 2500)], remote: toy.target });
    toy.here.send({ letter: 'R', pieces: [toy.local.part(0, 100)], remote: toy.target });
    await toy.completionsOf(toy.here, 2);
    const card = await scene({ a: rings, b: rings });
    const { RDMA_WRITE, RDMA_READ } = WqeOpcode;
    card.a.send({ opcode: RDMA_WRITE, segments: [card.local.part(0, 2500)], remote: card.target });
    card.a.send({ opcode: RDMA_READ, segments: [card.local.part(0, 100)], remote: card.target });
    await card.bench.until(() => card.aCq.takenCount() === 2, 500);
    expect(packetsTo(toy.b).length).toBe(4);
    expect(packetsTo(toy.b)).toEqual(packetsTo(card.b));
    expect(packetsTo(toy.a)).toEqual(packetsTo(card.a));
  });
});

describe('the event writer with a toy host interface', () => {
  it('writes EQEs of 16 bytes, one after another, and starts again at the first after the last', () => {
    const bench = broughtUp({ eventFifoDepth: 8 }, undefined, undefined, {}, toyEvents);
    const eqn = createEq(bench, 0);
    const { events } = bench.control;
    events.mapEvents(0, 1 << EventType.COMM_EST, eqn);
    // An EQ of 128 entries: see createEq.
    for (let cqn = 0; cqn < 128; cqn++) {
      events.postCompletion(eqn, cqn, bench.cycle);
      bench.run();
      events.eqDoorbell(eqn, cqn + 1, false, bench.cycle);
    }
    events.postQpEvent(EventType.COMM_EST, 0x48, bench.cycle);
    bench.run();
    const entry = (index: number): number[] => [...bench.memory.read(bufferAddress(0) + index * 16, 8)];
    expect(entry(1)).toEqual([1, EventType.COMP, 0, 0, 1, 0, 0, 0]);
    expect(entry(127)).toEqual([1, EventType.COMP, 0, 0, 127, 0, 0, 0]);
    expect(entry(0)).toEqual([2, EventType.COMM_EST, 0, 0, 0x48, 0, 0, 0]);
  });
});

describe('the formats of a card', () => {
  const root = fileURLToPath(new URL('..', import.meta.url));
  /** Layouts of WQEs, CQEs, EQEs, doorbells and doorbell records; of contexts, keys, translations, ICM, commands and registers. */
  const layouts = new RegExp(
    `\\b(${[
      /\w+Segment|dataPointer|inlineHeader|lsoHeader|addressVector|\w*[cCeE]qe|cqeBytes/,
      /blueFlameHead|sendDoorbell|cqArm|eqDoorbell|uarOffset|receiveRecord|cqRecord/,
      /qpc|cqc|srqc|eqc|rssContext|addressPath|mpt|MptStatus|mttEntry\w*|indexFormOfKey|icm[A-Z]\w*|mcg\w+/,
      /hcr|bar0|initHca|mapEntry|qp[MT]\w+|mailboxBytes|commands|query[A-Z]\w+|set[A-Z]\w+/,
    ]
      .map(({ source }) => source)
      .join('|')})\\b`,
  );
  const importsOf = (text: string): string =>
    [...text.matchAll(/^import (?:type )?\{([^}]*)\} from '[./]*abi\/index.ts'/gm)]
      .map(([, names]) => names)
      .join();

  it('are known to the room of the card alone, except for what is still to be moved there', () => {
    const files = globSync('**/*.ts', { cwd: root }).filter((file) => !/\.spec\.ts$|^testing\//.test(file));
    expect(files.length).toBeGreaterThan(150);
    const users = files.filter((file) => layouts.test(importsOf(readFileSync(`${root}/${file}`, 'utf8'))));
    expect(users.filter((file) => !file.startsWith('connectx3/')).sort()).toEqual([
      'frames/ring-choice.ts',
      'ibta/packets/roce-route.ts',
      'ibta/receiver/multicast-groups.ts',
    ]);
  });

  it.each(['controlSegment', 'errorCqe', 'cqRecord', 'qpc', 'MptStatus', 'qpTransitions'])(
    'include %s',
    (name) => {
      expect(layouts.test(importsOf(`import { ${name} } from '../../../abi/index.ts';`))).toBe(true);
    },
  );
});
