/**
 * Packets and bytes of one direction by opcode. Bytes are those of the packet, LRH to VCRC, without link framing.
 *
 * The sender also keeps its own totals and its link bytes; the receiver counts arrivals by opcode. The two are counted
 * independently, so that their agreement is a check.
 */
const OPCODE_COUNT = 256;

/** Packets of one opcode. */
export class OpcodeCount {
  packets = 0;
  bytes = 0;
  payloadBytes = 0;
}

/** Represents an opcode without packets: most opcodes are never used. */
const noPackets = new OpcodeCount();
const rowsOfNone = (): OpcodeCount[] => new Array<OpcodeCount>(OPCODE_COUNT).fill(noPackets);
/** The rows of counters that have counted nothing, like most in a machine: never written. */
const noRows = rowsOfNone();

export class PacketCounters {
  #rows = noRows;

  /** Rows by opcode. */
  get rows(): readonly Readonly<OpcodeCount>[] {
    return this.#rows;
  }

  count(opcode: number, packetBytes: number, payloadBytes: number): void {
    let row = this.#rows[opcode]!;
    if (row === noPackets) {
      if (this.#rows === noRows) this.#rows = rowsOfNone();
      row = new OpcodeCount();
      this.#rows[opcode] = row;
    }
    row.packets++;
    row.bytes += packetBytes;
    row.payloadBytes += payloadBytes;
  }

  get packetTotal(): number {
    return this.rows.reduce((sum, { packets }) => sum + packets, 0);
  }

  get byteTotal(): number {
    return this.rows.reduce((sum, { bytes }) => sum + bytes, 0);
  }
}

/** Statistics of the transmitting side. */
export class TransmitCounters {
  /** First transmissions and retransmissions, separately. */
  readonly first = new PacketCounters();
  readonly retransmitted = new PacketCounters();
  /** All packets put on the wire. */
  packetCount = 0;
  packetBytes = 0;
  flowControlCount = 0;
  /** Packets discarded because the link was down, and the same by opcode. */
  discardedCount = 0;
  readonly discarded = new PacketCounters();
  /** Packets corrupted or delayed by an injected fault. */
  corruptedCount = 0;
  delayedCount = 0;
  /** Packets that left with a wrong ICRC, as a switch received them. */
  relayedDamageCount = 0;
  /**
   * Other effects of faults, by opcode: packets that left and never arrive; copies put on the link; packets held back, and
   * those of them put on the link later. The difference of the last two is still held, or was held when the link went down.
   */
  readonly lost = new PacketCounters();
  readonly copied = new PacketCounters();
  readonly heldBack = new PacketCounters();
  readonly letGo = new PacketCounters();
  /** Time a packet waited for credits, and for the serializer, in picoseconds. */
  creditWaitPs = 0;
  serializerWaitPs = 0;
}

/** Statistics of the receiving side. */
export class ReceiveCounters {
  readonly delivered = new PacketCounters();
  /** Packets delivered to a switch although their ICRC was wrong: it does not check it. */
  relayedDamageCount = 0;
  /** Wrong VCRC or ICRC, or malformed; and of those, damaged within a switch, so that only the ICRC was wrong. */
  readonly corrupted = new PacketCounters();
  invariantCrcErrors = 0;
  /** Packets with right CRCs but an invalid length, version or next header (7.7, 8.3, 9.6.1.1). */
  malformedPackets = 0;
  flowControlCount = 0;
  /** Packets dropped because this end was down, lane 15 was full, or the sender overran the buffer. */
  linkDownDrops = 0;
  managementDrops = 0;
  overruns = 0;
  /** Flow control packets whose count differed from this end's: packets were lost in between. */
  creditResynchronizations = 0;
}
