/**
 * A guest's accesses as TLPs: through the root complex and over the link to the function, like those of a simulated
 * core.
 *
 *     store          ──► posted, at once; if the root complex is full, time passes until it has room
 *     load, config   ──► non-posted; time passes until the completion has come back
 *
 * Promises: accesses keep their order; a refused, poisoned, timed-out or abandoned load reads all ones; one access of the guest
 * waits at most `accessLimitMs` of wall time in all. A store allocates nothing.
 */
import type { CorePort } from '../../hw/pcie/index.ts';
import type { Awaited, SlotTime } from './emulation-time.ts';

const ALL_ONES = 0xffff_ffff;
const DWORD_BYTES = 4;
/** Limit of loads in flight: abandoned ones and one more. Beyond it, loads are abandoned at once. */
const OPEN_LOADS_MAX = 8;

/** The answer to one load; an abandoned load keeps its own. */
class Answer implements Awaited {
  isDone = false;
  status = 0;
  value = 0;
  readonly done = (status: number, value: number): void => {
    this.isDone = true;
    this.status = status;
    this.value = value;
  };
}

export class SlotAccess {
  /** Loads that read all ones, by refusal or because they were abandoned, and stores dropped for lack of room. */
  failedLoadCount = 0;
  abandonedLoadCount = 0;
  droppedStoreCount = 0;
  readonly #core: CorePort;
  readonly #time: SlotTime;
  /** Function number of the device: bus, device, function. */
  readonly #target: number;
  readonly #room: Awaited;
  #answer = new Answer();
  readonly #abandoned: Answer[] = [];

  constructor(core: CorePort, time: SlotTime, target: number) {
    this.#core = core;
    this.#time = time;
    this.#target = target;
    this.#room = {
      get isDone() {
        return core.canStore();
      },
    };
  }

  /** Stores 1 to 64 bytes that do not cross a 64-byte line. */
  store(
    address: number,
    trafficClass: number,
    source: Uint8Array,
    sourceOffset: number,
    lengthBytes: number,
  ): void {
    if (!this.#core.canStore() && !this.#time.runUntil(this.#room)) {
      this.droppedStoreCount++;
      return;
    }
    this.#core.cpuStore(address, trafficClass, source, sourceOffset, lengthBytes);
    this.#time.touched();
  }

  /** Loads 1 to 4 bytes of one dword; the little-endian value. */
  load(address: number, lengthBytes: number): number {
    if (!this.#canAsk()) return this.#giveUp();
    this.#core.cpuLoad(address, lengthBytes, this.#answer.done);
    return this.#wait();
  }

  /** Reads the configuration dword at `register`, a multiple of 4. */
  configRead(register: number): number {
    if (!this.#canAsk()) return this.#giveUp();
    this.#core.cpuConfigRead(this.#target, register, this.#answer.done);
    return this.#wait();
  }

  /** Writes 1 to 4 bytes of one configuration dword. */
  configWrite(register: number, lengthBytes: number, value: number): void {
    if (!this.#canAsk()) {
      this.#giveUp();
      return;
    }
    this.#core.cpuConfigWrite(this.#target, register, value | 0, this.#answer.done, lengthBytes);
    this.#wait();
  }

  #canAsk(): boolean {
    while (this.#abandoned[0]?.isDone === true) this.#abandoned.shift();
    if (this.#abandoned.length >= OPEN_LOADS_MAX) return false;
    return this.#core.canStore() || this.#time.runUntil(this.#room);
  }

  #wait(): number {
    const answer = this.#answer;
    this.#time.touched();
    if (!this.#time.runUntil(answer)) {
      this.#abandoned.push(answer);
      this.#answer = new Answer();
      return this.#giveUp();
    }
    answer.isDone = false;
    if (answer.status === 0) return answer.value;
    this.failedLoadCount++;
    return ALL_ONES;
  }

  #giveUp(): number {
    this.abandonedLoadCount++;
    this.failedLoadCount++;
    return ALL_ONES;
  }
}

/** Bytes of an access from `offset` on within the dword in which it begins. */
export const bytesInDword = (offset: number, lengthBytes: number): number =>
  Math.min(lengthBytes, DWORD_BYTES - (offset % DWORD_BYTES));
