/**
 * Messages of unreliable services, some of which lose a packet: whole messages arrive whole, in order and from the beginning of their receives, the
 * others not at all (IBTA 9.8.2, 9.8.3); messages without a receive are dropped at full speed; a request with a wrong key stops the send queue
 * alone, until software restarts it (10.3.1, SQE).
 */
import { psPerMs, psPerNs, psPerUs } from '../../base/index.ts';
import * as ibv from '../../userlib/index.ts';
import { connectUnreliable, grhBytes, type UnreliableSide } from './datagrams.ts';
import type { Draft, Draws, Ended, FaultEntry, Played, Stage } from './language/index.ts';
import { isSame, isWell, mtuOf, patternOf, scene, statusesOf, sumOf, times } from './language/index.ts';

interface Args {
  readonly transport: 'UC' | 'UD';
  readonly mtuCode: number;
  readonly lengths: readonly number[];
  /** Receives that are posted. */
  readonly receives: number;
  /** The request with a wrong key; -1: none. */
  readonly flawed: number;
}

/** Longer than any message of the scene is under way. */
const settledPs = 2 * psPerMs;
const patience = { napPs: 500 * psPerNs, patiencePs: settledPs };
const slotBytes = ({ lengths }: Args): number => grhBytes + Math.max(...lengths);
const mtuBytes = ({ mtuCode, transport }: Pick<Args, 'mtuCode' | 'transport'>): number =>
  transport === 'UD' ? 4096 : mtuOf(mtuCode);
/** Number of the message to the sender while its send queue is stopped. */
const answerId = 1000;
const floodCount = 600;

function draw(random: Draws): Draft<Args> {
  const transport = random.chance(0.6) ? 'UC' : 'UD';
  if (random.chance(0.2)) return drawFlood(transport);
  const mtuCode = 1 + random.below(3);
  const mtu = mtuBytes({ mtuCode, transport });
  const count = 1 + random.below(10);
  const packetsMost = transport === 'UC' ? 1 + random.below(8) : 1;
  const lengths = times(count, () => 1 + random.below(mtu * packetsMost));
  const packets = sumOf(lengths.map((bytes) => Math.ceil(bytes / mtu)));
  const flawed = random.chance(0.3) ? random.below(count) : -1;
  const faults = times(random.below(4), (): FaultEntry => {
    const nth = 1 + random.below(packets);
    return { packet: random.chance(0.5) ? 'lost' : 'corrupted', nth, node: 0 };
  });
  const receives = random.chance(0.8) ? count : 1 + random.below(count);
  const args = { transport, mtuCode, lengths, receives, flawed } as const;
  return { args, hasDrawnHardware: random.chance(0.3), faults, climate: 'flawed' };
}

/** Many small messages and hardly a receive, on a host whose memory is slow. */
function drawFlood(transport: 'UC' | 'UD'): Draft<Args> {
  const args = { transport, mtuCode: 3, lengths: times(floodCount, () => 32), receives: 1, flawed: -1 };
  return { args, set: { 'pcie.rootComplex.readLatencyPs': 2_000_000 }, climate: 'flawed' };
}

const open = (stage: Stage<Args>, receives: number): Promise<UnreliableSide> => {
  const { args } = stage;
  return connectUnreliable(stage, {
    ...{ transport: args.transport, mtuCode: args.mtuCode },
    ...{ areaBytes: args.lengths.length * slotBytes(args), queueEntries: args.lengths.length },
    beforeReady: (side) => {
      for (let id = 0; id < receives; id++)
        side.receive(id, { offset: id * slotBytes(args), lengthBytes: slotBytes(args) });
    },
  });
};

interface Sent {
  readonly tookPs: number;
  readonly ended: readonly Ended[];
  /** State of the QP after the request with a wrong key, and how a message from the other side ended meanwhile. */
  readonly state: number | undefined;
  readonly back: readonly Ended[];
}

/** Sends everything; after a wrong key it sends the flushed requests again. */
async function sender(stage: Stage<Args>): Promise<Sent> {
  const { lengths, flawed } = stage.args;
  const slot = slotBytes(stage.args);
  const { side, message } = await open(stage, 0);
  for (const [id, bytes] of lengths.entries()) side.fill(patternOf(id, bytes), id * slot);
  const beginPs = stage.nowPs;
  const send = (first: number): void => {
    for (let id = first; id < lengths.length; id++) {
      const wr = message(id, { offset: id * slot, lengthBytes: lengths[id]! });
      const sgList = wr.sgList.map((sge) => ({ ...sge, lkey: sge.lkey ^ (id === flawed ? 1 : 0) }));
      ibv.postSend(side.qp, { ...wr, sgList });
    }
  };
  send(0);
  const ended = await side.watch(lengths.length, patience);
  const tookPs = stage.nowPs - beginPs;
  let state: number | undefined;
  const back: Ended[] = [];
  if (flawed >= 0) {
    state = (await ibv.queryQp(side.qp)).qpState;
    // Incoming messages are not affected.
    side.receive(answerId, { offset: flawed * slot, lengthBytes: slot });
    await stage.meet('answer');
    back.push(...(await side.watch(1, patience)));
    if (state === ibv.IBV_QPS_SQE) {
      const start = { qpState: ibv.IBV_QPS_RTS, curQpState: ibv.IBV_QPS_SQE };
      await ibv.modifyQp(side.qp, start, ibv.IBV_QP_STATE | ibv.IBV_QP_CUR_STATE);
      send(flawed + 1);
      ended.push(...(await side.watch(lengths.length - flawed - 1, patience)));
    }
  }
  await stage.meet('sent');
  await stage.meet('over');
  return { tookPs, ended, state, back };
}

