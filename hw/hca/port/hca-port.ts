/**
 * One port of the HCA: its PortInfo, GID, P_Key and SL tables, and how it becomes active.
 *
 *   CLOSED ──INIT_PORT──> Down, Polling ──peer, training──> Init, LinkUp ──subnet manager──> Armed ──> Active
 *      ^                        ^──────────────── link lost: port down event ─────────────────────────────┘
 *      └── CLOSE_PORT (from anywhere)
 *
 * The subnet manager is either on the fabric (it sets PortInfo through the agent) or, where the fabric has none, embedded:
 * then the port gets its LID and becomes active by itself a little after its link is up. A port of Ethernet has no subnet manager: it
 * is active as soon as its link is in use, and what it has beside that is in ethernet-side.ts.
 * Sources: interface sheet 3.11, 3.12, 6.7, 7.4, 7.6, 7.7; InfiniBand Architecture volume 1, 14.2.5.6.
 */

import {
  PortCapability,
  PortChange,
  PortInfoChange,
  PortMtu,
  PortPhysicalState,
  PortState,
  portInfo,
} from '../../../abi/index.ts';
import { type Cycles, NEVER, type Picoseconds, viewOf } from '../../../base/index.ts';
import type { BlockState, ClockDomain } from '../../../sim/index.ts';
import { ARBITRATION_ENTRIES, type LanesConfig, laneTablesOf } from '../../../wire/index.ts';
import {
  capabilitiesOfLink,
  type LinkSetting,
  type LinkTotals,
  type LinkTraffic,
  linkTotalsOf,
  portInfoOfLink,
  vlCapOf,
} from '../../management/index.ts';
import type { PortInfoReport } from '../events/index.ts';
import type { PortAddress, RoceTables } from '../ibta/packets/index.ts';
import { EthernetSide, type EthernetSideSetup } from './ethernet-side.ts';

/** The wire port as the HCA sees it. */
export interface LinkStateSource {
  readonly isLinkUp: boolean;
  /** Switches the port's transmitter and receiver on or off: a cable comes up when both its ends are on. */
  setEnabled(isEnabled: boolean): void;
  /** Whether packets of the data lanes may leave: in the state Active only (IBTA vol 1, 7.2). */
  isOpen: boolean;
}

/** Destination of a port's events. */
interface PortEvents {
  canPost(): boolean;
  postPortChange(port: number, subtype: number, cycle: Cycles): void;
  postPortInfoChange(info: PortInfoReport, cycle: Cycles): void;
  postPortTableChange(port: number, subtype: number, block: number, entryMask: number, cycle: Cycles): void;
}

/** Several data lanes of a cable. */
export interface PortLanes {
  readonly count: number;
  /** The tables that the embedded subnet manager writes. */
  readonly config: LanesConfig;
}

export interface PortSetup {
  /** Counted from 1, as everywhere in the interface. */
  readonly portNumber: number;
  readonly guid: bigint;
  readonly logGids: number;
  readonly logPkeys: number;
  readonly maxVls: number;
  /** Data lanes of the cable; left out: one. */
  readonly lanes?: PortLanes | undefined;
  readonly linkInitialiseCycles: number;
  readonly subnetManagerCycles: number;
  readonly hasEmbeddedSubnetManager: boolean;
  readonly lid: number;
  readonly subnetManagerLid: number;
  readonly domain: ClockDomain;
  /** The cable; undefined on a port without one. */
  readonly link: LinkStateSource | undefined;
  /** Speed and width that the ports of the card have, with a cable or without; left out: 4X QDR. */
  readonly linkSetting?: LinkSetting | undefined;
  /** Counters of the traffic on that cable. */
  readonly traffic: LinkTraffic | undefined;
  /** Left out on a port of InfiniBand. */
  readonly ethernet?: EthernetSideSetup | undefined;
}

const PENDING_EVENTS_MAX = 64;
const gidBytes = 16;
const defaultGidPrefix = 0xfe80_0000_0000_0000n;
const defaultPkey = 0xffff;
const fields = portInfo.fields;

