/**
 * Destinations of the datagrams of send records: fields of their UD headers, by record. An address vector, or on QP0
 * and QP1 the headers that software wrote, is decoded once, when the WQE is started (datagram-decoder.ts).
 */
import { GRH_BYTES, roceRoute } from '../../../wire/index.ts';

/** The transport numbers the packet. */
export const NOT_NUMBERED = -1;

export class DatagramAddresses {
  /** Packet number that software has written, or {@link NOT_NUMBERED}. */
  readonly number: Int32Array;
  readonly destinationQpn: Int32Array;
  readonly sourceQpn: Int32Array;
  readonly queueKey: Int32Array;
  /** P_Key and, from SERVICE_LEVEL_SHIFT on, service level: a word of the packet. */
  readonly pkeyAndLevel: Int32Array;
  readonly destinationLid: Int32Array;
  readonly sourceLid: Int32Array;
  readonly virtualLane: Uint8Array;
  /** Static rate of the path as PathRecord.Rate has it; 0 for the rate of the line. */
  readonly staticRateCode: Uint8Array;
  /** 1 if the packet goes to a multicast group: also to members at this port. */
  readonly isToGroup: Uint8Array;
  /** 1 if the packet goes to this port, regardless of its LID. */
  readonly isForcedBack: Uint8Array;
  readonly hasGrh: Uint8Array;
  /** GRHs byte for byte, except their payload length. */
  readonly grh: Uint8Array;
  /** The rest of their addresses on an Ethernet port, in the format of packet records (wire/packet.ts). */
  readonly routes: Uint8Array;

  constructor(capacity: number) {
    this.number = new Int32Array(capacity);
    this.destinationQpn = new Int32Array(capacity);
    this.sourceQpn = new Int32Array(capacity);
    this.queueKey = new Int32Array(capacity);
    this.pkeyAndLevel = new Int32Array(capacity);
    this.destinationLid = new Int32Array(capacity);
    this.sourceLid = new Int32Array(capacity);
    this.virtualLane = new Uint8Array(capacity);
    this.staticRateCode = new Uint8Array(capacity);
    this.isToGroup = new Uint8Array(capacity);
    this.isForcedBack = new Uint8Array(capacity);
    this.hasGrh = new Uint8Array(capacity);
    this.grh = new Uint8Array(capacity * GRH_BYTES);
    this.routes = new Uint8Array(capacity * roceRoute.sizeBytes);
  }
}
