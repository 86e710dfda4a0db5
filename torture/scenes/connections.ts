/**
 * Connections by rdma_cm, several of them at once or one after another, some of whose messages are lost, copied or late: each that
 * both programs want is established, carries a message both ways and ends at both sides; one that is refused, for which nobody
 * listens or that its program gives up ends so; and nothing of any of them stays (IBTA volume 1, 12.9; rdma_cm(7)).
 *
 *     client: address ─ route ─ connect ─► server: accept, refuse or let go ─► message, echo ─► either side ends it
 */
import { psPerMs, psPerUs } from '../../base/index.ts';
import type { Driver } from '../../driver/index.ts';
import type { FaultEntry } from '../../machine/faults/index.ts';
import type { JsonValue, ProgramContext } from '../../machine/index.ts';
import type { Random } from '../../sim/index.ts';
import * as ibv from '../../userlib/index.ts';
import { nowPs } from './pair.ts';
import { differencesOf, patternOf, wrongOf } from './patterns.ts';
import type { Scene, SceneDraft } from './scene.ts';

/**
 * What becomes of a connection: it carries a message and is ended by one of the programs, or by the end of the client's
 * process; the server refuses it, or destroys its ID; its port has no listener; the client gives it up at once.
 */
const fates = [
  'client-ends',
  'server-ends',
  'left-open',
  'refused',
  'let-go',
  'no-listener',
  'given-up',
] as const;
type Fate = (typeof fates)[number];

interface Plan {
  readonly fate: Fate;
  readonly lengthBytes: number;
  /** Beyond the number that says which one it is. */
  readonly privateBytes: number;
}

interface Args {
  readonly plans: readonly Plan[];
  /** The client begins all before it waits for any. */
  readonly isAtOnce: boolean;
  readonly backlog: number;
}

const maxBytes = 8192;
const privateMax = 55;
const refusalBytes = 12;

function draw(random: Random): SceneDraft {
  const isLossy = random.chance(0.6);
  // A process that ends sends each peer one message, and nobody is there to repeat it.
  const drawn = fates.filter((fate) => !isLossy || fate !== 'left-open');
  const args: Args = {
    plans: Array.from({ length: 1 + random.below(random.chance(0.2) ? 20 : 6) }, () => ({
      fate: drawn[random.below(random.chance(0.5) ? 2 : drawn.length)]!,
      lengthBytes: 1 + random.below(maxBytes),
      privateBytes: random.below(privateMax + 1),
    })),
    isAtOnce: random.chance(0.6),
    backlog: 1 + random.below(random.chance(0.5) ? 3 : 16),
  };
  return {
    args: args as unknown as JsonValue,
    hasDrawnHardware: random.chance(0.3),
    climate: isLossy ? 'lossy' : 'calm',
    faults: isLossy ? Array.from({ length: 1 + random.below(3) }, () => drawFault(random)) : [],
    // Messages are repeated after some four seconds, sixteen times; what has ended waits for its last packets.
    sleepsSeconds: 2000,
  };
}

/** Of the messages of the CM, mostly. Connections have seven retries, and messages fifteen. */
function drawFault(random: Random): FaultEntry {
  const delay = `${1 + random.below(random.chance(0.5) ? 100_000 : 9_000_000)}us`;
  const effects: FaultEntry[] = [
    { packet: 'lost' },
    { packet: 'corrupted' },
    { packet: 'duplicated', delay },
    { packet: 'late', delay: `${1 + random.below(20_000)}ns` },
    { packet: 'reordered', by: 1 + random.below(4), delay },
  ];
  return {
    ...effects[random.below(effects.length)]!,
    ...(random.chance(0.8) ? { only: 'datagrams' } : {}),
    nth: `${1 + random.below(20)}-`,
    shots: 1 + random.below(4),
    node: random.below(2),
  };
}

