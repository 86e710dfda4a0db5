/**
 * Plays one program of a story, as an ordinary program of the verbs library, and writes down what it sees.
 *
 *     set up ─► tell the peers ─► connect ─► steps ─► all own sends done? ─► everybody's done? ─► look at all bytes ─► leave
 *
 * It never waits for ever: every wait ends when nothing has moved for longer than the attributes of its QPs explain. While
 * it waits it polls all its CQs, and posts receives for which there was no room.
 */
import { psPerMs, psPerNs, psPerSecond, psPerUs } from '../base/index.ts';
import { handleTo, type PortAddress } from '../experiments/workloads/index.ts';
import type { JsonValue, ProgramContext } from '../machine/index.ts';
import {
  ackCqEvents,
  allocPd,
  type BadWr,
  bindMw,
  closeDevice,
  createCompChannel,
  createCq,
  createQp,
  createSrq,
  deallocPd,
  deregMr,
  destroyCompChannel,
  destroyCq,
  destroyQp,
  destroySrq,
  ENOMEM,
  eventTypeStr,
  getAsyncEvent,
  getCqEvent,
  getDeviceList,
  IBV_ACCESS_LOCAL_WRITE,
  IBV_LINK_LAYER_ETHERNET,
  IBV_MW_TYPE_1,
  IBV_PORT_ACTIVE,
  IBV_QP_EN_SQD_ASYNC_NOTIFY,
  IBV_QP_STATE,
  IBV_QPS_ERR,
  IBV_QPS_RESET,
  IBV_QPS_RTS,
  IBV_QPS_SQD,
  IBV_QPT_RC,
  IBV_QPT_UC,
  IBV_QPT_UD,
  IBV_SEND_FENCE,
  IBV_SEND_INLINE,
  IBV_SEND_SIGNALED,
  IBV_SEND_SOLICITED,
  IBV_SRQ_LIMIT,
  IBV_WC_SUCCESS,
  IBV_WC_WR_FLUSH_ERR,
  IBV_WR_LOCAL_INV,
  IBV_WR_RDMA_READ,
  IBV_WR_SEND_WITH_INV,
  type IbvAh,
  type IbvCompChannel,
  type IbvContext,
  type IbvCq,
  type IbvMr,
  type IbvPd,
  type IbvQp,
  type IbvQpInitAttr,
  type IbvRecvWr,
  type IbvSendWr,
  type IbvSge,
  type IbvSrq,
  IbvWc,
  modifyCq,
  modifyQp,
  modifySrq,
  openDevice,
  type PortAttr,
  pollCq,
  postRecv,
  postSend,
  postSrqRecv,
  queryGid,
  queryPort,
  queryQp,
  regMr,
  reqNotifyCq,
  resizeCq,
  VerbsError,
} from '../userlib/index.ts';
import { qkey, ready } from './connecting.ts';
import { isAtomicVerb } from './draw-story.ts';
import type { CompletionSeen, Observations } from './observations.ts';
import { basePatiencePs, patienceOf, peerPatienceFactor } from './patience.ts';
import { PlayerWindows } from './player-windows.ts';
import {
  isCurrent,
  isOnDemandArea,
  lengthOf,
  type ProgramPlan,
  patternInto,
  peerOfQp,
  type QpPlan,
  type ReceivePlan,
  type Renewal,
  type SendPlan,
  type SgePlan,
  type Step,
  type Story,
  type Told,
  turnOfQp,
} from './story.ts';

/** A program's arguments: the story, and which of its programs it is. */
export interface PlayerArgs {
  readonly story: Story;
  readonly program: number;
  /** Whether it marks what it posts as operations, whose costs the machine attributes. */
  readonly marks: boolean;
}

/** The module's program. */
export async function play(program: ProgramContext): Promise<JsonValue> {
  const { story, program: index, marks } = program.args as unknown as PlayerArgs;
  const player = new Player(program, story, index, marks);
  await player.play();
  return player.seen() as unknown as JsonValue;
}

/** A key that the driver never gives out. */
const wrongKey = 0xdead_be00;
const pageBytes = 4096;
const polledAtOnce = 16;
const napPs = 300 * psPerNs;
/** A program that has waited so long posts what receives it has. */
const hastePs = 200 * psPerUs;
const eventPatiencePs = 50 * psPerUs;
/** An event comes later than its completion, but not so much later, whatever the hardware. */
const eventLimitPs = 20 * psPerMs;
/** What has been under way when a send queue is drained would have shown itself by then. */
const drainedPs = 100 * psPerUs;
const eventsAckedAtOnce = 3;

interface PeerNews {
  readonly lid: number;
  /** Of the port, on Ethernet. */
  readonly gid?: readonly number[];
  readonly qpNum: number;
  readonly areas: readonly (readonly [address: number, rkey: number])[];
}

interface OpenArea {
  address: number;
  mr: IbvMr | undefined;
  readonly lengthBytes: number;
}

interface OpenQp {
  readonly plan: QpPlan;
  qp: IbvQp | undefined;
  /** Requests that it was granted room for. */
  sendRoom: number;
  peer: PeerNews | undefined;
  /** What the peer's areas were before the last turn. */
  formerPeer: PeerNews | undefined;
  ah: IbvAh | undefined;
  /** Posted and not known to have ended, in order. */
  outstanding: SendPlan[];
  /** Id of the last that was posted to complete with a completion: what comes after it is not waited for. */
  lastSignalled: number;
  sinceSignal: number;
  /** Ids of the last requests that the plan posts here before each turn: they are signalled, so that the end is seen. */
  readonly lastIds: ReadonlySet<number>;
  /** Whether receives may be posted: in order, the early ones first. */
  isReady: boolean;
}

interface Deferred {
  readonly qp: number;
  readonly srq: number;
  readonly plan: ReceivePlan;
}

type Mutable<T> = { -readonly [Key in keyof T]: T[Key] extends readonly (infer Item)[] ? Item[] : T[Key] };

