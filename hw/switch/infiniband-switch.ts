/**
 * An InfiniBand switch: packets wait at the port by which they came, and a crossbar moves the first of each input to its output.
 *
 *     ═▶ port ─▶ LRH: tables ─▶ input buffer ──┐
 *     ═▶ port ─▶ LRH: tables ─▶ input buffer ──┼─ crossbar ─▶ credits, serializer of the output ═▶
 *     ═▶ port ─▶ LRH: tables ─▶ input buffer ──┘     each output takes its inputs in turn
 *
 * Promises:
 * - No packet is dropped for lack of room: it leaves when the next buffer has credits for all of it, and its own credits return when its
 *   last byte has left. Every drop has a named reason: no route, a route back, HOQLife, or an output whose link is down.
 * - A packet's first byte leaves `latencyNs` after its first byte has come, if the output is free. A packet that would leave faster than it
 *   comes waits until its last byte cannot be late.
 * - An input is read by one output at a time. Lane 15 has an input buffer of its own and goes first.
 * - A decision depends on earlier instants alone: the order of records within an instant has no effect.
 *
 * Management packets to the switch itself, and directed routes through it, are port 0's: see management/.
 *
 * Lanes: VL 0 and VL 15, as the ports have. Source: InfiniBand Architecture Specification, volume 1, chapters 7 and 18.
 */
import { NEVER, nsToPs, type Picoseconds } from '../../base/index.ts';
import type { BlockState, ChannelReader, ChannelWriter, LogicalProcess } from '../../sim/index.ts';
import {
  destinationLidOf,
  MANAGEMENT_LANE,
  type PacketArrival,
  receivedPacketBytes,
  receivedVirtualLane,
  relayPacket,
  tailDelayOf,
  type WireConfig,
  WirePort,
} from '../../wire/index.ts';
import { ForwardingTables, NO_PORT } from './forwarding-tables.ts';
import { InputBuffer } from './input-buffer.ts';
import { ManagementPort, type SwitchManagement } from './management/index.ts';
import type { SwitchConfig } from './parameters.ts';
import type { SwitchTap, SwitchWait } from './switch-tap.ts';

/** The cable in a port of a switch. */
export interface SwitchCable {
  readonly writer: ChannelWriter;
  readonly reader: ChannelReader;
  /** Rate and length of the cable; buffers of this end are those of the switch. */
  readonly wire: WireConfig;
  /** When packets sent from here arrive: `head` at another switch. */
  readonly sentArrival: PacketArrival;
}

export interface InfinibandSwitchSetup {
  readonly lp: LogicalProcess;
  readonly config: SwitchConfig;
  /** The cables, by port from 1; undefined for a port without one. */
  readonly cables: readonly (SwitchCable | undefined)[];
  readonly management: SwitchManagement;
}

/** Packets that a switch did not forward, by reason. */
export interface SwitchDrops {
  noRoute: number;
  /** Its entry leads back to where it came from (PortRcvSwitchRelayErrors: looping). */
  ownPort: number;
  /** It was the first of its input for longer than HOQLife (PortXmitDiscards of its output). */
  hoqLife: number;
}

/** Drops by the port to which performance management attributes them (IBTA volume 1, 16.1.3.5). */
class CountedDrops {
  headOfQueue = 0;
  readonly #drops: Readonly<SwitchDrops>;

  constructor(drops: Readonly<SwitchDrops>) {
    this.#drops = drops;
  }

  get noRoute(): number {
    return this.#drops.noRoute;
  }

  get ownPort(): number {
    return this.#drops.ownPort;
  }
}

