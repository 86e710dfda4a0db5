/**
 * Counts the figures of a report's PCIe link a second time, from the TLPs that crossed it one by one, by the
 * specification alone: this file has its own header lengths, framing, splitting rules and rates.
 */

import type { Report } from '../../../machine/index.ts';
import type { MachineConfig } from '../../../machine/profile/index.ts';
import type { TimelineRecord } from '../../../machine/timeline/index.ts';

/** PCIe base specification 3.1, table 2-3, with the numbers of records; and the accounting classes in the order of their numbers. */
const tlpTypes = ['', 'MWr', 'MRd', 'CplD', 'Cpl', 'CfgRd0', 'CfgWr0', 'Msg'];
const classNames =
  'doorbell blueFlame doorbellRecord wqeRead payloadRead payloadWrite cqe eqe context translation command msix register config message'.split(
    ' ',
  );
/** 3.5.2 and 4.2.1: STP 1, sequence number 2, LCRC 4, END 1; from generation 3 on, 4.2.2.3: STP token 4, LCRC 4. */
const framingBytes = 8;
const dllpBytes = 8;
const dwordBytes = 4;
const requestBoundaryBytes = 4096;
const lowerAddressBytes = 128;
const longAddress = 2 ** 32;
/** Per lane, in Gb/s: 2.1, minus the overhead of 8b/10b or 128b/130b. */
const gigabits = [0, 2.5 * 0.8, 5 * 0.8, (8 * 128) / 130, (16 * 128) / 130, (32 * 128) / 130];

export interface BusRecords {
  readonly records: Iterable<TimelineRecord>;
  readonly config: MachineConfig;
}

interface Sum {
  tlps: number;
  bytes: number;
  payloadBytes: number;
}

interface OpenRead {
  readonly trafficClass: number;
  readonly type: string;
  atAddress: number;
  leftBytes: number;
}

interface Lane {
  tlps: number;
  updates: number;
  endPs: number;
  busyPs: number;
}

type Direction = 'toDevice' | 'toHost';
const directions = ['toDevice', 'toHost'] as const;
const opposite = (direction: Direction): Direction => (direction === 'toDevice' ? 'toHost' : 'toDevice');

/** A TLP as recorded. */
interface Tlp {
  readonly node: number;
  readonly direction: Direction;
  readonly type: string;
  readonly address: number;
  readonly lengthBytes: number;
  readonly tag: number;
  readonly trafficClass: number;
  readonly byteCount: number;
}

const nodeOf = ({ track }: TimelineRecord): number => Number(track.process.replace(/^\D+/, ''));
const directionOf = ({ track }: TimelineRecord): Direction =>
  track.name === 'to host' ? 'toHost' : 'toDevice';

function tlpOf(record: TimelineRecord): Tlp {
  const [type = 0, address = 0, lengthBytes = 0, tag = 0, trafficClass = 0, byteCount = 0] = record.values;
  const place = { node: nodeOf(record), direction: directionOf(record) };
  return { ...place, type: tlpTypes[type]!, address, lengthBytes, tag, trafficClass, byteCount };
}

/** 2.2.5: every dword that contains one of its bytes; one dword if it has no byte. */
const touchedBytes = (address: number, lengthBytes: number): number =>
  lengthBytes === 0
    ? dwordBytes
    : (Math.floor((address + lengthBytes - 1) / dwordBytes) - Math.floor(address / dwordBytes) + 1) *
      dwordBytes;

/**
 * 2.2.1, 2.2.4.1, 2.2.7 to 2.2.9: three dwords of header, four for memory above 4 GiB and for messages; data for writes
 * and completions.
 */
function linkBytesOf({ type, address, lengthBytes }: Tlp): number {
  const isLong = type === 'Msg' || (/^M(Wr|Rd)$/.test(type) && address >= longAddress);
  const dataBytes =
    type === 'CfgWr0' ? dwordBytes : /^(MWr|CplD)$/.test(type) ? touchedBytes(address, lengthBytes) : 0;
  return framingBytes + (isLong ? 16 : 12) + dataBytes;
}

export class BusCount {
  readonly failures: string[] = [];
  readonly #config: MachineConfig;
  readonly #sums = new Map<string, Sum>();
  readonly #lanes = new Map<string, Lane>();
  readonly #open = new Map<string, OpenRead>();

  constructor({ records, config }: BusRecords) {
    this.#config = config;
    for (const record of records) {
      if (record.kind !== 'tlp' && record.kind !== 'updateFc') continue;
      this.#pass(record);
      if (record.kind === 'updateFc') continue;
      const tlp = tlpOf(record);
      this.#add(tlp);
      this.#checkLength(tlp);
      this.#answer(tlp);
    }
  }

