/** What a guest did to its slot: accesses by register, as they came, before the device judged them. */
import { bar0, isEqDoorbell, uarOffset, uarPageBytes } from '../../abi/bar-map.ts';

/** One register, or kind of place: reads and writes of it. */
export interface AccessCount {
  readonly reads: number;
  readonly writes: number;
}

const registerNames = [...Object.keys(bar0.registers), 'reserved'];
const RESERVED = registerNames.length - 1;
/** Places of BAR2. */
const placeNames = ['sendDoorbell', 'cqArm', 'eqDoorbell', 'blueFlame', 'other'] as const;
const [SEND_DOORBELL, CQ_ARM, EQ_DOORBELL, BLUE_FLAME, OTHER] = [0, 1, 2, 3, 4];

export class AccessCounters {
  configReads = 0;
  configWrites = 0;
  readonly #uarAreaBytes: number;
  readonly #registerReads = new Float64Array(registerNames.length);
  readonly #registerWrites = new Float64Array(registerNames.length);
  readonly #placeReads = new Float64Array(placeNames.length);
  readonly #placeWrites = new Float64Array(placeNames.length);

  constructor(uarAreaBytes: number) {
    this.#uarAreaBytes = uarAreaBytes;
  }

  countRegister(offset: number, isWrite: boolean): void {
    const name = bar0.nameAt(offset);
    const index = name === undefined ? RESERVED : registerNames.indexOf(name);
    const counts = isWrite ? this.#registerWrites : this.#registerReads;
    counts[index] = counts[index]! + 1;
  }

  /** Allocates nothing. */
  countDoorbell(offset: number, isWrite: boolean): void {
    const place = this.#placeOf(offset);
    const counts = isWrite ? this.#placeWrites : this.#placeReads;
    counts[place] = counts[place]! + 1;
  }

  /** By the name of the register; those never accessed are left out. */
  registers(): Record<string, AccessCount> {
    return byName(registerNames, this.#registerReads, this.#registerWrites);
  }

  /** By the kind of place in BAR2. */
  doorbells(): Record<string, AccessCount> {
    return byName(placeNames, this.#placeReads, this.#placeWrites);
  }

  #placeOf(offset: number): number {
    if (offset >= this.#uarAreaBytes) return BLUE_FLAME!;
    const within = offset % uarPageBytes;
    if (within === uarOffset.sendDoorbell) return SEND_DOORBELL!;
    if (within === uarOffset.cqArm || within === uarOffset.cqArm + 4) return CQ_ARM!;
    return isEqDoorbell(within) ? EQ_DOORBELL! : OTHER!;
  }
}

function byName(
  names: readonly string[],
  reads: Float64Array,
  writes: Float64Array,
): Record<string, AccessCount> {
  const rows = names.map((name, index) => [name, { reads: reads[index]!, writes: writes[index]! }] as const);
  return Object.fromEntries(rows.filter(([, count]) => count.reads + count.writes > 0));
}