/** One port, with the packets that came by it. */
class SwitchPort {
  readonly port: WirePort;
  readonly data: InputBuffer;
  readonly management: InputBuffer;
  /** Time from a packet's first byte to its last on this cable. */
  readonly tailDelayPs: (packetBytes: number) => Picoseconds;
  readonly drops: SwitchDrops = { noRoute: 0, ownPort: 0, hoqLife: 0 };
  /** The same as management counts them: packets that were to leave by this port are of it. */
  readonly counted = new CountedDrops(this.drops);
  /** Input and output are busy with a packet until then. */
  readUntilPs = 0;
  sendsUntilPs = 0;
  /** The packet that leaves by this output: its input, or -1; released when its last byte has left. */
  sendsFrom = -1;
  sendsOffset = -1;
  /** Input whose turn is next. */
  turn = 0;
  /** First packets of inputs that are to leave by this output. */
  wantedBy = 0;

  constructor(port: WirePort) {
    this.port = port;
    this.data = new InputBuffer(port.receivePacketsMax);
    this.management = new InputBuffer(port.receivePacketsMax);
    this.tailDelayPs = tailDelayOf(port.config, 'head');
  }
}

export class InfinibandSwitch {
  readonly tables = new ForwardingTables();
  /** Port 0. */
  readonly management: ManagementPort;
  readonly #lp: LogicalProcess;
  readonly #latencyPs: Picoseconds;
  readonly #isStoring: boolean;
  /** HOQLife: longest time for which a packet is the first of its input. */
  readonly #headLimitPs: Picoseconds;
  /** By port from 1; undefined for a port without a cable. */
  readonly #ports: readonly (SwitchPort | undefined)[];
  readonly #used: readonly number[];
  /** Packets that left in addition to those that came: copies for groups. */
  copyCount = 0;
  /** Observes packets; left out: no observer. */
  tap: SwitchTap<InfinibandPacket> | undefined = undefined;
  readonly #moveEvent: number;
  readonly #headEvent: number;
  #isHeadWatched = false;
  /** The next instant at which packets may move, and the one after that. */
  #moveDuePs = NEVER;
  #laterDuePs = NEVER;

  /** Connects itself to `lp`. Its ports are enabled: links come up when their other ends are enabled, too. */
  constructor({ lp, config, cables, management }: InfinibandSwitchSetup) {
    this.#lp = lp;
    this.#latencyPs = nsToPs(config.latencyNs);
    this.#isStoring = config.forwarding === 'store-and-forward';
    this.#headLimitPs = headLimitPsOf(config);
    this.#ports = cables.map((cable) => cable && new SwitchPort(this.#portOf(cable, config)));
    this.#used = this.#ports.flatMap((port, index) => (port === undefined ? [] : [index]));
    this.#moveEvent = lp.queue.addHandler(() => this.#moveDue());
    this.#headEvent = lp.queue.addHandler(() => this.#headDue());
    lp.addTimeKeeper(this);
    this.management = new ManagementPort({
      management,
      tables: this.tables,
      links: this.ports,
      drops: this.#ports.map((port) => port?.counted),
    });
    for (const index of this.#used) this.#connect(index);
  }

  #portOf({ writer, reader, wire, sentArrival }: SwitchCable, config: SwitchConfig): WirePort {
    const own = { ...wire, receiveBufferBytes: config.inputBufferBytes, transmitAheadBytes: 0 };
    return new WirePort({ lp: this.#lp, config: own, writer, reader, sentArrival, receivedArrival: 'head' });
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
    const { data, management } = this.#ports[port - 1]!;
    return { packets: data.count + management.count, highWater: data.highWater };
  }

  inspect(): BlockState {
    return {
      tables: this.tables.inspect(),
      management: this.management.inspect(),
      ports: this.#used.map((index) => {
        const { port, data, management } = this.#ports[index]!;
        return {
          port: index + 1,
          link: port.inspect(),
          data: data.inspect(),
          management: management.inspect(),
        };
      }),
    };
  }

