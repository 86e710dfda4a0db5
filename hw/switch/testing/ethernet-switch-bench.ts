/** A test bench: one Ethernet switch with a plain port at the other end of each cable, each in its own logical process. For specs only. */
import { defaultsOf, macBytesOf, type Picoseconds } from '../../../base/index.ts';
import { ChannelReader, ChannelWriter, LogicalProcess, SingleRunner } from '../../../sim/index.ts';
import {
  type EthernetConfig,
  EthernetPort,
  ethernetChannelBytes,
  ethernetParameters,
  withTag,
} from '../../../wire/index.ts';
import { type EthernetSwitchConfig, ethernetSwitchParameters } from '../ethernet-parameters.ts';
import { EthernetSwitch } from '../ethernet-switch.ts';

/** A frame as an end received it, when its last bit had arrived: time since power-on. */
export interface FrameSeen {
  readonly timePs: Picoseconds;
  readonly bytes: readonly number[];
}

/** MAC of an end. */
const macOfEnd = (end: number): number => 0x0200_0000_1000 + end;
export const broadcastMac = 0xffff_ffff_ffff;

export interface FrameParts {
  /** End, or a MAC as it is. */
  readonly to?: number;
  readonly mac?: number;
  readonly from: number;
  /** Without FCS. */
  readonly frameBytes?: number;
  /** VLAN and priority of a tag. */
  readonly vlan?: number;
  readonly priority?: number;
  /** DSCP and ECN of an IPv4 packet, and its UDP source port; left out: the frame has no IP packet. */
  readonly dscp?: number;
  readonly ecn?: number;
  readonly udpPort?: number;
  /** A byte at the end, by which a test knows the frame. */
  readonly mark?: number;
}

/** A frame of its parts, every other byte 0: IPv4 with a right checksum, UDP to port 4791. */
export function frameOf(parts: FrameParts): Uint8Array {
  const { from, to = 0, frameBytes = 1000, vlan, priority = 0, dscp, ecn = 0, udpPort, mark = 0 } = parts;
  const frame = new Uint8Array(frameBytes);
  frame.set(macBytesOf(parts.mac ?? macOfEnd(to)), 0);
  frame.set(macBytesOf(macOfEnd(from)), 6);
  const isTagged = vlan !== undefined;
  if (isTagged) frame.set([0x81, 0x00, (priority << 5) | (vlan >>> 8), vlan & 0xff], 12);
  const network = isTagged ? 18 : 14;
  if (dscp !== undefined || udpPort !== undefined) {
    const length = frameBytes - network;
    const address = [10, 0, 0, from + 1, 10, 0, 0, to + 1];
    const header = [0x45, ((dscp ?? 0) << 2) | ecn, length >>> 8, length & 0xff, 0, 0, 0x40, 0, 64, 17, 0, 0];
    frame.set([8, 0], network - 2);
    frame.set([...header, ...address], network);
    const sum = [...header, ...address].reduce(
      (total, byte, at) => total + (at % 2 === 0 ? byte << 8 : byte),
      0,
    );
    const folded = (sum & 0xffff) + (sum >>> 16);
    const checksum = ~folded & 0xffff;
    frame.set([checksum >>> 8, checksum & 0xff], network + 10);
    frame.set([(udpPort ?? 0) >>> 8, (udpPort ?? 0) & 0xff, 0x12, 0xb7], network + 20);
  }
  frame[frameBytes - 1] = mark;
  return frame;
}

/** Frames of one kind, one after the other; each one's last byte is one more than that of the one before. */
export const framesOf = (count: number, parts: FrameParts): Uint8Array[] =>
  Array.from({ length: count }, (_, index) =>
    frameOf({ ...parts, mark: ((parts.mark ?? 0) + index) & 0xff }),
  );

/** One end: sends frames as soon as its port takes them, in order, and consumes frames that arrive unless told otherwise. */
export class SwitchEnd {
  readonly lp: LogicalProcess;
  readonly port: EthernetPort;
  readonly seen: FrameSeen[] = [];
  readonly held: number[] = [];
  consumesAtOnce = true;
  readonly #queue: Uint8Array[] = [];
  readonly #actions: (() => void)[] = [];
  readonly #at: number;