export interface HcaPortPorts {
  readonly events: PortEvents;
  readonly dataPath: {
    /** Packets may be sent, or may no longer. */
    portChanged(isActive: boolean): void;
  };
}

/** An event that waits for room in the event fifo. */
type PendingEvent =
  | { readonly kind: 'state'; readonly subtype: number }
  | { readonly kind: 'info'; readonly changed: number }
  | {
      readonly kind: 'table';
      readonly subtype: number;
      readonly block: number;
      readonly entryMask: number;
    };

export class HcaPort implements PortAddress {
  readonly setup: PortSetup;
  /** Speed and width of its link. */
  readonly linkSetting: LinkSetting;
  /** PortInfo as the agent answers it. */
  readonly info = new Uint8Array(portInfo.sizeBytes);
  readonly view = viewOf(this.info);
  readonly guids: BigUint64Array;
  readonly pkeys: Uint16Array;
  readonly slToVl = new Uint8Array(8);
  /** Entries of lane and weight, two bytes each, as many as the capacities in PortInfo. */
  readonly vlArbitrationHigh = new Uint8Array(2 * ARBITRATION_ENTRIES);
  readonly vlArbitrationLow = new Uint8Array(2 * ARBITRATION_ENTRIES);
  /**
   * Copies of the addresses that the data path reads for every packet; {@link addressChanged} updates them.
   */
  lid = 0;
  lmc = 0;
  readonly gids: Uint8Array;
  isEnabled = false;
  /** LID of the embedded subnet manager once it has made the port active; -1, which no packet has, where the manager is on the cable. */
  embeddedManagerLid = -1;
  /** Undefined on a port of InfiniBand; and on one of Ethernet without RoCE. */
  readonly ethernet: EthernetSide | undefined;
  readonly roce: RoceTables | undefined;
  readonly #stage: number;
  #isLinkUp = false;
  #linkDownedCount = 0;
  /** When the trained link is in use, and when the embedded subnet manager acts. */
  #initialisedCycle = NEVER;
  #managedCycle = NEVER;
  /** Events that wait for room in the event fifo; a further one is lost, and counted, as when an event queue is full. */
  #pendingEvents: PendingEvent[] = [];
  lostEventCount = 0;
  #ports!: HcaPortPorts;

  constructor(setup: PortSetup) {
    this.setup = setup;
    this.linkSetting = setup.linkSetting ?? { speed: 'QDR', lanes: '4' };
    this.guids = new BigUint64Array(1 << setup.logGids);
    this.gids = new Uint8Array(gidBytes << setup.logGids);
    this.pkeys = new Uint16Array(1 << setup.logPkeys);
    const gidCount = this.guids.length;
    this.ethernet =
      setup.ethernet === undefined ? undefined : new EthernetSide({ ...setup.ethernet, gidCount });
    this.roce = this.ethernet?.roce;
    this.#stage = setup.domain.addStage(this.#run, this);
    this.#setDefaults();
    this.#openLink();
    this.#isLinkUp = setup.link?.isLinkUp ?? false;
  }

