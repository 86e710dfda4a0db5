/**
 * QPs of all transports whose P_Keys are entries of tables of full and limited members, which a subnet manager changes while the QPs
 * live. A packet passes if the low 15 bits of its P_Key are those of the QP's and not 0, and one of the two is a full member's
 * (IBTA volume 1, 9.6.1.1, 10.9.3); any other is dropped and counted at its receiver (10.9.4). On Ethernet the table is fixed.
 *
 *     tables, QPs ─► entries change ─► a message by each QP, one way ─► who has what, who counted what ─► entries change ─► …
 *                                       └► in some steps an entry changes again while requests are repeated
 *
 * The judge keeps tables of its own and computes from them the end of each message, its bytes and the counts of violations.
 */
import { psPerMs } from '../../base/index.ts';
import { barrier, handleTo } from '../../experiments/workloads/index.ts';
import type { JsonValue, ProgramContext } from '../../machine/index.ts';
import type { Random } from '../../sim/index.ts';
import {
  createQp,
  destroyAh,
  destroyQp,
  getAsyncEvent,
  IBV_EVENT_PKEY_CHANGE,
  IBV_LINK_LAYER_ETHERNET,
  IBV_QPT_RC,
  IBV_QPT_UC,
  IBV_QPT_UD,
  IBV_SEND_SIGNALED,
  IBV_WC_RETRY_EXC_ERR,
  IBV_WC_SUCCESS,
  IBV_WR_RDMA_READ,
  IBV_WR_RDMA_WRITE,
  IBV_WR_SEND,
  type IbvAh,
  type IbvQp,
  postRecv,
  queryPkey,
  queryPort,
  smSetPkeys,
} from '../../userlib/index.ts';
import { qkey, ready } from '../connecting.ts';
import { firstDifference, patternOf } from './observing.ts';
import {
  askerAndAnswerer,
  codeOf,
  completionsOf,
  connectWithPeer,
  type Ended,
  lastBytesIn,
  leave,
  post,
  type Side,
} from './pair.ts';
import type { Scene, SceneDraft, ScenePlayed } from './scene.ts';
import { grhBytes, planOf } from './unreliable-pair.ts';

type Transport = 'RC' | 'UC' | 'UD';
type Ends = readonly [number, number];

/** An entry of a host's table, and its value from now on. */
interface Change {
  readonly node: number;
  readonly index: number;
  readonly pkey: number;
}

interface Connection {
  readonly transport: Transport;
  /** Entry that the QP of each host names. */
  readonly indexes: Ends;
}

interface Step {
  readonly changes: readonly Change[];
  /** The host that requests. */
  readonly from: number;
  /** By connection. */
  readonly messages: readonly Message[];
  /** Made while requests that came to nothing wait for their retry. */
  readonly repair: Change | null;
}

interface Message {
  readonly opcode: number;
  readonly lengthBytes: number;
}

interface Args {
  readonly connections: readonly Connection[];
  readonly steps: readonly Step[];
  readonly retryCount: number;
}

/** One step, as a host saw it. */
interface Seen {
  /** Of its requests. */
  readonly ended: readonly Ended[];
  /** Connections whose receive ended, with the place of its P_Key. */
  readonly received: readonly { readonly connection: number; readonly isWell: boolean }[];
  /** Connections whose message is here as it was sent. */
  readonly arrived: readonly number[];
  /** Its table, by the places that are used. */
  readonly pkeys: readonly number[];
  readonly events: number;
  readonly violations: number;
}

