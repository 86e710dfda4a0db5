/**
 * Masked atomics of several connections on words of the peer, while packets are lost and duplicated: each is carried out once, in the order of its
 * connection, returns the earlier value, and changes the bits of its masks (MLNX_OFED, enhanced atomic operations). Each connection has
 * words of its own; all add to one more word, field by field, in any order.
 */

import * as ibv from '../../userlib/index.ts';
import type { Draft, Draws, FaultEntry, Side, Stage } from './language/index.ts';
import { ADD, connect, psPerMs, scene, times, topic } from './language/index.ts';

/** One request; numbers of 64 bits in hexadecimal. */
interface Request {
  readonly kind: 'swap' | 'add' | 'plain add' | 'add to all';
  /** Index among the connection's words. */
  readonly word: number;
  readonly operand: string;
  readonly compare: string;
  readonly swapMask: string;
  readonly mask: string;
  readonly isFenced: boolean;
}

interface Args {
  readonly qps: readonly (readonly Request[])[];
  /** Initial values of the peer's words: one for all, then those of each connection. */
  readonly words: readonly string[];
  /** Boundaries of the fields of the word of all. */
  readonly boundaries: string;
}

const wordsPerQp = 2;
const wordBytes = 8;
const ones = 2n ** 64n - 1n;

const numberOf = (text: string): bigint => BigInt(`0x${text}`);
const textOf = (value: bigint): string => value.toString(16);

function drawWord(random: Draws): bigint {
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
  return random.oneOf(forms);
}

/** A request that often compares with the value that the word has by then. */
function drawRequest(random: Draws, words: readonly bigint[]): Request {
  const word = random.below(wordsPerQp);
  const mask = drawWord(random);
  const isMet = random.chance(0.6);
  const other = drawWord(random);
  return {
    kind: random.oneOf(['swap', 'swap', 'add', 'add', 'plain add', 'add to all'] as const),
    word,
    operand: textOf(drawWord(random)),
    compare: textOf(isMet ? (words[word]! & mask) | (other & (ones ^ mask)) : other),
    swapMask: textOf(drawWord(random)),
    mask: textOf(mask),
    isFenced: random.chance(0.1),
  };
}

function draw(random: Draws): Draft<Args> {
  const qpCount = 1 + random.below(3);
  const words = times(1 + qpCount * wordsPerQp, () => drawWord(random));
  const boundaries = drawWord(random);
  const qps = times(qpCount, (qp) => {
    const held = words.slice(1 + qp * wordsPerQp, 1 + (qp + 1) * wordsPerQp);
    return times(1 + random.below(12), () => {
      const request = drawRequest(random, held);
      if (request.kind !== 'add to all') held[request.word] = afterOf(request, held[request.word]!);
      return request;
    });
  });
  const args = { qps, words: words.map(textOf), boundaries: textOf(boundaries) };
  const count = qps.flat().length;
  // A request is lost and its copy arrives while the request before it is still being answered.
  const first = { nth: 1 + random.below(count), node: 0 };
  const copied: FaultEntry[] = [
    { packet: 'corrupted', ...first },
    { packet: 'duplicated', ...first, delay: `${200 + random.below(5000)}ns` },
  ];
  const faults = times(random.below(4), (): FaultEntry => {
    const which = { node: random.below(2), nth: 1 + random.below(count) };
    if (random.chance(0.6)) return { packet: random.chance(0.5) ? 'lost' : 'corrupted', ...which };
    return { packet: 'duplicated', ...which, delay: `${1 + random.below(30_000)}ns` };
  });
  const few = () => ({ 'hca.responderAtomicResults': random.chance(0.7) ? 1 : 4 });
  const set = random.maybe(0.5, few);
  const hasDrawnHardware = random.chance(0.3);
  return { args, set, hasDrawnHardware, faults: random.chance(0.3) ? copied : faults, climate: 'lossy' };
}

/** Adds bit by bit: a bit with a boundary loses its carry. */
function added(value: bigint, addend: bigint, boundaries: bigint): bigint {
  let [sum, carry] = [0n, 0n];
  for (let bit = 0n; bit < 64n; bit++) {
    const total = ((value >> bit) & 1n) + ((addend >> bit) & 1n) + carry;
    sum |= (total & 1n) << bit;
    carry = ((boundaries >> bit) & 1n) === 1n ? 0n : total >> 1n;
  }
  return sum;
}

/** Returns the value of a word after a request. */
function afterOf(request: Request, value: bigint): bigint {
  const [operand, mask] = [numberOf(request.operand), numberOf(request.mask)];
  if (request.kind !== 'swap') return added(value, operand, request.kind === 'plain add' ? 0n : mask);
  if (((value ^ numberOf(request.compare)) & mask) !== 0n) return value;
  const swapMask = numberOf(request.swapMask);
  return (value & (ones ^ swapMask)) | (operand & swapMask);
}

