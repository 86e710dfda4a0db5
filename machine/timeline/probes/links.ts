/**
 * Records of a link's traffic at its reading end, from which both ends follow. A record's time is one link latency
 * after its last byte was sent; the time on the lanes is its length at the link's rate.
 */

import {
  COMPLETION,
  COMPLETION_DATA,
  framingOf,
  isTlp,
  type LinkConfig,
  linkRateOf,
  tlpBytesOf,
  tlpRecord,
  UPDATE_FC,
  updateFcRecord,
} from '../../../hw/pcie/index.ts';
import { type ChannelReader, RECORD_HEADER_BYTES } from '../../../sim/index.ts';
import {
  byteTimeOf,
  DISCARDED,
  ETHERNET_FCS_BYTES,
  ETHERNET_FRAME,
  type EthernetConfig,
  ethernetByteTime,
  ethernetLatencyPs,
  FLOW_CONTROL,
  FLOW_CONTROL_PACKET_BYTES,
  flowControlRecord,
  frameProtocolIn,
  LOST_ETHERNET_FRAME,
  opcodeRow,
  PACKET,
  type PacketArrival,
  packetSeenIn,
  responseRecord,
  tailDelayOf,
  type WireConfig,
  WORD_FRAME_BYTES,
  WORD_IS_CORRUPTED,
  WORD_IS_SENT_AGAIN,
  WORD_TAIL_DELAY_PS,
  wireLatencyPs,
} from '../../../wire/index.ts';
import { around } from '../around.ts';
import { packetAsksForAck, packetCorrupted, packetLost, packetRetransmitted } from '../kinds.ts';
import type { Stream } from '../stream.ts';

/** Calls `taken` for each record that this end of a channel receives. */
function onTaken(reader: ChannelReader, taken: (offset: number, kind: number) => void): void {
  around(reader, 'take', (take) => () => {
    const offset = take();
    taken(offset, reader.takenKind);
    return offset;
  });
  around(reader, 'takeOf', (takeOf) => (kind) => {
    const offset = takeOf(kind);
    if (offset >= 0) taken(offset, kind);
    return offset;
  });
}

/** When bytes that arrive at an instant were on the lanes: two packets never overlap there. */
class Lanes {
  fromPs = 0;
  toPs = 0;
  readonly #stream: Stream;
  readonly #psPerByte: number;
  readonly #latencyPs: number;
  #lastUs = 0;
  #lastPs = 0;

  constructor(stream: Stream, psPerByte: number, latencyPs: number) {
    this.#stream = stream;
    this.#psPerByte = psPerByte;
    this.#latencyPs = latencyPs;
  }

