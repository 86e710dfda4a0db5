/**
 * Answers that come when their requests are just being retransmitted, with a packet half gathered: what has completed is not sent
 * further, and what comes next carries its own bytes to its own place (IBTA 9.7.6.1.3, 9.9.2.1).
 */
import { psPerNs, psPerUs } from '../../base/index.ts';
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
  type PortAttr,
} from '../../userlib/index.ts';
import { patternOf, watchCompletions } from './observing.ts';
import { askerAndAnswerer, connectWithPeer, type Ended, leave, post, requestOf } from './pair.ts';
import type { Scene, SceneDraft, ScenePlayed } from './scene.ts';

interface Args {
  readonly requests: readonly { readonly opcode: number; readonly lengthBytes: number }[];
  readonly qpCount: number;
  readonly mtuCode: number;
  readonly timeoutCode: number;
  /** Each request gathers from, or scatters to, so many places of the asker's memory, far from each other. */
  readonly pieceCount: number;
}

/** No line of translations covers two pieces of a request. */
const pieceStrideBytes = 65_536;

const slotBytes = ({ requests }: Args): number => Math.max(...requests.map(({ lengthBytes }) => lengthBytes));
const attributesOf = ({ mtuCode, timeoutCode }: Args) => ({
  pathMtu: mtuCode as PortAttr['activeMtu'],
  timeoutCode,
  retryCount: 7,
});

/** Gathering takes microseconds, from several places. */
const slow = [
  { 'pcie.link.generation': 1, 'pcie.link.lanes': 1, 'dma.tagCount': 2 },
  { 'pcie.link.generation': 1, 'pcie.link.lanes': 1, 'hca.mttCacheLines': 1, 'hca.mttCacheWays': 1 },
  { 'dma.tagCount': 1 },
  { 'dma.tagCount': 2, 'hca.mttCacheLines': 1, 'hca.mttCacheWays': 1 },
  { 'pcie.rootComplex.readLatencyPs': 3_000_000, 'dma.tagCount': 2 },
  { 'pcie.link.generation': 1, 'pcie.link.lanes': 1 },
  { 'hca.mttCacheLines': 1, 'hca.mttCacheWays': 1, 'pcie.rootComplex.readLatencyPs': 1_500_000 },
];

/**
 * Each piece of a request is looked up anew, so that a packet is half gathered at nearly every instant; and all answers come as
 * much later as the time-out takes, and a part of the gathering.
 */
function drawScattered(random: Random): SceneDraft {
  const pieceCount = 2 + random.below(3);
  const readLatencyPs = 800_000 + random.below(2_000_000);
  const lengthBytes = 600 + random.below(3000);
  // None is shorter than the one before it: what goes on where that one stopped is within it.
  const requests = Array.from({ length: 4 + random.below(5) }, (_, id) => ({
    opcode: random.chance(0.9) ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_READ,
    lengthBytes: lengthBytes + 40 * id + random.below(40),
  }));
  const timeoutCode = 1 + random.below(2);
  const mtuCode = 1 + random.below(3);
  const args: Args = { requests, qpCount: random.chance(0.7) ? 1 : 2, mtuCode, timeoutCode, pieceCount };
  const lookups = pieceCount + Math.ceil(lengthBytes / (128 << mtuCode));
  const gatheringNs = (lookups * readLatencyPs) / psPerNs;
  const faults = Array.from(
    { length: 4 + random.below(8) },
    (_, index): FaultEntry => ({
      packet: 'late',
      nth: 1 + index,
      delay: `${Math.round(Math.max(500, timeOutNsOf(timeoutCode) + gatheringNs * (random.unit() - 0.5)))}ns`,
      node: 1,
    }),
  );
  return {
    args: { ...args },
    set: {
      'pcie.rootComplex.readLatencyPs': readLatencyPs,
      'hca.mttCacheLines': 1,
      'hca.mttCacheWays': 1,
      'hca.outstandingWqes': 4,
      'hca.outstandingWqesPerQp': 1 + random.below(3),
    },
    hasDrawnHardware: false,
    faults,
    climate: 'lossy',
  };
}

const timeOutNsOf = (timeoutCode: number): number => 4096 * 2 ** timeoutCode;

function draw(random: Random): SceneDraft {
  if (random.chance(0.6)) return drawScattered(random);
  const timeoutCode = 1 + random.below(3);
  const mostBytes = [300, 4096, 12_000, 12_000][random.below(4)]!;
  const requests = Array.from({ length: 2 + random.below(10) }, () => ({
    opcode: random.chance(0.85) ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_READ,
    lengthBytes: 1 + random.below(mostBytes),
  }));
  const args: Args = {
    requests,
    qpCount: 1 + random.below(2),
    mtuCode: 1 + random.below(5),
    timeoutCode,
    pieceCount: 1,
  };
  // Around the time-out, so that the answer crosses the repeated request.
  const timeOutNs = timeOutNsOf(timeoutCode);
  const faults = Array.from(
    { length: 1 + random.below(6) },
    (_, index): FaultEntry => ({
      packet: 'late',
      nth: 1 + index + random.below(2),
      delay: `${Math.round(timeOutNs * (0.7 + random.unit() * 1.2))}ns`,
      node: 1,
    }),
  );
  const few = { 'hca.outstandingWqes': 4, 'hca.outstandingWqesPerQp': 1 + random.below(4) };
  return {
    args: { ...args },
    set: { ...slow[random.below(slow.length)]!, ...(random.chance(0.85) ? few : {}) },
    hasDrawnHardware: false,
    faults,
    climate: 'lossy',
  };
}

