/**
 * Plays one program of a story, as an ordinary program of the verbs library, and records its observations.
 *
 *     set up ─► tell the peers ─► connect ─► steps ─► all own sends done? ─► all programs done? ─► look at all bytes ─► leave
 *
 *     session ── what all parts share        areas · queues · links · windows ── objects
 *     waiting ── patience and meetings       requests · receives · completions · events ── traffic
 */
import { psPerNs } from '../../base/index.ts';
import type { ProgramContext } from '../../machine/index.ts';
import * as ibv from '../../userlib/index.ts';
import type { Observations } from '../observations.ts';
import { type Step, turnOfQp } from '../story.ts';
import { Areas } from './areas.ts';
import { Completions } from './completions.ts';
import { Events } from './events.ts';
import { Links } from './links.ts';
import { Queues } from './queues.ts';
import { Receives } from './receives.ts';
import { Requests } from './requests.ts';
import { type PlayerArgs, Session } from './session.ts';
import { Waiting } from './waiting.ts';
import { Windows } from './windows.ts';

/** The module's program. */
export async function play(program: ProgramContext<PlayerArgs>): Promise<Observations> {
  const session = new Session(program);
  await new Player(session).play();
  return session.seen;
}

type Doers = {
  readonly [Name in Step['do']]: (step: Extract<Step, { do: Name }>) => Promise<unknown> | unknown;
};

class Player {
  readonly #session: Session;
  readonly #receives: Receives;
  readonly #completions: Completions;
  readonly #waiting: Waiting;
  readonly #areas: Areas;
  readonly #queues: Queues;
  readonly #links: Links;
  readonly #windows: Windows;
  readonly #requests: Requests;
  readonly #events: Events;
  #turn = 0;

  constructor(session: Session) {
    this.#session = session;
    this.#receives = new Receives(session);
    this.#completions = new Completions(session, this.#receives);
    this.#waiting = new Waiting(session, this.#completions, this.#receives);
    this.#areas = new Areas(session, this.#waiting, this.#receives);
    this.#queues = new Queues(session, this.#completions, this.#receives);
    this.#links = new Links(session, this.#waiting);
    this.#windows = new Windows(session, this.#waiting);
    this.#requests = new Requests(session, this.#waiting, this.#windows);
    this.#events = new Events(session, this.#completions, this.#waiting);
  }

  async play(): Promise<void> {
    const session = this.#session;
    const isSetUp = await session.attempt('set up', () => this.#setUp());
    const isConnected = isSetUp && (await session.attempt('connect', () => this.#links.connect(0)));
    if (!isSetUp) await this.#links.refuse(0);
    if (!isConnected) {
      session.seen.failure = session.seen.refusals.at(-1) ?? 'not connected';
      await this.#giveUpQps();
    }
    session.isConnected = isConnected;
    if (isConnected) await this.#beginEarly(0);
    await this.#waiting.rendezvous('begin');
    if (isConnected) {
      for (const step of session.plan.steps) {
        if (step.do === 'exit') return this.#leaveEarly();
        await this.#reach(this.#queues.turnOf(step));
        await session.attempt(step.do, () => this.#step(step));
        await this.#completions.pump();
      }
      await this.#reach(session.turnCount);
      await this.#waiting.untilSent();
    } else await this.#announceTurns();
    await this.#windows.giveUp();
    await this.#waiting.rendezvous('sent');
    await this.#waiting.linger();
    this.#areas.look();
    this.#noteUnfinished();
    await this.#waiting.rendezvous('looked');
    await this.#leave();
  }

  async #setUp(): Promise<void> {
    const session = this.#session;
    const [device] = ibv.getDeviceList(session.program.verbs);
    if (device === undefined) throw new ibv.VerbsError('ibv_get_device_list', 'ENODEV', 'no device');
    session.context = await ibv.openDevice(device);
    session.port = await this.#links.activePort(session.context);
    session.pds = [await ibv.allocPd(session.context), await ibv.allocPd(session.context)];
    await this.#areas.open();
    await this.#windows.open(session.pds[0]!);
    await this.#queues.open();
  }

  /**
   * Destroys QPs: peers that are already connected may send, with unlimited RNR retries, messages that would never find
   * a receive.
   */
  async #giveUpQps(): Promise<void> {
    const session = this.#session;
    for (const index of session.qps.keys())
      await session.attempt('give up', () => this.#queues.modify(index, 'ERR'));
  }

  /** Posts receives of the QPs that are new at a turn, before any program sends. */
  async #beginEarly(turn: number): Promise<void> {
    const { qps, plan } = this.#session;
    for (const open of qps) if (turnOfQp(open.plan) === turn) open.isReady = true;
    for (const step of plan.early) if (this.#queues.turnOf(step) === turn) await this.#step(step);
  }

  // Executes turns up to this one.

  async #reach(turn: number): Promise<void> {
    while (this.#turn < turn) await this.#takeTurn(++this.#turn);
  }

  async #takeTurn(turn: number): Promise<void> {
    const session = this.#session;
    await this.#waiting.untilSent();
    // After the first barrier a program has the other host's values; after the second, the other host has its own.
    const [here, all, made] = meetingsOf(turn) as [string, string, string];
    await this.#waiting.rendezvous(here);
    await this.#waiting.rendezvous(all);
    await this.#waiting.linger();
    await session.attempt('renew', () => this.#renew(turn));
    await session.attempt('connect', () => this.#links.connect(turn));
    await this.#beginEarly(turn);
    await this.#waiting.rendezvous(made);
  }

  #renew(turn: number): Promise<void> {
    const { story, index } = this.#session;
    const { cqs, areas, isMoved } = story.turns![turn - 1]!.programs[index]!;
    return this.#queues.renew(turn, cqs, async () => {
      for (const area of areas) await this.#areas.renew(area, isMoved);
    });
  }

  /** A program that takes no more turns announces them all, so that no program waits for it. */
  async #announceTurns(): Promise<void> {
    for (let turn = this.#turn + 1; turn <= this.#session.turnCount; turn++) {
      for (const where of meetingsOf(turn)) await this.#waiting.announce(where);
      await this.#links.refuse(turn);
    }
  }