const sinPort = 7471;
const unheardPort = 7472;
const timeoutMs = 2000;
/** Reasons of REJ: nobody listens, and the program's own (IBTA volume 1, 12.6.7.2). */
const reasonNoListener = 8;
const reasonConsumer = 28;
const napPs = 50 * psPerMs;
const echoCompletions = 2;
/** Of the client's receive, and of the server's. */
const echoId = 1;

/** An ID with what its messages need. */
interface Talk {
  readonly id: ibv.RdmaCmId;
  readonly plan: Plan;
  readonly number: number;
  /** Names of the events that came, in order. */
  readonly events: string[];
  /** Completions of the client's message and of its echo that were taken. */
  echoed: number;
  hasEcho: boolean;
  objects?: Awaited<ReturnType<typeof build>>;
}

const privateDataOf = (number: number, { privateBytes }: Plan): Uint8Array =>
  Uint8Array.of(number, ...patternOf(number, privateBytes));

/** PD, memory, CQ and QP of an ID, and a receive posted. */
async function build(id: ibv.RdmaCmId, { memory }: ProgramContext, { lengthBytes }: Plan) {
  const verbs = id.verbs!;
  const pd = await ibv.allocPd(verbs);
  const addr = memory.map(2 * maxBytes);
  const mr = await ibv.regMr(pd, addr, 2 * maxBytes, ibv.IBV_ACCESS_LOCAL_WRITE);
  const cq = await ibv.createCq(verbs, 4);
  const cap = { maxSendWr: 1, maxRecvWr: 1, maxSendSge: 1, maxRecvSge: 1 };
  const qp = await ibv.rdmaCreateQp(id, pd, { sendCq: cq, recvCq: cq, qpType: ibv.IBV_QPT_RC, cap });
  const sgList = [{ addr, length: lengthBytes, lkey: mr.lkey }];
  ibv.postRecv(qp, {
    wrId: echoId,
    sgList: [{ addr: addr + maxBytes, length: maxBytes, lkey: mr.lkey }],
    numSge: 1,
  });
  return { addr, received: addr + maxBytes, pd, mr, cq, qp, sgList };
}

/** Gives everything of an ID back. */
async function end({ id, objects }: Talk): Promise<void> {
  if (objects !== undefined) {
    await ibv.rdmaDestroyQp(id);
    await ibv.destroyCq(objects.cq);
    await ibv.deregMr(objects.mr);
    await ibv.deallocPd(objects.pd);
  }
  await ibv.rdmaDestroyId(id);
}

/** Waits for so many completions. @returns statuses other than SUCCESS */
async function completed({ cpu }: ProgramContext, cq: ibv.IbvCq, count: number): Promise<string[]> {
  const wc = [new ibv.IbvWc()];
  const wrong: string[] = [];
  for (let taken = 0; taken < count; ) {
    if ((await ibv.pollCq(cq, 1, wc)) === 0) {
      await cpu.sleep(20 * psPerUs);
      continue;
    }
    taken++;
    if (wc[0]!.status !== ibv.IBV_WC_SUCCESS) wrong.push(`request ${wc[0]!.wrId} ended in ${wc[0]!.status}`);
  }
  return wrong;
}

async function send({ cpu }: ProgramContext, { objects }: Talk): Promise<void> {
  await cpu.settle();
  const { IBV_WR_SEND, IBV_SEND_SIGNALED } = ibv;
  const request = { wrId: 2, numSge: 1, opcode: IBV_WR_SEND, sendFlags: IBV_SEND_SIGNALED };
  ibv.postSend(objects!.qp, { ...request, sgList: objects!.sgList });
}

const isTalking = ({ fate }: Plan): boolean =>
  fate === 'client-ends' || fate === 'server-ends' || fate === 'left-open';

const nameOf = ({ event }: ibv.RdmaCmEvent): string => ibv.rdmaEventStr(event).replace('RDMA_CM_EVENT_', '');

