/** A test bench: one InfiniBand switch with a plain port at the other end of each cable, each in its own logical process. For specs only. */
import { defaultsOf, type Picoseconds } from '../../../base/index.ts';
import { ChannelReader, ChannelWriter, LogicalProcess, SingleRunner } from '../../../sim/index.ts';
import {
  type Datagram,
  FLAG_CONGESTION,
  type LanesConfig,
  MANAGEMENT_LANE,
  Opcode,
  PACKET_PAYLOAD_OFFSET,
  receivedDatagram,
  SERVICE_LEVEL_SHIFT,
  sendDatagram,
  virtualLaneOf,
  type WireConfig,
  WirePort,
  WORD_DATAGRAM_PKEY,
  WORD_LIDS,
  WORD_PACKET_FLAGS,
  WORD_PAYLOAD_BYTES,
  WORD_PSN,
  wireChannelBytes,
  wireParameters,
} from '../../../wire/index.ts';
import { InfinibandSwitch, type SwitchCable } from '../infiniband-switch.ts';
import type { SwitchManagement } from '../management/index.ts';
import {
  type SwitchConfig,
  type SwitchCongestionConfig,
  switchCongestionParameters,
  switchParameters,
} from '../parameters.ts';

export const benchSwitchGuid = 0x0002_c903_0000_0080n;
export const benchSwitchLid = 0x201;

/** A packet as an end received it. */
export interface SwitchArrival {
  /** When its last byte had arrived. */
  readonly timePs: Picoseconds;
  readonly psn: number;
  readonly payload: readonly number[];
  /** Undefined for another opcode than UD SEND only. */
  readonly datagram: Datagram | undefined;
  readonly lane: number;
  /** FECN. */
  readonly isMarked: boolean;
}

/** A packet to be sent. */
interface Packet {
  readonly lid: number;
  readonly payloadBytes: number;
  readonly psn: number;
  readonly level: number;
}

/** One end: sends packets as soon as its port takes them, in order, and consumes packets that arrive unless told otherwise. */
export class BenchEnd {
  readonly lp: LogicalProcess;
  readonly port: WirePort;
  readonly arrivals: SwitchArrival[] = [];
  /** Offsets of packets not yet consumed. */
  readonly held: number[] = [];
  consumesAtOnce = true;
  /** Data lanes, as bits, of which no packet is consumed. */
  heldLanes = 0;
  /** Packets to be sent, by lane. */
  readonly #queues: Packet[][];
  readonly #actions: (() => void)[] = [];
  readonly #at: number;

  constructor(
    name: string,
    wire: WireConfig,
    out: SharedArrayBuffer,
    into: SharedArrayBuffer,
    shuffle: (() => number) | undefined,
  ) {
    this.#queues = Array.from({ length: Number(wire.dataVls) }, () => []);
    this.lp = new LogicalProcess(name, shuffle);
    this.#at = this.lp.queue.addHandler((index) => this.#actions[index]!());
    this.port = new WirePort({
      lp: this.lp,
      config: wire,
      writer: new ChannelWriter(out),
      reader: new ChannelReader(into),
      sentArrival: 'head',
    });
    this.port.connect({
      receiver: { packetArrived: (offset) => this.#receive(offset) },
      sender: { spaceFreed: () => this.#sendNext() },
      link: { linkChanged: () => undefined },
    });
    this.port.setEnabled(true);
  }

  /** Runs an action at an instant. */
  at(timePs: Picoseconds, action: () => void): void {
    this.#actions.push(action);
    this.lp.queue.schedule(timePs, this.#at, this.#actions.length - 1);
  }

  /**
   * From an instant on, sends `count` packets to a LID, whose PSNs count up from `psn` and whose payload counts up from the PSN.
   * @param level service level; its lane on this cable is the same number, modulo that of the lanes
   */
  sendAt(timePs: Picoseconds, lid: number, payloadBytes: number, psn = 0, count = 1, level = 0): void {
    this.at(timePs, () => {
      for (let index = 0; index < count; index++)
        this.#queues[level % this.#queues.length]!.push({ lid, payloadBytes, psn: psn + index, level });
      this.#sendNext();
    });
  }

  /** Sends a datagram of 256 bytes at an instant, unless the port is busy. */
  sendDatagramAt(timePs: Picoseconds, datagram: Partial<Datagram> & Pick<Datagram, 'payload'>): void {
    const whole = {
      ...{ virtualLane: MANAGEMENT_LANE, serviceLevel: 0, partitionKey: 0xffff, queueKey: 0, psn: 0 },
      ...{ sourceQpn: 0, destinationQpn: 0, sourceLid: 0xffff, destinationLid: 0xffff },
      ...datagram,
    };
    this.at(timePs, () => void sendDatagram(this.port, whole, this.lp.nowPs));
  }

  consumeAll(): void {
    for (const offset of this.held.splice(0)) this.port.consume(offset);
  }

  #sendNext(): void {
    const { port } = this;
    for (const [lane, queue] of this.#queues.entries()) {
      for (;;) {
        const next = queue[0];
        if (next === undefined || !port.canTransmit(Opcode.UD_SEND_ONLY, next.payloadBytes, 0, lane)) break;
        queue.shift();
        this.#send(next, lane);
      }
    }
  }

  #send(next: Packet, lane: number): void {
    const { port } = this;
    const offset = port.beginPacket(Opcode.UD_SEND_ONLY, next.payloadBytes, 0, this.lp.nowPs, lane);
    port.txWords[(offset >> 2) + WORD_DATAGRAM_PKEY] = next.level << SERVICE_LEVEL_SHIFT;
    port.txWords[(offset >> 2) + WORD_PSN] = next.psn;
    port.txWords[(offset >> 2) + WORD_LIDS] = next.lid;
    for (let index = 0; index < next.payloadBytes; index++)
      port.txBytes[offset + PACKET_PAYLOAD_OFFSET + index] = (next.psn + index) & 0xff;
    port.packetFilled(offset);
  }

  #receive(offset: number): void {
    const { rxWords, rxBytes } = this.port;
    const word = offset >> 2;
    const start = offset + PACKET_PAYLOAD_OFFSET;
    const payload = [...rxBytes.subarray(start, start + rxWords[word + WORD_PAYLOAD_BYTES]!)];
    const datagram = receivedDatagram(this.port, offset);
    const flags = rxWords[word + WORD_PACKET_FLAGS]!;
    const lane = virtualLaneOf(flags);
    const isMarked = (flags & FLAG_CONGESTION) !== 0;
    this.arrivals.push({
      timePs: this.lp.nowPs,
      psn: rxWords[word + WORD_PSN]!,
      payload,
      datagram,
      lane,
      isMarked,
    });
    if (!this.consumesAtOnce || ((this.heldLanes >> lane) & 1) !== 0) this.held.push(offset);
    else this.port.consume(offset);
  }
}

