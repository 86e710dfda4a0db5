/**
 * An InfiniBand switch: packets wait at the port by which they came, and a crossbar moves the first of each input and lane to its output.
 *
 *     ═▶ port ─▶ LRH: tables ─▶ input buffer ──┐
 *     ═▶ port ─▶ LRH: tables ─▶ input buffer ──┼─ crossbar ─▶ credits, serializer of the output ═▶
 *     ═▶ port ─▶ LRH: tables ─▶ input buffer ──┘     each output arbitrates its lanes, and in a lane takes its inputs in turn
 *
 * Promises:
 * - No packet is dropped for lack of room: it leaves when the next buffer has credits for all of it, and its own
 *   credits return when its last byte has left. Every drop has a named reason: no route, a route back, a service level
 *   without a lane, a P_Key that a port does not accept, HOQLife, a stalled lane, LifeTimeValue, or an output whose link
 *   is down.
 * - A packet whose ICRC alone is wrong leaves as it came: its destination checks the ICRC (7.8).
 * - A packet's first byte leaves `latencyNs` after its first byte has come, if the output is free. A packet that would leave faster than it
 *   comes waits until its last byte cannot be late.
 * - Each lane of an input has a buffer and credits of its own, which one output at a time reads: a packet without credits blocks only
 *   packets of its lane. Lane 15 goes first, and is read with lane 0.
 * - A decision depends on earlier instants alone: the order of records within an instant has no effect.
 *
 * Management packets to the switch itself, and directed routes through it, are port 0's: see management/.
 *
 * Data lanes are those of the ports (`wire.dataVls`). With one, all packets use it, whatever the SL-to-VL tables have. Source: InfiniBand
 * Architecture Specification, volume 1, chapters 7 and 18.
 */
import { NEVER, nsToPs, type Picoseconds } from '../../base/index.ts';
import type { BlockState, ChannelReader, ChannelWriter, LogicalProcess } from '../../sim/index.ts';
import {
  blocksOf,
  canRelay,
  dataLanesOf,
  destinationLidOf,
  type LanesConfig,
  type LaneTables,
  lanesDefaults,
  laneTablesOf,
  MANAGEMENT_LANE,
  NO_LANE,
  type PacketArrival,
  receivedIdentity,
  receivedPacketBytes,
  receivedPkey,
  receivedServiceLevel,
  receivedVirtualLane,
  relayPacket,
  type WireConfig,
  WirePort,
} from '../../wire/index.ts';
import { FecnMarker, type LeavingPacket } from './fecn-marker.ts';
import { ForwardingTables, NO_PORT } from './forwarding-tables.ts';
import type { HeadOfQueueLimit, HeadOfQueueSetting } from './head-of-queue-limit.ts';
import type { InputBuffer } from './input-buffer.ts';
import { ManagementPort, type SwitchManagement } from './management/index.ts';
import type { SwitchConfig, SwitchCongestionConfig } from './parameters.ts';
import type { PartitionFilter } from './partition-filter.ts';
import { SlToVlTables } from './sl-to-vl-tables.ts';
import { type ExpiryReason, type SwitchDrops, SwitchPort } from './switch-port.ts';
import type { SwitchTap, SwitchWait } from './switch-tap.ts';

/** The cable in a port of a switch. */
export interface SwitchCable {
  readonly writer: ChannelWriter;
  readonly reader: ChannelReader;
  /** Rate and length of the cable; buffers of this end are those of the switch. */
  readonly wire: WireConfig;
  /** When packets sent from here arrive: `head` at another switch. */
  readonly sentArrival: PacketArrival;
  /** The port's bit of Victim_Mask; left out: 0. */
  readonly marksVictims?: boolean;
  /** HOQLife and VLStallCount of the port; left out: those of the switch. */
  readonly headOfQueue?: Partial<HeadOfQueueSetting>;
}

export interface InfinibandSwitchSetup {
  readonly lp: LogicalProcess;
  readonly config: SwitchConfig;
  /** Marks of congestion; left out: none. */
  readonly congestion?: SwitchCongestionConfig | undefined;
  /** Initial tables of virtual lanes; left out: the defaults. */
  readonly lanes?: LanesConfig | undefined;
  /** The cables, by port from 1; undefined for a port without one. */
  readonly cables: readonly (SwitchCable | undefined)[];
  readonly management: SwitchManagement;
}

