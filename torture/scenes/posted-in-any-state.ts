/**
 * Receives and sends are posted in every state of a QP, the last ones up to two seconds after it has failed (IBTA 10.3.1, table 91):
 *
 *     RESET ─► INIT ─► RTR ─► RTS ─► SQD ─► RTS ─► ERR ─► later, also by a second 2ERR, several times ─► RESET
 *     none     receives are taken in, and used from RTR on        all are flushed
 *              sends are refused       from RTS on; wait in SQD
 *
 * Some lives end early: from INIT, RTR, RTS or SQD they go to ERR at once.
 *
 * Every accepted request ends once, in the order of its queue: in SUCCESS while messages arrive or are sent, flushed after that. A request posted in
 * ERR is flushed however long ago the QP failed; Linux's ib_drain_qp waits for it without limit.
 */

import { toInit, toRtr, toRts } from '../../experiments/workloads/index.ts';
import * as ibv from '../../userlib/index.ts';
import type { ArgsOf, Draft, Draws, Side, Stage, Taken } from './language/index.ts';
import { connect, psPerMs, SEND, scene, times, topic, usual, WRITE } from './language/index.ts';

const states = ['RESET', 'INIT', 'RTR', 'RTS', 'SQD', 'RTS again', 'ERR', 'RESET again'] as const;
type State = (typeof states)[number] | 'ERR later';
const isSendable = (state: State): boolean => !['RESET', 'INIT', 'RTR', 'RESET again'].includes(state);
const isReceivable = (state: State): boolean => !state.startsWith('RESET');

const messageBytes = 96;
const cap = { maxSendWr: 40, maxRecvWr: 80 };
const options = { areaBytes: 4096, cap, cqEntries: 255 };

function draw(random: Draws) {
  const some = (): number => (random.chance(0.5) ? 0 : 1 + random.below(4));
  // A life of the QP.
  const round = () => ({
    visits: states.map((state) => ({
      sends: some(),
      receives: some(),
      // Messages that the peer sends meanwhile, from RTR to the second RTS.
      messages: ['RTR', 'RTS', 'SQD', 'RTS again'].includes(state) ? some() : 0,
      // The messages arrive before receives of this state are posted, and may wait for these.
      isAhead: random.chance(0.3),
      restNs: random.below(random.chance(0.5) ? 300 : 20_000),
    })),
    // The state from which the QP goes to ERR.
    last: random.chance(0.6) ? ('RTS again' as const) : random.oneOf(['INIT', 'RTR', 'RTS', 'SQD'] as const),
    // Requests posted some time after the QP has failed, perhaps after another 2ERR.
    late: times(1 + random.below(3), () => ({
      sends: some(),
      receives: some(),
      // A time from a microsecond to two seconds.
      afterUs: Math.round(10 ** (random.unit() * 6.3)),
      isRepeated: random.chance(0.3),
    })),
  });
  const rounds = times(1 + random.below(3), round);
  // SENDs in flight when the QP is brought to ERR: the peer has no receive for them, and its RNR NAKs do not end.
  const args = { rounds, waiting: some() };
  return { args, hasDrawnHardware: random.chance(0.3), sleepsSeconds: 24 } satisfies Draft<unknown>;
}

type Args = ArgsOf<typeof draw>;
type Round = Args['rounds'][number];

/** States of a life, with their visits. */
const lifeOf = ({ visits, last }: Round) =>
  [...states.entries()].flatMap(([at, state]) =>
    at <= states.indexOf(last) || at >= states.indexOf('ERR') ? [{ state, visit: visits[at]! }] : [],
  );

const qpn = topic<number>('qp');
const messagesTopic = topic<number>('messages');
const sentTopic = topic<true>('sent');

const toState = (qp: ibv.IbvQp, qpState: NonNullable<ibv.IbvQp['state']>): Promise<void> =>
  ibv.modifyQp(qp, { qpState }, ibv.IBV_QP_STATE);