interface Told {
  readonly steps: readonly Seen[];
  /** Codes that setting an entry came to. */
  readonly codes: readonly string[];
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
/** Before the first retry, and after everything of the first attempt has arrived. */
const repairAfterPs = 20 * psPerMs;
const timeoutCode = 14;

function draw(random: Random): SceneDraft {
  const partition = 0x4001 + random.below(0x3fff);
  const neighbour = partition ^ (1 << differingBits[random.below(differingBits.length)]!);
  const some = random.chance(0.5) ? [partition] : [partition, neighbour];
  const pkey = (canBeInvalid = true): number => {
    if (canBeInvalid && random.chance(0.1)) return random.chance(0.5) ? 0 : fullMember;
    return some[random.below(some.length)]! | (random.chance(0.5) ? fullMember : 0);
  };
  const used = Array.from({ length: 1 + random.below(3) }, () => places[random.below(places.length)]!);
  const place = (): number => used[random.below(used.length)]!;
  const change = (node: number, canBeInvalid = true): Change => ({
    node,
    index: place(),
    pkey: pkey(canBeInvalid),
  });
  const transports: readonly Transport[] = ['RC', 'UC', 'UD'];
  const connections = Array.from(
    { length: 1 + random.below(6) },
    (): Connection => ({ transport: transports[random.below(3)]!, indexes: [place(), place()] }),
  );
  const opcodes = {
    RC: [IBV_WR_RDMA_WRITE, IBV_WR_SEND, IBV_WR_RDMA_READ],
    UC: [IBV_WR_RDMA_WRITE, IBV_WR_SEND],
  };
  const message = ({ transport }: Connection): Message =>
    transport === 'UD'
      ? { opcode: IBV_WR_SEND, lengthBytes: 1 + random.below(slotBytes - grhBytes) }
      : {
          opcode: opcodes[transport][random.below(opcodes[transport].length)]!,
          lengthBytes: 1 + random.below(random.chance(0.6) ? mtuBytes : slotBytes),
        };
  const steps = Array.from({ length: 2 + random.below(4) }, (_, step): Step => {
    const first =
      step === 0 ? [0, 1].flatMap((node) => used.map((index) => ({ node, index, pkey: pkey() }))) : [];
    const more = Array.from({ length: random.below(3) }, () => change(random.below(2)));
    return {
      changes: [...first, ...more],
      from: random.below(2),
      messages: connections.map(message),
      repair: random.chance(0.4) ? change(random.below(2), false) : null,
    };
  });
  const args: Args = { connections, steps, retryCount: 1 + random.below(3) };
  return { args: args as unknown as JsonValue, hasDrawnHardware: random.chance(0.3), climate: 'flawed' };
}

/** The tables of both hosts, as a subnet manager means them to be. */
class Tables {
  readonly #pkeys: readonly Map<number, number>[] = [
    new Map([[0, defaultPkey]]),
    new Map([[0, defaultPkey]]),
  ];
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