  constructor(lp: LogicalProcess, port: EthernetPort) {
    this.lp = lp;
    this.port = port;
    this.#at = lp.queue.addHandler((index) => this.#actions[index]!());
    port.connect({
      receiver: { frameArrived: (slot) => this.#receive(slot) },
      sender: { spaceFreed: () => this.#sendNext() },
      link: { linkChanged: () => undefined },
    });
    port.setEnabled(true);
  }

  /** Runs an action at an instant. */
  at(timePs: Picoseconds, action: () => void): void {
    this.#actions.push(action);
    this.lp.queue.schedule(timePs, this.#at, this.#actions.length - 1);
  }

  /** From an instant on, sends these frames. */
  sendAt(timePs: Picoseconds, ...frames: readonly Uint8Array[]): void {
    this.at(timePs, () => {
      this.#queue.push(...frames);
      this.#sendNext();
    });
  }

  consumeAll(): void {
    for (const slot of this.held.splice(0)) this.port.consume(slot);
  }

  #sendNext(): void {
    while (this.#queue.length > 0 && this.port.canTransmit()) {
      const frame = this.#queue.shift()!;
      this.port.send(frame, 0, frame.length);
    }
  }

  #receive(slot: number): void {
    const start = this.port.frameStart(slot);
    const bytes = [...this.port.rxBytes.subarray(start, start + this.port.frameBytes(slot))];
    this.seen.push({ timePs: this.lp.nowPs + this.lp.epochUs * 1_000_000, bytes });
    this.held.push(slot);
    if (this.consumesAtOnce) this.consumeAll();
  }
}

export class EthernetSwitchBench {
  readonly ends: readonly SwitchEnd[];
  readonly device: EthernetSwitch;
  readonly ethernet: EthernetConfig;
  /** The process of the switch. */
  readonly lp: LogicalProcess;
  readonly #runner: SingleRunner;

  /**
   * @param endCount number of ports, each with an end; end n is at port n + 1. All ports belong to the tree
   * @param shuffle reorders the events of one instant
   */
  constructor(
    endCount: number,
    changes: {
      readonly ethernet?: Partial<EthernetConfig>;
      readonly switch?: Partial<EthernetSwitchConfig>;
      /** Data rate of each end's cable in Gb/s; left out: that of `ethernet`. */
      readonly rates?: readonly number[];
      /** How all cables differ from `ethernet`. */
      readonly cable?: Partial<EthernetConfig>;
    } = {},
    shuffle?: () => number,
  ) {
    this.ethernet = { ...defaultsOf(ethernetParameters), transmitAheadBytes: 0, ...changes.ethernet };
    const config = { ...defaultsOf(ethernetSwitchParameters), ...changes.switch };
    const ethernetOf = (end: number): EthernetConfig => ({
      ...this.ethernet,
      ...changes.cable,
      gigabitsPerSecond: changes.rates?.[end] ?? this.ethernet.gigabitsPerSecond,
    });
    const bytes = Math.max(
      ...Array.from({ length: endCount }, (_, end) => ethernetChannelBytes(withTag(ethernetOf(end)))),
    );
    const channels = Array.from({ length: endCount }, () => ({
      out: new SharedArrayBuffer(bytes),
      back: new SharedArrayBuffer(bytes),
    }));
    const lp = new LogicalProcess('switch', shuffle);
    this.lp = lp;
    this.device = new EthernetSwitch({
      lp,
      config,
      ethernet: this.ethernet,
      number: 9,
      seed: 1,
      cables: channels.map(({ out, back }, end) => ({
        writer: new ChannelWriter(back),
        reader: new ChannelReader(out),
        ethernet: ethernetOf(end),
      })),
    });
    this.device.routes.setTreePorts(channels.map((_, index) => index + 1));
    this.ends = channels.map(({ out, back }, index) => {
      const endLp = new LogicalProcess(`end${index}`, shuffle);
      const port = new EthernetPort({
        lp: endLp,
        config: withTag(ethernetOf(index)),
        sentArrival: config.forwarding === 'cut-through' ? 'head' : 'tail',
        writer: new ChannelWriter(out),
        reader: new ChannelReader(back),
        seed: 1,
        controlMac: macOfEnd(index),
      });
      const usesPause = config.flowControl === 'pause';
      port.flowControl.set(usesPause, usesPause);
      if (config.flowControl === 'pfc')
        port.flowControl.priorities.set(config.losslessPriorities, config.losslessPriorities);
      return new SwitchEnd(endLp, port);
    });
    this.#runner = new SingleRunner([...this.ends.map((end) => end.lp), lp]);
  }

  /**
   * Each end sends bursts of `count` frames of 100 to 356 bytes to ends 0 and 1, all within some picoseconds; one
   * burst less than there are ends.
   * @param more further parts of the frames of an end's burst
   */
  sendBursts(
    timePs: Picoseconds,
    count: number,
    more: (from: number, burst: number) => Partial<FrameParts>,
  ): void {
    for (const [from, end] of this.ends.entries())
      for (let burst = 0; burst < this.ends.length; burst++) {
        if (burst === from) continue;
        const frameBytes = 100 + 64 * ((from * burst) % 5);
        const parts = { from, to: (burst * burst) % 3, frameBytes, ...more(from, burst) };
        end.sendAt(timePs + burst, ...framesOf(count, parts));
      }
  }

  /** All that can be seen of the switch and at its ends. */
  seen(): unknown {
    return [
      this.ends.map(({ seen }) => seen),
      this.device.inspect(),
      this.ends.map((_, index) => this.device.statisticsOf(index + 1)),
    ];
  }

  /** Runs everything due before `limitPs`. */
  async runTo(limitPs: Picoseconds): Promise<void> {
    await this.#runner.runTo(limitPs);
  }

  /** Begins a new epoch, between two runs. */
  beginEpoch(ps: Picoseconds): void {
    this.#runner.rebase(ps);
  }
}