  sumOf(node: number, direction: Direction, name: string): Readonly<Sum> {
    return this.#sums.get(`${node} ${direction} ${name}`) ?? { tlps: 0, bytes: 0, payloadBytes: 0 };
  }

  /** Compares the report of both directions of every link with these counts. */
  againstReport({ nodes, elapsedPs }: Report): string[] {
    const failures = [...this.failures];
    for (const [node, { pcie, interrupts }] of nodes.entries()) {
      for (const direction of directions)
        failures.push(...this.#directionFailures(node, direction, pcie[direction], elapsedPs));
      const sent = interrupts.reduce((sum, row) => sum + row.sent, 0);
      const { tlps, bytes } = this.sumOf(node, 'toHost', 'msix');
      // A dword access to an address below 4 GiB.
      if (tlps !== sent || bytes !== sent * (framingBytes + 12 + dwordBytes))
        failures.push(`node ${node}: ${tlps} messages of ${bytes} bytes for ${sent} interrupts`);
    }
    if (this.#open.size > 0) failures.push(`${this.#open.size} reads without an answer`);
    return failures;
  }

  #directionFailures(
    node: number,
    direction: Direction,
    billed: Report['nodes'][number]['pcie'][Direction],
    elapsedPs: number,
  ): string[] {
    const failures: string[] = [];
    const what = `node ${node} ${direction}`;
    const sums = classNames.map((name) => [name, this.sumOf(node, direction, name)] as const);
    const compare = (name: string, is: number, due: number): void => {
      if (is !== due) failures.push(`${what} ${name}: ${is} billed, ${due} counted`);
    };
    for (const [name, sum] of sums) {
      compare(`${name} TLPs`, billed.classes[name]?.tlps ?? 0, sum.tlps);
      compare(`${name} bytes`, billed.classes[name]?.bytes ?? 0, sum.bytes);
    }
    compare(
      'TLPs',
      billed.total.tlps,
      sums.reduce((total, [, { tlps }]) => total + tlps, 0),
    );
    compare(
      'bytes',
      billed.total.bytes,
      sums.reduce((total, [, { bytes }]) => total + bytes, 0),
    );
    for (const name of Object.keys(billed.classes))
      if (!classNames.includes(name)) failures.push(`${what}: class ${name}`);
    return [...failures, ...this.#laneFailures(what, this.#lanesOf(node, direction), billed, elapsedPs)];
  }

  /**
   * Acks have no record: a link sends at least one per group of TLPs and at most one per TLP. A TLP of a stream is
   * padded to less than a multiple of the alignment. TLPs in flight when the machine stops are in the report but not in
   * this count.
   */
  #laneFailures(
    what: string,
    { own, other }: { readonly own: Lane; readonly other: Lane },
    { linkBytes, total, busyPs }: Report['nodes'][number]['pcie'][Direction],
    elapsedPs: number,
  ): string[] {
    const { generation, lanes, skpIntervalBlocks, skpIntervalSymbols, ...link } = this.#config.pcie.link;
    const skpShare = generation <= 2 ? 4 / skpIntervalSymbols : 1 / skpIntervalBlocks;
    const bytesPerPs = ((gigabits[generation]! * lanes) / 8 / 1000) * (1 - skpShare);
    const underWayBytes = 16 * dllpBytes;
    const over = linkBytes - total.bytes - dllpBytes * own.updates;
    const least = dllpBytes * Math.floor(other.tlps / link.ackEveryTlps) - underWayBytes;
    const most = dllpBytes * other.tlps + (link.packetAlignmentBytes - dwordBytes) * own.tlps + underWayBytes;
    return [
      ...(over < least || over > most
        ? [`${what}: ${over} bytes of Acks and padding, ${least} to ${most}`]
        : []),
      ...(Math.abs((busyPs * bytesPerPs) / linkBytes - 1) > 1e-4
        ? [`${what}: busy for ${busyPs} ps, ${linkBytes / bytesPerPs} are due`]
        : []),
      // Each record's time is rounded up to a picosecond.
      ...(own.busyPs > busyPs + own.tlps + own.updates || busyPs > elapsedPs
        ? [`${what}: busy for ${busyPs} ps, TLPs for ${own.busyPs} of ${elapsedPs}`]
        : []),
    ];
  }

  #lanesOf(node: number, direction: Direction): { readonly own: Lane; readonly other: Lane } {
    return { own: this.#lane(node, direction), other: this.#lane(node, opposite(direction)) };
  }

  #lane(node: number, direction: Direction): Lane {
    const key = `${node} ${direction}`;
    const lane = this.#lanes.get(key) ?? { tlps: 0, updates: 0, endPs: 0, busyPs: 0 };
    this.#lanes.set(key, lane);
    return lane;
  }