  /** Nothing is sent by an entry that is of no partition. */
  isValid(node: number, index: number): boolean {
    return (this.at(node, index) & 0x7fff) !== 0;
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
  /** At first it does not pass, at the end of its time it does. */
  readonly isRepaired: boolean;
}

/** Computes which messages are sent in each step, and what becomes of them: a reliable connection that failed sends no more. */
function coursesOf({ connections, steps }: Args, isFixed: boolean): Course[][] {
  const tables = new Tables(isFixed);
  const failed = new Set<number>();
  return steps.map(({ changes, from, repair }) => {
    for (const change of changes) tables.set(change);
    const live = [...connections.keys()].filter(
      (connection) =>
        !failed.has(connection) && tables.isValid(from, connections[connection]!.indexes[from]!),
    );
    const before = live.map((connection) => tables.passes(connections[connection]!));
    if (repair !== null) tables.set(repair);
    return live.map((connection, at) => {
      const { transport } = connections[connection]!;
      const isRepaired = transport === 'RC' && !before[at] && tables.passes(connections[connection]!);
      const passes = before[at]! || isRepaired;
      if (transport === 'RC' && !passes) failed.add(connection);
      return { connection, passes, isRepaired };
    });
  });
}

const usedPlaces = ({ steps }: Args, isFixed: boolean): number[] =>
  isFixed ? [0] : [...new Set(steps.flatMap(({ changes }) => changes.map(({ index }) => index)))];

export const asker = (program: ProgramContext): Promise<JsonValue> => play(program);

export const answerer = (program: ProgramContext): Promise<JsonValue> => play(program);

async function play(program: ProgramContext): Promise<JsonValue> {
  const args = program.args as unknown as Args;
  const { connections, steps } = args;
  const { memory, node } = program;
  // One QP more, which exchanges addresses and stays idle.
  const side = await connectWithPeer(program, { areaBytes: 2 * connections.length * slotBytes });
  const { context } = side.endpoint;
  const isFixed = side.endpoint.port.linkLayer === IBV_LINK_LAYER_ETHERNET;
  const courses = coursesOf(args, isFixed);
  const codes: string[] = [];
  const set = async (changes: readonly Change[]): Promise<void> => {
    for (const { node: at, index, pkey } of changes)
      if (at === node) codes.push(await codeOf(smSetPkeys(context, 1, index, [pkey])));
  };
  const { qps, peerQpns } = await connectAll(program, side, args, isFixed);
  const ah = await handleTo(side.endpoint.pd, side.peer.path);
  const source = (connection: number): number => side.area.address + 2 * connection * slotBytes;
  const destination = (connection: number): number => source(connection) + slotBytes;
  const hasReceive = new Set<number>();
  const seen: Seen[] = [];
  for (const [number, { changes, from, messages, repair }] of steps.entries()) {
    await set(changes);
    const live = courses[number]!.map(({ connection }) => connection);
    const pattern = (connection: number): Uint8Array =>
      patternOf(1 + number * connections.length + connection, messages[connection]!.lengthBytes);
    for (const connection of live) {
      memory.write(source(connection), pattern(connection));
      memory.write(destination(connection), new Uint8Array(slotBytes));
      if (node === from || messages[connection]!.opcode !== IBV_WR_SEND || hasReceive.has(connection))
        continue;
      hasReceive.add(connection);
      const sgList = [{ addr: destination(connection), length: slotBytes, lkey: side.area.region.lkey }];
      postRecv(qps[connection]!, { wrId: receiveId + connection, sgList, numSge: 1 });
    }
    await barrier(program, `step ${number}`);
    if (node === from)
      for (const connection of live)
        post(qps[connection]!, requestFor(side, args, messages[connection]!, connection, ah, peerQpns));
    if (repair?.node === node) {
      await program.cpu.sleep(repairAfterPs);
      await set([repair]);
    }
    const ended = node === from ? await completionsOf(side, live.length) : [];
    await barrier(program, `step ${number} is over`);
    await lastBytesIn(program);
    const receives = node === from ? [] : await completionsOf(side, connections.length + 1, psPerMs);
    for (const { id } of receives) hasReceive.delete(id - receiveId);
    const arrived = live.filter((connection) => {
      const { opcode, lengthBytes } = messages[connection]!;
      if ((opcode === IBV_WR_RDMA_READ) !== (node === from)) return false;
      const skipped = connections[connection]!.transport === 'UD' ? grhBytes : 0;
      const came = memory.read(destination(connection) + skipped, lengthBytes);
      return firstDifference(came, pattern(connection)) === -1;
    });
    const pkeys: number[] = [];
    for (const index of usedPlaces(args, isFixed)) pkeys.push(await queryPkey(context, 1, index));
    const { badPkeyCntr } = await queryPort(context, 1);
    seen.push({
      ended,
      received: receives.map(({ id, status }) => ({
        connection: id - receiveId,
        isWell: status === IBV_WC_SUCCESS,
      })),
      arrived,
      pkeys,
      events: await changeEvents(side),
      violations: badPkeyCntr,
    });
    await barrier(program, `step ${number} is seen`);
  }
  for (const qp of qps) await destroyQp(qp);
  await destroyAh(ah);
  await leave(side);
  const told: Told = { steps: seen, codes };
  return told as unknown as JsonValue;
}

/** A QP for each connection, from its first entry on where it is to be. */
async function connectAll(
  program: ProgramContext,
  { endpoint, cq, peer }: Side,
  { connections, retryCount }: Args,
  isFixed: boolean,
): Promise<{ qps: IbvQp[]; peerQpns: number[] }> {
  const types = { RC: IBV_QPT_RC, UC: IBV_QPT_UC, UD: IBV_QPT_UD };
  const cap = { maxSendWr: 2, maxRecvWr: 2, maxSendSge: 1, maxRecvSge: 1 };
  const qps: IbvQp[] = [];
  for (const { transport } of connections)
    qps.push(await createQp(endpoint.pd, { sendCq: cq, recvCq: cq, qpType: types[transport], cap }));
  await program.exchange.put(
    'QPs',
    qps.map(({ qpNum }) => qpNum),
  );
  const peerQpns = (await program.exchange.take('QPs')) as unknown as number[];
  for (const [at, { transport, indexes }] of connections.entries()) {
    const plan = {
      ...planOf(transport === 'UD' ? 'UD' : 'UC', transport === 'UD' ? 5 : mtuCode, at),
      transport,
      timeout: timeoutCode,
      retryCount,
      rnrRetry: 7,
      rnrTimer: 12,
      readsOut: 1,
      readsIn: 1,
    };
    const address = { ...peer.path, qpNum: peerQpns[at]!, psn: at };
    await ready(qps[at]!, plan, address, isFixed ? 0 : indexes[program.node as 0 | 1]);
  }
  return { qps, peerQpns };
}

function requestFor(
  { area, peer }: Side,
  { connections }: Args,
  { opcode, lengthBytes }: Message,
  connection: number,
  ah: IbvAh,
  peerQpns: readonly number[],
) {
  const isRead = opcode === IBV_WR_RDMA_READ;
  const at = 2 * connection * slotBytes;
  const addr = area.address + at + (isRead ? slotBytes : 0);
  const remoteAddr = peer.address + at + (isRead ? 0 : slotBytes);
  const ud = { ah, remoteQpn: peerQpns[connection]!, remoteQkey: qkey };
  return {
    wrId: connection,
    sgList: [{ addr, length: lengthBytes, lkey: area.region.lkey }],
    numSge: 1,
    opcode,
    sendFlags: IBV_SEND_SIGNALED,
    ...(opcode === IBV_WR_SEND ? {} : { wr: { rdma: { remoteAddr, rkey: peer.rkey } } }),
    ...(connections[connection]!.transport === 'UD' ? { wr: { ud } } : {}),
  };
}

async function changeEvents({ endpoint }: Side): Promise<number> {
  for (let count = 0; ; ) {
    const event = await getAsyncEvent(endpoint.context, psPerMs);
    if (event === undefined) return count;
    if (event.eventType === IBV_EVENT_PKEY_CHANGE) count++;
  }
}

/** Packets of the requests of a message. */
const packetsOf = ({ opcode, lengthBytes }: Message, transport: Transport): number =>
  transport === 'UD' || opcode === IBV_WR_RDMA_READ ? 1 : Math.ceil(lengthBytes / mtuBytes);

function judge({ args: given, results, set }: ScenePlayed): string[] {
  const args = given as unknown as Args;
  const { connections, steps, retryCount } = args;
  const told = results as unknown as readonly Told[];
  const isFixed = set['hca.capability.linkLayer'] === 'ethernet';
  const tables = new Tables(isFixed);
  const found: string[] = [];
  for (const { codes } of told)
    for (const code of codes)
      if (code !== (isFixed ? 'EOPNOTSUPP' : 'ok')) found.push(`setting an entry came to ${code}`);
  const least = [0, 0];
  const most = [0, 0];
  for (const [number, courses] of coursesOf(args, isFixed).entries()) {
    const { changes, from, messages, repair } = steps[number]!;
    const events = [0, 0];
    for (const change of [...changes, ...(repair === null ? [] : [repair])])
      if (tables.set(change)) events[change.node]!++;
    const seen = told.map((one) => one.steps[number]!);
    const to = 1 - from;
    const accuse = (what: string): unknown => found.push(`step ${number}: ${what}`);
    for (const { connection, passes, isRepaired } of courses) {
      const { transport, indexes } = connections[connection]!;
      const message = messages[connection]!;
      const what = `${transport} ${connection} by entries ${indexes}`;
      const isFailing = transport === 'RC' && !passes;
      const statuses = seen[from]!.ended.filter(({ id }) => id === connection).map(({ status }) => status);
      if (`${statuses}` !== `${isFailing ? IBV_WC_RETRY_EXC_ERR : IBV_WC_SUCCESS}`)
        accuse(`${what} ended in ${statuses}`);
      const isRead = message.opcode === IBV_WR_RDMA_READ;
      if (seen[isRead ? from : to]!.arrived.includes(connection) !== passes)
        accuse(`the bytes of ${what} ${passes ? 'did not come' : 'came from another partition'}`);
      const received = seen[to]!.received.filter((one) => one.connection === connection);
      if (
        received.length !== (passes && message.opcode === IBV_WR_SEND ? 1 : 0) ||
        received.some((one) => !one.isWell)
      )
        accuse(`${received.length} receives of ${what} ended`);
      const packets = packetsOf(message, transport);
      // By a time-out of its own after the repair the last attempt passes.
      if (!passes || isRepaired)
        least[to]! += transport === 'RC' && !passes ? packets * (1 + retryCount) : packets;
      if (!passes || isRepaired) most[to]! += transport === 'RC' ? packets * (1 + retryCount) : packets;
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

export const partitions: Scene = {
  name: 'partitions',
  about: 'QPs of all transports by P_Key tables of full and limited members, which change while the QPs live',
  module: import.meta.url,
  programs: askerAndAnswerer,
  draw,
  judge,
};
