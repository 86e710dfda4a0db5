/** The memory windows of a player: those that are bound, their keys, and the messages of programs about them. */
import * as ibv from '../../userlib/index.ts';
import type { BindPlan, SendPlan, Step, Told } from '../story.ts';
import type { OpenArea, Session } from './session.ts';
import type { Waiting } from './waiting.ts';

/** The key of a binding, for the peer. */
interface WindowKey {
  readonly rkey: number;
  /** Base to which offsets within the area are added. */
  readonly base: number;
}

/** The key of a binding, or whether it succeeded; null: it failed, or no message will follow. */
type News = WindowKey | boolean | null;

export class Windows {
  readonly #session: Session;
  readonly #waiting: Waiting;
  readonly #windows: (ibv.IbvMw | undefined)[] = [];
  /** Windows of type 2 that are bound, or may be. */
  readonly #bound = new Set<number>();
  /** Keys of this program, by ID of the bind. */
  readonly #ownKeys = new Map<number, WindowKey>();
  /** News of peers, by mailbox. */
  readonly #heard = new Map<string, News>();
  readonly #told = new Set<string>();

  constructor(session: Session, waiting: Waiting) {
    this.#session = session;
    this.#waiting = waiting;
  }

  /** Allocates all of the plan. */
  async open(pd: ibv.IbvPd): Promise<void> {
    for (const { isType2 } of this.#session.plan.windows ?? [])
      this.#windows.push(await ibv.allocMw(pd, isType2 ? ibv.IBV_MW_TYPE_2 : ibv.IBV_MW_TYPE_1));
  }

  /**
   * Whether this program has everything that the request needs: a region and a window that can be bound, or the key of
   * a binding of its own.
   */
  isPossible({ opcode, bind, through, flaw }: SendPlan): boolean {
    if (bind === undefined) return opcode !== ibv.IBV_WR_LOCAL_INV || this.#ownKeys.has(through!);
    const isFree = !this.#bound.has(bind.window);
    return this.#windows[bind.window] !== undefined && isFree && this.#region(flaw, bind).mr !== undefined;
  }

  #region(flaw: SendPlan['flaw'], bind: BindPlan): OpenArea {
    return this.#session.areas[flaw === 'bindRight' ? strictArea : bind.area]!;
  }

