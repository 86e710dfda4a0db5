/**
 * QPs of all transports use entries of P_Key tables with full and limited members, which a subnet manager changes while the QPs exist. A packet
 * passes if the low 15 bits of its P_Key equal those of the QP's and are not 0, and one of both is a full member (IBTA volume 1, 9.6.1.1,
 * 10.9.3); its receiver drops and counts others (10.9.4). On Ethernet the table is fixed.
 *
 *     tables, QPs ─► entries change ─► a message by each QP, one way ─► who has what, who counted what ─► entries change ─► …
 *                                       └► in some steps an entry changes again while requests are repeated
 *
 * The judge computes the end of each message, its bytes and the counts of violations from tables of its own.
 */

import { handleTo, qkey } from '../../experiments/workloads/index.ts';
import * as ibv from '../../userlib/index.ts';
import { ready } from '../connecting.ts';
import { grhBytes, planOf } from './datagrams.ts';
import type { ArgsOf, Draft, Draws, Ended, Played, Side, Stage } from './language/index.ts';
import {
  codeOf,
  connect,
  isSame,
  isWell,
  patternOf,
  psPerMs,
  READ,
  SEND,
  scene,
  statusesOf,
  times,
  topic,
  WRITE,
} from './language/index.ts';

const transports = ['RC', 'UC', 'UD'] as const;
const types = { RC: ibv.IBV_QPT_RC, UC: ibv.IBV_QPT_UC, UD: ibv.IBV_QPT_UD };

/** An entry of a host's table, and its value from now on. */
interface Change {
  readonly node: number;
  readonly index: number;
  readonly pkey: number;
}

/** The first and the last of a block of 32, of the next, and of the table. */
const places = [0, 1, 31, 32, 127] as const;
/** Bits in which two partitions differ: at both ends of the 15 that count, and of their bytes. */
const differingBits = [0, 7, 8, 13, 14] as const;
const fullMember = 0x8000;
const defaultPkey = 0xffff;
const mtuBytes = 256;
const mtuCode = 1;
const slotBytes = 2048;
const receiveId = 1000;
/** The repair occurs before the first retry, and after everything of the first attempt has arrived. */
const repairAfterMs = 20;
const timeoutCode = 14;

function draw(random: Draws) {
  const partition = 0x4001 + random.below(0x3fff);
  const neighbour = partition ^ (1 << random.oneOf(differingBits));
  const some = random.chance(0.5) ? [partition] : [partition, neighbour];
  const pkey = (canBeInvalid = true): number => {
    if (canBeInvalid && random.chance(0.1)) return random.chance(0.5) ? 0 : fullMember;
    return random.oneOf(some) | (random.chance(0.5) ? fullMember : 0);
  };
  const used = times(1 + random.below(3), () => random.oneOf(places));
  const change = (node: number, canBeInvalid = true): Change => {
    return { node, index: random.oneOf(used), pkey: pkey(canBeInvalid) };
  };
  const connections = times(1 + random.below(6), () => ({
    transport: random.oneOf(transports),
    // Entry that the QP of each host names.
    indexes: [random.oneOf(used), random.oneOf(used)],
  }));
  const message = ({ transport }: (typeof connections)[number]) => {
    if (transport === 'UD') return { opcode: SEND, lengthBytes: 1 + random.below(slotBytes - grhBytes) };
    const opcode = random.oneOf(transport === 'RC' ? [WRITE, SEND, READ] : [WRITE, SEND]);
    return { opcode, lengthBytes: 1 + random.below(random.chance(0.6) ? mtuBytes : slotBytes) };
  };
  const steps = times(2 + random.below(4), (step) => {
    const nodes = step === 0 ? [0, 1] : [];
    const first = nodes.flatMap((node) => used.map((index): Change => ({ node, index, pkey: pkey() })));
    const more = times(random.below(3), () => change(random.below(2)));
    return {
      changes: [...first, ...more],
      // The host that requests.
      from: random.below(2),
      // Messages by connection.
      messages: connections.map(message),
      // A change made while failed requests wait for their retry.
      repair: random.chance(0.4) ? change(random.below(2), false) : null,
    };
  });
  const args = { connections, steps, retryCount: 1 + random.below(3) };
  return { args, hasDrawnHardware: random.chance(0.3), climate: 'flawed' } satisfies Draft<unknown>;
}

type Args = ArgsOf<typeof draw>;
type Connection = Args['connections'][number];
type Message = Args['steps'][number]['messages'][number];

