/**
 * Masked atomics of several connections on words of the peer, while packets are lost and come twice: each is carried out once, in
 * the order of its connection, brings what was there before, and changes the bits that its masks say (MLNX_OFED, enhanced atomic
 * operations). The words of a connection are its own; one word more is added to by all, field by field, in any order.
 */
import { psPerMs } from '../../base/index.ts';
import { barrier } from '../../experiments/workloads/index.ts';
import type { FaultEntry } from '../../machine/faults/index.ts';
import type { JsonValue, ProgramContext } from '../../machine/index.ts';
import type { Random } from '../../sim/index.ts';
import {
  IBV_SEND_FENCE,
  IBV_SEND_SIGNALED,
  IBV_WR_ATOMIC_FETCH_AND_ADD,
  IBV_WR_MASKED_ATOMIC_CMP_AND_SWP,
  IBV_WR_MASKED_ATOMIC_FETCH_AND_ADD,
  type IbvSendWr,
} from '../../userlib/index.ts';
import { watchCompletions } from './observing.ts';
import {
  askerAndAnswerer,
  connectWithPeer,
  type Ended,
  failuresOf,
  lastBytesIn,
  leave,
  post,
  type Side,
} from './pair.ts';
import type { Scene, SceneDraft, ScenePlayed } from './scene.ts';

/** One request; numbers of 64 bits in hexadecimal. */
interface Request {
  readonly kind: 'swap' | 'add' | 'plain add' | 'add to all';
  /** Of the connection's words. */
  readonly word: number;
  readonly operand: string;
  readonly compare: string;
  readonly swapMask: string;
  readonly mask: string;
  readonly isFenced: boolean;
}

interface Args {
  readonly qps: readonly (readonly Request[])[];
  /** What the peer's words hold at first: one for all, then those of each connection. */
  readonly words: readonly string[];
  /** Boundaries of the fields of the word of all. */
  readonly boundaries: string;
}

const wordsPerQp = 2;
const wordBytes = 8;
const bits = 64;
const ones = 2n ** 64n - 1n;

const numberOf = (text: string): bigint => BigInt(`0x${text}`);
const textOf = (value: bigint): string => value.toString(16);

function drawWord(random: Random): bigint {
  const whole = (BigInt(random.below(2 ** 32)) << 32n) | BigInt(random.below(2 ** 32));
  const forms = [
    whole,
    0n,
    ones,
    0x8080_8080_8080_8080n,
    0x7fff_ffff_ffff_ffffn,
    0xffff_ffffn,
    whole & 0xffn,
  ];
  return forms[random.below(forms.length)]!;
}

/** A value that a compare may find: often the one that is there by then, seldom by chance. */
function drawRequest(random: Random, words: readonly bigint[]): Request {
  const kinds = ['swap', 'swap', 'add', 'add', 'plain add', 'add to all'] as const;
  const word = random.below(wordsPerQp);
  const mask = drawWord(random);
  const isMet = random.chance(0.6);
  const other = drawWord(random);
  return {
    kind: kinds[random.below(kinds.length)]!,
    word,
    operand: textOf(drawWord(random)),
    compare: textOf(isMet ? (words[word]! & mask) | (other & (ones ^ mask)) : other),
    swapMask: textOf(drawWord(random)),
    mask: textOf(mask),
    isFenced: random.chance(0.1),
  };
}

