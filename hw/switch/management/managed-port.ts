/**
 * One port of a switch as its management agent sees it: PortInfo, P_Keys, state. Port 0 is the switch itself, with the LID.
 *
 *     Down ──link trained──▶ Init ──Set(PortInfo)──▶ Armed ──Set(PortInfo)──▶ Active: data may leave
 *       ▲────────────────────── link lost ─────────────────────────────────────┘
 *
 * With the embedded subnet manager a port is Active as soon as its link is trained. Source: IBTA volume 1, 7.2, 14.2.5.6.
 */
import {
  MadStatus,
  PortCapability,
  PortMtu,
  PortPhysicalState,
  PortState,
  portInfo,
} from '../../../abi/index.ts';
import { type Picoseconds, viewOf } from '../../../base/index.ts';
import type { WirePort } from '../../../wire/index.ts';
import {
  capabilitiesOfLink,
  type LinkSetting,
  type LinkTotals,
  linkTotalsOf,
  portInfoOfLink,
  vlCapOf,
} from '../../management/index.ts';
import type { HeadOfQueueLimit } from '../head-of-queue-limit.ts';
import type { PartitionFilter } from '../partition-filter.ts';
import type { PortWeights } from './lane-tables.ts';

/** Packets that a port has not forwarded, which its link does not count. */
export interface PortDrops {
  readonly noRoute: number;
  readonly ownPort: number;
  /** Packets for this output whose time was up: HOQLife, stalled lanes, LifeTimeValue. */
  readonly expired: number;
  /** Packets that came by this port, and that were to leave by it, with a P_Key that it does not accept. */
  readonly inboundPkey: number;
  readonly outboundPkey: number;
}

export interface ManagedPortSetup {
  /** From 0. */
  readonly number: number;
  /** The cable; undefined for port 0 and a port without a cable. */
  readonly link: WirePort | undefined;
  readonly linkSetting: LinkSetting;
  readonly drops: PortDrops;
  readonly partition: PartitionFilter;
  readonly headOfQueue: HeadOfQueueLimit;
  /** Whether the embedded subnet manager makes the port active. */
  readonly isEmbedded: boolean;
  /** Data lanes of its cable. */
  readonly laneCount: number;
  readonly weights: PortWeights;
  /** Frequency of the ticks of PortXmitWait. */
  readonly tickMHz: number;
}

const { fields } = portInfo;
const defaultGidPrefix = 0xfe80_0000_0000_0000n;
/**
 * Data lanes that a port reports, as the adapters do: other numbers at the ends of a link would make a subnet manager begin it again. With
 * one lane on the cable they report the eight of the card.
 */
const reportedLanes = (laneCount: number): number => (laneCount === 1 ? 8 : laneCount);
const greatestLid = 0xbfff;
/** Fields that a Set replaces at port 0; at other ports they are read-only. */
const fieldsOfSwitch = [
  ...(['lid', 'masterSmLid', 'lmc', 'mkeyLeasePeriod', 'mkeyProtect', 'masterSmSl'] as const),
  ...(['subnetTimeout', 'mkeyViolations'] as const),
] as const;
/** Fields that a Set replaces at the other ports. */
const fieldsOfLink = [
  'vlHighLimit',
  'filterRawIn',
  'filterRawOut',
  'pkeyViolations',
  'localPhysicalErrors',
  'overrunErrors',
] as const;
/** Numbers in which 0 means no change. */
const zeroKeeps = ['operationalVls', 'linkDownDefault', 'neighborMtu'] as const;
/** Fields of enabled values, with another value for everything that the port supports. */
const enabledFields = [
  ['linkWidthEnabled', 'linkWidthSupported', 255],
  ['linkSpeedEnabled', 'linkSpeedSupported', 15],
  ['linkSpeedExtendedEnabled', 'linkSpeedExtendedSupported', 31],
] as const;

export class ManagedPort {
  readonly number: number;
  readonly linkSetting: LinkSetting;
  /** P_Key table and enforcement; port 0 enforces nothing. */
  readonly partition: PartitionFilter;
  readonly #info = new Uint8Array(portInfo.sizeBytes);
  readonly #view = viewOf(this.#info);
  readonly #link: WirePort | undefined;
  readonly #drops: PortDrops;
  readonly #weights: PortWeights;
  readonly #headOfQueue: HeadOfQueueLimit;
  readonly #isEmbedded: boolean;
  readonly #tickMHz: number;
  #linkDownedCount = 0;