  /** Computes the interval of a packet that took effect at `arrivalPs`. */
  place(arrivalPs: number, bytes: number): void {
    const { epochUs } = this.#stream.lp;
    const freePs = this.#lastPs - (epochUs - this.#lastUs) * 1e6;
    this.toPs = arrivalPs - this.#latencyPs;
    this.fromPs = Math.min(this.toPs, Math.max(this.toPs - Math.ceil(bytes * this.#psPerByte), freePs));
    this.#lastUs = epochUs;
    this.#lastPs = this.toPs;
  }
}

/** The TLPs and flow-control DLLPs of one direction of a PCIe link. Acks have no record, because they have no effect. */
export function watchPcie(stream: Stream, reader: ChannelReader, link: LinkConfig, direction: string): void {
  if (!stream.has('tlps')) return;
  const track = stream.track('pcie', direction, { latencyPs: link.latencyPs });
  const rate = linkRateOf(link);
  const { tlpBytes: framingBytes, dllpBytes } = framingOf(link.generation);
  const lanes = new Lanes(stream, rate.numeratorPs / rate.denominatorBytes, link.latencyPs);
  onTaken(reader, (offset, kind) => {
    const { bytes } = reader;
    if (kind === UPDATE_FC) {
      const { arrivalPs, flow, limit } = updateFcRecord.decode(bytes, offset);
      lanes.place(arrivalPs, dllpBytes);
      return stream.interval('updateFc', track, lanes.fromPs, lanes.toPs, flow, limit);
    }
    if (!isTlp(kind)) return;
    const { arrivalPs, address, lengthBytes, tag, trafficClass, byteCount } = tlpRecord.decode(bytes, offset);
    lanes.place(arrivalPs, tlpBytesOf(kind, address, lengthBytes) + framingBytes);
    stream.interval(
      'tlp',
      track,
      lanes.fromPs,
      lanes.toPs,
      kind,
      address,
      lengthBytes,
      tag,
      trafficClass,
      isCompletion(kind) ? byteCount : 0,
    );
  });
}

const isCompletion = (kind: number): boolean => kind === COMPLETION || kind === COMPLETION_DATA;

/**
 * The packets of one direction of an InfiniBand cable, including flow control.
 * @param arrival instant of a packet's record: of its first byte at a switch
 */
export function watchCable(
  stream: Stream,
  reader: ChannelReader,
  config: WireConfig,
  direction: string,
  arrival: PacketArrival = 'tail',
): void {
  if (!stream.has('packets')) return;
  const latencyPs = wireLatencyPs(config);
  const tailDelayPs = tailDelayOf(config, arrival);
  const track = stream.track('cable', direction, { latencyPs });
  const { numeratorPs, denominator } = byteTimeOf(config);
  const lanes = new Lanes(stream, numeratorPs / denominator, latencyPs);
  onTaken(reader, (offset, kind) => {
    const { bytes } = reader;
    if (kind === FLOW_CONTROL) {
      const { arrivalPs, creditLimit } = flowControlRecord.decode(bytes, offset);
      lanes.place(arrivalPs, FLOW_CONTROL_PACKET_BYTES + config.framingBytes);
      return stream.interval('flowControl', track, lanes.fromPs, lanes.toPs, creditLimit);
    }
    if (kind !== PACKET && kind !== DISCARDED) return;
    const packet = responseRecord.decode(bytes, offset);
    const { opcode } = packet;
    lanes.place(packet.arrivalPs + tailDelayPs(packet.packetBytes), packet.packetBytes + config.framingBytes);
    stream.interval(
      'packet',
      track,
      lanes.fromPs,
      lanes.toPs,
      opcode,
      packet.destinationQpn,
      packet.psn,
      packet.payloadBytes,
      packet.isRetransmission * packetRetransmitted +
        packet.isCorrupted * packetCorrupted +
        packet.hasAckRequest * packetAsksForAck +
        (kind === DISCARDED ? packetLost : 0),
      opcodeRow(opcode)?.headers.includes('AETH') === true ? packet.syndrome : 0,
    );
  });
}

/** The frames of one direction of an Ethernet cable; RoCE packets are recorded as packets. */
export function watchEthernet(
  stream: Stream,
  reader: ChannelReader,
  config: EthernetConfig,
  direction: string,
): void {
  if (!stream.has('packets')) return;
  const latencyPs = ethernetLatencyPs(config);
  const track = stream.track('cable', direction, { latencyPs });
  const { numeratorPs, denominator } = ethernetByteTime(config);
  const lanes = new Lanes(stream, numeratorPs / denominator, latencyPs);
  onTaken(reader, (offset, kind) => {
    if (kind !== ETHERNET_FRAME && kind !== LOST_ETHERNET_FRAME) return;
    const { words, bytes } = reader;
    const word = offset >> 2;
    const frameBytes = words[word + WORD_FRAME_BYTES]!;
    const at = offset + RECORD_HEADER_BYTES;
    const tailPs = reader.floats[offset >> 3]! + words[word + WORD_TAIL_DELAY_PS]!;
    lanes.place(tailPs, config.preambleBytes + frameBytes + ETHERNET_FCS_BYTES);
    const flags =
      (words[word + WORD_IS_SENT_AGAIN] === 0 ? 0 : packetRetransmitted) +
      (words[word + WORD_IS_CORRUPTED] === 0 ? 0 : packetCorrupted) +
      (kind === LOST_ETHERNET_FRAME ? packetLost : 0);
    const seen = packetSeenIn(bytes, at, frameBytes);
    if (seen === undefined) {
      const protocol = frameProtocolIn(bytes, at, frameBytes);
      return stream.interval('frame', track, lanes.fromPs, lanes.toPs, frameBytes, flags, protocol);
    }
    stream.interval(
      'packet',
      track,
      lanes.fromPs,
      lanes.toPs,
      seen.opcode,
      seen.destinationQpn,
      seen.psn,
      seen.payloadBytes,
      flags + (seen.asksForAck ? packetAsksForAck : 0),
      seen.syndrome,
    );
  });
}
