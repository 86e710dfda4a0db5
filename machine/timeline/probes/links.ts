/**
 * What crosses a link, as its reading end takes it: both ends are known from there. A record's instant is when its last byte has left
 * the sender and the link's latency has passed; the time on the lanes is its length at the link's rate.
 */

import {
  COMPLETION,
  COMPLETION_DATA,
  FLOAT_ADDRESS,
  FLOAT_TIME,
  framingOf,
  isTlp,
  type LinkConfig,
  linkRateOf,
  tagOf,
  tlpBytesOf,
  trafficClassOf,
  UPDATE_FC,
  WORD_BYTE_COUNT,
  WORD_DESCRIPTOR,
  WORD_LENGTH,
  WORD_FC_FLOW as WORD_PCIE_FC_FLOW,
  WORD_FC_LIMIT as WORD_PCIE_FC_LIMIT,
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
  FLAG_ACK_REQUEST,
  FLAG_CORRUPTED,
  FLAG_RETRANSMISSION,
  FLOW_CONTROL,
  FLOW_CONTROL_PACKET_BYTES,
  frameProtocolIn,
  LOST_ETHERNET_FRAME,
  opcodeRow,
  PACKET,
  packetBytesIn,
  packetSeenIn,
  type WireConfig,
  WORD_AETH,
  WORD_DESTINATION_QPN,
  WORD_FC_CREDIT_LIMIT,
  WORD_FRAME_BYTES,
  WORD_IS_CORRUPTED,
  WORD_IS_SENT_AGAIN,
  WORD_OPCODE,
  WORD_PACKET_FLAGS,
  WORD_PAYLOAD_BYTES,
  WORD_PSN,
  wireLatencyPs,
} from '../../../wire/index.ts';
import { around } from '../around.ts';
import { packetAsksForAck, packetCorrupted, packetLost, packetRetransmitted } from '../kinds.ts';
import type { Stream } from '../stream.ts';

/** Calls `taken` for each record that this end of a channel takes. */
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

/** When bytes were on the lanes of a direction that end there at an instant: no two packets are there at once. */
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

  /** Of a packet that took effect at `arrivalPs`. */
  place(arrivalPs: number, bytes: number): void {
    const { epochUs } = this.#stream.lp;
    const freePs = this.#lastPs - (epochUs - this.#lastUs) * 1e6;
    this.toPs = arrivalPs - this.#latencyPs;
    this.fromPs = Math.min(this.toPs, Math.max(this.toPs - Math.ceil(bytes * this.#psPerByte), freePs));
    this.#lastUs = epochUs;
    this.#lastPs = this.toPs;
  }
}

/** The TLPs and flow-control DLLPs of one direction of a PCIe link. Acks have no record: they take no effect. */
export function watchPcie(stream: Stream, reader: ChannelReader, link: LinkConfig, direction: string): void {
  if (!stream.has('tlps')) return;
  const track = stream.track('pcie', direction, { latencyPs: link.latencyPs });
  const rate = linkRateOf(link);
  const { tlpBytes: framingBytes, dllpBytes } = framingOf(link.generation);
  const lanes = new Lanes(stream, rate.numeratorPs / rate.denominatorBytes, link.latencyPs);
  onTaken(reader, (offset, kind) => {
    const { words, floats } = reader;
    const [word, float] = [offset >> 2, offset >> 3];
    if (kind === UPDATE_FC) {
      lanes.place(floats[float + FLOAT_TIME]!, dllpBytes);
      const [flow, limit] = [words[word + WORD_PCIE_FC_FLOW]!, words[word + WORD_PCIE_FC_LIMIT]!];
      return stream.interval('updateFc', track, lanes.fromPs, lanes.toPs, flow, limit);
    }
    if (!isTlp(kind)) return;
    const [address, lengthBytes] = [floats[float + FLOAT_ADDRESS]!, words[word + WORD_LENGTH]!];
    const descriptor = words[word + WORD_DESCRIPTOR]!;
    lanes.place(floats[float + FLOAT_TIME]!, tlpBytesOf(kind, address, lengthBytes) + framingBytes);
    stream.interval(
      'tlp',
      track,
      lanes.fromPs,
      lanes.toPs,
      kind,
      address,
      lengthBytes,
      tagOf(descriptor),
      trafficClassOf(descriptor),
      isCompletion(kind) ? words[word + WORD_BYTE_COUNT]! : 0,
    );
  });
}

const isCompletion = (kind: number): boolean => kind === COMPLETION || kind === COMPLETION_DATA;

/** The packets of one direction of an InfiniBand cable, flow control too. */
export function watchCable(
  stream: Stream,
  reader: ChannelReader,
  config: WireConfig,
  direction: string,
): void {
  if (!stream.has('packets')) return;
  const latencyPs = wireLatencyPs(config);
  const track = stream.track('cable', direction, { latencyPs });
  const { numeratorPs, denominator } = byteTimeOf(config);
  const lanes = new Lanes(stream, numeratorPs / denominator, latencyPs);
  onTaken(reader, (offset, kind) => {
    const { words, floats } = reader;
    const word = offset >> 2;
    const arrivalPs = floats[offset >> 3]!;
    if (kind === FLOW_CONTROL) {
      lanes.place(arrivalPs, FLOW_CONTROL_PACKET_BYTES + config.framingBytes);
      const limit = words[word + WORD_FC_CREDIT_LIMIT]!;
      return stream.interval('flowControl', track, lanes.fromPs, lanes.toPs, limit);
    }
    if (kind !== PACKET && kind !== DISCARDED) return;
    const flags = words[word + WORD_PACKET_FLAGS]!;
    const opcode = words[word + WORD_OPCODE]!;
    lanes.place(arrivalPs, packetBytesIn(flags) + config.framingBytes);
    stream.interval(
      'packet',
      track,
      lanes.fromPs,
      lanes.toPs,
      opcode,
      words[word + WORD_DESTINATION_QPN]!,
      words[word + WORD_PSN]!,
      words[word + WORD_PAYLOAD_BYTES]!,
      ((flags & FLAG_RETRANSMISSION) === 0 ? 0 : packetRetransmitted) +
        ((flags & FLAG_CORRUPTED) === 0 ? 0 : packetCorrupted) +
        ((flags & FLAG_ACK_REQUEST) === 0 ? 0 : packetAsksForAck) +
        (kind === DISCARDED ? packetLost : 0),
      opcodeRow(opcode)?.headers.includes('AETH') === true ? words[word + WORD_AETH]! >>> 24 : 0,
    );
  });
}

/** The frames of one direction of an Ethernet cable; those that are packets of RoCE as packets. */
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
    lanes.place(reader.floats[offset >> 3]!, config.preambleBytes + frameBytes + ETHERNET_FCS_BYTES);
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
