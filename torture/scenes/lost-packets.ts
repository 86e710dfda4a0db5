/**
 * A reliable connection that loses some packets, often one, near the wrap of the PSNs: every byte comes where it belongs, atomics
 * are carried out once and in order, a loss that a later packet reveals costs no time-out, and without retries it ends the
 * connection (IBTA 9.7.5.1, 9.7.5.2, 9.9.2.1; the rest of a READ: 9.7.3.2).
 */
import { psPerMs } from '../../base/index.ts';
import { barrier } from '../../experiments/workloads/index.ts';
import type { FaultEntry } from '../../machine/faults/index.ts';
import type { JsonValue, ProgramContext } from '../../machine/index.ts';
import type { Random } from '../../sim/index.ts';
import {
  IBV_SEND_SIGNALED,
  IBV_WC_RETRY_EXC_ERR,
  IBV_WC_SUCCESS,
  IBV_WC_WR_FLUSH_ERR,
  IBV_WR_ATOMIC_FETCH_AND_ADD,
  IBV_WR_RDMA_READ,
  IBV_WR_RDMA_WRITE,
  IBV_WR_SEND,
  type IbvSendWr,
  type PortAttr,
  postRecv,
} from '../../userlib/index.ts';
import { firstDifference, patternOf, watchCompletions } from './observing.ts';
import {
  askerAndAnswerer,
  connectWithPeer,
  type Ended,
  lastBytesIn,
  leave,
  post,
  requestOf,
  type Side,
} from './pair.ts';
import type { Scene, SceneDraft, ScenePlayed } from './scene.ts';

interface Args {
  readonly requests: readonly { readonly opcode: number; readonly lengthBytes: number }[];
  readonly mtuCode: number;
  readonly firstPsn: number;
  readonly retryCount: number;
  readonly timeoutCode: number;
  /** Packets that are due in each direction when nothing is lost: of requests, and of answers where each has its own. */
  readonly due: readonly [requests: number, answers: number | null];
}

const mtuBytes = ({ mtuCode }: Pick<Args, 'mtuCode'>): number => 128 << mtuCode;
const wordBytes = 8;
const isAtomic = (opcode: number): boolean => opcode === IBV_WR_ATOMIC_FETCH_AND_ADD;
const isRead = (opcode: number): boolean => opcode === IBV_WR_RDMA_READ;

/** Each request has a slot of the areas, the word of all atomics lies behind them. */
const slotBytes = ({ requests }: Pick<Args, 'requests'>): number =>
  Math.max(wordBytes, ...requests.map(({ lengthBytes }) => (lengthBytes + 7) & ~7));
const wordOffset = (args: Args): number => args.requests.length * slotBytes(args);
/** What the n-th request adds, if it adds. */
const addOf = (id: number): bigint => BigInt(id + 1) << BigInt(2 * id);

const mixes: readonly (readonly number[])[] = [
  [IBV_WR_RDMA_READ],
  [IBV_WR_RDMA_READ],
  [IBV_WR_ATOMIC_FETCH_AND_ADD],
  [IBV_WR_RDMA_WRITE],
  [IBV_WR_SEND],
  [IBV_WR_RDMA_WRITE, IBV_WR_SEND, IBV_WR_RDMA_READ, IBV_WR_ATOMIC_FETCH_AND_ADD],
  [IBV_WR_RDMA_READ, IBV_WR_RDMA_WRITE],
];

type Request = Args['requests'][number];

