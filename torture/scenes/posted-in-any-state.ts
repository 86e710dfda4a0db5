/**
 * Receives and sends are posted in every state of a QP, the last ones up to two seconds after it has failed (IBTA 10.3.1, table 91):
 *
 *     RESET ─► INIT ─► RTR ─► RTS ─► SQD ─► RTS ─► ERR ─► later, also by a second 2ERR, several times ─► RESET
 *     none     receives are taken in, and used from RTR on        all are flushed
 *              sends are refused       from RTS on; wait in SQD
 *
 * Some lives end early: from INIT, RTR, RTS or SQD they go to ERR at once.
 *
 * Every request that was taken ends once, in the order of its queue: SUCCESS as far as messages came or were sent, flushed after
 * that. A request posted in ERR is flushed however long ago the QP failed; Linux's ib_drain_qp waits for it without limit.
 */
import { psPerMs, psPerNs, psPerUs } from '../../base/index.ts';
import { barrier, createRcQps, toInit, toRtr, toRts } from '../../experiments/workloads/index.ts';
import type { JsonValue, ProgramContext } from '../../machine/index.ts';
import type { Random } from '../../sim/index.ts';
import {
  destroyQp,
  IBV_QP_EN_SQD_ASYNC_NOTIFY,
  IBV_QP_STATE,
  IBV_QPS_ERR,
  IBV_QPS_RESET,
  IBV_QPS_RTS,
  IBV_QPS_SQD,
  IBV_WC_SUCCESS,
  IBV_WC_WR_FLUSH_ERR,
  IBV_WR_RDMA_WRITE,
  IBV_WR_SEND,
  type IbvQp,
  modifyQp,
  postRecv,
} from '../../userlib/index.ts';
import {
  askerAndAnswerer,
  completionsOf,
  connectWithPeer,
  type Ended,
  leave,
  post,
  requestOf,
  type Side,
  usual,
} from './pair.ts';
import { type Wrong, wrongOf } from './patterns.ts';
import type { Scene, SceneDraft } from './scene.ts';

const states = ['RESET', 'INIT', 'RTR', 'RTS', 'SQD', 'RTS again', 'ERR', 'RESET again'] as const;
type State = (typeof states)[number] | 'ERR later';
const isSendable = (state: State): boolean => !['RESET', 'INIT', 'RTR', 'RESET again'].includes(state);
const isReceivable = (state: State): boolean => !state.startsWith('RESET');
const isFailed = (state: State): boolean => state.startsWith('ERR');

interface Visit {
  readonly sends: number;
  readonly receives: number;
  /** Messages that the peer sends meanwhile, from RTR to the second RTS. */
  readonly messages: number;
  /** The messages come before receives of this state are posted, and may wait for these. */
  readonly isAhead: boolean;
  readonly restNs: number;
}

/** Posted some time after the QP has failed. */
interface LatePosts {
  readonly sends: number;
  readonly receives: number;
  readonly afterUs: number;
  /** Another 2ERR before they are posted. */
  readonly isRepeated: boolean;
}

/** A life of the QP. */
interface Round {
  /** By state. */
  readonly visits: readonly Visit[];
  /** The state from which it goes to ERR. */
  readonly last: State;
  readonly late: readonly LatePosts[];
}

interface Args {
  readonly rounds: readonly Round[];
  /** SENDs under way when the QP is brought to ERR: the peer has no receive for them, and its RNR NAKs have no end. */
  readonly waiting: number;
}

const isVisited = (state: State, { last }: Round): boolean => {
  const at = states.indexOf(state as (typeof states)[number]);
  return at <= states.indexOf(last as (typeof states)[number]) || at >= states.indexOf('ERR');
};

const messageBytes = 96;
const aheadPs = 50 * psPerUs;
const laterPatiencePs = 100 * psPerMs;

function draw(random: Random): SceneDraft {
  const some = (): number => (random.chance(0.5) ? 0 : 1 + random.below(4));
  const lasts = ['INIT', 'RTR', 'RTS', 'SQD'] as const;
  const round = (): Round => ({
    visits: states.map((state) => ({
      sends: some(),
      receives: some(),
      messages: ['RTR', 'RTS', 'SQD', 'RTS again'].includes(state) ? some() : 0,
      isAhead: random.chance(0.3),
      restNs: random.below(random.chance(0.5) ? 300 : 20_000),
    })),
    last: random.chance(0.6) ? 'RTS again' : lasts[random.below(lasts.length)]!,
    late: Array.from({ length: 1 + random.below(3) }, () => ({
      sends: some(),
      receives: some(),
      // From a microsecond to two seconds.
      afterUs: Math.round(10 ** (random.unit() * 6.3)),
      isRepeated: random.chance(0.3),
    })),
  });
  const args: Args = {
    rounds: Array.from({ length: 1 + random.below(3) }, round),
    waiting: some(),
  };
  return { args: args as unknown as JsonValue, hasDrawnHardware: random.chance(0.3), sleepsSeconds: 24 };
}