/** Asks for all connections, and judges what becomes of each. */
export async function client(program: ProgramContext): Promise<JsonValue> {
  const { plans, isAtOnce } = program.args as unknown as Args;
  await program.exchange.take('listening');
  const channel = await ibv.rdmaCreateEventChannel(program.verbs);
  const wrong: string[] = [];
  const open = new Set<Talk>();
  const hasOpen = (): boolean => [...open].some((talk) => !isSettled(talk));
  for (const [number, plan] of plans.entries()) {
    const id = await ibv.rdmaCreateId(channel, null, ibv.RDMA_PS_TCP);
    open.add({ id, plan, number, events: [], echoed: 0, hasEcho: false });
    const to = plan.fate === 'no-listener' ? unheardPort : sinPort;
    await ibv.rdmaResolveAddr(id, null, { sinAddr: '10.0.0.2', sinPort: to }, timeoutMs);
    while (!isAtOnce && hasOpen()) await clientTurn(program, channel, open, wrong);
  }
  while (hasOpen()) await clientTurn(program, channel, open, wrong);
  await program.exchange.put('all have talked', true);
  if (open.size > 0) return { wrong };
  await ibv.rdmaDestroyEventChannel(channel);
  wrong.push(...(await stays(program)));
  return { wrong };
}

/** A connection that stays open is as it should be once it has talked. */
const isSettled = ({ plan, echoed }: Talk): boolean =>
  plan.fate === 'left-open' && echoed === echoCompletions;

/** Takes echoes that have come, and an event. Whose echo is awaited does not keep the others: their turn at the server may be first. */
async function clientTurn(
  program: ProgramContext,
  channel: ibv.RdmaEventChannel,
  open: Set<Talk>,
  wrong: string[],
): Promise<void> {
  let isAwaited = false;
  for (const talk of open) {
    if (!talk.events.includes('ESTABLISHED') || talk.echoed === echoCompletions) continue;
    for (const what of await takeEcho(program, talk))
      wrong.push(`connection ${talk.number} (${talk.plan.fate}): ${what}`);
    if (talk.echoed < echoCompletions) isAwaited = true;
    else if (talk.plan.fate === 'client-ends') await ibv.rdmaDisconnect(talk.id);
  }
  if (![...open].some((talk) => !isSettled(talk))) return;
  const event = await ibv.rdmaGetCmEvent(channel, isAwaited ? psPerMs : undefined);
  if (event !== undefined) await clientEvent(program, event, open, wrong);
}

async function clientEvent(
  program: ProgramContext,
  event: ibv.RdmaCmEvent,
  open: Set<Talk>,
  wrong: string[],
): Promise<void> {
  const talk = [...open].find(({ id }) => id === event.id)!;
  const { id, plan, number } = talk;
  const name = nameOf(event);
  const { status } = event;
  const { privateData } = event.param.conn;
  talk.events.push(name);
  ibv.rdmaAckCmEvent(event);
  const accuse = (what: string): unknown => wrong.push(`connection ${number} (${plan.fate}): ${what}`);
  const finish = async (): Promise<void> => {
    open.delete(talk);
    await end(talk);
  };
  switch (name) {
    case 'ADDR_RESOLVED':
      return ibv.rdmaResolveRoute(id, timeoutMs);
    case 'ROUTE_RESOLVED': {
      talk.objects = await build(id, program, plan);
      const depth = { responderResources: 1, initiatorDepth: 1, retryCount: 7, rnrRetryCount: 7 };
      await ibv.rdmaConnect(id, { privateData: privateDataOf(number, plan), ...depth });
      return plan.fate === 'given-up' ? finish() : undefined;
    }
    case 'ESTABLISHED':
      if (!isTalking(plan)) accuse('it is established');
      program.memory.write(talk.objects!.addr, patternOf(number, plan.lengthBytes));
      return send(program, talk);
    case 'REJECTED': {
      const isDue = plan.fate === 'refused' || plan.fate === 'let-go' || plan.fate === 'no-listener';
      const reason = plan.fate === 'no-listener' ? reasonNoListener : reasonConsumer;
      if (!isDue || status !== reason) accuse(`REJECTED with reason ${status}`);
      const sent = patternOf(number, refusalBytes);
      if (plan.fate === 'refused')
        for (const what of differencesOf('private data of REJ', privateData.subarray(0, refusalBytes), sent))
          accuse(what);
      return finish();
    }
    case 'DISCONNECTED':
      if (!talk.events.includes('ESTABLISHED') || plan.fate === 'left-open') accuse(name);
      else for (const what of await takeEcho(program, talk)) accuse(what);
      // Where an ACK was lost, the message itself may be under way still: the echo acknowledges nothing.
      if (!talk.hasEcho) accuse('it ended before its echo');
      if (plan.fate === 'server-ends') await ibv.rdmaDisconnect(id);
      return finish();
    case 'TIMEWAIT_EXIT':
      return;
    default:
      accuse(`${name} with status ${status}`);
      return finish();
  }
}

