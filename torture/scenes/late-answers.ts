/**
 * Answers arrive while their requests are being retransmitted, with a packet half gathered: a completed request sends no more packets, and the
 * next one carries its own bytes to its own place (IBTA 9.7.6.1.3, 9.9.2.1).
 */
import { psPerNs, psPerUs } from '../../base/index.ts';
import * as ibv from '../../userlib/index.ts';
import type { Draft, Draws, Ended, FaultEntry, Played, Stage } from './language/index.ts';
import {
  connect,
  isWell,
  mtuOf,
  patternOf,
  READ,
  scene,
  statusesOf,
  timeOutPsOf,
  times,
  WRITE,
} from './language/index.ts';

interface Args {
  readonly requests: readonly { readonly opcode: number; readonly lengthBytes: number }[];
  readonly qpCount: number;
  readonly mtuCode: number;
  readonly timeoutCode: number;
  /**
   * Number of pieces of the requester's memory, far from each other, from which each request gathers, or to which it
   * scatters.
   */
  readonly pieceCount: number;
}

/** No line of translations covers two pieces of a request. */
const pieceStrideBytes = 65_536;
const slotBytes = ({ requests }: Args): number => Math.max(...requests.map(({ lengthBytes }) => lengthBytes));
const oneLine = { 'hca.mttCacheLines': 1, 'hca.mttCacheWays': 1 };
const narrow = { 'pcie.link.generation': 1, 'pcie.link.lanes': 1 };

/** Gathering takes microseconds, from several places. */
const slow = [
  { ...narrow, 'dma.tagCount': 2 },
  { ...narrow, ...oneLine },
  { 'dma.tagCount': 1 },
  { 'dma.tagCount': 2, ...oneLine },
  { 'pcie.rootComplex.readLatencyPs': 3_000_000, 'dma.tagCount': 2 },
  narrow,
  { ...oneLine, 'pcie.rootComplex.readLatencyPs': 1_500_000 },
];

const late = (nth: number, delayNs: number): FaultEntry => {
  return { packet: 'late', nth, delay: `${Math.round(delayNs)}ns`, node: 1 };
};

/**
 * Each piece of a request needs a lookup, so that a packet is half gathered at nearly every instant; and all responses
 * are delayed by the timeout plus a part of the gathering.
 */
function drawScattered(random: Draws): Draft<Args> {
  const pieceCount = 2 + random.below(3);
  const readLatencyPs = 800_000 + random.below(2_000_000);
  const lengthBytes = 600 + random.below(3000);
  // Lengths do not fall from one to the next: a request that continues where the previous one stopped is within it.
  const requests = times(4 + random.below(5), (id) => ({
    opcode: random.chance(0.9) ? WRITE : READ,
    lengthBytes: lengthBytes + 40 * id + random.below(40),
  }));
  const timeoutCode = 1 + random.below(2);
  const mtuCode = 1 + random.below(3);
  const args = { requests, qpCount: random.chance(0.7) ? 1 : 2, mtuCode, timeoutCode, pieceCount };
  const lookups = pieceCount + Math.ceil(lengthBytes / mtuOf(mtuCode));
  const gatheringNs = (lookups * readLatencyPs) / psPerNs;
  const timeOutNs = timeOutPsOf(timeoutCode) / psPerNs;
  const faults = times(4 + random.below(8), (at) =>
    late(1 + at, Math.max(500, timeOutNs + gatheringNs * (random.unit() - 0.5))),
  );
  const set = {
    ...{ 'pcie.rootComplex.readLatencyPs': readLatencyPs, ...oneLine },
    'hca.outstandingWqes': 4,
    'hca.outstandingWqesPerQp': 1 + random.below(3),
  };
  return { args, set, faults, climate: 'lossy' };
}

function draw(random: Draws): Draft<Args> {
  if (random.chance(0.6)) return drawScattered(random);
  const timeoutCode = 1 + random.below(3);
  const mostBytes = random.oneOf([300, 4096, 12_000, 12_000]);
  const requests = times(2 + random.below(10), () => ({
    opcode: random.chance(0.85) ? WRITE : READ,
    lengthBytes: 1 + random.below(mostBytes),
  }));
  const qpCount = 1 + random.below(2);
  const args = { requests, qpCount, mtuCode: 1 + random.below(5), timeoutCode, pieceCount: 1 };
  // Around the time-out, so that the answer crosses the repeated request.
  const timeOutNs = timeOutPsOf(timeoutCode) / psPerNs;
  const faults = times(1 + random.below(6), (at) =>
    late(1 + at + random.below(2), timeOutNs * (0.7 + random.unit() * 1.2)),
  );
  const few = { 'hca.outstandingWqes': 4, 'hca.outstandingWqesPerQp': 1 + random.below(4) };
  return {
    args,
    set: { ...random.oneOf(slow), ...random.maybe(0.85, () => few) },
    faults,
    climate: 'lossy',
  };
}

