/**
 * The receiving half of the MAC: takes complete frames from the cable's port, filters them, and puts them into the packet
 * buffer.
 *
 *     port ─► fifo ─► length? ─► destination ours? ─► VLAN ours? ─► tag out ─► room? ─► packet buffer ─► receive engine or PIORX
 *                       RLEC       RXFILT               RXFILT       (VME)     MPC, RXO
 *
 * The cable has no flow control: a frame without room is dropped and counted. Source: 8254x manual, 3.2.1, 13.4.22; for groups
 * and VLANs RCTL.MO, MTA, VFTA of its chapter 13; IEEE 802.1Q, 9.6.
 */

import { EtherType } from '../../abi/index.ts';
import { ethernetFcsBytes, ethernetTagAt, ethernetTagBytes, NicCause } from '../../abi/nic/index.ts';
import { type Cycles, MAC_BYTES } from '../../base/index.ts';
import {
  BlockAccount,
  type BlockState,
  type ClockDomain,
  Fifo,
  type LogicalProcess,
} from '../../sim/index.ts';
import type { EthernetPort } from '../../wire/index.ts';
import type { NicCounters } from './nic-counters.ts';
import type { NicInterrupts } from './nic-interrupts.ts';
import { NO_ROOM, NO_TAG, type PacketBuffer } from './packet-buffer.ts';
import type { NicConfig } from './parameters.ts';

/** Longest frame without RCTL.LPE, FCS included: with a VLAN tag. */
const BASIC_FRAME_BYTES_MAX = 1522;
const GROUP_BIT = 1;
const BROADCAST_BYTE = 0xff;
const VLAN_MASK = 0xfff;
/** Bits of a group's address that select a bit of MTA, and the number of bits left out after them, by RCTL.MO. */
const HASH_MASK = 0xfff;
const HASH_SHIFTS = [4, 3, 2, 0] as const;
/** MTA and VFTA: one bit for each of 4096 values. */
const FILTER_DWORDS = 128;

export interface ReceiveMacParts {
  readonly domain: ClockDomain;
  readonly config: NicConfig;
  readonly counters: NicCounters;
  readonly sram: Uint8Array;
  readonly buffer: PacketBuffer;
  readonly port: EthernetPort;
  readonly interrupts: NicInterrupts;
  readonly lp: LogicalProcess;
}

export interface ReceiveMacPorts {
  readonly engine: {
    /** A frame can be seen from `cycle` on. */
    frameReady(cycle: Cycles): void;
  };
}

export class ReceiveMac {
  readonly account = new BlockAccount('nicReceiveMac');
  /** RCTL. */
  isOn = false;
  isUnicastPromiscuous = false;
  isMulticastPromiscuous = false;
  takesLong = false;
  takesBroadcasts = false;
  /** RLPML. */
  longBytesMax = 0;
  /** RAL and RAH. */
  readonly address = new Uint8Array(MAC_BYTES);
  isAddressValid = false;
  /** CTRL.VME, RCTL.VFE and VFTA. */
  takesTagsOut = false;
  filtersVlans = false;
  readonly vlans = new Uint32Array(FILTER_DWORDS);
  /** RCTL.MO and MTA. */
  groupOffset = 0;
  readonly groups = new Uint32Array(FILTER_DWORDS);
  readonly #parts: ReceiveMacParts;
  #engine!: ReceiveMacPorts['engine'];
  readonly #arrived: Fifo;
  readonly #stage: number;

