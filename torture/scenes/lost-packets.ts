/**
 * A reliable connection loses some packets, often one, near the wrap of the PSNs: every byte reaches its place, atomics are carried out once and
 * in order, a loss that a later packet reveals costs no time-out, and without retries it ends the connection (IBTA 9.7.5.1,
 * 9.7.5.2, 9.9.2.1; the rest of a READ: 9.7.3.2).
 */
import type { Draft, Draws, Ended, FaultEntry, Played, Request, Stage } from './language/index.ts';
import {
  ADD,
  connect,
  isWell,
  mtuOf,
  psPerMs,
  READ,
  SEND,
  scene,
  statusesOf,
  sumOf,
  Traffic,
  times,
  WRITE,
} from './language/index.ts';

interface Args {
  readonly requests: readonly Request[];
  readonly mtuCode: number;
  readonly firstPsn: number;
  readonly retryCount: number;
  readonly timeoutCode: number;
  /** Packets that are due in each direction when nothing is lost: of requests, and of answers where each has its own. */
  readonly due: readonly [requests: number, answers: number | null];
}

const wordBytes = 8;
/** Addend of a request by its number. */
const addOf = (id: number): bigint => BigInt(id + 1) << BigInt(2 * id);

const mixes = [[READ], [READ], [ADD], [WRITE], [SEND], [WRITE, SEND, READ, ADD], [READ, WRITE]] as const;

function drawRequests(random: Draws, mtu: number): Request[] {
  const of = (opcode: number, packetsMost: number): Request => {
    const lengthBytes = opcode === ADD ? wordBytes : 1 + random.below(mtu * packetsMost);
    return { opcode, lengthBytes };
  };
  const many = (count: number, opcode: number, packetsMost: number): Request[] =>
    times(count, () => of(opcode, packetsMost));
  const kind = random.below(4);
  // A READ that is still being answered when its rest is requested again.
  if (kind === 0) return many(1 + random.below(2), READ, 100);
  if (kind === 1) return many(2 + random.below(14), ADD, 1);
  if (kind === 2)
    return [
      ...many(3, WRITE, 1),
      ...many(2 + random.below(3), READ, 64),
      ...many(2 + random.below(6), WRITE, 2),
    ];
  const mix = random.oneOf<readonly number[]>(mixes);
  const packetsMost = random.chance(0.5) ? 3 : 24;
  return times(1 + random.below(random.chance(0.5) ? 3 : 14), () => of(random.oneOf(mix), packetsMost));
}

const drawLongReads = (random: Draws, mtu: number): Request[] =>
  times(1 + random.below(2), () => ({
    opcode: READ,
    lengthBytes: mtu * (24 + random.below(60)) + random.below(mtu),
  }));

const is =
  (opcode: number) =>
  (request: Request): boolean =>
    request.opcode === opcode;

/** Requests and packets that faults and retries depend on. */
interface Course {
  readonly requests: readonly Request[];
  /** Packets of each request, or of its answer. */
  readonly packets: readonly number[];
  /** READs with long responses: the rest is requested again while it is being answered. */
  readonly isLong: boolean;
  readonly hasOwnAnswers: boolean;
  readonly due: Args['due'];
}

function drawCourse(random: Draws, mtu: number): Course {
  const isLong = random.chance(0.15);
  const requests = isLong ? drawLongReads(random, mtu) : drawRequests(random, mtu);
  const packets = requests.map(({ lengthBytes }) => Math.ceil(lengthBytes / mtu));
  const asked = sumOf(packets.map((count, id) => (is(READ)(requests[id]!) ? 1 : count)));
  const hasOwnAnswers = requests.every(({ opcode }) => opcode === READ || opcode === ADD);
  const due = [asked, hasOwnAnswers ? sumOf(packets) : null] as const;
  return { requests, packets, isLong, hasOwnAnswers, due };
}

/** Draws the losses, and the scene's further topics. */
function drawFaults(random: Draws, { requests, packets, isLong, hasOwnAnswers, due }: Course) {
  const [asked] = due;
  const isSingle = isLong || random.chance(0.6);
  const count = isSingle ? 1 : 1 + random.below(4);
  const faults = times(count, (): FaultEntry => {
    const node = isLong || random.chance(hasOwnAnswers ? 0.8 : 0.3) ? 1 : 0;
    // At an early loss, the following packets are still in flight.
    const most = isLong || random.chance(0.4) ? 8 : Number.POSITIVE_INFINITY;
    const nth = 1 + random.below(Math.min(most, (due[node] ?? asked) + (isSingle ? 0 : 4)));
    const packet = random.chance(0.5) ? 'lost' : 'corrupted';
    const isRange = !isSingle && random.chance(0.5);
    return { packet, nth: isRange ? `${nth}-${nth + random.below(6)}` : nth, node };
  });
  // None of the last responses arrives: results must be kept for all that may be outstanding.
  const isTail = requests.every(is(ADD)) && random.chance(0.6);
  if (isTail) {
    const first = Math.max(1, requests.length - random.below(6));
    faults.splice(0, count, { packet: 'lost', nth: `${first}-${requests.length}`, node: 1 });
  }
  // Copies of early requests arrive while a refusal of a later one waits for the responses in between.
  const firstRead = requests.findIndex(is(READ));
  const behind = requests.findLastIndex(is(READ)) + 1;
  const isBehind = firstRead > 0 && asked > behind + 1 && random.chance(0.7);
  if (isBehind) {
    const before = sumOf(packets.slice(0, firstRead)) + behind - firstRead;
    const nth = before + 1 + random.below(Math.max(1, asked - before - 1));
    faults.splice(0, count, { packet: 'lost', nth, node: 0 });
  }
  if (isBehind || (!isTail && !isLong && random.chance(0.3))) {
    const nth = `1-${1 + random.below(3)}`;
    const delay = `${1 + random.below(random.chance(0.7) ? 8000 : 40_000)}ns`;
    faults.push({ packet: 'duplicated', nth, delay, node: 0 });
  }
  return { faults, needsRetries: isTail || isBehind };
}