  /** Handles a cable that came up or went down. */
  linkChanged(isUp: boolean, nowPs: Picoseconds): void {
    this.#isLinkUp = isUp;
    this.setup.domain.wakeAfter(this.#stage, nowPs);
  }

  connect(ports: HcaPortPorts): void {
    this.#ports = ports;
  }

  /** VLHighLimit of PortInfo. */
  get highLimit(): number {
    return fields.vlHighLimit.get(this.view, 0);
  }

  get state(): number {
    return fields.portState.get(this.view, 0);
  }

  get isActive(): boolean {
    return this.state === PortState.ACTIVE;
  }

  /** Totals for the performance agent. */
  get linkTotals(): LinkTotals {
    const { traffic, domain } = this.setup;
    return linkTotalsOf(traffic, {
      tickMHz: domain.clock.frequencyMHz,
      linkDowned: this.#linkDownedCount,
      relayErrors: 0,
      receiveConstraintErrors: 0,
      transmitConstraintErrors: 0,
      otherDiscards: 0,
    });
  }

  /** PortInfo or the GUID table changed: LID, LMC and the GIDs follow. */
  addressChanged(): void {
    this.lid = fields.lid.get(this.view, 0);
    this.lmc = fields.lmc.get(this.view, 0);
    // Software writes the GIDs of RoCE.
    if (this.roce !== undefined) return;
    const view = viewOf(this.gids);
    const prefix = fields.gidPrefix.get(this.view, 0);
    this.guids.forEach((guid, index) => {
      view.setBigUint64(index * 16, guid === 0n ? 0n : prefix);
      view.setBigUint64(index * 16 + 8, guid);
    });
  }

  /** Sets a GID of RoCE, as software does; all zeros for none. */
  setGid(index: number, gid: Uint8Array): void {
    this.gids.set(gid, index * gidBytes);
  }

  /** INIT_PORT: opens the port; an open port stays unchanged. */
  open(cycle: Cycles): void {
    if (this.isEnabled) return;
    this.isEnabled = true;
    this.setup.link?.setEnabled(true);
    this.#setPhysicalState(PortPhysicalState.POLLING);
    this.setup.domain.wake(this.#stage, cycle + 1);
  }

  /** CLOSE_PORT: closes the port; a closed port stays unchanged. */
  close(cycle: Cycles): void {
    this.isEnabled = false;
    this.setup.link?.setEnabled(false);
    this.#goDown(PortPhysicalState.DISABLED, cycle);
    this.setup.domain.wake(this.#stage, cycle + 1);
  }

  /** Whether a subnet manager may request this state now; 0 requests no change. */
  canRequestState(state: number): boolean {
    return (
      state === 0 ||
      state === this.state ||
      state === PortState.DOWN ||
      (state === PortState.ARMED && this.state === PortState.INIT) ||
      (state === PortState.ACTIVE && this.state === PortState.ARMED)
    );
  }

  /**
   * Applies a subnet manager's request for a state that {@link canRequestState} allows.
   */
  requestState(state: number, cycle: Cycles): void {
    if (state === 0 || state === this.state) return;
    if (state === PortState.DOWN) {
      this.#goDown(PortPhysicalState.POLLING, cycle);
      this.setup.domain.wake(this.#stage, cycle + 1);
    } else {
      this.#setState(state, cycle);
    }
  }

  /** Reports changes of PortInfo to software: bits of PortInfoChange. */
  reportInfoChange(changed: number, cycle: Cycles): void {
    if (changed === 0) return;
    this.#post(cycle, { kind: 'info', changed });
  }

  /** Reports to software that entries of a GUID or P_Key block changed. */
  reportTableChange(subtype: number, block: number, entryMask: number, cycle: Cycles): void {
    this.#post(cycle, { kind: 'table', subtype, block, entryMask });
  }

  /** A packet with a P_Key that the port's partition does not have; the counter stops at its largest value. */
  countPkeyViolation(): void {
    const count = fields.pkeyViolations.get(this.view, 0);
    if (count < 0xffff) fields.pkeyViolations.set(this.view, 0, count + 1);
  }

  /** A packet with the wrong Q_Key. */
  countQkeyViolation(): void {
    const count = fields.qkeyViolations.get(this.view, 0);
    if (count < 0xffff) fields.qkeyViolations.set(this.view, 0, count + 1);
  }

  /** Reset: closed, with the tables of a fresh device; no event can be reported. */
  reset(): void {
    const wasActive = this.isActive;
    this.isEnabled = false;
    this.setup.link?.setEnabled(false);
    this.#initialisedCycle = NEVER;
    this.#managedCycle = NEVER;
    this.#pendingEvents = [];
    this.#setDefaults();
    this.#openLink();
    this.ethernet?.reset();
    if (wasActive) this.#ports.dataPath.portChanged(false);
  }

  /** See Block.inspect. */
  inspect(): BlockState {
    const { info, guids, pkeys, slToVl, vlArbitrationHigh, vlArbitrationLow, isEnabled } = this;
    const infoDwords = Array.from({ length: info.length / 4 }, (_, index) => this.view.getUint32(4 * index));
    const entriesOf = (table: Iterable<bigint | number>): Record<number, string> =>
      Object.fromEntries([...table].flatMap((entry, index) => (entry ? [[index, entry.toString(16)]] : [])));
    const ethernet = this.ethernet === undefined ? {} : { ethernet: this.ethernet.inspect() };
    return {
      ...ethernet,
      isEnabled,
      isLinkUp: this.#isLinkUp,
      info: infoDwords,
      guids: entriesOf(guids),
      pkeys: entriesOf(pkeys),
      lanes: [...slToVl, ...vlArbitrationHigh, ...vlArbitrationLow],
      waitsForLink: this.#initialisedCycle !== NEVER,
      waitsForManager: this.#managedCycle !== NEVER,
      pendingEvents: this.#pendingEvents.length,
    };
  }

  #run(cycle: Cycles): void {
    if (!this.#isLinkUp && this.state !== PortState.DOWN) {
      this.#linkDownedCount++;
      this.#goDown(PortPhysicalState.POLLING, cycle);
    }
    if (this.isEnabled && this.state === PortState.DOWN) this.#initialise(cycle);
    if (this.#managedCycle <= cycle) this.#manage(cycle);
    while (this.#pendingEvents.length > 0 && this.#ports.events.canPost())
      this.#report(this.#pendingEvents.shift()!, cycle);
    const next =
      this.#pendingEvents.length > 0 ? cycle + 1 : Math.min(this.#initialisedCycle, this.#managedCycle);
    if (next !== NEVER) this.setup.domain.wake(this.#stage, next);
  }

  #initialise(cycle: Cycles): void {
    if (!this.#isLinkUp) {
      this.#initialisedCycle = NEVER;
      return;
    }
    if (this.#initialisedCycle === NEVER) this.#initialisedCycle = cycle + this.setup.linkInitialiseCycles;
    if (this.#initialisedCycle > cycle) return;
    this.#initialisedCycle = NEVER;
    this.#setPhysicalState(PortPhysicalState.LINK_UP);
    if (this.ethernet !== undefined) return this.#setState(PortState.ACTIVE, cycle);
    this.#setState(PortState.INIT, cycle);
    if (this.setup.hasEmbeddedSubnetManager) this.#managedCycle = cycle + this.setup.subnetManagerCycles;
  }

  /** Configures a port in state Init as a subnet manager does. */
  #manage(cycle: Cycles): void {
    this.#managedCycle = NEVER;
    if (this.state !== PortState.INIT) return;
    fields.lid.set(this.view, 0, this.setup.lid);
    fields.masterSmLid.set(this.view, 0, this.setup.subnetManagerLid);
    this.embeddedManagerLid = this.setup.subnetManagerLid;
    this.#writeLanes();
    this.addressChanged();
    this.reportInfoChange(PortInfoChange.LID | PortInfoChange.SM_LID, cycle);
    this.#setState(PortState.ARMED, cycle);
    this.#setState(PortState.ACTIVE, cycle);
  }

  /** The tables of lanes, as the embedded manager writes them if there are several. */
  #writeLanes(): void {
    const { lanes } = this.setup;
    if (lanes === undefined) return;
    const { slToVl, high, low, highLimit } = laneTablesOf(lanes.config, lanes.count);
    this.slToVl.set(slToVl.bytes);
    this.vlArbitrationHigh.set(high.bytes);
    this.vlArbitrationLow.set(low.bytes);
    fields.vlHighLimit.set(this.view, 0, highLimit);
  }

  #setState(state: number, cycle: Cycles): void {
    const wasActive = this.isActive;
    fields.portState.set(this.view, 0, state);
    if (wasActive === this.isActive) return;
    this.#openLink();
    const subtype = this.isActive ? PortChange.ACTIVE : PortChange.DOWN;
    this.#ports.dataPath.portChanged(this.isActive);
    this.#post(cycle, { kind: 'state', subtype });
  }

  #openLink(): void {
    const { link } = this.setup;
    if (link !== undefined) link.isOpen = this.isActive;
  }

  #goDown(physicalState: number, cycle: Cycles): void {
    this.#initialisedCycle = NEVER;
    this.#managedCycle = NEVER;
    this.#setPhysicalState(physicalState);
    this.#setState(PortState.DOWN, cycle);
  }

  #setPhysicalState(state: number): void {
    fields.portPhysicalState.set(this.view, 0, state);
  }

  #report(event: PendingEvent, cycle: Cycles): void {
    const { events } = this.#ports;
    const { portNumber: port } = this.setup;
    switch (event.kind) {
      case 'state':
        events.postPortChange(port, event.subtype, cycle);
        return;
      case 'table':
        events.postPortTableChange(port, event.subtype, event.block, event.entryMask, cycle);
        return;
      case 'info': {
        const { masterSmLid, lid, masterSmSl, gidPrefix } = fields;
        const info = {
          port,
          smLid: masterSmLid.get(this.view, 0),
          lid: lid.get(this.view, 0),
          changed: event.changed,
          smSl: masterSmSl.get(this.view, 0),
          gidPrefix: gidPrefix.get(this.view, 0),
        };
        events.postPortInfoChange(info, cycle);
      }
    }
  }

