/**
 * Configuration space as seen on the bus: names of its registers, and the places of the BARs from writes to the base
 * address registers. The size of a BAR becomes known when software sizes it: it writes all ones and reads the mask
 * back. Source: PCI Local Bus 6.1, 6.2.5.1; interface sheet 1.2, 1.3.
 */
import {
  Bar,
  barSizeBytes,
  capabilityOffset,
  extendedCapabilityOffset,
  gatewayOffset,
} from '../abi/index.ts';
import { BAR_REGISTER_COUNT, BAR_REGISTER_OFFSET, expressCapability, type0Header } from '../abi/pci/index.ts';
import type { Trace } from './trace.ts';
import { hex } from './trace-event.ts';

const barBase = BAR_REGISTER_OFFSET;
const barCount = BAR_REGISTER_COUNT;
const barFlagBits = ~type0Header.registers.bar0.fields.address.mask >>> 0;
const dwordBytes = 4;
const allOnes = 0xffff_ffff;
/** Device control register in the PCI Express capability, which starts a function-level reset. */
const { offset: deviceControlOffset, fields: deviceControlFields } =
  expressCapability.registers.deviceControl;
const deviceControl = capabilityOffset.pciExpress + deviceControlOffset;
const functionLevelReset = deviceControlFields.initiateFunctionLevelReset.mask;

const headerNames: readonly (readonly [number, string])[] = [
  [0x00, 'device and vendor ID'],
  [0x04, 'status and command'],
  [0x08, 'class code and revision'],
  [0x0c, 'BIST, header type, latency timer, cache line'],
  [0x10, 'BAR0'],
  [0x14, 'BAR0 high'],
  [0x18, 'BAR2'],
  [0x1c, 'BAR2 high'],
  [0x20, 'BAR4'],
  [0x24, 'BAR4 high'],
  [0x28, 'CardBus CIS'],
  [0x2c, 'subsystem'],
  [0x30, 'expansion ROM'],
  [0x34, 'capabilities pointer'],
  [0x38, 'reserved'],
  [0x3c, 'interrupt line and pin'],
  [gatewayOffset.address, 'register gateway, address'],
  [gatewayOffset.data, 'register gateway, data'],
  ...Object.entries({ ...capabilityOffset, ...extendedCapabilityOffset }).map(
    ([name, offset]) => [offset, name] as const,
  ),
];
const named = headerNames.toSorted(([left], [right]) => left - right);

/** Name of the register at a configuration offset. */
function configRegisterName(offset: number): string {
  const found = named.findLast(([start]) => start <= offset);
  const [start, name] = found ?? [0, ''];
  return start === offset ? name : `${name} + ${hex(offset - start)}`;
}

/** A BAR at its place on the bus. */
export interface PlacedBar {
  readonly bar: number;
  readonly address: number;
  readonly sizeBytes: number;
}

export class ConfigFollower {
  readonly #trace: Trace;
  readonly #onReset: (why: string, nowPs: number) => void;
  readonly #values = new Uint32Array(barCount);
  readonly #sizes = new Map<number, number>([
    [Bar.CONFIGURATION, barSizeBytes.configuration],
    [Bar.UAR, barSizeBytes.uar],
  ]);
  #given: readonly PlacedBar[] = [];

  constructor(trace: Trace, onReset: (why: string, nowPs: number) => void) {
    this.#trace = trace;
    this.#onReset = onReset;
  }

  /** Sets the places of the BARs, for a bus on which their configuration is not seen. */
  give(bars: readonly PlacedBar[]): void {
    this.#given = bars;
  }

  /** Address of a BAR now, or undefined while it has none. */
  placeOf(bar: number): PlacedBar | undefined {
    const given = this.#given.find((one) => one.bar === bar);
    if (given !== undefined) return given;
    const low = this.#values[bar]!;
    const address = this.#values[bar + 1]! * 0x1_0000_0000 + ((low & ~barFlagBits) >>> 0);
    if (address === 0 || low >>> 4 === allOnes >>> 4) return undefined;
    return { bar, address, sizeBytes: this.#sizes.get(bar)! };
  }

  read(target: number, offset: number, status: number, value: number, nowPs: number): void {
    const bar = (offset - barBase) >> 2;
    if (status === 0 && (bar === Bar.CONFIGURATION || bar === Bar.UAR) && offset % 4 === 0) {
      const isSizing = this.#values[bar]! >>> 4 === allOnes >>> 4;
      if (isSizing) this.#sizes.set(bar, (~(value & ~barFlagBits) >>> 0) + 1);
    }
    this.#say('reads', target, offset, status === 0 ? hex(value) : `failed, status ${status}`, nowPs);
  }

  /** A write of 1 to 4 bytes within one dword; the other bytes keep their value. */
  write(target: number, offset: number, lengthBytes: number, value: number, nowPs: number): void {
    const mask = (allOnes >>> (8 * (dwordBytes - lengthBytes))) >>> 0;
    const written = (value & mask) >>> 0;
    const shift = 8 * (offset % dwordBytes);
    const bar = (offset - barBase) >> 2;
    if (bar >= 0 && bar < barCount)
      this.#values[bar] = (this.#values[bar]! & ~(mask << shift)) | (written << shift);
    const isDeviceControl = offset - (offset % dwordBytes) === deviceControl;
    if (isDeviceControl && ((written << shift) & functionLevelReset) !== 0)
      this.#onReset('a function-level reset', nowPs);
    const length =
      lengthBytes === dwordBytes ? '' : `, ${lengthBytes} ${lengthBytes === 1 ? 'byte' : 'bytes'}`;
    this.#say('<-', target, offset, hex(written) + length, nowPs);
  }

  #say(verb: string, target: number, offset: number, text: string, nowPs: number): void {
    if (!this.#trace.wants('mmio')) return;
    const place = `${target >> 8}:${(target >> 3) & 31}.${target & 7}`;
    const name = configRegisterName(offset);
    this.#trace.emit('mmio', nowPs, `config ${place} ${hex(offset).padEnd(5)} ${name} ${verb} ${text}`);
  }
}