function drawRequests(random: Random, mtu: number): Request[] {
  const of = (opcode: number, packetsMost: number): Request => {
    const lengthBytes = isAtomic(opcode) ? wordBytes : 1 + random.below(mtu * packetsMost);
    return { opcode, lengthBytes };
  };
  const many = (count: number, opcode: number, packetsMost: number): Request[] =>
    Array.from({ length: count }, () => of(opcode, packetsMost));
  switch (random.below(4)) {
    case 0:
      // A READ that is still being answered when the rest of it is asked for again.
      return many(1 + random.below(2), IBV_WR_RDMA_READ, 100);
    case 1:
      return many(2 + random.below(14), IBV_WR_ATOMIC_FETCH_AND_ADD, 1);
    case 2:
      return [
        ...many(3, IBV_WR_RDMA_WRITE, 1),
        ...many(2 + random.below(3), IBV_WR_RDMA_READ, 64),
        ...many(2 + random.below(6), IBV_WR_RDMA_WRITE, 2),
      ];
    default: {
      const mix = mixes[random.below(mixes.length)]!;
      const packetsMost = random.chance(0.5) ? 3 : 24;
      const count = 1 + random.below(random.chance(0.5) ? 3 : 14);
      return Array.from({ length: count }, () => of(mix[random.below(mix.length)]!, packetsMost));
    }
  }
}

const drawLongReads = (random: Random, mtu: number): Request[] =>
  Array.from({ length: 1 + random.below(2) }, () => ({
    opcode: IBV_WR_RDMA_READ,
    lengthBytes: mtu * (24 + random.below(60)) + random.below(mtu),
  }));

function draw(random: Random): SceneDraft {
  const mtuCode = 1 + random.below(3);
  const mtu = mtuBytes({ mtuCode });
  // READs whose answers take long: the rest is asked for again while it is being answered.
  const isLong = random.chance(0.15);
  const requests = isLong ? drawLongReads(random, mtu) : drawRequests(random, mtu);
  const packets = requests.map(({ lengthBytes }) => Math.ceil(lengthBytes / mtu));
  const sum = (counts: readonly number[]): number => counts.reduce((all, count) => all + count, 0);
  const asked = sum(packets.map((count, id) => (isRead(requests[id]!.opcode) ? 1 : count)));
  const hasOwnAnswers = requests.every(({ opcode }) => isRead(opcode) || isAtomic(opcode));
  const due = [asked, hasOwnAnswers ? sum(packets) : null] as const;
  const isSingle = isLong || random.chance(0.6);
  const count = isSingle ? 1 : 1 + random.below(4);
  const faults = Array.from({ length: count }, (): FaultEntry => {
    const node = isLong || random.chance(hasOwnAnswers ? 0.8 : 0.3) ? 1 : 0;
    // At an early loss, what comes after it is still in flight.
    const most = isLong || random.chance(0.4) ? 8 : Number.POSITIVE_INFINITY;
    const nth = 1 + random.below(Math.min(most, (due[node] ?? asked) + (isSingle ? 0 : 4)));
    const packet = random.chance(0.5) ? 'lost' : 'corrupted';
    const isRange = !isSingle && random.chance(0.5);
    return { packet, nth: isRange ? `${nth}-${nth + random.below(6)}` : nth, node };
  });
  // Of the last answers none comes: results are to be kept for all that may be outstanding.
  const isTail = requests.every(({ opcode }) => isAtomic(opcode)) && random.chance(0.6);
  if (isTail) {
    const first = Math.max(1, requests.length - random.below(6));
    faults.splice(0, count, { packet: 'lost', nth: `${first}-${requests.length}`, node: 1 });
  }
  // Copies of early requests come while a refusal of a later one waits for answers in between.
  const firstRead = requests.findIndex(({ opcode }) => isRead(opcode));
  const behind = requests.findLastIndex(({ opcode }) => isRead(opcode)) + 1;
  const isBehind = firstRead > 0 && asked > behind + 1 && random.chance(0.7);
  if (isBehind) {
    const before = sum(packets.slice(0, firstRead)) + behind - firstRead;
    const nth = before + 1 + random.below(Math.max(1, asked - before - 1));
    faults.splice(0, count, { packet: 'lost', nth, node: 0 });
  }
  if (isBehind || (!isTail && !isLong && random.chance(0.3)))
    faults.push({
      packet: 'duplicated',
      nth: `1-${1 + random.below(3)}`,
      delay: `${1 + random.below(random.chance(0.7) ? 8000 : 40_000)}ns`,
      node: 0,
    });
  const total = sum(packets);
  const args: Args = {
    requests,
    mtuCode,
    firstPsn: random.chance(0.7) ? 2 ** 24 - 1 - random.below(total + 1) : random.below(2 ** 24),
    retryCount:
      isTail || isBehind || (isLong && random.chance(0.5))
        ? 7
        : isLong
          ? 0
          : random.chance(hasOwnAnswers ? 0.5 : 0.25)
            ? 0
            : random.chance(0.3)
              ? 1 + random.below(3)
              : 7,
    timeoutCode: 13,
    due,
  };
  const fewResults = { 'hca.responderAtomicResults': random.chance(0.7) ? 1 : 4 };
  return {
    args: { ...args },
    set: {
      ...(random.chance(0.8) ? fewResults : {}),
      ...(isLong ? { 'wire.speed': 'SDR', 'wire.lanes': random.chance(0.5) ? '1' : '4' } : {}),
    },
    hasDrawnHardware: !isLong && random.chance(0.3),
    faults,
    climate: 'lossy',
  };
}

