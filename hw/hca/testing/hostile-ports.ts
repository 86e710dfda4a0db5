/**
 * Ports to which a hostile peer sends: they build its packets from draws, put them on the cable, and read the counters
 * of the port at its end.
 */
import { Opcode } from '../../../wire/opcodes.ts';
import { FLAG_GRH, PACKET_PAYLOAD_OFFSET } from '../../../wire/packet.ts';
import type { BenchOptions, DataPathBench } from './data-path-bench.ts';
import { type FrameDraw, type FrameTargets, hostileFrame, QUANTA_UNWAITED } from './hostile-frames.ts';
import { hostilePacket } from './hostile-link-packets.ts';
import type { HostilePacket, PacketDraw, Targets } from './hostile-packets.ts';
import { macOfNode, type RoceForm } from './roce-ends.ts';

const LINK_HEADERS_BYTES = 26;
const GRH_BYTES = 40;
/** Time in which any pause is over, in microseconds. */
const LONGEST_PAUSE_US = 900;

export interface HostilePort<Draw> {
  /** Options of a bench with such a port. */
  readonly options: BenchOptions;
  packetOf(draw: Draw, targets: Targets, bench: DataPathBench): HostilePacket;
  /** Puts bytes on the cable as they are. False: it takes none now. */
  inject(packet: HostilePacket, bench: DataPathBench): boolean;
  /**
   * Drop counters of the port, by the names that {@link HostilePacket.verdict} uses.
   */
  counts(bench: DataPathBench): Record<string, number>;
  /** Packets that have returned to the hostile peer. */
  answerCount(bench: DataPathBench): number;
  /** Time to wait before the next packet, in microseconds. */
  restUs(draw: Draw): number;
}

/** A hostile port of InfiniBand. */
export class LinkPort implements HostilePort<PacketDraw> {
  readonly options: BenchOptions = { wire: { packetForm: 'bytes' } };

  packetOf(draw: PacketDraw, targets: Targets): HostilePacket {
    return hostilePacket(draw, targets);
  }

  inject({ bytes, virtualLane }: HostilePacket, { a: { wire, lp } }: DataPathBench): boolean {
    const hasRoute = bytes.length >= LINK_HEADERS_BYTES + GRH_BYTES;
    const flags = hasRoute ? FLAG_GRH : 0;
    const payloadBytes = bytes.length - LINK_HEADERS_BYTES - (hasRoute ? GRH_BYTES : 0);
    if (!wire.canTransmit(Opcode.RC_SEND_ONLY, payloadBytes, flags, virtualLane)) return false;
    const offset = wire.beginPacket(Opcode.RC_SEND_ONLY, payloadBytes, flags, lp.nowPs, virtualLane);
    const bodyBytes = (payloadBytes + (hasRoute ? GRH_BYTES + 3 : 0) + 3) & ~3;
    wire.txBytes.set(bytes, offset + PACKET_PAYLOAD_OFFSET + bodyBytes);
    return true;
  }

  counts({ b }: DataPathBench): Record<string, number> {
    const { corrupted, malformedPackets, managementDrops, overruns } = b.wire.received;
    const damaged = corrupted.packetTotal - malformedPackets;
    return { damaged, malformed: malformedPackets, managementDrops, overruns };
  }

  answerCount({ a }: DataPathBench): number {
    return a.port.packets.length;
  }

  restUs(): number {
    return 0;
  }
}

export const GROUP = 0x0100_5e00_0005;
const FOREIGN_GROUP = 0x3333_0000_0007;
export const VLAN = 5;
/** Longest frame with FCS, as the ring's software has set it. */
export const LONGEST_BYTES = 3000;

/** A hostile port of Ethernet with RoCE in one form. */
export class EthernetHostilePort implements HostilePort<FrameDraw> {
  readonly options: BenchOptions;
  readonly #form: RoceForm;
  readonly #hasFlowControl: boolean;

  constructor(
    form: RoceForm,
    {
      receiveChecksums,
      hasFlowControl,
    }: { readonly receiveChecksums: 'none' | 'verified' | 'complete'; readonly hasFlowControl: boolean },
  ) {
    this.#form = form;
    this.#hasFlowControl = hasFlowControl;
    this.options = {
      roce: form,
      ethernet: { gigabitsPerSecond: 40, mtuBytes: 9000, receiveFifoFrames: 64 },
      offloads: { receiveChecksums },
      hasFlowControl,
    };
  }

  packetOf(draw: FrameDraw, targets: Targets, { b }: DataPathBench): HostilePacket {
    const frameTargets: FrameTargets = {
      ...targets,
      form: this.#form,
      mac: macOfNode(2),
      controlMac: this.#hasFlowControl ? CONTROL_MAC : undefined,
      group: GROUP,
      foreignGroup: FOREIGN_GROUP,
      vlan: VLAN,
      longestBytes: LONGEST_BYTES,
      frameBytesMax: b.ethernet!.port.frameBytesMax,
    };
    return hostileFrame(draw, frameTargets);
  }

  inject({ bytes }: HostilePacket, { a }: DataPathBench): boolean {
    a.ethernet!.port.send(bytes, 0, bytes.length);
    return true;
  }

  counts({ b }: DataPathBench): Record<string, number> {
    const { port, side } = b.ethernet!;
    const { corruptedFrames, fifoDrops } = port.received;
    const { receivedPauses, unknownOpcodes, malformedFrames } = port.flowControl.totals();
    const { packetDamaged, packetMalformed, ...drops } = side.steering.drops;
    return {
      ...drops,
      corruptedFrames,
      fifoDrops,
      damaged: packetDamaged,
      malformed: packetMalformed,
      pauseFrames: receivedPauses,
      unknownControlFrames: unknownOpcodes,
      malformedControlFrames: malformedFrames,
    };
  }

  answerCount({ a }: DataPathBench): number {
    return a.ethernet!.port.received.deliveredFrames;
  }

  restUs(draw: FrameDraw): number {
    return draw.kind === 'control' && draw.quanta > QUANTA_UNWAITED ? LONGEST_PAUSE_US : 0;
  }
}

/** MAC control address of the bench's stations. */
const CONTROL_MAC = 1;
