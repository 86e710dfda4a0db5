/**
 * Steering of received frames: the tables of an Ethernet port as SET_PORT, SET_VLAN_FLTR and SET_MCAST_FLTR write them,
 * and the QP that they select ("A0" steering).
 *
 *     to a MAC of the table ──> base QPN + its index        to a group ──filter──> the QP of groups
 *     to another MAC        ──> dropped; with promiscuity everything that nothing else takes goes to the QP named with it
 *     with a tag            ──> dropped unless the VLAN filter has its VID, or the port is promiscuous
 *
 * With device-managed steering, its rules select the QP instead of the tables (flow-rules.ts); the filters still apply.
 *
 * The VLAN table is stored but selects nothing: no source tells which fields other than the MAC take part, and Linux
 * creates one QP per MAC. Sources: interface sheet 3.12, 3.18, 8.3.
 */
import { portTableEntries, vlanIdCount } from '../../../abi/index.ts';
import { MAC_BYTES } from '../../../base/index.ts';
import type { BlockState } from '../../../sim/index.ts';
import { ETHERNET_FCS_BYTES } from '../../../wire/index.ts';
import { FlowRules } from './flow-rules.ts';

/** Frames that were not received, and why. */
const frameDropReasons = [
  /** The port was not open, or no QP has been named. */
  'portClosed',
  'foreignMac',
  'multicastFilter',
  'vlanFilter',
  /** Longer than the MTU that software set. */
  'tooLong',
  'unknownQp',
  'qpState',
  'noReceiveWqe',
  /** A page of its buffer was requested. */
  'pageFault',
  /** A packet of RoCE with a wrong ICRC; then a malformed one. */
  'packetDamaged',
  'packetMalformed',
] as const;
export type FrameDropReason = (typeof frameDropReasons)[number];

/** Value instead of a MAC: the entry is empty. */
const NO_MAC = -1;
const NO_QP = -1;
const GROUP_BIT = 1;

/** QPs that SET_PORT's receive-QP calculation selects. */
export interface ReceiveQps {
  readonly baseQpn: number;
  readonly isPromiscuous: boolean;
  readonly promiscuousQpn: number;
  readonly multicastQpn: number;
}

export class FrameSteering {
  /** MACs by index, as 48-bit numbers, or -1. */
  readonly macs = new Float64Array(portTableEntries).fill(NO_MAC);
  /** VIDs by index, or -1. */
  readonly vlans = new Int32Array(portTableEntries).fill(-1);
  /** 1 where the VID passes. */
  readonly vlanFilter = new Uint8Array(vlanIdCount);
  readonly groups = new Set<number>();
  isGroupFilterOn = false;
  receiveQps: ReceiveQps | undefined;
  /** Rules choose, and no table. */
  isManaged = false;
  readonly flows = new FlowRules();
  /** Longest frame with FCS that software has room for. */
  longestBytes = Number.POSITIVE_INFINITY;
  /**
   * Frames dropped since the model was built, by reason: those for which {@link qpnOf} found no QP, and others.
   */
  readonly drops: Record<FrameDropReason, number> = noDrops();
  /**
   * Reason for which {@link qpnOf} found no QP.
   */
  #reason: FrameDropReason = 'portClosed';

  /**
   * Returns the QPN for the frame whose header is at `bytes[at]`, with its length including FCS and its VLAN ID or -1;
   * -1 if it is dropped.
   */
  qpnOf(bytes: Uint8Array, at: number, frameBytes: number, vlanId: number): number {
    if (this.isManaged) return this.#qpnByRule(bytes, at, frameBytes, vlanId);
    const qps = this.receiveQps;
    if (qps === undefined) return this.#none('portClosed');
    if (frameBytes > this.longestBytes) return this.#none('tooLong');
    if (vlanId > 0 && this.vlanFilter[vlanId] === 0 && !qps.isPromiscuous) return this.#none('vlanFilter');
    const mac = macAt(bytes, at);
    if ((bytes[at]! & GROUP_BIT) !== 0) {
      if (!this.isGroupFilterOn || this.groups.has(mac)) return qps.multicastQpn;
      return qps.isPromiscuous ? qps.promiscuousQpn : this.#none('multicastFilter');
    }
    const index = this.macs.indexOf(mac);
    if (index !== -1) return qps.baseQpn + index;
    return qps.isPromiscuous ? qps.promiscuousQpn : this.#none('foreignMac');
  }

  #qpnByRule(bytes: Uint8Array, at: number, frameBytes: number, vlanId: number): number {
    if (frameBytes > this.longestBytes) return this.#none('tooLong');
    if (vlanId > 0 && this.vlanFilter[vlanId] === 0) return this.#none('vlanFilter');
    const qpn = this.flows.qpnOf(bytes, at, frameBytes - ETHERNET_FCS_BYTES);
    if (qpn !== NO_QP) return qpn;
    return this.#none((bytes[at]! & GROUP_BIT) === 0 ? 'foreignMac' : 'multicastFilter');
  }

  /** True for frames to a MAC of the table or to a group. With RoCE, QPs and groups then decide further. */
  isForPort(bytes: Uint8Array, at: number): boolean {
    return (bytes[at]! & GROUP_BIT) !== 0 || this.macs.includes(macAt(bytes, at));
  }

  /** Counts the frame for which {@link qpnOf} has just found no QP. */
  dropUnsteered(): void {
    this.drop(this.#reason);
  }

  drop(reason: FrameDropReason): void {
    this.drops[reason]++;
  }

  /** Restores the tables of a fresh device; counters keep their values. */
  reset(): void {
    this.macs.fill(NO_MAC);
    this.vlans.fill(-1);
    this.vlanFilter.fill(0);
    this.groups.clear();
    this.isGroupFilterOn = false;
    this.receiveQps = undefined;
    this.longestBytes = Number.POSITIVE_INFINITY;
    this.manage(false);
  }

  /** Selects rules or tables, as INIT_HCA configures. */
  manage(isManaged: boolean): void {
    this.isManaged = isManaged;
    this.flows.clear();
  }

  /** See Block.inspect. */
  inspect(): BlockState {
    return {
      macs: [...this.macs].filter((mac) => mac !== NO_MAC),
      vlans: [...this.vlans].filter((vlanId) => vlanId !== -1),
      vlanFilter: this.vlanFilter.reduce((count, passes) => count + passes, 0),
      groups: [...this.groups],
      isGroupFilterOn: this.isGroupFilterOn,
      receiveQps: this.receiveQps === undefined ? 'none' : { ...this.receiveQps },
      longestBytes: this.longestBytes,
      ...(this.isManaged ? { flows: this.flows.inspect() } : {}),
    };
  }

  #none(reason: FrameDropReason): typeof NO_QP {
    this.#reason = reason;
    return NO_QP;
  }
}

/** A MAC address as a number of 48 bits. */
function macAt(bytes: Uint8Array, at: number): number {
  let mac = 0;
  for (let index = 0; index < MAC_BYTES; index++) mac = mac * 256 + bytes[at + index]!;
  return mac;
}

const noDrops = (): Record<FrameDropReason, number> =>
  Object.fromEntries(frameDropReasons.map((reason) => [reason, 0])) as Record<FrameDropReason, number>;