function drawRetries(random: Draws, { isLong, hasOwnAnswers }: Course, needsRetries: boolean): number {
  if (needsRetries || (isLong && random.chance(0.5))) return 7;
  if (isLong || random.chance(hasOwnAnswers ? 0.5 : 0.25)) return 0;
  return random.chance(0.3) ? 1 + random.below(3) : 7;
}

function draw(random: Draws): Draft<Args> {
  const mtuCode = 1 + random.below(3);
  const course = drawCourse(random, mtuOf(mtuCode));
  const { requests, packets, isLong, due } = course;
  const { faults, needsRetries } = drawFaults(random, course);
  const isNearWrap = random.chance(0.7);
  const firstPsn = isNearWrap ? 2 ** 24 - 1 - random.below(sumOf(packets) + 1) : random.below(2 ** 24);
  const retryCount = drawRetries(random, course, needsRetries);
  const args = { requests, mtuCode, firstPsn, retryCount, timeoutCode: 13, due };
  const fewResults = { 'hca.responderAtomicResults': random.chance(0.7) ? 1 : 4 };
  const set = {
    ...(random.chance(0.8) ? fewResults : {}),
    ...(isLong ? { 'wire.speed': 'SDR', 'wire.lanes': random.chance(0.5) ? '1' : '4' } : {}),
  };
  return { args, set, hasDrawnHardware: !isLong && random.chance(0.3), faults, climate: 'lossy' };
}

/** Observations of a program; the word that atomics add to follows the traffic in the area. */
interface Told {
  readonly ended: readonly Ended[];
  /** Requests of the requester whose bytes are not in their places. */
  readonly wrong: readonly number[];
  /** Results of atomics by request; of the answerer, the word. */
  readonly words: readonly string[];
}

/**
 * The first program posts all requests at once; the second owns the memory that is read, and posts receives for the
 * SENDs.
 */
async function player(stage: Stage<Args>): Promise<Told> {
  const { requests, firstPsn, mtuCode, retryCount, timeoutCode } = stage.args;
  const isAsker = stage.node === 0;
  const traffic = new Traffic(stage.node, [requests, []]);
  const side = await connect(stage, {
    ...{ areaBytes: traffic.areaBytes + wordBytes, firstPsn, mtuCode },
    cap: { maxSendWr: requests.length, maxRecvWr: requests.length },
    attributes: { retryCount, timeoutCode },
    beforeReady: (early) => traffic.receiveAll(early),
  });
  const wordAt = (offset: number): string => `${stage.memory.readUint64(side.area.address + offset)}`;
  traffic.fill(side);
  await stage.meet('filled');
  for (const [id, { opcode }] of traffic.own.entries())
    traffic.post(side, id, opcode === ADD ? { addend: addOf(id), remoteOffset: traffic.areaBytes } : {});
  const ended = await side.watch(traffic.own.length, { napPs: psPerMs / 20, patiencePs: 10_000 * psPerMs });
  await stage.meet('over');
  if (!isAsker) await stage.lastBytesIn();
  return {
    ended,
    wrong: isAsker ? traffic.misread(side) : traffic.missing(side),
    words: isAsker ? requests.map((_, id) => wordAt(traffic.place(2, id))) : [wordAt(traffic.areaBytes)],
  };
}

/** First and last packet that a fault concerns. */
function rangeOf({ nth }: FaultEntry): readonly [number, number] {
  const [first, last] = String(nth).split('-').map(Number);
  return [first!, last ?? first!];
}

const isCopy = (fault: FaultEntry): boolean => fault['packet'] === 'duplicated';
const lawful = ['SUCCESS', 'RETRY_EXC_ERR', 'WR_FLUSH_ERR'];

type All = Played<Args, readonly [Told, Told]>;