const attributesOf = ({ mtuCode, retryCount, timeoutCode }: Args) => ({
  pathMtu: mtuCode as PortAttr['activeMtu'],
  retryCount,
  timeoutCode,
});

/** Posts all requests at once. */
export async function asker(program: ProgramContext): Promise<JsonValue> {
  const args = program.args as unknown as Args;
  const { requests, firstPsn } = args;
  const bytes = slotBytes(args);
  const side = await connectWithPeer(program, {
    areaBytes: wordOffset(args) + wordBytes,
    cap: { maxSendWr: requests.length, maxRecvWr: requests.length },
    attributes: attributesOf(args),
    firstPsn,
  });
  const { memory } = program;
  for (const [id, { opcode, lengthBytes }] of requests.entries())
    if (!isRead(opcode) && !isAtomic(opcode))
      memory.write(side.area.address + id * bytes, patternOf(id, lengthBytes));
  await barrier(program, 'filled');
  for (const [id, { opcode, lengthBytes }] of requests.entries()) {
    const request = requestOf(side, id, opcode, { offset: id * bytes, lengthBytes });
    post(side.qps[0]!, isAtomic(opcode) ? atomic(side, request, wordOffset(args)) : request);
  }
  const ended = await watchCompletions(side, requests.length, {
    napPs: psPerMs / 20,
    patiencePs: 1000 * psPerMs * 10,
  });
  const differences = requests.map(({ opcode, lengthBytes }, id) => {
    const here = memory.read(side.area.address + id * bytes, lengthBytes);
    if (isRead(opcode)) return firstDifference(here, patternOf(id, lengthBytes));
    return isAtomic(opcode) ? `${new DataView(here.buffer, here.byteOffset).getBigUint64(0, true)}` : -1;
  });
  await barrier(program, 'over');
  await leave(side);
  return { ended, differences } as unknown as JsonValue;
}

function atomic({ peer }: Side, request: IbvSendWr, offset: number): IbvSendWr {
  const { wrId, sgList } = request;
  return {
    wrId,
    sgList,
    numSge: 1,
    opcode: IBV_WR_ATOMIC_FETCH_AND_ADD,
    sendFlags: IBV_SEND_SIGNALED,
    wr: { atomic: { remoteAddr: peer.address + offset, compareAdd: addOf(wrId), swap: 0n, rkey: peer.rkey } },
  };
}

