/**
 * Connections by rdma_cm, at once or one after another; some of their messages are lost, copied or late. A connection that both programs want
 * is established, carries a message both ways and ends at both sides; one that is refused, abandoned or has no listener ends so; and no
 * connection remains (IBTA volume 1, 12.9; rdma_cm(7)).
 *
 *     client: address ─ route ─ connect ─► server: accept, refuse or drop ─► message, echo ─► either side ends it
 */

import type { Driver } from '../../driver/index.ts';
import * as ibv from '../../userlib/index.ts';
import { CmConnection, cmPort, cmServer, listen, listening, nameOf } from './cm-connection.ts';
import { drawIwarp } from './iwarp-links.ts';
import type { ArgsOf, Draft, Draws, FaultEntry, Stage } from './language/index.ts';
import { patternOf, psPerMs, scene, times, topic } from './language/index.ts';

/**
 * Fates of a connection: it carries a message and is ended by one of the programs, or by the end of the client's process; the server
 * refuses it, or destroys its ID; its port has no listener; the client gives it up at once.
 */
const talkingFates = ['client-ends', 'server-ends', 'left-open'] as const;
const fates = [...talkingFates, 'refused', 'let-go', 'no-listener', 'given-up'] as const;

const maxBytes = 8192;
const privateMax = 55;
const refusalBytes = 12;

function draw(random: Draws) {
  const isLossy = random.chance(0.6);
  const isIwarp = random.chance(0.3);
  // A process that ends sends each peer one message, and no program is there to repeat it.
  const drawn = fates.filter((fate) => !isLossy || fate !== 'left-open');
  const plans = times(1 + random.below(random.chance(0.2) ? 20 : 6), () => ({
    fate: drawn[random.below(random.chance(0.5) ? 2 : drawn.length)]!,
    lengthBytes: 1 + random.below(maxBytes),
    // Beyond the number that says which one it is.
    privateBytes: random.below(privateMax + 1),
  }));
  const args = {
    plans,
    // The client begins all before it waits for any.
    isAtOnce: random.chance(0.6),
    // A request beyond it is repeated; over iWARP it is rejected.
    backlog: isIwarp ? plans.length : 1 + random.below(random.chance(0.5) ? 3 : 16),
  };
  const hasDrawnHardware = random.chance(0.3);
  const faults = isLossy ? times(1 + random.below(3), () => drawFault(random, isIwarp)) : [];
  const set = isIwarp ? drawIwarp(random) : {};
  // Messages are repeated after some four seconds, sixteen times; what has ended waits for its last packets.
  const sleepsSeconds = 2000;
  const climate = isLossy ? 'lossy' : 'calm';
  return { args, hasDrawnHardware, set, climate, faults, sleepsSeconds } satisfies Draft<unknown>;
}

/** Draws a fault, mostly of CM messages: connections have seven retries and CM messages fifteen, but requests for a neighbour have few. */
function drawFault(random: Draws, isIwarp: boolean): FaultEntry {
  const delay = `${1 + random.below(random.chance(0.5) ? 100_000 : 9_000_000)}us`;
  const effects: FaultEntry[] = [
    { packet: 'lost' },
    { packet: 'corrupted' },
    { packet: 'duplicated', delay },
    { packet: 'late', delay: `${1 + random.below(20_000)}ns` },
    { packet: 'reordered', by: 1 + random.below(4), delay },
  ];
  return {
    ...random.oneOf(effects),
    ...random.maybe(isIwarp ? 0 : 0.8, () => ({ only: 'datagrams' })),
    ...{ nth: `${(isIwarp ? 6 : 1) + random.below(20)}-`, shots: 1 + random.below(4), node: random.below(2) },
  };
}

type Args = ArgsOf<typeof draw>;
type Plan = Args['plans'][number];