  constructor(setup: ManagedPortSetup) {
    const { number, link, linkSetting, drops, isEmbedded, laneCount, weights, partition } = setup;
    this.number = number;
    this.linkSetting = linkSetting;
    this.#link = link;
    this.#drops = drops;
    this.#tickMHz = setup.tickMHz;
    this.#weights = weights;
    this.#headOfQueue = setup.headOfQueue;
    this.#isEmbedded = isEmbedded;
    this.partition = partition;
    portInfo.encodeInto(
      {
        gidPrefix: defaultGidPrefix,
        capabilityMask:
          PortCapability.IS_SL_MAPPING |
          PortCapability.IS_SYSTEM_IMAGE_GUID |
          (number === 0 ? PortCapability.IS_TRAP : 0) |
          capabilitiesOfLink(linkSetting),
        ...portInfoOfLink(linkSetting),
        portState: number === 0 ? PortState.ACTIVE : PortState.DOWN,
        portPhysicalState: number === 0 ? PortPhysicalState.LINK_UP : PortPhysicalState.POLLING,
        linkDownDefault: PortPhysicalState.POLLING,
        neighborMtu: PortMtu.MTU_4096,
        mtuCap: PortMtu.MTU_4096,
        vlCap: vlCapOf(reportedLanes(laneCount)),
        operationalVls: vlCapOf(reportedLanes(laneCount)),
        vlHighLimit: weights.highLimit,
        vlArbitrationHighCap: weights.high.entryCount,
        vlArbitrationLowCap: weights.low.entryCount,
        guidCap: number === 0 ? 1 : 0,
        subnetTimeout: 18,
        responseTime: 16,
      },
      this.#info,
    );
    if (link !== undefined) link.isOpen = isEmbedded;
  }

