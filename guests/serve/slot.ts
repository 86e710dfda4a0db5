/**
 * A slot with an HCA in it, as the machine of a real guest sees it: regions to read and write, interrupts that receive
 * descriptors, a reset.
 *
 *     region BAR0, BAR2 ── BAR's address + offset ──► MRd, MWr ─┐
 *     region config ──────── ConfigWindow ──────────► CfgRd, CfgWr ─┴► root complex ══ link ══ function
 *     interrupt descriptor ──► MessageTable: entries of the platform's own
 *
 * The slot only does what a host's firmware and vfio driver do with a real card: its device is that of the simulated machine.
 * The MSI-X table belongs to the platform, because the guest's machine keeps its own table and announces only the vectors whose
 * interrupts it wants; so its accesses to the table are not passed on.
 *
 * No action of a guest makes a call throw. An error thrown by the model is a defect of the emulator: it is reported with the
 * access that caused it, and from then on the slot answers all ones until it receives a new device.
 */

import { toHex } from '../../base/index.ts';
import { TrafficClass } from '../../hw/dma/index.ts';
import type { MachineConfig } from '../../machine/profile/index.ts';
import {
  type DeviceInterrupt,
  type DeviceRegion,
  type GuestMemory,
  INTERRUPT_ERROR,
  INTERRUPT_INTX,
  INTERRUPT_MSIX,
  INTERRUPT_REQUEST,
  REGION_BAR0,
  REGION_CONFIG,
  type VfioUserDevice,
} from '../slot/index.ts';
import { AccessCounters } from './access-counters.ts';
import { CONFIG_BYTES, ConfigWindow } from './config-window.ts';
import type { SlotTime } from './emulation-time.ts';
import type { GuestNode } from './guest-node.ts';
import { MessageTable } from './message-table.ts';
import { bytesInDword, SlotAccess } from './slot-access.ts';
import { RegisterSpin } from './wait-watch.ts';
import { WriteCombiner } from './write-combiner.ts';

const REGION_BAR2 = REGION_BAR0 + 2;
const LINE_BYTES = 64;
const MIB = 2 ** 20;
const ALL_ONES = 0xff;
const NO_ADDRESS = -1;
/** Base address registers in configuration space. */
const BARS_BEGIN = 0x10;
const BARS_END = 0x28;
/** The longest access of a BAR: no CPU makes a longer one. */
const ACCESS_BYTES_MAX = 4096;

/** The guest's access at which the model failed. */
export interface SlotListener {
  /** The model threw an error: the session is over, the slot waits for {@link Slot.fit}. */
  modelFailed(node: number, error: unknown, access: string): void;
}

/** Optional observer of TLPs on the bus. */
export interface ResetObserver {
  reset(why: string, nowPs: number): void;
}

/** Durations of the slot's own procedures: simulated picoseconds, and wall time. */
export interface SlotTimes {
  /** A line of the write-combining buffer leaves if it has not grown for this long. */
  readonly holdMs: number;
  readonly drainPs: number;
  /** A store has reached the device after this time. */
  readonly storePs: number;
}

export class Slot implements VfioUserDevice {
  readonly node: number;
  readonly regions: readonly DeviceRegion[];
  readonly interrupts: readonly DeviceInterrupt[];
  readonly accesses: AccessCounters;
  /** Registers that the guest reads repeatedly. */
  readonly spin = new RegisterSpin();
  /** Number of connected guests so far, requested resets, blocked accesses to the platform's table. */
  sessionCount = 0;
  resetCount = 0;
  tableWriteCount = 0;
  isConnected = false;
  readonly #config: MachineConfig;
  readonly #times: SlotTimes;
  readonly #listener: SlotListener;
  readonly #uarAreaBytes: number;
  readonly #barAddress = new Float64Array(3).fill(NO_ADDRESS);
  #isBroken = false;
  /** Stores in the combiner at the last check, and the time since which it has received no more. */
  #heldStoreCount = 0;
  #heldSinceMs = 0;
  #guest!: GuestNode;
  #time!: SlotTime;
  #access!: SlotAccess;
  #window!: ConfigWindow;
  #table!: MessageTable;
  #combiner!: WriteCombiner;
  #observer: ResetObserver | undefined;