const unheardPort = cmPort + 1;
const timeoutMs = 2000;
/** Reasons of REJ: no listener, and the program's own (IBTA volume 1, 12.6.7.2). */
const reasonsOfIbta = { 'no-listener': 8, refused: 28, 'let-go': 28 };
/** Reasons with iWARP (Linux 6.1, iwcm.c and cma.c): RST of a port without a listener, flag R of MPA, RST of a connection. */
const reasonsOfIwarp = { 'no-listener': -111, refused: -111, 'let-go': -104 };
/** wr_id of each side's receive, and of its message. */
const receiveId = 1;
const messageId = 2;

const allHaveTalked = topic<true>('all have talked');

const isTalking = ({ fate }: Plan): boolean => (talkingFates as readonly string[]).includes(fate);
const privateDataOf = (number: number, { privateBytes }: Plan): Uint8Array =>
  Uint8Array.of(number, ...patternOf(number, privateBytes));

/** An ID at one side, from its request to its end. */
class Talk {
  readonly id: ibv.RdmaCmId;
  readonly number: number;
  readonly plan: Plan;
  isEstablished = false;
  /** Polled completions of the own message and of the peer's. */
  taken = 0;
  hasReceived = false;
  readonly #stage: Stage<Args>;
  #connection: CmConnection | undefined;

  constructor(stage: Stage<Args>, id: ibv.RdmaCmId, number: number) {
    this.#stage = stage;
    this.id = id;
    this.number = number;
    this.plan = stage.args.plans[number]!;
  }

  accuse(what: string): void {
    this.#stage.accuse(`connection ${this.number} (${this.plan.fate}): ${what}`);
  }

  get reasons(): typeof reasonsOfIbta {
    const { capability } = this.#stage.context.configuration.hca;
    return capability.transport === 'iwarp' ? reasonsOfIwarp : reasonsOfIbta;
  }

  expectBytes(what: string, seen: Uint8Array, due: Uint8Array): void {
    this.#stage.expectBytes(`${what} of connection ${this.number}`, seen, due);
  }

  /** Makes its objects, and posts a receive. */
  async build(): Promise<void> {
    this.#connection = await CmConnection.build(this.id, this.#stage.memory, 2 * maxBytes);
    this.#connection.receive(receiveId, maxBytes, maxBytes);
  }

  async send(): Promise<void> {
    const { plan, number } = this;
    this.#stage.memory.write(this.#connection!.address, patternOf(number, plan.lengthBytes));
    await this.#stage.cpu.settle();
    this.#connection!.send(messageId, plan.lengthBytes);
  }

  /**
   * Polls the completions that have arrived. @param isLenient an unacknowledged message is no failure
   */
  async take(isLenient = false): Promise<void> {
    const { memory } = this.#stage;
    const { cq, address } = this.#connection!;
    for (const one of this.taken < 2 ? await this.#stage.drain(cq, 1) : []) {
      this.taken++;
      const isUnacknowledged = one.id === messageId && one.status === 'RETRY_EXC_ERR';
      if (one.status !== 'SUCCESS' && !(isLenient && isUnacknowledged))
        this.accuse(`request ${one.id} ended in ${one.status}`);
      if (one.id !== receiveId || one.status !== 'SUCCESS') continue;
      this.hasReceived = true;
      const came = memory.read(address + maxBytes, this.plan.lengthBytes);
      this.expectBytes('the message', came, patternOf(this.number, this.plan.lengthBytes));
    }
  }

  async takeUntil(count: number, isLenient = false): Promise<void> {
    for (await this.take(isLenient); this.taken < count; await this.take(isLenient))
      await this.#stage.sleepUs(20);
  }