  constructor(parts: ReceiveMacParts) {
    this.#parts = parts;
    const { domain, port } = parts;
    this.#arrived = new Fifo({
      name: 'frames received',
      capacity: port.config.receiveFifoFrames,
      whenFull: 'the frame is dropped and counted',
    });
    this.#stage = domain.addStage(this.#run, this);
  }

  connect({ engine }: ReceiveMacPorts): void {
    this.#engine = engine;
  }

  /** The port has a complete frame in this slot. */
  frameArrived(slot: number): void {
    const { domain, lp } = this.#parts;
    const cycle = domain.clock.cycleAfter(lp.nowPs);
    this.#arrived.push(slot, cycle);
    domain.wake(this.#stage, cycle);
  }

  /** Registers as after reset; frames that have arrived are still in the port, and are dropped because reception is off. */
  reset(cycle: Cycles): void {
    this.isOn = false;
    this.isUnicastPromiscuous = false;
    this.isMulticastPromiscuous = false;
    this.takesLong = false;
    this.takesBroadcasts = false;
    this.takesTagsOut = false;
    this.filtersVlans = false;
    this.vlans.fill(0);
    this.groupOffset = 0;
    this.groups.fill(0);
    this.account.rest(cycle);
  }

  get fifos(): readonly Fifo[] {
    return [this.#arrived];
  }

  /** The registers. The port holds arrived frames until they are taken, so the port shows them. */
  inspect(): BlockState {
    const { isOn, isUnicastPromiscuous, isMulticastPromiscuous, takesLong, takesBroadcasts } = this;
    return {
      isOn,
      isUnicastPromiscuous,
      isMulticastPromiscuous,
      takesLong,
      takesBroadcasts,
      longBytesMax: this.longBytesMax,
      address: [...this.address],
      isAddressValid: this.isAddressValid,
      takesTagsOut: this.takesTagsOut,
      filtersVlans: this.filtersVlans,
      vlans: membersOf(this.vlans),
      groupOffset: this.groupOffset,
      groups: membersOf(this.groups),
    };
  }

  #run(cycle: Cycles): void {
    const arrived = this.#arrived;
    if (arrived.isEmpty) {
      this.account.rest(cycle);
      return;
    }
    const readyCycle = Math.max(arrived.headCycle, this.account.freeCycle);
    if (cycle < readyCycle) {
      this.#parts.domain.wake(this.#stage, readyCycle);
      return;
    }
    const { port, config } = this.#parts;
    const slot = arrived.pop();
    const bytes = port.frameBytes(slot);
    const moveCycles = Math.ceil(bytes / config.bufferBytesPerCycle);
    this.#take(slot, bytes, cycle, cycle + moveCycles + config.receiveLatencyCycles);
    port.consume(slot);
    this.account.serve(cycle, moveCycles);
    this.#parts.domain.wake(this.#stage, cycle + moveCycles);
  }

  #take(slot: number, bytes: number, cycle: Cycles, visibleCycle: Cycles): void {
    const { counters, port, buffer, interrupts, sram } = this.#parts;
    const start = port.frameStart(slot);
    counters.arrivals++;
    if (!this.isOn) {
      counters.disabledDrops++;
      return;
    }
    const longestBytes = this.takesLong ? this.longBytesMax : BASIC_FRAME_BYTES_MAX;
    if (bytes + ethernetFcsBytes > longestBytes) {
      counters.wrongLength++;
      return;
    }
    if (!this.#isOurs(start)) {
      counters.filtered++;
      return;
    }
    const tag = this.#tagOf(start, bytes);
    if (tag !== NO_TAG && this.filtersVlans && !isMember(this.vlans, tag & VLAN_MASK)) {
      counters.filteredVlans++;
      return;
    }
    const isTakenOut = tag !== NO_TAG && this.takesTagsOut;
    const kept = isTakenOut ? bytes - ethernetTagBytes : bytes;
    const place = buffer.reserve(kept);
    if (place === NO_ROOM) {
      counters.missed++;
      interrupts.set(NicCause.RXO, cycle);
      return;
    }
    const { rxBytes } = port;
    const headBytes = isTakenOut ? ethernetTagAt : 0;
    const rest = start + bytes - kept;
    for (let at = 0; at < headBytes; at++) sram[place + at] = rxBytes[start + at]!;
    for (let at = headBytes; at < kept; at++) sram[place + at] = rxBytes[rest + at]!;
    buffer.commit(kept, visibleCycle, isTakenOut ? tag : NO_TAG);
    counters.accepted++;
    if (this.#isBroadcast(start)) counters.broadcasts++;
    this.#engine.frameReady(visibleCycle);
  }

  #isOurs(start: number): boolean {
    const { rxBytes } = this.#parts.port;
    if (this.#isBroadcast(start)) return this.takesBroadcasts || this.isMulticastPromiscuous;
    if ((rxBytes[start]! & GROUP_BIT) !== 0)
      return this.isMulticastPromiscuous || isMember(this.groups, this.#hashOf(start));
    if (this.isUnicastPromiscuous) return true;
    if (!this.isAddressValid) return false;
    for (let at = 0; at < MAC_BYTES; at++) if (rxBytes[start + at] !== this.address[at]) return false;
    return true;
  }

  /** Returns the hash of a group address. */
  #hashOf(start: number): number {
    const { rxBytes } = this.#parts.port;
    const last = rxBytes[start + 4]! | (rxBytes[start + 5]! << 8);
    return (last >>> HASH_SHIFTS[this.groupOffset]!) & HASH_MASK;
  }

  /** Priority and VLAN of a frame's tag, or NO_TAG; a frame that ends within its tag has none. */
  #tagOf(start: number, bytes: number): number {
    const { rxBytes } = this.#parts.port;
    const at = start + ethernetTagAt;
    const wordAt = (place: number): number => (rxBytes[place]! << 8) | rxBytes[place + 1]!;
    const isTagged = bytes >= ethernetTagAt + ethernetTagBytes && wordAt(at) === EtherType.VLAN;
    return isTagged ? wordAt(at + 2) : NO_TAG;
  }

  #isBroadcast(start: number): boolean {
    const { rxBytes } = this.#parts.port;
    for (let at = 0; at < MAC_BYTES; at++) if (rxBytes[start + at] !== BROADCAST_BYTE) return false;
    return true;
  }

  /** Handles a new epoch: see EdgeKeeper. */
  rebase(cycles: number): void {
    this.account.rebase(cycles);
    this.#arrived.rebase(cycles);
  }
}

const isMember = (filter: Uint32Array, value: number): boolean =>
  ((filter[value >>> 5]! >>> (value & 31)) & 1) === 1;

const membersOf = (filter: Uint32Array): number[] =>
  Array.from({ length: 32 * FILTER_DWORDS }, (_, value) => value).filter((value) => isMember(filter, value));
