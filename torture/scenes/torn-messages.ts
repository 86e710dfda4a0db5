/**
 * Messages of unreliable services, some of which lose a packet: those that are whole come whole, in order and from the beginning of
 * their receives, the others not at all (IBTA 9.8.2, 9.8.3); those without a receive are dropped as fast as they come; a request
 * with a wrong key stops the send queue and nothing else, until software starts it again (10.3.1, SQE).
 */
import { psPerNs, psPerUs } from '../../base/index.ts';
import { barrier } from '../../experiments/workloads/index.ts';
import type { FaultEntry } from '../../machine/faults/index.ts';
import type { JsonValue, ProgramContext } from '../../machine/index.ts';
import type { Random } from '../../sim/index.ts';
import {
  IBV_QP_CUR_STATE,
  IBV_QP_STATE,
  IBV_QPS_RTS,
  IBV_QPS_SQE,
  IBV_WC_LOC_PROT_ERR,
  IBV_WC_SUCCESS,
  IBV_WC_WR_FLUSH_ERR,
  IBV_WR_SEND,
  modifyQp,
  queryQp,
} from '../../userlib/index.ts';
import { firstDifference, patternOf, watchCompletions } from './observing.ts';
import { type Ended, nowPs, post } from './pair.ts';
import type { Scene, SceneDraft, ScenePlayed } from './scene.ts';
import {
  connectUnreliable,
  grhBytes,
  leaveUnreliable,
  messageOf,
  receive,
  settledPs,
  type UnreliableSide,
} from './unreliable-pair.ts';

interface Args {
  readonly transport: 'UC' | 'UD';
  readonly mtuCode: number;
  readonly lengths: readonly number[];
  /** Receives that are posted. */
  readonly receives: number;
  /** The request with a wrong key; -1: none. */
  readonly flawed: number;
}

interface Sent {
  readonly tookPs: number;
  readonly ended: readonly Ended[];
  /** State of the QP behind the request with a wrong key, and how a message from the other side ended meanwhile. */
  readonly state: number;
  readonly back: readonly Ended[];
}

interface Came {
  /** In order: the receive, and the message that its bytes are of; -1: of none. */
  readonly came: readonly (readonly [receive: number, message: number])[];
  readonly statuses: readonly number[];
}

const slotBytes = ({ lengths }: Args): number => grhBytes + Math.max(...lengths);
const patience = { napPs: 500 * psPerNs, patiencePs: settledPs };
const mtuBytes = ({ mtuCode, transport }: Pick<Args, 'mtuCode' | 'transport'>): number =>
  transport === 'UD' ? 4096 : 128 << mtuCode;

function draw(random: Random): SceneDraft {
  const transport = random.chance(0.6) ? 'UC' : 'UD';
  if (random.chance(0.2)) return drawFlood(transport);
  const mtuCode = 1 + random.below(3);
  const mtu = mtuBytes({ mtuCode, transport });
  const count = 1 + random.below(10);
  const packetsMost = transport === 'UC' ? 1 + random.below(8) : 1;
  const lengths = Array.from({ length: count }, () => 1 + random.below(mtu * packetsMost));
  const packets = lengths.reduce((sum, bytes) => sum + Math.ceil(bytes / mtu), 0);
  const flawed = random.chance(0.3) ? random.below(count) : -1;
  const faults = Array.from({ length: random.below(4) }, (): FaultEntry => {
    const nth = 1 + random.below(packets);
    return { packet: random.chance(0.5) ? 'lost' : 'corrupted', nth, node: 0 };
  });
  const receives = random.chance(0.8) ? count : 1 + random.below(count);
  const args: Args = { transport, mtuCode, lengths, receives, flawed };
  return { args: { ...args }, hasDrawnHardware: random.chance(0.3), faults, climate: 'flawed' };
}

const floodCount = 600;

/** Many small messages and hardly a receive, on a host whose memory is slow. */
function drawFlood(transport: 'UC' | 'UD'): SceneDraft {
  const lengths = Array.from({ length: floodCount }, () => 32);
  const args: Args = { transport, mtuCode: 3, lengths, receives: 1, flawed: -1 };
  const set = { 'pcie.rootComplex.readLatencyPs': 2_000_000 };
  return { args: { ...args }, set, hasDrawnHardware: false, climate: 'flawed' };
}

const connectSides = (program: ProgramContext, args: Args, receives: number): Promise<UnreliableSide> =>
  connectUnreliable(program, {
    transport: args.transport,
    areaBytes: args.lengths.length * slotBytes(args),
    mtuCode: args.mtuCode,
    queueEntries: args.lengths.length,
    beforeReady: (side) => {
      for (let id = 0; id < receives; id++) receive(side, id, id * slotBytes(args), slotBytes(args));
    },
  });

