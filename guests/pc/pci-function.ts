/**
 * A function in a PCI slot of the PC: its configuration space, its BARs, its interrupts; everything of the device itself is
 * answered by the slot that serves it.
 *
 *     load   ─► the stores before it, then the device runs until its completion has come
 *     store  ─► waits until the quantum ends, which it ends: only then is its instant known
 */
import { BAR_REGISTER_OFFSET, type0Header } from '../../abi/pci/index.ts';
import type { FunctionConfig } from '../../hw/pcie/index.ts';
import type { Slot } from '../serve/index.ts';
import { INTERRUPT_INTX, REGION_BAR0, REGION_CONFIG } from '../slot/index.ts';
import { AccessFaults } from './access-faults.ts';
import { type InterruptMessage, MsixTable } from './msix-table.ts';
import type { AccessKind } from './pc-profile.ts';

/** The PC around a function. */
export interface FunctionHost {
  /** Called before a load: the devices must come to the processor's instant. */
  beforeLoad(): void;
  /** Called after a load: it has taken the processor until the devices' instant. */
  afterLoad(): void;
  /** Adds this time to the completion of the present load. */
  loadWaits(ps: number): void;
  /** Instant of the processor. */
  nowPs(): number;
  /** A store waits. */
  storeWaits(): void;
  /** Called at the end of each access, of whichever part. */
  accessed(kind: AccessKind): void;
}

/** A store that waits for the end of its quantum. */
interface WaitingStore {
  readonly region: number;
  readonly offset: number;
  readonly bytes: Uint8Array;
}

export type AccessBytes = 1 | 2 | 4;
export type ConfigWrite = readonly [offset: number, value: number, lengthBytes: AccessBytes];

const placedBars = [0, 2] as const;
const REGION_BAR2 = REGION_BAR0 + 2;
const barsEnd = BAR_REGISTER_OFFSET + 24;
const commandOffset = type0Header.registers.command.offset;
const memoryEnable = type0Header.registers.command.fields.memorySpaceEnable.mask;
const barFlags = 0xf;
/** Stores that a path may hold: as many wait for its buffers as a store queue and its credits are worth. */
const heldMax = 64;
/** Firmware and a kernel's scan of the bus make some dozens. */
const keptWritesMax = 4096;

export class PciFunction {
  /** Number of the device on the bus; the function is its only one. */
  readonly device: number;
  readonly slot: Slot;
  readonly msix: MsixTable;
  readonly pinDescriptor: number;
  readonly faults = new AccessFaults();
  /** Instant until which stores are held on their way; 0 if they are not. */
  heldUntilPs = 0;
  /** Loads and stores of the BARs so far. */
  loadCount = 0;
  storeCount = 0;
  /** Writes of configuration space, until the function's memory is decoded: from then on a driver uses it. */
  readonly configWrites: ConfigWrite[] = [];
  readonly #host: FunctionHost;
  readonly #waiting: WaitingStore[] = [];
  readonly #bytes = new Uint8Array(4);
  readonly #view = new DataView(this.#bytes.buffer);
  /** Addresses of BAR0 and BAR2, while memory is decoded; found again after a write that may change them. */
  #barAddresses: readonly number[] = [];
  #areBarsKnown = false;

  /** @param firstDescriptor its interrupts have this descriptor (the pin) and those after it (vectors) */
  constructor(
    device: number,
    slot: Slot,
    config: FunctionConfig,
    firstDescriptor: number,
    host: FunctionHost,
  ) {
    this.device = device;
    this.slot = slot;
    this.#host = host;
    this.pinDescriptor = firstDescriptor;
    this.msix = new MsixTable(slot, config, firstDescriptor + 1);
    slot.setInterrupt(INTERRUPT_INTX, 0, firstDescriptor);
  }