/** Takes one QP after the other through all states. */
async function asker(stage: Stage<Args>): Promise<void> {
  const { rounds, waiting } = stage.args;
  const side = await connect(stage, options);
  const [qp] = (await side.device.rcQps(1, side.cq, cap)) as [ibv.IbvQp];
  for (const [number, round] of rounds.entries()) {
    const peer = { ...side.path, qpNum: await stage.swap(qpn, qp.qpNum), psn: number };
    const walk = new Walk(side, qp, `life ${number}`);
    for (const { state, visit } of lifeOf(round)) {
      if (state === 'INIT') await toInit(qp);
      if (state === 'RTR') await toRtr(qp, peer, usual);
      if (state === 'RTS') await toRts(qp, number, usual);
      if (state === 'SQD') await walk.stop();
      if (state === 'RTS again') await toState(qp, ibv.IBV_QPS_RTS);
      if (state === 'ERR' && round.last.startsWith('RTS')) {
        await walk.drain();
        walk.postSends(round.last, waiting, SEND);
      }
      if (state === 'ERR') await toState(qp, ibv.IBV_QPS_ERR);
      if (state === 'RESET again') await toState(qp, ibv.IBV_QPS_RESET);
      if (visit.isAhead) {
        await stage.put(messagesTopic, visit.messages);
        await stage.sleepUs(50);
      }
      // The messages of a state have their receives: the peer does not wait for one that never comes.
      walk.postReceives(state, visit.receives + (isReceivable(state) ? visit.messages : 0));
      walk.postSends(state, visit.sends);
      if (!visit.isAhead) await stage.put(messagesTopic, visit.messages);
      await stage.take(sentTopic);
      await walk.rest(state, visit);
      if (state === 'ERR') for (const late of round.late) await walk.postLate(late);
    }
    await stage.meet('round');
  }
}

/** The connected peer: sends the requested messages, and has receives for all that arrive. */
async function answerer(stage: Stage<Args>): Promise<void> {
  const side = await connect(stage, options);
  for (const [number, round] of stage.args.rounds.entries()) {
    const [qp] = (await side.device.rcQps(1, side.cq, cap)) as [ibv.IbvQp];
    const peer = { ...side.path, qpNum: await stage.swap(qpn, qp.qpNum), psn: number };
    await toInit(qp);
    await toRtr(qp, peer, usual);
    await toRts(qp, number, usual);
    for (const { state } of lifeOf(round)) {
      const messages = await stage.take(messagesTopic);
      for (let id = 0; id < messages; id++)
        ibv.postSend(qp, side.request(id, SEND, { lengthBytes: messageBytes }));
      const ended = await side.completions(messages);
      if (ended.length !== messages || ended.some(({ status }) => status !== 'SUCCESS'))
        stage.accuse(`of ${messages} messages to a QP in ${state} ${ended.length} ended, perhaps badly`);
      await stage.put(sentTopic, true);
    }
    await side.device.destroyQp(qp);
    await stage.meet('round');
  }
}

/** A QP on its way through the states. */
class Walk {
  readonly #side: Side;
  readonly #qp: ibv.IbvQp;
  readonly #what: string;
  /** IDs of accepted requests that have not ended: even ones are sends. */
  readonly #open = { send: [] as number[], receive: [] as number[] };
  #nextId = 0;
  #messagesDue = 0;
  #hasFailed = false;

  constructor(side: Side, qp: ibv.IbvQp, what: string) {
    this.#side = side;
    this.#qp = qp;
    this.#what = what;
  }