/** Takes one QP after the other through all states. */
export async function asker(program: ProgramContext): Promise<JsonValue> {
  const { rounds, waiting } = program.args as unknown as Args;
  const side = await connectWithPeer(program, { areaBytes: 4096, cap, cqEntries: 255 });
  const wrong: string[] = [];
  const [qp] = (await createRcQps(side.endpoint, 1, { send: side.cq, receive: side.cq }, cap)) as [IbvQp];
  for (const [number, round] of rounds.entries()) {
    await program.exchange.put('qp', qp.qpNum);
    const peer = { ...side.peer.path, qpNum: Number(await program.exchange.take('qp')), psn: number };
    const walk = new Walk(side, qp, `life ${number}`, wrong);
    for (const [at, state] of states.entries()) {
      if (!isVisited(state, round)) continue;
      const visit = round.visits[at]!;
      if (state === 'INIT') await toInit(qp);
      if (state === 'RTR') await toRtr(qp, peer, usual);
      if (state === 'RTS') await toRts(qp, number, usual);
      if (state === 'SQD') await walk.stop();
      if (state === 'RTS again') await modifyQp(qp, { qpState: IBV_QPS_RTS }, IBV_QP_STATE);
      if (state === 'ERR') {
        if (round.last.startsWith('RTS')) {
          await walk.drain();
          walk.postSends(round.last, waiting, IBV_WR_SEND);
        }
        await modifyQp(qp, { qpState: IBV_QPS_ERR }, IBV_QP_STATE);
      }
      if (state === 'RESET again') await modifyQp(qp, { qpState: IBV_QPS_RESET }, IBV_QP_STATE);
      if (visit.isAhead) {
        await program.exchange.put('messages', visit.messages);
        await program.cpu.sleep(aheadPs);
      }
      // The messages of a state have their receives: the peer does not wait for one that never comes.
      walk.postReceives(state, visit.receives + (isReceivable(state) ? visit.messages : 0));
      walk.postSends(state, visit.sends);
      if (!visit.isAhead) await program.exchange.put('messages', visit.messages);
      await program.exchange.take('sent');
      await walk.rest(state, visit);
      if (state === 'ERR') for (const late of round.late) await walk.postLate(late);
    }
    await barrier(program, 'round');
  }
  await destroyQp(qp);
  await leave(side);
  return { wrong };
}

/** Is connected to it: sends what it is asked for, and has receives for all that comes. */
export async function answerer(program: ProgramContext): Promise<JsonValue> {
  const { rounds } = program.args as unknown as Args;
  const side = await connectWithPeer(program, { areaBytes: 4096, cap, cqEntries: 255 });
  const wrong: string[] = [];
  for (const [number, round] of rounds.entries()) {
    const [qp] = (await createRcQps(side.endpoint, 1, { send: side.cq, receive: side.cq }, cap)) as [IbvQp];
    await program.exchange.put('qp', qp.qpNum);
    const peer = { ...side.peer.path, qpNum: Number(await program.exchange.take('qp')), psn: number };
    await toInit(qp);
    await toRtr(qp, peer, usual);
    await toRts(qp, number, usual);
    for (const state of states) {
      if (!isVisited(state, round)) continue;
      const messages = Number(await program.exchange.take('messages'));
      for (let id = 0; id < messages; id++)
        post(qp, { ...requestOf(side, id, IBV_WR_SEND, { offset: 0, lengthBytes: messageBytes }) });
      const ended = await completionsOf(side, messages);
      for (const { status } of ended)
        if (status !== IBV_WC_SUCCESS) wrong.push(`a message to a QP in ${state} ended in ${status}`);
      if (ended.length !== messages)
        wrong.push(`${ended.length} of ${messages} messages to a QP in ${state} ended`);
      await program.exchange.put('sent', true);
    }
    await destroyQp(qp);
    await barrier(program, 'round');
  }
  await leave(side);
  return { wrong };
}

const cap = { maxSendWr: 40, maxRecvWr: 80 };

/** A QP on its way through the states. */
class Walk {
  readonly #side: Side;
  readonly #qp: IbvQp;
  readonly #what: string;
  readonly #wrong: string[];
  /** Ids of what was taken and has not ended: even ones are sends. */
  readonly #open: { readonly send: number[]; readonly receive: number[] } = { send: [], receive: [] };
  #nextId = 0;
  #messagesDue = 0;
  #hasFailed = false;

  constructor(side: Side, qp: IbvQp, what: string, wrong: string[]) {
    this.#side = side;
    this.#qp = qp;
    this.#what = what;
    this.#wrong = wrong;
  }