/** The tables of both hosts, as a subnet manager means them to be. */
class Tables {
  readonly #pkeys = times(2, () => new Map([[0, defaultPkey]]));
  readonly #isFixed: boolean;

  constructor(isFixed: boolean) {
    this.#isFixed = isFixed;
  }

  at(node: number, index: number): number {
    return this.#isFixed ? defaultPkey : (this.#pkeys[node]!.get(index) ?? 0);
  }

  /** @returns whether anything has changed */
  set({ node, index, pkey }: Change): boolean {
    if (this.#isFixed || this.at(node, index) === pkey) return false;
    this.#pkeys[node]!.set(index, pkey);
    return true;
  }

  /** Nothing is sent with an entry that belongs to no partition. */
  isValid(node: number, { indexes }: Connection): boolean {
    return (this.at(node, indexes[node]!) & 0x7fff) !== 0;
  }

  /** Whether packets of a connection pass, either way. */
  passes({ indexes }: Connection): boolean {
    const [left, right] = indexes.map((index, node) => this.at(node, index)) as [number, number];
    if ((left & 0x7fff) !== (right & 0x7fff) || (left & 0x7fff) === 0) return false;
    return left >= fullMember || right >= fullMember;
  }
}

/** The course of one message. */
interface Course {
  readonly connection: number;
  readonly passes: boolean;
  /** At first it does not pass; after the repair it does. */
  readonly isRepaired: boolean;
}

/**
 * Computes which messages are sent in each step, and their outcomes: a reliable connection that failed sends no more.
 */
function coursesOf({ connections, steps }: Args, isFixed: boolean): Course[][] {
  const tables = new Tables(isFixed);
  const failed = new Set<Connection>();
  return steps.map(({ changes, from, repair }) => {
    for (const change of changes) tables.set(change);
    const live = connections.filter((one) => !failed.has(one) && tables.isValid(from, one));
    const before = live.map((one) => tables.passes(one));
    if (repair !== null) tables.set(repair);
    return live.map((one, at) => {
      const isReliable = one.transport === 'RC';
      const isRepaired = isReliable && !before[at] && tables.passes(one);
      const passes = before[at]! || isRepaired;
      if (isReliable && !passes) failed.add(one);
      return { connection: connections.indexOf(one), passes, isRepaired };
    });
  });
}

const usedPlaces = ({ steps }: Args, isFixed: boolean): number[] =>
  isFixed ? [0] : [...new Set(steps.flatMap(({ changes }) => changes.map(({ index }) => index)))];

/** One step, as observed by a host. */
interface Seen {
  /** Ends of its requests, and of its receives. */
  readonly ended: readonly Ended[];
  readonly received: readonly Ended[];
  /** Connections whose message is here as it was sent. */
  readonly arrived: readonly number[];
  /** The used entries of its table. */
  readonly pkeys: readonly number[];
  readonly events: number;
  readonly violations: number;
}

interface Told {
  readonly steps: readonly Seen[];
  /** Codes that setting an entry returned. */
  readonly codes: readonly string[];
}

const qpnsTopic = topic<readonly number[]>('QPs');
const sourceAt = (connection: number): number => 2 * connection * slotBytes;
const destinationAt = (connection: number): number => sourceAt(connection) + slotBytes;

async function player(stage: Stage<Args>): Promise<Told> {
  const { node, args } = stage;
  const parts = await open(stage);
  const { side } = parts;
  const host = new Host(parts);
  const courses = coursesOf(args, parts.isFixed);
  const seen: Seen[] = [];
  for (const [number, { changes, from, repair }] of args.steps.entries()) {
    await host.set(changes);
    const live = courses[number]!.map(({ connection }) => connection);
    host.prepare(number, live);
    await stage.meet('step');
    if (node === from) host.post(number, live);
    if (repair?.node === node) {
      await stage.sleepMs(repairAfterMs);
      await host.set([repair]);
    }
    const ended = node === from ? await side.completions(live.length) : [];
    await stage.meet('step is over');
    await stage.lastBytesIn();
    seen.push({ ended, ...(await host.see(number, live)) });
    await stage.meet('step is seen');
  }
  return { steps: seen, codes: host.codes };
}

/** A side, and a QP for each connection. */
async function open(stage: Stage<Args>) {
  // One further QP, which exchanges addresses and stays idle.
  const side = await connect(stage, { areaBytes: 2 * stage.args.connections.length * slotBytes });
  const isFixed = side.device.endpoint.port.linkLayer === ibv.IBV_LINK_LAYER_ETHERNET;
  const { qps, peerQpns } = await connectAll(side, stage.args, isFixed);
  const ah = side.device.handle(await handleTo(side.device.pd, side.path));
  return { stage, side, isFixed, qps, peerQpns, ah };
}

/** The actions of a host in each step. */
class Host {
  /** Codes that setting an entry returned. */
  readonly codes: string[] = [];
  readonly #parts: Awaited<ReturnType<typeof open>>;
  readonly #hasReceive = new Set<number>();