/** Looks for the completions of a message and of its echo. @returns what is wrong with them */
async function takeEcho({ memory }: ProgramContext, talk: Talk): Promise<string[]> {
  const { objects, number, plan } = talk;
  const wc = [new ibv.IbvWc()];
  const wrong: string[] = [];
  while (talk.echoed < echoCompletions && (await ibv.pollCq(objects!.cq, 1, wc)) > 0) {
    talk.echoed++;
    const { wrId, status } = wc[0]!;
    if (status !== ibv.IBV_WC_SUCCESS) wrong.push(`request ${wrId} ended in ${status}`);
    else if (wrId === echoId) {
      talk.hasEcho = true;
      const came = memory.read(objects!.received, plan.lengthBytes);
      wrong.push(...differencesOf('the echo', came, patternOf(number, plan.lengthBytes)));
    }
  }
  return wrong;
}

/** Answers, until the client has what it wants and no connection is open. */
export async function server(program: ProgramContext): Promise<JsonValue> {
  const { plans, backlog } = program.args as unknown as Args;
  const channel = await ibv.rdmaCreateEventChannel(program.verbs);
  const listener = await ibv.rdmaCreateId(channel, null, ibv.RDMA_PS_TCP);
  await ibv.rdmaBindAddr(listener, { sinAddr: '0.0.0.0', sinPort });
  await ibv.rdmaListen(listener, backlog);
  await program.exchange.put('listening', true);
  const talks = new Map<ibv.RdmaCmId, Talk>();
  const wrong: string[] = [];
  const dueCount = plans.filter(isTalking).length;
  let ended = 0;
  let isOver = false;
  for (let quietSince = nowPs(program); ; ) {
    const event = await ibv.rdmaGetCmEvent(channel, napPs);
    isOver ||= (await program.exchange.poll('all have talked')) !== undefined;
    if (event !== undefined) {
      quietSince = nowPs(program);
      ended += await serverEvent(program, event, talks, plans, wrong);
    } else if (isOver && (ended === dueCount || nowPs(program) - quietSince > 200_000 * psPerMs)) break;
  }
  if (ended !== dueCount) wrong.push(`${ended} of ${dueCount} connections were disconnected`);
  for (const talk of talks.values()) await end(talk);
  await ibv.rdmaDestroyId(listener);
  await ibv.rdmaDestroyEventChannel(channel);
  wrong.push(...(await stays(program)));
  return { wrong };
}