export class InfinibandSwitch {
  readonly tables = new ForwardingTables();
  /** Port 0. */
  readonly management: ManagementPort;
  readonly slToVl: SlToVlTables;
  readonly #lp: LogicalProcess;
  readonly #latencyPs: Picoseconds;
  readonly #isStoring: boolean;
  /** By port from 1; undefined for a port without a cable. */
  readonly #ports: readonly (SwitchPort | undefined)[];
  readonly #used: readonly number[];
  /** Data lanes of all ports. Lane 15 has the buffer after theirs. */
  readonly laneCount: number;
  /** Packets that left in addition to those that came: copies for groups. */
  copyCount = 0;
  /** Observes packets; left out: no observer. */
  tap: SwitchTap<InfinibandPacket> | undefined = undefined;
  readonly #moveEvent: number;
  readonly #headEvent: number;
  /** The instant at which a first packet is the next to be dropped, at the earliest; NEVER if none is watched. */
  #headDuePs = NEVER;
  /** Whether the limits of any first packet may differ from when they were watched. */
  #hasNewLimits = false;
  /** The next instant at which packets may move, and the one after that. */
  #moveDuePs = NEVER;
  #laterDuePs = NEVER;

  /** Connects itself to `lp`. Its ports are enabled: links come up when their other ends are enabled, too. */
  constructor(setup: InfinibandSwitchSetup) {
    const { lp, config, cables, management, lanes = lanesDefaults() } = setup;
    this.#lp = lp;
    this.laneCount = dataLanesOf(cables.find((cable) => cable !== undefined)!.wire);
    this.slToVl = new SlToVlTables(laneTablesOf(lanes, this.laneCount).slToVl);
    this.#latencyPs = nsToPs(config.latencyNs);
    this.#isStoring = config.forwarding === 'store-and-forward';
    this.#ports = cables.map((cable) => cable && this.#switchPortOf(cable, setup, lanes));
    this.#used = this.#ports.flatMap((port, index) => (port === undefined ? [] : [index]));
    this.#moveEvent = lp.queue.addHandler(() => this.#moveDue());
    this.#headEvent = lp.queue.addHandler(() => this.#headDue());
    lp.addTimeKeeper(this);
    this.management = new ManagementPort({
      config,
      management,
      tables: this.tables,
      links: this.ports,
      drops: this.#ports.map((port) => port?.counted),
      partitions: this.#ports.map((port) => port?.partition),
      headOfQueues: this.#ports.map((port) => port?.headOfQueue),
      lanes: {
        count: this.laneCount,
        slToVl: this.slToVl,
        weights: [undefined, ...this.#ports].map(
          (port) => port?.tables ?? laneTablesOf(lanes, this.laneCount),
        ),
      },
    });
    for (const index of this.#used) this.#connect(index);
  }

  #switchPortOf(
    cable: SwitchCable,
    { config, congestion }: InfinibandSwitchSetup,
    lanes: LanesConfig,
  ): SwitchPort {
    const isMarking = congestion !== undefined && congestion.threshold > 0;
    const laneBytes = config.inputBufferBytes / this.laneCount;
    const marker = isMarking
      ? new FecnMarker(congestion, this.laneCount, laneBytes, cable.marksVictims === true)
      : undefined;
    const { hoqLife, vlStallCount } = { ...config, ...cable.headOfQueue };
    return new SwitchPort(this.#portOf(cable, config), lanes, marker, { hoqLife, vlStallCount });
  }

  #portOf({ writer, reader, wire, sentArrival }: SwitchCable, config: SwitchConfig): WirePort {
    const own = { ...wire, receiveBufferBytes: config.inputBufferBytes, transmitAheadBytes: 0 };
    return new WirePort({
      ...{ lp: this.#lp, config: own, writer, reader, sentArrival },
      ...{ receivedArrival: 'head', isSwitchPort: true },
    });
  }

  #connect(index: number): void {
    const { port } = this.#ports[index]!;
    port.connect({
      receiver: { packetArrived: (offset) => this.#packetArrived(index, offset) },
      sender: { spaceFreed: () => this.#moveBy(this.#lp.nowPs) },
      link: { linkChanged: (_isUp, nowPs) => this.#linkChanged(nowPs) },
    });
    port.setEnabled(true);
  }

  #linkChanged(nowPs: Picoseconds): void {
    this.management.linkChanged(nowPs);
    this.#moveBy(nowPs + 1);
  }

  /** The ports by number from 1; undefined for a port without a cable. */
  get ports(): readonly (WirePort | undefined)[] {
    return this.#ports.map((own) => own?.port);
  }

  /** Packets that came by a port and were not forwarded. */
  dropsOf(port: number): Readonly<SwitchDrops> {
    return this.#ports[port - 1]!.drops;
  }

  /** Packets that came by a port and still wait, and the most so far. */
  waitingAt(port: number): { readonly packets: number; readonly highWater: number } {
    const { buffers, dataCount, waitingMax } = this.#ports[port - 1]!;
    return { packets: dataCount + buffers.at(-1)!.count, highWater: waitingMax };
  }

  /** P_Key table and enforcement of a port. */
  partitionOf(port: number): PartitionFilter {
    return this.#ports[port - 1]!.partition;
  }

  /** Packets marked with FECN that left by a port; undefined without marks. */
  markedAt(port: number): number | undefined {
    return this.#ports[port - 1]!.marker?.markedCount;
  }

  /** Tables of arbitration between the data lanes that leave by a port, and its VLHighLimit. */
  arbitrationOf(port: number): Omit<LaneTables, 'slToVl'> {
    return this.#ports[port - 1]!.tables;
  }

  inspect(): BlockState {
    return {
      tables: this.tables.inspect(),
      management: this.management.inspect(),
      ports: this.#used.map((index) => {
        const { port, buffers, arbiter } = this.#ports[index]!;
        const [data, ...others] = buffers.slice(0, -1).map((buffer) => buffer.inspect());
        return {
          port: index + 1,
          link: port.inspect(),
          data: data!,
          ...(others.length === 0 ? {} : { otherLanes: others, arbiter: arbiter.inspect() }),
          management: buffers.at(-1)!.inspect(),
        };
      }),
    };
  }