/** Returns the pieces of a request: their offsets in the requester's area, and in the message. */
function piecesOf(args: Args, id: number): { at: number; from: number; bytes: number }[] {
  const { requests, pieceCount } = args;
  const { lengthBytes } = requests[id]!;
  const pieceBytes = Math.ceil(lengthBytes / pieceCount);
  return times(pieceCount, (index) => ({
    at: id * slotBytes(args) + index * pieceStrideBytes,
    from: index * pieceBytes,
    bytes: Math.min(pieceBytes, lengthBytes - index * pieceBytes),
  })).filter(({ bytes }) => bytes > 0);
}

const optionsOf = (args: Args, areaBytes: number) => ({
  ...{ areaBytes: areaBytes + args.requests.length * slotBytes(args), qpCount: args.qpCount },
  ...{ mtuCode: args.mtuCode, attributes: { timeoutCode: args.timeoutCode, retryCount: 7 } },
});

/** Missing bytes of each request, and bytes that are neither its own nor the earlier contents. */
type Foreign = readonly (readonly [missing: number, foreign: number])[];

async function asker(stage: Stage<Args>): Promise<{ ended: readonly Ended[]; foreign: Foreign }> {
  const { args } = stage;
  const { requests, qpCount, pieceCount } = args;
  const options = optionsOf(args, (pieceCount - 1) * pieceStrideBytes);
  const side = await connect(stage, {
    ...options,
    cap: { maxSendWr: requests.length, maxSendSge: pieceCount },
  });
  for (const [id, { opcode, lengthBytes }] of requests.entries())
    for (const { at, from, bytes } of opcode === WRITE ? piecesOf(args, id) : [])
      side.fill(patternOf(id, lengthBytes).subarray(from, from + bytes), at);
  await stage.meet('filled');
  for (const [id, { opcode, lengthBytes }] of requests.entries()) {
    const sgList = piecesOf(args, id).map(({ at, bytes }) => side.sge({ offset: at, lengthBytes: bytes }));
    const request = side.request(id, opcode, { offset: id * slotBytes(args), lengthBytes });
    ibv.postSend(side.qps[id % qpCount]!, { ...request, sgList, numSge: sgList.length });
  }
  const ended = await side.watch(requests.length, { napPs: 500 * psPerNs, patiencePs: 20_000 * psPerUs });
  await stage.meet('over');
  const foreign = foreignIn(args, READ, (id) => {
    const came = new Uint8Array(requests[id]!.lengthBytes);
    for (const { at, from, bytes } of piecesOf(args, id)) came.set(side.bytes(at, bytes), from);
    return came;
  });
  return { ended, foreign };
}

/** Owns the memory, and checks the received data. */
async function answerer(stage: Stage<Args>): Promise<Foreign> {
  const slot = slotBytes(stage.args);
  const side = await connect(stage, optionsOf(stage.args, 0));
  for (const [id, { opcode, lengthBytes }] of stage.args.requests.entries())
    if (opcode === READ) side.fill(patternOf(id, lengthBytes), id * slot);
  await stage.meet('filled');
  await stage.meet('over');
  await stage.sleepUs(200);
  return foreignIn(stage.args, WRITE, (id) => side.bytes(id * slot, slot));
}

const foreignIn = ({ requests }: Args, kind: number, bytesOf: (id: number) => Uint8Array): Foreign =>
  requests.map(({ opcode, lengthBytes }, id) => {
    const due = patternOf(id, lengthBytes);
    const wrong = opcode === kind ? bytesOf(id).filter((byte, at) => byte !== (due[at] ?? 0)) : [];
    const missing = [...wrong].filter((byte) => byte === 0).length;
    return [missing, wrong.length - missing];
  });

const lawful = ['SUCCESS', 'RETRY_EXC_ERR', 'WR_FLUSH_ERR'];

type Both = readonly [{ readonly ended: readonly Ended[]; readonly foreign: Foreign }, Foreign];

function judge({ args: { requests }, told }: Played<Args, Both>): string[] {
  const [{ ended, foreign: read }, written] = told;
  const found: string[] = [];
  const byId = new Map(ended.map((one) => [one.id, one]));
  if (ended.length !== requests.length || byId.size !== requests.length)
    found.push(`${ended.length} completions of ${requests.length} requests`);
  if (ended.some(({ status }) => !lawful.includes(status)))
    found.push(`requests ended in ${statusesOf(ended)}`);
  for (const id of requests.keys()) {
    const missing = read[id]![0] + written[id]![0];
    const foreign = read[id]![1] + written[id]![1];
    const end = byId.get(id);
    if (foreign > 0) found.push(`${foreign} bytes of request ${id} are of another`);
    if (missing > 0 && end !== undefined && isWell(end))
      found.push(`${missing} bytes of request ${id} have not come`);
  }
  return found;
}

export const lateAnswers = scene({
  about: 'answers come while their requests are gathered again, slowly',
  draw,
  programs: [asker, answerer],
  judge,
});
