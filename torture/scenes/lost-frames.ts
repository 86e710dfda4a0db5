/**
 * Messages both ways over Ethernet without flow control, to ports that hold a frame or a few and drop the next, and over a cable that loses,
 * damages, doubles and delays some. Each message ends well and comes once, or ends as used-up retries do, which takes more losses than
 * there are retries; what has ended well is there, and where nothing was lost nothing is sent again (IBTA vol 1, 9.7.5, 9.9.2).
 */
import { psPerMs } from '../../base/index.ts';
import { barrier } from '../../experiments/workloads/index.ts';
import type { FaultEntry } from '../../machine/faults/index.ts';
import type { JsonValue, ProgramContext } from '../../machine/index.ts';
import type { Random } from '../../sim/index.ts';
import {
  IBV_WC_RETRY_EXC_ERR,
  IBV_WC_SUCCESS,
  IBV_WC_WR_FLUSH_ERR,
  IBV_WR_RDMA_READ,
  IBV_WR_RDMA_WRITE,
  IBV_WR_SEND,
  type PortAttr,
  postRecv,
} from '../../userlib/index.ts';
import { completionsOf, connectWithPeer, type Ended, leave, post, requestOf, type Side } from './pair.ts';
import { differencesOf, patternOf } from './patterns.ts';
import type { Scene, SceneDraft, ScenePlayed } from './scene.ts';

interface Args {
  readonly qpCount: number;
  /** Of each QP of a side. */
  readonly opcodes: readonly number[];
  readonly lengthBytes: number;
  readonly mtuCode: number;
  readonly isTwoWay: boolean;
}

interface Told {
  readonly ended: readonly Ended[];
  /** Messages of the peer whose bytes are not here, by number. */
  readonly missing: readonly number[];
  /** Of READs that ended well. */
  readonly wrong: readonly string[];
}

const retryCount = 7;

function drawFault(random: Random): FaultEntry {
  const which = {
    node: random.below(2),
    shots: 1 + random.below(3),
    ...(random.chance(0.5)
      ? { nth: `${1 + random.below(40)}-` }
      : { chance: `${1 + random.below(20)}%`, seed: random.uint32() }),
  };
  const delay = `${1 + random.below(random.chance(0.5) ? 3000 : 60_000)}ns`;
  switch (random.below(6)) {
    case 0:
      return { packet: 'duplicated', delay, ...which };
    case 1:
      return { packet: 'reordered', by: 1 + random.below(6), delay, ...which };
    case 2:
      return { packet: 'late', delay, ...which };
    case 3:
      return { packet: 'corrupted', ...(random.chance(0.5) ? { crc: 'icrc' } : {}), ...which };
    default:
      return { packet: 'lost', ...which };
  }
}

function draw(random: Random): SceneDraft {
  const mtuCode = 1 + random.below(5);
  const mtu = 128 << mtuCode;
  const kinds = [IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ, IBV_WR_SEND].filter(() => random.chance(0.6));
  const kind = kinds.length === 0 ? [IBV_WR_RDMA_WRITE] : kinds;
  const args: Args = {
    qpCount: 1 + random.below(4),
    opcodes: Array.from({ length: 1 + random.below(6) }, () => kind[random.below(kind.length)]!),
    lengthBytes: Math.max(1, Math.min(16_384, (1 + random.below(12)) * mtu) - random.below(200)),
    mtuCode,
    isTwoWay: random.chance(0.5),
  };
  return {
    args: args as unknown as JsonValue,
    set: {
      'host.memory.sizeMib': 64,
      'hca.capability.linkLayer': 'ethernet',
      'hca.capability.roce': random.chance(0.4) ? 'v1' : 'v2',
      'driver.usesPause': random.chance(0.1),
      'ethernet.mtuBytes': mtu + 96 + random.below(200),
      'ethernet.gigabitsPerSecond': [1, 10, 25, 40, 100, 400][random.below(6)]!,
      'ethernet.receiveFifoFrames': 1 + random.below(random.chance(0.6) ? 4 : 40),
      'ethernet.cableMetres': random.chance(0.5) ? 2 : random.below(2000),
      'dma.writeIssueCycles': random.chance(0.6) ? 1 + random.below(100) : 1,
    },
    hasDrawnHardware: false,
    ...(random.chance(0.6)
      ? { faults: Array.from({ length: 1 + random.below(3) }, () => drawFault(random)) }
      : {}),
    climate: 'lossy',
  };
}

const isSend = (opcode: number): boolean => opcode === IBV_WR_SEND;

