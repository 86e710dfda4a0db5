/**
 * Port 0 of a switch: management packets that end in the switch, or pass it by a directed route, and the responses that it sends.
 *
 *     VL 15, to the permissive LID or the own one ─▶ directed route ─┬▶ agent ─▶ response ─┬▶ output, before other packets
 *     VL 0, to the own LID: QP1 ──────────────────────────▶ counters ─▶ response ──────────┘
 *
 * Promises: a packet keeps its buffer at the input until it has been handled; what it causes depends on earlier instants alone, since all of
 * an instant are handled together, by input. A packet that is dropped has a named reason. Source: IBTA volume 1, 13.5, 14.2.2, 18.2.5.
 */
import {
  generalServicesQkey,
  generalServicesQpn,
  MadClass,
  MadMethod,
  MadStatus,
  mad,
  madBytes,
} from '../../../abi/index.ts';
import { NEVER, nsToPs, type Picoseconds, viewOf } from '../../../base/index.ts';
import type { BlockState } from '../../../sim/index.ts';
import {
  type Datagram,
  isReceivedDamaged,
  MANAGEMENT_LANE,
  receivedDatagram,
  sendDatagram,
  type WirePort,
} from '../../../wire/index.ts';
import { type LinkSetting, PerformanceAgent } from '../../management/index.ts';
import { type ForwardingTables, NO_PORT } from '../forwarding-tables.ts';
import { HeadOfQueueLimit } from '../head-of-queue-limit.ts';
import type { SwitchConfig } from '../parameters.ts';
import { PartitionFilter } from '../partition-filter.ts';
import {
  beginReturn,
  type DirectedStep,
  isReturning,
  permissiveLid,
  stepDirected,
} from './directed-route.ts';
import type { SwitchLanes } from './lane-tables.ts';
import { LinkChangeNotice, linkChangeTrap } from './link-change-notice.ts';
import { ManagedPort, type PortDrops } from './managed-port.ts';
import { type SwitchIdentity, SwitchManagementAgent } from './switch-management-agent.ts';
import { type Trap, trapMad } from './trap.ts';
import { type PartitionViolation, ViolationNotice, violationTrap } from './violation-notice.ts';

/** Management of a switch, as the plan decides it. */
export interface SwitchManagement extends SwitchIdentity {
  /** Addresses that the embedded subnet manager gives; left out where a subnet manager on the fabric configures the switch. */
  readonly embedded?: { readonly lid: number; readonly subnetManagerLid: number } | undefined;
}

export interface ManagementPortSetup {
  readonly config: Pick<
    SwitchConfig,
    'managementLatencyNs' | 'waitTickMHz' | 'hoqLife' | 'vlStallCount' | 'lifetimeValue'
  >;
  readonly management: SwitchManagement;
  readonly tables: ForwardingTables;
  /** By port from 1; undefined for a port without a cable. */
  readonly links: readonly (WirePort | undefined)[];
  readonly drops: readonly (PortDrops | undefined)[];
  readonly partitions: readonly (PartitionFilter | undefined)[];
  readonly headOfQueues: readonly (HeadOfQueueLimit | undefined)[];
  readonly lanes: SwitchLanes;
}

/** Packets that wait for one output. */
const waitingMax = 64;
const subnetQpn = 0;
const defaultPkey = 0xffff;
/** Speed and width of a port without a cable. */
const idleLink: LinkSetting = { speed: 'QDR', lanes: '4' };

interface Arrival {
  readonly input: number;
  readonly offset: number;
  duePs: Picoseconds;
}

