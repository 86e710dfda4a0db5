/** Shared state of a player's parts: its program, plan, open objects and observations. */
import { psPerNs } from '../../base/index.ts';
import type { ProgramContext } from '../../machine/index.ts';
import * as ibv from '../../userlib/index.ts';
import type { Observations } from '../observations.ts';
import { patienceOf } from '../patience.ts';
import type { ProgramPlan, QpPlan, SendPlan, SgePlan, Story } from '../story.ts';

/** A program's arguments: the story, and which of its programs it is. */
export interface PlayerArgs {
  readonly story: Story;
  readonly program: number;
  /** Whether it marks its posts as operations, whose costs the machine attributes. */
  readonly marks: boolean;
}

/** Addresses of a peer's port, QP and areas. */
export interface PeerNews {
  readonly lid: number;
  /** GID of the port, on Ethernet. */
  readonly gid?: readonly number[];
  readonly qpNum: number;
  readonly areas: readonly (readonly [address: number, rkey: number])[];
}

export interface OpenArea {
  address: number;
  mr: ibv.IbvMr | undefined;
  readonly lengthBytes: number;
}

export interface OpenQp {
  readonly plan: QpPlan;
  qp: ibv.IbvQp | undefined;
  /** Requests that it was granted room for. */
  sendRoom: number;
  peer: PeerNews | undefined;
  /** The peer's areas before the last turn. */
  formerPeer: PeerNews | undefined;
  ah: ibv.IbvAh | undefined;
  /** Posted sends that are not known to have ended, in order. */
  outstanding: SendPlan[];
  /** ID of the last signalled request: the program does not wait for later ones. */
  lastSignalled: number;
  sinceSignal: number;
  /** Ids of the last requests that the plan posts here before each turn: they are signalled, so that the end is seen. */
  readonly lastIds: ReadonlySet<number>;
  /** Whether receives may be posted: in order, the early ones first. */
  isReady: boolean;
}

export type Mutable<T> = {
  -readonly [Key in keyof T]: T[Key] extends readonly (infer Item)[] ? Item[] : T[Key];
};

/** A key that the driver never assigns. */
export const wrongKey = 0xdead_be00;
export const pageBytes = 4096;
export const napPs = 300 * psPerNs;

export class Session {
  readonly program: ProgramContext;
  readonly story: Story;
  readonly index: number;
  readonly marks: boolean;
  readonly plan: ProgramPlan;
  readonly patiencePs: number;
  /** True after a wait without progress: later steps wait less, and only the end waits as long again. */
  isImpatient = false;
  /** True when its QPs accept receives. */
  isConnected = false;
  context: ibv.IbvContext | undefined;
  port: ibv.PortAttr | undefined;
  pds: ibv.IbvPd[] = [];
  readonly areas: OpenArea[] = [];
  /** Keys that areas had before the present ones. */
  readonly oldKeys = new Map<number, number>();
  readonly cqs: (ibv.IbvCq | undefined)[] = [];
  readonly channels: (ibv.IbvCompChannel | undefined)[] = [];
  readonly srqs: (ibv.IbvSrq | undefined)[] = [];
  readonly qps: OpenQp[] = [];
  /** Completion statuses of send requests, by ID. */
  readonly statuses = new Map<number, number>();
  readonly sendsById = new Map<number, SendPlan>();
  readonly seen: Mutable<Observations> = {
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

  constructor(program: ProgramContext<PlayerArgs>) {
    const { story, program: index, marks } = program.args;
    this.program = program;
    this.story = story;
    this.index = index;
    this.marks = marks;
    this.plan = story.programs[index]!;
    this.patiencePs = patienceOf(story);
  }

  /** The core's own time; beyond 2^53 ps, two and a half hours, to the nearest number. */
  get nowPs(): number {
    return Number(this.program.cpu.instantPs);
  }

  get turnCount(): number {
    return this.story.turns?.length ?? 0;
  }

  /** Whether any request of this kind has been posted and not ended. */
  isOutstanding(isMeant: (plan: SendPlan) => boolean): boolean {
    return this.qps.some(({ outstanding }) => outstanding.some(isMeant));
  }

  isReadByOwn(area: number): boolean {
    return this.isOutstanding(({ sges }) => isIn(sges, area));
  }

  /** Requests whose ends will be known without another call; all, or those of one CQ. */
  awaitedCount(cq?: number): number {
    return this.qps.reduce((sum, { qp, outstanding, lastSignalled, plan }) => {
      if ((cq !== undefined && plan.sendCq !== cq) || qp?.state === ibv.IBV_QPS_SQD) return sum;
      const last = outstanding.findLastIndex(({ id }) => id === lastSignalled);
      return sum + last + 1;
    }, 0);
  }

  get outstandingCount(): number {
    return this.qps.reduce((sum, { outstanding }) => sum + outstanding.length, 0);
  }

  /** Calls a verb that may be refused: a refusal is recorded for the judges. */
  async attempt(what: string, body: () => Promise<unknown> | unknown): Promise<boolean> {
    try {
      await body();
      return true;
    } catch (error) {
      if (!(error instanceof ibv.VerbsError)) throw error;
      this.seen.refusals.push(`${what}: ${error.verb} ${error.code}`);
      return false;
    }
  }
}

export const isIn = (sges: readonly SgePlan[], area: number): boolean =>
  sges.some((sge) => sge.area === area);

export const base64 = (bytes: Uint8Array): string => Buffer.from(bytes).toString('base64');
