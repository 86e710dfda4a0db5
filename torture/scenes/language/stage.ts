/** Context of a scene's program: its host, its arguments, the other program, and its findings. */
import { psPerMs, psPerNs, psPerUs } from '../../../base/index.ts';
import { barrier } from '../../../experiments/workloads/index.ts';
import type { JsonLike, ProgramContext } from '../../../machine/index.ts';
import { getAsyncEvent, type IbvContext, type IbvCq, VerbsError } from '../../../userlib/index.ts';
import { differencesOf } from './bytes.ts';
import { type Ended, failuresOf, type Taken, takenFrom } from './completions.ts';
import { Device } from './device.ts';

/** Name and type of a value that programs of a scene exchange. */
interface Topic<T> {
  readonly name: string;
  /** Never set: ties the type to the name. */
  readonly shape?: T;
}

export const topic = <T extends JsonLike>(name: string): Topic<T> => ({ name });

/** Rests of a program between polls, and the longest time without a completion. */
export interface Patience {
  readonly napPs: number;
  readonly patiencePs: number;
}

export class Stage<Args> {
  readonly context: ProgramContext;
  readonly args: Args;
  readonly wrong: string[];
  readonly #devices: Device[];

  constructor(context: ProgramContext, args: Args, wrong: string[] = [], devices: Device[] = []) {
    this.context = context;
    this.args = args;
    this.wrong = wrong;
    this.#devices = devices;
  }

  /** Returns the stage with other arguments. */
  withArgs<Other>(args: Other): Stage<Other> {
    return new Stage(this.context, args, this.wrong, this.#devices);
  }

  get node(): number {
    return this.context.node;
  }

  get cpu(): ProgramContext['cpu'] {
    return this.context.cpu;
  }

  get memory(): ProgramContext['memory'] {
    return this.context.memory;
  }

  /** The core's own time; exact below 2^53 ps. */
  get nowPs(): number {
    return Number(this.cpu.instantPs);
  }

  sleepNs(ns: number): Promise<void> {
    return this.cpu.sleep(ns * psPerNs);
  }

  sleepUs(us: number): Promise<void> {
    return this.cpu.sleep(us * psPerUs);
  }

  sleepMs(ms: number): Promise<void> {
    return this.cpu.sleep(ms * psPerMs);
  }

  /** Sleeps until the core's own time is `atPs`. */
  async sleepUntil(atPs: number): Promise<void> {
    if (atPs > this.nowPs) await this.cpu.sleep(atPs - this.nowPs);
  }

  /**
   * Waits until the last bytes that the peer wrote are in memory. Neither an ACK nor a barrier, which takes no time, waits for writes that are
   * in flight to memory.
   */
  lastBytesIn(): Promise<void> {
    return this.sleepMs(2);
  }

  /** Waits until the program at the other host has reached the meeting of this name. */
  meet(name: string): Promise<void> {
    return barrier(this.context, name);
  }

  put<T extends JsonLike>({ name }: Topic<T>, value: T): Promise<void> {
    return this.context.exchange.put(name, value);
  }

  take<T>({ name }: Topic<T>): Promise<T> {
    return this.context.exchange.take<T>(name);
  }

  /** Exchanges a value with the other program. */
  async swap<T extends JsonLike>(about: Topic<T>, own: T): Promise<T> {
    await this.put(about, own);
    return this.take(about);
  }

  /** Adds findings of the scene. */
  accuse(...what: readonly string[]): void {
    this.wrong.push(...what);
  }

  /** Accuses if the bytes differ. */
  expectBytes(what: string, seen: Uint8Array, expected: Uint8Array): void {
    this.accuse(...differencesOf(what, seen, expected));
  }

  /** Accuses if memory does not hold these bytes. */
  expectAt(what: string, address: number, expected: Uint8Array): void {
    this.expectBytes(what, this.memory.read(address, expected.length), expected);
  }

  /** Opens the first device of the host. */
  async open(): Promise<Device> {
    const device = await Device.open(this.context);
    this.#devices.push(device);
    return device;
  }

  /** Closes all devices. */
  async close(): Promise<void> {
    for (const device of this.#devices) await device.close();
  }

  /** Polls once for up to `count` completions. */
  poll(cq: IbvCq, count: number): Promise<Taken[]> {
    return takenFrom(cq, count, () => this.nowPs);
  }

  /** Polls until the CQ is empty. */
  async drain(cq: IbvCq, most = 16): Promise<Taken[]> {
    const all: Taken[] = [];
    for (let some = await this.poll(cq, most); some.length > 0; some = await this.poll(cq, most))
      all.push(...some);
    return all;
  }

  /** Polls, at growing intervals, until `count` completions have arrived or none has for `patiencePs`. */
  async completions(cq: IbvCq, count: number, patiencePs = 10_000 * psPerMs): Promise<Taken[]> {
    const firstPs = 100 * psPerNs;
    const napPs = (naps: number): number => Math.min(firstPs * 2 ** naps, patiencePs / 64);
    return this.#await(cq, count, patiencePs, (naps) => (naps === 0 ? firstPs : napPs(naps)));
  }

  /** Polls at equal intervals, for judges that compare times. */
  async watch(cq: IbvCq, count: number, { napPs, patiencePs }: Patience): Promise<Taken[]> {
    return this.#await(cq, count, patiencePs, () => napPs);
  }

  async #await(
    cq: IbvCq,
    count: number,
    patiencePs: number,
    napPs: (naps: number) => number,
  ): Promise<Taken[]> {
    const ended: Taken[] = [];
    let movedPs = this.nowPs;
    let naps = 0;
    while (ended.length < count && this.nowPs - movedPs <= patiencePs) {
      const some = await this.poll(cq, Math.min(16, count - ended.length));
      ended.push(...some);
      if (some.length > 0) {
        movedPs = some[0]!.atPs;
        naps = 0;
      } else await this.cpu.sleep(napPs(naps++));
    }
    return ended;
  }

  /** Waits for completions, and accuses if one is missing or no success. */
  async expectWell(cq: IbvCq, count: number, patiencePs?: number): Promise<void> {
    this.judgeWell(await this.completions(cq, count, patiencePs), count);
  }

  judgeWell(ended: readonly Ended[], count: number): void {
    this.accuse(...failuresOf(ended));
    if (ended.length < count) this.accuse(`${ended.length} of ${count} completions came`);
  }

  /** Asynchronous events until none arrives for a while. */
  async asyncEvents(context: IbvContext, patiencePs = psPerMs): Promise<NonNullable<AsyncEvent>[]> {
    const events: NonNullable<AsyncEvent>[] = [];
    for (;;) {
      const event = await getAsyncEvent(context, patiencePs);
      if (event === undefined) return events;
      events.push(event);
    }
  }
}

type AsyncEvent = Awaited<ReturnType<typeof getAsyncEvent>>;

/** Returns the code of the error that a call fails with, or `ok`. */
export async function codeOf(call: Promise<unknown>): Promise<string> {
  const result = await orCode(call);
  return typeof result === 'string' ? result : 'ok';
}

/** Returns the result of a call, or the code of the error that it fails with. */
export async function orCode<T>(call: Promise<T>): Promise<T | string> {
  try {
    return await call;
  } catch (error) {
    if (error instanceof VerbsError) return error.code;
    throw error;
  }
}