interface Came {
  readonly ended: readonly Ended[];
  /** Receives in order, each with the message to which its bytes belong; -1: none. */
  readonly came: readonly (readonly [receive: number, message: number])[];
}

/** Checks the received messages. */
async function receiver(stage: Stage<Args>): Promise<Came> {
  const { lengths, receives, flawed, transport } = stage.args;
  const slot = slotBytes(stage.args);
  const { side, message } = await open(stage, receives);
  if (flawed >= 0) {
    await stage.meet('answer');
    const spare = { offset: (lengths.length - 1) * slot, lengthBytes: 1 };
    ibv.postSend(side.qp, message(answerId, spare));
  }
  await stage.meet('sent');
  await stage.cpu.sleep(settledPs);
  const taken = await side.watch(receives + (flawed >= 0 ? 1 : 0), patience);
  const ended = taken.filter(({ id }) => id < answerId);
  const header = transport === 'UD' ? grhBytes : 0;
  const came = ended.map(({ id, byteLen }) => {
    const bytes = side.bytes(id * slot + header, byteLen - header);
    return [id, lengths.findIndex((length, number) => isSame(bytes, patternOf(number, length)))] as const;
  });
  await stage.meet('over');
  return { ended, came };
}

/** Returns the messages of which no packet is lost. */
function wholeOf({ lengths, flawed, ...rest }: Args, faults: readonly FaultEntry[]): number[] {
  const lost = new Set(faults.map(({ nth }) => nth));
  let packet = 0;
  return lengths.flatMap((bytes, id) => {
    if (id === flawed) return [];
    const numbers = times(Math.ceil(bytes / mtuBytes(rest)), () => ++packet);
    return numbers.some((number) => lost.has(number)) ? [] : [id];
  });
}

function judge({ args, faults, told, set }: Played<Args, readonly [Sent, Came]>): string[] {
  const [sent, { ended, came }] = told;
  const { lengths, receives, flawed } = args;
  const found: string[] = [];
  const due = lengths.map((_, id) => {
    if (flawed === -1 || id < flawed) return 'SUCCESS';
    return id === flawed ? 'LOC_PROT_ERR' : 'WR_FLUSH_ERR';
  });
  if (flawed >= 0) due.push(...lengths.slice(flawed + 1).map(() => 'SUCCESS' as const));
  const seen = statusesOf(sent.ended);
  if (`${seen}` !== `${due}`) found.push(`messages ended in ${excerpt(seen)}, and not in ${excerpt(due)}`);
  if (flawed >= 0 && sent.state !== ibv.IBV_QPS_SQE)
    found.push(`after a request with a wrong key the QP is in state ${sent.state}, and not in SQE`);
  if (flawed >= 0 && sent.back[0]?.status !== 'SUCCESS')
    found.push(`what came while the send queue was stopped ended in ${statusesOf(sent.back)}`);
  if (!ended.every(isWell)) found.push(`receives ended in ${statusesOf(ended)}`);
  const whole = wholeOf(args, faults)
    .slice(0, receives)
    .map((message, at) => [at, message]);
  if (JSON.stringify(whole) !== JSON.stringify(came))
    found.push(`came ${excerpt(came)} (receive, message), whole are ${excerpt(whole)}`);
  const isQuiet = Object.keys(set).every(
    (path) => path === 'host.memory.sizeMib' || path.endsWith('readLatencyPs'),
  );
  // One QP sends a message each 77 cycles of 427 MHz; twice that, with some time for the first and the last.
  const mostPs = 2 * lengths.length * 180 * psPerNs + 300 * psPerUs;
  if (lengths.length === floodCount && isQuiet && sent.tookPs > mostPs)
    found.push(`${floodCount} messages took ${sent.tookPs} ps, though no poll is needed for each: ${mostPs}`);
  return found;
}

const excerpt = (values: readonly unknown[]): string => JSON.stringify(values).slice(0, 100);

export const tornMessages = scene({
  about: 'messages of unreliable services that lose packets, have no receive, or stop the send queue',
  cable: 'infiniband',
  draw,
  programs: [sender, receiver],
  judge,
});
