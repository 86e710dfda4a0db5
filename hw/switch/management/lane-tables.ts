/**
 * Tables by which a switch would map service levels to lanes and arbitrate lanes, as a subnet manager writes them: blocks of 64 bytes,
 * stored and returned. Source: IBTA volume 1, 14.2.5.8 (SL to VL) and 14.2.5.9 (arbitration).
 */
import { smpDataBytes } from '../../../abi/index.ts';

const slToVlBytes = 8;
/** Halves of the low and of the high table, each of 32 entries of lane and weight. */
const arbitrationBlocks = 4;

/** Lanes of service levels, for each pair of input and output. */
export class SlToVlTable {
  readonly #portCount: number;
  readonly #lanes: Uint8Array;

  /** @param portCount ports beside port 0 */
  constructor(portCount: number) {
    this.#portCount = portCount;
    this.#lanes = new Uint8Array((portCount + 1) ** 2 * slToVlBytes);
  }

  /** Bytes of a pair, two lanes each, service level 0 first; undefined if a port does not exist. */
  lanesOf(input: number, output: number): Uint8Array | undefined {
    if (input > this.#portCount || output > this.#portCount) return undefined;
    const at = (input * (this.#portCount + 1) + output) * slToVlBytes;
    return this.#lanes.subarray(at, at + slToVlBytes);
  }

  /** Fills in the attribute. @returns false if the modifier names no pair */
  get(modifier: number, data: Uint8Array): boolean {
    const lanes = this.#named(modifier);
    if (lanes === undefined) return false;
    data.fill(0);
    data.set(lanes);
    return true;
  }

  set(modifier: number, data: Uint8Array): boolean {
    const lanes = this.#named(modifier);
    if (lanes === undefined) return false;
    lanes.set(data.subarray(0, slToVlBytes));
    return this.get(modifier, data);
  }

  #named(modifier: number): Uint8Array | undefined {
    return modifier > 0xffff ? undefined : this.lanesOf(modifier >> 8, modifier & 0xff);
  }
}

/** Weights of lanes at each output. */
export class VlArbitrationTable {
  readonly #portCount: number;
  readonly #entries: Uint8Array;

  constructor(portCount: number) {
    this.#portCount = portCount;
    this.#entries = new Uint8Array((portCount + 1) * arbitrationBlocks * smpDataBytes);
  }

  /** Pairs of lane and weight of a block, 1 and 2 of the low table, 3 and 4 of the high one; undefined if it does not exist. */
  block(port: number, block: number): Uint8Array | undefined {
    if (port > this.#portCount || block < 1 || block > arbitrationBlocks) return undefined;
    const at = (port * arbitrationBlocks + block - 1) * smpDataBytes;
    return this.#entries.subarray(at, at + smpDataBytes);
  }

  /** Fills in the attribute. @returns false if the modifier names no block of a port */
  get(modifier: number, data: Uint8Array): boolean {
    const block = this.#named(modifier);
    if (block === undefined) return false;
    data.set(block);
    return true;
  }

  set(modifier: number, data: Uint8Array): boolean {
    const block = this.#named(modifier);
    if (block === undefined) return false;
    block.set(data);
    return true;
  }

  #named(modifier: number): Uint8Array | undefined {
    return this.block(modifier & 0xffff, modifier >>> 16);
  }
}