  /** Releases everything of the connection. */
  async end(): Promise<void> {
    if (this.#connection === undefined) await ibv.rdmaDestroyId(this.id);
    else await this.#connection.end();
  }
}

/** Requests all connections, and judges the outcome of each. */
async function client(stage: Stage<Args>): Promise<void> {
  const { plans, isAtOnce } = stage.args;
  const { verbs } = stage.context;
  await stage.take(listening);
  const channel = await ibv.rdmaCreateEventChannel(verbs);
  const open = new Set<Talk>();
  // A connection that stays open is finished once it has talked.
  const hasOpen = (): boolean => [...open].some(({ plan, taken }) => plan.fate !== 'left-open' || taken < 2);
  const step = async (): Promise<void> => {
    // A connection that waits for its echo does not delay the others: the server may serve them first.
    let isAwaited = false;
    for (const talk of open) {
      if (!talk.isEstablished || talk.taken === 2) continue;
      await talk.take();
      if (talk.taken < 2) isAwaited = true;
      else if (talk.plan.fate === 'client-ends') await ibv.rdmaDisconnect(talk.id);
    }
    if (!hasOpen()) return;
    const event = await ibv.rdmaGetCmEvent(channel, isAwaited ? psPerMs : undefined);
    if (event !== undefined) await clientEvent(event, open);
  };
  for (const [number, { fate }] of plans.entries()) {
    const id = await ibv.rdmaCreateId(channel, null, ibv.RDMA_PS_TCP);
    open.add(new Talk(stage, id, number));
    const to = { sinAddr: cmServer, sinPort: fate === 'no-listener' ? unheardPort : cmPort };
    await ibv.rdmaResolveAddr(id, null, to, timeoutMs);
    while (!isAtOnce && hasOpen()) await step();
  }
  while (hasOpen()) await step();
  await stage.put(allHaveTalked, true);
  if (open.size > 0) return;
  await ibv.rdmaDestroyEventChannel(channel);
  await expectNoneStays(stage);
}

async function clientEvent(event: ibv.RdmaCmEvent, open: Set<Talk>): Promise<void> {
  const talk = [...open].find(({ id }) => id === event.id)!;
  const { id, plan, number } = talk;
  const { fate } = plan;
  const name = nameOf(event);
  const { status } = event;
  const { privateData } = event.param.conn;
  ibv.rdmaAckCmEvent(event);
  const finish = (): Promise<void> => {
    open.delete(talk);
    return talk.end();
  };
  if (name === 'TIMEWAIT_EXIT') return;
  if (name === 'ADDR_RESOLVED') return ibv.rdmaResolveRoute(id, timeoutMs);
  if (name === 'ROUTE_RESOLVED') {
    await talk.build();
    const depth = { responderResources: 1, initiatorDepth: 1, retryCount: 7, rnrRetryCount: 7 };
    await ibv.rdmaConnect(id, { privateData: privateDataOf(number, plan), ...depth });
    return fate === 'given-up' ? finish() : undefined;
  }
  if (name === 'ESTABLISHED') {
    talk.isEstablished = true;
    if (!isTalking(plan)) talk.accuse('it is established');
    return talk.send();
  }
  if (name === 'REJECTED') {
    if (isTalking(plan) || fate === 'given-up' || status !== talk.reasons[fate as keyof typeof reasonsOfIbta])
      talk.accuse(`REJECTED with reason ${status}`);
    const came = privateData.subarray(0, refusalBytes);
    if (fate === 'refused') talk.expectBytes('private data of REJ', came, patternOf(number, refusalBytes));
  } else if (name === 'DISCONNECTED') {
    if (!talk.isEstablished || fate === 'left-open') talk.accuse(name);
    else await talk.take();
    // If an ACK was lost, the message itself may still be in flight: the echo acknowledges nothing.
    if (!talk.hasReceived) talk.accuse('it ended before its echo');
    if (fate === 'server-ends') await ibv.rdmaDisconnect(id);
  } else talk.accuse(`${name} with status ${status}`);
  return finish();
}

/** Serves until the client is done and no connection is open. */
async function server(stage: Stage<Args>): Promise<void> {
  const { plans, backlog } = stage.args;
  const channel = await ibv.rdmaCreateEventChannel(stage.context.verbs);
  const listener = await listen(stage, channel, backlog);
  const talks = new Map<ibv.RdmaCmId, Talk>();
  const dueCount = plans.filter(isTalking).length;
  let ended = 0;
  let isOver = false;
  for (let quietSince = stage.nowPs; ; ) {
    const event = await ibv.rdmaGetCmEvent(channel, 50 * psPerMs);
    isOver ||= (await stage.context.exchange.poll(allHaveTalked.name)) !== undefined;
    if (event !== undefined) {
      quietSince = stage.nowPs;
      if (await serverEvent(stage, event, talks)) ended++;
    } else if (isOver && (ended === dueCount || stage.nowPs - quietSince > 200_000 * psPerMs)) break;
  }
  if (ended !== dueCount) stage.accuse(`${ended} of ${dueCount} connections were disconnected`);
  for (const talk of talks.values()) await talk.end();
  await ibv.rdmaDestroyId(listener);
  await ibv.rdmaDestroyEventChannel(channel);
  await expectNoneStays(stage);
}

/** @returns whether it has ended a connection that has talked */
async function serverEvent(
  stage: Stage<Args>,
  event: ibv.RdmaCmEvent,
  talks: Map<ibv.RdmaCmId, Talk>,
): Promise<boolean> {
  const { id } = event;
  const name = nameOf(event);
  const { privateData } = event.param.conn;
  ibv.rdmaAckCmEvent(event);
  if (name === 'CONNECT_REQUEST') {
    const talk = new Talk(stage, id, privateData[0]!);
    const sent = privateDataOf(talk.number, talk.plan);
    talk.expectBytes('private data', privateData.subarray(0, sent.length), sent);
    await answer(talk, talks);
    return false;
  }
  const talk = talks.get(id)!;
  const { fate } = talk.plan;
  if (name === 'TIMEWAIT_EXIT') return false;
  if (name === 'ESTABLISHED' && fate !== 'given-up') {
    talk.isEstablished = true;
    await talk.takeUntil(1);
    await talk.send();
    // A client that has its echo may have left before a lost acknowledgement is requested again.
    await talk.takeUntil(2, fate === 'client-ends');
    if (fate === 'server-ends') await ibv.rdmaDisconnect(id);
    return false;
  }
  talks.delete(id);
  const isDue = fate !== 'given-up';
  if (isDue && (name !== 'DISCONNECTED' || !talk.isEstablished)) talk.accuse(`${name} at the server`);
  if (isDue && fate !== 'server-ends') await ibv.rdmaDisconnect(id);
  await talk.end();
  return isDue;
}

/** Accepts a request, refuses it, or destroys its ID without a word. */
async function answer(talk: Talk, talks: Map<ibv.RdmaCmId, Talk>): Promise<void> {
  const { id, plan, number } = talk;
  if (plan.fate === 'refused') await ibv.rdmaReject(id, patternOf(number, refusalBytes));
  if (plan.fate === 'let-go' || plan.fate === 'refused') return talk.end();
  await talk.build();
  talks.set(id, talk);
  try {
    await ibv.rdmaAccept(id, { responderResources: 1, initiatorDepth: 1, rnrRetryCount: 7 });
  } catch (error) {
    // The client has withdrawn it meanwhile.
    if (plan.fate !== 'given-up' || !(error instanceof ibv.VerbsError)) throw error;
    talks.delete(id);
    await talk.end();
  }
}

/** An ended connection waits for packets in flight, for seconds; then the kernel has no connection. */
async function expectNoneStays(stage: Stage<Args>): Promise<void> {
  const driver = stage.context.verbs.devices[0] as Driver;
  const count = (): number => driver.connectionCounts()?.connections ?? 0;
  for (let waited = 0; count() > 0 && waited < 200; waited++) await stage.sleepMs(1000);
  if (count() > 0) stage.accuse(`${count()} connections stay`);
}

export const connections = scene({
  about:
    'connections by rdma_cm are made, refused, given up and ended while their messages are lost or come twice',
  draw,
  programs: [client, server],
});