/** Owns what is read, and posts receives for what is sent. */
export async function answerer(program: ProgramContext): Promise<JsonValue> {
  const args = program.args as unknown as Args;
  const { requests, firstPsn } = args;
  const bytes = slotBytes(args);
  const side = await connectWithPeer(program, {
    areaBytes: wordOffset(args) + wordBytes,
    cap: { maxSendWr: requests.length, maxRecvWr: requests.length },
    attributes: attributesOf(args),
    firstPsn,
    beforeReady: ({ qps, area }) => {
      for (const [id, { opcode, lengthBytes }] of requests.entries())
        if (opcode === IBV_WR_SEND)
          postRecv(
            qps[0]!,
            {
              wrId: id,
              sgList: [{ addr: area.address + id * bytes, length: lengthBytes, lkey: area.region.lkey }],
              numSge: 1,
            },
            { wr: null, index: 0 },
          );
    },
  });
  const { memory } = program;
  for (const [id, { opcode, lengthBytes }] of requests.entries())
    if (isRead(opcode)) memory.write(side.area.address + id * bytes, patternOf(id, lengthBytes));
  await barrier(program, 'filled');
  await barrier(program, 'over');
  await lastBytesIn(program);
  const differences = requests.map(({ opcode, lengthBytes }, id) =>
    isRead(opcode) || isAtomic(opcode)
      ? -1
      : firstDifference(memory.read(side.area.address + id * bytes, lengthBytes), patternOf(id, lengthBytes)),
  );
  const word = memory.read(side.area.address + wordOffset(args), wordBytes);
  await leave(side);
  return { differences, word: `${new DataView(word.buffer, word.byteOffset).getBigUint64(0, true)}` };
}

/** First and last packet that a fault concerns. */
function rangeOf({ nth }: FaultEntry): readonly [number, number] {
  const [first, last] = String(nth).split('-').map(Number);
  return [first!, last ?? first!];
}

function judge(played: ScenePlayed): string[] {
  const args = played.args as unknown as Args;
  const { requests, retryCount } = args;
  const [own, other] = played.results as unknown as [
    { ended: Ended[]; differences: (number | string)[] },
    { differences: number[]; word: string },
  ];
  const statuses = new Map(own.ended.map(({ id, status }) => [id, status]));
  const found: string[] = [];
  if (statuses.size !== requests.length || own.ended.length !== requests.length)
    found.push(`${own.ended.length} completions of ${requests.length} requests`);
  const costs = costOf(played);
  const isFailed = own.ended.some(({ status }) => status !== IBV_WC_SUCCESS);
  if (isFailed && costs.most <= retryCount)
    found.push(`requests ended in ${[...statuses.values()]}, ${costs.most} losses are within the retries`);
  if (!isFailed && retryCount === 0 && costs.least > 0)
    found.push('a packet that was needed was lost, and all ended well without retries');
  if (own.ended.some(({ status }) => !lawful.includes(status)))
    found.push(`requests ended in ${[...statuses.values()]}`);
  let sum = 0n;
  for (const [id, { opcode }] of requests.entries()) {
    if (statuses.get(id) !== IBV_WC_SUCCESS) continue;
    if (isAtomic(opcode)) {
      if (own.differences[id] !== `${sum}`)
        found.push(`atomic ${id} brought ${own.differences[id]}, before it the word was ${sum}`);
      sum += addOf(id);
    } else {
      const at = isRead(opcode) ? own.differences[id]! : other.differences[id]!;
      if (at !== -1) found.push(`byte ${at} of request ${id} is wrong`);
    }
  }
  if (!isFailed && other.word !== `${sum}`) found.push(`the word is ${other.word}, the atomics add ${sum}`);
  return [...found, ...judgeReport(played, isFailed), ...judgeSingle(played)];
}

const lawful: readonly number[] = [IBV_WC_SUCCESS, IBV_WC_RETRY_EXC_ERR, IBV_WC_WR_FLUSH_ERR];

/** Retries that the faults cost at least and at most. */
function costOf({ args, faults }: ScenePlayed): { least: number; most: number } {
  const { due } = args as unknown as Args;
  const hasCopies = faults.some(({ packet }) => packet === 'duplicated');
  let [least, most] = [0, 0];
  for (const fault of faults) {
    const [first, last] = rangeOf(fault);
    most += last - first + 1;
    // A copy of a request or of its answer may make up for what was lost.
    if (fault['packet'] === 'duplicated' || hasCopies) continue;
    // Whether packets beyond those that are due, and acknowledgements, are needed cannot be known.
    if (first <= (due[Number(fault['node'])] ?? 0)) least++;
  }
  return { least, most };
}