  /** No two are on the lanes at once. */
  #pass(record: TimelineRecord): void {
    const lane = this.#lane(nodeOf(record), directionOf(record));
    const atPs = Number(record.atPs);
    if (atPs < lane.endPs) this.failures.push(`at ${atPs} ps the lanes are taken until ${lane.endPs}`);
    lane.endPs = atPs + record.durationPs;
    lane.busyPs += record.durationPs;
    if (record.kind === 'tlp') lane.tlps++;
    else lane.updates++;
  }

  #add(tlp: Tlp): void {
    const key = `${tlp.node} ${tlp.direction} ${classNames[tlp.trafficClass]}`;
    const sum = this.#sums.get(key) ?? { tlps: 0, bytes: 0, payloadBytes: 0 };
    this.#sums.set(key, sum);
    sum.tlps++;
    sum.bytes += linkBytesOf(tlp);
    if (/^(MWr|CplD)$/.test(tlp.type)) sum.payloadBytes += tlp.lengthBytes;
  }

  /** 2.2.2: data of at most MPS; 2.2.7: reads of at most MRRS, and no request crosses 4 KiB. */
  #checkLength({ type, direction, address, lengthBytes }: Tlp): void {
    const { maxPayloadBytes, maxReadRequestBytes } = this.#config.pcie.enumeration;
    const bytes = touchedBytes(address, lengthBytes);
    const isRequest = type === 'MWr' || type === 'MRd';
    const most = type === 'MRd' && direction === 'toHost' ? maxReadRequestBytes : maxPayloadBytes;
    if ((isRequest || type === 'CplD') && bytes > most)
      this.failures.push(`${type} of ${bytes} bytes, ${most} at most`);
    const last = address + Math.max(1, lengthBytes) - 1;
    if (isRequest && Math.floor(address / requestBoundaryBytes) !== Math.floor(last / requestBoundaryBytes))
      this.failures.push(`${type} of ${lengthBytes} bytes at ${address} crosses a boundary`);
  }

  /** 2.2.6.2: a tag belongs to one request at a time. 2.3.1.1: its completions arrive in address order, split at the RCB. */
  #answer(tlp: Tlp): void {
    const { node, direction, type, address, lengthBytes, tag, trafficClass } = tlp;
    const asks = /^(MRd|CfgRd0|CfgWr0)$/.test(type);
    const key = `${node} ${asks ? direction : opposite(direction)} ${tag}`;
    if (asks) {
      if (this.#open.has(key)) this.failures.push(`tag ${key} is taken twice`);
      const leftBytes = type === 'MRd' ? lengthBytes : dwordBytes;
      this.#open.set(key, { trafficClass, type, atAddress: address, leftBytes });
      return;
    }
    if (!type.startsWith('Cpl')) return;
    const read = this.#open.get(key);
    if (read === undefined) return void this.failures.push(`${type} for tag ${key}, which is free`);
    if (read.trafficClass !== trafficClass)
      this.failures.push(`${classNames[trafficClass]} answers ${classNames[read.trafficClass]}`);
    if (read.type === 'MRd' && type === 'CplD') this.#takeData(tlp, read);
    else read.leftBytes = 0;
    if (read.leftBytes <= 0) this.#open.delete(key);
  }

  #takeData({ direction, address, lengthBytes, byteCount }: Tlp, read: OpenRead): void {
    const boundary = this.#config.pcie.rootComplex.readCompletionBoundaryBytes;
    const end = read.atAddress + lengthBytes;
    const isLast = lengthBytes === read.leftBytes;
    if (byteCount !== read.leftBytes || lengthBytes > read.leftBytes)
      this.failures.push(`CplD of ${lengthBytes} with byte count ${byteCount}, ${read.leftBytes} are due`);
    if (address !== read.atAddress % lowerAddressBytes)
      this.failures.push(`CplD with lower address ${address} for ${read.atAddress}`);
    if (direction === 'toDevice' && !isLast && end % boundary !== 0)
      this.failures.push(`CplD that ends at ${end}, not at an RCB of ${boundary}`);
    read.atAddress = end;
    read.leftBytes -= lengthBytes;
  }
}
