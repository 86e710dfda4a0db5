/** A guest's accesses to its slot, by register, counted on arrival, before the device checks them. */
import { bar0, gatewayOffset, isEqDoorbell, uarOffset, uarPageBytes } from '../../abi/index.ts';
import { viewOf } from '../../base/index.ts';

/** Reads and writes of one register, or kind of place. */
export interface AccessCount {
  readonly reads: number;
  readonly writes: number;
}

const registerNames = [...Object.keys(bar0.registers), 'reserved'];
const RESERVED = registerNames.length - 1;
/** Places of BAR2. */
const placeNames = ['sendDoorbell', 'cqArm', 'eqDoorbell', 'blueFlame', 'other'] as const;
const [SEND_DOORBELL, CQ_ARM, EQ_DOORBELL, BLUE_FLAME, OTHER] = [0, 1, 2, 3, 4];

/** A driver uses few; a guest may use all. */
const unknownPlacesMax = 64;

export class AccessCounters {
  configReads = 0;
  configWrites = 0;
  /** Offsets without a register in the model, named like `BAR0 0xf0040`; beyond this number they share one row. */
  readonly #unknown = new Map<string, { reads: number; writes: number }>();
  readonly #uarAreaBytes: number;
  #gatewayAddress = 0;
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
    if (name === undefined) this.#countUnknown(`BAR0 0x${offset.toString(16)}`, isWrite);
  }

  /** Counts a configuration access; for the gateway's data register, also the gateway's target. */
  countConfiguration(offset: number, isWrite: boolean, bytes: Uint8Array): void {
    if (isWrite) this.configWrites++;
    else this.configReads++;
    if (isWrite && offset === gatewayOffset.address && bytes.length === 4)
      this.#gatewayAddress = viewOf(bytes).getUint32(0, true);
    if (offset !== gatewayOffset.data || bar0.nameAt(this.#gatewayAddress) !== undefined) return;
    this.#countUnknown(`register gateway 0x${this.#gatewayAddress.toString(16)}`, isWrite);
  }

  /** Allocates nothing for an existing register. */
  countDoorbell(offset: number, isWrite: boolean): void {
    const place = this.#placeOf(offset);
    const counts = isWrite ? this.#placeWrites : this.#placeReads;
    counts[place] = counts[place]! + 1;
    if (place === OTHER)
      this.#countUnknown(`BAR2 UAR page offset 0x${(offset % uarPageBytes).toString(16)}`, isWrite);
  }

  /** Returns the counts by the name of the register, without those never accessed. */
  registers(): Record<string, AccessCount> {
    return byName(registerNames, this.#registerReads, this.#registerWrites);
  }

  /** Returns the counts by the kind of place in BAR2. */
  doorbells(): Record<string, AccessCount> {
    return byName(placeNames, this.#placeReads, this.#placeWrites);
  }

  /** Offsets without a register in the model. */
  unknown(): Record<string, AccessCount> {
    return Object.fromEntries([...this.#unknown].map(([place, count]) => [place, { ...count }]));
  }

  #countUnknown(place: string, isWrite: boolean): void {
    const key = this.#unknown.has(place) || this.#unknown.size < unknownPlacesMax ? place : 'other places';
    const count = this.#unknown.get(key) ?? { reads: 0, writes: 0 };
    this.#unknown.set(key, count);
    if (isWrite) count.writes++;
    else count.reads++;
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