/** What the faults did, by the report. */
function judgeReport({ report, faults }: ScenePlayed, isFailed: boolean): string[] {
  const found: string[] = [];
  for (const node of [0, 1]) {
    const wire = report.wire.find(({ from }) => from === node)!;
    for (const kind of ['lost', 'corrupted'] as const) {
      const ranges = faults
        .filter((fault) => fault['node'] === node && fault['packet'] === kind)
        .map(rangeOf);
      const others = faults
        .filter(
          (fault) => fault['node'] === node && fault['packet'] !== kind && fault['packet'] !== 'duplicated',
        )
        .map(rangeOf);
      const isIn = (all: readonly (readonly [number, number])[], packet: number): boolean =>
        all.some(([first, last]) => packet >= first && packet <= last);
      let [least, most] = [0, 0];
      for (let packet = 1; packet <= wire.packets; packet++) {
        if (!isIn(ranges, packet)) continue;
        most++;
        if (!isIn(others, packet)) least++;
      }
      const told = wire[kind] ?? 0;
      if (told < least || told > most)
        found.push(`${told} packets of node ${node} were ${kind} by the report, by the faults ${most}`);
    }
  }
  for (const [index, { fault, fired }] of (report.faults ?? []).entries()) {
    const entry = faults[index]!;
    const [first, last] = rangeOf(entry);
    const sent = report.wire.find(({ from }) => from === entry['node'])!.packets;
    const due = Math.max(0, Math.min(last, sent) - first + 1);
    const isRight = entry['packet'] === 'duplicated' ? fired <= due : fired === due;
    if (!isRight) found.push(`${fault} has happened ${fired} times by the report, ${due} packets were there`);
  }
  return isFailed ? [] : found;
}

/** One loss that a later packet of the same kind reveals: no time-out, and what was lost is requested once. */
function judgeSingle({ args, faults, report, set }: ScenePlayed): string[] {
  const { due, requests, retryCount } = args as unknown as Args;
  const losses = faults.filter((fault) => fault['packet'] !== 'duplicated');
  const [first, last] = rangeOf(losses[0]!);
  const node = Number(losses[0]!['node']);
  const dueThere = due[node];
  if (losses.length !== 1 || first !== last || retryCount === 0 || dueThere === null) return [];
  if (dueThere === undefined || first >= dueThere) return [];
  const found: string[] = [];
  const { transport } = report.nodes[0]!.hca;
  // Where not all requests may be in flight, what would reveal a loss may wait for the lost one.
  const under = Math.min(
    ...['hca.outstandingWqesPerQp', 'hca.outstandingWqes'].map((path) =>
      Number(set[path] ?? requests.length),
    ),
  );
  if (under >= requests.length && (transport['ackTimeout'] ?? 0) > 0)
    found.push(`${transport['ackTimeout']} time-outs, and what came after the lost packet showed the loss`);
  // A copy of a READ's request has it answered from its begin again, between the answers to others.
  const hasCopies = losses.length < faults.length;
  if (node === 1 && !hasCopies && requests.every(({ opcode }) => isRead(opcode))) {
    const repeated = report.wire.find(({ from }) => from === 0)!.retransmitted['RC_RDMA_READ_REQUEST'];
    if ((transport['missingResponse'] ?? 0) > 1)
      found.push(`a response was found missing ${transport['missingResponse']} times, one was lost`);
    if ((repeated?.packets ?? 0) > requests.length)
      found.push(`${repeated?.packets} of ${requests.length} READs were asked for again`);
  }
  return found;
}

export const lostPackets: Scene = {
  name: 'lost-packets',
  about: 'packets are lost near the wrap of the PSNs, often one whose loss a later one shows',
  module: import.meta.url,
  cable: 'infiniband',
  programs: askerAndAnswerer,
  draw,
  judge,
};