class Player {
  readonly #program: ProgramContext;
  readonly #story: Story;
  readonly #index: number;
  readonly #marks: boolean;
  readonly #plan: ProgramPlan;
  readonly #patiencePs: number;
  /** Nothing has moved for so long once: later steps wait less, and only the end waits as long again. */
  #isImpatient = false;
  /** Its QPs take receives. */
  #isConnected = false;
  readonly #areas: OpenArea[] = [];
  readonly #fills: number[] = [];
  readonly #cqs: (IbvCq | undefined)[] = [];
  readonly #cqNeeds: number[] = [];
  readonly #channels: (IbvCompChannel | undefined)[] = [];
  readonly #srqs: (IbvSrq | undefined)[] = [];
  readonly #qps: OpenQp[] = [];
  readonly #qpByNumber = new Map<number, number>();
  readonly #receivesById = new Map<number, ReceivePlan>();
  readonly #sendsById = new Map<number, SendPlan>();
  readonly #wcs = Array.from({ length: polledAtOnce }, () => new IbvWc());
  #deferred: Deferred[] = [];
  /** Receives that have been posted and not completed, by id. */
  readonly #pendingReceives = new Map<number, Deferred>();
  readonly #scratch: { readonly mr: IbvMr; readonly address: number; readonly lengthBytes: number }[] = [];
  /** How requests to send have ended, by id. */
  readonly #statuses = new Map<number, number>();
  readonly #windows: PlayerWindows;
  #turn = 0;
  #context: IbvContext | undefined;
  #port: PortAttr | undefined;
  #pds: IbvPd[] = [];
  readonly #seen: Mutable<Observations> = {
    failure: null,
    posts: [],
    receives: [],
    completions: [],
    fills: [],
    givenBack: [],
    peeks: [],
    deregistrations: [],
    deallocations: [],
    broken: [],
    finals: [],
    finalPs: 0,
    events: [],
    refusals: [],
    impatience: [],
    unfinished: [],
    doorbells: 0,
    missing: [],
    surprises: [],
    limitsArmed: 0,
  };

  constructor(program: ProgramContext, story: Story, index: number, marks: boolean) {
    this.#program = program;
    this.#marks = marks;
    this.#story = story;
    this.#index = index;
    this.#plan = story.programs[index]!;
    this.#patiencePs = patienceOf(story);
    this.#windows = new PlayerWindows(story, this.#plan, program.exchange);
  }

  /** The core's own time; beyond 2^53 ps, two and a half hours, to the nearest number. */
  get #nowPs(): number {
    return Number(this.#program.cpu.instantPs);
  }

  seen(): Observations {
    return this.#seen;
  }

  async play(): Promise<void> {
    const isSetUp = await this.#attempt('set up', () => this.#setUp());
    const isConnected = isSetUp && (await this.#attempt('connect', () => this.#connect(0)));
    if (!isSetUp) await this.#refuseLinks(0);
    if (!isConnected) {
      this.#seen.failure = this.#seen.refusals.at(-1) ?? 'not connected';
      await this.#giveUpQps();
    }
    this.#isConnected = isConnected;
    if (isConnected) await this.#beginEarly(0);
    await this.#rendezvous('begin');
    if (isConnected) {
      for (const step of this.#plan.steps) {
        if (step.do === 'exit') {
          await this.#leaveEarly();
          return;
        }
        await this.#reach(this.#turnOf(step));
        await this.#attempt(step.do, () => this.#step(step));
        await this.#pump();
      }
      await this.#reach(this.#turnCount);
      await this.#until('sends to complete', () => this.#outstandingCount() === 0, this.#patiencePs);
    }
    if (!isConnected) await this.#announceTurns();
    await this.#windows.giveUp();
    await this.#rendezvous('sent');
    await this.#linger();
    this.#look();
    await this.#rendezvous('looked');
    await this.#leave();
  }

  // Setting up.

  async #setUp(): Promise<void> {
    const program = this.#program;
    const [device] = getDeviceList(program.verbs);
    if (device === undefined) throw new VerbsError('ibv_get_device_list', 'ENODEV', 'no device');
    this.#context = await openDevice(device);
    this.#port = await this.#activePort(this.#context);
    this.#pds = [await allocPd(this.#context), await allocPd(this.#context)];
    for (const [index, { lengthBytes, shiftBytes }] of this.#plan.areas.entries()) {
      const address = program.memory.map(shiftBytes + lengthBytes + pageBytes) + shiftBytes;
      this.#areas.push({ address, mr: undefined, lengthBytes });
      this.#fills.push(-1);
      this.#fill(index);
    }
    for (const [index, { access, isForeign }] of this.#plan.areas.entries()) {
      const { address, lengthBytes } = this.#areas[index]!;
      this.#areas[index]!.mr = await regMr(this.#pds[isForeign ? 1 : 0]!, address, lengthBytes, access);
    }
    await this.#windows.allocate(this.#pds[0]!);
    await this.#makeQueues(this.#context);
  }

  async #activePort(context: IbvContext): Promise<PortAttr> {
    for (let waits = 0; ; waits++) {
      const port = await queryPort(context, 1);
      const isReady =
        port.linkLayer === IBV_LINK_LAYER_ETHERNET ? port.state === IBV_PORT_ACTIVE : port.lid !== 0;
      if (isReady || waits > 200) return port;
      await this.#program.cpu.sleep(psPerMs);
    }
  }

  async #makeQueues(context: IbvContext): Promise<void> {
    const { cqs, srqs, qps } = this.#plan;
    for (const [index, { hasChannel }] of cqs.entries()) {
      const needed = qps.reduce(
        (sum, qp) =>
          sum +
          (qp.sendCq === index ? 8 * qp.maxSendWr + 64 : 0) +
          (qp.recvCq === index ? 4 * qp.maxRecvWr + 256 : 0),
        16,
      );
      this.#cqNeeds.push(needed);
      const channel = hasChannel ? await createCompChannel(context) : undefined;
      this.#channels.push(channel);
      this.#cqs.push(await this.#makeCq(index));
    }
    for (const { maxWr, maxSge } of srqs)
      this.#srqs.push(await createSrq(this.#pds[0]!, { attr: { maxWr, maxSge } }));
    for (const [index, plan] of qps.entries()) {
      if (index === 1 && this.#plan.qpnGap > 0) await this.#passQpns(plan, this.#plan.qpnGap);
      this.#qps.push({
        plan,
        qp: undefined,
        sendRoom: 0,
        peer: undefined,
        formerPeer: undefined,
        ah: undefined,
        outstanding: [],
        lastSignalled: -1,
        sinceSignal: 0,
        lastIds: this.#lastIdsOf(index),
        isReady: false,
      });
      if (turnOfQp(plan) === 0) await this.#makeQp(index);
    }
  }

  /** Makes QPs and destroys them again, so that the next one has a number that lies so far behind. */
  async #passQpns({ transport }: QpPlan, count: number): Promise<void> {
    const passed: IbvQp[] = [];
    const [cq] = this.#cqs;
    for (let made = 0; made < count; made++)
      passed.push(
        await createQp(this.#pds[0]!, {
          sendCq: cq!,
          recvCq: cq!,
          qpType: typeOf({ transport }),
          cap: { maxSendWr: 1 },
        }),
      );
    for (const qp of passed) await destroyQp(qp);
  }

  async #makeQp(index: number): Promise<void> {
    const open = this.#qps[index]!;
    const { plan } = open;
    const [sendCq, recvCq] = [this.#cqs[plan.sendCq], this.#cqs[plan.recvCq]];
    // A CQ that was to be made anew could not be: the device had gone meanwhile.
    if (sendCq === undefined || recvCq === undefined) return;
    const init: IbvQpInitAttr = {
      sendCq,
      recvCq,
      srq: plan.srq >= 0 ? this.#srqs[plan.srq]! : null,
      qpType: typeOf(plan),
      sqSigAll: plan.isSignalAll ? 1 : 0,
      cap: {
        maxSendWr: plan.maxSendWr,
        maxRecvWr: plan.srq >= 0 ? 0 : plan.maxRecvWr,
        maxSendSge: plan.maxSge,
        maxRecvSge: plan.srq >= 0 ? 0 : plan.maxSge,
        maxInlineData: plan.maxInline,
      },
    };
    const qp = await createQp(this.#pds[0]!, init);
    open.sendRoom = init.cap.maxSendWr ?? 0;
    this.#isHere(index, qp);
  }

  #isHere(index: number, qp: IbvQp): void {
    const open = this.#qps[index]!;
    open.qp = qp;
    this.#qpByNumber.set(qp.qpNum, index);
  }

  /** The last request of a QP before each turn, and before the end. */
  #lastIdsOf(qp: number): ReadonlySet<number> {
    const lastByTurn = new Map<number, number>();
    let turn = 0;
    for (const step of this.#plan.steps) {
      turn = Math.max(turn, this.#turnOf(step));
      const last = step.do === 'post' && step.qp === qp ? step.wrs.at(-1) : undefined;
      if (last !== undefined) lastByTurn.set(turn, last.id);
    }
    return new Set(lastByTurn.values());
  }

  // Connecting.

  /** Publishes to the peers where QPs and areas are now, and connects the QPs that are new at this turn. */
  async #connect(turn: number): Promise<void> {
    const { exchange } = this.#program;
    const links = this.#plan.qps.flatMap((_, index) => {
      const peer = peerOfQp(this.#story, this.#index, index);
      return peer !== undefined && isCurrent(this.#plan, index, turn) ? [{ index, peer }] : [];
    });
    const areas = this.#areas.map(
      ({ address, mr }, area) => [address, mr?.rkey ?? this.#oldKeys.get(area) ?? wrongKey] as const,
    );
    for (const { index, peer } of links) {
      const { qp } = this.#qps[index]!;
      const news =
        qp === undefined ? null : { ...(await this.#addressFor(peer.link)), qpNum: qp.qpNum, areas };
      if (peer.program === this.#index) this.#connectWithPeer(this.#qps[peer.qp]!, news);
      else await exchange.put(mailboxOf(peer.link, turn, peer), news as unknown as JsonValue);
    }
    for (const { index, peer } of links) {
      const open = this.#qps[index]!;
      if (peer.program !== this.#index) {
        const box = mailboxOf(peer.link, turn, { program: this.#index, qp: index });
        let news: PeerNews | null | undefined;
        const isHere = async (): Promise<boolean> => {
          news = (await exchange.poll(box)) as unknown as PeerNews | null | undefined;
          return news !== undefined;
        };
        await this.#until(`news of link ${peer.link}`, isHere, peerPatienceFactor * this.#patiencePs);
        this.#connectWithPeer(open, news ?? null);
      }
      const { qp, plan, peer: there } = open;
      if (qp === undefined || there === undefined || turnOfQp(plan) !== turn) continue;
      const other = this.#story.programs[peer.program]!.qps[peer.qp]!;
      const { gidIndex: sgidIndex } = this.#story.links[peer.link]!;
      const found = {
        lid: there.lid,
        ...(there.gid === undefined || sgidIndex === undefined ? {} : { gid: there.gid, sgidIndex }),
      };
      await ready(qp, plan, { ...found, qpNum: there.qpNum, psn: other.psn });
      if (plan.transport === 'UD') open.ah = await handleTo(this.#pds[0]!, found);
    }
  }

  /** Where the port is found by the QPs of a link: by its LID, or by a GID. */
  async #addressFor(link: number): Promise<PortAddress> {
    const { lid } = this.#port!;
    const { gidIndex } = this.#story.links[link]!;
    return gidIndex === undefined
      ? { lid }
      : { lid, gid: [...(await queryGid(this.#context!, 1, gidIndex))] };
  }

  /** Peers that are connected already may send, with RNR retries without end, what would never meet a receive. */
  async #giveUpQps(): Promise<void> {
    for (const index of this.#qps.keys()) await this.#attempt('give up', () => this.#modify(index, 'ERR'));
  }

  #connectWithPeer(open: OpenQp, news: PeerNews | null): void {
    open.formerPeer = open.peer ?? open.formerPeer;
    open.peer = news ?? undefined;
  }

  /** Receives of the QPs that are new at a turn, before any program sends. */
  async #beginEarly(turn: number): Promise<void> {
    for (const open of this.#qps) if (turnOfQp(open.plan) === turn) open.isReady = true;
    for (const step of this.#plan.early) if (this.#turnOf(step) === turn) await this.#step(step);
  }

  // Turns.

  get #turnCount(): number {
    return this.#story.turns?.length ?? 0;
  }

  /** The turn before which a step cannot be: its QP is not there yet. */
  #turnOf(step: Step): number {
    const qp = 'qp' in step ? this.#plan.qps[step.qp] : undefined;
    const turn = step.do === 'turn' ? step.turn : qp === undefined ? 0 : turnOfQp(qp);
    return Math.min(this.#turnCount, turn);
  }

  async #reach(turn: number): Promise<void> {
    while (this.#turn < turn) await this.#takeTurn(++this.#turn);
  }

  async #takeTurn(turn: number): Promise<void> {
    await this.#until('sends to complete', () => this.#outstandingCount() === 0, this.#patiencePs);
    // After the first barrier a program has the other host's values; after the second, the other host has its own.
    const [here, all, made] = meetingsOf(turn) as [string, string, string];
    await this.#rendezvous(here);
    await this.#rendezvous(all);
    await this.#linger();
    await this.#attempt('renew', () => this.#renew(turn));
    await this.#attempt('connect', () => this.#connect(turn));
    await this.#beginEarly(turn);
    await this.#rendezvous(made);
  }

  /** A program that takes no more turns is not awaited. */
  async #announceTurns(): Promise<void> {
    for (let turn = this.#turn + 1; turn <= this.#turnCount; turn++) {
      for (const where of meetingsOf(turn)) await this.#announce(where);
      await this.#refuseLinks(turn);
    }
  }

  /** Peers that wait for news of a link at this turn hear that there are none. */
  async #refuseLinks(turn: number): Promise<void> {
    const { exchange } = this.#program;
    for (const index of this.#plan.qps.keys()) {
      const peer = peerOfQp(this.#story, this.#index, index);
      if (peer !== undefined && peer.program !== this.#index && isCurrent(this.#plan, index, turn))
        await exchange.put(mailboxOf(peer.link, turn, peer), null);
    }
  }

  /** Takes down and makes again what this turn says, QPs before the CQs that they use. */
  async #renew(turn: number): Promise<void> {
    const { cqs, areas, isMoved } = this.#story.turns![turn - 1]!.programs[this.#index]!;
    const renewed = [...this.#plan.qps.entries()].filter(([, plan]) => turnOfQp(plan) === turn);
    for (const [index, { renewal }] of renewed) await this.#takeDown(index, renewal!);
    for (const index of cqs) await this.#renewCq(index);
    for (const area of areas) await this.#renewArea(area, isMoved);
    for (const [index] of renewed) if (this.#qps[index]!.qp === undefined) await this.#makeQp(index);
  }

  async #takeDown(index: number, { of: formerIndex, how }: Renewal): Promise<void> {
    const former = this.#qps[formerIndex]!;
    const { qp } = former;
    this.#seen.unfinished.push(...former.outstanding.map(({ id }) => id));
    former.outstanding = [];
    former.qp = undefined;
    this.#qps[index]!.formerPeer = former.peer;
    for (const [id, pending] of this.#pendingReceives)
      if (pending.qp === formerIndex) this.#pendingReceives.delete(id);
    if (qp === undefined) return;
    if (how === 'create') return destroyQp(qp);
    await modifyQp(qp, { qpState: IBV_QPS_RESET }, IBV_QP_STATE);
    this.#qps[index]!.sendRoom = former.sendRoom;
    this.#isHere(index, qp);
  }

  async #renewCq(index: number): Promise<void> {
    const cq = this.#cqs[index];
    const isUsed = this.#qps.some(
      ({ qp, plan }) => qp !== undefined && (plan.sendCq === index || plan.recvCq === index),
    );
    if (cq === undefined || isUsed) return;
    ackCqEvents(cq, cq.eventsUnacked);
    await destroyCq(cq);
    this.#cqs[index] = undefined;
    this.#cqs[index] = await this.#makeCq(index);
  }

  #makeCq(index: number): Promise<IbvCq> {
    const context = this.#context!;
    const vector = this.#plan.cqs[index]!.vector % context.numCompVectors;
    return createCq(context, this.#cqNeeds[index]!, null, this.#channels[index] ?? null, vector);
  }

  async #renewArea(area: number, isMoved: boolean): Promise<void> {
    const open = this.#areas[area];
    const isPending = [...this.#pendingReceives.values()].some(({ plan }) => isIn(plan.sges, area));
    if (open?.mr === undefined || isPending || this.#isReadByOwn(area)) return;
    await this.#reregister(area, open, open.mr, isMoved ? () => this.#moveArea(area, open) : () => {});
  }

  /** @param meanwhile done while the memory is the program's alone */
  async #reregister(area: number, open: OpenArea, mr: IbvMr, meanwhile: () => void): Promise<void> {
    const { access, isForeign } = this.#plan.areas[area]!;
    this.#oldKeys.set(area, mr.lkey);
    open.mr = undefined;
    await deregMr(mr);
    meanwhile();
    open.mr = await regMr(this.#pds[isForeign ? 1 : 0]!, open.address, open.lengthBytes, access);
  }

  /** The same bytes at another address; others at once in the frames where they were. */
  #moveArea(area: number, open: OpenArea): void {
    const { memory } = this.#program;
    const { shiftBytes } = this.#plan.areas[area]!;
    const mapped = shiftBytes + open.lengthBytes + pageBytes;
    const bytes = memory.read(open.address, open.lengthBytes);
    const from = open.address - shiftBytes;
    open.address = memory.map(mapped) + shiftBytes;
    memory.write(open.address, bytes);
    memory.unmap(from, mapped);
    this.#churn(Math.ceil(mapped / pageBytes));
  }

  // Steps.

  async #step(step: Step): Promise<void> {
    switch (step.do) {
      case 'post': {
        const post = (): Promise<void> => this.#post(step.qp, step.wrs);
        return this.#marks ? this.#program.operation(`post on QP ${step.qp}`, post) : post();
      }
      case 'receive':
        for (const plan of step.wrs) this.#receive({ qp: step.qp, srq: -1, plan });
        return;
      case 'receiveShared':
        for (const plan of step.wrs) this.#receive({ qp: -1, srq: step.srq, plan });
        return;
      case 'drain':
        await this.#until('a drain', () => this.#awaitedCount() <= step.outstanding);
        return;
      case 'sleep':
        return this.#program.cpu.sleep(step.ns * psPerNs);
      case 'refill':
        await this.#until('a refill', () => this.#awaitedCount() === 0);
        if (!this.#isReadByOwn(step.area) && this.#areas[step.area] !== undefined) this.#fill(step.area);
        return;
      case 'reregister':
        return this.#renewSource(step.area);
      case 'registerScratch':
        return this.#registerScratch(step.pages, step.kept);
      case 'deregister':
        return this.#deregister(step.area, step.isRenewed === true);
      case 'peek':
        return this.#peek(step.area, step.offset, step.length);
      case 'resizeCq':
        return this.#resize(step.cq, step.entries);
      case 'moderate': {
        const cq = this.#cqs[step.cq];
        if (cq !== undefined) await modifyCq(cq, step.count, step.periodUs);
        return;
      }
      case 'awaitEvent':
        return this.#awaitEvent(step.cq, step.solicitedOnly);
      case 'modify':
        return this.#modify(step.qp, step.to);
      case 'awaitAll':
        return this.#awaitAll(step.cq);
      case 'quiesce':
        return this.#quiesce(step.qp);
      case 'limitShared': {
        const srq = this.#srqs[step.srq];
        if (srq === undefined) return;
        await modifySrq(srq, { srqLimit: step.limit }, IBV_SRQ_LIMIT);
        this.#seen.limitsArmed++;
        return;
      }
      case 'destroy':
        return this.#destroy(step.qp);
      case 'churn':
        return this.#churn(step.pages);
      case 'giveBack':
        return this.#giveBack(step.area, step.page, step.pages);
      case 'tell':
        return this.#tell(step.what, step.bind);
      case 'await':
        await this.#hear(step.what, step.bind);
        return;
      case 'deallocateWindow':
        return this.#deallocateWindow(step.window);
      case 'refillTarget': {
        // What the program has taken back is its own at this very instant.
        await this.#program.cpu.settle();
        this.#fill(step.area, 8 * this.#plan.areas[step.area]!.atomicWords);
        return;
      }
      case 'turn':
      case 'exit':
        return;
    }
  }

  async #post(index: number, plans: readonly SendPlan[]): Promise<void> {
    const open = this.#qps[index];
    let left = await this.#possible(plans);
    while (left.length > 0) {
      if (open?.qp === undefined || open.peer === undefined) return;
      const before = left.length;
      left = this.#postSome(index, open, open.qp, left);
      if (left.length === 0) return;
      if (left.length === before && !(await this.#until('room in a send queue', () => this.#hasRoom(open))))
        return;
    }
  }

  /** The requests for which the program has what they need: a request by the key of a window that is not bound is none. */
  async #possible(plans: readonly SendPlan[]): Promise<readonly SendPlan[]> {
    const found: SendPlan[] = [];
    for (const plan of plans) {
      const isByPeersKey = plan.through !== undefined && plan.opcode !== IBV_WR_LOCAL_INV;
      if (isByPeersKey && (await this.#hear('bound', plan.through)) === null) continue;
      if (this.#windows.isPossible(plan, this.#areas)) found.push(plan);
    }
    return found;
  }

  async #tell(what: Told, bind: number): Promise<void> {
    if (what === 'bound') {
      await this.#until('a bind', () => !this.#isOutstanding(({ id }) => id === bind));
      const isBound = this.#statuses.get(bind) === IBV_WC_SUCCESS;
      const key = isBound ? this.#windows.ownKey(bind) : undefined;
      return this.#windows.tell(what, bind, (key ?? null) as unknown as JsonValue);
    }
    if (what === 'used') {
      await this.#until(
        'the uses of a window',
        () => !this.#isOutstanding(({ through }) => through === bind),
      );
      return this.#windows.tell(what, bind, true);
    }
    const takers = this.#takersOf(bind);
    await this.#until(
      'a window to be taken back',
      () => !this.#isOutstanding(({ id }) => takers.includes(id)),
    );
    return this.#windows.tell(
      what,
      bind,
      takers.every((id) => this.#statuses.get(id) === IBV_WC_SUCCESS),
    );
  }

  /** Ids of the requests of this program that are to invalidate what a bind has bound; one with a flaw does not succeed. */
  #takersOf(bind: number): number[] {
    const isTaker = ({ opcode, through }: SendPlan): boolean =>
      through === bind && (opcode === IBV_WR_LOCAL_INV || opcode === IBV_WR_SEND_WITH_INV);
    return this.#plan.steps.flatMap((step) =>
      step.do === 'post' ? step.wrs.filter(isTaker).map(({ id }) => id) : [],
    );
  }

  /** @returns what the other program has told of a binding; null when it did not, or will not */
  async #hear(what: Told, bind: number): Promise<JsonValue> {
    if (!this.#windows.isToBeTold(what, bind)) return null;
    let told: JsonValue | undefined;
    await this.#until(
      `news that a window is ${what}`,
      async () => {
        told = await this.#windows.heard(what, bind);
        return told !== undefined;
      },
      peerPatienceFactor * this.#patiencePs,
    );
    return told ?? null;
  }

  #isOutstanding(isMeant: (plan: SendPlan) => boolean): boolean {
    return this.#qps.some(({ outstanding }) => outstanding.some(isMeant));
  }

  async #deallocateWindow(window: number): Promise<void> {
    const fromPs = this.#nowPs;
    if (await this.#windows.deallocate(window))
      this.#seen.deallocations.push({ window, fromPs, toPs: this.#nowPs });
  }

  /** One call of post_send. @returns what found no room */
  #postSome(index: number, open: OpenQp, qp: IbvQp, plans: readonly SendPlan[]): readonly SendPlan[] {
    let sinceSignal = open.sinceSignal;
    const wrs = plans.map((plan) => {
      const wr = this.#sendWr(open, plan, sinceSignal);
      sinceSignal = (wr.sendFlags & IBV_SEND_SIGNALED) === 0 ? sinceSignal + 1 : 0;
      return wr;
    });
    for (const [at, wr] of wrs.entries()) wr.next = wrs[at + 1] ?? null;
    const bad: BadWr<IbvSendWr> = { wr: null, index: 0 };
    const fromPs = this.#nowPs;
    const error = postList(qp, wrs[0]!, bad);
    const toPs = this.#nowPs;
    const postedCount = error === 0 ? plans.length : bad.index;
    if (postedCount > 0) this.#seen.doorbells++;
    for (const [at, plan] of plans.slice(0, postedCount).entries()) {
      const isSignalled = open.plan.isSignalAll || (wrs[at]!.sendFlags & IBV_SEND_SIGNALED) !== 0;
      const key = this.#windows.posted(plan, this.#areas);
      const ofWindow = key === undefined ? {} : { key };
      this.#seen.posts.push({ id: plan.id, qp: index, fromPs, toPs, error: 0, isSignalled, ...ofWindow });
      this.#sendsById.set(plan.id, plan);
      open.outstanding.push(plan);
      open.sinceSignal = isSignalled ? 0 : open.sinceSignal + 1;
      if (isSignalled) open.lastSignalled = plan.id;
    }
    if (open.outstanding.length > open.sendRoom)
      this.#seen.surprises.push(
        `QP ${index} holds ${open.outstanding.length} requests, it was granted room for ${open.sendRoom}`,
      );
    if (error === 0) return [];
    if (error === ENOMEM) return plans.slice(postedCount);
    this.#seen.posts.push({ id: plans[postedCount]!.id, qp: index, fromPs, toPs, error, isSignalled: false });
    return plans.slice(postedCount + 1);
  }

  #hasRoom({ outstanding, plan }: OpenQp): boolean {
    return outstanding.length < plan.maxSendWr;
  }

  /** @param sinceSignal requests in front of it that complete without a completion: a queue full of such never has room again */
  #sendWr(open: OpenQp, plan: SendPlan, sinceSignal: number): IbvSendWr {
    const mustSignal = open.lastIds.has(plan.id) || sinceSignal + 1 >= Math.max(1, open.plan.maxSendWr >> 1);
    const flags =
      (plan.isSignalled || mustSignal ? IBV_SEND_SIGNALED : 0) |
      (plan.isFenced ? IBV_SEND_FENCE : 0) |
      (plan.isSolicited ? IBV_SEND_SOLICITED : 0) |
      (plan.isInline ? IBV_SEND_INLINE : 0);
    const wr: IbvSendWr = {
      wrId: plan.id,
      sgList: this.#sges(plan.sges, plan.flaw, isNear(plan)),
      numSge: plan.sges.length,
      opcode: plan.opcode,
      sendFlags: flags,
      immData: plan.imm ?? 0,
    };
    const { remote, bind } = plan;
    const window = plan.through === undefined ? undefined : this.#windows.keyOf(plan);
    if (bind !== undefined) wr.bindMw = this.#windows.bindOf(plan, bind, this.#areas);
    else if (window !== undefined && remote === undefined) wr.invalidateRkey = window.rkey;
    if (open.ah !== undefined) {
      wr.wr = { ud: { ah: open.ah, remoteQpn: open.peer!.qpNum, remoteQkey: qkey } };
    } else if (remote !== undefined) {
      const [address, rkey] = open.peer!.areas[remote.area]!;
      const offset =
        plan.flaw === 'remoteBounds' ? this.#beyond(this.#qps.indexOf(open), plan) : remote.offset;
      const former = open.formerPeer?.areas[remote.area]?.[1] ?? wrongKey;
      const key = plan.flaw === 'remoteKey' || former === rkey ? wrongKey : former;
      const isKeyWrong = plan.flaw === 'remoteKey' || plan.flaw === 'oldRemoteKey';
      const at = {
        remoteAddr: (window?.base ?? address) + offset,
        rkey: window?.rkey ?? (isKeyWrong ? key : rkey),
      };
      wr.wr = isAtomicVerb(plan.opcode)
        ? {
            atomic: {
              ...at,
              compareAdd: BigInt(`0x${plan.compareAdd ?? '0'}`),
              swap: BigInt(`0x${plan.swap ?? '0'}`),
            },
          }
        : { rdma: at };
    }
    return wr;
  }

  /** Where a request to the peer's area ends behind it: just behind, or far away. */
  #beyond(index: number, plan: SendPlan): number {
    const peer = peerOfQp(this.#story, this.#index, index);
    const area = this.#story.programs[peer?.program ?? -1]?.areas[plan.remote!.area];
    if (area === undefined || plan.id % 2 === 0) return 1 << 30;
    return 8 * Math.ceil((area.lengthBytes - lengthOf(plan.sges) + 1) / 8);
  }

  #sges(plans: readonly SgePlan[], flaw: string, isNear = false): IbvSge[] {
    return plans.map(({ area, offset, length }) => {
      const { address, mr, lengthBytes } = this.#areas[area]!;
      const beyond = flaw === 'localBounds' ? lengthBytes + 1 - (isNear ? offset + length : 0) : 0;
      // A deregistered region keeps its old key, as in a program with a stale key.
      const old = this.#oldKeys.get(area) ?? wrongKey;
      const lkey = flaw === 'localKey' ? wrongKey : flaw === 'oldLocalKey' ? old : (mr?.lkey ?? old);
      return { addr: address + offset + beyond, length, lkey };
    });
  }

  readonly #oldKeys = new Map<number, number>();
  /** Areas registered once more, under keys that no request uses. */
  readonly #renewed: IbvMr[] = [];
  readonly #isReceiveMade = new Set<number>();

  #receive(wanted: Deferred): void {
    if (this.#isReceiveMade.has(wanted.plan.id) || this.#qps[wanted.qp]?.isReady === false) return;
    this.#isReceiveMade.add(wanted.plan.id);
    const isQueued = this.#deferred.some(({ qp, srq }) => qp === wanted.qp && srq === wanted.srq);
    if (isQueued || !this.#tryReceive(wanted)) this.#deferred.push(wanted);
  }

  /** @returns false when there was no room */
  #tryReceive({ qp: index, srq: shared, plan }: Deferred): boolean {
    const srq = shared >= 0 ? this.#srqs[shared] : undefined;
    const open = index >= 0 ? this.#qps[index] : undefined;
    if (srq === undefined && open?.qp === undefined) return true;
    const wr: IbvRecvWr = {
      wrId: plan.id,
      sgList: this.#sges(plan.sges, plan.flaw),
      numSge: plan.sges.length,
    };
    const fromPs = this.#nowPs;
    const error = srq !== undefined ? postSrqRecv(srq, wr) : postRecv(open!.qp!, wr);
    if (error === ENOMEM) return false;
    this.#receivesById.set(plan.id, plan);
    this.#pendingReceives.set(plan.id, { qp: index, srq: shared, plan });
    this.#seen.receives.push({ id: plan.id, qp: index, fromPs, toPs: this.#nowPs, error, isSignalled: true });
    return true;
  }

  /** Posts all receives that are still to come: two programs that wait for each other's would wait for ever. */
  #hasten(): void {
    for (const step of this.#plan.steps) {
      if (step.do === 'receive') for (const plan of step.wrs) this.#receive({ qp: step.qp, srq: -1, plan });
      else if (step.do === 'receiveShared')
        for (const plan of step.wrs) this.#receive({ qp: -1, srq: step.srq, plan });
    }
  }

  #isReadByOwn(area: number): boolean {
    return this.#qps.some(({ outstanding }) => outstanding.some(({ sges }) => isIn(sges, area)));
  }

  /** Fills an area, from an offset on, with bytes it never had. */
  #fill(area: number, from = 0): void {
    const { address, lengthBytes } = this.#areas[area]!;
    const bytes = new Uint8Array(lengthBytes - from);
    const fill = this.#fills[area]! + 1;
    this.#fills[area] = fill;
    patternInto(bytes, this.#index, area, fill, from);
    this.#program.memory.write(address + from, bytes);
    this.#seen.fills.push({ area, fill, atPs: this.#nowPs });
  }

  async #deregister(area: number, isRenewed: boolean): Promise<void> {
    const open = this.#areas[area];
    if (open?.mr === undefined) return;
    const { mr } = open;
    this.#oldKeys.set(area, mr.lkey);
    const fromPs = this.#nowPs;
    await deregMr(mr);
    open.mr = undefined;
    this.#seen.deregistrations.push({ area, fromPs, toPs: this.#nowPs });
    this.#fill(area);
    if (!isRenewed) return;
    const { access, isForeign } = this.#plan.areas[area]!;
    this.#renewed.push(await regMr(this.#pds[isForeign ? 1 : 0]!, open.address, open.lengthBytes, access));
  }

  async #renewSource(area: number): Promise<void> {
    await this.#until('a refill', () => this.#awaitedCount() === 0);
    const open = this.#areas[area];
    if (open?.mr === undefined || this.#plan.areas[area]!.kind !== 'source' || this.#isReadByOwn(area))
      return;
    await this.#reregister(area, open, open.mr, () => this.#fill(area));
  }

  async #registerScratch(pages: number, kept: number): Promise<void> {
    const lengthBytes = pages * pageBytes;
    const address = this.#program.memory.map(lengthBytes);
    const mr = await regMr(this.#pds[1]!, address, lengthBytes, IBV_ACCESS_LOCAL_WRITE);
    this.#scratch.push({ mr, address, lengthBytes });
    while (this.#scratch.length > kept) {
      const oldest = this.#scratch.shift()!;
      await deregMr(oldest.mr);
      this.#program.memory.unmap(oldest.address, oldest.lengthBytes);
    }
  }

  #peek(area: number, offset: number, length: number): void {
    const open = this.#areas[area];
    if (open === undefined || offset + length > open.lengthBytes) return;
    const bytes = this.#program.memory.read(open.address + offset, length);
    this.#seen.peeks.push({ area, offset, atPs: this.#nowPs, bytes: base64(bytes) });
  }

  async #resize(index: number, entries: number): Promise<void> {
    const cq = this.#cqs[index];
    if (cq !== undefined) await resizeCq(cq, this.#cqNeeds[index]! + entries);
  }

  async #awaitEvent(index: number, solicitedOnly: boolean): Promise<void> {
    const cq = this.#cqs[index];
    const channel = this.#channels[index];
    if (cq === undefined || channel === undefined) return;
    reqNotifyCq(cq, solicitedOnly ? 1 : 0);
    if ((await this.#pump()) > 0) return;
    let found = await getCqEvent(channel, eventPatiencePs);
    if (found === undefined && (await this.#hasWanted(index, solicitedOnly))) {
      found = await getCqEvent(channel, eventLimitPs);
      if (found === undefined)
        this.#seen.missing.push(`an event of CQ ${index}, armed for ${solicitedOnly ? 'solicited' : 'all'}`);
    }
    if (found !== undefined) this.#acknowledge(found);
  }

  /** As a program does that does not poll: nothing but an event wakes it. */
  async #awaitAll(index: number): Promise<void> {
    const cq = this.#cqs[index];
    const channel = this.#channels[index];
    if (cq === undefined || channel === undefined) return;
    for (let rounds = 0; rounds < 64 && this.#awaitedCount(index) > 0; rounds++) {
      reqNotifyCq(cq, 0);
      if ((await this.#pump()) > 0) continue;
      let found = await getCqEvent(channel, eventLimitPs);
      if (found === undefined) {
        if (!(await this.#hasWanted(index, false))) return;
        // It may have come just now, and its event be held back by moderation.
        found = await getCqEvent(channel, eventLimitPs);
        if (found === undefined) this.#seen.missing.push(`an event of CQ ${index}, slept for`);
      }
      if (found !== undefined) this.#acknowledge(found);
    }
  }

  /** Acknowledges some events later, together. */
  #acknowledge(cq: IbvCq): void {
    if (cq.eventsUnacked >= eventsAckedAtOnce) ackCqEvents(cq, cq.eventsUnacked);
  }

  /** Whether completions have come that an armed CQ has to tell of; of those that were solicited only errors are known. */
  async #hasWanted(cq: number, solicitedOnly: boolean): Promise<boolean> {
    const first = this.#seen.completions.length;
    await this.#pump();
    return this.#seen.completions
      .slice(first)
      .some((seen) => seen.cq === cq && (!solicitedOnly || seen.status !== IBV_WC_SUCCESS));
  }

  /** Stops a send queue, waits until the device says that it is drained, and starts it again. */
  async #quiesce(index: number): Promise<void> {
    const open = this.#qps[index];
    const context = this.#context;
    if (open?.qp === undefined || context === undefined) return;
    const { qp } = open;
    // One that drains already takes no such wish.
    if (qp.state === IBV_QPS_SQD) return;
    await modifyQp(
      qp,
      { qpState: IBV_QPS_SQD, enSqdAsyncNotify: 1 },
      IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY,
    );
    // What waits for a peer that is gone may go on for longer than a program waits that has lost patience, or for ever.
    const mayGoOn = this.#isImpatient || open.plan.timeout === 0;
    const isDrained = await this.#until(`QP ${index} to be drained`, async () => {
      const event = await getAsyncEvent(context, psPerUs);
      if (event === undefined) return false;
      const name = eventTypeStr(event.eventType);
      this.#seen.events.push(name);
      return name === 'IBV_EVENT_SQ_DRAINED' && event.qp === qp;
    });
    if (isDrained) {
      while ((await this.#pump()) > 0);
      const first = this.#seen.completions.length;
      await this.#program.cpu.sleep(drainedPs);
      await this.#pump();
      // What had not begun is flushed when the QP fails, at any time.
      const late = this.#seen.completions
        .slice(first)
        .find(
          ({ id, qp: at, status }) =>
            at === index && this.#sendsById.has(id) && status !== IBV_WC_WR_FLUSH_ERR,
        );
      if (late !== undefined)
        this.#seen.surprises.push(`request ${late.id} of QP ${index} completed when its queue was drained`);
    } else if ((await queryQp(qp)).qpState === IBV_QPS_SQD && !(mayGoOn && open.outstanding.length > 0)) {
      this.#seen.missing.push(`the event that QP ${index} is drained`);
    }
    await modifyQp(qp, { qpState: IBV_QPS_RTS }, IBV_QP_STATE);
  }

  async #modify(index: number, to: 'SQD' | 'RTS' | 'ERR'): Promise<void> {
    const open = this.#qps[index];
    if (open?.qp === undefined) return;
    const fromPs = this.#nowPs;
    const state = { SQD: IBV_QPS_SQD, RTS: IBV_QPS_RTS, ERR: IBV_QPS_ERR }[to];
    if (to === 'ERR') this.#seen.broken.push({ qp: index, fromPs, toPs: fromPs });
    await modifyQp(open.qp, { qpState: state }, IBV_QP_STATE);
  }

  async #destroy(index: number): Promise<void> {
    const open = this.#qps[index];
    if (open?.qp === undefined) return;
    const { qp } = open;
    const fromPs = this.#nowPs;
    open.qp = undefined;
    open.outstanding = [];
    await destroyQp(qp);
    this.#seen.broken.push({ qp: index, fromPs, toPs: this.#nowPs });
  }

  #churn(pages: number): void {
    const { memory } = this.#program;
    const address = memory.map(pages * pageBytes);
    memory.write(address, new Uint8Array(pages * pageBytes).fill(0x5a));
    memory.unmap(address, pages * pageBytes);
  }

  async #giveBack(area: number, page: number, pages: number): Promise<void> {
    const plan = this.#plan.areas[area];
    if (plan === undefined || !isOnDemandArea(plan)) return;
    const isSource = plan.kind === 'source';
    if (isSource) await this.#until('a refill', () => this.#awaitedCount() === 0);
    if (isSource && this.#isReadByOwn(area)) return;
    const { address, lengthBytes } = this.#areas[area]!;
    const first = Math.ceil((address + 8 * plan.atomicWords) / pageBytes) + page;
    const end = Math.min(first + pages, Math.floor((address + lengthBytes) / pageBytes));
    if (first >= end) return;
    const { cpu, memory } = this.#program;
    // What the program did before lies behind it: the pages go at this very time.
    await cpu.settle();
    const offset = first * pageBytes - address;
    const length = (end - first) * pageBytes;
    this.#seen.givenBack.push({ area, offset, length, atPs: this.#nowPs });
    memory.advise(first * pageBytes, length, 'dontNeed');
    if (isSource) this.#fill(area);
  }

  // Waiting.

  /** Polls every CQ once and posts what receives there is room for. @returns completions taken */
  async #pump(): Promise<number> {
    let taken = 0;
    for (const [index, cq] of this.#cqs.entries()) {
      if (cq === undefined) continue;
      const fromPs = this.#nowPs;
      const count = await pollCq(cq, polledAtOnce, this.#wcs);
      const toPs = this.#nowPs;
      for (let at = 0; at < count; at++) this.#take(index, this.#wcs[at]!, fromPs, toPs);
      taken += count;
    }
    this.#postDeferred();
    return taken;
  }

  /** Each queue's receives in their order; a queue that is full holds up no other. */
  #postDeferred(): void {
    const full = new Set<string>();
    this.#deferred = this.#deferred.filter((wanted) => {
      const queue = `${wanted.qp}.${wanted.srq}`;
      if (!full.has(queue) && this.#tryReceive(wanted)) return false;
      full.add(queue);
      return true;
    });
  }

  #take(cq: number, wc: IbvWc, fromPs: number, toPs: number): void {
    const qp = this.#qpByNumber.get(wc.qpNum) ?? -1;
    const send = this.#sendsById.get(wc.wrId);
    const receive = this.#receivesById.get(wc.wrId);
    const seen: Mutable<CompletionSeen> = {
      id: wc.wrId,
      qp,
      cq,
      status: wc.status,
      opcode: wc.opcode,
      byteLen: wc.byteLen,
      imm: wc.immData,
      flags: wc.wcFlags,
      fromPs,
      toPs,
    };
    const isOk = wc.status === IBV_WC_SUCCESS;
    this.#pendingReceives.delete(wc.wrId);
    if (isOk && receive !== undefined) seen.bytes = base64(this.#gather(receive.sges));
    else if (isOk && send?.sges.some(({ area }) => this.#plan.areas[area]!.kind === 'sink'))
      seen.bytes = base64(this.#gather(send.sges));
    this.#seen.completions.push(seen);
    if (send !== undefined) this.#statuses.set(wc.wrId, wc.status);
    const open = this.#qps[qp];
    const place = open?.outstanding.findIndex(({ id }) => id === wc.wrId) ?? -1;
    if (place >= 0) open!.outstanding.splice(0, place + 1);
  }

  #gather(sges: readonly SgePlan[]): Uint8Array {
    const bytes = new Uint8Array(lengthOf(sges));
    let at = 0;
    for (const { area, offset, length } of sges) {
      bytes.set(this.#program.memory.read(this.#areas[area]!.address + offset, length), at);
      at += length;
    }
    return bytes;
  }

  /** Requests that will be known to have ended without another call; all, or those of one CQ. */
  #awaitedCount(cq?: number): number {
    return this.#qps.reduce((sum, { qp, outstanding, lastSignalled, plan }) => {
      if ((cq !== undefined && plan.sendCq !== cq) || qp?.state === IBV_QPS_SQD) return sum;
      const last = outstanding.findLastIndex(({ id }) => id === lastSignalled);
      return sum + last + 1;
    }, 0);
  }

  #outstandingCount(): number {
    return this.#qps.reduce((sum, { outstanding }) => sum + outstanding.length, 0);
  }

  /** Polls until a condition holds. @returns false when nothing has moved for too long */
  async #until(
    what: string,
    holds: () => boolean | Promise<boolean>,
    patiencePs = this.#isImpatient ? basePatiencePs : this.#patiencePs,
  ): Promise<boolean> {
    const { cpu } = this.#program;
    let nap = napPs;
    let movedPs = this.#nowPs;
    for (;;) {
      if ((await this.#pump()) > 0) {
        movedPs = this.#nowPs;
        nap = napPs;
      }
      if (await holds()) return true;
      if (this.#isConnected && this.#nowPs - movedPs > hastePs) this.#hasten();
      if (this.#nowPs - movedPs > patiencePs) {
        this.#seen.impatience.push(what);
        this.#isImpatient = true;
        return false;
      }
      await cpu.sleep(nap);
      // A receive that there was no room for may be what a peer waits for, which asks for it every few microseconds.
      const longestPs = Math.min(
        this.#deferred.length > 0 ? psPerSecond : Number.POSITIVE_INFINITY,
        Math.floor(patiencePs / 256),
      );
      nap = Math.min(2 * nap, Math.max(50 * psPerMs, longestPs));
    }
  }

  /** Waits until every program of another host has come here: each of its messages may have waited for a receive. */
  async #rendezvous(where: string): Promise<void> {
    const { exchange } = this.#program;
    await this.#announce(where);
    for (const other of this.#others()) {
      let isHere = false;
      const box = `${where} ${other}>${this.#index}`;
      await this.#until(
        `program ${other} to ${where}`,
        async () => {
          isHere ||= (await exchange.poll(box)) !== undefined;
          return isHere;
        },
        peerPatienceFactor * this.#patiencePs,
      );
    }
  }

  async #announce(where: string): Promise<void> {
    for (const other of this.#others())
      await this.#program.exchange.put(`${where} ${this.#index}>${other}`, true);
  }

  #others(): number[] {
    const { node } = this.#plan;
    return this.#story.programs.flatMap((other, index) => (other.node === node ? [] : [index]));
  }

  /** Takes what is still in flight when the sends of all programs have ended. */
  async #linger(): Promise<void> {
    for (let quiet = 0; quiet < 4; ) {
      quiet = (await this.#pump()) > 0 ? 0 : quiet + 1;
      await this.#program.cpu.sleep(100 * psPerUs);
    }
  }

  // Leaving.

  #look(): void {
    for (const { address, lengthBytes } of this.#areas)
      this.#seen.finals.push(base64(this.#program.memory.read(address, lengthBytes)));
    this.#seen.finalPs = this.#nowPs;
    this.#noteUnfinished();
  }

  #noteUnfinished(): void {
    for (const { outstanding } of this.#qps) this.#seen.unfinished.push(...outstanding.map(({ id }) => id));
  }

  async #leaveEarly(): Promise<void> {
    this.#noteUnfinished();
    await this.#announceTurns();
    await this.#windows.giveUp();
    for (const where of ['sent', 'looked']) await this.#announce(where);
  }

  async #leave(): Promise<void> {
    const context = this.#context;
    if (context === undefined) return;
    for (;;) {
      const event = await getAsyncEvent(context, psPerUs).catch(() => undefined);
      if (event === undefined) break;
      this.#seen.events.push(eventTypeStr(event.eventType));
    }
    const leave = (what: string, body: () => Promise<unknown>) => this.#attempt(`leave: ${what}`, body);
    for (const { qp } of this.#qps) if (qp !== undefined) await leave('QP', () => destroyQp(qp));
    for (const cq of this.#cqs) {
      if (cq === undefined) continue;
      ackCqEvents(cq, cq.eventsUnacked);
      await leave('CQ', () => destroyCq(cq));
    }
    for (const channel of this.#channels)
      if (channel !== undefined) await leave('channel', () => destroyCompChannel(channel));
    for (const srq of this.#srqs) if (srq !== undefined) await leave('SRQ', () => destroySrq(srq));
    for (const window of this.#windows.openWindows)
      await leave('window', () => this.#windows.deallocate(window));
    for (const mr of this.#renewed) await leave('MR', () => deregMr(mr));
    for (const { mr } of this.#scratch) await leave('MR', () => deregMr(mr));
    for (const { mr } of this.#areas) if (mr !== undefined) await leave('MR', () => deregMr(mr));
    for (const pd of this.#pds) await leave('PD', () => deallocPd(pd));
    await leave('device', () => closeDevice(context));
  }

  /** A verb may be refused: that is noted, and is for the judges. */
  async #attempt(what: string, body: () => Promise<unknown> | unknown): Promise<boolean> {
    try {
      await body();
      return true;
    } catch (error) {
      if (!(error instanceof VerbsError)) throw error;
      this.#seen.refusals.push(`${what}: ${error.verb} ${error.code}`);
      return false;
    }
  }
}

/** A lone bind of a window of type 1 has a call of its own. */
function postList(qp: IbvQp, wr: IbvSendWr, bad: BadWr<IbvSendWr>): number {
  const { bindMw: bind, wrId, sendFlags, next } = wr;
  if (bind?.mw.type !== IBV_MW_TYPE_1 || next !== null) return postSend(qp, wr, bad);
  return bindMw(qp, bind.mw, { wrId, sendFlags, bindInfo: bind.bindInfo });
}

const isIn = (sges: readonly SgePlan[], area: number): boolean => sges.some((sge) => sge.area === area);

const typeOf = ({
  transport,
}: Pick<QpPlan, 'transport'>): typeof IBV_QPT_RC | typeof IBV_QPT_UC | typeof IBV_QPT_UD =>
  (({ RC: IBV_QPT_RC, UC: IBV_QPT_UC, UD: IBV_QPT_UD }) as const)[transport];

/** Whether a request beyond its own area ends just behind it; what a READ brings would be written up to there. */
const isNear = ({ id, opcode }: SendPlan): boolean => id % 2 === 1 && opcode !== IBV_WR_RDMA_READ;

const meetingsOf = (turn: number): string[] => [`turn ${turn}`, `turn ${turn}, all`, `turned ${turn}`];

const mailboxOf = (
  link: number,
  turn: number,
  end: { readonly program: number; readonly qp: number },
): string => `link ${link} at turn ${turn} to ${end.program}.${end.qp}`;

const base64 = (bytes: Uint8Array): string => Buffer.from(bytes).toString('base64');