export async function player(program: ProgramContext): Promise<JsonValue> {
  const { qpCount, opcodes, lengthBytes, mtuCode, isTwoWay } = program.args as unknown as Args;
  const { memory, node } = program;
  const count = qpCount * opcodes.length;
  const part = count * lengthBytes;
  const isAsking = node === 0 || isTwoWay;
  const isAsked = node === 1 || isTwoWay;
  const place = (which: number, id: number): number => which * part + id * lengthBytes;
  const receives = ({ qps, area }: Omit<Side, 'peer'>): void => {
    for (const [at, opcode] of isAsked ? opcodes.entries() : [])
      for (const [number, qp] of isSend(opcode) ? qps.entries() : []) {
        const id = at * qpCount + number;
        const sgList = [{ addr: area.address + place(1, id), length: lengthBytes, lkey: area.region.lkey }];
        postRecv(qp, { wrId: count + id, sgList, numSge: 1 }, { wr: null, index: 0 });
      }
  };
  const side = await connectWithPeer(program, {
    // What is sent, what comes, what READs bring.
    areaBytes: 3 * part,
    qpCount,
    cqEntries: 2 * count,
    cap: { maxSendWr: opcodes.length, maxRecvWr: opcodes.length },
    attributes: { pathMtu: mtuCode as PortAttr['activeMtu'], timeoutCode: 13, retryCount },
    beforeReady: receives,
  });
  for (let id = 0; id < count; id++)
    memory.write(side.area.address + place(0, id), patternOf(2 * id + node, lengthBytes));
  await barrier(program, 'filled');
  for (const [at, opcode] of isAsking ? opcodes.entries() : [])
    for (const [number, qp] of side.qps.entries()) {
      const id = at * qpCount + number;
      const isRead = opcode === IBV_WR_RDMA_READ;
      const offset = place(isRead ? 2 : 0, id);
      post(qp, requestOf(side, id, opcode, { offset, lengthBytes, remoteOffset: place(isRead ? 0 : 1, id) }));
    }
  const expected = (isAsking ? count : 0) + (isAsked ? qpCount * opcodes.filter(isSend).length : 0);
  const ended = await completionsOf(side, expected, 4000 * psPerMs);
  await barrier(program, 'over');
  await program.cpu.sleep(20 * psPerMs);
  const came = (which: number, id: number): Uint8Array =>
    memory.read(side.area.address + place(which, id), lengthBytes);
  const due = (id: number): Uint8Array => patternOf(2 * id + 1 - node, lengthBytes);
  const ids = Array.from({ length: count }, (_, id) => id);
  const isRead = (id: number): boolean => opcodes[Math.floor(id / qpCount)] === IBV_WR_RDMA_READ;
  const missing = ids.filter((id) => !isRead(id) && differencesOf('', came(1, id), due(id)).length > 0);
  const wrong = ended.flatMap(({ id, status }) =>
    id < count && status === IBV_WC_SUCCESS && isRead(id)
      ? differencesOf(`what READ ${id} brought`, came(2, id), due(id))
      : [],
  );
  await leave(side);
  return { ended, missing, wrong } as unknown as JsonValue;
}

function judge({ args, results, report }: ScenePlayed): string[] {
  const { qpCount, opcodes, isTwoWay } = args as unknown as Args;
  const told = results as unknown as readonly Told[];
  const count = qpCount * opcodes.length;
  const losses = lossesOf(report);
  const found = told.flatMap(({ wrong }) => wrong).slice(0, 3);
  let failed = 0;
  for (const node of isTwoWay ? [0, 1] : [0]) {
    const own = told[node]!.ended.filter(({ id }) => id < count);
    const there = told[1 - node]!;
    if (own.length !== count) found.push(`node ${node}: ${own.length} of ${count} messages ended`);
    for (const { id, status } of own) {
      if (status === IBV_WC_SUCCESS && there.missing.includes(id))
        found.push(`message ${id} of node ${node} ended well, and is not at the other`);
      if (status === IBV_WC_RETRY_EXC_ERR) failed++;
      else if (status !== IBV_WC_SUCCESS && status !== IBV_WC_WR_FLUSH_ERR)
        found.push(`message ${id} of node ${node} ended in status ${status}`);
      else if (status === IBV_WC_WR_FLUSH_ERR && failed === 0 && losses <= retryCount)
        found.push(`message ${id} of node ${node} was flushed, and nothing had failed`);
    }
    const taken = there.ended
      .filter(({ id, status }) => id >= count && status === IBV_WC_SUCCESS)
      .map(({ id }) => id);
    if (new Set(taken).size !== taken.length) found.push(`messages of node ${node} came twice`);
  }
  if (failed > 0 && losses <= retryCount)
    found.push(`retries were used up with ${losses} frames lost, ${retryCount} of them need more`);
  if (losses === 0 && !hasOrderFaults(report))
    for (const { from, retransmitted } of report.wire)
      for (const [opcode, { packets }] of Object.entries(retransmitted))
        found.push(`node ${from} sent ${packets} ${opcode} again, and nothing was lost`);
  return found;
}

/** Frames that did not come to their receiver, by the counters of both ends. */
const lossesOf = ({ nodes }: ScenePlayed['report']): number =>
  nodes.reduce((sum, { hca }) => {
    const { transmitted = {}, received = {}, dropped = {} } = hca.ethernet ?? {};
    const counts = [transmitted['lostFrames'], received['corruptedFrames'], received['fifoDrops']];
    return [...counts, ...Object.values(dropped)].reduce((all: number, some = 0) => all + some, sum);
  }, 0);

/** What was passed by others was missing when it was due, and a NAK that comes twice counts twice. */
const hasOrderFaults = ({ nodes }: ScenePlayed['report']): boolean =>
  nodes.some(({ hca }) => {
    const { heldBackFrames = 0, copiedFrames = 0 } = hca.ethernet?.transmitted ?? {};
    return heldBackFrames + copiedFrames > 0;
  });

export const lostFrames: Scene = {
  name: 'lost-frames',
  about:
    'messages over Ethernet to ports that hold a few frames and drop the next, on a cable that loses some',
  module: import.meta.url,
  programs: [
    { node: 0, exportName: 'player' },
    { node: 1, exportName: 'player' },
  ],
  cable: 'ethernet',
  draw,
  judge,
};