export class ManagementPort {
  readonly agent: SwitchManagementAgent;
  /**
   * Packets received, sent and dropped, by reason; and traps. With the embedded subnet manager trap 259 is counted
   * without a packet, and trap 128 is not counted.
   */
  readonly counts = {
    taken: 0,
    sent: 0,
    damaged: 0,
    malformed: 0,
    noPath: 0,
    unanswered: 0,
    overflowed: 0,
    traps: 0,
  };
  /** From a packet's last byte to the response, or to the next hop of a directed route. */
  readonly #latencyPs: Picoseconds;
  readonly #ports: readonly ManagedPort[];
  readonly #performance: PerformanceAgent;
  readonly #links: readonly (WirePort | undefined)[];
  readonly #tables: ForwardingTables;
  /** In the order of their instants, and of an instant by input. */
  readonly #arrivals: Arrival[] = [];
  /** By output from 1. */
  readonly #waiting: readonly Datagram[][];
  readonly #violations = new ViolationNotice();
  readonly #linkChanges = new LinkChangeNotice();
  #transactionId = 0n;
  readonly #isEmbedded: boolean;
  /** When a link has changed: seen from the next instant on. */
  #linkChangePs = NEVER;

  constructor(setup: ManagementPortSetup) {
    const { config, management, tables, links, drops, lanes, partitions, headOfQueues } = setup;
    this.#latencyPs = nsToPs(config.managementLatencyNs);
    const isEmbedded = management.embedded !== undefined;
    this.#isEmbedded = isEmbedded;
    const none: PortDrops = { noRoute: 0, ownPort: 0, expired: 0, inboundPkey: 0, outboundPkey: 0 };
    const linkSettingOf = (link: WirePort | undefined): LinkSetting => link?.config ?? idleLink;
    this.#ports = [undefined, ...links].map(
      (link, number) =>
        new ManagedPort({
          ...{ number, link, isEmbedded, linkSetting: linkSettingOf(link) },
          drops: number === 0 ? none : (drops[number - 1] ?? none),
          partition: partitions[number - 1] ?? new PartitionFilter(),
          headOfQueue: headOfQueues[number - 1] ?? new HeadOfQueueLimit(lanes.count, config),
          laneCount: lanes.count,
          tickMHz: config.waitTickMHz,
          weights: lanes.weights[number]!,
        }),
    );
    if (management.embedded !== undefined)
      this.#ports[0]!.address(management.embedded.lid, management.embedded.subnetManagerLid);
    const { lifetimeValue } = config;
    this.agent = new SwitchManagementAgent(management, this.#ports, { tables, lanes, lifetimeValue });
    this.#performance = new PerformanceAgent(this.#ports.slice(1));
    this.#links = links;
    this.#tables = tables;
    this.#waiting = links.map(() => []);
  }

  /** Whether a packet ends here: the own LIDs, and on lane 15 the permissive one. @param output its entry in the forwarding table */
  takes(lid: number, virtualLane: number, output: number): boolean {
    if (lid === permissiveLid) return virtualLane === MANAGEMENT_LANE;
    const [own] = this.#ports;
    return output === 0 || (own!.lid !== 0 && lid >> own!.lmc === own!.lid >> own!.lmc);
  }

  /** Takes a packet whose last byte comes at `tailPs`. */
  arrived(input: number, offset: number, tailPs: Picoseconds): void {
    this.counts.taken++;
    const duePs = tailPs + this.#latencyPs;
    const isLater = (other: Arrival): boolean =>
      other.duePs > duePs || (other.duePs === duePs && other.input > input);
    const at = this.#arrivals.findIndex(isLater);
    this.#arrivals.splice(at < 0 ? this.#arrivals.length : at, 0, { input, offset, duePs });
  }

  /** A port has dropped a packet for its P_Key; {@link run} sends the trap at a later instant. */
  violated(violation: PartitionViolation, nowPs: Picoseconds): void {
    this.#violations.violated(violation, nowPs);
  }

  linkChanged(nowPs: Picoseconds): void {
    this.#linkChangePs = nowPs;
  }