function draw(random: Random): SceneDraft {
  const qpCount = 1 + random.below(3);
  const words = Array.from({ length: 1 + qpCount * wordsPerQp }, () => drawWord(random));
  const boundaries = drawWord(random);
  const qps = Array.from({ length: qpCount }, (_, qp) => {
    const held = words.slice(1 + qp * wordsPerQp, 1 + (qp + 1) * wordsPerQp);
    return Array.from({ length: 1 + random.below(12) }, () => {
      const request = drawRequest(random, held);
      if (request.kind !== 'add to all') held[request.word] = afterOf(request, held[request.word]!);
      return request;
    });
  });
  const args: Args = { qps, words: words.map(textOf), boundaries: textOf(boundaries) };
  const count = qps.flat().length;
  // A request is lost and its copy comes, while what is before it is still being answered.
  const nthOfCopied = 1 + random.below(count);
  const copied: FaultEntry[] = [
    { packet: 'corrupted', nth: nthOfCopied, node: 0 },
    { packet: 'duplicated', nth: nthOfCopied, node: 0, delay: `${200 + random.below(5000)}ns` },
  ];
  const faults = Array.from({ length: random.below(4) }, (): FaultEntry => {
    const node = random.below(2);
    const nth = 1 + random.below(count);
    return random.chance(0.6)
      ? { packet: random.chance(0.5) ? 'lost' : 'corrupted', nth, node }
      : { packet: 'duplicated', nth, node, delay: `${1 + random.below(30_000)}ns` };
  });
  return {
    args: { ...args } as unknown as JsonValue,
    set: random.chance(0.5) ? { 'hca.responderAtomicResults': random.chance(0.7) ? 1 : 4 } : {},
    hasDrawnHardware: random.chance(0.3),
    faults: random.chance(0.3) ? copied : faults,
    climate: 'lossy',
  };
}

/** Adds bit by bit: what a bit with a boundary carries is lost. */
function sumOf(value: bigint, addend: bigint, boundaries: bigint): bigint {
  let [sum, carry] = [0n, 0n];
  for (let bit = 0n; bit < bits; bit++) {
    const total = ((value >> bit) & 1n) + ((addend >> bit) & 1n) + carry;
    sum |= (total & 1n) << bit;
    carry = ((boundaries >> bit) & 1n) === 1n ? 0n : total >> 1n;
  }
  return sum;
}

/** What a word holds after a request, of which the numbers are in hexadecimal. */
function afterOf(request: Request, value: bigint): bigint {
  const [operand, mask] = [numberOf(request.operand), numberOf(request.mask)];
  if (request.kind === 'plain add') return sumOf(value, operand, 0n);
  if (request.kind !== 'swap') return sumOf(value, operand, mask);
  if (((value ^ numberOf(request.compare)) & mask) !== 0n) return value;
  const swapMask = numberOf(request.swapMask);
  return (value & (ones ^ swapMask)) | (operand & swapMask);
}

const areaBytes = ({ qps, words }: Args): number => (words.length + qps.flat().length) * wordBytes;
/** Place of a result in the asker's area, which begins as the other one with the words. */
const resultOffset = ({ words }: Args, id: number): number => (words.length + id) * wordBytes;

function requestOf(side: Side, args: Args, qp: number, id: number, request: Request): IbvSendWr {
  const { area, peer } = side;
  const isSwap = request.kind === 'swap';
  const isToAll = request.kind === 'add to all';
  const place = isToAll ? 0 : 1 + qp * wordsPerQp + request.word;
  const operand = numberOf(request.operand);
  const masked = isSwap ? IBV_WR_MASKED_ATOMIC_CMP_AND_SWP : IBV_WR_MASKED_ATOMIC_FETCH_AND_ADD;
  return {
    wrId: id,
    sgList: [{ addr: area.address + resultOffset(args, id), length: wordBytes, lkey: area.region.lkey }],
    numSge: 1,
    opcode: request.kind === 'plain add' ? IBV_WR_ATOMIC_FETCH_AND_ADD : masked,
    sendFlags: request.isFenced ? IBV_SEND_SIGNALED | IBV_SEND_FENCE : IBV_SEND_SIGNALED,
    wr: {
      atomic: {
        remoteAddr: peer.address + place * wordBytes,
        rkey: peer.rkey,
        compareAdd: isSwap ? numberOf(request.compare) : operand,
        swap: isSwap ? operand : 0n,
        compareAddMask: numberOf(isToAll ? args.boundaries : request.mask),
        swapMask: numberOf(request.swapMask),
      },
    },
  };
}