interface Piece {
  /** In the asker's area. */
  readonly at: number;
  /** In the message. */
  readonly from: number;
  readonly bytes: number;
}

/** Where a request gathers from, or scatters to. */
function piecesOf(args: Args, id: number): Piece[] {
  const { requests, pieceCount } = args;
  const { lengthBytes } = requests[id]!;
  const pieceBytes = Math.ceil(lengthBytes / pieceCount);
  return Array.from({ length: pieceCount }, (_, index) => ({
    at: id * slotBytes(args) + index * pieceStrideBytes,
    from: index * pieceBytes,
    bytes: Math.min(pieceBytes, lengthBytes - index * pieceBytes),
  })).filter(({ bytes }) => bytes > 0);
}

/** Posts all at once. */
export async function asker(program: ProgramContext): Promise<JsonValue> {
  const args = program.args as unknown as Args;
  const { requests, qpCount, pieceCount } = args;
  const side = await connectWithPeer(program, {
    areaBytes: (pieceCount - 1) * pieceStrideBytes + requests.length * slotBytes(args),
    qpCount,
    cap: { maxSendWr: requests.length, maxSendSge: pieceCount },
    attributes: attributesOf(args),
  });
  const { address, region } = side.area;
  for (const [id, { opcode, lengthBytes }] of requests.entries())
    if (opcode === IBV_WR_RDMA_WRITE)
      for (const { at, from, bytes } of piecesOf(args, id))
        program.memory.write(address + at, patternOf(id, lengthBytes).subarray(from, from + bytes));
  await barrier(program, 'filled');
  for (const [id, { opcode, lengthBytes }] of requests.entries()) {
    const pieces = piecesOf(args, id);
    post(side.qps[id % qpCount]!, {
      ...requestOf(side, id, opcode, { offset: id * slotBytes(args), lengthBytes }),
      sgList: pieces.map(({ at, bytes }) => ({ addr: address + at, length: bytes, lkey: region.lkey })),
      numSge: pieces.length,
    });
  }
  const patience = { napPs: 500 * psPerNs, patiencePs: 20_000 * psPerUs };
  const ended = await watchCompletions(side, requests.length, patience);
  await barrier(program, 'over');
  const foreign = foreignIn(args, IBV_WR_RDMA_READ, (id) => {
    const came = new Uint8Array(requests[id]!.lengthBytes);
    for (const { at, from, bytes } of piecesOf(args, id))
      came.set(program.memory.read(address + at, bytes), from);
    return came;
  });
  await leave(side);
  return { ended, foreign } as unknown as JsonValue;
}

/** Has the memory, and looks at what has come. */
export async function answerer(program: ProgramContext): Promise<JsonValue> {
  const args = program.args as unknown as Args;
  const { requests, qpCount } = args;
  const side = await connectWithPeer(program, {
    areaBytes: requests.length * slotBytes(args),
    qpCount,
    attributes: attributesOf(args),
  });
  const placeOf = (id: number): number => side.area.address + id * slotBytes(args);
  for (const [id, { opcode, lengthBytes }] of requests.entries())
    if (opcode === IBV_WR_RDMA_READ) program.memory.write(placeOf(id), patternOf(id, lengthBytes));
  await barrier(program, 'filled');
  await barrier(program, 'over');
  await program.cpu.sleep(200 * psPerUs);
  const foreign = foreignIn(args, IBV_WR_RDMA_WRITE, (id) =>
    program.memory.read(placeOf(id), slotBytes(args)),
  );
  await leave(side);
  return { foreign };
}

/** Of each request of this kind: bytes that are missing, and bytes that are neither its own nor what was there before. */
function foreignIn({ requests }: Args, kind: number, bytesOf: (id: number) => Uint8Array): number[][] {
  return requests.map(({ opcode, lengthBytes }, id) => {
    if (opcode !== kind) return [0, 0];
    const due = patternOf(id, lengthBytes);
    let [missing, foreign] = [0, 0];
    for (const [at, byte] of bytesOf(id).entries()) {
      if (byte === (due[at] ?? 0)) continue;
      if (byte === 0) missing++;
      else foreign++;
    }
    return [missing, foreign];
  });
}

const lawful: readonly number[] = [IBV_WC_SUCCESS, IBV_WC_RETRY_EXC_ERR, IBV_WC_WR_FLUSH_ERR];

export const lateAnswers: Scene = {
  name: 'late-answers',
  about: 'answers come while their requests are gathered again, slowly',
  module: import.meta.url,
  programs: askerAndAnswerer,
  draw,
  judge({ args, results }: ScenePlayed): string[] {
    const { requests } = args as unknown as Args;
    const [{ ended, foreign: read }, { foreign: written }] = results as unknown as [
      { ended: Ended[]; foreign: number[][] },
      { foreign: number[][] },
    ];
    const found: string[] = [];
    const statuses = new Map(ended.map(({ id, status }) => [id, status]));
    if (ended.length !== requests.length || statuses.size !== requests.length)
      found.push(`${ended.length} completions of ${requests.length} requests`);
    if (ended.some(({ status }) => !lawful.includes(status)))
      found.push(`requests ended in ${[...statuses.values()]}`);
    for (const id of requests.keys()) {
      const missing = read[id]![0]! + written[id]![0]!;
      const foreign = read[id]![1]! + written[id]![1]!;
      if (foreign > 0) found.push(`${foreign} bytes of request ${id} are of another`);
      if (missing > 0 && statuses.get(id) === IBV_WC_SUCCESS)
        found.push(`${missing} bytes of request ${id} have not come`);
    }
    return found;
  },
};