  /** Handles a new epoch: see TimeKeeper. */
  rebase(ps: Picoseconds): void {
    this.#moveDuePs -= ps;
    this.#laterDuePs -= ps;
    this.#headDuePs -= ps;
    this.tables.rebase(ps);
    this.slToVl.rebase(ps);
    this.management.rebase(ps);
    for (const index of this.#used) {
      this.#ports[index]!.rebase(ps);
    }
  }

  // ---- inputs ----

  /** The first byte of a packet has come by a port. */
  #packetArrived(index: number, offset: number): void {
    const own = this.#ports[index]!;
    const outputs = this.#outputsOf(index, offset);
    if (outputs === 'management') {
      this.management.arrived(
        index + 1,
        offset,
        this.#lp.nowPs + own.tailDelayPs(receivedPacketBytes(own.port, offset)),
      );
      this.#moveBy(this.management.duePs);
      return;
    }
    if (typeof outputs === 'string') {
      this.#drop(index, offset, outputs);
      own.port.consume(offset);
      return;
    }
    this.copyCount += outputs.length - 1;
    if (outputs.length === 0) {
      own.port.consume(offset);
      return;
    }
    const lane = receivedVirtualLane(own.port, offset);
    if (lane === MANAGEMENT_LANE) this.#wait(index, this.laneCount, offset, outputs, noLanes);
    else if (this.laneCount === 1) this.#wait(index, lane, offset, outputs, noLanes);
    else this.#waitInLanes(index, lane, offset, outputs);
  }

  /** Puts a packet into the queue of the lane by which it came, with the lane by which it leaves each output. */
  #waitInLanes(index: number, lane: number, offset: number, outputs: readonly number[]): void {
    const own = this.#ports[index]!;
    const level = receivedServiceLevel(own.port, offset);
    const served: number[] = [];
    const lanes: number[] = [];
    for (const output of outputs) {
      const to = this.slToVl.laneOf(index + 1, output, level, this.#lp.nowPs);
      if (to >= this.laneCount) this.#drop(index, offset, 'noLane', output);
      else {
        served.push(output);
        lanes.push(to);
      }
    }
    if (served.length > 0) this.#wait(index, lane, offset, served, lanes);
    else own.port.consume(offset);
  }

  /**
   * Counts a packet, or its copy for an output, that is dropped. The caller releases the buffer of one that leaves by
   * no output.
   */
  #drop(index: number, offset: number, reason: keyof SwitchDrops, output?: number): void {
    this.#ports[index]!.drops[reason]++;
    this.tap?.dropped({ input: index + 1, offset }, reason, output);
  }

  #wait(
    index: number,
    lane: number,
    offset: number,
    outputs: readonly number[],
    lanes: readonly number[],
  ): void {
    const own = this.#ports[index]!;
    const readyPs = this.#readyPsOf(own, offset, outputs);
    this.tap?.arrived({ input: index + 1, offset }, index + 1, readyPs);
    const buffer = own.buffers[lane]!;
    buffer.add(offset, outputs, lanes, this.#lp.nowPs, readyPs);
    if (buffer.count === 1) {
      this.#countWanted(outputs);
      own.noteNewFirst(lane);
    }
    own.added(this.#lp.nowPs);
    // Its time may be up before it is ready.
    this.#moveBy(Math.min(readyPs, this.#lp.nowPs + this.management.agent.lifetimePs + 1));
  }

  /**
   * Ports by which a packet leaves, if any accepts its P_Key; `management` if it ends here; or why it leaves by none.
   * P_Keys of lane 15 are not checked (10.9).
   */
  #outputsOf(index: number, offset: number): readonly number[] | 'management' | keyof SwitchDrops {
    const { port, partition } = this.#ports[index]!;
    if (receivedVirtualLane(port, offset) === MANAGEMENT_LANE) return this.#routeOf(index, offset);
    if (!partition.admits('inbound', receivedPkey(port, offset), this.#lp.nowPs)) {
      this.#noteViolation(index, offset, index + 1);
      return 'inboundPkey';
    }
    const outputs = this.#routeOf(index, offset);
    return typeof outputs === 'string' ? outputs : this.#admittedOf(index, offset, outputs);
  }

  /** Outputs of a packet that accept its P_Key; the other outputs count it, as a copy that was dropped. */
  #admittedOf(index: number, offset: number, outputs: readonly number[]): readonly number[] {
    const pkey = receivedPkey(this.#ports[index]!.port, offset);
    let refused = 0;
    for (const output of outputs) if (!this.#isAdmitted(output, pkey)) refused++;
    if (refused === 0) return outputs;
    const admitted: number[] = [];
    for (const output of outputs) {
      if (this.#isAdmitted(output, pkey)) admitted.push(output);
      else this.#refuse(index, offset, output);
    }
    this.copyCount += refused;
    return admitted;
  }

  #isAdmitted(output: number, pkey: number): boolean {
    return this.#ports[output - 1]!.partition.admits('outbound', pkey, this.#lp.nowPs);
  }

  #refuse(index: number, offset: number, output: number): void {
    this.#drop(index, offset, 'outboundPkey', output);
    this.#ports[output - 1]!.counted.outboundPkey++;
    this.#noteViolation(index, offset, output);
  }

  #noteViolation(index: number, offset: number, port: number): void {
    const identity = receivedIdentity(this.#ports[index]!.port, offset);
    this.management.violated({ ...identity, input: index + 1, port }, this.#lp.nowPs);
    this.#moveBy(this.#lp.nowPs + 1);
  }

  /** Ports to which the tables lead, all with a cable, and never the one by which the packet came; or why there are none. */
  #routeOf(index: number, offset: number): readonly number[] | 'management' | 'noRoute' | 'ownPort' {
    const { port } = this.#ports[index]!;
    const lid = destinationLidOf(port, offset);
    const input = index + 1;
    if (this.tables.isGroup(lid)) {
      const groupPorts = this.tables.portsOf(lid, this.#lp.nowPs);
      const outputs = groupPorts.filter((each) => each !== input && this.#ports[each - 1] !== undefined);
      return outputs.length === 0 ? 'noRoute' : outputs;
    }
    const output = this.tables.portOf(lid, this.#lp.nowPs);
    if (this.management.takes(lid, receivedVirtualLane(port, offset), output)) return 'management';
    if (output === input) return 'ownPort';
    return output === NO_PORT || this.#ports[output - 1] === undefined ? 'noRoute' : [output];
  }

  /** When a packet may leave that begins to arrive now. */
  #readyPsOf(input: SwitchPort, offset: number, outputs: readonly number[]): Picoseconds {
    const packetBytes = receivedPacketBytes(input.port, offset);
    const arrivesPs = input.tailDelayPs(packetBytes);
    const leavesPs = Math.min(...outputs.map((port) => this.#ports[port - 1]!.tailDelayPs(packetBytes)));
    const heldPs = this.#isStoring ? arrivesPs : Math.max(0, arrivesPs - leavesPs);
    return this.#lp.nowPs + heldPs + this.#latencyPs;
  }

  // ---- crossbar ----

  /** An input has a new first packet. */
  #countWanted(outputs: readonly number[]): void {
    for (const port of outputs) this.#ports[port - 1]!.wantedBy++;
  }

  #moveBy(ps: Picoseconds): void {
    const { nowPs } = this.#lp;
    if (ps >= this.#moveDuePs) {
      if (ps > this.#moveDuePs && ps < this.#laterDuePs) this.#laterDuePs = ps;
      return;
    }
    if (this.#moveDuePs > nowPs && this.#moveDuePs < this.#laterDuePs) this.#laterDuePs = this.#moveDuePs;
    this.#moveDuePs = ps;
    this.#lp.queue.schedule(ps, this.#moveEvent);
  }

  #moveDue(): void {
    const { nowPs } = this.#lp;
    if (nowPs < this.#moveDuePs) return;
    this.#moveDuePs = NEVER;
    const laterPs = this.#laterDuePs;
    this.#laterDuePs = NEVER;
    // A subnet manager may set the limits of packets that wait already.
    if (this.management.duePs <= nowPs) this.#hasNewLimits = true;
    this.#endWatch(nowPs);
    this.management.run(nowPs);
    for (const index of this.#used) this.#release(index, nowPs);
    for (const index of this.#used) this.#dropOld(index, nowPs);
    for (const index of this.#used) this.#stopWaiting(index);
    // A packet that leaves makes the next of its input the first, which may want an output that was asked before.
    while (this.#used.some((index) => this.#serve(index, nowPs)));
    for (const index of this.#used) this.#scheduleNext(index, nowPs);
    if (this.management.duePs < NEVER) this.#moveBy(this.management.duePs);
    if (this.tap !== undefined) this.#noteWaits(this.tap, nowPs);
    if (laterPs < NEVER) this.#moveBy(Math.max(laterPs, nowPs + 1));
    this.#watchHeads(nowPs);
  }

  /** Packets that have been dropped do not wait at their outputs any longer. */
  #stopWaiting(index: number): void {
    const { wantedBy, port } = this.#ports[index]!;
    if (wantedBy === 0 && !this.management.hasWaiting(index + 1)) port.stopWaiting();
    else if (this.laneCount > 1) port.waitOnlyFor(this.#lanesWanted(index + 1));
  }

  /** Lanes, as bits, in which first packets of inputs are to leave by an output. */
  #lanesWanted(output: number): number {
    let lanes = 0;
    for (const index of this.#used) {
      const { buffers } = this.#ports[index]!;
      for (let lane = 0; lane < this.laneCount; lane++)
        if (buffers[lane]!.wants(output)) lanes |= 1 << buffers[lane]!.laneTowards(output);
    }
    return lanes;
  }

  /**
   * Has packets move, and old ones dropped, at the instant after the last one at which a first packet may wait. Only
   * first packets that are new are watched: the event that is scheduled for the others comes no later than their drop.
   */
  #watchHeads(nowPs: Picoseconds): void {
    let dropPs = NEVER;
    for (const index of this.#used) {
      const own = this.#ports[index]!;
      const lanes = this.#hasNewLimits ? -1 : own.newFirsts;
      own.newFirsts = 0;
      for (let lane = 0; lanes >> lane !== 0 && lane <= this.laneCount; lane++)
        if (((lanes >> lane) & 1) !== 0) dropPs = Math.min(dropPs, this.#dropPsOf(own, lane, nowPs));
    }
    this.#hasNewLimits = false;
    if (dropPs >= this.#headDuePs) return;
    this.#headDuePs = dropPs;
    this.#lp.queue.schedule(dropPs, this.#headEvent);
  }

  /** The instant at which the first packet of a lane of an input is dropped at one of its outputs, unless it leaves. */
  #dropPsOf(input: SwitchPort, lane: number, nowPs: Picoseconds): Picoseconds {
    const buffer = input.buffers[lane]!;
    let dropPs = NEVER;
    for (const output of buffer.remaining)
      dropPs = Math.min(dropPs, this.#lastPs(buffer, lane, output, nowPs) + 1);
    return Math.max(nowPs + 1, input.readUntilPs(lane), dropPs);
  }

  /** Has packets move at the instant of a drop. If they have moved already, a later drop is due. */
  #headDue(): void {
    const { nowPs } = this.#lp;
    if (nowPs >= this.#headDuePs) this.#moveBy(nowPs);
  }

  /** Has all first packets watched again if the time of the one that was watched is up. */
  #endWatch(nowPs: Picoseconds): void {
    if (nowPs < this.#headDuePs) return;
    this.#headDuePs = NEVER;
    // A drop of this instant may stall its lane, for packets of all inputs.
    this.#hasNewLimits = true;
  }

  /** The last instant at which the first packet of a buffer may still wait for an output. */
  #lastPs(buffer: InputBuffer, lane: number, output: number, nowPs: Picoseconds): Picoseconds {
    const { headOfQueue } = this.#ports[output - 1]!;
    const lastPs = headOfQueue.lastPs(this.#laneAt(buffer, lane, output), buffer.waitsSincePs, nowPs);
    return Math.min(lastPs, this.#lifetimeEndPs(buffer));
  }

  /** The last instant at which the first packet of a buffer may be in the switch: LifeTimeValue. */
  #lifetimeEndPs({ arrivedPs }: InputBuffer): Picoseconds {
    return arrivedPs + this.management.agent.lifetimePs;
  }

  /** Whether the first packet of a buffer is dropped at the next instant, and leaves by no output before. */
  #isTooOld(buffer: InputBuffer, nowPs: Picoseconds): boolean {
    return nowPs > this.#lifetimeEndPs(buffer);
  }

  /** Lane by which the first packet of a buffer leaves an output: a data lane, or the number after them for lane 15. */
  #laneAt(buffer: InputBuffer, lane: number, output: number): number {
    return lane === this.laneCount || this.laneCount === 1 ? lane : buffer.laneTowards(output);
  }

  /** Releases the buffer of the packet whose last byte has left by this output. */
  #release(index: number, nowPs: Picoseconds): void {
    const output = this.#ports[index]!;
    if (output.sendsFrom < 0 || nowPs < output.sendsUntilPs) return;
    const input = this.#ports[output.sendsFrom]!;
    if (output.sendsOffset >= 0) {
      this.tap?.released({ input: output.sendsFrom + 1, offset: output.sendsOffset });
      input.port.consume(output.sendsOffset);
    }
    output.sendsFrom = -1;
  }

  /**
   * Drops the first packet of a lane of an input at the outputs at which its time is up, unless it is leaving by
   * another output, or became the first at this instant: packets may move several times within an instant.
   */
  #dropOld(index: number, nowPs: Picoseconds): void {
    const input = this.#ports[index]!;
    for (let lane = 0; lane <= this.laneCount; lane++) {
      const buffer = input.buffers[lane]!;
      if (input.readUntilPs(lane) > nowPs || buffer.firstSincePs === nowPs) continue;
      for (const output of buffer.remaining)
        if (nowPs > this.#lastPs(buffer, lane, output, nowPs)) this.#expire(index, lane, output, nowPs);
    }
  }

  #expire(index: number, lane: number, outputNumber: number, nowPs: Picoseconds): void {
    const input = this.#ports[index]!;
    const output = this.#ports[outputNumber - 1]!;
    const buffer = input.buffers[lane]!;
    const { offset } = buffer;
    const outputLane = this.#laneAt(buffer, lane, outputNumber);
    const reason = this.#expiryOf(buffer, outputLane, output.headOfQueue, nowPs);
    this.#drop(index, offset, reason, outputNumber);
    if (reason === 'hoqLife') output.headOfQueue.expired(outputLane, nowPs);
    output.counted.expired++;
    output.wantedBy--;
    input.noteNewFirst(lane);
    if (!buffer.leftBy(outputNumber, nowPs)) return;
    this.tap?.released({ input: index + 1, offset });
    input.port.consume(offset);
    input.gone(buffer, nowPs);
    this.#countWanted(buffer.remaining);
  }

  /** Which limit ended first. */
  #expiryOf(buffer: InputBuffer, lane: number, limit: HeadOfQueueLimit, nowPs: Picoseconds): ExpiryReason {
    if (this.#lifetimeEndPs(buffer) < limit.lastPs(lane, buffer.waitsSincePs, nowPs)) return 'switchLifetime';
    return limit.isStalled(lane, nowPs) ? 'vlStalled' : 'hoqLife';
  }

  /** Gives an output its next packet. Returns true if one leaves. */
  #serve(index: number, nowPs: Picoseconds): boolean {
    const output = this.#ports[index]!;
    if (output.sendsFrom >= 0) return false;
    if (this.management.sendBy(index + 1, nowPs)) return true;
    if (output.wantedBy === 0) return false;
    if (this.#serveFrom(this.laneCount, index, nowPs)) return true;
    return this.laneCount === 1 ? this.#serveFrom(0, index, nowPs) : this.#serveLanes(index, nowPs);
  }

  /** Gives an output the next packet of the queues of a lane: lane 15, or the only data lane. */
  #serveFrom(lane: number, index: number, nowPs: Picoseconds): boolean {
    const virtualLane = lane === this.laneCount ? MANAGEMENT_LANE : lane;
    const output = this.#ports[index]!;
    for (let step = 0; step < this.#used.length; step++) {
      const turn = (output.turn + step) % this.#used.length;
      const input = this.#ports[this.#used[turn]!]!;
      const buffer = input.buffers[lane]!;
      if (!buffer.wants(index + 1) || buffer.readyPs > nowPs || input.readUntilPs(lane) > nowPs) continue;
      if (this.#isTooOld(buffer, nowPs) || this.#awaitsStall(output.headOfQueue, lane, nowPs)) continue;
      // Without credit or with a busy link nothing else may leave here, either.
      const packet = lane === this.laneCount ? undefined : this.#leavingPacket(input, buffer, index, lane);
      const flag = packet === undefined ? 0 : output.marker!.flagFor(packet);
      if (!relayPacket(input.port, buffer.offset, output.port, nowPs, virtualLane, flag)) return false;
      if (packet !== undefined) output.marker!.left(packet, flag);
      this.#leaves(this.#used[turn]!, lane, index);
      output.turn = (turn + 1) % this.#used.length;
      return true;
    }
    return false;
  }

  /**
   * Whether a lane is stalled; if so, packets move again after its end: one that became the first at one of the last
   * two instants of the stall is not dropped.
   */
  #awaitsStall(limit: HeadOfQueueLimit, lane: number, nowPs: Picoseconds): boolean {
    if (!limit.isStalled(lane, nowPs)) return false;
    this.#moveBy(limit.stalledUntilPs(lane) + 1);
    return true;
  }

  /** Gives an output the next packet of the lane that arbitration chooses among those with a packet and its credits. */
  #serveLanes(index: number, nowPs: Picoseconds): boolean {
    const output = this.#ports[index]!;
    const next = this.#nextByLane(index, nowPs);
    let ready = 0;
    for (const [lane, turn] of next.entries()) {
      if (turn < 0) continue;
      const { port, buffer } = this.#queueOf(turn);
      if (canRelay(port, buffer.offset, output.port, lane)) ready |= 1 << lane;
    }
    const lane = output.arbiter.choose(ready);
    if (lane === NO_LANE) return false;
    const turn = next[lane]!;
    const { input, lane: from, port, buffer } = this.#queueOf(turn);
    output.arbiter.sent(blocksOf(receivedPacketBytes(port, buffer.offset)));
    const packet = this.#leavingPacket(this.#ports[input]!, buffer, index, lane);
    const flag = packet === undefined ? 0 : output.marker!.flagFor(packet);
    relayPacket(port, buffer.offset, output.port, nowPs, lane, flag);
    if (packet !== undefined) output.marker!.left(packet, flag);
    this.#leaves(input, from, index);
    output.turns[lane] = (turn + 1) % (this.#used.length * this.laneCount);
    return true;
  }

  /** The first packet of a buffer, as the marker of an output checks it; undefined without marks. */
  #leavingPacket(
    { port }: SwitchPort,
    { offset }: InputBuffer,
    index: number,
    lane: number,
  ): LeavingPacket | undefined {
    const output = this.#ports[index]!;
    if (output.marker === undefined) return undefined;
    const bytes = receivedPacketBytes(port, offset);
    let waitingBytes = -bytes;
    let inputs = 0;
    for (const other of this.#used) {
      const ownBytes = this.#bytesFirstFor(this.#ports[other]!, index + 1, lane);
      waitingBytes += ownBytes;
      if (ownBytes > 0) inputs++;
    }
    const hasCreditsForMore = output.port.hasCreditsFor(2 * blocksOf(bytes), lane);
    return { lane, bytes, waitingBytes, inputs, hasCreditsForMore };
  }

  /** Bytes of an input's packets that leave by a lane of an output, as far as none before them leaves elsewhere. */
  #bytesFirstFor({ port, buffers }: SwitchPort, output: number, lane: number): number {
    let bytes = 0;
    for (let queue = 0; queue < this.laneCount; queue++)
      for (const offset of buffers[queue]!.firstFor(output, this.laneCount === 1 ? undefined : lane))
        bytes += receivedPacketBytes(port, offset);
    return bytes;
  }

  /** For each lane in which a packet may leave by an output now, the queue whose turn it is; -1 for the others. */
  #nextByLane(index: number, nowPs: Picoseconds): readonly number[] {
    const { turns, headOfQueue } = this.#ports[index]!;
    const queues = this.#used.length * this.laneCount;
    const next = Array<number>(this.laneCount).fill(-1);
    for (let queue = 0; queue < queues; queue++) {
      const { input, lane, buffer } = this.#queueOf(queue);
      if (!buffer.wants(index + 1) || buffer.readyPs > nowPs) continue;
      if (this.#ports[input]!.readUntilPs(lane) > nowPs) continue;
      const to = buffer.laneTowards(index + 1);
      if (this.#isTooOld(buffer, nowPs) || this.#awaitsStall(headOfQueue, to, nowPs)) continue;
      const turn = turns[to]!;
      const wait = (queue - turn + queues) % queues;
      if (next[to]! < 0 || wait < (next[to]! - turn + queues) % queues) next[to] = queue;
    }
    return next;
  }

  /** The queue of an input and a data lane, numbered input by input. */
  #queueOf(queue: number): {
    readonly input: number;
    readonly lane: number;
    readonly port: WirePort;
    readonly buffer: InputBuffer;
  } {
    const input = this.#used[Math.floor(queue / this.laneCount)]!;
    const lane = queue % this.laneCount;
    const { port, buffers } = this.#ports[input]!;
    return { input, lane, port, buffer: buffers[lane]! };
  }

  /** Notes that the first packet of a lane of an input leaves by an output now. */
  #leaves(inputIndex: number, lane: number, outputIndex: number): void {
    const input = this.#ports[inputIndex]!;
    const buffer = input.buffers[lane]!;
    const output = this.#ports[outputIndex]!;
    const { offset } = buffer;
    // A packet that is discarded, or that a fault holds back, reserves nothing.
    const untilPs = Math.max(this.#lp.nowPs + 1, output.port.isUp ? output.port.freePs : 0);
    this.tap?.leaves(
      { input: inputIndex + 1, offset },
      {
        output: outputIndex + 1,
        queue: this.#numberOf(inputIndex, lane),
        firstSincePs: buffer.firstSincePs,
        untilPs,
      },
    );
    output.headOfQueue.left(this.#laneAt(buffer, lane, outputIndex + 1));
    const isLast = buffer.leftBy(outputIndex + 1, this.#lp.nowPs);
    input.noteNewFirst(lane);
    output.wantedBy--;
    if (isLast) {
      input.gone(buffer, this.#lp.nowPs);
      this.#countWanted(buffer.remaining);
    }
    output.sendsFrom = inputIndex;
    output.sendsOffset = isLast ? offset : -1;
    output.sendsUntilPs = untilPs;
    input.read(lane, untilPs);
  }

  /** Number of the queue of an input and a lane, data or 15, for an observer. */
  #numberOf(inputIndex: number, lane: number): number {
    return (this.laneCount + 1) * inputIndex + lane;
  }

  /** Reports for which cause the first packet of each input waits. */
  #noteWaits(tap: SwitchTap<InfinibandPacket>, nowPs: Picoseconds): void {
    for (const index of this.#used) {
      const own = this.#ports[index]!;
      for (const [lane, buffer] of own.buffers.entries()) {
        const [output = 0] = buffer.readyPs > nowPs ? [] : buffer.remaining;
        const cause = output === 0 ? undefined : this.#causeOf(own, lane, output, nowPs);
        tap.waits(this.#numberOf(index, lane), cause, output);
      }
    }
    tap.settled();
  }

  #causeOf(input: SwitchPort, lane: number, outputNumber: number, nowPs: Picoseconds): SwitchWait {
    const output = this.#ports[outputNumber - 1]!;
    if (output.sendsFrom >= 0) return 'output';
    if (input.readUntilPs(lane) > nowPs) return 'input';
    return output.port.waitsForCredits ? 'credits' : 'link';
  }

  /** Schedules what this port has to do next: the end of a packet, or the first packet of its inputs. */
  #scheduleNext(index: number, nowPs: Picoseconds): void {
    const own = this.#ports[index]!;
    if (own.sendsFrom >= 0) this.#moveBy(own.sendsUntilPs);
    for (const { readyPs } of own.buffers) if (readyPs > nowPs && readyPs < NEVER) this.#moveBy(readyPs);
  }
}

/** A packet in the switch: the port by which it came, from 1, and the offset of its record there. */
export interface InfinibandPacket {
  readonly input: number;
  readonly offset: number;
}

/** Lanes by which packets leave, where they need not be known. */
const noLanes: readonly number[] = [];