  /** Handles a new epoch: see TimeKeeper. */
  rebase(ps: Picoseconds): void {
    this.#moveDuePs -= ps;
    this.#laterDuePs -= ps;
    this.tables.rebase(ps);
    this.management.rebase(ps);
    for (const index of this.#used) {
      const own = this.#ports[index]!;
      own.data.rebase(ps);
      own.management.rebase(ps);
      own.readUntilPs -= ps;
      own.sendsUntilPs -= ps;
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
      this.tap?.dropped({ input: index + 1, offset }, outputs);
      own.drops[outputs]++;
      own.port.consume(offset);
      return;
    }
    const readyPs = this.#readyPsOf(own, offset, outputs);
    this.tap?.arrived({ input: index + 1, offset }, index + 1, readyPs);
    const isManagement = receivedVirtualLane(own.port, offset) === MANAGEMENT_LANE;
    const buffer = isManagement ? own.management : own.data;
    this.copyCount += outputs.length - 1;
    buffer.add(offset, outputs, readyPs);
    if (buffer.count === 1) this.#countWanted(outputs);
    this.#moveBy(readyPs);
  }

  /** Ports by which a packet leaves, all with a cable, and never the one by which it came; `management` if it ends here; or why it leaves by none. */
  #outputsOf(index: number, offset: number): readonly number[] | 'management' | 'noRoute' | 'ownPort' {
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
    this.management.run(nowPs);
    for (const index of this.#used) this.#release(index, nowPs);
    for (const index of this.#used) this.#dropOld(index, nowPs);
    for (const index of this.#used)
      if (this.#ports[index]!.wantedBy === 0 && !this.management.hasWaiting(index + 1))
        this.#ports[index]!.port.stopWaiting();
    // A packet that leaves makes the next of its input the first, which may want an output that was asked before.
    while (this.#used.some((index) => this.#serve(index, nowPs)));
    for (const index of this.#used) this.#scheduleNext(index, nowPs);
    if (this.management.duePs < NEVER) this.#moveBy(this.management.duePs);
    if (this.tap !== undefined) this.#noteWaits(this.tap, nowPs);
    if (laterPs < NEVER) this.#moveBy(Math.max(laterPs, nowPs + 1));
    this.#watchHeads(nowPs);
  }

  /** Has packets move, and old ones dropped, when the oldest first packet is as old as it may be: one event at a time. */
  #watchHeads(nowPs: Picoseconds): void {
    if (this.#isHeadWatched || this.#headLimitPs === NEVER) return;
    let dropPs = NEVER;
    for (const index of this.#used) {
      const { data, management, readUntilPs } = this.#ports[index]!;
      for (const { count, firstSincePs } of [data, management])
        if (count > 0) dropPs = Math.min(dropPs, Math.max(readUntilPs, firstSincePs + this.#headLimitPs));
    }
    if (dropPs === NEVER) return;
    this.#isHeadWatched = true;
    this.#lp.queue.schedule(Math.max(nowPs + 1, dropPs), this.#headEvent);
  }

  #headDue(): void {
    this.#isHeadWatched = false;
    this.#moveBy(this.#lp.nowPs + 1);
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

  /** Drops the first packet of an input if its time is up; one that has left by some of its outputs is released when its last byte has. */
  #dropOld(index: number, nowPs: Picoseconds): void {
    const input = this.#ports[index]!;
    if (input.readUntilPs > nowPs) return;
    for (const buffer of [input.data, input.management]) {
      if (buffer.count === 0 || nowPs < buffer.firstSincePs + this.#headLimitPs) continue;
      input.drops.hoqLife++;
      this.tap?.dropped({ input: index + 1, offset: buffer.offset }, 'hoqLife', buffer.remaining[0]);
      this.tap?.released({ input: index + 1, offset: buffer.offset });
      input.port.consume(buffer.offset);
      for (const port of buffer.remaining) {
        const output = this.#ports[port - 1]!;
        output.wantedBy--;
        output.counted.headOfQueue++;
      }
      this.copyCount -= buffer.remaining.length - 1;
      buffer.dropFirst(nowPs);
      this.#countWanted(buffer.remaining);
    }
  }

  /** Gives an output its next packet. Returns true if one leaves. */
  #serve(index: number, nowPs: Picoseconds): boolean {
    const output = this.#ports[index]!;
    if (output.sendsFrom >= 0) return false;
    if (this.management.sendBy(index + 1, nowPs)) return true;
    if (output.wantedBy === 0) return false;
    return this.#serveFrom('management', index, nowPs) || this.#serveFrom('data', index, nowPs);
  }

  #serveFrom(lane: 'management' | 'data', index: number, nowPs: Picoseconds): boolean {
    const output = this.#ports[index]!;
    for (let step = 0; step < this.#used.length; step++) {
      const turn = (output.turn + step) % this.#used.length;
      const input = this.#ports[this.#used[turn]!]!;
      const buffer = input[lane];
      if (!buffer.wants(index + 1) || buffer.readyPs > nowPs || input.readUntilPs > nowPs) continue;
      // Without credit or with a busy link nothing else may leave here, either.
      if (!relayPacket(input.port, buffer.offset, output.port, nowPs)) return false;
      this.#leaves(this.#used[turn]!, input, buffer, index);
      output.turn = (turn + 1) % this.#used.length;
      return true;
    }
    return false;
  }

  /** Notes that the first packet of an input leaves by an output now. */
  #leaves(inputIndex: number, input: SwitchPort, buffer: InputBuffer, outputIndex: number): void {
    const output = this.#ports[outputIndex]!;
    const { offset } = buffer;
    // A packet that is discarded, or that a fault holds back, reserves nothing.
    const untilPs = Math.max(this.#lp.nowPs + 1, output.port.isUp ? output.port.freePs : 0);
    this.tap?.leaves(
      { input: inputIndex + 1, offset },
      {
        output: outputIndex + 1,
        queue: queueOf(inputIndex, buffer === input.management),
        firstSincePs: buffer.firstSincePs,
        untilPs,
      },
    );
    const isLast = buffer.leftBy(outputIndex + 1, this.#lp.nowPs);
    output.wantedBy--;
    if (isLast) this.#countWanted(buffer.remaining);
    output.sendsFrom = inputIndex;
    output.sendsOffset = isLast ? offset : -1;
    output.sendsUntilPs = untilPs;
    input.readUntilPs = untilPs;
  }

  /** Reports for which cause the first packet of each input waits. */
  #noteWaits(tap: SwitchTap<InfinibandPacket>, nowPs: Picoseconds): void {
    for (const index of this.#used) {
      const own = this.#ports[index]!;
      for (const buffer of [own.data, own.management]) {
        const [output = 0] = buffer.readyPs > nowPs ? [] : buffer.remaining;
        const queue = queueOf(index, buffer === own.management);
        tap.waits(queue, output === 0 ? undefined : this.#causeOf(own, output, nowPs), output);
      }
    }
    tap.settled();
  }

  #causeOf(input: SwitchPort, outputNumber: number, nowPs: Picoseconds): SwitchWait {
    const output = this.#ports[outputNumber - 1]!;
    if (output.sendsFrom >= 0) return 'output';
    if (input.readUntilPs > nowPs) return 'input';
    return output.port.waitsForCredits ? 'credits' : 'link';
  }

  /** Schedules what this port has to do next: the end of a packet, or the first packet of its inputs. */
  #scheduleNext(index: number, nowPs: Picoseconds): void {
    const own = this.#ports[index]!;
    if (own.sendsFrom >= 0) this.#moveBy(own.sendsUntilPs);
    for (const { readyPs } of [own.data, own.management])
      if (readyPs > nowPs && readyPs < NEVER) this.#moveBy(readyPs);
  }
}

/** A packet in the switch: the port by which it came, from 1, and the offset of its record there. */
export interface InfinibandPacket {
  readonly input: number;
  readonly offset: number;
}

/** Number of an input's buffer. */
const queueOf = (inputIndex: number, isManagement: boolean): number =>
  2 * inputIndex + (isManagement ? 1 : 0);

/** 4.096 us times a power of two; codes above 19 mean no limit (IBTA volume 1, 14.2.5.6, HOQLife). */
const headLimitPsOf = ({ hoqLife: code }: SwitchConfig): Picoseconds =>
  code > 19 ? NEVER : 4_096_000 * 2 ** code;