const optionsOf = (args: Args) => ({
  areaBytes: areaBytes(args),
  qpCount: args.qps.length,
  // Three data pointers take the room that two masks do.
  cap: { maxSendWr: Math.max(...args.qps.map(({ length }) => length)), maxSendSge: 3 },
  attributes: { timeoutCode: 13 },
});

/** Posts the requests of all connections in turns. */
export async function asker(program: ProgramContext): Promise<JsonValue> {
  const args = program.args as unknown as Args;
  const side = await connectWithPeer(program, optionsOf(args));
  await barrier(program, 'filled');
  let id = 0;
  const ids = args.qps.map((requests) => requests.map(() => id++));
  for (let turn = 0; turn < Math.max(...args.qps.map(({ length }) => length)); turn++) {
    for (const [qp, requests] of args.qps.entries()) {
      const request = requests[turn];
      if (request !== undefined) post(side.qps[qp]!, requestOf(side, args, qp, ids[qp]![turn]!, request));
    }
  }
  const ended = await watchCompletions(side, id, { napPs: psPerMs / 20, patiencePs: 10_000 * psPerMs });
  const brought = Array.from({ length: id }, (_, at) =>
    textOf(program.memory.readUint64(side.area.address + resultOffset(args, at))),
  );
  await barrier(program, 'over');
  await leave(side);
  return { ended, brought } as unknown as JsonValue;
}

/** Owns the words. */
export async function answerer(program: ProgramContext): Promise<JsonValue> {
  const args = program.args as unknown as Args;
  const side = await connectWithPeer(program, optionsOf(args));
  const { memory } = program;
  const { address } = side.area;
  for (const [at, word] of args.words.entries()) memory.writeUint64(address + at * wordBytes, numberOf(word));
  await barrier(program, 'filled');
  await barrier(program, 'over');
  await lastBytesIn(program);
  const words = args.words.map((_, at) => textOf(memory.readUint64(address + at * wordBytes)));
  await leave(side);
  return { words };
}

function judge(played: ScenePlayed): string[] {
  const args = played.args as unknown as Args;
  const [{ ended, brought }, { words }] = played.results as unknown as [
    { ended: Ended[]; brought: string[] },
    { words: string[] },
  ];
  const found = failuresOf(ended);
  const lengths = ended.filter(({ status, byteLen }) => status === 0 && byteLen !== wordBytes);
  if (lengths.length > 0) found.push(`${lengths.length} atomics completed with another length than 8`);
  const count = args.qps.flat().length;
  if (ended.length !== count) found.push(`${ended.length} of ${count} atomics completed`);
  if (found.length > 0) return found;
  const held = args.words.map(numberOf);
  let id = 0;
  for (const [qp, requests] of args.qps.entries()) {
    for (const request of requests) {
      const result = brought[id++]!;
      if (request.kind === 'add to all') {
        held[0] = sumOf(held[0]!, numberOf(request.operand), numberOf(args.boundaries));
        continue;
      }
      const place = 1 + qp * wordsPerQp + request.word;
      if (result !== textOf(held[place]!))
        found.push(
          `${request.kind} ${id - 1} brought ${result}, before it the word was ${textOf(held[place]!)}`,
        );
      held[place] = afterOf(request, held[place]!);
    }
  }
  for (const [place, word] of words.entries())
    if (word !== textOf(held[place]!))
      found.push(`word ${place} is ${word}, the atomics make ${textOf(held[place]!)} of it`);
  return found;
}

export const maskedAtomics: Scene = {
  name: 'masked-atomics',
  about:
    'masked compares, swaps and additions of several connections, of which packets are lost and come twice',
  module: import.meta.url,
  programs: askerAndAnswerer,
  draw,
  judge,
};