/** Word of a request of a connection. */
const placeOf = (qp: number, { kind, word }: Request): number =>
  kind === 'add to all' ? 0 : 1 + qp * wordsPerQp + word;

/** Opens a side: the area begins with the words; the asker's results follow them. */
const open = (stage: Stage<Args>): Promise<Side> => {
  const { qps, words } = stage.args;
  return connect(stage, {
    ...{ areaBytes: (words.length + qps.flat().length) * wordBytes, qpCount: qps.length },
    // Three data pointers take the room that two masks do.
    cap: { maxSendWr: Math.max(...qps.map(({ length }) => length)), maxSendSge: 3 },
    attributes: { timeoutCode: 13 },
  });
};

function post(side: Side, { words, boundaries }: Args, qp: number, id: number, request: Request): void {
  const { kind, isFenced } = request;
  const { opcode, compareAdd, swap } =
    kind === 'swap'
      ? {
          opcode: ibv.IBV_WR_MASKED_ATOMIC_CMP_AND_SWP,
          compareAdd: numberOf(request.compare),
          swap: numberOf(request.operand),
        }
      : {
          opcode: kind === 'plain add' ? ADD : ibv.IBV_WR_MASKED_ATOMIC_FETCH_AND_ADD,
          compareAdd: numberOf(request.operand),
          swap: 0n,
        };
  const masks = {
    compareAddMask: numberOf(kind === 'add to all' ? boundaries : request.mask),
    swapMask: numberOf(request.swapMask),
  };
  const remoteAddr = side.peer.address + placeOf(qp, request) * wordBytes;
  const span = { offset: (words.length + id) * wordBytes, lengthBytes: wordBytes };
  ibv.postSend(side.qps[qp]!, {
    ...side.request(id, opcode, { ...span, flags: isFenced ? ibv.IBV_SEND_FENCE : 0 }),
    wr: { atomic: { remoteAddr, rkey: side.peer.rkey, compareAdd, swap, ...masks } },
  });
}

const wordsTopic = topic<readonly string[]>('words');

/** Posts the requests of all connections in rounds, and compares their results with the words. */
async function asker(stage: Stage<Args>): Promise<void> {
  const { qps, words } = stage.args;
  const side = await open(stage);
  await stage.meet('filled');
  const firsts = qps.map((_, qp) => qps.slice(0, qp).flat().length);
  for (let turn = 0; turn < Math.max(...qps.map(({ length }) => length)); turn++)
    for (const [qp, requests] of qps.entries()) {
      const request = requests[turn];
      if (request !== undefined) post(side, stage.args, qp, firsts[qp]! + turn, request);
    }
  const count = qps.flat().length;
  const ended = await side.watch(count, { napPs: psPerMs / 20, patiencePs: 10_000 * psPerMs });
  const brought = (id: number) =>
    textOf(stage.memory.readUint64(side.area.address + (words.length + id) * wordBytes));
  await stage.meet('over');
  const there = await stage.take(wordsTopic);
  stage.judgeWell(ended, count);
  if (stage.wrong.length > 0) return;
  if (ended.some(({ byteLen }) => byteLen !== wordBytes))
    stage.accuse('an atomic completed with another length than 8');
  const held = words.map(numberOf);
  for (const [qp, requests] of qps.entries())
    for (const [at, request] of requests.entries()) {
      const place = placeOf(qp, request);
      const [id, before] = [firsts[qp]! + at, textOf(held[place]!)];
      const isToAll = request.kind === 'add to all';
      if (!isToAll && brought(id) !== before)
        stage.accuse(`${request.kind} ${id} brought ${brought(id)}, before it the word was ${before}`);
      const all = isToAll ? { ...request, mask: stage.args.boundaries } : request;
      held[place] = afterOf(all, held[place]!);
    }
  if (`${there}` !== `${held.map(textOf)}`)
    stage.accuse(`words are ${there}, the atomics make ${held.map(textOf)}`);
}

async function answerer(stage: Stage<Args>): Promise<void> {
  const { memory } = stage;
  const { address } = (await open(stage)).area;
  for (const [at, word] of stage.args.words.entries())
    memory.writeUint64(address + at * wordBytes, numberOf(word));
  await stage.meet('filled');
  await stage.meet('over');
  await stage.lastBytesIn();
  await stage.put(
    wordsTopic,
    stage.args.words.map((_, at) => textOf(memory.readUint64(address + at * wordBytes))),
  );
}

export const maskedAtomics = scene({
  about:
    'masked compares, swaps and additions of several connections, of which packets are lost and come twice',
  draw,
  programs: [asker, answerer],
});