  constructor(parts: Awaited<ReturnType<typeof open>>) {
    this.#parts = parts;
  }

  /** Sets the entries of this host. */
  async set(changes: readonly Change[]): Promise<void> {
    const { stage, side } = this.#parts;
    for (const { node, index, pkey } of changes)
      if (node === stage.node)
        this.codes.push(await codeOf(ibv.smSetPkeys(side.device.context, 1, index, [pkey])));
  }

  /** Fills the sources of a step, clears its destinations, and posts receives that are due. */
  prepare(step: number, live: readonly number[]): void {
    const { stage, side, qps } = this.#parts;
    const { from, messages } = stage.args.steps[step]!;
    for (const connection of live) {
      side.fill(this.#bytesOf(step, connection), sourceAt(connection));
      side.fill(new Uint8Array(slotBytes), destinationAt(connection));
      const isReceiving = stage.node !== from && messages[connection]!.opcode === SEND;
      if (!isReceiving || this.#hasReceive.has(connection)) continue;
      this.#hasReceive.add(connection);
      const sgList = [side.sge({ offset: destinationAt(connection), lengthBytes: slotBytes })];
      ibv.postRecv(qps[connection]!, { wrId: receiveId + connection, sgList, numSge: 1 });
    }
  }

  post(step: number, live: readonly number[]): void {
    const { stage, side, qps, peerQpns, ah } = this.#parts;
    const { connections, steps } = stage.args;
    for (const connection of live) {
      const { opcode, lengthBytes } = steps[step]!.messages[connection]!;
      const [source, destination] = [sourceAt(connection), destinationAt(connection)];
      const [offset, remoteOffset] = opcode === READ ? [destination, source] : [source, destination];
      const request = side.request(connection, opcode, { offset, remoteOffset, lengthBytes });
      const ud = { ah, remoteQpn: peerQpns[connection]!, remoteQkey: qkey };
      const isDatagram = connections[connection]!.transport === 'UD';
      ibv.postSend(qps[connection]!, isDatagram ? { ...request, wr: { ud } } : request);
    }
  }

  /** Returns the traces of a step at this host. */
  async see(step: number, live: readonly number[]): Promise<Omit<Seen, 'ended'>> {
    const { stage, side, isFixed } = this.#parts;
    const { node, args } = stage;
    const { connections, steps } = args;
    const { from, messages } = steps[step]!;
    const { context } = side.device;
    const received = node === from ? [] : await side.completions(connections.length + 1, psPerMs);
    for (const { id } of received) this.#hasReceive.delete(id - receiveId);
    const arrived = live.filter((connection) => {
      const { opcode, lengthBytes } = messages[connection]!;
      const skipped = connections[connection]!.transport === 'UD' ? grhBytes : 0;
      const came = side.bytes(destinationAt(connection) + skipped, lengthBytes);
      return (opcode === READ) === (node === from) && isSame(came, this.#bytesOf(step, connection));
    });
    const pkeys: number[] = [];
    for (const index of usedPlaces(args, isFixed)) pkeys.push(await ibv.queryPkey(context, 1, index));
    const { badPkeyCntr: violations } = await ibv.queryPort(context, 1);
    const raised = await stage.asyncEvents(context);
    const events = raised.filter(({ eventType }) => eventType === ibv.IBV_EVENT_PKEY_CHANGE).length;
    return { received, arrived, pkeys, events, violations };
  }

  #bytesOf(step: number, connection: number): Uint8Array {
    const { connections, steps } = this.#parts.stage.args;
    const { lengthBytes } = steps[step]!.messages[connection]!;
    return patternOf(1 + step * connections.length + connection, lengthBytes);
  }
}

/** Connects a QP for each connection, with its first entry. */
async function connectAll(
  { stage, device, cq, path }: Side,
  { connections, retryCount }: Args,
  isFixed: boolean,
) {
  const cap = { maxSendWr: 2, maxRecvWr: 2, maxSendSge: 1, maxRecvSge: 1 };
  const qps: ibv.IbvQp[] = [];
  for (const { transport } of connections) qps.push(await device.qp(cq, { qpType: types[transport], cap }));
  const own = qps.map(({ qpNum }) => qpNum);
  const peerQpns = await stage.swap(qpnsTopic, own);
  for (const [at, { transport, indexes }] of connections.entries()) {
    const isDatagram = transport === 'UD';
    const plan = {
      ...planOf(isDatagram ? 'UD' : 'UC', isDatagram ? 5 : mtuCode, at),
      ...{ transport, timeout: timeoutCode, retryCount, rnrRetry: 7, rnrTimer: 12, readsOut: 1, readsIn: 1 },
    };
    const address = { ...path, qpNum: peerQpns[at]!, psn: at };
    await ready(qps[at]!, plan, address, isFixed ? 0 : indexes[stage.node]!);
  }
  return { qps, peerQpns };
}

/** Packets of the requests of a message. */
const packetsOf = ({ opcode, lengthBytes }: Message, { transport }: Connection): number =>
  transport === 'UD' || opcode === READ ? 1 : Math.ceil(lengthBytes / mtuBytes);

function judge({ args, told, set }: Played<Args, readonly Told[]>): string[] {
  const { connections, steps, retryCount } = args;
  const isFixed = set['hca.capability.linkLayer'] === 'ethernet';
  const tables = new Tables(isFixed);
  const found = told
    .flatMap(({ codes }) => codes)
    .filter((code) => code !== (isFixed ? 'EOPNOTSUPP' : 'ok'))
    .map((code) => `setting an entry came to ${code}`);
  /** Violations that each host must and may have counted. */
  const [least, most] = [[0, 0] as [number, number], [0, 0] as [number, number]];
  for (const [number, courses] of coursesOf(args, isFixed).entries()) {
    const { changes, from, messages, repair } = steps[number]!;
    const events = [0, 0];
    for (const change of [...changes, ...(repair === null ? [] : [repair])])
      if (tables.set(change)) events[change.node]!++;
    const seen = told.map((one) => one.steps[number]!);
    const to = 1 - from;
    const accuse = (what: string): unknown => found.push(`step ${number}: ${what}`);
    for (const { connection, passes, isRepaired } of courses) {
      const plan = connections[connection]!;
      const message = messages[connection]!;
      const what = `${plan.transport} ${connection} by entries ${plan.indexes}`;
      const isReliable = plan.transport === 'RC';
      const statuses = statusesOf(seen[from]!.ended.filter(({ id }) => id === connection));
      if (`${statuses}` !== (isReliable && !passes ? 'RETRY_EXC_ERR' : 'SUCCESS'))
        accuse(`${what} ended in ${statuses}`);
      if (seen[message.opcode === READ ? from : to]!.arrived.includes(connection) !== passes)
        accuse(`the bytes of ${what} ${passes ? 'did not come' : 'came from another partition'}`);
      const received = seen[to]!.received.filter(({ id }) => id === receiveId + connection);
      if (received.length !== (passes && message.opcode === SEND ? 1 : 0) || !received.every(isWell))
        accuse(`${received.length} receives of ${what} ended`);
      if (passes && !isRepaired) continue;
      const packets = packetsOf(message, plan);
      // The last attempt passes after a timeout that follows the repair.
      least[to]! += isReliable && !passes ? packets * (1 + retryCount) : packets;
      most[to]! += isReliable ? packets * (1 + retryCount) : packets;
    }
    for (const [node, { pkeys, events: raised, violations }] of seen.entries()) {
      const due = usedPlaces(args, isFixed).map((index) => tables.at(node, index));
      if (`${pkeys}` !== `${due}`) accuse(`the table of node ${node} has ${pkeys}, set were ${due}`);
      if (raised !== events[node]) accuse(`node ${node} had ${raised} events of ${events[node]} changes`);
      if (violations < least[node]! || violations > most[node]!)
        accuse(`node ${node} counted ${violations} violations, due are ${least[node]} to ${most[node]}`);
    }
  }
  return found;
}

export const partitions = scene({
  about: 'QPs of all transports by P_Key tables of full and limited members, which change while the QPs live',
  draw,
  programs: [player, player],
  judge,
});