  postReceives(state: State, count: number): void {
    const { area } = this.#side;
    for (let left = count; left > 0; left--) {
      const wrId = 2 * this.#nextId++ + 1;
      const sgList = [{ addr: area.address + 2048, length: messageBytes, lkey: area.region.lkey }];
      const error = postRecv(this.#qp, { wrId, sgList, numSge: 1 });
      this.#posted(state, 'receive', wrId, error === 0, isReceivable(state));
    }
  }

  postSends(state: State, count: number, opcode: number = IBV_WR_RDMA_WRITE): void {
    for (let left = count; left > 0; left--) {
      const wrId = 2 * this.#nextId++;
      const request = requestOf(this.#side, wrId, opcode, {
        offset: 0,
        lengthBytes: messageBytes,
      });
      this.#posted(state, 'send', wrId, post(this.#qp, request) === 0, isSendable(state));
    }
  }

  /** Waits in a state, and judges what ends in it. */
  async rest(state: State, { messages, restNs }: Visit): Promise<void> {
    const { program } = this.#side.endpoint;
    if (isFailed(state)) {
      this.#hasFailed = true;
      const { send, receive } = this.#open;
      const count = send.length + receive.length;
      this.#take(state, await completionsOf(this.#side, count, laterPatiencePs));
      if (send.length + receive.length > 0)
        this.#say(`${send.length} sends and ${receive.length} receives of ${state} were not flushed`);
      // A reset forgets what could still come.
      send.length = 0;
      receive.length = 0;
      return;
    }
    this.#messagesDue = messages;
    while (this.#messagesDue > 0) {
      const ended = await completionsOf(this.#side, 1);
      if (ended.length === 0) break;
      this.#take(state, ended);
    }
    if (this.#messagesDue > 0) this.#say(`${this.#messagesDue} messages did not come in ${state}`);
    await program.cpu.sleep(restNs * psPerNs);
  }

  /** Posts some time after the QP has failed, and judges that all is flushed. */
  async postLate({ sends, receives, afterUs, isRepeated }: LatePosts): Promise<void> {
    const { program } = this.#side.endpoint;
    await program.cpu.sleep(afterUs * psPerUs);
    if (isRepeated) await modifyQp(this.#qp, { qpState: IBV_QPS_ERR }, IBV_QP_STATE);
    this.postReceives('ERR later', receives);
    this.postSends('ERR later', sends);
    await this.rest('ERR later', { sends, receives, messages: 0, isAhead: false, restNs: 0 });
  }

  /** Until everything that was sent has ended. */
  async drain(): Promise<void> {
    this.#take('RTS', await completionsOf(this.#side, this.#open.send.length));
    if (this.#open.send.length > 0) this.#say(`${this.#open.send.length} sends did not end`);
  }

  /** Brings the send queue to a stand: what is posted from now on waits. */
  async stop(): Promise<void> {
    await this.drain();
    const attributes = { qpState: IBV_QPS_SQD, enSqdAsyncNotify: 0 };
    await modifyQp(this.#qp, attributes, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY);
  }

  #posted(state: State, queue: 'send' | 'receive', id: number, isTaken: boolean, isDue: boolean): void {
    if (isTaken) this.#open[queue].push(id);
    if (isTaken !== isDue) this.#say(`a ${queue} in ${state} was ${isTaken ? 'taken' : 'refused'}`);
  }

  #take(state: State, ended: readonly Ended[]): void {
    for (const { id, status } of ended) {
      const queue = id % 2 === 0 ? 'send' : 'receive';
      const expected = this.#open[queue].shift();
      if (expected !== id) this.#say(`${queue} ${id} ended in ${state}, due was ${expected}`);
      const isFlushed = status === IBV_WC_WR_FLUSH_ERR;
      if (!isFlushed && status !== IBV_WC_SUCCESS) this.#say(`${queue} ${id} ended in status ${status}`);
      if (isFlushed && !this.#hasFailed) this.#say(`${queue} ${id} was flushed in ${state}`);
      if (status === IBV_WC_SUCCESS && state === 'SQD' && queue === 'send')
        this.#say(`send ${id} was executed in SQD`);
      if (queue === 'receive' && status === IBV_WC_SUCCESS) this.#messagesDue--;
      if (status === IBV_WC_SUCCESS && state === 'ERR later')
        this.#say(`${queue} ${id} succeeded in ${state}`);
    }
  }

  #say(what: string): void {
    this.#wrong.push(`${this.#what}: ${what}`);
  }
}

export const postedInAnyState: Scene = {
  name: 'posted-in-any-state',
  about: 'receives and sends are posted in every state of a QP, also long after it has failed',
  module: import.meta.url,
  programs: askerAndAnswerer,
  draw,
  judge: ({ results }) => wrongOf(results as unknown as readonly Wrong[]),
};