  /** When there is something to do next. */
  get duePs(): Picoseconds {
    return Math.min(this.#arrivals[0]?.duePs ?? NEVER, this.#linkChanges.duePs);
  }

  hasWaiting(output: number): boolean {
    return this.#waiting[output - 1]!.length > 0;
  }

  get isIdle(): boolean {
    return this.#arrivals.length === 0 && this.waitingCount === 0;
  }

  /** Packets that wait for any output. */
  get waitingCount(): number {
    return this.#waiting.reduce((sum, { length }) => sum + length, 0);
  }

  /** Handles everything that is due. */
  run(nowPs: Picoseconds): void {
    if (this.#linkChangePs < nowPs) {
      this.#linkChangePs = NEVER;
      for (const port of this.#ports) if (port.followLink()) this.#noteLinkChange();
    }
    const { lid, trapIntervalPs } = this.#ports[0]!;
    const violation = this.#violations.take(nowPs, trapIntervalPs);
    if (violation !== undefined) this.#sendTrap(violationTrap(violation, lid), nowPs);
    if (this.#linkChanges.take(nowPs, trapIntervalPs)) this.#sendTrap(linkChangeTrap(lid), nowPs);
    for (let next = this.#arrivals[0]; next !== undefined && next.duePs <= nowPs; next = this.#arrivals[0]) {
      this.#arrivals.shift();
      const link = this.#links[next.input - 1]!;
      const isDamaged = isReceivedDamaged(link, next.offset);
      const datagram = receivedDatagram(link, next.offset);
      link.consume(next.offset);
      // Port 0 is the packet's destination, and checks its ICRC.
      if (isDamaged) this.counts.damaged++;
      else this.#handle(datagram, next.input, nowPs);
    }
  }

  /** Sends the first packet that waits for an output. @returns whether one left */
  sendBy(output: number, nowPs: Picoseconds): boolean {
    const waiting = this.#waiting[output - 1]!;
    const [first] = waiting;
    if (first === undefined || !sendDatagram(this.#links[output - 1]!, first, nowPs)) return false;
    waiting.shift();
    this.counts.sent++;
    return true;
  }

  /** Handles a new epoch: see TimeKeeper. */
  rebase(ps: Picoseconds): void {
    for (const arrival of this.#arrivals) arrival.duePs -= ps;
    this.#linkChangePs -= ps;
    this.#violations.rebase(ps);
    this.#linkChanges.rebase(ps);
    for (const { partition } of this.#ports) partition.rebase(ps);
  }

  inspect(): BlockState {
    return { agent: this.agent.inspect(), arrivals: this.#arrivals.length, waiting: this.waitingCount };
  }

  #noteLinkChange(): void {
    this.agent.noteLinkChange();
    this.#linkChanges.changed(this.#hasManager);
  }

  /** Whether a subnet manager on the fabric has made itself known. */
  get #hasManager(): boolean {
    const { lid, masterSmLid } = this.#ports[0]!;
    return !this.#isEmbedded && lid !== 0 && masterSmLid !== 0;
  }

  #sendTrap(trap: Trap, nowPs: Picoseconds): void {
    const { lid, masterSmLid, masterSmSl } = this.#ports[0]!;
    this.counts.traps++;
    if (!this.#hasManager) return;
    const qps = { sourceQpn: subnetQpn, destinationQpn: subnetQpn, queueKey: 0, psn: 0 };
    const payload = trapMad(trap, lid, ++this.#transactionId);
    this.#put(
      {
        ...{ ...qps, payload, sourceLid: lid, destinationLid: masterSmLid, serviceLevel: masterSmSl },
        ...{ virtualLane: MANAGEMENT_LANE, partitionKey: defaultPkey },
      },
      this.#tables.portOf(masterSmLid, nowPs),
    );
  }

  #handle(datagram: Datagram | undefined, input: number, nowPs: Picoseconds): void {
    if (datagram === undefined || datagram.payload.length !== madBytes) this.counts.malformed++;
    else if (datagram.virtualLane !== MANAGEMENT_LANE) this.#handleGeneral(datagram, nowPs);
    else if (datagram.destinationQpn !== subnetQpn) this.counts.malformed++;
    else this.#handleSubnet(datagram, input, nowPs);
  }

  #handleSubnet(datagram: Datagram, input: number, nowPs: Picoseconds): void {
    const view = viewOf(datagram.payload);
    const managementClass = mad.fields.managementClass.get(view, 0);
    if (managementClass === MadClass.SUBN_DIRECTED_ROUTE) {
      const step = stepDirected(view, input, this.#links.length);
      if (step.to !== 'agent') return this.#forward(datagram, step, nowPs);
    } else if (managementClass !== MadClass.SUBN_LID_ROUTED) {
      this.counts.malformed++;
      return;
    }
    const isDirected = managementClass === MadClass.SUBN_DIRECTED_ROUTE;
    const isResponse = isDirected && isReturning(view);
    const payload = isResponse ? undefined : this.agent.answer(datagram.payload, input, nowPs);
    if (payload === undefined) {
      this.counts.unanswered++;
      return;
    }
    if (isDirected) {
      const step = beginReturn(viewOf(payload), input, this.#links.length);
      return this.#forward({ ...datagram, payload }, step, nowPs);
    }
    this.#reply({ ...datagram, payload }, input, nowPs);
  }

  /** Sends an SMP on along its directed route. */
  #forward(datagram: Datagram, step: DirectedStep, nowPs: Picoseconds): void {
    if (step.to === 'port')
      this.#put({ ...datagram, sourceLid: permissiveLid, destinationLid: permissiveLid }, step.port);
    else if (step.to === 'lid') {
      const route = { ...datagram, sourceLid: this.#ports[0]!.lid, destinationLid: step.lid };
      this.#put(route, this.#tables.portOf(step.lid, nowPs));
    } else this.counts.noPath++;
  }

  /** MADs of general services: performance management. */
  #handleGeneral(datagram: Datagram, nowPs: Picoseconds): void {
    const { payload: request, destinationQpn, queueKey } = datagram;
    const view = viewOf(request);
    const method = mad.fields.method.get(view, 0);
    if (destinationQpn !== generalServicesQpn || queueKey !== generalServicesQkey) {
      this.counts.malformed++;
      return;
    }
    if (mad.fields.baseVersion.get(view, 0) !== 1 || method > 0x7f) {
      this.counts.unanswered++;
      return;
    }
    const payload = request.slice();
    const isKnown =
      mad.fields.managementClass.get(view, 0) === MadClass.PERF_MGMT &&
      mad.fields.classVersion.get(view, 0) === 1;
    const status = isKnown ? this.#performance.answer(view, viewOf(payload)) : MadStatus.UNSUPPORTED_VERSION;
    mad.fields.method.set(viewOf(payload), 0, MadMethod.GET_RESP);
    mad.fields.status.set(viewOf(payload), 0, status);
    this.#reply({ ...datagram, payload }, NO_PORT, nowPs);
  }

  /** Sends a datagram back to its sender by the forwarding table; to a sender without a LID by its port. */
  #reply(datagram: Datagram, arrival: number, nowPs: Picoseconds): void {
    const { sourceLid, destinationLid, sourceQpn, destinationQpn } = datagram;
    const hasLid = sourceLid !== permissiveLid && sourceLid !== 0;
    this.#put(
      {
        ...datagram,
        sourceLid: destinationLid,
        destinationLid: hasLid ? sourceLid : permissiveLid,
        sourceQpn: destinationQpn,
        destinationQpn: sourceQpn,
      },
      hasLid ? this.#tables.portOf(sourceLid, nowPs) : arrival,
    );
  }

  /** Lane 15 goes first at an output. */
  #put(datagram: Datagram, output: number): void {
    const waiting = output === 0 ? undefined : this.#waiting[output - 1];
    if (waiting === undefined || this.#links[output - 1] === undefined) this.counts.noPath++;
    else if (waiting.length === waitingMax) this.counts.overflowed++;
    else if (datagram.virtualLane !== MANAGEMENT_LANE) waiting.push(datagram);
    else {
      const at = waiting.findIndex(({ virtualLane }) => virtualLane !== MANAGEMENT_LANE);
      waiting.splice(at < 0 ? waiting.length : at, 0, datagram);
    }
  }
}