/** Sends all; behind a wrong key once more what was flushed. */
export async function sender(program: ProgramContext): Promise<JsonValue> {
  const args = program.args as unknown as Args;
  const { lengths, flawed } = args;
  const side = await connectSides(program, args, 0);
  const { memory } = program;
  const qp = side.qps[0]!;
  for (const [id, bytes] of lengths.entries())
    memory.write(side.area.address + id * slotBytes(args), patternOf(id, bytes));
  const beginPs = nowPs(program);
  const send = (first: number): void => {
    for (let id = first; id < lengths.length; id++) {
      const wr = messageOf(side, id, IBV_WR_SEND, id * slotBytes(args), lengths[id]!);
      const [sge] = wr.sgList;
      post(qp, id === flawed ? { ...wr, sgList: [{ ...sge!, lkey: sge!.lkey ^ 1 }] } : wr);
    }
  };
  send(0);
  const ended = await watchCompletions(side, lengths.length, patience);
  const tookPs = nowPs(program) - beginPs;
  let state: number = IBV_QPS_RTS;
  const back: Ended[] = [];
  if (flawed >= 0) {
    state = (await queryQp(qp)).qpState ?? -1;
    // What comes in is not concerned.
    receive(side, 1000, flawed * slotBytes(args), slotBytes(args));
    await barrier(program, 'answer');
    back.push(...(await watchCompletions(side, 1, patience)));
    if (state === IBV_QPS_SQE) {
      await modifyQp(qp, { qpState: IBV_QPS_RTS, curQpState: IBV_QPS_SQE }, IBV_QP_STATE | IBV_QP_CUR_STATE);
      send(flawed + 1);
      ended.push(...(await watchCompletions(side, lengths.length - flawed - 1, patience)));
    }
  }
  await barrier(program, 'sent');
  await barrier(program, 'over');
  await leaveUnreliable(side);
  return { tookPs, ended, state, back } as unknown as JsonValue;
}

/** Looks at what has come. */
export async function receiver(program: ProgramContext): Promise<JsonValue> {
  const args = program.args as unknown as Args;
  const { lengths, receives, flawed, transport } = args;
  const side = await connectSides(program, args, receives);
  const sends = flawed >= 0 ? 1 : 0;
  if (flawed >= 0) {
    await barrier(program, 'answer');
    const spare = (lengths.length - 1) * slotBytes(args);
    post(side.qps[0]!, messageOf(side, 1000, IBV_WR_SEND, spare, 1));
  }
  await barrier(program, 'sent');
  await program.cpu.sleep(settledPs);
  const ended = (await watchCompletions(side, receives + sends, patience)).filter(({ id }) => id < 1000);
  const header = transport === 'UD' ? grhBytes : 0;
  const came = ended.map(({ id, byteLen }) => {
    const bytes = program.memory.read(side.area.address + id * slotBytes(args) + header, byteLen - header);
    const message = lengths.findIndex(
      (length, index) => length === bytes.length && firstDifference(bytes, patternOf(index, length)) === -1,
    );
    return [id, message];
  });
  await barrier(program, 'over');
  await leaveUnreliable(side);
  return { came, statuses: ended.map(({ status }) => status) };
}

/** Messages none of whose packets is lost; with a message before them that loses its last one or not. */
function wholeOf({ lengths, flawed, ...rest }: Args, faults: readonly FaultEntry[]): number[] {
  const lost = new Set(faults.map(({ nth }) => nth));
  const mtu = mtuBytes(rest);
  let packet = 0;
  return lengths.flatMap((bytes, id) => {
    if (id === flawed) return [];
    const numbers = Array.from({ length: Math.ceil(bytes / mtu) }, () => ++packet);
    return numbers.some((number) => lost.has(number)) ? [] : [id];
  });
}

function judge({ args: given, faults, results, set }: ScenePlayed): string[] {
  const args = given as unknown as Args;
  const { lengths, receives, flawed } = args;
  const [{ tookPs, ended, state, back }, { came, statuses }] = results as unknown as [Sent, Came];
  const found: string[] = [];
  const expected = lengths.map((_, id) => {
    if (flawed === -1 || id < flawed) return IBV_WC_SUCCESS;
    return id === flawed ? IBV_WC_LOC_PROT_ERR : IBV_WC_WR_FLUSH_ERR;
  });
  if (flawed >= 0) expected.push(...lengths.slice(flawed + 1).map(() => IBV_WC_SUCCESS));
  const seen = ended.map(({ status }) => status);
  if (`${seen}` !== `${expected}`)
    found.push(`messages ended in ${excerpt(seen)}, and not in ${excerpt(expected)}`);
  if (flawed >= 0 && state !== IBV_QPS_SQE)
    found.push(`behind a request with a wrong key the QP is in state ${state}, and not in SQE`);
  if (flawed >= 0 && back[0]?.status !== IBV_WC_SUCCESS)
    found.push(`what came while the send queue was stopped ended in ${back.map(({ status }) => status)}`);
  if (statuses.some((status) => status !== IBV_WC_SUCCESS)) found.push(`receives ended in ${statuses}`);
  const whole = wholeOf(args, faults).slice(0, receives);
  const due = whole.map((message, index) => [index, message]);
  if (JSON.stringify(due) !== JSON.stringify(came))
    found.push(`came ${excerpt(came)} (receive, message), whole are ${excerpt(due)}`);
  const isQuiet = Object.keys(set).every(
    (path) => path === 'host.memory.sizeMib' || path.endsWith('readLatencyPs'),
  );
  // One QP sends a message each 77 cycles of 427 MHz; twice that, with some time for the first and the last.
  const mostPs = 2 * lengths.length * 180 * psPerNs + 300 * psPerUs;
  const isLong = lengths.length === floodCount && isQuiet;
  if (isLong && tookPs > mostPs)
    found.push(`${lengths.length} messages took ${tookPs} ps, though no poll is needed for each: ${mostPs}`);
  return found;
}

const excerpt = (values: readonly unknown[]): string => JSON.stringify(values).slice(0, 100);

export const tornMessages: Scene = {
  name: 'torn-messages',
  about: 'messages of unreliable services that lose packets, have no receive, or stop the send queue',
  module: import.meta.url,
  cable: 'infiniband',
  programs: [
    { node: 0, exportName: 'sender' },
    { node: 1, exportName: 'receiver' },
  ],
  draw,
  judge,
};