/** @returns how many connections it has ended */
async function serverEvent(
  program: ProgramContext,
  event: ibv.RdmaCmEvent,
  talks: Map<ibv.RdmaCmId, Talk>,
  plans: readonly Plan[],
  wrong: string[],
): Promise<number> {
  const { id } = event;
  const name = nameOf(event);
  const { privateData } = event.param.conn;
  ibv.rdmaAckCmEvent(event);
  if (name === 'CONNECT_REQUEST') {
    const number = privateData[0]!;
    const plan = plans[number]!;
    const sent = privateDataOf(number, plan);
    const what = `private data of connection ${number}`;
    wrong.push(...differencesOf(what, privateData.subarray(0, sent.length), sent));
    await answer(program, { id, plan, number, events: [], echoed: 0, hasEcho: false }, talks);
    return 0;
  }
  const talk = talks.get(id)!;
  const { plan, number, events } = talk;
  events.push(name);
  const accuse = (what: string): unknown => wrong.push(`answered ${number} (${plan.fate}): ${what}`);
  if (name === 'TIMEWAIT_EXIT') return 0;
  if (plan.fate === 'given-up') {
    talks.delete(id);
    await end(talk);
    return 0;
  }
  if (name === 'ESTABLISHED') {
    for (const what of await echo(program, talk)) accuse(what);
    if (plan.fate === 'server-ends') await ibv.rdmaDisconnect(id);
    return 0;
  }
  if (name !== 'DISCONNECTED' || !events.includes('ESTABLISHED')) accuse(`${name} after ${events}`);
  if (plan.fate !== 'server-ends') await ibv.rdmaDisconnect(id);
  talks.delete(id);
  await end(talk);
  return 1;
}

/** Accepts a request, refuses it, or destroys its ID without a word. */
async function answer(program: ProgramContext, talk: Talk, talks: Map<ibv.RdmaCmId, Talk>): Promise<void> {
  const { id, plan, number } = talk;
  if (plan.fate === 'let-go') return end(talk);
  if (plan.fate === 'refused') {
    await ibv.rdmaReject(id, patternOf(number, refusalBytes));
    return end(talk);
  }
  talk.objects = await build(id, program, plan);
  talks.set(id, talk);
  try {
    await ibv.rdmaAccept(id, { responderResources: 1, initiatorDepth: 1, rnrRetryCount: 7 });
  } catch (error) {
    // The client has taken it back meanwhile.
    if (plan.fate !== 'given-up' || !(error instanceof ibv.VerbsError)) throw error;
    talks.delete(id);
    await end(talk);
  }
}

const unacknowledged = `request 2 ended in ${ibv.IBV_WC_RETRY_EXC_ERR}`;

/** Takes the message and sends it back. */
async function echo(program: ProgramContext, talk: Talk): Promise<string[]> {
  const { objects, plan, number } = talk;
  const { addr, received, cq } = objects!;
  const wrong = await completed(program, cq, 1);
  const bytes = program.memory.read(received, plan.lengthBytes);
  program.memory.write(addr, bytes);
  await send(program, talk);
  const echoed = await completed(program, cq, 1);
  // A client that has its echo may be gone before a lost acknowledgement is asked for again.
  if (plan.fate !== 'client-ends' || echoed[0] !== unacknowledged) wrong.push(...echoed);
  return [...wrong, ...differencesOf('the message', bytes, patternOf(number, plan.lengthBytes))];
}

/** What has ended waits for packets on their way, for seconds; then the kernel knows of no connection. */
async function stays({ cpu, verbs }: ProgramContext): Promise<string[]> {
  const driver = verbs.devices[0] as Driver;
  const count = (): number => driver.connectionCounts()?.connections ?? 0;
  for (let waited = 0; count() > 0 && waited < 200; waited++) await cpu.sleep(1000 * psPerMs);
  return count() === 0 ? [] : [`${count()} connections stay`];
}

export const connections: Scene = {
  name: 'connections',
  about:
    'connections by rdma_cm are made, refused, given up and ended while their messages are lost or come twice',
  module: import.meta.url,
  programs: [
    { node: 0, exportName: 'client' },
    { node: 1, exportName: 'server' },
  ],
  draw,
  judge: ({ results }) => wrongOf(results),
};