  constructor(node: number, config: MachineConfig, times: SlotTimes, listener: SlotListener) {
    const { function: pcieFunction } = config.pcie;
    this.node = node;
    this.#config = config;
    this.#times = times;
    this.#listener = listener;
    this.#uarAreaBytes = 2 ** config.hca.capability.logUarAreaMib * MIB;
    this.accesses = new AccessCounters(this.#uarAreaBytes);
    const open = { isReadable: true, isWritable: true };
    this.regions = [
      { index: REGION_BAR0, sizeBytes: pcieFunction.bar0Bytes, ...open },
      { index: REGION_BAR2, sizeBytes: pcieFunction.bar2Bytes, ...open },
      { index: REGION_CONFIG, sizeBytes: CONFIG_BYTES, ...open },
    ];
    this.interrupts = [
      { index: INTERRUPT_INTX, count: 1 },
      { index: INTERRUPT_MSIX, count: pcieFunction.msixVectorCount },
      { index: INTERRUPT_ERROR, count: 1 },
      { index: INTERRUPT_REQUEST, count: 1 },
    ];
  }

  /**
   * Connects the slot to a device that was just powered on.
   * @param observer notified when the slot resets the device, which does not cross the bus
   */
  fit(guest: GuestNode, time: SlotTime, observer?: ResetObserver): void {
    const { rootComplex, function: pcieFunction, enumeration } = this.#config.pcie;
    this.#guest = guest;
    this.#time = time;
    this.#observer = observer;
    this.#access = new SlotAccess(guest.core, time, rootComplex.deviceBus << 8);
    this.#combiner = new WriteCombiner((address, source, sourceOffset, lengthBytes) =>
      this.#access.store(address, TrafficClass.blueFlame, source, sourceOffset, lengthBytes),
    );
    this.#window = new ConfigWindow(this.#access, pcieFunction, enumeration, {
      waitForReset: () => this.#time.runFor(this.#times.drainPs),
      functionWasReset: () => this.#table.wasReset(),
    });
    this.#table = new MessageTable(this.#access, this.#window, guest.interrupts, pcieFunction);
    this.#barAddress.fill(0);
    this.#isBroken = false;
    this.#guard('power-on', () => this.#window.powerOn());
  }

  get access(): SlotAccess {
    return this.#access;
  }

  get combiner(): WriteCombiner {
    return this.#combiner;
  }

  regionRead(region: number, offset: number, into: Uint8Array): boolean {
    if (this.#isBroken) return into.fill(ALL_ONES).length > 0;
    try {
      this.#time.arrive();
      this.#combiner.flush();
      if (region === REGION_CONFIG) {
        this.accesses.countConfiguration(offset, false, into);
        this.spin.forget();
        this.#window.read(offset, into);
        return true;
      }
      return this.#barRead(region, offset, into);
    } catch (error) {
      this.#fail(error, `read of ${into.length} bytes at ${hex(offset)} of ${regionName(region)}`);
      into.fill(ALL_ONES);
      return true;
    }
  }

  regionWrite(region: number, offset: number, bytes: Uint8Array): boolean {
    if (this.#isBroken) return true;
    try {
      this.#time.arrive();
      if (region !== REGION_CONFIG) return this.#barWrite(region, offset, bytes);
      this.accesses.countConfiguration(offset, true, bytes);
      this.spin.forget();
      this.#combiner.flush();
      this.#window.write(offset, bytes);
      if (offset < BARS_END && offset + bytes.length > BARS_BEGIN) this.#findBars();
      return true;
    } catch (error) {
      const value = toHex(bytes.subarray(0, 8));
      this.#fail(error, `write of ${bytes.length} bytes ${value} at ${hex(offset)} of ${regionName(region)}`);
      return true;
    }
  }

  /**
   * Releases stores that the guest's CPU would no longer hold: stores into a BlueFlame page without additions for a while.
   * Called before time passes.
   * @returns milliseconds of wall time after which to call again; 0 if none is held
   */
  settle(nowMs: number): number {
    if (this.#isBroken || this.#combiner.isEmpty) return 0;
    const { storeCount } = this.#combiner;
    if (storeCount !== this.#heldStoreCount) {
      this.#heldStoreCount = storeCount;
      this.#heldSinceMs = nowMs;
    }
    const leftMs = this.#heldSinceMs + this.#times.holdMs - nowMs;
    if (leftMs > 0) return leftMs;
    this.#guard('BlueFlame post', () => this.#combiner.flush());
    return 0;
  }

  reset(): void {
    this.resetCount++;
    this.#guard('reset', () => {
      this.#combiner.flush();
      this.#window.resetFunction();
      this.#findBars();
    });
  }

  setInterrupt(index: number, vector: number, descriptor: number): void {
    const { interrupts } = this.#guest;
    if (index === INTERRUPT_INTX) {
      this.#guard('INTx descriptor', () => interrupts.setPin(descriptor));
      return;
    }
    if (index !== INTERRUPT_MSIX) return;
    interrupts.setVector(vector, descriptor);
    this.#guard(`descriptor of vector ${vector}`, () => this.#table.arrange(vector));
  }

  maskInterrupt(index: number, vector: number, isMasked: boolean): void {
    if (index === INTERRUPT_INTX) {
      this.#guard('INTx mask', () => {
        // The guest has served the interrupt by a store that must reach the device first.
        if (!isMasked) this.#time.runFor(this.#times.storePs);
        this.#guest.interrupts.maskPin(isMasked);
      });
    } else if (index === INTERRUPT_MSIX) {
      this.#guard(`mask of vector ${vector}`, () => this.#table.mask(vector, isMasked));
    }
  }

  clientConnected(memory: GuestMemory): void {
    this.sessionCount++;
    this.isConnected = true;
    this.#guest.memory.connect(memory);
  }

  /** Resets the device as by a power cycle, so that the next guest finds it as the first did. */
  clientDisconnected(): void {
    this.isConnected = false;
    this.spin.forget();
    this.#guest.memory.disconnect();
    this.#guest.interrupts.reset();
    this.#guard('power-off', () => {
      this.#combiner.clear();
      this.#hold(true);
      this.#hold(false);
      this.#observer?.reset('the guest is gone: the slot was switched off and on', this.#time.nowPs);
      this.#barAddress.fill(0);
      this.#table.wasReset();
      this.#window.powerOn();
      this.#guest.interrupts.reset();
    });
  }

  /** Asserts or releases the slot's fundamental reset, and completes accesses in flight. */
  #hold(isAsserted: boolean): void {
    this.#guest.rootComplex.setReset(isAsserted);
    this.#time.touched();
    this.#time.runFor(this.#times.drainPs);
  }

  #barRead(region: number, offset: number, into: Uint8Array): boolean {
    const isBar = region === REGION_BAR0 || region === REGION_BAR2;
    if (!isBar || into.length > ACCESS_BYTES_MAX) return false;
    if (region === REGION_BAR0) this.accesses.countRegister(offset, false);
    else this.accesses.countDoorbell(offset, false);
    const base = this.#barAddress[region]!;
    for (let at = 0; at < into.length; ) {
      const lengthBytes = bytesInDword(offset + at, into.length - at);
      const value = base === NO_ADDRESS ? -1 : this.#access.load(base + offset + at, lengthBytes);
      for (let byte = 0; byte < lengthBytes; byte++) into[at + byte] = value >>> (8 * byte);
      at += lengthBytes;
    }
    this.spin.read(region, offset, into);
    return true;
  }

  #barWrite(region: number, offset: number, bytes: Uint8Array): boolean {
    const isBar = region === REGION_BAR0 || region === REGION_BAR2;
    if (!isBar || bytes.length > ACCESS_BYTES_MAX) return false;
    this.spin.forget();
    const base = this.#barAddress[region]!;
    if (region === REGION_BAR0) {
      this.accesses.countRegister(offset, true);
      if (this.#table.contains(offset, bytes.length)) {
        this.tableWriteCount++;
        return true;
      }
    } else {
      this.accesses.countDoorbell(offset, true);
    }
    if (base === NO_ADDRESS) return true;
    const isBlueFlame = region === REGION_BAR2 && offset >= this.#uarAreaBytes;
    if (!isBlueFlame && !this.#combiner.isEmpty) this.#combiner.flush();
    const trafficClass = region === REGION_BAR0 ? TrafficClass.register : TrafficClass.doorbell;
    for (let at = 0; at < bytes.length; ) {
      const address = base + offset + at;
      const lengthBytes = Math.min(bytes.length - at, LINE_BYTES - (address % LINE_BYTES));
      if (isBlueFlame) this.#combiner.write(address, bytes, at, lengthBytes);
      else this.#access.store(address, trafficClass, bytes, at, lengthBytes);
      at += lengthBytes;
    }
    return true;
  }

  #findBars(): void {
    for (const bar of [REGION_BAR0, REGION_BAR2]) this.#barAddress[bar] = this.#window.barAddress(bar);
  }

  #guard(access: string, action: () => void): void {
    if (this.#isBroken) return;
    try {
      this.#time.arrive();
      action();
    } catch (error) {
      this.#fail(error, access);
    }
  }

  #fail(error: unknown, access: string): void {
    this.#isBroken = true;
    this.#listener.modelFailed(this.node, error, access);
  }
}

const hex = (offset: number): string => `0x${offset.toString(16)}`;
const regionName = (region: number): string =>
  region === REGION_CONFIG ? 'configuration space' : `BAR${region - REGION_BAR0}`;
