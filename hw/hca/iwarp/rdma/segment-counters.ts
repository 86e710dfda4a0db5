/** DDP segments by opcode of RDMAP and direction; retransmissions are counted by TCP. */
import { RdmapOpcode } from '../../../../protocol/iwarp/index.ts';

const OPCODES = Object.values(RdmapOpcode).length;

class DirectionCounters {
  /** Counters by opcode. */
  readonly segments = new Float64Array(OPCODES);
  readonly payloadBytes = new Float64Array(OPCODES);

  count(opcode: number, payloadBytes: number): void {
    this.segments[opcode]! += 1;
    this.payloadBytes[opcode]! += payloadBytes;
  }
}

/** Segments that this card hands to TCP, and those that arrive. */
export interface SegmentDirections {
  readonly sent: DirectionCounters;
  readonly received: DirectionCounters;
}

export class SegmentCounters implements SegmentDirections {
  readonly sent = new DirectionCounters();
  readonly received = new DirectionCounters();
  /** Counters of the streams that have both ends at this card; the other counters leave these streams out. */
  readonly looped: SegmentDirections = { sent: new DirectionCounters(), received: new DirectionCounters() };
  /** Terminate messages by their error, 0xLTCC, of both directions. */
  readonly terminatesSent = new Map<number, number>();
  readonly terminatesReceived = new Map<number, number>();

  countTerminate(direction: 'sent' | 'received', error: number): void {
    const counts = direction === 'sent' ? this.terminatesSent : this.terminatesReceived;
    counts.set(error, (counts.get(error) ?? 0) + 1);
  }
}