/** Drops of a port that forwarded all its packets. */
export const noSwitchDrops = {
  ...{ noRoute: 0, ownPort: 0, noLane: 0, inboundPkey: 0, outboundPkey: 0 },
  ...{ hoqLife: 0, vlStalled: 0, switchLifetime: 0 },
};

export class SwitchBench {
  readonly ends: readonly BenchEnd[];
  readonly device: InfinibandSwitch;
  readonly wire: WireConfig;
  /** The process of the switch. */
  readonly lp: LogicalProcess;
  readonly #runner: SingleRunner;

  /**
   * @param endCount number of ports, each with an end; end n has LID n + 1 at port n + 1
   * @param shuffle reorders the events of one instant
   */
  constructor(
    endCount: number,
    changes: {
      readonly wire?: Partial<WireConfig>;
      /** Cables of single ends, by their index. */
      readonly wireOfEnd?: Readonly<Record<number, Partial<WireConfig>>>;
      readonly switch?: Partial<SwitchConfig>;
      readonly congestion?: Partial<SwitchCongestionConfig>;
      /** Ports, from 1, with a bit in Victim_Mask. */
      readonly victimPorts?: readonly number[];
      /** Limits of single ports, from 1. */
      readonly headOfQueues?: Readonly<Record<number, SwitchCable['headOfQueue']>>;
      /** Left out: the embedded subnet manager's, with LID 0x201. */
      readonly management?: Partial<SwitchManagement>;
      /** Tables of lanes; left out: the defaults. */
      readonly lanes?: LanesConfig;
    } = {},
    shuffle?: () => number,
  ) {
    this.wire = { ...defaultsOf(wireParameters), transmitAheadBytes: 0, ...changes.wire };
    const config = { ...defaultsOf(switchParameters), ...changes.switch };
    const wireOf = (end: number): WireConfig => ({ ...this.wire, ...changes.wireOfEnd?.[end] });
    const bytes = wireChannelBytes({ ...this.wire, receiveBufferBytes: 131_072 });
    const channels = Array.from({ length: endCount }, () => ({
      out: new SharedArrayBuffer(bytes),
      back: new SharedArrayBuffer(bytes),
    }));
    const lp = new LogicalProcess('switch', shuffle);
    this.lp = lp;
    this.device = new InfinibandSwitch({
      lp,
      config,
      congestion: { ...defaultsOf(switchCongestionParameters), ...changes.congestion },
      lanes: changes.lanes,
      cables: channels.map(({ out, back }, index) => ({
        writer: new ChannelWriter(back),
        reader: new ChannelReader(out),
        wire: wireOf(index),
        sentArrival: 'tail',
        headOfQueue: changes.headOfQueues?.[index + 1] ?? {},
        marksVictims: changes.victimPorts?.includes(index + 1) === true,
      })),
      management: {
        guid: benchSwitchGuid,
        description: 'bench switch',
        embedded: { lid: benchSwitchLid, subnetManagerLid: 1 },
        ...changes.management,
      },
    });
    this.ends = channels.map(
      ({ out, back }, index) => new BenchEnd(`end${index}`, wireOf(index), out, back, shuffle),
    );
    for (let index = 0; index < endCount; index++) this.device.tables.setPort(index + 1, index + 1);
    this.#runner = new SingleRunner([...this.ends.map((end) => end.lp), lp]);
  }

  /** Events of the switch so far. */
  get eventCount(): number {
    return this.lp.queue.firedCount;
  }

  /** Limit of the last run. */
  nowPs = 0;

  /** Runs everything due before `limitPs`. */
  async runTo(limitPs: Picoseconds): Promise<void> {
    this.nowPs = limitPs;
    await this.#runner.runTo(limitPs);
  }
}