  #post(cycle: Cycles, event: PendingEvent): void {
    if (this.#pendingEvents.length === PENDING_EVENTS_MAX) this.lostEventCount++;
    else this.#pendingEvents.push(event);
    this.setup.domain.wake(this.#stage, cycle + 1);
  }

  #setDefaults(): void {
    const { setup } = this;
    const { lanes, maxVls } = setup;
    // With one data lane on the cable, PortInfo reports those of the card: a subnet manager may write tables for them.
    const vlCap = vlCapOf(lanes === undefined ? maxVls : Math.min(maxVls, lanes.count));
    this.embeddedManagerLid = -1;
    portInfo.encodeInto(
      {
        gidPrefix: defaultGidPrefix,
        capabilityMask:
          PortCapability.IS_TRAP |
          PortCapability.IS_SL_MAPPING |
          PortCapability.IS_SYSTEM_IMAGE_GUID |
          capabilitiesOfLink(this.linkSetting),
        localPort: setup.portNumber,
        ...portInfoOfLink(this.linkSetting),
        portState: PortState.DOWN,
        portPhysicalState: PortPhysicalState.DISABLED,
        linkDownDefault: PortPhysicalState.POLLING,
        neighborMtu: PortMtu.MTU_4096,
        mtuCap: PortMtu.MTU_4096,
        vlCap,
        operationalVls: vlCap,
        vlArbitrationHighCap: ARBITRATION_ENTRIES,
        vlArbitrationLowCap: ARBITRATION_ENTRIES,
        guidCap: Math.min(this.guids.length, 0xff),
        subnetTimeout: 18,
        responseTime: 16,
      },
      this.info,
    );
    this.gids.fill(0);
    this.guids.fill(0n);
    this.guids[0] = setup.guid;
    this.pkeys.fill(0);
    this.pkeys[0] = defaultPkey;
    this.slToVl.fill(0);
    setDefaultArbitration(this.vlArbitrationHigh, setup.maxVls);
    setDefaultArbitration(this.vlArbitrationLow, setup.maxVls);
    this.addressChanged();
  }

  /** A new epoch: see EdgeKeeper. */
  rebase(cycles: number): void {
    this.#initialisedCycle -= cycles;
    this.#managedCycle -= cycles;
  }
}

/** Gives every data lane the same weight, in units of 64 bytes: entries of [3:0] lane and 8 bits of weight. */
function setDefaultArbitration(table: Uint8Array, vlCount: number): void {
  table.fill(0);
  for (let lane = 0; lane < Math.min(vlCount, ARBITRATION_ENTRIES); lane++) {
    table[2 * lane] = lane;
    table[2 * lane + 1] = evenWeight;
  }
}

const evenWeight = 64;