  // Steps.

  readonly #doers: Doers = {
    post: ({ qp, wrs }) => {
      const post = (): Promise<void> => this.#requests.post(qp, wrs);
      const { marks, program } = this.#session;
      return marks ? program.operation(`post on QP ${qp}`, post) : post();
    },
    receive: (step) => this.#receives.post(step),
    receiveShared: (step) => this.#receives.post(step),
    drain: ({ outstanding }) =>
      this.#waiting.until('a drain', () => this.#session.awaitedCount() <= outstanding),
    sleep: ({ ns }) => this.#session.program.cpu.sleep(ns * psPerNs),
    refill: ({ area }) => this.#areas.refill(area),
    reregister: ({ area }) => this.#areas.reregister(area),
    registerScratch: ({ pages, kept }) => this.#areas.registerScratch(pages, kept),
    deregister: ({ area, isRenewed }) => this.#areas.deregister(area, isRenewed === true),
    peek: ({ area, offset, length }) => this.#areas.peek(area, offset, length),
    resizeCq: ({ cq, entries }) => this.#queues.resizeCq(cq, entries),
    moderate: ({ cq, count, periodUs }) => this.#queues.moderate(cq, count, periodUs),
    awaitEvent: ({ cq, solicitedOnly }) => this.#events.awaitEvent(cq, solicitedOnly),
    modify: ({ qp, to }) => this.#queues.modify(qp, to),
    awaitAll: ({ cq }) => this.#events.awaitAll(cq),
    quiesce: ({ qp }) => this.#events.quiesce(qp),
    limitShared: ({ srq, limit }) => this.#queues.armLimit(srq, limit),
    destroy: ({ qp }) => this.#queues.destroy(qp),
    churn: ({ pages }) => this.#areas.churn(pages),
    giveBack: ({ area, page, pages }) => this.#areas.giveBack(area, page, pages),
    tell: ({ what, bind }) => this.#windows.tell(what, bind),
    await: ({ what, bind }) => this.#windows.hear(what, bind),
    deallocateWindow: ({ window }) => this.#windows.deallocate(window),
    refillTarget: ({ area }) => this.#areas.refillTarget(area),
    turn: () => {},
    exit: () => {},
  };

  async #step(step: Step): Promise<void> {
    const done = this.#doers[step.do] as (step: Step) => Promise<unknown> | unknown;
    await done(step);
  }

  // Leaving.

  #noteUnfinished(): void {
    const { qps, seen } = this.#session;
    for (const { outstanding } of qps) seen.unfinished.push(...outstanding.map(({ id }) => id));
  }

  async #leaveEarly(): Promise<void> {
    this.#noteUnfinished();
    await this.#announceTurns();
    await this.#windows.giveUp();
    for (const where of ['sent', 'looked']) await this.#waiting.announce(where);
  }

  async #leave(): Promise<void> {
    const { context, qps, cqs, channels, srqs, pds } = this.#session;
    if (context === undefined) return;
    await this.#events.noteLeft();
    const leave = (what: string, body: () => Promise<unknown>): Promise<boolean> =>
      this.#session.attempt(`leave: ${what}`, body);
    for (const { qp } of qps) if (qp !== undefined) await leave('QP', () => ibv.destroyQp(qp));
    for (const cq of cqs) {
      if (cq === undefined) continue;
      ibv.ackCqEvents(cq, cq.eventsUnacked);
      await leave('CQ', () => ibv.destroyCq(cq));
    }
    for (const channel of channels)
      if (channel !== undefined) await leave('channel', () => ibv.destroyCompChannel(channel));
    for (const srq of srqs) if (srq !== undefined) await leave('SRQ', () => ibv.destroySrq(srq));
    for (const mw of this.#windows.left) await leave('window', () => ibv.deallocMw(mw));
    for (const mr of this.#areas.regions) await leave('MR', () => ibv.deregMr(mr));
    for (const pd of pds) await leave('PD', () => ibv.deallocPd(pd));
    await leave('device', () => ibv.closeDevice(context));
  }
}

const meetingsOf = (turn: number): string[] => [`turn ${turn}`, `turn ${turn}, all`, `turned ${turn}`];
