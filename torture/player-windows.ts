/**
 * The memory windows of a player: which are bound, their keys, and what programs tell each other of them.
 */

import type { Exchange, JsonValue } from '../machine/index.ts';
import {
  allocMw,
  deallocMw,
  IBV_ACCESS_ZERO_BASED,
  IBV_MW_TYPE_1,
  IBV_MW_TYPE_2,
  IBV_WR_BIND_MW,
  IBV_WR_LOCAL_INV,
  type IbvMr,
  type IbvMw,
  type IbvMwBindInfo,
  type IbvPd,
  type IbvSendWr,
  incRkey,
} from '../userlib/index.ts';
import type { BindPlan, ProgramPlan, SendPlan, Step, Story, Told } from './story.ts';

/** What a peer has to know of a binding. */
interface WindowKey {
  readonly rkey: number;
  /** To which offsets within the area are added. */
  readonly base: number;
}

interface OpenRegion {
  readonly address: number;
  readonly lengthBytes: number;
  readonly mr: IbvMr | undefined;
}

export class PlayerWindows {
  readonly #story: Story;
  readonly #plan: ProgramPlan;
  readonly #exchange: Exchange;
  readonly #windows: (IbvMw | undefined)[] = [];
  /** Windows of type 2 that are bound, or may be. */
  readonly #bound = new Set<number>();
  /** By id of the bind, of this program. */
  readonly #ownKeys = new Map<number, WindowKey>();
  /** What peers have told, by mailbox. */
  readonly #heard = new Map<string, JsonValue>();
  readonly #told = new Set<string>();

  constructor(story: Story, plan: ProgramPlan, exchange: Exchange) {
    this.#story = story;
    this.#plan = plan;
    this.#exchange = exchange;
  }

  /** Allocates all of the plan. */
  async allocate(pd: IbvPd): Promise<void> {
    for (const { isType2 } of this.#plan.windows ?? [])
      this.#windows.push(await allocMw(pd, isType2 ? IBV_MW_TYPE_2 : IBV_MW_TYPE_1));
  }

  windowOf({ window }: BindPlan): IbvMw | undefined {
    return this.#windows[window];
  }

  /** Whether this program has what the request needs: a region and a window that can be bound, or the key of a binding of its own. */
  isPossible({ opcode, bind, through, flaw }: SendPlan, areas: readonly OpenRegion[]): boolean {
    if (bind !== undefined) {
      const isFree = !this.#bound.has(bind.window);
      return (
        this.#windows[bind.window] !== undefined && isFree && regionOf(flaw, bind, areas).mr !== undefined
      );
    }
    return opcode !== IBV_WR_LOCAL_INV || this.#ownKeys.has(through!);
  }

  /** Whether somebody tells this, by the plan. */
  isToBeTold(what: Told, bind: number): boolean {
    return this.#story.programs.some(({ steps }) =>
      steps.some((step) => step.do === 'tell' && step.what === what && step.bind === bind),
    );
  }

  /** What has been told; undefined: nothing yet. */
  async heard(what: Told, bind: number): Promise<JsonValue | undefined> {
    const box = mailboxOf(what, bind);
    const known = this.#heard.get(box);
    if (known !== undefined) return known;
    const told = await this.#exchange.poll(box);
    if (told !== undefined) {
      this.#heard.set(box, told);
      if (what === 'gone' && told === true) this.isGone(bind);
    }
    return told;
  }