function judge(played: All): string[] {
  const { args, told } = played;
  const { requests, retryCount } = args;
  const [{ ended, words }, { words: last }] = told;
  const byId = new Map(ended.map((one) => [one.id, one]));
  const found: string[] = [];
  if (byId.size !== requests.length || ended.length !== requests.length)
    found.push(`${ended.length} completions of ${requests.length} requests`);
  const costs = costOf(played);
  const isFailed = !ended.every(isWell);
  if (isFailed && costs.most <= retryCount)
    found.push(`requests ended in ${statusesOf(ended)}, ${costs.most} losses are within the retries`);
  if (!isFailed && retryCount === 0 && costs.least > 0)
    found.push('a packet that was needed was lost, and all ended well without retries');
  if (ended.some(({ status }) => !lawful.includes(status)))
    found.push(`requests ended in ${statusesOf(ended)}`);
  let sum = 0n;
  for (const [id, { opcode }] of requests.entries()) {
    const end = byId.get(id);
    if (end === undefined || !isWell(end)) continue;
    if (told.some(({ wrong }) => wrong.includes(id))) found.push(`the bytes of request ${id} are wrong`);
    if (opcode !== ADD) continue;
    if (words[id] !== `${sum}`)
      found.push(`atomic ${id} brought ${words[id]}, before it the word was ${sum}`);
    sum += addOf(id);
  }
  if (!isFailed && last[0] !== `${sum}`) found.push(`the word is ${last[0]}, the atomics add ${sum}`);
  return [...found, ...(isFailed ? [] : judgeReport(played)), ...judgeSingle(played)];
}

/** Retries that the faults cost at least and at most. */
function costOf({ args: { due }, faults }: All): { least: number; most: number } {
  const hasCopies = faults.some(isCopy);
  const most = sumOf(faults.map(rangeOf).map(([first, last]) => last - first + 1));
  // A copy of a request or of its response may make up for a loss. Whether packets beyond those that are due, and
  // acknowledgements, are needed cannot be known.
  const needed = faults.filter((fault) => rangeOf(fault)[0] <= (due[Number(fault['node'])] ?? 0));
  return { least: hasCopies ? 0 : needed.length, most };
}

/** Effects of the faults, by the report. */
function judgeReport({ report, faults }: All): string[] {
  const found: string[] = [];
  const wireOf = (node: unknown) => report.wire.find(({ from }) => from === node)!;
  for (const [node, kind] of [0, 1].flatMap((one) =>
    (['lost', 'corrupted'] as const).map((two) => [one, two] as const),
  )) {
    const wire = wireOf(node);
    const here = faults.filter((fault) => fault['node'] === node && !isCopy(fault));
    const isIn = (packet: number, isKind: boolean): boolean =>
      here.some((fault) => {
        const [first, last] = rangeOf(fault);
        return (fault['packet'] === kind) === isKind && packet >= first && packet <= last;
      });
    const all = times(wire.packets, (at) => at + 1).filter((packet) => isIn(packet, true));
    const least = all.filter((packet) => !isIn(packet, false)).length;
    const told = wire[kind] ?? 0;
    if (told < least || told > all.length)
      found.push(`${told} packets of node ${node} were ${kind} by the report, by the faults ${all.length}`);
  }
  for (const [at, { fault, fired }] of (report.faults ?? []).entries()) {
    const [first, last] = rangeOf(faults[at]!);
    const due = Math.max(0, Math.min(last, wireOf(faults[at]!['node']).packets) - first + 1);
    if (isCopy(faults[at]!) ? fired > due : fired !== due)
      found.push(`${fault} has happened ${fired} times by the report, ${due} packets were there`);
  }
  return found;
}

/** One loss that a later packet of the same kind reveals: no time-out, and what was lost is requested once. */
function judgeSingle({ args: { due, requests, retryCount }, faults, report, set }: All): string[] {
  const losses = faults.filter((fault) => !isCopy(fault));
  const [first, last] = rangeOf(losses[0]!);
  const node = Number(losses[0]!['node']);
  if (losses.length !== 1 || first !== last || retryCount === 0 || first >= (due[node] ?? 0)) return [];
  const found: string[] = [];
  const { ackTimeout = 0, missingResponse = 0 } = report.nodes[0]!.hca.transport;
  // If not all requests may be in flight, the request that would reveal a loss may wait for the lost one.
  const limits = ['hca.outstandingWqesPerQp', 'hca.outstandingWqes'].map((path) =>
    Number(set[path] ?? requests.length),
  );
  if (Math.min(...limits) >= requests.length && ackTimeout > 0)
    found.push(`${ackTimeout} time-outs, and what came after the lost packet showed the loss`);
  // A copy of a READ's request has it answered from its begin again, between the answers to others.
  const hasCopies = losses.length < faults.length;
  if (node === 0 || hasCopies || requests.some(({ opcode }) => opcode !== READ)) return found;
  const { retransmitted } = report.wire.find(({ from }) => from === 0)!;
  const repeated = retransmitted['RC_RDMA_READ_REQUEST']?.packets ?? 0;
  if (missingResponse > 1) found.push(`a response was found missing ${missingResponse} times, one was lost`);
  if (repeated > requests.length) found.push(`${repeated} of ${requests.length} READs were asked for again`);
  return found;
}

export const lostPackets = scene({
  about: 'packets are lost near the wrap of the PSNs, often one whose loss a later one shows',
  cable: 'infiniband',
  draw,
  programs: [player, player],
  judge,
});