  configRead(offset: number, lengthBytes: AccessBytes): number {
    if (this.faults.isRemoved) return -1;
    this.#settle();
    this.#host.beforeLoad();
    this.slot.regionRead(REGION_CONFIG, offset, this.#bytes.subarray(0, lengthBytes));
    this.#host.afterLoad();
    this.#host.accessed('configuration');
    return this.#taken(lengthBytes);
  }

  configWrite(offset: number, value: number, lengthBytes: AccessBytes): void {
    if (this.faults.isRemoved) return;
    this.#settle();
    this.#host.beforeLoad();
    const bytes = bytesOf(value, lengthBytes);
    if (this.configWrites.length < keptWritesMax) this.configWrites.push([offset, value, lengthBytes]);
    this.slot.regionWrite(REGION_CONFIG, offset, bytes);
    this.msix.configWritten(offset, bytes);
    this.#host.afterLoad();
    this.#host.accessed('configuration');
    if (offset < barsEnd && (offset >= BAR_REGISTER_OFFSET || offset <= commandOffset + 1))
      this.#areBarsKnown = false;
  }

  /** Whether an address of memory is one of the function's. */
  decodes(address: number): boolean {
    return this.#placeOf(address) !== undefined;
  }

  load(address: number, lengthBytes: 1 | 4): number {
    const place = this.#placeOf(address);
    if (place === undefined) return -1;
    const { region, offset } = place;
    this.loadCount++;
    if (region === REGION_BAR0 && this.msix.contains(offset)) {
      this.#host.accessed('load');
      return this.msix.read(offset, lengthBytes);
    }
    const fault = this.faults.atLoad();
    const isAnswered =
      !this.faults.isRemoved && fault?.kind !== 'load-ones' && fault?.kind !== 'load-timeout';
    this.#settle();
    this.#host.beforeLoad();
    if (isAnswered) this.slot.regionRead(region, offset, this.#bytes.subarray(0, lengthBytes));
    if (fault?.delayPs !== undefined) this.#host.loadWaits(fault.delayPs);
    this.#host.afterLoad();
    this.#host.accessed('load');
    return isAnswered ? this.#taken(lengthBytes) : -1;
  }

  store(address: number, value: number, lengthBytes: 1 | 4): void {
    const place = this.#placeOf(address);
    if (place === undefined) return;
    const { region, offset } = place;
    this.storeCount++;
    if (region === REGION_BAR0 && this.msix.contains(offset)) {
      this.#settle();
      this.msix.write(offset, value, lengthBytes);
      this.#host.accessed('store');
      return;
    }
    const fault = this.faults.atStore();
    const store = { region, offset, bytes: bytesOf(value, lengthBytes) };
    if (!this.faults.isRemoved && fault?.kind !== 'store-lost') this.#waiting.push(store);
    if (fault?.kind === 'store-twice') this.#waiting.push(store);
    this.#host.storeWaits();
    if (fault?.kind === 'store-late') this.hold(fault.delayPs!);
    this.#host.accessed('store');
  }

  /** Holds the waiting and all later stores for this time, or until a load. */
  hold(delayPs: number): void {
    this.heldUntilPs = Math.max(this.heldUntilPs, this.#host.nowPs() + delayPs);
  }

  /** The stores that wait reach the device, in order. @returns whether there were any */
  settle(): boolean {
    if (this.#waiting.length === 0) return false;
    if (this.heldUntilPs > this.#host.nowPs() && this.#waiting.length < heldMax) return false;
    this.#host.beforeLoad();
    this.#settle();
    return true;
  }

  /** The message of an interrupt with this descriptor; undefined for the pin. */
  messageOf(descriptor: number): InterruptMessage | undefined {
    return descriptor === this.pinDescriptor ? undefined : this.msix.messageOf(descriptor);
  }

  /** The guest has taken the pin's interrupt: it is raised again if the device still asserts it. */
  unmaskPin(): void {
    this.slot.maskInterrupt(INTERRUPT_INTX, 0, false);
  }

  #settle(): void {
    this.heldUntilPs = 0;
    if (this.#waiting.length === 0) return;
    for (const { region, offset, bytes } of this.#waiting.splice(0))
      this.slot.regionWrite(region, offset, bytes);
  }

  #placeOf(address: number): { readonly region: number; readonly offset: number } | undefined {
    if (!this.#areBarsKnown) this.#findBars();
    for (const [index, bar] of placedBars.entries()) {
      const base = this.#barAddresses[index];
      if (base === undefined) continue;
      const region = bar === 0 ? REGION_BAR0 : REGION_BAR2;
      const { sizeBytes } = this.slot.regions[index]!;
      if (address >= base && address < base + sizeBytes) return { region, offset: address - base };
    }
    return undefined;
  }

  #findBars(): void {
    this.#areBarsKnown = true;
    const read = (offset: number): number => {
      this.slot.regionRead(REGION_CONFIG, offset, this.#bytes);
      return this.#view.getUint32(0, true);
    };
    const isDecoding = (read(commandOffset) & memoryEnable) !== 0;
    this.#barAddresses = isDecoding
      ? placedBars.map((bar) => (read(BAR_REGISTER_OFFSET + 4 * bar) & ~barFlags) >>> 0)
      : [];
  }

  #taken(lengthBytes: AccessBytes): number {
    if (lengthBytes === 4) return this.#view.getInt32(0, true);
    return lengthBytes === 2 ? this.#view.getUint16(0, true) : this.#bytes[0]!;
  }
}

function bytesOf(value: number, lengthBytes: AccessBytes): Uint8Array {
  const bytes = new Uint8Array(lengthBytes);
  for (let at = 0; at < lengthBytes; at++) bytes[at] = value >>> (8 * at);
  return bytes;
}