  postReceives(state: State, count: number): void {
    for (let left = count; left > 0; left--) {
      const wrId = 2 * this.#nextId++ + 1;
      const sgList = [this.#side.sge({ offset: 2048, lengthBytes: messageBytes })];
      const error = ibv.postRecv(this.#qp, { wrId, sgList, numSge: 1 });
      this.#posted(state, 'receive', wrId, error === 0, isReceivable(state));
    }
  }

  postSends(state: State, count: number, opcode: number = WRITE): void {
    for (let left = count; left > 0; left--) {
      const wrId = 2 * this.#nextId++;
      const error = ibv.postSend(this.#qp, this.#side.request(wrId, opcode, { lengthBytes: messageBytes }));
      this.#posted(state, 'send', wrId, error === 0, isSendable(state));
    }
  }

  /** Waits in a state, and judges the requests that end in it. */
  async rest(
    state: State,
    { messages, restNs }: { readonly messages: number; readonly restNs: number },
  ): Promise<void> {
    const { send, receive } = this.#open;
    if (state.startsWith('ERR')) {
      this.#hasFailed = true;
      this.#take(state, await this.#side.completions(send.length + receive.length, 100 * psPerMs));
      if (send.length + receive.length > 0)
        this.#say(`${send.length} sends and ${receive.length} receives of ${state} were not flushed`);
      // A reset drops outstanding completions.
      send.length = 0;
      receive.length = 0;
      return;
    }
    this.#messagesDue = messages;
    while (this.#messagesDue > 0) {
      const ended = await this.#side.completions(1);
      if (ended.length === 0) break;
      this.#take(state, ended);
    }
    if (this.#messagesDue > 0) this.#say(`${this.#messagesDue} messages did not come in ${state}`);
    await this.#side.stage.sleepNs(restNs);
  }

  /** Posts some time after the QP has failed, and judges that all is flushed. */
  async postLate({ sends, receives, afterUs, isRepeated }: Round['late'][number]): Promise<void> {
    await this.#side.stage.sleepUs(afterUs);
    if (isRepeated) await toState(this.#qp, ibv.IBV_QPS_ERR);
    this.postReceives('ERR later', receives);
    this.postSends('ERR later', sends);
    await this.rest('ERR later', { messages: 0, restNs: 0 });
  }

  /** Waits until everything sent has ended. */
  async drain(): Promise<void> {
    this.#take('RTS', await this.#side.completions(this.#open.send.length));
    if (this.#open.send.length > 0) this.#say(`${this.#open.send.length} sends did not end`);
  }

  /** Stops the send queue: requests posted from now on wait. */
  async stop(): Promise<void> {
    await this.drain();
    const attributes = { qpState: ibv.IBV_QPS_SQD, enSqdAsyncNotify: 0 };
    await ibv.modifyQp(this.#qp, attributes, ibv.IBV_QP_STATE | ibv.IBV_QP_EN_SQD_ASYNC_NOTIFY);
  }

  #posted(state: State, queue: 'send' | 'receive', id: number, isTaken: boolean, isDue: boolean): void {
    if (isTaken) this.#open[queue].push(id);
    if (isTaken !== isDue) this.#say(`a ${queue} in ${state} was ${isTaken ? 'taken' : 'refused'}`);
  }

  #take(state: State, ended: readonly Taken[]): void {
    for (const { id, status } of ended) {
      const queue = id % 2 === 0 ? 'send' : 'receive';
      const due = this.#open[queue].shift();
      if (due !== id) this.#say(`${queue} ${id} ended in ${state}, due was ${due}`);
      const isWell = status === 'SUCCESS';
      if (isWell && queue === 'receive') this.#messagesDue--;
      const isStopped = (state === 'SQD' && queue === 'send') || state === 'ERR later';
      const isLawful = isWell ? !isStopped : status === 'WR_FLUSH_ERR' && this.#hasFailed;
      if (!isLawful) this.#say(`${queue} ${id} ended in ${status} in ${state}`);
    }
  }

  #say(what: string): void {
    this.#side.stage.accuse(`${this.#what}: ${what}`);
  }
}

export const postedInAnyState = scene({
  about: 'receives and sends are posted in every state of a QP, also long after it has failed',
  draw,
  programs: [asker, answerer],
});