  async tell(what: Told, bind: number, value: JsonValue): Promise<void> {
    const box = mailboxOf(what, bind);
    if (this.#told.has(box)) return;
    this.#told.add(box);
    // Both ends of a connection may be this program's.
    this.#heard.set(box, value);
    await this.#exchange.put(box, value);
  }

  /** All that this program has not told and will not tell. */
  async giveUp(): Promise<void> {
    for (const step of this.#plan.steps) if (step.do === 'tell') await this.tell(step.what, step.bind, null);
  }

  /** The key of a binding of this program. */
  ownKey(bind: number): WindowKey | undefined {
    return this.#ownKeys.get(bind);
  }

  /** The key that a request uses or invalidates; undefined: none is known. */
  keyOf({ opcode, through, flaw }: SendPlan): WindowKey | undefined {
    const key =
      opcode === IBV_WR_LOCAL_INV
        ? this.#ownKeys.get(through!)
        : (this.#heard.get(mailboxOf('bound', through!)) as unknown as WindowKey | null | undefined);
    if (key === undefined || key === null) return undefined;
    const isWrong = flaw === 'windowKey' || flaw === 'invalidKey' || flaw === 'remoteInvalidKey';
    return isWrong ? { ...key, rkey: formerVariant(key.rkey) } : key;
  }

  /** @returns what a bind of the plan is posted with */
  bindOf({ flaw }: SendPlan, bind: BindPlan, areas: readonly OpenRegion[]): NonNullable<IbvSendWr['bindMw']> {
    const mw = this.#windows[bind.window]!;
    const { address, lengthBytes, mr } = regionOf(flaw, bind, areas);
    const bindInfo: IbvMwBindInfo = {
      mr: mr!,
      addr: address + (flaw === 'bindRight' ? 0 : bind.offset),
      length: flaw === 'bindBounds' ? lengthBytes - bind.offset + 1 : Math.min(bind.length, lengthBytes),
      mwAccessFlags: bind.access | (bind.isZeroBased ? IBV_ACCESS_ZERO_BASED : 0),
    };
    return { mw, rkey: incRkey(mw.rkey), bindInfo };
  }

  /** A request has been posted. @returns the key that it makes, uses or invalidates */
  posted(plan: SendPlan, areas: readonly OpenRegion[]): number | undefined {
    const { id, opcode, bind, through } = plan;
    if (bind !== undefined) {
      const mw = this.#windows[bind.window]!;
      // bindMw has done so itself.
      if (mw.type === IBV_MW_TYPE_2) {
        mw.rkey = incRkey(mw.rkey);
        this.#bound.add(bind.window);
      }
      const base = bind.isZeroBased ? -bind.offset : areas[bind.area]!.address;
      this.#ownKeys.set(id, { rkey: mw.rkey, base });
      return mw.rkey;
    }
    if (through === undefined) return undefined;
    if (opcode === IBV_WR_LOCAL_INV && plan.flaw === 'none') this.isGone(through);
    return this.keyOf(plan)?.rkey;
  }

  /** What was bound by this is free by the time of the next request of its QP. */
  isGone(bind: number): void {
    const window = windowBoundBy(this.#plan.steps, bind);
    if (window !== undefined) this.#bound.delete(window);
  }

  async deallocate(window: number): Promise<boolean> {
    const mw = this.#windows[window];
    if (mw === undefined) return false;
    this.#windows[window] = undefined;
    await deallocMw(mw);
    return true;
  }

  /** Windows that are left at the end. */
  get openWindows(): number[] {
    return this.#windows.flatMap((mw, window) => (mw === undefined ? [] : [window]));
  }
}

/** The area of every program that allows everything to peers but no binding. */
const strictArea = 1;

const regionOf = (flaw: SendPlan['flaw'], bind: BindPlan, areas: readonly OpenRegion[]): OpenRegion =>
  areas[flaw === 'bindRight' ? strictArea : bind.area]!;

const mailboxOf = (what: Told, bind: number): string => `${what} ${bind}`;

const formerVariant = (rkey: number): number => ((rkey & ~0xff) | ((rkey - 1) & 0xff)) >>> 0;

function windowBoundBy(steps: readonly Step[], id: number): number | undefined {
  for (const step of steps)
    if (step.do === 'post')
      for (const wr of step.wrs) if (wr.id === id && wr.opcode === IBV_WR_BIND_MW) return wr.bind?.window;
  return undefined;
}
