/**
 * State of a port that only Ethernet has: its MAC, the limits that QUERY_PORT reports, steering and statistics. The
 * port itself holds the link and its state. Source: interface sheet 3.13.
 */
import type { BlockState } from '../../../sim/index.ts';
import { ETHERNET_FCS_BYTES, ETHERNET_HEADER_BYTES, type EthernetPort } from '../../../wire/index.ts';
import { FlowCounters } from '../statistics/index.ts';
import { type FrameErrors, FrameStatistics, type PauseControl } from './frame-statistics.ts';
import { FrameSteering } from './frame-steering.ts';
import { RoceSide } from './roce-side.ts';

export interface EthernetSideSetup {
  /** Burned in: 48 bits. */
  readonly mac: number;
  /** Longest payload of a frame. */
  readonly mtuBytes: number;
  readonly gigabitsPerSecond: number;
  /** Versions of RoCE that the port supports; omitted: none. */
  readonly roce?: 'none' | 'v1' | 'v2' | undefined;
  /** Places of the GID table. */
  readonly gidCount?: number | undefined;
  /** Checksum fields of completions of received frames; if omitted, completions report no checksums. */
  readonly receiveChecksums?: ReceiveChecksums | undefined;
  /** Log2 of the largest payload of an LSO in bytes; 0 or omitted: no LSO. */
  readonly logMaxLsoBytes?: number | undefined;
  /** Number of flow counters; 0 or omitted: none. */
  readonly flowCounterCount?: number | undefined;
  /** Error counters of the wire port; undefined on a port without one. */
  readonly errors: FrameErrors | undefined;
  /** Flow control of the wire port; omitted on a port without a cable. */
  readonly flowControl?: PauseControl | undefined;
}

/** See `capabilityParameters`. */
export type ReceiveChecksums = 'none' | 'verified' | 'complete';

const TAG_BYTES = 4;
/** Codes of QUERY_PORT; other speeds have none. */
const speedCodes: Readonly<Record<number, number>> = { 1: 0x02, 10: 0x01, 20: 0x08, 40: 0x40, 56: 0x20 };
const OTHER_SPEED = 0x0f;

/** Port 1 as Ethernet, for the blocks that send and receive by it. */
export interface EthernetAttachment {
  /** The port's end of the cable. */
  readonly port: EthernetPort;
  /** The state that software has set up. */
  readonly side: EthernetSide;
}

export class EthernetSide {
  readonly mac: number;
  readonly mtuBytes: number;
  readonly speedCode: number;
  readonly steering = new FrameSteering();
  readonly statistics: FrameStatistics;
  /** Undefined without RoCE. */
  readonly roce: RoceSide | undefined;
  readonly receiveChecksums: ReceiveChecksums;
  /** Largest payload of an LSO in bytes; 0 without LSO. */
  readonly lsoBytesMax: number;
  /** Undefined without flow counters. */
  readonly flowCounters: FlowCounters | undefined;
  readonly #flowControl: PauseControl | undefined;

  constructor(setup: EthernetSideSetup) {
    const { mac, mtuBytes, gigabitsPerSecond, errors, roce = 'none', gidCount = 0 } = setup;
    const { receiveChecksums = 'none', logMaxLsoBytes = 0, flowCounterCount = 0 } = setup;
    this.flowCounters = flowCounterCount === 0 ? undefined : new FlowCounters(flowCounterCount);
    this.receiveChecksums = receiveChecksums;
    this.lsoBytesMax = logMaxLsoBytes === 0 ? 0 : 2 ** logMaxLsoBytes;
    this.mac = mac;
    this.mtuBytes = mtuBytes;
    this.speedCode = speedCodes[gigabitsPerSecond] ?? OTHER_SPEED;
    this.#flowControl = setup.flowControl;
    this.statistics = new FrameStatistics(errors, setup.flowControl);
    this.roce = roce === 'none' ? undefined : new RoceSide(this.steering, roce, gidCount);
  }

  /** Most that software may set as longest frame: header, two tags and FCS around the payload. */
  get frameLimitBytes(): number {
    return this.mtuBytes + ETHERNET_HEADER_BYTES + 2 * TAG_BYTES + ETHERNET_FCS_BYTES;
  }

  /**
   * Applies SET_PORT: whether the port sends PAUSE frames, and whether it obeys them. Undefined leaves a setting
   * unchanged.
   */
  setPauses(sends: boolean | undefined, heeds: boolean | undefined): void {
    const flowControl = this.#flowControl;
    if (flowControl === undefined) return;
    const { setting } = flowControl;
    flowControl.set(sends ?? setting.sends, heeds ?? setting.heeds);
  }

  /** The same for pauses of single priorities, as masks. */
  setPriorityPauses(sends: number | undefined, heeds: number | undefined): void {
    const priorities = this.#flowControl?.priorities;
    if (priorities === undefined) return;
    const { setting } = priorities;
    priorities.set(sends ?? setting.sends, heeds ?? setting.heeds);
  }

  /** See Block.inspect. */
  inspect(): BlockState {
    const roce = this.roce === undefined ? {} : { roce: this.roce.inspect() };
    const { flowCounters } = this;
    return {
      steering: this.steering.inspect(),
      statistics: this.statistics.inspect(),
      ...roce,
      ...(flowCounters === undefined ? {} : { flowCounters: flowCounters.inspect() }),
    };
  }

  /** Restores the state of a fresh device. */
  reset(): void {
    this.steering.reset();
    this.roce?.reset();
    this.setPauses(false, false);
    this.setPriorityPauses(0, 0);
    this.statistics.clear();
    this.statistics.clearFlowControl();
    this.flowCounters?.reset();
  }
}