  /**
   * Tells the peer about a binding once all requests on which it depends have ended: its key, or whether they
   * succeeded.
   */
  async tell(what: Told, bind: number): Promise<void> {
    const { statuses } = this.#session;
    const untilEnded = (of: string, isMeant: (plan: SendPlan) => boolean): Promise<boolean> =>
      this.#waiting.until(of, () => !this.#session.isOutstanding(isMeant));
    if (what === 'bound') {
      await untilEnded('a bind', ({ id }) => id === bind);
      const key = statuses.get(bind) === ibv.IBV_WC_SUCCESS ? this.#ownKeys.get(bind) : undefined;
      return this.#put(what, bind, key ?? null);
    }
    if (what === 'used') {
      await untilEnded('the uses of a window', ({ through }) => through === bind);
      return this.#put(what, bind, true);
    }
    const takers = this.#takersOf(bind);
    await untilEnded('a window to be taken back', ({ id }) => takers.includes(id));
    return this.#put(
      what,
      bind,
      takers.every((id) => statuses.get(id) === ibv.IBV_WC_SUCCESS),
    );
  }

  /**
   * IDs of the requests of this program that must invalidate the window of a bind; one with a flaw does not succeed.
   */
  #takersOf(bind: number): number[] {
    const isTaker = ({ opcode, through }: SendPlan): boolean =>
      through === bind && (opcode === ibv.IBV_WR_LOCAL_INV || opcode === ibv.IBV_WR_SEND_WITH_INV);
    return this.#session.plan.steps.flatMap((step) =>
      step.do === 'post' ? step.wrs.filter(isTaker).map(({ id }) => id) : [],
    );
  }

  async #put(what: Told, bind: number, value: News): Promise<void> {
    const box = mailboxOf(what, bind);
    if (this.#told.has(box)) return;
    this.#told.add(box);
    // Both ends of a connection may be this program's.
    this.#heard.set(box, value);
    await this.#session.program.exchange.put(box, value);
  }

  /** Sends all messages that this program has not sent and will not send otherwise. */
  async giveUp(): Promise<void> {
    for (const step of this.#session.plan.steps)
      if (step.do === 'tell') await this.#put(step.what, step.bind, null);
  }

  /**
   * @returns the other program's message about a binding; null if there was none, or will be none
   */
  async hear(what: Told, bind: number): Promise<News> {
    const isPlanned = (step: Step): boolean => step.do === 'tell' && step.what === what && step.bind === bind;
    if (!this.#session.story.programs.some(({ steps }) => steps.some(isPlanned))) return null;
    let told: News | undefined;
    await this.#waiting.untilPeer(`news that a window is ${what}`, async () => {
      told = await this.#poll(what, bind);
      return told !== undefined;
    });
    return told ?? null;
  }

  async #poll(what: Told, bind: number): Promise<News | undefined> {
    const box = mailboxOf(what, bind);
    const known = this.#heard.get(box);
    if (known !== undefined) return known;
    const told = await this.#session.program.exchange.poll<News>(box);
    if (told !== undefined) {
      this.#heard.set(box, told);
      if (what === 'gone' && told === true) this.#isGone(bind);
    }
    return told;
  }

  /** The key that a request uses or invalidates; undefined if the program has none. */
  keyOf({ opcode, through, flaw }: SendPlan): WindowKey | undefined {
    const key =
      opcode === ibv.IBV_WR_LOCAL_INV
        ? this.#ownKeys.get(through!)
        : (this.#heard.get(mailboxOf('bound', through!)) as WindowKey | null | undefined);
    if (key === undefined || key === null) return undefined;
    const isWrong = flaw === 'windowKey' || flaw === 'invalidKey' || flaw === 'remoteInvalidKey';
    return isWrong ? { ...key, rkey: formerVariant(key.rkey) } : key;
  }

  /**
   * @returns the operands with which a bind of the plan is posted
   */
  bindOf({ flaw }: SendPlan, bind: BindPlan): NonNullable<ibv.IbvSendWr['bindMw']> {
    const mw = this.#windows[bind.window]!;
    const { address, lengthBytes, mr } = this.#region(flaw, bind);
    const bindInfo: ibv.IbvMwBindInfo = {
      mr: mr!,
      addr: address + (flaw === 'bindRight' ? 0 : bind.offset),
      length: flaw === 'bindBounds' ? lengthBytes - bind.offset + 1 : Math.min(bind.length, lengthBytes),
      mwAccessFlags: bind.access | (bind.isZeroBased ? ibv.IBV_ACCESS_ZERO_BASED : 0),
    };
    return { mw, rkey: ibv.incRkey(mw.rkey), bindInfo };
  }

  /** A request has been posted. @returns the key that it makes, uses or invalidates */
  posted(plan: SendPlan): number | undefined {
    const { id, opcode, bind, through } = plan;
    if (bind !== undefined) {
      const mw = this.#windows[bind.window]!;
      // bindMw has done so itself.
      if (mw.type === ibv.IBV_MW_TYPE_2) {
        mw.rkey = ibv.incRkey(mw.rkey);
        this.#bound.add(bind.window);
      }
      const base = bind.isZeroBased ? -bind.offset : this.#session.areas[bind.area]!.address;
      this.#ownKeys.set(id, { rkey: mw.rkey, base });
      return mw.rkey;
    }
    if (through === undefined) return undefined;
    if (opcode === ibv.IBV_WR_LOCAL_INV && plan.flaw === 'none') this.#isGone(through);
    return this.keyOf(plan)?.rkey;
  }

  /** The window is free by the time of the next request of its QP. */
  #isGone(bind: number): void {
    for (const step of this.#session.plan.steps)
      if (step.do === 'post')
        for (const { id, opcode, bind: bound } of step.wrs)
          if (id === bind && opcode === ibv.IBV_WR_BIND_MW) this.#bound.delete(bound!.window);
  }

  async deallocate(window: number): Promise<void> {
    const { nowPs: fromPs, seen } = this.#session;
    const mw = this.#windows[window];
    if (mw === undefined) return;
    this.#windows[window] = undefined;
    await ibv.deallocMw(mw);
    seen.deallocations.push({ window, fromPs, toPs: this.#session.nowPs });
  }

  /** Windows that are left at the end. */
  get left(): ibv.IbvMw[] {
    return this.#windows.filter((mw) => mw !== undefined);
  }
}

/** The area of every program that allows everything to peers but no binding. */
const strictArea = 1;

const mailboxOf = (what: Told, bind: number): string => `${what} ${bind}`;

const formerVariant = (rkey: number): number => ((rkey & ~0xff) | ((rkey - 1) & 0xff)) >>> 0;
