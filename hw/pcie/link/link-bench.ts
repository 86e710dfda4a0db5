/**
 * A test bench that is a miniature machine: two logical processes joined by a PCIe link, whose ends record received TLPs and
 * release them at once, or when the test requests it.
 */

import { type ConfigOf, defaultsOf, type Picoseconds } from '../../../base/index.ts';
import { ChannelReader, ChannelWriter, channelBufferBytes, LogicalProcess } from '../../../sim/index.ts';
import {
  descriptorOf,
  FLOAT_TIME,
  type MemoryReadFields,
  type MemoryWriteFields,
  PAYLOAD_OFFSET,
  WORD_LENGTH,
} from '../tlp/index.ts';
import {
  endpointPortParameters,
  type LinkEndConfig,
  linkParameters,
  rootPortParameters,
} from './link-parameters.ts';
import { PcieLinkPort, type TlpReceiver } from './pcie-link-port.ts';
import type { LinkSender } from './transmit-flow.ts';

export interface Received {
  readonly kind: number;
  readonly timePs: Picoseconds;
  readonly bytes: number[];
}

export interface LinkBenchOptions {
  readonly link?: Partial<ConfigOf<typeof linkParameters>>;
  readonly endpoint?: Partial<LinkEndConfig>;
  readonly rootPort?: Partial<LinkEndConfig>;
  readonly shuffle?: () => number;
  readonly capacityBytes?: number;
}

/** Two logical processes and the link between them. */
export function linkPair(options: LinkBenchOptions = {}) {
  const link = { ...defaultsOf(linkParameters), ...options.link };
  const endpoint = { ...defaultsOf(endpointPortParameters), ...options.endpoint };
  const rootPort = { ...defaultsOf(rootPortParameters), ...options.rootPort };
  const capacityBytes = options.capacityBytes ?? 1 << 20;
  const up = new SharedArrayBuffer(channelBufferBytes(capacityBytes));
  const down = new SharedArrayBuffer(channelBufferBytes(capacityBytes));
  const deviceLp = new LogicalProcess('device', options.shuffle);
  const hostLp = new LogicalProcess('host', options.shuffle);
  const device = new PcieLinkPort({
    lp: deviceLp,
    link,
    end: endpoint,
    peer: rootPort,
    writer: new ChannelWriter(up),
    reader: new ChannelReader(down),
    trafficClassCount: 16,
  });
  const host = new PcieLinkPort({
    lp: hostLp,
    link,
    end: rootPort,
    peer: endpoint,
    writer: new ChannelWriter(down),
    reader: new ChannelReader(up),
    trafficClassCount: 16,
  });
  return { link, endpoint, rootPort, deviceLp, hostLp, device, host };
}

/** Connects a port to a function that receives its TLPs; its senders stay. */
export function onReceive(port: PcieLinkPort, receiveTlp: TlpReceiver['receiveTlp']): void {
  const { posted, nonPosted, completion } = port.transmitter;
  port.connect({
    receiver: { receiveTlp },
    posted: posted.senders,
    nonPosted: nonPosted.senders,
    completion: completion.senders,
  });
}

/** Adds a sender of a flow, which is called when its full fifo has room again. */
export function onSendSpace(port: PcieLinkPort, flow: number, linkSpace: LinkSender['linkSpace']): void {
  const waiting = port.transmitter.flows[flow]!;
  waiting.connect({ senders: [...waiting.senders, { linkSpace }] });
}

/** Runs both sides up to, not including, `untilPs`, in windows of the link's latency; then both stop there. */
export function runPair(
  deviceLp: LogicalProcess,
  hostLp: LogicalProcess,
  windowPs: Picoseconds,
  untilPs: Picoseconds,
): void {
  const sides = [deviceLp, hostLp];
  for (;;) {
    for (const lp of sides) lp.publish(lp.nowPs);
    for (const lp of sides) lp.refreshHorizon();
    const nextPs = Math.min(deviceLp.nextPs(), hostLp.nextPs());
    if (nextPs >= untilPs) break;
    for (const lp of sides) lp.advance(Math.min(nextPs + windowPs, untilPs));
  }
  for (const lp of sides) lp.nowPs = untilPs;
}

/** A link whose two ends record arrivals. */
export function linkBench(options: LinkBenchOptions = {}) {
  const pair = linkPair(options);
  const atHost: Received[] = [];
  const atDevice: Received[] = [];
  const record = (port: PcieLinkPort, into: Received[]) => (offset: number, kind: number) => {
    const length = port.reader.words[(offset >> 2) + WORD_LENGTH]!;
    const hasPayload = kind === 1 || kind === 3;
    const start = offset + PAYLOAD_OFFSET;
    into.push({
      kind,
      timePs: port.reader.floats[(offset >> 3) + FLOAT_TIME]!,
      bytes: hasPayload ? [...port.reader.bytes.subarray(start, start + length)] : [],
    });
    port.consume(offset);
  };
  onReceive(pair.host, record(pair.host, atHost));
  onReceive(pair.device, record(pair.device, atDevice));
  const run = (untilPs: Picoseconds): void =>
    runPair(pair.deviceLp, pair.hostLp, pair.link.latencyPs, untilPs);
  return { ...pair, atHost, atDevice, run };
}

/** Sends a memory read; fields left out are 0. */
export function memoryRead(
  port: PcieLinkPort,
  { address, lengthBytes, ...more }: FieldsOf<MemoryReadFields, 'lengthBytes'>,
): void {
  Object.assign(port.read.begin(address, lengthBytes), more);
  port.sendMemoryRead();
}

/** Sends a memory write; fields left out are 0. */
export function memoryWrite(
  port: Pick<PcieLinkPort, 'write' | 'sendMemoryWrite'>,
  {
    address,
    source,
    sourceOffset = 0,
    lengthBytes,
    ...more
  }: FieldsOf<MemoryWriteFields, 'source' | 'lengthBytes'>,
): void {
  Object.assign(port.write.begin(address, source, sourceOffset, lengthBytes), more);
  port.sendMemoryWrite();
}

/** The fields of a request; address and these are mandatory. */
type FieldsOf<R extends { address: number }, K extends keyof R> = Pick<R, K | 'address'> &
  Partial<Omit<R, 'begin'>>;

/** A completion that a spec sends by hand. */
interface Answer {
  readonly tag: number;
  readonly trafficClass: number;
  /** Left out: 0. */
  readonly requesterId?: number;
  readonly status?: number;
  /** Left out: a completion without data. */
  readonly data?: Uint8Array;
  /** Left out: the number of data bytes. */
  readonly byteCount?: number;
  readonly address?: number;
  readonly flags?: number;
}

export function answer(
  port: PcieLinkPort,
  { tag, trafficClass, requesterId = 0, data, ...more }: Answer,
): void {
  const completion = port.completion.begin(descriptorOf(requesterId, tag, trafficClass));
  if (data !== undefined)
    Object.assign(completion, { source: data, lengthBytes: data.length, byteCount: data.length });
  Object.assign(completion, more);
  port.sendCompletion();
}