  get state(): number {
    return fields.portState.get(this.#view, 0);
  }

  get lid(): number {
    return fields.lid.get(this.#view, 0);
  }

  get lmc(): number {
    return fields.lmc.get(this.#view, 0);
  }

  get mkey(): bigint {
    return fields.mkey.get(this.#view, 0);
  }

  get masterSmLid(): number {
    return fields.masterSmLid.get(this.#view, 0);
  }

  get masterSmSl(): number {
    return fields.masterSmSl.get(this.#view, 0);
  }

  /** Shortest time between two traps: 4.096 us times a power of two (SubnetTimeOut). */
  get trapIntervalPs(): Picoseconds {
    return 4_096_000 * 2 ** fields.subnetTimeout.get(this.#view, 0);
  }

  get mkeyProtect(): number {
    return fields.mkeyProtect.get(this.#view, 0);
  }

  /** Gives the switch its address as the embedded subnet manager does. */
  address(lid: number, masterSmLid: number): void {
    fields.lid.set(this.#view, 0, lid);
    fields.masterSmLid.set(this.#view, 0, masterSmLid);
  }

  /** A request had the wrong M_Key; the counter stops at its largest value. */
  countMkeyViolation(): void {
    const count = fields.mkeyViolations.get(this.#view, 0);
    if (count < 0xffff) fields.mkeyViolations.set(this.#view, 0, count + 1);
  }

  /** See CountedPort. */
  get linkTotals(): LinkTotals {
    const { noRoute, ownPort, expired, inboundPkey, outboundPkey } = this.#drops;
    return linkTotalsOf(this.#link, {
      tickMHz: this.#tickMHz,
      linkDowned: this.#linkDownedCount,
      relayErrors: noRoute + ownPort,
      otherDiscards: expired,
      receiveConstraintErrors: inboundPkey,
      transmitConstraintErrors: outboundPkey,
    });
  }

  /** Follows the link. @returns true if it has come up or gone down since the last call */
  followLink(): boolean {
    const isUp = this.#link?.isUp ?? false;
    if (this.number === 0 || isUp === (this.state !== PortState.DOWN)) return false;
    if (!isUp) this.#linkDownedCount++;
    const upState = this.#isEmbedded ? PortState.ACTIVE : PortState.INIT;
    this.#setState(isUp ? upState : PortState.DOWN);
    return true;
  }

  /** Fills in PortInfo. @param arrival port by which the request came, @param hidesKey whether to leave out the M_Key */
  read(data: Uint8Array, arrival: number, hidesKey: boolean): void {
    const { physicalState } = this.#link ?? {};
    if (physicalState !== undefined) fields.portPhysicalState.set(this.#view, 0, physicalState);
    data.set(this.#info);
    const view = viewOf(data);
    fields.localPort.set(view, 0, arrival);
    fields.partitionEnforcementIn.set(view, 0, Number(this.partition.inbound));
    fields.partitionEnforcementOut.set(view, 0, Number(this.partition.outbound));
    const { hoqLife, vlStallCount } = this.#headOfQueue.setting;
    fields.hoqLife.set(view, 0, this.number === 0 ? 0 : hoqLife);
    fields.vlStallCount.set(view, 0, this.number === 0 ? 0 : vlStallCount);
    if (hidesKey) fields.mkey.set(view, 0, 0n);
  }

  /** Executes Set(PortInfo). @returns the status; other than OK, nothing is changed */
  write(wanted: DataView, nowPs: Picoseconds): number {
    const state = fields.portState.get(wanted, 0);
    const physicalState = fields.portPhysicalState.get(wanted, 0);
    if (fields.neighborMtu.get(wanted, 0) > fields.mtuCap.get(this.#view, 0)) return MadStatus.INVALID_FIELD;
    if (fields.operationalVls.get(wanted, 0) > fields.vlCap.get(this.#view, 0))
      return MadStatus.INVALID_FIELD;
    if (this.number === 0) {
      if (fields.lid.get(wanted, 0) > greatestLid) return MadStatus.INVALID_FIELD;
      for (const name of ['mkey', 'gidPrefix'] as const)
        fields[name].set(this.#view, 0, fields[name].get(wanted, 0));
      this.#copy(fieldsOfSwitch, wanted);
      return MadStatus.OK;
    }
    if (!this.#canBecome(state) || physicalState > PortPhysicalState.DISABLED) return MadStatus.INVALID_FIELD;
    this.#copy(fieldsOfLink, wanted);
    const { partitionEnforcementIn, partitionEnforcementOut } = fields;
    const [inbound, outbound] = [partitionEnforcementIn, partitionEnforcementOut].map(
      (field) => field.get(wanted, 0) === 1,
    ) as [boolean, boolean];
    this.partition.setDirections(inbound, outbound, nowPs);
    this.#headOfQueue.set({
      hoqLife: fields.hoqLife.get(wanted, 0),
      vlStallCount: fields.vlStallCount.get(wanted, 0),
    });
    this.#weights.highLimit = fields.vlHighLimit.get(this.#view, 0);
    this.#copy(
      zeroKeeps.filter((name) => fields[name].get(wanted, 0) !== 0),
      wanted,
    );
    for (const [name, supported, all] of enabledFields) {
      const value = fields[name].get(wanted, 0);
      if (value !== 0)
        fields[name].set(this.#view, 0, value === all ? fields[supported].get(this.#view, 0) : value);
    }
    if (physicalState !== 0) this.#link?.setEnabled(physicalState === PortPhysicalState.POLLING);
    // A link that stays trained begins again at Init.
    if (state === PortState.DOWN && this.state !== PortState.DOWN) this.#setState(PortState.INIT);
    else if (state !== 0 && state !== PortState.DOWN) this.#setState(state);
    return MadStatus.OK;
  }

  #copy(
    names: readonly (typeof fieldsOfSwitch | typeof fieldsOfLink | typeof zeroKeeps)[number][],
    wanted: DataView,
  ) {
    for (const name of names) fields[name].set(this.#view, 0, fields[name].get(wanted, 0));
  }

  /** Whether a subnet manager may request a state; 0 requests no change. */
  #canBecome(state: number): boolean {
    const { state: own } = this;
    if (state === 0 || state === PortState.DOWN) return true;
    if (own === PortState.DOWN) return false;
    return (
      state === own ||
      (state === PortState.ARMED && own === PortState.INIT) ||
      (state === PortState.ACTIVE && own === PortState.ARMED)
    );
  }

  #setState(state: number): void {
    fields.portState.set(this.#view, 0, state);
    if (this.#link !== undefined) this.#link.isOpen = state === PortState.ACTIVE;
  }
}
